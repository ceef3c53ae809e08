"""Modes of the data that no Gibbs step leads between."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from typing import Any, final

import numpy as np
from scipy.cluster.vq import kmeans2

from skrbm.core.numerics import Array, dense
from skrbm.core.units.gaussian import SMALLEST_SHARE

MOST_MODES = 8
MANY_ROWS, MANY_ELEMENTS = 1000, 2**19  # that are looked at
FEW_ROWS = 5  # of a mode, in either half of them
EMPTY_STRETCH = 4.0  # standard deviations
N_TRIES, N_STEPS = 5, 20  # of k-means
ROUNDING = 1e-6  # relative
LARGEST = 1e6  # standard deviations from the mean
# Log-variances move the modes' log-odds by a tenth at most of what other parameters do.
CAUTION = 10


@final
@dataclass(frozen=True)
class Modes:
    """Groups of rows with nothing between them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Some rows of the data, in double precision.
    centers : ndarray of shape (n_modes, n_visible)
        Means of the groups; that of the largest comes first.
    shares : ndarray of shape (n_modes,)
        Of the rows.
    variance : ndarray of shape (n_visible,)
        Within the groups.
    """

    rows: Array
    centers: Array
    shares: Array
    variance: Array

    @property
    def origin(self) -> Array:
        """Where hidden units that lead to the modes begin: between them, or in the larger of two."""
        return np.asarray(self.centers[0] if len(self.centers) == 2 else self.centers.mean(axis=0))

    def kurtosis(self, variance: Array) -> float:
        r"""Tails that a column would have to have to be as sensitive to its log-variance as all are.

        A step of the log-variances moves the log-odds of two modes by their squared distances from
        the mean, in multiples of :math:`1 / 2 \sigma_i^2`, summed over the columns. With the largest
        eigenvalue :math:`\lambda` of these squares' covariance over the modes, that of a single
        column has the same effect on average at the kurtosis :math:`3 + 2 \lambda`.

        Parameters
        ----------
        variance : ndarray of shape (n_visible,)
            Of the data, in which the squares are measured.

        Returns
        -------
        kurtosis : float
            With `CAUTION` times that eigenvalue.
        """
        squares = (self.centers - self.shares @ self.centers) ** 2
        squares /= np.where(variance > 0, variance, np.inf)
        squares -= self.shares @ squares
        eigenvalue = np.linalg.norm(np.sqrt(self.shares)[:, None] * squares, ord=2) ** 2
        return float(3 + 2 * CAUTION * eigenvalue)


def find_modes(
    v: Any, mean: Array, variance: Array, most: int, rng: np.random.Generator
) -> Modes | None:
    """Groups of rows that are far apart, if there are any.

    The groups are those of k-means in one half of some rows, and have to be groups of the other
    half: on the line through the means of any two, `EMPTY_STRETCH` standard deviations of either
    have to be without a row. Of several numbers of groups that pass, the largest is right.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data; rows with NaN are left out.
    mean, variance : ndarray of shape (n_visible,)
        Of the columns.
    most : int
        Largest number of groups; more than `MOST_MODES` are not looked for.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    modes : Modes or None
        None where rows are few or have no such groups.
    """
    n_rows = min(v.shape[0], MANY_ROWS, MANY_ELEMENTS // v.shape[1])
    if n_rows < 4 * FEW_ROWS:
        return None
    rows = dense(v[rng.choice(v.shape[0], n_rows, replace=False)]).astype(np.float64)
    rows = rows[~np.isnan(rows).any(axis=1)]
    with np.errstate(over="ignore"):
        scaled = (rows - mean) / np.sqrt(np.where(variance > 0, variance, np.inf))
    if not (np.abs(scaled) < LARGEST).all():
        return None  # k-means crashes where squares are infinite
    half = len(rows) // 2
    for n_groups in range(min(most, MOST_MODES, half // FEW_ROWS), 1, -1):
        means = _k_means(scaled[:half], n_groups, rng)
        label = ((means**2).sum(axis=1) - 2 * scaled @ means.T).argmin(axis=1)
        if _are_apart(means, scaled, label, half):
            return _modes(rows, label, SMALLEST_SHARE * variance)
    return None


def _k_means(rows: Array, n_groups: int, rng: np.random.Generator) -> Array:
    """Means of the best of a few tries."""
    tries = []
    for _ in range(N_TRIES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of groups that are empty, and of rows that are alike
            means, label = kmeans2(rows, n_groups, N_STEPS, minit="++", seed=rng)
        tries.append((((rows - means[label]) ** 2).sum(), means))
    return np.asarray(min(tries, key=itemgetter(0))[1])


def _are_apart(means: Array, rows: Array, label: Array, half: int) -> bool:
    """Whether no row of the second half lies between two groups of the first."""
    within = ((rows[:half] - means[label[:half]]) ** 2).mean(axis=0)
    groups = [rows[half:][label[half:] == k] for k in range(len(means))]
    is_told_by_value = within[rows.any(axis=0)] == 0
    if min(map(len, groups)) < FEW_ROWS or is_told_by_value.any():
        return False
    within = np.where(within > 0, within, 1)
    for one, other in combinations(range(len(means)), 2):
        line = (means[one] - means[other]) / within
        above, below = groups[one] @ line, groups[other] @ line
        narrower, wider = sorted((above.std(), below.std()))
        gap = above.min() - below.max()
        if gap < EMPTY_STRETCH * wider or narrower < ROUNDING * gap:  # or rows that are all alike
            return False
    return True


def _modes(rows: Array, label: Array, least_variance: Array) -> Modes:
    counts = np.bincount(label)
    order = np.argsort(-counts, kind="stable")
    centers = np.stack([rows[label == k].mean(axis=0) for k in order])
    within = np.square(rows - centers[np.argsort(order)[label]]).mean(axis=0)
    return Modes(rows, centers, counts[order] / len(rows), np.maximum(within, least_variance))
