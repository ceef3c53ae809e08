"""Bennett's ratio along ladders against enumerated partition functions."""

import itertools

import numpy as np
import oracles
import pytest
from core.models import (
    balanced_model,
    case_id,
    machine_from,
    model,
    sized,
    started_layer,
)
from scipy import optimize, stats
from scipy.special import expit

from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood import bar
from skrbm.core.likelihood.bar import bridged_log_partition
from skrbm.core.likelihood.exact import log_partition

CASES = [sized(kind, 3, 3, offsets) for kind in oracles.KINDS for offsets in (0, 1)]


def path_to(p, dtype=np.float64):
    """Path from independent units with the model's own means and variances."""
    v, _ = oracles.sample_exact(p, 1_000, np.random.default_rng(0))
    base = started_layer(p, v.mean(axis=0), v.var(axis=0), len(v))
    return TemperedPath.to(machine_from(p, dtype), base)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_estimates_agree_with_enumeration_within_their_errors(case, seed, rng):
    # Slips: the sign of a ratio; free energies at a neighbour's bias but not its field; the base's
    # own partition function or the shift of a centered machine forgotten.
    p = balanced_model(case, seed)
    result = bridged_log_partition(path_to(p), 100, 200, rng)
    assert 0 < result.std_error < 0.1
    limit = stats.t.isf(1e-5, 99)
    assert abs(result.value - oracles.log_partition(p)) < limit * result.std_error


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spin", "cho"])
def test_standard_error_is_the_spread_of_estimates(kind, rng):
    # Slips: the error of all samples as if they were independent; errors of ratios of neighbours
    # added as if they shared none.
    p = oracles.random_parameters(kind, 8, 6, rng, scale={"spin": 2.0, "cho": 3.0}[kind])
    path = path_to(p)
    results = [bridged_log_partition(path, 20, 300, rng) for _ in range(60)]
    spread = np.std([r.value for r in results], ddof=1)
    assert 0.7 < np.mean([r.std_error for r in results]) / spread < 1.4


def test_ratio_is_that_of_least_variance(rng):
    # Slips: the two sides exchanged; an average of exponentials. Of normal laws of other widths.
    upper, lower = rng.normal(0, 1, 5_000), rng.normal(0, 2, 5_000)

    def difference(x):
        return x**2 / 8 - x**2 / 2  # energy of the wide law minus that of the narrow one

    pair = difference(upper), difference(lower)
    balance = optimize.brentq(
        lambda r: expit(r - pair[0]).mean() - expit(pair[1] - r).mean(), -5, 5, xtol=1e-13
    )
    assert bar._solve(*pair) == pytest.approx(balance, abs=1e-10)
    assert bar._solve(*pair) == pytest.approx(-np.log(2), abs=0.1)


@pytest.mark.slow
def test_ladder_sets_itself(rng):
    # Slips: as many temperatures for all models; evenly spaced ones where acceptance rates differ.
    easy = oracles.random_parameters("bernoulli", 4, 3, rng, scale=0.1)
    hard = oracles.random_parameters("bernoulli", 12, 8, rng, scale=4.0)
    n_betas = [
        bridged_log_partition(path_to(p), 20, 2_000, rng).n_temperatures for p in (easy, hard)
    ]
    assert n_betas[0] == 2
    assert n_betas[1] > 6
    places = bar._adapted(np.linspace(1, 0, 3), np.array([0.1, 1.0]), 100)
    assert len(places) == 1 + np.ceil(0.901 / bar.TARGET_REJECTION)
    assert (np.diff(places) < 0).all()
    np.testing.assert_allclose(places[[0, -1]], [1, 0])
    assert (places[:-1] > 0.45).all()
    assert len(bar._adapted(np.linspace(1, 0, 3), np.array([0.1, 1.0]), 2)) == 2


@pytest.mark.parametrize("kind", ["bernoulli", "cho", "composite"])
def test_number_of_jobs_does_not_change_a_bit(kind, seed):
    path = path_to(model(sized(kind, 4, 4, 1), seed))
    one, other = (
        bridged_log_partition(path, 120, 50, np.random.default_rng(seed), n_jobs)
        for n_jobs in (1, 2)
    )
    assert one == other


@pytest.mark.slow
def test_extreme_models_give_finite_numbers(rng):
    # Slips: exp of a difference of energies; a ladder of no rung.
    for kind in oracles.KINDS:
        n_visible = {"composite": 6, "count": 3}.get(kind, 6)
        p = oracles.random_parameters(kind, n_visible, 5, rng, scale=300.0)
        for dtype in (np.float32, np.float64):
            result = bridged_log_partition(path_to(p, dtype), 10, 60, rng)
            assert np.isfinite([result.value, result.effective_sample_size]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "cho", "categorical"])
def test_random_models_of_a_dozen_units(kind, rng):
    """Nearly all exact values are within four standard errors."""
    n_hits = 0
    for scale in itertools.islice(itertools.cycle([0.5, 1.0, 1.5, 2.0]), 12):
        n_visible, n_hidden = rng.integers(2, [13, 11])
        p = oracles.random_parameters(kind, n_visible, n_hidden, rng, offsets=False, scale=scale)
        result = bridged_log_partition(path_to(p), 50, 300, rng)
        n_hits += abs(result.value - log_partition(machine_from(p))) < 4 * result.std_error
    assert n_hits >= 11


def test_a_start_that_is_remembered_is_part_of_the_error(rng):
    """All ladders forget the same start: they agree on a value that is not yet the right one.

    Slips: the spread between ladders alone; an error that grows where nothing drifts.
    """
    still = rng.normal(0, 0.5, (2, 1, 200, 100))
    drifting = still + (np.arange(200) < 100)[:, None]
    one, other = (bar._bridge(differences, 0.0) for differences in (still, drifting))
    assert one.std_error < 0.01
    assert other.value > 0.4
    assert other.std_error > 0.4
