"""The estimators: the only folder that knows scikit-learn."""
