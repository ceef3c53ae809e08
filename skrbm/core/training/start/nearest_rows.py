"""First values for what is missing of rows: those of the nearest rows."""

from __future__ import annotations

import numpy as np

from skrbm.core.numerics import Array


def with_nearest_values(rows: Array, donors: Array, fallback: Array) -> Array:
    """Rows whose missing values are those of the nearest rows that have them.

    All of them are from one row if that has them: values of two groups together would be a bridge.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        NaN is a missing value.
    donors : ndarray of shape (n_donors, n_visible)
        Rows to take values from, perhaps the same. Distances are measured in their standard
        deviations; a value that a donor lacks adds twice its variance to the squared distance.
    fallback : ndarray of shape (n_visible,) or (n_samples, n_visible)
        Values that no donor has.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_visible)
        The very same where nothing is missing.
    """
    is_known, is_given = ~np.isnan(rows), ~np.isnan(donors)
    if is_known.all():
        return rows
    n_given = np.maximum(is_given.sum(axis=0), 1)
    mean = np.where(is_given, donors, 0).sum(axis=0) / n_given
    unit = np.sqrt(np.square(np.where(is_given, donors - mean, 0)).sum(axis=0) / n_given)
    unit[unit == 0] = 1
    known, place = is_known.astype(float), np.where(is_known, (rows - mean) / unit, 0)
    given, other = is_given.astype(float), np.where(is_given, (donors - mean) / unit, 0)
    distance = known @ (np.square(other) - 2 * given).T - 2 * place @ other.T
    distance += np.square(place) @ given.T
    distance[(1 - known) @ given.T == 0] = np.inf
    filled = np.where(is_known, rows, donors[distance.argmin(axis=1)])
    for column in np.flatnonzero(np.isnan(filled).any(axis=0)):
        missing, able = np.isnan(filled[:, column]), np.flatnonzero(is_given[:, column])
        if len(able):
            nearest = distance[missing][:, able].argmin(axis=1)
            filled[missing, column] = donors[able[nearest], column]
    return np.where(np.isnan(filled), fallback, filled)
