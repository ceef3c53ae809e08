"""Markov chains that leave a machine's distribution invariant: Gibbs, tempering, jumps."""
