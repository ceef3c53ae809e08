"""Classifier with the label as a visible unit: data, fit and inference."""
