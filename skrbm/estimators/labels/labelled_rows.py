"""Rows with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from skrbm.core.numerics import Array

UNKNOWN = -1  # number of a label that is not known


@final
@dataclass(frozen=True)
class LabelledRows:
    """Rows of features with the one-hot columns of their labels, joined when they are asked for.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Features of any numeric type.
    labels : ndarray of int of shape (n_samples,)
        Numbers of the labels, `UNKNOWN` where there is none.
    n_labels : int
        Number of labels.
    """

    X: Any
    labels: Array
    n_labels: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns with those of the labels."""
        return len(self.labels), self.X.shape[1] + self.n_labels

    def __getitem__(self, rows: Any) -> Any:
        """Some rows, {ndarray, sparse array} of the features' type; zeros for unknown labels."""
        X, labels = self.X[rows], self.labels[rows]
        known = np.flatnonzero(labels != UNKNOWN)
        if issparse(X):
            ones = np.ones(len(known), dtype=X.dtype)
            columns = csr_array((ones, (known, labels[known])), (len(labels), self.n_labels))
            return hstack([X, columns], "csr")
        joined = np.zeros((len(labels), self.shape[1]), dtype=X.dtype)
        joined[:, : X.shape[1]] = X
        joined[known, X.shape[1] + labels[known]] = 1
        return joined
