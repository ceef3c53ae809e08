"""Statistics of the data and the start of training."""

import numpy as np
import oracles
import pytest
from core.models import assert_mean, machine_from
from scipy import sparse

from skrbm.core.training import initialization
from skrbm.core.training.initialization import (
    WEIGHT_SCALE,
    column_statistics,
    initial_machine,
    initial_particles,
)

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
    monkeypatch.setattr(initialization, "BLOCK_ROWS", 100)
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


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_initial_machine_is_nearly_uncoupled_and_alike_in_both_precisions(kind, seed, rng):
    p = oracles.random_parameters(kind, 200, 100, rng)
    double, single = machine_from(p), machine_from(p, np.float32)
    weights = initial_machine(double.visible, double.hidden, np.random.default_rng(seed)).weights
    twin = initial_machine(single.visible, single.hidden, np.random.default_rng(seed)).weights
    assert_mean(weights.ravel(), 0)
    assert_mean(weights.ravel() ** 2, WEIGHT_SCALE**2)
    assert twin.dtype == np.float32
    np.testing.assert_array_equal(twin, weights.astype(np.float32))


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_initial_particles_are_hidden_units_without_a_field(kind, rng):
    # Slip: particles of a spin machine that start at 0, where no spin can be.
    p = oracles.random_parameters(kind, 3, 2, rng, offsets=False, scale=0.5)
    particles = initial_particles(machine_from(p), 20_000, rng)
    assert set(np.unique(particles)) == set(p.hidden_values)
    uncoupled = p.replace(weights=0 * p.weights)
    assert_mean(particles, oracles.mean_hidden(uncoupled, np.zeros((1, 3)))[0])
