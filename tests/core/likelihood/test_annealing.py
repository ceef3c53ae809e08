"""Annealed importance sampling against enumerated partition functions."""

import itertools
from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    assert_law,
    assert_mean,
    balanced_model,
    case_id,
    clamped_log_partition,
    hidden_law,
    hidden_states,
    machine_from,
    masks,
    model,
    sized,
    started_layer,
    tempered_energy,
    uncoupled_like,
    visible_layer,
    visible_states,
)
from scipy import stats
from scipy.special import logsumexp, softmax

from skrbm.core.chains.jumps import propose
from skrbm.core.chains.path import TemperedPath
from skrbm.core.draws import new_streams
from skrbm.core.likelihood import annealing
from skrbm.core.likelihood.annealing import (
    annealed_log_partition,
    inverse_temperatures,
    reversed_log_partition,
    tempered_states,
)
from skrbm.core.likelihood.exact import log_partition
from skrbm.core.likelihood.partition import attained_log_partition
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, Gaussian, Spin

N_CHAINS = 2_000
BALANCED = [sized(kind, 3, 3, offsets) for kind in oracles.KINDS for offsets in (0, 1)]


def path_to(p, dtype=np.float64):
    """Path from independent units with the model's own means and variances, by way of three rows.

    Chains may jump at every second temperature.
    """
    v, _ = oracles.sample_exact(p, 1_000, np.random.default_rng(0))
    base = started_layer(p, v.mean(axis=0), v.var(axis=0), len(v))
    path = TemperedPath.to(machine_from(p, dtype), base, v[:3])
    return replace(path, annealing_jump_pause=2)


@pytest.fixture(params=BALANCED, ids=case_id)
def balanced(request, seed):
    """Models whose weights have an error that can be estimated."""
    return balanced_model(request.param, seed)


@pytest.mark.every_kind
@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_steps_change_the_free_energy_as_enumeration_says(case, scale, seed, rng):
    # Slips: a beta that the hidden bias does not carry; 1 - beta on the base forgotten; a product
    # of factors that overflows.
    p = model(case, seed)
    p, base = p.replace(weights=scale * p.weights), uncoupled_like(p, rng)
    path, v = TemperedPath.to(machine_from(p), visible_layer(base)), visible_states(p, rng)
    energies = {
        beta: -logsumexp(-tempered_energy(p, base, beta, v, hidden_states(p)), axis=1)
        for beta in (0.0, 0.3, 0.31, 0.8, 1.0)
    }
    for beta in (0.0, 0.3, 0.8, 1.0):
        for other in (0.0, 0.31, 1.0):
            change = -annealing._anneal(path, v, [beta, other], rng)
            expected = energies[other] - energies[beta] + (other - beta) * path.energy_shift
            np.testing.assert_allclose(change, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_temperatures", [2, 3, 20])
def test_mean_weight_is_the_ratio_of_the_partition_functions(balanced, n_temperatures, rng):
    # Slips: weights taken after the step in place of before; the last temperature forgotten; a
    # step at the old temperature; the base's own partition function forgotten; a jump at the
    # temperature to come, or with the field of the machine itself. With two temperatures, it is
    # plain importance sampling.
    path = path_to(balanced)
    v = path.sample_base(N_CHAINS, rng)
    betas = inverse_temperatures(n_temperatures).tolist()
    log_ratio = oracles.log_partition(balanced) - path.base_log_partition - path.energy_shift
    weights = np.exp(annealing._anneal(path, v, betas, rng) - log_ratio)
    assert_mean(weights[:, None], 1)


@pytest.mark.every_kind
@pytest.mark.parametrize("n_temperatures", [10, 40])
def test_mean_inverse_weight_of_reversed_chains_is_the_inverse_ratio(balanced, n_temperatures, rng):
    # Slips: the sign of the weights; steps at the temperature that is left.
    path = path_to(balanced)
    v, _ = oracles.sample_exact(balanced, N_CHAINS, rng)
    betas = inverse_temperatures(n_temperatures)[::-1].tolist()
    log_ratio = oracles.log_partition(balanced) - path.base_log_partition - path.energy_shift
    weights = np.exp(annealing._anneal(path, v, betas, rng) + log_ratio)
    assert_mean(weights[:, None], 1)


def test_reversed_estimate_averages_the_inverse_weights(balanced, seed, rng):
    # Slip: the weights averaged, of which the estimate would tend to be too low again.
    path = path_to(balanced)
    v, _ = oracles.sample_exact(balanced, 40, rng)
    result = reversed_log_partition(path, v, 5, np.random.default_rng(seed))
    (stream,) = new_streams(np.random.default_rng(seed), 1)
    log_inverse = annealing._anneal(path, v, inverse_temperatures(5)[::-1].tolist(), stream)
    expected = path.base_log_partition + path.energy_shift - np.log(np.exp(log_inverse).mean())
    np.testing.assert_allclose(result.value, expected, rtol=1e-12)


@pytest.mark.every_kind
def test_estimates_agree_with_enumeration_within_their_errors(balanced, rng):
    # Slip: the average of the logarithms in place of the logarithm of the average.
    path, exact = path_to(balanced), oracles.log_partition(balanced)
    v, _ = oracles.sample_exact(balanced, 500, rng)
    for result in (
        annealed_log_partition(path, 500, 100, rng),
        reversed_log_partition(path, v, 100, rng),
    ):
        assert 0 < result.std_error < 0.2
        assert abs(result.value - exact) < stats.norm.isf(1e-6) * result.std_error


@pytest.mark.every_kind
def test_clamped_estimates_agree_with_sums_over_missing_units_within_their_errors(balanced, rng):
    # Slips: observed states that a step replaces; a base that counts the observed units, or the
    # hidden ones not; jumps that leave the observed states, or whose law sums over them.
    path = path_to(balanced)
    v, _ = oracles.sample_exact(balanced, 6, rng)
    is_observed = masks(balanced, len(v), rng)
    is_held = path.visible_base.by_column(is_observed)
    rows = np.where(is_held, v, np.nan)
    for row, clamped, observed in zip(v, rows, is_observed, strict=True):
        result = annealing.clamped_log_partition(path, clamped, observed, 500, 100, rng)
        exact = clamped_log_partition(balanced, row, observed)
        slack = stats.norm.isf(1e-6) * result.std_error + 1e-9
        assert result.std_error < 0.2
        assert abs(result.value - exact) < slack


@pytest.mark.slow
def test_standard_error_is_the_spread_of_estimates(rng):
    # Slips: the spread of the weights in place of their mean's; an error relative to nothing.
    p = oracles.random_parameters("bernoulli", 4, 3, rng, scale=2.0)
    path = path_to(p)
    results = [annealed_log_partition(path, 50, 20, rng) for _ in range(200)]
    spread = np.std([r.value for r in results], ddof=1)
    stated = np.mean([r.std_error for r in results])
    assert 0.7 < stated / spread < 1.4  # of 200 estimates the spread is known to five percent


def test_effective_sample_size_counts_equal_weights():
    for n_heavy in (1, 5, 20):
        log_weights = np.where(np.arange(20) < n_heavy, 100.0, -1000.0)
        result = annealing._average("ais", 3.0, log_weights, 7, 1)
        np.testing.assert_allclose(result.effective_sample_size, n_heavy)
        np.testing.assert_allclose(result.value, 103 + np.log(n_heavy / 20))


def test_forward_weights_err_low_and_reversed_ones_high(balanced, rng):
    # Slip: in reverse, the weights averaged in place of their inverses. By Jensen's inequality
    # the mean logarithm is a bound on either side.
    path, betas = path_to(balanced), inverse_temperatures(3)
    exact = oracles.log_partition(balanced) - path.base_log_partition - path.energy_shift
    forward = annealing._anneal(path, path.sample_base(N_CHAINS, rng), betas.tolist(), rng)
    v, _ = oracles.sample_exact(balanced, N_CHAINS, rng)
    reverse = -annealing._anneal(path, v, betas[::-1].tolist(), rng)
    for log_weights, sign in ((forward, 1), (reverse, -1)):
        error = log_weights.std() / np.sqrt(N_CHAINS)
        assert sign * (exact - log_weights.mean()) > 4 * error


@pytest.mark.every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_number_of_jobs_does_not_change_a_bit(kind, dtype, seed, rng):
    p = model(sized(kind, 4, 4, 1), seed)
    path = path_to(p, dtype)
    v, _ = oracles.sample_exact(p, 120, rng)
    v = v.astype(dtype)
    for run in (
        lambda r, n_jobs: annealed_log_partition(path, 120, 10, r, n_jobs),
        lambda r, n_jobs: reversed_log_partition(path, v, 10, r, n_jobs),
        lambda r, n_jobs: tempered_states(path, 120, 4, 5, r, n_jobs).tolist(),
    ):
        one, other = (run(np.random.default_rng(seed), n_jobs) for n_jobs in (1, 2))
        assert one == other


@pytest.mark.every_kind
def test_single_precision_agrees_with_double(balanced, seed):
    single, double = (
        annealed_log_partition(path_to(balanced, dtype), 200, 50, np.random.default_rng(seed))
        for dtype in (np.float32, np.float64)
    )
    assert abs(single.value - double.value) < 0.3 * np.hypot(single.std_error, double.std_error)


@pytest.mark.slow
def test_extreme_models_give_finite_numbers(rng):
    # Slips: exp of a log-weight; a product of factors that overflows.
    for kind in oracles.KINDS:
        n_visible = {"composite": 6, "count": 3}.get(kind, 6)
        p = oracles.random_parameters(kind, n_visible, 5, rng, scale=300.0)
        for dtype in (np.float32, np.float64):
            result = annealed_log_partition(path_to(p, dtype), 10, 30, rng)
            assert np.isfinite([result.value, result.effective_sample_size]).all()


def test_schedule_is_dense_near_the_model():
    for n_temperatures in (2, 3, 10, 10_000):
        betas = inverse_temperatures(n_temperatures)
        assert betas[0] == 0
        assert betas[-1] == 1
        steps = np.diff(betas)
        assert (steps > 0).all()
        assert len(betas) == n_temperatures
        assert n_temperatures < 3 or steps[-1] == steps.min() < steps[0]


@pytest.mark.slow
@pytest.mark.every_kind
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "categorical", "count", "composite"])
def test_tempered_states_follow_the_model(kind, seed, rng):
    p = balanced_model(
        (kind, {"composite": 6, "categorical": 5, "count": 2}.get(kind, 3), 3, 0), seed
    )
    v = tempered_states(path_to(p), 4_000, 4, 30, rng)
    states = oracles.visible_states(p)
    assert_law(v, states, softmax(-oracles.free_energy(p, states)))


def test_what_some_states_add_is_a_lower_bound(balanced, seed, rng):
    # Slips: a state counted twice; a hidden energy forgotten; draws that are not counted.
    exact, machine = oracles.log_partition(balanced), machine_from(balanced)
    v, h = oracles.sample_exact(balanced, 500, rng)
    assert attained_log_partition(machine, v[:3], rng) < exact
    stream, states = np.random.default_rng(seed), hidden_states(balanced)
    drawn, _ = propose(machine, v, len(v), np.random.default_rng(seed))
    is_drawn = (states[:, None] == drawn).all(axis=2).any(axis=1)
    expected = exact + np.log(hidden_law(balanced)[is_drawn].sum())
    np.testing.assert_allclose(attained_log_partition(machine, v, stream), expected, rtol=1e-10)
    h = np.concatenate([states, h])
    np.testing.assert_allclose(attained_log_partition(machine, v[:3], rng, h), exact, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("units", [Bernoulli, Spin, Gaussian])
def test_random_models_of_a_dozen_units(units, rng):
    """Nearly all exact values within four standard errors; benchmarks/quality/partition.py has
    the large version.
    """
    kind = {Bernoulli: "bernoulli", Spin: "spin", Gaussian: "cho"}[units]
    n_hits = 0
    for scale in itertools.islice(itertools.cycle([0.5, 1.0, 1.5, 2.0]), 20):
        n_visible, n_hidden = rng.integers(2, [13, 11])
        p = oracles.random_parameters(kind, n_visible, n_hidden, rng, offsets=False, scale=scale)
        path = path_to(p)
        result = annealed_log_partition(path, 100, 500, rng)
        n_hits += abs(result.value - log_partition(machine_from(p))) < 4 * result.std_error
    assert n_hits >= 18


def test_a_bound_does_not_ask_for_every_hidden_state(rng):
    """Thirty units that nothing pulls have a billion states, of which a hundred are drawn.

    Slips: what the drawn states alone add, 16 nats too low; a margin for a few draws of a hundred.
    """
    machine = Machine(Bernoulli(np.zeros(9)), Bernoulli(np.zeros(30)), np.zeros((9, 30)))
    exact = 39 * np.log(2)
    assert exact - 1 < attained_log_partition(machine, np.zeros((100, 9)), rng) <= exact + 1e-9
    assert exact - 8 < attained_log_partition(machine, np.zeros((9, 9)), rng) < exact - 6
