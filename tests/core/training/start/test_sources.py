"""Machines that have independent two-state sources of numeric columns before training begins."""

from functools import partial

import numpy as np
import oracles
import pytest
from core.training.start import test_factors
from core.training.start.test_factors import SCALES, independent_likelihood, normal_likelihood
from core.training.start.test_pretraining import layer_of
from scipy.special import softmax

from skrbm.core.likelihood.exact import log_partition
from skrbm.core.training.start.factors import MAX_FACTOR_STEP
from skrbm.core.training.start.numeric_rows import MIN_ROWS_PER_COLUMN
from skrbm.core.training.start.sources import MAX_SOURCE_COLUMNS, source_machine
from skrbm.core.units import Bernoulli, Categorical, Composite, Spin


def rotated(rng, n_rows=2000, probability=(0.5, 0.3, 0.8), n_columns=8, noise=0.5):
    """Uncorrelated columns that depend on two-state sources, in several units of measurement."""
    p = np.array(probability)
    states = (rng.random((n_rows, len(p))) < p) - p
    loadings = np.linalg.qr(rng.normal(size=(n_columns, len(p))))[0]
    noise_rows = rng.normal(size=(n_rows, n_columns))
    noise_rows -= (1 - noise) * noise_rows @ loadings @ loadings.T
    rows = states / np.sqrt(p * (1 - p)) * np.sqrt(1 - noise**2) @ loadings.T + noise_rows
    return 5 + rows * np.resize(SCALES, n_columns)


found = partial(test_factors.found, n_hidden=20, search=source_machine)


@pytest.mark.parametrize("hidden", [Bernoulli, Spin])
@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_the_gain_is_exact(kind, hidden, rng):
    """Slips: log Z for centers of 1/2, units of other states, a field in other units."""
    X = rotated(rng)
    machine, gain = found(kind, X, hidden=hidden)
    assert machine.hidden.n_units == 3
    likelihood = -machine.free_energy(X).mean() - log_partition(machine)
    np.testing.assert_allclose(likelihood - independent_likelihood(X), gain, rtol=1e-9)
    assert likelihood > normal_likelihood(X)


@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_units_have_the_probabilities_of_the_sources(kind, rng):
    """Slips: log-odds without the displacement, or with the wrong sign; noise of the other columns."""
    p = np.array([0.5, 0.3, 0.8])
    machine, _ = found(kind, rotated(rng, probability=p))
    states = oracles.states([0.0, 1.0], 3)
    activity = softmax(-machine.transposed.free_energy(states)) @ states
    np.testing.assert_allclose(np.sort(np.abs(activity - 0.5)), np.sort(np.abs(p - 0.5)), atol=0.05)


def test_displacements_are_bounded(rng):
    """Slip: modes that chains leave rarely. Ten epochs then lose 2 nats on sources far apart."""
    X = rotated(rng, noise=0.05, n_columns=3)
    machine, _ = found("krizhevsky", X)
    moved = machine.mean_visible(np.eye(3)) - machine.mean_visible(np.zeros((1, 3)))
    steps = np.linalg.norm(moved / np.sqrt(machine.visible.largest_variance), axis=1)
    np.testing.assert_allclose(steps, MAX_FACTOR_STEP, rtol=0.1)


def test_the_clearest_sources_are_kept(rng):
    X = rotated(rng, probability=[0.5] * 6)
    machine, _ = found("krizhevsky", X, n_hidden=2)
    assert machine.hidden.n_units == 2


def test_units_of_measurement_do_not_matter(rng):
    X = rotated(rng)
    machine, gain = found("krizhevsky", X)
    other, same = found("krizhevsky", 1e-3 * X - 7)
    assert gain == pytest.approx(same, rel=1e-8)
    np.testing.assert_allclose(machine.weights, other.weights, rtol=1e-6, atol=1e-9)


def test_rows_without_weight_do_not_matter(rng):
    X, weights = rotated(rng), np.repeat([1.0, 0.0], 1000)
    X[1000:] = rng.exponential(size=(1000, 8)) * SCALES
    machine, gain = found("cho", X, sample_weight=weights)
    alone, same = found("cho", X[:1000])
    assert gain == pytest.approx(same, rel=1e-8)
    np.testing.assert_allclose(machine.weights, alone.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(2000, MAX_SOURCE_COLUMNS)),
        np.random.default_rng(0).standard_t(2, size=(2000, 8)),
        rotated(np.random.default_rng(0), n_rows=8 * MIN_ROWS_PER_COLUMN - 1),
        rotated(np.random.default_rng(0), n_columns=MAX_SOURCE_COLUMNS + 1),
        rotated(np.random.default_rng(0), probability=[0.01], noise=0.1),
    ],
    ids=["normal rows", "heavy tails", "few rows", "many columns", "rare state"],
)
def test_no_sources(X):
    assert found("krizhevsky", X) is None


def test_no_sources_of_fixed_variances(rng):
    assert found("krizhevsky", rotated(rng), learn_variance=False) is None


@pytest.mark.parametrize("number", [1e200, 1.7e308])
def test_numbers_that_overflow(number, rng):
    """Slip: eigenvectors of a covariance matrix that is not finite, which raise an error."""
    X = rotated(rng)
    X[:3, 0] = number
    with np.errstate(all="ignore"):
        result = found("krizhevsky", X)
    assert result is None or np.isfinite(result[0].weights).all()


def test_a_constant_column_and_copies_of_another(rng):
    X = rotated(rng)
    X[:, 1], X[:, 2] = 3.0, X[:, 0]
    machine, _ = found("krizhevsky", X)
    assert not machine.weights[1].any()
    assert np.isfinite(machine.weights).all()


def test_categories_beside_numbers(rng):
    """They keep their distribution, and no hidden unit depends on them."""
    X = rotated(rng)
    rows = np.hstack([np.eye(3)[rng.integers(3, size=len(X))], X])
    mean, variance = rows.mean(axis=0), rows.var(axis=0)

    def layer(within):
        shares = Categorical.start(mean[:3], within[:3], len(X), n_categories=(3,))
        return Composite((shares, layer_of("krizhevsky", mean[3:], within[3:])))

    machine, gain = test_factors.searched(
        source_machine, layer, Bernoulli, rows, mean, variance, 20
    )
    _, alone = found("krizhevsky", X)
    assert not machine.weights[:3].any()
    shares = machine.visible.mean(machine.visible.zero_field(1))[0, :3]
    np.testing.assert_allclose(shares, mean[:3], rtol=1e-3)
    assert gain == pytest.approx(alone, rel=1e-9)
