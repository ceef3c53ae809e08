"""Likelihoods of data: partition functions, exact and annealed, and pseudo-likelihoods."""
