"""Autocorrelation times and R-hat against exact spectra and hand-made chains."""

import numpy as np
import oracles
import pytest
from core.models import machine_from
from scipy.special import softmax

from skrbm.core.diagnostics import (
    ChainDiagnostics,
    autocorrelation_time,
    chain_memory,
    split_r_hat,
    trace_chains,
)
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli


def autoregressive(slope, shape, rng):
    """Stationary chains of autocorrelation slope ** t: a time of (1 + slope) / (1 - slope)."""
    noise = rng.normal(size=shape) * np.sqrt(1 - slope**2)
    noise[:, 0] = rng.normal(size=shape[0])
    for step in range(1, shape[1]):
        noise[:, step] += slope * noise[:, step - 1]
    return noise


def gibbs_kernel(p):
    """Probability of the next visible state given the last one: (n_states, n_states)."""
    energy = oracles.energy(p, oracles.visible_states(p), oracles.hidden_states(p))
    return softmax(-energy, axis=1) @ softmax(-energy, axis=0).T


def exact_time(kernel, probabilities, values):
    """Integrated autocorrelation time of a function of the states of a chain."""
    deviation = values - probabilities @ values
    # Sum of all powers of the kernel but for its limit, applied to the deviation.
    limit = np.tile(probabilities, (len(values), 1))
    total = np.linalg.solve(np.eye(len(values)) - kernel + limit, deviation)
    variance = probabilities @ deviation**2
    return 2 * (probabilities @ (deviation * total)) / variance - 1


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.8])
@pytest.mark.parametrize("shape", [(1, 100_000), (1_000, 100)])
def test_time_of_autoregressive_chains(slope, shape, rng):
    # Slips: one half for one at lag zero; the mean of each chain of its own subtracted. The error of
    # the estimate is that of Sokal's eq. 3.19, 2 (2 M + 1) / n.
    expected = (1 + slope) / (1 - slope)
    n = shape[0] * shape[1]
    error = expected * np.sqrt(2 * (2 * 5 * max(expected, 1) + 1) / n)
    bias = expected * np.exp(-5) * 2
    assert abs(autocorrelation_time(autoregressive(slope, shape, rng)) - expected) < (
        4 * error + bias + 2 / 1_000
    )


@pytest.mark.parametrize("n_steps", [10, 37, 64])
def test_time_is_that_of_sums_over_pairs_of_steps(n_steps, rng):
    # Slips: a circular transform, in which the beginning of a chain follows its end; sums divided by
    # the number of steps, not of pairs; a window of another width.
    trace = autoregressive(0.7, (3, n_steps), rng) + np.linspace(0, 1, n_steps)
    deviation = trace - trace.mean()
    covariance = [np.mean(deviation[:, t:] * deviation[:, : n_steps - t]) for t in range(n_steps)]
    times = 2 * np.cumsum(covariance) / covariance[0] - 1
    window = next((t for t in range(n_steps) if t >= 5 * times[t]), n_steps - 1)
    assert autocorrelation_time(trace) == pytest.approx(max(times[window], 0.01), rel=1e-9)


@pytest.mark.slow
def test_time_of_a_two_by_two_model_is_that_of_its_second_eigenvalue(rng):
    # Slip: a time of the states of h and v as if they were two steps.
    p = oracles.Parameters(
        "spin", np.full((2, 2), 0.6), np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    )
    kernel, law = gibbs_kernel(p), oracles.model_probabilities(p)
    second = np.sort(np.linalg.eigvals(kernel).real)[-2]
    expected = (1 + second) / (1 - second)
    assert 3 < expected < 10
    v = oracles.sample_exact(p, 1_000, rng)[0]
    result = trace_chains(machine_from(p), v, 1_000, rng)
    # The magnetisation is the eigenfunction here; the free energy is blind to the slow flips.
    assert result.autocorrelation_time == pytest.approx(expected, rel=0.05)
    fast = exact_time(kernel, law, oracles.free_energy(p, oracles.visible_states(p)))
    assert fast < expected / 2
    assert autocorrelation_time(result.free_energy) == pytest.approx(fast, rel=0.05)
    assert result.effective_sample_size == pytest.approx(1e6 / expected, rel=0.05)
    assert result.verdict.startswith("The chains mix: ")


def test_memory_of_a_two_by_two_model_is_a_power_of_its_second_eigenvalue(rng):
    # Slips: the two lags exchanged; an exponent of n_steps / LAG; drawn hidden states for means.
    p = oracles.Parameters(
        "spin", np.full((2, 2), 1.8), np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    )
    second = np.sort(np.linalg.eigvals(gibbs_kernel(p)).real)[-2]
    v = oracles.sample_exact(p, 20_000, rng)[0]
    for n_steps in (50, 150):
        expected = second**n_steps
        assert 0.1 < expected < 0.9
        error = n_steps / 25 * expected / second**50 / np.sqrt(len(v))
        assert abs(chain_memory(machine_from(p), v, n_steps, rng) - expected) < 4 * error


@pytest.mark.parametrize("n_hidden", [2, 400])
@pytest.mark.parametrize(("weight", "expected"), [(0.0, 0.0), (2.0, 1.0)])
def test_uncoupled_and_frozen_chains_have_no_and_full_memory(n_hidden, weight, expected, rng):
    # Slips: rounding of what does not vary; of wide layers, the direction of least variance.
    bias = np.full(n_hidden, 0.3)
    weights = np.zeros((12, n_hidden))
    weights[:, :2] = weight
    zeros = np.zeros(12), np.zeros(n_hidden)
    p = oracles.Parameters("spin", weights, zeros[0], bias, *zeros)
    v = np.where(np.arange(100)[:, None] % 2, -1.0, 1.0) * np.ones((1, 12))
    assert abs(chain_memory(machine_from(p), v, 1_000, rng) - expected) < 0.1


def test_traces_are_those_of_the_chains(rng):
    # Slips: the free energy of the states before the step; the hidden draws in place of means.
    p = oracles.random_parameters("bernoulli", 4, 3, rng)
    v = oracles.sample_exact(p, 30, rng)[0]
    result = trace_chains(machine_from(p), v, 5, np.random.default_rng(1))
    again, stream = machine_from(p), np.random.default_rng(1)
    h = again.sample_hidden(v, stream)
    activations = []
    for step in range(5):
        v = again.sample_visible(h, stream)
        mean, h = again.hidden.mean_and_sample(again.hidden_field(v), stream)
        np.testing.assert_allclose(result.free_energy[:, step], oracles.free_energy(p, v))
        np.testing.assert_allclose(result.mean_activation[:, step], mean.mean(axis=1))
        activations.append(oracles.mean_hidden(p, v))
    variances = np.linalg.eigvalsh(np.cov(np.concatenate(activations).T, bias=True))
    np.testing.assert_allclose(result.principal_component.var(), variances[-1], rtol=1e-5)


@pytest.mark.parametrize("is_symmetric", [False, True])
def test_two_far_modes_are_seen(is_symmetric, rng):
    # Slips: R-hat of whole chains alone; without the third trace, modes of one energy and one mean
    # activation look alike.
    pattern = np.array([1.0, -1.0] if is_symmetric else [1.0, 1.0])
    weights = np.outer(np.ones(6), pattern)
    p = oracles.Parameters("spin", weights, *(np.zeros(n) for n in (6, 2, 6, 2)))
    v = np.where(rng.random((20, 1)) < 0.5, -1.0, 1.0) * np.ones((1, 6))
    result = trace_chains(machine_from(p), v, 500, rng)
    assert result.r_hat > 1.1
    assert result.effective_sample_size < 100
    assert result.verdict.startswith("The chains do not mix: R-hat is ")


def test_chains_of_an_easy_model_agree(rng):
    p = oracles.random_parameters("bernoulli", 6, 4, rng, scale=0.3)
    result = trace_chains(machine_from(p), oracles.sample_exact(p, 20, rng)[0], 1_000, rng)
    assert result.r_hat < 1.01
    assert result.effective_sample_size > 1_000


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_traces_that_are_not_finite_are_not_called_mixed(place, value, rng):
    """Slip: comparisons with NaN, which are false, and `max`, which drops a NaN that is not first."""
    traces = rng.standard_normal((3, 20, 1000))
    traces[place, 3, 500] = value
    result = ChainDiagnostics(*traces)
    assert result.verdict.startswith("The chains cannot be judged")
    assert np.isnan(result.r_hat)


def test_r_hat_sees_drifts_and_other_spreads(rng):
    # Slips: chains not split, so that a drift of all is no difference; distances from the median
    # left out, so that chains of one mean and other spreads look alike.
    same = rng.normal(size=(10, 400))
    assert split_r_hat(same) < 1.01
    assert split_r_hat(same + np.linspace(0, 2, 400)) > 1.1
    assert split_r_hat(same * np.linspace(0.3, 3, 10)[:, None]) > 1.1
    heavy = rng.standard_cauchy((10, 400))  # ranks have moments where values have none
    assert split_r_hat(heavy) < 1.05
    assert split_r_hat(heavy + np.linspace(0, 5, 10)[:, None]) > 1.1


def test_quantities_that_do_not_vary_are_no_sign_of_anything():
    for value in (0.0, 1e8, -0.1):
        constant = np.full((4, 50), value)
        assert autocorrelation_time(constant) == 1.0
        assert split_r_hat(constant) == 1.0
    frozen = np.repeat([[1.0], [2.0], [1.0], [2.0]], 50, axis=1)
    assert split_r_hat(frozen) > 1e6
    assert autocorrelation_time(frozen) > 10


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_time_of_a_trace_that_is_not_finite_is_not_a_number(value):
    # Slip: a comparison that NaN fails, as a constant quantity does.
    trace = np.random.default_rng(0).normal(size=(4, 50))
    trace[1, 7] = value
    with np.errstate(invalid="ignore"):
        assert np.isnan(autocorrelation_time(trace))


@pytest.mark.parametrize(("n_chains", "n_steps"), [(2, 4), (20, 25)])
def test_chains_have_at_most_as_many_independent_states_as_steps(n_chains, n_steps, rng):
    """Slip: noise in an estimate of the autocorrelation time of few steps."""
    machine = Machine(Bernoulli(np.zeros(8)), Bernoulli(np.zeros(4)), rng.normal(0, 0.3, (8, 4)))
    for _ in range(20):
        v = (rng.random((n_chains, 8)) < 0.5).astype(float)
        result = trace_chains(machine, v, n_steps, rng)
        assert result.effective_sample_size <= n_chains * n_steps
