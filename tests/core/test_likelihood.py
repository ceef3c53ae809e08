"""Partition function, exact gradient and pseudo-likelihood against enumeration and quadrature."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    DISCRETE,
    assert_same_arrays,
    case_id,
    machine_from,
    model,
    renamed,
    visible_states,
)
from scipy import sparse

from skrbm.core import likelihood


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


@pytest.fixture(params=["either", "visible", "hidden"])
def enumerated(request, p, monkeypatch):
    """Which layer the sums go over: the smaller one, or one that is forced."""
    if request.param == "visible" and not p.is_gaussian:
        monkeypatch.setattr(likelihood, "_enumerable", lambda machine: machine)
    elif request.param == "hidden":
        monkeypatch.setattr(likelihood, "_enumerable", lambda machine: machine.transposed)
    return request.param


def test_log_partition_sums_over_all_states(p, enumerated):
    # Slip: the Gaussian integral's normaliser or its mixed term a'Uh left out.
    actual = likelihood.log_partition(machine_from(p))
    np.testing.assert_allclose(actual, oracles.log_partition(p), rtol=0, atol=1e-8)


def test_gradient_is_that_of_the_log_likelihood(p, enumerated, rng):
    # Slips: sigma-gradient with 1 / (2 sigma^3); E[h] = p for spins; +h'Wv in the energy alone;
    # sums in place of means; goodfellow's bias without the pull of the hidden units.
    v = visible_states(p, rng)[:7]
    machine = machine_from(p)
    positive, negative = machine.gradient(v), likelihood.expected_gradient(machine)
    actual = {name: array - negative[name] for name, array in positive.items()}
    expected = oracles.log_likelihood_gradient(p, v)
    assert_same_arrays(renamed(actual), expected, atol=1e-6)


def test_sums_do_not_depend_on_the_blocks(p, monkeypatch):
    # Slip: the blocks' averages averaged in place of their sums added.
    machine = machine_from(p)
    whole = likelihood.log_partition(machine), likelihood.expected_gradient(machine)
    monkeypatch.setattr(likelihood, "BLOCK_STATES", 3)
    np.testing.assert_allclose(likelihood.log_partition(machine), whole[0], rtol=0, atol=1e-12)
    assert_same_arrays(likelihood.expected_gradient(machine), whole[1], atol=1e-12)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_layers_too_large_to_enumerate_are_refused(kind, rng):
    n_units = likelihood.MAX_UNITS + 1
    machine = machine_from(oracles.random_parameters(kind, n_units, n_units, rng))
    message = rf"{likelihood.MAX_UNITS} discrete units, .* {n_units} visible and {n_units} hidden"
    for question in (likelihood.log_partition, likelihood.expected_gradient):
        with pytest.raises(ValueError, match=message):
            question(machine)


def test_pseudo_likelihood_is_the_sum_of_conditionals(p, rng):
    # Slips: a temperature lost for spins, a quadrature too coarse, log of a clipped probability.
    v = visible_states(p, rng)
    actual = likelihood.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, oracles.log_pseudo_likelihood(p, v), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", DISCRETE)
def test_pseudo_likelihood_of_extreme_models_is_finite_and_exact(kind, rng):
    # Slips: log(1 + exp(x)) that overflows; log(max(probability, eps)).
    p = oracles.random_parameters(kind, 4, 3, rng, scale=2000.0)
    v = visible_states(p, rng)
    actual = likelihood.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, oracles.log_pseudo_likelihood(p, v), rtol=1e-10, atol=1e-6)
    assert actual.min() < -1000


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("kind", DISCRETE)
def test_values_between_the_states_are_compared_with_their_mirror_image(kind, offsets, rng):
    # Slip: v_i rounded or thresholded, as if a grey pixel were black or white.
    p = oracles.random_parameters(kind, 4, 3, rng, offsets=offsets)
    low, high = p.visible_values
    v = rng.uniform(low, high, (5, 4))
    expected = 0
    for i in range(4):
        mirrored = v.copy()
        mirrored[:, i] = low + high - v[:, i]
        difference = oracles.free_energy(p, v) - oracles.free_energy(p, mirrored)
        expected = expected - np.logaddexp(0, difference)
    actual = likelihood.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_number_of_jobs_does_not_change_a_bit(kind, rng, monkeypatch):
    p = oracles.random_parameters(kind, 3, 2, rng)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (101, 3))
    whole = likelihood.pseudo_likelihood(machine, v)
    monkeypatch.setattr(likelihood, "BLOCK_ELEMENTS", 20)
    alone, together = (likelihood.pseudo_likelihood(machine, v, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_monitor_is_the_mean_over_spread_rows(kind, rng):
    p = oracles.random_parameters(kind, 3, 2, rng)
    machine = machine_from(p)
    n_rows = likelihood.MONITOR_ROWS
    v = rng.choice([0.0, 1.0], (2 * n_rows, 3))
    expected = likelihood.pseudo_likelihood(machine, v[::2]).mean()
    np.testing.assert_allclose(likelihood.monitor(machine, v), expected, rtol=0, atol=1e-12)
    if not p.is_gaussian:
        sparse_score = likelihood.monitor(machine_from(p), sparse.csr_array(v))
        np.testing.assert_allclose(sparse_score, expected, rtol=0, atol=1e-12)
