"""One fit: start, epochs, result, recording, checkpoints."""
