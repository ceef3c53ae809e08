"""Clusters of rows separated by wide gaps, which Gibbs sampling rarely crosses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.cluster.vq import kmeans2, vq
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from skrbm.core.numerics import Array, dense
from skrbm.core.parallel import ForkSafeLock
from skrbm.core.training.start.far_rows import (
    MIN_FAR_DISTANCE,
    far_groups,
    projected,
    searched_rows,
)
from skrbm.core.training.start.nearest_rows import with_nearest_values
from skrbm.core.units.support import SMALLEST_SHARE

MAX_CLUSTERS = 8  # largest number of clusters that pretraining represents by hidden units
MAX_CLUSTERED_ROWS, MAX_CLUSTERED_ELEMENTS = 1000, 2**19  # of the subsample; 55 ms for MNIST
MIN_CLUSTER_ROWS = 5  # rows of a cluster in each half of the subsample
N_FINE_CLUSTERS, N_KMEANS_STEPS = 16, 20  # largest number of k-means clusters, before merging
MIN_GAP = 4.0  # width of the gap between two clusters, in standard deviations
MIN_TIE_SHARE = 0.5  # share of ties in a sorted column above which it has few distinct values
# Smallest gap, in multiples of the largest step of any single column: for binary columns, and for
# numeric columns with few distinct values.
MIN_FLIPS, MIN_VALUE_GAPS = 3.0, 1.25
RELATIVE_ROUNDING = 1e-6  # relative rounding error of deviations from the mean
MAX_DEVIATIONS = 1e6  # standard deviations from the mean; k-means crashes for extreme values
# Smallest number of rows of a rare group, and largest number per `MAX_CLUSTERED_ROWS` rows of data:
# k-means finds larger groups.
MIN_RARE_ROWS, MAX_RARE_ROWS = 2, 4 * MIN_CLUSTER_ROWS
# Largest number of rescalings of the columns by the noise within far groups, and smallest factor of
# growth of the distance between groups that leads to another rescaling.
N_RESCALINGS, MIN_GROWTH = 3, 1.2
KMEANS_LOCK = ForkSafeLock()  # warning filters are shared by all threads


@final
@dataclass(frozen=True)
class Clusters:
    """Clusters of rows separated by gaps.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Random subsample of the data, followed by the rows of rare clusters, in double precision.
        Missing values are imputed by `with_nearest_values`.
    weights : ndarray of shape (n_samples,)
        Share of the data that each row represents. These shares sum to one.
    centers : ndarray of shape (n_modes, n_visible)
        Means of the clusters, ordered from the largest cluster to the smallest.
    shares : ndarray of shape (n_modes,)
        Share of the data in each cluster.
    variance : ndarray of shape (n_visible,)
        Variance of each column within the clusters, but at least `SMALLEST_SHARE` of its variance
        in the data.
    """

    rows: Array
    weights: Array
    centers: Array
    shares: Array
    variance: Array

    @property
    def origin(self) -> Array:
        """Mean of the cluster centers or, if there are two clusters, center of the larger one.

        The result has shape (n_visible,).
        """
        return self.centers[0] if len(self.centers) == 2 else self.centers.mean(axis=0)

    def kurtosis(self, variance: Array) -> float:
        r"""Lower bound on the kurtosis, which limits the effect of log-variances on the modes.

        Let :math:`d_{ki}` be the squared distance of mode :math:`k` from the mean in column
        :math:`i`, divided by the variance of the data in this column. Steps :math:`\delta_i` of the
        log-variances change the log-odds of two modes :math:`k` and :math:`l` in proportion to
        :math:`\sum_i \delta_i (d_{ki} - d_{li})`. Let :math:`\lambda` be the largest eigenvalue of
        the covariance matrix of :math:`d_{ki}` over the modes. It is the largest variance of
        :math:`\sum_i \delta_i d_{ki}` over the modes for steps of unit norm. In `Gaussian.metric`,
        a kurtosis of :math:`3 + 2 \lambda` makes the steps of a log-variance smaller by a factor of
        at least :math:`1 + \lambda`.

        Parameters
        ----------
        variance : ndarray of shape (n_visible,)
            Variance of the data.

        Returns
        -------
        kurtosis : float
            Lower bound on the kurtosis of every column.
        """
        squares = (self.centers - self.shares @ self.centers) ** 2
        squares /= np.where(variance > 0, variance, np.inf)
        squares -= self.shares @ squares
        eigenvalue = np.linalg.norm(np.sqrt(self.shares)[:, None] * squares, ord=2) ** 2
        return float(3 + 2 * eigenvalue)


def find_clusters(
    v: Any,
    indices: Array | None,
    mean: Array,
    variance: Array,
    step: float,
    max_clusters: int,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> Clusters | None:
    """Find clusters of rows that are separated by wide gaps.

    Numeric data are first searched for rare clusters (see `far_rows_by_group`). A subsample of the
    other rows is then drawn, and k-means partitions its first half into at most `N_FINE_CLUSTERS`
    clusters. In the second half, pairs of clusters are tested for a gap (see `separated`). Clusters
    without a gap between them are merged until all clusters are separated.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data; NaN is a missing value.
    indices : ndarray of shape (n_rows,) or None
        Indices of the rows to search. If None, all rows are searched.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of the columns of the data.
    step : float
        Distance between the two values of every column; 0 for numeric columns.
    max_clusters : int
        Maximum number of clusters. Values above `MAX_CLUSTERS` count as `MAX_CLUSTERS`.
    rng : numpy.random.Generator
        Source of random numbers.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of all rows, which define the shares, centers and variances of the
        clusters, but not their boundaries. If None, all rows have equal weights.

    Returns
    -------
    modes : Clusters or None
        Clusters. None if the subsample has fewer than four times `MIN_CLUSTER_ROWS` rows, or if one
        of its values is too far from the mean of the column. Distances of at least `MAX_DEVIATIONS`
        standard deviations are too large, or, if `step` is not 0, distances of at least
        `MAX_DEVIATIONS` times `step`. None also if there are fewer than two clusters, if there are
        more than the maximum number, or if a numeric column varies in the data but is constant
        within each cluster.
    """
    indices = np.arange(v.shape[0]) if indices is None else indices
    deviation = np.sqrt(np.where(variance > 0, variance, np.inf))
    unit = step or deviation
    weight_of = np.ones(v.shape[0]) if sample_weight is None else sample_weight
    far, share = ([], 0.0) if step else far_rows_by_group(v, indices, mean, deviation, weight_of)
    common = np.setdiff1d(indices, np.concatenate(far)) if far else indices
    rare = [group for group in far if len(group) >= MIN_RARE_ROWS]
    n_rows = min(len(common), MAX_CLUSTERED_ROWS, MAX_CLUSTERED_ELEMENTS // v.shape[1])
    chosen = rng.choice(common, n_rows, replace=False)
    rows = dense(v[chosen]).astype(np.float64)
    with np.errstate(over="ignore"):
        scaled = (rows - mean) / unit
    # k-means crashes on infinite squares.
    if n_rows // 2 < 2 * MIN_CLUSTER_ROWS or (np.abs(scaled) >= MAX_DEVIATIONS).any():
        return None
    rows = with_nearest_values(rows, rows, mean)
    label = _merged_clusters((rows - mean) / unit, step, rng)
    weights = weight_of[chosen] / weight_of[chosen].sum()
    if rare:
        added = np.concatenate(rare)
        shares = share * weight_of[added]
        weights = np.append((1 - shares.sum()) * weights, shares)
        label_of_rare = label.max() + 1 + np.arange(len(rare))
        label = np.append(label, np.repeat(label_of_rare, [*map(len, rare)]))
        rows = np.concatenate([rows, dense(v[added]).astype(np.float64)])
    shares = np.bincount(label, weights)
    if not 1 < len(shares) <= min(max_clusters, MAX_CLUSTERS):
        return None
    order = np.argsort(-shares, kind="stable")
    is_of = label == order[:, None]
    centers = (is_of * weights) @ rows / shares[order, None]
    within = weights @ np.square(rows - centers[is_of.argmax(axis=0)])
    is_constant_within = (variance > 0) & (within <= RELATIVE_ROUNDING**2 * variance)
    if not step and is_constant_within.any():
        return None
    within = np.where(variance > 0, np.maximum(within, SMALLEST_SHARE * variance), 0.0)
    return Clusters(rows, weights, centers, shares[order], within)


def far_rows_by_group(
    v: Any, indices: Array, mean: Array, unit: Array, sample_weight: Array
) -> tuple[list[Array], float]:
    """Find groups of one or more rare rows that are far from all other rows.

    A group is rare if it is not the largest group and if fewer than `MAX_RARE_ROWS` of its rows are
    expected in a random subsample. The subsample has `MAX_CLUSTERED_ROWS` rows, or all rows if
    there are fewer.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data. Rows with missing values (NaN), and rows with values that are `MAX_DEVIATIONS` units
        or more from the mean, do not belong to any group.
    indices : ndarray of shape (n_rows,)
        Indices of the rows to search. If there are more than `searched_rows` allows, only evenly
        spaced ones are searched.
    mean, unit : ndarray of shape (n_visible,)
        Mean of each column, and the unit in which the first search measures distances along this
        column. The unit is infinite for constant columns. Later searches, of which there are at
        most `N_RESCALINGS` - 1, measure distances in standard deviations within the groups that
        the previous search found.
    sample_weight : ndarray of shape (n_samples,)
        Positive weights of all rows, which define only `share`.

    Returns
    -------
    groups : list of ndarray of int
        Row indices of each rare group.
    share : float
        Share of the data that a row of a group represents, divided by the weight of the row. It is
        0 if no groups of rows are far from each other.
    """
    searched = searched_rows(indices, v.shape[1])
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
        # Groups may be close in standard deviations of the data, but far relative to their noise.
        last, is_of = distance, label == np.arange(label.max() + 1)[:, None]
        centers = is_of @ scaled / is_of.sum(axis=1, keepdims=True)
        scaled /= np.sqrt(_positive(np.square(scaled - centers[label]).mean(axis=0)))
    if distance < MIN_FAR_DISTANCE:
        return [], 0.0
    n_rows = np.bincount(label)
    is_rare = n_rows * min(len(indices), MAX_CLUSTERED_ROWS) < MAX_RARE_ROWS * len(searched)
    is_rare[n_rows.argmax()] = False
    groups = [searched[label == k] for k in np.flatnonzero(is_rare)]
    return groups, float(1 / sample_weight[searched].sum())


def _merged_clusters(scaled: Array, step: float, rng: np.random.Generator) -> Array:
    """Cluster label of each row, after clusters without a gap between them are merged."""
    half = len(scaled) // 2
    means, within = _fine_clusters(scaled[:half], rng)
    if not step:  # clusters may be close in standard deviations, but far relative to their noise
        scaled /= np.sqrt(_positive(within))
        means, _ = _fine_clusters(scaled[:half], rng)
    min_change = (
        np.full(scaled.shape[1], MIN_FLIPS) if step else MIN_VALUE_GAPS * _value_gaps(scaled)
    )
    label = np.unique(vq(scaled, means)[0], return_inverse=True)[1]
    while not (is_apart := separated(scaled, label, step, min_change)).all():
        label = connected_components(~is_apart)[1][label]
    return label


def separated(rows: Array, label: Array, step: float, min_change: Array) -> Array:
    """Mask of the pairs of clusters that are separated by a gap.

    For each pair of clusters, the means of both clusters are computed from the first half of the
    rows. The second half is projected on the line through these means, after numeric columns have
    been scaled to unit variance within the clusters. The gap between the projected clusters must be
    at least `MIN_GAP` times the larger of their standard deviations.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_visible)
        Rows minus the column means of the data. Each column may be divided by a constant.
    label : ndarray of int of shape (n_samples,)
        Cluster of each row, counted from zero.
    step : float
        Distance between the two values of every column; 0 for numeric columns.
    min_change : ndarray of shape (n_visible,)
        Smallest change of each column that counts as a gap. The gap between two clusters must be at
        least as wide as the projection of each of these changes.

    Returns
    -------
    is_apart : ndarray of bool of shape (n_clusters, n_clusters)
        Symmetric mask, True on the diagonal. A cluster with fewer than `MIN_CLUSTER_ROWS` rows in
        one half counts as not separated from its nearest cluster. All other pairs with such a
        cluster count as separated.
    """
    half, groups = len(rows) // 2, np.arange(label.max() + 1)
    is_of = label == groups[:, None]
    first, second = is_of[:, :half], rows[half:]
    means = first @ rows[:half] / np.maximum(first.sum(axis=1), 1)[:, None]
    within = np.square(rows[:half] - means[label[:half]]).mean(axis=0)
    lines = means if step else means / _positive(within)
    projection = second @ lines.T
    margin, spread, min_gap = np.zeros((3, len(groups), len(groups)))
    for k in groups[is_of[:, half:].any(axis=1)]:
        difference = projection[is_of[k, half:]]
        difference = difference[:, [k]] - difference
        margin[k], spread[k] = difference.min(axis=0), difference.std(axis=0)
        min_gap[k] = (np.abs(lines[k] - lines) * min_change).max(axis=1)
    gap = margin + margin.T
    is_apart = (gap >= MIN_GAP * np.maximum(spread, spread.T)) & (gap >= min_gap)
    is_small = np.minimum(first.sum(axis=1), is_of[:, half:].sum(axis=1)) < MIN_CLUSTER_ROWS
    nearest = (cdist(means, means) + np.diag(np.full(len(groups), np.inf))).argmin(axis=1)
    is_apart[is_small] = is_apart[:, is_small] = True
    is_apart[groups[is_small], nearest[is_small]] = False
    is_apart |= np.eye(len(groups), dtype=bool)
    return is_apart & is_apart.T


def _value_gaps(rows: Array) -> Array:
    """Widest gap between values of each column with few distinct values; zero for other columns.

    A column has few distinct values if the share of ties between successive sorted values exceeds
    `MIN_TIE_SHARE`.
    """
    steps = np.diff(np.sort(rows, axis=0), axis=0)
    has_few_values = (steps == 0).mean(axis=0) > MIN_TIE_SHARE
    return np.where(has_few_values, steps.max(axis=0), 0)


def _fine_clusters(rows: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Means of at most `N_FINE_CLUSTERS` k-means clusters, and variances of columns within them."""
    with KMEANS_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of empty clusters and of equal rows
        n_clusters = min(N_FINE_CLUSTERS, len(rows) // MIN_CLUSTER_ROWS)
        means, label = kmeans2(rows, n_clusters, N_KMEANS_STEPS, minit="++", seed=rng)
    return means, np.square(rows - means[label]).mean(axis=0)


def _positive(variance: Array) -> Array:
    """Variances, with values that are zero up to rounding errors replaced by one."""
    return np.where(variance > RELATIVE_ROUNDING**2, variance, 1.0)
