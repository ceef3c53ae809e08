"""Column statistics, computed block by block to avoid a copy of all data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from skrbm.core.numerics import Array, dense, is_sparse, spread_rows

MOMENT_BLOCK_ELEMENTS = 2**19  # elements that are cast to double precision at a time: 4 MB
# Relative difference of values or means up to which they count as equal. The values of a column this
# narrow are mostly rounding errors: its samples are too, and estimates of log Z would be off by up to
# five of their errors. At twice this width, they are not.
EQUAL_VALUES = 64 * np.finfo(np.float64).eps
# Largest numbers of rows, and of their elements, from which correlations are estimated: 27 ms for
# 1,000 columns.
MAX_CORRELATED_ROWS, MAX_CORRELATED_ELEMENTS = 512, 2**19


def column_statistics(
    v: Any, sample_weight: Array | None = None, *, block_elements: int = MOMENT_BLOCK_ELEMENTS
) -> tuple[Array, Array]:
    """Compute the mean and variance of every column in double precision, from blocks of the data.

    Parameters
    ----------
    v : {ndarray, sparse matrix in canonical CSR format} of shape (n_samples, n_visible)
        Data of any numeric type. In an array, NaN is a missing value.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of the rows. If None, all rows have equal weights.
    block_elements : int, default=MOMENT_BLOCK_ELEMENTS
        Largest number of elements that are processed in double precision at a time. At least one
        row of an array is processed.

    Returns
    -------
    mean : ndarray of shape (n_visible,)
        Mean of the observed values of each column. It is NaN for a column without observed values.
    variance : ndarray of shape (n_visible,)
        Variance of the observed values of each column. It is exactly zero if the column is constant
        up to rounding errors or has no observed values, and positive otherwise.
    """
    if is_sparse(v):
        mean, variance = _sparse_statistics(v, sample_weight, block_elements)
        low, high = (extreme.toarray().ravel() for extreme in (v.min(axis=0), v.max(axis=0)))
    else:
        statistics = (
            _block_statistics(*block) for block in _blocks(v, sample_weight, block_elements)
        )
        n_observed, mean, variance, low, high = reduce(_merged_blocks, statistics)
        mean = np.where(n_observed > 0, mean, np.nan)
    low, high = low.astype(np.float64), high.astype(np.float64)
    constant = ~(high > low + EQUAL_VALUES * np.maximum(np.abs(low), np.abs(high)))
    # The exact mean of a constant column stays constant if other rows are added.
    mean = np.where(constant & ~np.isnan(mean), low, mean)
    return mean, np.where(constant, 0.0, np.maximum(variance, np.finfo(np.float64).tiny))


def observed_shares(v: Any, sample_weight: Array | None = None) -> Array:
    """Share of the observed values of each column in the total weight of the rows.

    The parameters are those of `column_statistics`. The result has shape (n_visible,).
    """
    blocks = _blocks(v, sample_weight, MOMENT_BLOCK_ELEMENTS)
    totals = [(weight @ ~np.isnan(rows), weight.sum()) for rows, weight in blocks]
    observed, total = map(sum, zip(*totals, strict=True))
    return np.asarray(observed / total)


def _blocks(
    v: Any, sample_weight: Array | None, block_elements: int
) -> Iterator[tuple[Array, Array]]:
    """Dense blocks of rows with their weights, which are all one if `sample_weight` is None."""
    n_rows = max(1, block_elements // v.shape[1])
    for begin in range(0, v.shape[0], n_rows):
        block = slice(begin, begin + n_rows)
        rows = dense(v[block])
        yield rows, np.ones(len(rows)) if sample_weight is None else sample_weight[block]


def _block_statistics(v: Array, weight: Array) -> tuple[Any, ...]:
    """Total weight, mean, variance, minimum and maximum of the observed values of each column."""
    low, high = np.fmin.reduce(v, axis=0), np.fmax.reduce(v, axis=0)
    deviation = v.astype(np.float64)
    total: Any = weight.sum()
    share = 1 / total
    mean = share * (weight @ deviation)
    has_missing = np.isnan(mean).any()  # cheaper than a check of every value
    if has_missing:
        is_missing = np.isnan(deviation)
        deviation[is_missing] = 0
        total = weight @ ~is_missing
        share = 1 / np.maximum(total, np.finfo(np.float64).tiny)
        mean = share * (weight @ deviation)
    deviation -= mean
    with np.errstate(over="ignore"):  # an infinite variance is the result
        np.square(deviation, out=deviation)
    if has_missing:
        deviation[is_missing] = 0
    return total, mean, share * (weight @ deviation), low, high


def _merged_blocks(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Combined statistics of two blocks."""
    low, high = np.fmin(one[3], other[3]), np.fmax(one[4], other[4])
    return *merged_statistics(one[:3], other[:3]), low, high


def _sparse_statistics(
    v: Any, sample_weight: Array | None, block_elements: int
) -> tuple[Array, Array]:
    """Mean and variance of every column of a sparse matrix, from blocks of the stored values."""
    total, n_visible = v.shape
    weight: Any = None  # of each stored value
    if sample_weight is not None:
        total, weight = sample_weight.sum(), np.repeat(sample_weight, np.diff(v.indptr))
    blocks = []
    for begin in range(0, max(v.nnz, 1), block_elements):
        block = slice(begin, min(begin + block_elements, v.nnz))
        blocks.append((v.indices[block], v.data[block], None if weight is None else weight[block]))
    n_stored = sum(np.bincount(i, w, n_visible) for i, _, w in blocks)
    mean = sum(np.bincount(i, _times(x, w), n_visible) for i, x, w in blocks) / total
    square = sum(np.bincount(i, _times(np.square(x - mean[i]), w), n_visible) for i, x, w in blocks)
    return mean, (square + (total - n_stored) * mean**2) / total


def _times(values: Array, weights: Array | None) -> Array:
    return values if weights is None else values * weights


def merged_statistics(
    one: tuple[Any, Array, Array], other: tuple[Any, Array, Array]
) -> tuple[Any, Array, Array]:
    """Combined statistics of two sets of rows [1]_.

    Parameters
    ----------
    one, other : tuple of float or ndarray, ndarray and ndarray of shape (n_visible,)
        Statistics of each set: the number of rows or their total weight, the mean, and the
        variance. The number or weight may differ between the columns; it is then an array. The mean
        may be NaN for a column without observed values.

    Returns
    -------
    merged : tuple of float, ndarray and ndarray of shape (n_visible,)
        Number or total weight, mean and variance of the union of the two sets.

    References
    ----------
    .. [1] Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance: analysis
       and recommendations", The American Statistician 37(3), 242-247, eq. 2.1.
       :doi:`10.2307/2683386`
    """
    (n_one, mean_one, variance_one), (n_other, mean_other, variance_other) = one, other
    n_samples = n_one + n_other
    mean_one, mean_other = (  # a mean that is NaN is replaced by the other one
        np.where(np.isnan(mean), fallback, mean)
        for mean, fallback in ((mean_one, mean_other), (mean_other, mean_one))
    )
    total = np.maximum(n_samples, np.finfo(np.float64).tiny)
    share, rest = n_other / total, n_one / total
    difference = mean_other - mean_one
    difference = np.where(np.abs(difference) > EQUAL_VALUES * np.abs(mean_one), difference, 0)
    variance = rest * variance_one + share * variance_other + rest * share * difference**2
    return n_samples, mean_one + share * difference, variance


def column_kurtosis(
    v: Any,
    mean: Array,
    variance: Array,
    sample_weight: Array | None = None,
    *,
    block_elements: int = MOMENT_BLOCK_ELEMENTS,
) -> Array:
    """Kurtosis of every column: its fourth standardized moment.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type; NaN is a missing value.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of each column, computed from these data or from a larger data set.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of the rows. If None, all rows have equal weights.
    block_elements : int, default=MOMENT_BLOCK_ELEMENTS
        Largest number of elements that are processed in double precision at a time. At least one
        row is processed.

    Returns
    -------
    kurtosis : ndarray of shape (n_visible,)
        Kurtosis in double precision. It is 3 for a normal distribution, and zero for a column whose
        `variance` is zero or that has no observed values.
    """
    total, n_observed = np.zeros((2, v.shape[1]))
    per_deviation = np.where(variance > 0, variance, np.inf) ** -0.5
    for rows, weight in _blocks(v, sample_weight, block_elements):
        powers = (rows - mean) * per_deviation
        for _ in range(2):  # `** 4` takes ten times as long as two squares
            np.square(powers, out=powers)
        block_total, block_weight = weight @ powers, weight.sum()
        if np.isnan(block_total).any():  # missing values; cheaper than a check of every value
            is_observed = ~np.isnan(powers)
            block_total = weight @ np.where(is_observed, powers, 0)
            block_weight = weight @ is_observed
        total += block_total
        n_observed += block_weight
    return total / np.maximum(n_observed, np.finfo(np.float64).tiny)


def column_redundancy(
    v: Any, mean: Array, variance: Array, sample_weight: Array | None = None
) -> Array:
    r"""Redundancy of every column: the sum of its squared correlations with all columns.

    The squared correlations are estimated from some of the rows. What is expected by chance, from
    independent columns, is subtracted.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type; NaN is a missing value. At most `MAX_CORRELATED_ROWS` rows are
        used, or fewer if these have more than `MAX_CORRELATED_ELEMENTS` elements.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of each column, computed from these data or from a larger data set.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of the rows. If None, all rows have equal weights.

    Returns
    -------
    redundancy : ndarray of shape (n_visible,)
        Redundancy in double precision. It is about 1 for a column that is independent of all
        others, and m for one of m columns that determine each other. Estimates from few rows vary
        widely and may be negative, but means over such sets of rows are right.
    """
    n_rows = max(1, min(MAX_CORRELATED_ROWS, MAX_CORRELATED_ELEMENTS // v.shape[1]))
    weight = np.ones(v.shape[0]) if sample_weight is None else sample_weight
    rows, weight = dense(spread_rows(v, n_rows)), spread_rows(weight, n_rows)
    weight = weight / weight.sum()
    varies = variance > 0
    scaled = (rows - mean) / np.sqrt(np.where(varies, variance, np.inf))
    is_observed = ~np.isnan(scaled)
    observed = weight @ is_observed
    # zero, without NaN from products with infinities, for columns that are unknown in these rows
    inverse = np.divide(1.0, observed, out=np.zeros_like(observed), where=varies & (observed > 0))
    scaled = np.where(is_observed, scaled, 0) * inverse
    weighted = scaled * weight[:, np.newaxis]
    squares = (weighted * (scaled @ scaled.T @ weighted)).sum(axis=0)
    squares -= (weighted * scaled).sum(axis=0) ** 2  # of the correlation with itself
    by_chance = weight @ weight * inverse * (inverse.sum() - inverse)
    return 1 + squares - by_chance


def largest_deviation(v: Any, mean: Array, *, block_elements: int = MOMENT_BLOCK_ELEMENTS) -> float:
    """Largest squared Euclidean distance of a row from the mean.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type; NaN is a missing value, which is replaced by the mean.
    mean : ndarray of shape (n_visible,)
        Mean of each column.
    block_elements : int, default=MOMENT_BLOCK_ELEMENTS
        Largest number of elements that are processed in double precision at a time. At least one
        row is processed.

    Returns
    -------
    distance : float
        Squared distance.
    """
    largest = 0.0
    for rows, _ in _blocks(v, None, block_elements):
        squares = np.square(rows - mean)
        largest = max(largest, np.nansum(squares, axis=1).max())
    return float(largest)
