"""Displays: plots of models, samples and training."""
