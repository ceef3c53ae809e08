"""Gibbs sampling: started from exact samples, the law must not move; from elsewhere, it must."""

import numpy as np
import oracles
import pytest
from core.models import (
    assert_law,
    assert_mean,
    balanced_model,
    chain,
    hidden_law,
    hidden_states,
    machine_from,
)
from scipy import sparse, stats
from scipy.special import softmax

from skrbm.core.sampling import gibbs, sample_base

N_CHAINS = 20_000
SAMPLED = [(kind, 2, 3, offsets) for kind in oracles.ENERGIES for offsets in (0, 1)]


@pytest.fixture(params=SAMPLED, ids=lambda case: f"{case[0]}-{'offsets' if case[3] else 'plain'}")
def p(request, seed):
    return balanced_model(request.param, seed)


def standardised(p, v, h):
    """Residuals of Gaussian visible units given h: standard normal by the oracle's word."""
    states = hidden_states(p)
    index = (h[:, None] == states[None]).all(axis=2).argmax(axis=1)
    mean, deviation = oracles.mean_visible(p, states), np.sqrt(oracles.variance_visible(p, states))
    return (v - mean[index]) / deviation[index]


def assert_joint_law(p, v, h):
    """Pairs of v and h are independent draws of the model."""
    assert_law(h, hidden_states(p), hidden_law(p))
    if p.is_gaussian:
        residual = standardised(p, v, h)
        assert_mean(residual[:, :, None] * h[:, None], 0)
        for unit in residual.T:
            assert stats.kstest(unit, "norm").pvalue > 2 * stats.norm.sf(4)
        return
    visible, hidden = oracles.states(p.visible_values, p.weights.shape[0]), hidden_states(p)
    pairs = np.concatenate(
        [np.repeat(visible, len(hidden), axis=0), np.tile(hidden, (len(visible), 1))], axis=1
    )
    probabilities = softmax(-oracles.energy(p, visible, hidden)).ravel()
    assert_law(np.concatenate([v, h], axis=1), pairs, probabilities)


@pytest.mark.parametrize("n_gibbs_steps", [1, 3])
def test_gibbs_leaves_the_law_alone(p, n_gibbs_steps, rng):
    # Slips: expit(x) for expit(2x), spins in {0, 1}, variance for standard deviation, no noise.
    machine = machine_from(p)
    v, _ = oracles.sample_exact(p, N_CHAINS, rng)
    v = gibbs(machine, v, n_gibbs_steps, rng)
    assert_joint_law(p, v, machine.sample_hidden(v, rng))


def test_visible_kernel_leaves_the_joint_law_alone(p, rng):
    _, h = oracles.sample_exact(p, N_CHAINS, rng)
    assert_joint_law(p, machine_from(p).sample_visible(h, rng), h)


@pytest.mark.parametrize("n_gibbs_steps", [0, 1, 2, 3])
def test_gibbs_takes_as_many_steps_as_it_is_told(p, n_gibbs_steps, rng):
    # Slip: one step too many or too few.
    machine, start = machine_from(p), np.zeros(8)
    start[np.argmin(hidden_law(p))] = 1
    h = np.repeat(hidden_states(p)[start == 1], N_CHAINS, axis=0)
    v = gibbs(machine, machine.sample_visible(h, rng), n_gibbs_steps, rng)
    _, _, law = chain(p, start, n_gibbs_steps + 1)
    assert_law(machine.sample_hidden(v, rng), hidden_states(p), law)


def test_no_step_is_no_change(p, rng):
    v, _ = oracles.sample_exact(p, 5, rng)
    before = rng.bit_generator.state
    np.testing.assert_array_equal(gibbs(machine_from(p), v, 0, rng), v)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_are_states_in_the_precision_of_the_machine(p, dtype, rng):
    # Slip: spins in {0, 1}, chain starts included.
    machine = machine_from(p, dtype)
    start = sample_base(machine, 50, rng)
    for v in (start, gibbs(machine, start, 2, rng)):
        assert v.dtype == dtype
        if not p.is_gaussian:
            assert set(np.unique(v)) == set(p.visible_values)
    h = machine.sample_hidden(v, rng)
    assert h.dtype == dtype
    assert set(np.unique(h)) == set(p.hidden_values)


def test_base_is_the_machine_without_weights(p, rng):
    uncoupled = p.replace(weights=0 * p.weights)
    v = sample_base(machine_from(p), N_CHAINS, rng)
    assert_mean(v, oracles.mean_visible(uncoupled, hidden_states(p)[:1])[0])
    assert_mean(
        (v - oracles.mean_visible(uncoupled, hidden_states(p)[:1])[0]) ** 2,
        oracles.variance_visible(uncoupled, hidden_states(p)[:1])[0],
    )


def test_sparse_chains_start_as_dense_ones(seed, rng):
    p = oracles.random_parameters("bernoulli", 6, 4, rng, offsets=False)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (20, 6))
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    np.testing.assert_array_equal(
        gibbs(machine, sparse.csr_array(v), 3, one), gibbs(machine, v, 3, other)
    )
