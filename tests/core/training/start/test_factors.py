"""Machines that have the leading factors of numeric columns before training begins."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.training.start.test_pretraining import layer_of

from skrbm.core.likelihood.exact import log_partition
from skrbm.core.training.start.factors import MIN_GAIN, factor_machine
from skrbm.core.training.start.numeric_rows import MIN_ROWS_PER_COLUMN, NumericRows
from skrbm.core.units import Bernoulli, Categorical, Composite, Spin
from skrbm.core.units.support import SMALLEST_SHARE

SCALES = np.array([1.0, 50.0, 0.02, 1.0, 3.0, 1.0, 1.0, 10.0])


def correlated(rng, n_rows=1000, n_columns=8, n_factors=2, noise=0.5):
    """Rows with common factors, in several units of measurement."""
    factors = rng.standard_normal((n_rows, n_factors)) @ rng.standard_normal((n_factors, n_columns))
    rows = factors + noise * rng.standard_normal((n_rows, n_columns))
    return 5 + rows * np.resize(SCALES, n_columns)


def searched(search, layer, hidden, X, mean, variance, n_hidden, sample_weight=None):
    """Result of a search, or None if there is nothing to search."""
    rows = NumericRows.of(layer, X, mean, variance, sample_weight)
    return None if rows is None else search(rows, hidden, n_hidden)


def found(
    kind,
    X,
    n_hidden,
    hidden=Bernoulli,
    sample_weight=None,
    learn_variance=True,
    search=factor_machine,
):
    mean = np.average(X, axis=0, weights=sample_weight)
    variance = np.average((X - mean) ** 2, axis=0, weights=sample_weight)

    def layer(within):
        return replace(layer_of(kind, mean, within), learn_variance=learn_variance)

    return searched(search, layer, hidden, X, mean, variance, n_hidden, sample_weight)


def normal_likelihood(X):
    """Mean log-likelihood under the normal distribution that fits best."""
    _, log_determinant = np.linalg.slogdet(2 * np.pi * np.e * np.cov(X.T, bias=True))
    return -log_determinant / 2


def independent_likelihood(X):
    return -np.log(2 * np.pi * np.e * X.var(axis=0)).sum() / 2


@pytest.mark.parametrize("hidden", [Bernoulli, Spin])
@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_the_gain_is_exact(kind, hidden, rng):
    """Slips: a partition function without a factor, units of other states, a field in other units."""
    X = correlated(rng)
    machine, gain = found(kind, X, 24, hidden)
    assert machine.hidden.n_units <= 12
    likelihood = -machine.free_energy(X).mean() - log_partition(machine)
    np.testing.assert_allclose(likelihood - independent_likelihood(X), gain, rtol=1e-9)
    assert gain > MIN_GAIN


@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_rows_are_nearly_as_likely_as_under_a_normal_distribution(kind, rng):
    """Slips: log-odds without the variance of a factor, or in the wrong order; one step for all."""
    X = correlated(rng, n_columns=20, n_factors=4)
    _, gain = found(kind, X, 400)
    loss = normal_likelihood(X) - independent_likelihood(X) - gain
    assert loss < 0.3


def test_few_hidden_units_lose_no_more_than_all_factors(rng):
    """The noise makes up for displacements that are far apart."""
    X = correlated(rng, n_columns=20, n_factors=4, noise=0.1)
    gains = [found("krizhevsky", X, n_hidden)[1] for n_hidden in (4, 16, 64, 256)]
    assert (np.diff(gains) > 0).all()
    assert gains[0] > MIN_GAIN


def test_units_of_measurement_do_not_matter(rng):
    X = correlated(rng)
    machine, gain = found("krizhevsky", X, 50)
    other, same = found("krizhevsky", 1e-3 * X - 7, 50)
    assert gain == pytest.approx(same, rel=1e-8)
    np.testing.assert_allclose(machine.weights, other.weights, rtol=1e-6, atol=1e-9)


def test_weights_are_copies(rng):
    X, weights = correlated(rng, n_rows=400), rng.integers(1, 4, 400)
    one, gain = found("cho", X, 50, sample_weight=weights)
    two, same = found("cho", np.repeat(X, weights, axis=0), 50)
    assert gain == pytest.approx(same, rel=1e-8)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).standard_normal((1000, 8)),
        correlated(np.random.default_rng(0), n_rows=8 * MIN_ROWS_PER_COLUMN - 1),
        correlated(np.random.default_rng(0))[:, :1],
    ],
    ids=["independent columns", "few rows", "one column"],
)
def test_no_factors(X):
    assert found("krizhevsky", X, 50) is None


def test_no_factors_of_fixed_variances(rng):
    assert found("krizhevsky", correlated(rng), 50, learn_variance=False) is None


@pytest.mark.parametrize("columns", [[3], range(1, 8)])
def test_columns_that_vary_less_in_the_rows_than_in_the_data_have_no_factors(columns, rng):
    """The rows that are looked at miss rare values, which would have no noise then."""
    X = correlated(rng)
    mean, variance = X.mean(axis=0), X.var(axis=0)
    variance[columns] *= 3

    def layer(within):
        return layer_of("krizhevsky", mean, within)

    result = searched(factor_machine, layer, Bernoulli, X, mean, variance, 50)
    if len(columns) == 7:  # one column has no factors
        assert result is None
        return
    machine, gain = result
    assert not machine.weights[columns].any()
    assert np.delete(machine.weights, columns, axis=0).any(axis=1).all()
    np.testing.assert_allclose(machine.visible.largest_variance[columns], variance[columns])
    _, others = found("krizhevsky", np.delete(X, columns, axis=1), 50)
    assert gain == pytest.approx(others, rel=1e-6)


def test_a_constant_column_and_copies_of_another(rng):
    X = correlated(rng)
    X[:, 1], X[:, 2], X[:, 3] = 3.0, X[:, 0], X[:, 0]
    machine, gain = found("krizhevsky", X, 2000)
    assert not machine.weights[1].any()
    noise = machine.visible.largest_variance
    assert (noise[[0, 2, 3]] >= SMALLEST_SHARE * X[:, 0].var()).all()
    assert np.isfinite(machine.weights).all()
    assert gain > MIN_GAIN


@pytest.mark.parametrize("number", [1e200, 1.7e308])
def test_numbers_that_overflow(number, rng):
    """Slip: a spread of NaN that passes for a large one, after the mean has overflowed."""
    X = correlated(rng)
    X[:3, 0] = number
    with np.errstate(all="ignore"):
        result = found("krizhevsky", X, 50)
    assert result is None or np.isfinite(result[0].weights).all()


def test_categories_beside_numbers(rng):
    """They keep their distribution, and no hidden unit depends on them."""
    X, numbers = correlated(rng), 8
    codes = rng.integers(3, size=len(X))
    rows = np.hstack([np.eye(3)[codes], X])
    mean, variance = rows.mean(axis=0), rows.var(axis=0)

    def layer(within):
        shares = Categorical.start(mean[:3], within[:3], len(X), n_categories=(3,))
        return Composite((shares, layer_of("krizhevsky", mean[3:], within[3:])))

    machine, gain = searched(factor_machine, layer, Bernoulli, rows, mean, variance, 50)
    _, alone = found("krizhevsky", X, 50)
    assert machine.weights.shape[0] == 3 + numbers
    assert not machine.weights[:3].any()
    shares = machine.visible.mean(machine.visible.zero_field(1))[0, :3]
    np.testing.assert_allclose(shares, mean[:3], rtol=1e-3)
    assert gain == pytest.approx(alone, rel=1e-9)
