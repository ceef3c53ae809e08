"""Groups of rows with nothing between them: found where there are any, and nowhere else."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from skrbm.core.training.start.clusters import (
    MAX_CLUSTERED_ROWS,
    MIN_CLUSTER_ROWS,
    Clusters,
    find_clusters,
)

SHARES = {"two": (0.5, 0.5), "rare": (0.95, 0.05), "five": (0.2,) * 5}


@pytest.fixture(params=SHARES)
def shares(request):
    return SHARES[request.param]


def grouped(shares, rng, distance=40.0, n_rows=1000, n_columns=10):
    """Numbers around two opposite vertices of a cube or around vertices of a simplex, and these."""
    centers = distance * np.eye(len(shares), n_columns)
    if len(shares) == 2:
        centers[0], centers[1] = 0, distance / 2
    of_row = rng.choice(len(shares), n_rows, p=shares)
    return centers[of_row] + rng.normal(size=(n_rows, n_columns)), centers


def found(X, rng, most=8, container=np.asarray, step=0.0):
    mean, variance = np.nanmean(X, axis=0), np.nanvar(X, axis=0)
    return find_clusters(container(X), None, mean, variance, step, most, rng)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_groups_are_found_with_means_shares_and_variance(shares, container, rng):
    # Slips: the smallest first; shares in another order than means; the variance of all rows.
    X, centers = grouped(shares, rng, distance=20.0, n_rows=MAX_CLUSTERED_ROWS)
    modes = found(X, rng, container=container)
    nearest = [np.abs(centers - own).max(axis=1).argmin() for own in modes.centers]
    assert sorted(nearest) == list(range(len(shares)))
    np.testing.assert_allclose(modes.centers, centers[nearest], atol=1)
    np.testing.assert_allclose(modes.shares, np.array(shares)[nearest], atol=0.06)
    assert (np.diff(modes.shares) <= 0).all()
    np.testing.assert_allclose(modes.variance, 1, atol=0.25)
    assert modes.shares.sum() == pytest.approx(1)
    assert len(modes.rows) == MAX_CLUSTERED_ROWS


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1)])
def test_groups_of_bits_are_found(shares, low, high, rng):
    # Slips: columns in their standard deviations, where rare bits count for more; pieces of few
    # rows that are alike taken for groups of their own; the step of other states.
    X, patterns = patterned(shares, rng)
    modes = found(low + (high - low) * X, rng, step=float(high - low))
    assert len(modes.shares) == len(shares)
    centers = (modes.centers - low) / (high - low)
    distance = np.abs(centers[:, None] - patterns).max(axis=2)
    assert sorted(distance.argmin(axis=1)) == list(range(len(shares)))
    assert distance.min(axis=1).max() < 0.2


def test_noise_of_columns_that_are_alike_in_all_groups_hides_none(rng):
    """Of few rows, five groups of 40: that noise is as wide as the groups lie apart.

    Slips: k-means in standard deviations; groups of fewer rows than asked for, or lost in another.
    """
    X, _ = grouped(SHARES["five"], rng, distance=400.0, n_rows=200)
    assert len(found(X, rng).shares) == 5


def patterned(shares, rng, n_columns=50, n_rows=1000):
    """Bits that repeat the pattern of their group but for one in fifty, and the patterns."""
    patterns = rng.random((len(shares), n_columns)) < 0.5
    patterns[1] = ~patterns[0]
    X = patterns[rng.choice(len(shares), n_rows, p=shares)]
    return (X ^ (rng.random(X.shape) < 0.02)).astype(float), patterns


@pytest.mark.parametrize("n_rare", [2, 6, 20])
@pytest.mark.parametrize("n_columns", [1, 10], ids=["one column", "all columns"])
def test_rare_groups_are_found_with_their_shares(n_rare, n_columns, rng):
    """Of numbers; 40 deviations away, beside an outlier and two groups of many rows.

    Slips: a random sample of the rows, which has few of them; distances in deviations of all rows,
    beside which one far column is nothing; an outlier taken for a group; its rows counted as often
    as those that stand for many.
    """
    X = rng.normal(size=(3000, 10))
    X[:1400] += 15
    X[:n_rare, :n_columns] += 40
    X[n_rare] *= 1e3
    modes = found(rng.permutation(X), rng)
    np.testing.assert_allclose(modes.shares[2:], n_rare / len(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(modes.centers[-1], X[:n_rare].mean(axis=0))
    assert len(modes.shares) == 3
    assert modes.weights.sum() == pytest.approx(1)


def spiral(rng):
    angle = 12 * rng.random((1000, 1))
    return angle * np.hstack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(1000, 2))


def normal(rng):
    return rng.normal(size=(1000, 10))


CONNECTED = {
    "normal": normal,
    "uniform": lambda rng: rng.random((1000, 2)),
    "lognormal": lambda rng: np.exp(1.5 * normal(rng)),
    "heavy tails": lambda rng: rng.standard_cauchy((1000, 5)),
    "factor": lambda rng: rng.normal(size=(1000, 1)) + 0.1 * normal(rng),
    "spiral": spiral,
    "near clusters": lambda rng: normal(rng) + rng.integers(2, size=(1000, 1)),
    "outliers": lambda rng: normal(rng) * np.where(rng.random((1000, 1)) < 0.004, 1e3, 1),
    "flags": lambda rng: np.hstack([normal(rng), rng.integers(2, size=(1000, 2))]),
    "category": lambda rng: np.hstack([np.eye(4)[rng.integers(4, size=1000)], normal(rng)]),
    "counts": lambda rng: rng.poisson(1, (1000, 6)).astype(float),
    "only flags": lambda rng: rng.integers(2, size=(1000, 2)).astype(float),
    "far value": lambda rng: np.c_[np.resize([1, 2, 3, 1e9], 1000), rng.normal(size=1000)],
    "digits": lambda rng: load_digits().data,
    "iris": lambda rng: load_iris().data,
    "wine": lambda rng: load_wine().data,
    "cancer": lambda rng: load_breast_cancer().data,
    "few rows, many columns": lambda rng: rng.normal(size=(40, 784)),
    "constant": lambda rng: np.ones((100, 3)),
    "alike": lambda rng: np.repeat(rng.normal(size=(3, 4)), 40, axis=0),
    "missing": lambda rng: np.where(np.eye(1000, 10), 1.0, np.nan),
    "one row": lambda rng: normal(rng)[:1],
}


@pytest.mark.parametrize("rows", CONNECTED.values(), ids=CONNECTED)
def test_nothing_is_found_in_rows_of_one_piece(rows, rng):
    # Slips: groups judged by the rows that they were made of; columns of few values; single rows.
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert found(rows(rng), rng) is None


def categories(rng):
    return np.hstack([np.eye(k)[rng.integers(k, size=1000)] for k in (2, 3, 5, 8)])


CONNECTED_BITS = {
    "coins": lambda rng: rng.integers(2, size=(1000, 64)),
    "rare": lambda rng: rng.random((1000, 9)) < 0.03,
    "rarer": lambda rng: rng.random((1000, 300)) < 0.01,
    "category": lambda rng: np.eye(5)[rng.integers(5, size=1000)],
    "categories": categories,
    "factor": lambda rng: rng.random((1000, 100)) < expit(2 * rng.normal(size=(1000, 1))),
    "pairs": lambda rng: np.repeat(rng.integers(2, size=(1000, 8)), 2, axis=1),
    "digits": lambda rng: load_digits().data > 8,
    "gray": lambda rng: load_digits().data / 16,
    "alike": lambda rng: np.ones((100, 3)),
    "few": lambda rng: np.resize([[0, 0, 0, 0], [1, 1, 1, 1]], (19, 4)),
}


@pytest.mark.parametrize("rows", CONNECTED_BITS.values(), ids=CONNECTED_BITS)
def test_nothing_is_found_in_bits_that_change_one_by_one(rows, rng):
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert found(rows(rng).astype(float), rng, step=1.0) is None


@pytest.mark.parametrize("n_others", [2, 10])
@pytest.mark.parametrize(("n_alike", "n_modes"), [(1, 0), (2, 0), (5, 2)])
def test_bits_that_change_together_make_modes_where_they_are_many(n_alike, n_modes, n_others, rng):
    # Slip: no count of columns; a category has two that change.
    alike = np.repeat(rng.integers(2, size=(1000, 1)), n_alike, axis=1)
    X = np.hstack([alike, rng.integers(2, size=(1000, n_others))]).astype(float)
    modes = found(X, rng, step=1.0)
    assert (0 if modes is None else len(modes.shares)) == n_modes


def test_a_flag_has_no_gap():
    # Slip, seen in one of twenty: groups that are the values of a column.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.c_[rng.integers(2, size=1000), rng.normal(size=1000)]
        assert found(X, np.random.default_rng(seed)) is None


@pytest.mark.parametrize(
    ("name", "missing_share"), [("two", 0.1), ("two", 0.3), ("rare", 0.3), ("five", 0.015)]
)
def test_groups_are_found_behind_missing_values(name, missing_share, rng):
    # Slips: complete rows alone, of which there may be none; means in place of missing values,
    # which lie between the groups; values of two groups in one row.
    X, centers = grouped(SHARES[name], rng)
    X[rng.random(X.shape) < missing_share] = np.nan
    modes = found(X, rng)
    assert len(modes.shares) == len(centers)
    assert not np.isnan(modes.rows).any()
    nearest = [np.abs(centers - own).max(axis=1).argmin() for own in modes.centers]
    np.testing.assert_allclose(modes.centers, centers[nearest], atol=1)
    np.testing.assert_allclose(modes.variance, 1, atol=0.6)


def test_a_group_with_many_missing_values_keeps_its_share(rng):
    # Slip: the shares of complete rows, of which one group has few.
    X, _ = grouped(SHARES["two"], rng)
    X[(X[:, 0] > 10) & (rng.random(len(X)) < 0.9), 1] = np.nan
    np.testing.assert_allclose(found(X, rng).shares, 0.5, atol=0.05)


def test_a_column_without_values_is_at_its_mean(rng):
    X, _ = grouped(SHARES["two"], rng)
    X = np.column_stack([X, np.full(len(X), np.nan)])
    mean, variance = np.append(X[:, :-1].mean(axis=0), 3.0), np.append(X[:, :-1].var(axis=0), 1.0)
    modes = find_clusters(X, None, mean, variance, 0.0, 8, rng)
    assert modes is None or (modes.centers[:, -1] == 3).all()


def test_no_other_rows_are_looked_at(rng):
    X, _ = grouped(SHARES["two"], rng)
    first = np.flatnonzero(X[:, 0] < 10)
    mean, variance = X.mean(axis=0), X.var(axis=0)
    assert find_clusters(X, first, mean, variance, 0.0, 8, rng) is None
    both = np.append(first, np.flatnonzero(X[:, 0] > 10)[:100])
    modes = find_clusters(X, both, mean, variance, 0.0, 8, rng)
    np.testing.assert_allclose(modes.shares, [len(first) / len(both), 100 / len(both)])


def test_no_more_groups_than_are_asked_for(rng):
    X, _ = grouped(SHARES["five"], rng)
    modes = found(X, rng, most=3)
    assert modes is None or len(modes.shares) <= 3


def test_few_rows_have_no_groups_and_some_more_do(rng):
    X, _ = grouped(SHARES["two"], rng, n_rows=4 * MIN_CLUSTER_ROWS - 1)
    assert found(X, rng) is None
    X, _ = grouped(SHARES["two"], rng, n_rows=16 * MIN_CLUSTER_ROWS)
    assert len(found(X, rng).shares) == 2


def test_numbers_beyond_the_range_have_no_groups(rng):
    # Slips: an error of k-means, which wants finite numbers; a crash, where their squares are not.
    X, _ = grouped(SHARES["two"], rng)
    assert find_clusters(X, None, np.zeros(10), np.full(10, 1e-320), 0.0, 8, rng) is None
    assert find_clusters(1e200 * X, None, np.zeros(10), np.ones(10), 0.0, 8, rng) is None


@pytest.mark.parametrize("n_columns", [1, 4])
def test_kurtosis_is_that_of_columns_whose_squares_have_the_same_covariance(n_columns, rng):
    """Of alike columns, whose squares vary together, a multiple of one column's own excess.

    Slips: modes weighed alike; deviations from no mean; one eigenvalue for every column.
    """
    shares, place = np.array([0.9, 0.1]), np.array([[0.0], [5.0]])
    mean = shares @ place
    square = (place - mean) ** 2 / 2.0
    spread = shares @ square**2 - (shares @ square) ** 2
    modes = Clusters(None, None, np.repeat(place, n_columns, axis=1), shares, None)
    actual = modes.kurtosis(np.full(n_columns, 2.0))
    assert actual == pytest.approx(3 + 2 * n_columns * float(spread[0]))


@pytest.mark.parametrize("n_rare", [0, 6])
def test_shares_are_those_of_the_weights(n_rare, rng):
    # Slips: each row counted alike, in groups of many rows or in rare ones.
    X = rng.normal(size=(2000, 10))
    X[:1000] += 15
    X[2000 - n_rare :] -= 40
    mean, variance = X.mean(axis=0), X.var(axis=0)
    weight = np.repeat([9.0, 1.0], 1000)
    modes = find_clusters(X, None, mean, variance, 0.0, 8, rng, weight)
    expected = np.array([9000, 1000 - n_rare, n_rare])[: 3 if n_rare else 2] / 10_000
    np.testing.assert_allclose(modes.shares, expected, atol=0.02)
    if n_rare:
        assert modes.shares[2] == pytest.approx(n_rare / 10_000)
    assert modes.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(modes.centers[0], X[:1000].mean(axis=0), atol=0.3)
