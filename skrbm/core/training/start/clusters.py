"""Clusters of rows with wide gaps between them, which no Gibbs step crosses."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.cluster.vq import kmeans2, vq
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from skrbm.core.numerics import Array, dense
from skrbm.core.training.start.far_rows import (
    MIN_FAR_DISTANCE,
    far_groups,
    projected,
    searched_rows,
)
from skrbm.core.training.start.nearest_rows import with_nearest_values
from skrbm.core.units.support import SMALLEST_SHARE

MAX_CLUSTERS = 8  # more are no modes that a few hidden units can lead to
MAX_CLUSTERED_ROWS, MAX_CLUSTERED_ELEMENTS = 1000, 2**19  # rows and numbers: 55 ms for MNIST
MIN_CLUSTER_ROWS = 5  # rows of a cluster in either half
N_PIECES, N_KMEANS_STEPS = 16, 20  # pieces of k-means that are then joined
MIN_GAP = 4.0  # standard deviations that rows leave empty between two clusters
MIN_TIE_SHARE = 0.5  # share of equal neighbours among a column's sorted values: few values
# Columns of few values, all but so many of which a gap must span: flips of bits, steps of numbers.
MIN_FLIPS, MIN_VALUE_GAPS = 3.0, 1.25
RELATIVE_ROUNDING = 1e-6  # of deviations
MAX_DEVIATIONS = 1e6  # standard deviations from the mean, beyond which k-means crashes
# Steps of log-variances move the log-odds of modes by at most a tenth of other parameters' effect.
LOG_VARIANCE_SAFETY = 10
# Rows of a rare group, the greatest number in `MAX_CLUSTERED_ROWS`: k-means finds larger groups.
MIN_RARE_ROWS, MAX_RARE_ROWS = 2, 4 * MIN_CLUSTER_ROWS
# Rescalings of the columns by their noise around far groups, as long as these come out farther apart.
N_RESCALINGS, MIN_GROWTH = 3, 1.2
KMEANS_LOCK = threading.Lock()  # filters of warnings are those of all threads


@final
@dataclass(frozen=True)
class Clusters:
    """Groups of rows with nothing between them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Some rows of the data, in double precision.
    weights : ndarray of shape (n_samples,)
        Shares of the data that they stand for, of a sum of one.
    centers : ndarray of shape (n_modes, n_visible)
        Means of the groups; that of the largest comes first.
    shares : ndarray of shape (n_modes,)
        Of the rows.
    variance : ndarray of shape (n_visible,)
        Within the groups.
    """

    rows: Array
    weights: Array
    centers: Array
    shares: Array
    variance: Array

    @property
    def origin(self) -> Array:
        """Mean of the cluster centres; with two clusters, the centre of the larger."""
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
            With `LOG_VARIANCE_SAFETY` times that eigenvalue.
        """
        squares = (self.centers - self.shares @ self.centers) ** 2
        squares /= np.where(variance > 0, variance, np.inf)
        squares -= self.shares @ squares
        eigenvalue = np.linalg.norm(np.sqrt(self.shares)[:, None] * squares, ord=2) ** 2
        return float(3 + 2 * LOG_VARIANCE_SAFETY * eigenvalue)


def find_clusters(
    v: Any,
    numbers: Array | None,
    mean: Array,
    variance: Array,
    step: float,
    most: int,
    rng: np.random.Generator,
) -> Clusters | None:
    """Groups of rows that are far apart, if there are any.

    Rare groups of numbers are sought among all rows. k-means then cuts half of some other rows into
    many pieces. Pieces that `separated` finds no gap between in the other half are one group, and so
    on, until there is a gap between any two groups.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data; NaN is a missing value.
    numbers : ndarray of shape (n_own,) or None
        Of the rows to look at; None for all.
    mean, variance : ndarray of shape (n_visible,)
        Of the columns.
    step : float
        Distance of the two values of every column; 0 for numbers.
    most : int
        Largest number of groups; more than `MAX_CLUSTERS` are no modes either.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    modes : Clusters or None
        None where rows are few, have no such groups, or have them by the value of one number.
    """
    numbers = np.arange(v.shape[0]) if numbers is None else numbers
    deviation = np.sqrt(np.where(variance > 0, variance, np.inf))
    unit = step or deviation
    far, share = ([], 0.0) if step else far_rows_by_group(v, numbers, mean, deviation)
    common = np.setdiff1d(numbers, np.concatenate(far)) if far else numbers
    rare = [group for group in far if len(group) >= MIN_RARE_ROWS]
    n_rows = min(len(common), MAX_CLUSTERED_ROWS, MAX_CLUSTERED_ELEMENTS // v.shape[1])
    rows = dense(v[rng.choice(common, n_rows, replace=False)]).astype(np.float64)
    with np.errstate(over="ignore"):
        scaled = (rows - mean) / unit
    # k-means crashes where squares are infinite.
    if n_rows // 2 < 2 * MIN_CLUSTER_ROWS or (np.abs(scaled) >= MAX_DEVIATIONS).any():
        return None
    rows = with_nearest_values(rows, rows, mean)
    label = _joined_pieces((rows - mean) / unit, step, rng)
    weights = np.full(n_rows, 1.0 / n_rows)
    if rare:
        sizes = [*map(len, rare)]
        weights = np.repeat([(1 - share * sum(sizes)) / n_rows, share], [n_rows, sum(sizes)])
        label = np.append(label, label.max() + 1 + np.repeat(np.arange(len(rare)), sizes))
        rows = np.concatenate([rows, dense(v[np.concatenate(rare)])])
    shares = np.bincount(label, weights)
    if not 1 < len(shares) <= min(most, MAX_CLUSTERS):
        return None
    order = np.argsort(-shares, kind="stable")
    is_of = label == order[:, None]
    centers = (is_of * weights) @ rows / shares[order, None]
    within = weights @ np.square(rows - centers[is_of.argmax(axis=0)])
    is_told_by_value = (variance > 0) & (within <= RELATIVE_ROUNDING**2 * variance)
    if not step and is_told_by_value.any():
        return None
    within = np.maximum(within, SMALLEST_SHARE * variance)
    return Clusters(rows, weights, centers, shares[order], within)


def far_rows_by_group(
    v: Any, numbers: Array, mean: Array, unit: Array
) -> tuple[list[Array], float]:
    """Few rows that are far from all others, alone or in small groups.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data. Rows with a missing value, NaN, belong to no group.
    numbers : ndarray of shape (n_own,)
        Of the rows to look at, evenly spaced ones if they are many.
    mean, unit : ndarray of shape (n_visible,)
        Of the columns; the unit of distance is infinite for constant ones.

    Returns
    -------
    groups : list of ndarray of int
        Numbers of the rows in each.
    share : float
        Of all rows, that each of them stands for.
    """
    searched = searched_rows(numbers, v.shape[1])
    with np.errstate(over="ignore"):
        scaled = (dense(v[searched]).astype(np.float64) - mean) / unit
    usable = (np.abs(scaled) < MAX_DEVIATIONS).all(axis=1)  # not NaN either
    searched, scaled = searched[usable], scaled[usable]
    if len(scaled) < 2:
        return [], 0.0
    last = 0.0
    for _ in range(N_RESCALINGS):
        label, distance = far_groups(projected(scaled))
        if distance < MIN_GROWTH * last:
            break
        # Groups that are near in standard deviations may be far beside their noise.
        last, is_of = distance, label == np.arange(label.max() + 1)[:, None]
        centers = is_of @ scaled / is_of.sum(axis=1, keepdims=True)
        scaled /= np.sqrt(_positive(np.square(scaled - centers[label]).mean(axis=0)))
    if distance < MIN_FAR_DISTANCE:
        return [], 0.0
    n_rows = np.bincount(label)
    is_rare = n_rows * min(len(numbers), MAX_CLUSTERED_ROWS) < MAX_RARE_ROWS * len(searched)
    is_rare[n_rows.argmax()] = False
    return [searched[label == k] for k in np.flatnonzero(is_rare)], 1 / len(searched)


def _joined_pieces(scaled: Array, step: float, rng: np.random.Generator) -> Array:
    """Group of each row, of those that have a gap between any two."""
    half = len(scaled) // 2
    means, within = _pieces(scaled[:half], rng)
    if not step:  # groups that are near in standard deviations may be far beside their noise
        scaled /= np.sqrt(_positive(within))
        means, _ = _pieces(scaled[:half], rng)
    bridge = np.full(scaled.shape[1], MIN_FLIPS) if step else MIN_VALUE_GAPS * _own_gaps(scaled)
    label = np.unique(vq(scaled, means)[0], return_inverse=True)[1]
    while not (is_apart := separated(scaled, label, step, bridge)).all():
        label = connected_components(~is_apart)[1][label]
    return label


def separated(rows: Array, label: Array, step: float, bridge: Array) -> Array:
    """Pairs of groups that have a gap between them.

    On the line through the means of two groups in the first half of the rows, those of the second
    half have to leave `MIN_GAP` standard deviations of either empty.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Around a mean of zero.
    label : ndarray of int of shape (n_samples,)
        Group of each row, from zero on.
    step : float
        As for `find_clusters`.
    bridge : ndarray of shape (n_visible,)
        What each column changes by: a gap is wider than the line is long for any one of them.

    Returns
    -------
    is_apart : ndarray of bool of shape (n_groups, n_groups)
        True on the diagonal. A group of few rows belongs to the nearest.
    """
    half, groups = len(rows) // 2, np.arange(label.max() + 1)
    is_of = label == groups[:, None]
    first, second = is_of[:, :half], rows[half:]
    means = first @ rows[:half] / np.maximum(first.sum(axis=1), 1)[:, None]
    within = np.square(rows[:half] - means[label[:half]]).mean(axis=0)
    lines = means if step else means / _positive(within)
    place = second @ lines.T
    reach, spread, bridged = np.zeros((3, len(groups), len(groups)))
    for k in groups[is_of[:, half:].any(axis=1)]:
        beyond = place[is_of[k, half:]]
        beyond = beyond[:, [k]] - beyond
        reach[k], spread[k] = beyond.min(axis=0), beyond.std(axis=0)
        bridged[k] = (np.abs(lines[k] - lines) * bridge).max(axis=1)
    gap = reach + reach.T
    is_apart = (gap >= MIN_GAP * np.maximum(spread, spread.T)) & (gap >= bridged)
    is_small = np.minimum(first.sum(axis=1), is_of[:, half:].sum(axis=1)) < MIN_CLUSTER_ROWS
    nearest = (cdist(means, means) + np.diag(np.full(len(groups), np.inf))).argmin(axis=1)
    is_apart[is_small] = is_apart[:, is_small] = True
    is_apart[groups[is_small], nearest[is_small]] = False
    is_apart |= np.eye(len(groups), dtype=bool)
    return np.asarray(is_apart & is_apart.T)


def _own_gaps(rows: Array) -> Array:
    """Widest gap between the values of each column of few values; zero for other columns."""
    steps = np.diff(np.sort(rows, axis=0), axis=0)
    has_few_values = (steps == 0).mean(axis=0) > MIN_TIE_SHARE
    return np.asarray(np.where(has_few_values, steps.max(axis=0), 0))


def _pieces(rows: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Means of many groups of k-means, and the variance of each column within them."""
    with KMEANS_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of groups that are empty, and of rows that are alike
        n_pieces = min(N_PIECES, len(rows) // MIN_CLUSTER_ROWS)
        means, label = kmeans2(rows, n_pieces, N_KMEANS_STEPS, minit="++", seed=rng)
    return means, np.square(rows - means[label]).mean(axis=0)


def _positive(variance: Array) -> Array:
    """Variances to divide by: one in place of none."""
    return np.where(variance > RELATIVE_ROUNDING**2, variance, 1.0)
