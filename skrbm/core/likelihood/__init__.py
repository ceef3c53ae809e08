"""What a machine says about data: partition functions, likelihoods and pseudo-likelihoods."""
