"""Row formats, sample weights and input validation."""
