"""Pseudo-likelihood against enumeration and quadrature, its estimate against itself."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    DISCRETE,
    assert_mean,
    case_id,
    machine_from,
    model,
    visible_states,
)
from scipy import sparse

from skrbm.core.likelihood import pseudo


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


def test_pseudo_likelihood_is_the_sum_of_conditionals(p, rng):
    # Slips: a temperature lost for spins, a quadrature too coarse, log of a clipped probability.
    v = visible_states(p, rng)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, oracles.log_pseudo_likelihood(p, v), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", DISCRETE)
def test_a_row_does_not_matter_to_the_score_of_another(kind, seed, monkeypatch):
    # Slip: one grey row in a block, for which all others take its way, slower and less exact.
    p = model((kind, 4, 3, 0), seed)
    machine, asked, of_any = machine_from(p), [], pseudo._log_conditional
    v = np.full((5, 4), machine.visible.states[1], dtype=float)
    v[3, 1] = 0.3

    def log_conditional(machine, bounds, states, *others):
        asked.append(states.tolist())
        return of_any(machine, bounds, states, *others)

    alone = np.concatenate([pseudo.pseudo_likelihood(machine, row[None]) for row in v])
    monkeypatch.setattr(pseudo, "_log_conditional", log_conditional)
    actual = pseudo.pseudo_likelihood(machine, v)
    np.testing.assert_allclose(actual, alone, rtol=0, atol=1e-12)
    assert asked == [[[value]] for value in v[3]]


@pytest.mark.parametrize("kind", DISCRETE)
def test_pseudo_likelihood_of_extreme_models_is_finite_and_exact(kind, rng):
    # Slips: log(1 + exp(x)) that overflows; log(max(probability, eps)).
    p = oracles.random_parameters(kind, 4, 3, rng, scale=2000.0)
    v = visible_states(p, rng)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
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
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_number_of_jobs_does_not_change_a_bit(kind, rng, monkeypatch):
    p = oracles.random_parameters(kind, 3, 2, rng)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (101, 3))
    whole = pseudo.pseudo_likelihood(machine, v)
    monkeypatch.setattr(pseudo, "BLOCK_ELEMENTS", 20)
    alone, together = (pseudo.pseudo_likelihood(machine, v, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_estimate_from_some_flips_is_unbiased(kind, seed, rng):
    # Slips: not scaled up to all units; the first unit of a row more likely than the last.
    p = oracles.random_parameters(kind, 5, 3, rng)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (4, 5))
    exact = pseudo.pseudo_likelihood(machine, v)
    for n_flips in (1, 2, 3):
        draws = [pseudo.estimate_pseudo_likelihood(machine, v, n_flips, rng) for _ in range(400)]
        assert_mean(draws, exact)
        one, other = (
            pseudo.estimate_pseudo_likelihood(machine, v, n_flips, np.random.default_rng(seed))
            for _ in range(2)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
@pytest.mark.parametrize("n_visible", [1, 4, 7])
def test_estimate_from_all_flips_is_exact(kind, n_visible, rng):
    # Slips: a unit that comes twice; quadrature nodes of another row's unit.
    p = oracles.random_parameters(kind, n_visible, 3, rng)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (9, n_visible))
    estimate = pseudo.estimate_pseudo_likelihood(machine, v, n_visible, rng)
    np.testing.assert_allclose(estimate, pseudo.pseudo_likelihood(machine, v), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_monitor_is_exact_where_that_is_cheap(kind, rng):
    p = oracles.random_parameters(kind, 3, 2, rng)
    machine = machine_from(p)
    v = rng.choice([0.0, 1.0], (pseudo.MONITOR_ROWS[0], 3))
    expected = pseudo.pseudo_likelihood(machine, v).mean()
    np.testing.assert_allclose(pseudo.monitor(machine, v), expected, rtol=0, atol=1e-9)
    if not p.is_gaussian:
        sparse_score = pseudo.monitor(machine_from(p), sparse.csr_array(v))
        np.testing.assert_allclose(sparse_score, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n_passed", "n_flips"), [(None, 5), (10**9, 10), (1, 5)])
def test_monitor_of_a_large_model_looks_at_a_few_units_and_at_the_same_ones(
    n_passed, n_flips, rng, monkeypatch
):
    # Slips: a cost that does not follow the pass, or has no bounds.
    p = oracles.random_parameters("bernoulli", 30, 20, rng, scale=0.1)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (50, 30))
    looks = []
    monkeypatch.setattr(pseudo, "MONITOR_EVALUATIONS", (5 * 50 * 20, 10 * 50 * 20))
    original = pseudo._log_conditional
    monkeypatch.setattr(
        pseudo, "_log_conditional", lambda *args: looks.append(args[3]) or original(*args)
    )
    assert pseudo.monitor(machine, v, n_passed) == pseudo.monitor(machine, v, n_passed)
    assert np.size(looks) == 2 * n_flips * 50


@pytest.mark.parametrize("width", [100, 1000, 3000, 1e6])
def test_monitor_never_integrates_over_very_wide_laws(width, rng, monkeypatch):
    # Slip: a diverging model of three units that takes ten seconds for every pass.
    p = oracles.random_parameters("cho", 3, 2, rng)
    machine, v = machine_from(p), rng.normal(size=(20, 3))
    machine.weights[...] = width
    looks = []
    monkeypatch.setattr(pseudo, "_log_conditional", lambda *args: looks.append(1) or np.zeros(20))
    assert np.isnan(pseudo.monitor(machine, v)) == (width > 100) == (not looks)
