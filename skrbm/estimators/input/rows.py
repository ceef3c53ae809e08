"""Rows of a fit: their weights, their statistics, and which of them are held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight

from skrbm.core.numerics import Array
from skrbm.core.training.start.statistics import column_statistics


def check_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights of rows in double precision, or None where they are None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        As the user gave it; a weight of k is k copies of a row.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
        Not all zero.

    Raises
    ------
    ValueError
        If a weight is negative, infinite or NaN, if all are zero, or if there is not one for each
        row.
    """
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weights.min() < 0 or not weights.any():
        raise ValueError(
            f"sample_weight expected to be at least zero, and positive for some rows, got values "
            f"from {weights.min():g} to {weights.max():g}. A weight of k is k copies of a row; "
            f"leave rows out by a weight of zero."
        )
    return np.asarray(weights)


def present_rows(X: Any, sample_weight: Array | None, *others: Array) -> tuple[Any, ...]:
    """Rows of positive weight with their weights; no copies where that is all of them.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Rows.
    sample_weight : ndarray of shape (n_samples,) or None
        From `check_weights`.
    *others : ndarray of shape (n_samples, ...)
        What else belongs to the rows.

    Returns
    -------
    present : tuple
        Rows, weights and others.
    """
    if sample_weight is None or sample_weight.all():
        return X, sample_weight, *others
    rows = np.flatnonzero(sample_weight)
    return X[rows], sample_weight[rows], *(other[rows] for other in others)


def row_statistics(X: Any, sample_weight: Array | None) -> tuple[float, Array, Array]:
    """Number of rows, mean and variance of every column.

    Parameters
    ----------
    X : {ndarray, sparse matrix in canonical CSR format} of shape (n_samples, n_features)
        Data of any numeric type.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights of the rows.

    Returns
    -------
    statistics : tuple of float, ndarray and ndarray of shape (n_features,)
        Weighted rows are as many as their copies; where weights are small, such as shares of a
        sum of one, as many equal ones as tell a mean as well [1]_.

    References
    ----------
    .. [1] Kish (1965), "Survey sampling", Wiley, section 11.7.
    """
    if sample_weight is None:
        return (X.shape[0], *column_statistics(X))
    total = float(sample_weight.sum())
    n_equal = total**2 / float(sample_weight @ sample_weight)
    return (max(total, n_equal), *column_statistics(X, sample_weight))


def split_rows(
    n_samples: int, share: float, seed: int, candidates: Array | None = None
) -> tuple[Array, Array]:
    """Numbers of the rows to learn from and of those held out, the same for the same seed.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    share : float
        Share of the candidates to hold out.
    seed : int
        Of the choice.
    candidates : ndarray of shape (n_candidates,), default=None
        Numbers of the rows that may be held out, a share of which is; None for all.

    Returns
    -------
    learned, held_out : ndarray of int
        Sorted.
    """
    everything = np.arange(n_samples)
    _, held_out = train_test_split(
        everything if candidates is None else candidates,
        test_size=share,
        random_state=seed,
    )
    return np.setdiff1d(everything, held_out), np.sort(held_out)
