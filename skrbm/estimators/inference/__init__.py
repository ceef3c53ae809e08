"""Methods of fitted estimators: scores, samples, partition functions, missing values."""
