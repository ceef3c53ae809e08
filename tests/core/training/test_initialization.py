"""Statistics of the data and the start of training."""

import numpy as np
import oracles
import pytest
from core.models import assert_mean, machine_from, parameters_from
from scipy import sparse

from skrbm.core.training import initialization
from skrbm.core.training.initialization import (
    column_statistics,
    initial_machine,
    initial_particles,
)
from skrbm.core.units import Bernoulli

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
def test_column_statistics_are_mean_and_variance(kind, rng, monkeypatch):
    # Slips: E[v^2] - E[v]^2 far from zero, integers that overflow, float32 accumulation.
    monkeypatch.setattr(initialization, "BLOCK_ELEMENTS", 300)
    v = DATA[kind](rng)
    dense = np.asarray(v.todense() if sparse.issparse(v) else v, dtype=np.longdouble)
    mean, variance = column_statistics(v)
    assert mean.dtype == variance.dtype == np.float64
    assert mean.shape == variance.shape == (3,)
    np.testing.assert_allclose(mean, dense.mean(axis=0).astype(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, dense.var(axis=0).astype(float), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [1, 7, 1000])
def test_constant_columns_have_no_variance_at_all(container, dtype, n_samples):
    # Slip: rounding of the mean taken for a variance, whose logarithm is -70.
    row = np.array([0, 1, -3, 0.1, 0.3, 1 / 3, 0.7, 1.1, 1e6 + 0.1], dtype=dtype)
    mean, variance = column_statistics(container(np.tile(row, (n_samples, 1))))
    np.testing.assert_allclose(mean, row, rtol=1e-12)
    assert not variance.any()


def test_column_that_varies_far_from_zero_is_not_constant(rng):
    # Slip: a threshold of rounding that grows with the number of rows and the offset.
    _, variance = column_statistics(1.7e9 + rng.normal(0, 0.1, (1_000_000, 1)))
    np.testing.assert_allclose(variance, 0.01, rtol=0.05)


def start(kind, n_visible, n_hidden, seed, rng):
    """Statistics of some data, a machine started from them, and its oracle parameters."""
    mean = rng.uniform(0.1, 0.9, n_visible)
    variance = mean * (1 - mean)
    p = oracles.random_parameters(kind, n_visible, n_hidden, rng, offsets=False)
    if p.is_gaussian:
        mean, variance = 10 * mean, np.exp(p.log_variance)
        p = p.replace(visible_bias=mean)
    template = machine_from(p)
    visible = (
        template.visible if p.is_gaussian else type(template.visible).start(mean, variance, 99)
    )
    machine = initial_machine(
        visible, type(template.hidden), n_hidden, mean, variance, np.random.default_rng(seed)
    )
    return mean, variance, machine, parameters_from(kind, machine)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_initial_weights_are_alike_in_the_effect_of_a_standard_deviation(kind, seed, rng):
    # Slips: one scale for all widths, the deviation for the variance, a field that grows with sigma.
    _, variance, _, p = start(kind, 200, 100, seed, rng)
    energies = oracles.energy(p, np.eye(201, 200, k=-1), np.eye(101, 100, k=-1))
    origin, *steps = energies[:, :1] - energies[:, 1:]  # a hidden unit's field lowers the energy
    effects = (steps - origin) ** 2 * variance[:, None]
    assert_mean(effects.sum(axis=0), initialization.START_FIELD**2)
    if p.is_gaussian:
        assert_mean(effects, initialization.START_FIELD**2 / 200)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_initial_machine_has_the_data_s_mean_and_hidden_units_as_active_as_they_should(
    kind, seed, rng
):
    # Slips: weights that shift the mean, data far from zero that hold the hidden units in one state.
    mean, _, machine, p = start(kind, 6, 5, seed, rng)
    low, high = p.hidden_values
    activity = low + initialization.START_ACTIVITY * (high - low)
    np.testing.assert_allclose(oracles.mean_hidden(p, mean[None]), [[activity] * 5], atol=1e-9)
    active = machine.mean_visible(np.full((1, 5), activity))[0]
    np.testing.assert_allclose(active, mean, rtol=1e-9)


@pytest.mark.parametrize("variance", [0.0, 1e-12])
def test_initial_weights_stay_small_where_the_data_hardly_vary(variance, rng):
    # Slip: division by a vanishing variance.
    visible = Bernoulli.start(np.full(20, 0.5), np.zeros(20), 100)
    machine = initial_machine(visible, Bernoulli, 100, np.full(20, 0.5), np.full(20, variance), rng)
    assert_mean(machine.weights.ravel() ** 2, initialization.START_FIELD**2)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_initial_particles_are_hidden_units_under_independent_features(kind, rng):
    # Slips: particles of a spin machine that start at 0, where no spin can be; the bias alone, which
    # data far from zero make extreme; the model's own visible bias in place of the data's mean.
    p = oracles.random_parameters(kind, 3, 2, rng, offsets=False, scale=0.5)
    base = oracles.random_parameters(kind, 3, 2, rng, offsets=False, scale=0.5)
    particles = initial_particles(machine_from(p), machine_from(base).visible, 20_000, rng)
    assert set(np.unique(particles)) == set(p.hidden_values)
    uncoupled = base.replace(weights=0 * base.weights)
    v, _ = oracles.sample_exact(uncoupled, 20_000, rng)
    assert_mean(particles - oracles.mean_hidden(p, v), 0)
