"""Inference with fitted estimators: scores, samples, partition functions, missing values."""
