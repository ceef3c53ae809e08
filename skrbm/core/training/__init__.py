"""Training: negative phases, update rules, starts and the loop over mini-batches."""
