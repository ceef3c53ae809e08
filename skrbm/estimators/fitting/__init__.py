"""Fit of an estimator: initialization, epochs, recording, result and checkpoints."""
