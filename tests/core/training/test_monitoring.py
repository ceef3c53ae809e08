"""What is recorded of a pass, and the judge of plateaus."""

import numpy as np
import oracles
import pytest
from core.models import machine_from, visible_states
from scipy import sparse

from skrbm.core.training.monitoring import Plateau, free_energy_gap, observe


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_observations_are_means_over_rows_and_chains(kind, rng):
    # Slips: sums, a gap with the wrong sign, probabilities in place of a spin's mean.
    p = oracles.random_parameters(kind, 4, 3, rng, offsets=False)
    v, h = oracles.sample_exact(p, 60, rng)
    machine = machine_from(p)
    seen = observe(machine, v, h)
    np.testing.assert_allclose(seen["mean_activation"], oracles.mean_hidden(p, v).mean())
    score = oracles.log_pseudo_likelihood(p, v).mean()
    np.testing.assert_allclose(seen["pseudo_likelihood"], score, atol=1e-6)
    assert observe(machine, v, h) == seen
    expected = oracles.free_energy(p, v[:30]).mean() - oracles.free_energy(p, v[30:]).mean()
    np.testing.assert_allclose(free_energy_gap(machine, v[:30], v[30:]), expected)
    if not p.is_gaussian:
        rows = sparse.csr_array(v)
        np.testing.assert_allclose(free_energy_gap(machine, rows[:30], rows[30:]), expected)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_chains_of_the_model_itself_are_as_likely_as_its_data(kind, rng):
    # Slip: chains whose visible states are those of another temperature, or means.
    p = oracles.random_parameters(kind, 4, 3, rng, offsets=False)
    v, _ = oracles.sample_exact(p, 100, rng)
    gaps = []
    for _ in range(20):
        _, h = oracles.sample_exact(p, 100, rng)
        gaps.append(observe(machine_from(p), v, h)["chain_gap"])
    exact = oracles.free_energy(p, oracles.sample_exact(p, 10_000, rng)[0])
    expected = exact.mean() - oracles.free_energy(p, v).mean()
    # the same visible draws serve all repeats, hence the error of a single one
    assert abs(np.mean(gaps) - expected) < 4 * exact.std() / np.sqrt(100)


def test_plateau_counts_scores_that_do_not_rise_enough():
    plateau = Plateau(tol=0.5, patience=2)
    assert [plateau.add(score) for score in (1.0, 2.0, 2.1, np.nan)] == [True, True, True, False]
    assert plateau.is_reached
    assert plateau.best == 2.1
    assert plateau.add(3.0)
    assert not plateau.is_reached


def test_gap_of_visible_states_is_large_where_the_model_is_wrong(rng):
    p = oracles.random_parameters("bernoulli", 4, 3, rng, offsets=False)
    v = visible_states(p, rng)
    best, worst = (v[[f(oracles.free_energy(p, v))]] for f in (np.argmin, np.argmax))
    assert free_energy_gap(machine_from(p), worst, best) > 0
