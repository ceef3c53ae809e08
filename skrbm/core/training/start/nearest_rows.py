"""Nearest-neighbor imputation, which initializes missing values."""

from __future__ import annotations

import numpy as np

from skrbm.core.numerics import Array


def with_nearest_values(rows: Array, donors: Array, fallback: Array) -> Array:
    """Impute missing values by the values of the nearest rows.

    The missing values of a row are taken from the nearest of the donors that have at least one of
    these values. Values that are missing in this donor, too, are taken from the nearest donors that
    have them. A single donor is preferred because a row with values from two clusters would lie
    between the clusters.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Rows to impute; NaN is a missing value.
    donors : ndarray of shape (n_donors, n_visible)
        Rows from which values are taken; may be `rows` itself. Distances are computed from the
        observed values of a row, in units of the standard deviations of the donors' columns.
        Differences in columns in which all donors are equal are ignored. In any column, a value
        that is missing in the donor adds 2 to the squared distance: the mean squared difference of
        two random values of a column that varies.
    fallback : ndarray of shape (n_visible,) or (n_samples, n_visible)
        Values for columns that are missing in all donors.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_visible)
        Imputed copy of `rows`, or `rows` itself if no value is missing.
    """
    is_observed, is_given = ~np.isnan(rows), ~np.isnan(donors)
    if is_observed.all():
        return rows
    n_given = np.maximum(is_given.sum(axis=0), 1)
    # With this origin, the deviations in a constant column are zero in spite of rounding.
    origin = np.nan_to_num(donors[is_given.argmax(axis=0), np.arange(donors.shape[1])])
    mean = origin + np.where(is_given, donors - origin, 0).sum(axis=0) / n_given
    unit = np.sqrt(np.square(np.where(is_given, donors - mean, 0)).sum(axis=0) / n_given)
    unit[unit == 0] = np.inf
    observed, place = is_observed.astype(float), np.where(is_observed, (rows - mean) / unit, 0)
    given, other = is_given.astype(float), np.where(is_given, (donors - mean) / unit, 0)
    distance = observed @ (np.square(other) - 2 * given).T - 2 * place @ other.T
    distance += np.square(place) @ given.T
    distance[(1 - observed) @ given.T == 0] = np.inf
    filled = np.where(is_observed, rows, donors[distance.argmin(axis=1)])
    for column in np.flatnonzero(np.isnan(filled).any(axis=0)):
        missing, able = np.isnan(filled[:, column]), np.flatnonzero(is_given[:, column])
        if len(able):
            nearest = distance[missing][:, able].argmin(axis=1)
            filled[missing, column] = donors[able[nearest], column]
    return np.where(np.isnan(filled), fallback, filled)
