"""Markov chain Monte Carlo for a machine: Gibbs sampling, parallel tempering, jumps."""
