"""Labels as one more visible unit: rows with labels, their fit and what is asked of it."""
