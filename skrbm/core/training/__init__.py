"""Training: initialization, negative phases, update rules and the loop over mini-batches."""
