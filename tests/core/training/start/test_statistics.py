"""Statistics of the data."""

import numpy as np
import pytest
from scipy import sparse, stats

from skrbm.core.training.start.statistics import (
    column_kurtosis,
    column_redundancy,
    column_statistics,
    largest_deviation,
    merged_statistics,
)

BLOCK = {"block_elements": 300}

DATA = {
    "double": lambda rng: rng.normal(50, [1, 10, 0.1], (501, 3)),
    "single": lambda rng: rng.normal(2, [1, 3, 0.1], (501, 3)).astype(np.float32),
    "far from zero": lambda rng: rng.normal(1e6, [1, 10, 0.1], (501, 3)),
    "integer": lambda rng: rng.integers(-5, 250, (501, 3)).astype(np.int16),
    "boolean": lambda rng: rng.random((501, 3)) < [0.5, 0.01, 0.9],
    "one row": lambda rng: rng.normal(size=(1, 3)),
    "sparse": lambda rng: sparse.csr_array(rng.random((501, 3)) * (rng.random((501, 3)) < 0.2)),
    "sparse integers": lambda rng: sparse.csr_matrix(rng.integers(0, 3, (501, 3))),
}
CONTAINERS = [np.asarray, sparse.csr_array, sparse.csr_matrix]


@pytest.mark.parametrize("kind", DATA)
def test_column_statistics_are_mean_and_variance(kind, rng):
    # Slips: E[v^2] - E[v]^2 far from zero, integers that overflow, float32 accumulation.
    v = DATA[kind](rng)
    dense = np.asarray(v.todense() if sparse.issparse(v) else v, dtype=np.longdouble)
    mean, variance = column_statistics(v, **BLOCK)
    assert mean.dtype == variance.dtype == np.float64
    assert mean.shape == variance.shape == (3,)
    np.testing.assert_allclose(mean, dense.mean(axis=0).astype(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, dense.var(axis=0).astype(float), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_column_statistics_are_those_of_the_known_values(is_weighted, rng):
    # Slips: missing values taken for zeros in the mean, or for zero deviations in the number; blocks
    # in which a column has none not left out, no column without any; the weights forgotten.
    v = rng.normal(50, [1, 10, 0.1, 1], (501, 4))
    v[rng.random(v.shape) < 0.3] = np.nan
    v[:220, 1], v[:, 3] = np.nan, np.nan
    weight = rng.uniform(0.1, 3, 501) if is_weighted else None
    mean, variance = column_statistics(v, weight, **BLOCK)
    for i in range(3):
        is_known = ~np.isnan(v[:, i])
        own, share = v[is_known, i], None if weight is None else weight[is_known]
        expected = np.average(own, weights=share)
        np.testing.assert_allclose(mean[i], expected, rtol=1e-12)
        expected = np.average((own - expected) ** 2, weights=share)
        np.testing.assert_allclose(variance[i], expected, rtol=1e-9)
    assert np.isnan(mean[3])
    assert variance[3] == 0


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [1, 7, 1000])
def test_constant_columns_have_no_variance_at_all(container, dtype, n_samples):
    # Slip: rounding of the mean taken for a variance, whose logarithm is -70.
    row = np.array([0, 1, -3, 0.1, 0.3, 1 / 3, 0.7, 1.1, 1e6 + 0.1], dtype=dtype)
    mean, variance = column_statistics(container(np.tile(row, (n_samples, 1))))
    np.testing.assert_allclose(mean, row, rtol=1e-12)
    assert not variance.any()


@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_that_vary_by_rounding_errors_are_constant(container, rng):
    """Blocks and streams, too. Their variance of 1e-29 made densities and log Z wrong.

    Slips: rows compared bit by bit; means of two blocks that differ by rounding.
    """
    factor = rng.uniform(1, 2, (200, 1))
    X = (factor * 0.3) / factor * [1000, -7, 1e-160]
    assert (X.min(axis=0) < X.max(axis=0)).all()
    mean, variance = column_statistics(container(X))
    np.testing.assert_allclose(mean, X[0], rtol=1e-14)
    assert not variance.any()
    parts = [(100, *column_statistics(container(rows))) for rows in np.split(X, 2)]
    n_samples, mean, variance = merged_statistics(*parts)
    assert n_samples == 200
    assert not variance.any()


def test_column_that_varies_far_from_zero_is_not_constant(rng):
    # Slip: a threshold of rounding that grows with the number of rows and the offset.
    _, variance = column_statistics(1.7e9 + rng.normal(0, 0.1, (1_000_000, 1)))
    np.testing.assert_allclose(variance, 0.01, rtol=0.05)


@pytest.mark.parametrize("kind", DATA)
def test_weighted_statistics_are_those_of_copies(kind, rng):
    # Slips: entries of a sparse row weighted by the next one's weight, zeros that are not stored
    # weighted alike, blocks merged by their numbers of rows.
    v = DATA[kind](rng)
    n_copies = rng.integers(1, 4, v.shape[0])
    copies = v[np.repeat(np.arange(v.shape[0]), n_copies)]
    mean, variance = column_statistics(v, 0.7 * n_copies, **BLOCK)
    expected_mean, expected_variance = column_statistics(copies, **BLOCK)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", DATA)
def test_kurtosis_is_that_of_each_column(kind, is_weighted, rng):
    # Slips: blocks that are not added up, weights of other blocks, powers of two.
    v = DATA[kind](rng)
    n_copies = rng.integers(1, 4, v.shape[0]) if is_weighted else np.ones(v.shape[0], int)
    weight = 0.7 * n_copies if is_weighted else None
    kurtosis = column_kurtosis(v, *column_statistics(v, weight), weight, **BLOCK)
    rows = v.toarray() if sparse.issparse(v) else v
    if len(rows) == 1:
        assert not kurtosis.any()
    else:
        copies = np.repeat(rows, n_copies, axis=0).astype(float)
        np.testing.assert_allclose(kurtosis, stats.kurtosis(copies, fisher=False), rtol=1e-6)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", DATA)
def test_redundancy_is_the_sum_of_squared_correlations(kind, is_weighted, rng):
    # Slips: weights of other rows, a correlation of a column with itself above one, chance left in.
    v = DATA[kind](rng)
    weight = rng.uniform(0.5, 2, v.shape[0]) if is_weighted else np.ones(v.shape[0])
    statistics = column_statistics(v, weight)
    redundancy = column_redundancy(v, *statistics, weight if is_weighted else None)
    rows = (v.toarray() if sparse.issparse(v) else v).astype(float)
    varies = statistics[1] > 0
    expected = np.ones(rows.shape[1])
    if varies.any():
        covariance = np.cov(rows[:, varies], rowvar=False, aweights=weight, bias=True)
        covariance = np.atleast_2d(covariance)
        scale = np.sqrt(covariance.diagonal())
        squares = np.square(covariance / np.outer(scale, scale)).sum(axis=0)
        share_of_a_row = (weight**2).sum() / weight.sum() ** 2
        expected[varies] = squares - (varies.sum() - 1) * share_of_a_row
    np.testing.assert_allclose(redundancy, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e100])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_redundancy_counts_the_columns_that_determine_each_other(scale, missing, rng):
    # Slips: correlations that missing values make smaller, powers that overflow, columns of constants.
    factors = rng.standard_normal((3000, 3))
    v = scale * np.column_stack([factors[:, [0, 1, 1, 2, 2, 2, 2]], np.full(3000, 0.3)])
    v[rng.random(v.shape) < missing] = np.nan
    redundancy = column_redundancy(v, *column_statistics(v))
    np.testing.assert_allclose(redundancy, [1, 2, 2, 4, 4, 4, 4, 1], rtol=0.35)


def test_columns_without_values_in_the_rows_do_not_change_the_redundancy_of_others(rng):
    # Slip: divided by the number of their values, at least the smallest positive number.
    v = rng.standard_normal((300, 4))
    v[:, 1] = v[:, 0]
    mean, variance = np.tile(column_statistics(v), 2)
    alone = column_redundancy(v, mean[:4], variance[:4])
    unknown = np.full_like(v, np.nan)
    for rows, expected in ((v, [*alone, 1, 1, 1, 1]), (unknown, np.ones(8))):
        redundancy = column_redundancy(np.hstack([rows, unknown]), mean, variance)
        np.testing.assert_allclose(redundancy, expected, rtol=1e-12)


def test_mean_redundancy_of_few_rows_is_that_of_all_rows(rng):
    # Slips: chance left in, which is four for six rows of 25 columns; bounds for each set of rows.
    v = rng.standard_normal((3000, 25))
    v[:, 20:] = v[:, 20:21]
    statistics = column_statistics(v)
    of_sets = [column_redundancy(rows, *statistics) for rows in np.split(v, 500)]
    mean = np.mean(of_sets, axis=0)
    np.testing.assert_allclose(mean[:20].mean(), 1, atol=0.3)
    np.testing.assert_allclose(mean[20:].mean(), 5, rtol=0.35)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e100])
def test_kurtosis_is_that_of_the_known_values_of_any_scale(scale, rng):
    # Slips: NaN in the sum, missing values counted, powers that overflow, a constant column's noise.
    v = scale * rng.standard_exponential((500, 3))
    is_missing = rng.random(500) < 0.3
    v[:, 1], v[is_missing, 2] = scale / 3, np.nan
    kurtosis = column_kurtosis(v, *column_statistics(v))
    assert kurtosis[1] == 0
    for column in (0, 2):
        known = v[~np.isnan(v[:, column]), column] / scale
        np.testing.assert_allclose(kurtosis[column], stats.kurtosis(known, fisher=False), rtol=1e-9)


@pytest.mark.parametrize("kind", DATA)
def test_largest_deviation_is_that_of_the_farthest_row(kind, rng):
    # Slips: the last block alone, the sum of the rows, a distance that is not squared.
    v = DATA[kind](rng)
    rows = v.toarray() if sparse.issparse(v) else v
    mean = rng.normal(rows.mean(axis=0), 1)
    expected = max(np.sum((row.astype(float) - mean) ** 2) for row in rows)
    np.testing.assert_allclose(largest_deviation(v, mean, **BLOCK), expected, rtol=1e-12)


def test_missing_values_do_not_deviate():
    v = np.array([[3.0, 0], [np.nan, 2], [np.nan, np.nan]])
    assert largest_deviation(v, np.array([1.0, 0])) == 4
