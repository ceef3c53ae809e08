"""Likelihoods: partition functions (exact sums and estimates) and pseudo-likelihoods."""
