"""Input: row formats, row weights and validation."""
