"""Choice of rows that are far from each other, and partition into groups that are far apart.

Farthest-point traversal chooses one center after the other. The next center is the row with the
largest distance from its nearest earlier center [1]_.

References
----------
.. [1] Gonzalez (1985), "Clustering to minimize the maximum intercluster distance", Theoretical
   Computer Science 38, 293-306. :doi:`10.1016/0304-3975(85)90224-5`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.numerics import Array, spread_rows

# Largest numbers of rows and of array elements that are searched, and number of random projections:
# a search takes 30 ms.
MAX_SEARCHED_ROWS, MAX_SEARCHED_ELEMENTS, N_PROJECTIONS = 2**14, 2**20, 32
SAME_PLACE = 1e-10  # squared distance, relative to the largest, up to which rows count as equal
# Smallest distance between group centers, in multiples of the largest distance of a row from its
# center, and largest number of groups. The multiple is 13 for two groups 40 standard deviations
# apart in 12 columns, and 2 for Cauchy rows (tests/core/training/start/test_clusters.py).
MIN_FAR_DISTANCE, MAX_FAR_GROUPS = 4.0, 16


def searched_rows(rows: Any, n_columns: int) -> Any:
    """Select at most `MAX_SEARCHED_ROWS` evenly spread rows, or fewer if there are many columns.

    The selected rows have at most `MAX_SEARCHED_ELEMENTS` elements, but there is at least one row.
    """
    return spread_rows(rows, max(1, min(MAX_SEARCHED_ROWS, MAX_SEARCHED_ELEMENTS // n_columns)))


def projected(rows: Array, unit: Array | float = 1.0) -> Array:
    """Divide the columns by `unit`, and project the rows if there are many columns.

    If there are more than `N_PROJECTIONS` columns, the rows are projected on `N_PROJECTIONS` random
    directions, which are the same in every call for the same number of columns. The projections
    roughly preserve distances up to a common factor.
    """
    if rows.shape[1] <= N_PROJECTIONS:
        return rows / unit
    directions = np.random.default_rng(0).standard_normal((rows.shape[1], N_PROJECTIONS))
    return rows @ (directions.T / unit).T


def far_rows(v: Array, span: Array, n_rows: int) -> Array:
    """Choose rows that are far from each other, by farthest-point traversal.

    The mean of the rows counts as the first center, but is not returned. Distances are computed
    between the projections of the rows by `projected`.

    Parameters
    ----------
    v : ndarray of shape (n_samples, n_visible)
        Rows to choose from.
    span : ndarray of shape (n_visible,)
        Difference between the upper and the lower bound of each column, used as the unit of
        distance in this column. If it is infinite, the standard deviation of the column is used
        instead.
    n_rows : int
        Maximum number of rows to choose.

    Returns
    -------
    rows : ndarray of shape (n_found, n_visible)
        Chosen rows, at least one, which differ from each other.
    """
    is_bounded = np.isfinite(span)
    unit = np.where(is_bounded, span, 1.0)
    if not is_bounded.all():
        deviation = v.std(axis=0, dtype=np.float64)
        unit = np.where(is_bounded | (deviation == 0), unit, deviation)
    mean = v.mean(axis=0, dtype=np.float64)
    place = projected(np.subtract(v, mean, dtype=np.float64), unit)
    square, chosen = np.square(place).sum(axis=1), list[int]()
    distance = square.copy()  # squared, from the nearest chosen row, initially from the mean
    while len(chosen) < n_rows and distance.max() > SAME_PLACE * square.max():
        last = int(distance.argmax())
        chosen.append(last)
        np.minimum(distance, square + square[last] - 2 * (place @ place[last]), out=distance)
    return v[chosen or [0]]


def far_groups(place: Array) -> tuple[Array, float]:
    """Partition rows into groups that are far apart relative to their radii.

    The centers of the groups are the first centers of a farthest-point traversal. Each row belongs
    to the group with the nearest center. The number of groups is the largest number from 2 to
    `MAX_FAR_GROUPS` for which the returned `distance` is at least `MIN_FAR_DISTANCE`. If there is
    no such number, the number with the largest `distance` is chosen.

    Parameters
    ----------
    place : ndarray of shape (n_samples, n_directions)
        At least two rows, from `projected`.

    Returns
    -------
    label : ndarray of int of shape (n_samples,)
        Group of each row, counted from zero.
    distance : float
        Smallest distance between two centers, divided by the largest distance between a row and the
        center of its group. It is at most 1e5. If all rows are equal, it is 0, or at most about 1
        if rounding errors occur.
    """
    square, from_centers = np.square(place).sum(axis=1), list[Array]()
    apart, radius = np.empty((2, MAX_FAR_GROUPS))  # squared, by the number of centers
    nearest = np.square(place - place.mean(axis=0)).sum(axis=1)
    for k in range(MAX_FAR_GROUPS):
        last = nearest.argmax()
        apart[k] = nearest[last] if k else np.inf
        from_centers.append(square + square[last] - 2 * (place @ place[last]))
        nearest = np.minimum(nearest, from_centers[k]) if k else from_centers[0]
        radius[k] = nearest.max()
    apart = np.minimum.accumulate(apart)[1:]
    ratio = np.zeros_like(apart)
    np.divide(apart, np.maximum(radius[1:], SAME_PLACE * apart), out=ratio, where=apart > 0)
    is_far = ratio >= MIN_FAR_DISTANCE**2
    chosen = np.flatnonzero(is_far)[-1] if is_far.any() else ratio.argmax()
    return np.argmin(from_centers[: chosen + 2], axis=0), float(np.sqrt(ratio[chosen]))
