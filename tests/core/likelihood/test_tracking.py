"""Partition functions along a sequence of models against enumerated ones."""

import numpy as np
import oracles
import pytest
from core.models import assert_mean, draw_rows, machine_from, sized, started_layer

from skrbm.core.likelihood.tracking import PartitionTracker

N_TRACKERS, N_CHAINS = 100, 25
FEW_TRACKERS = {"n_trackers": 50, "n_chains": 60}  # of which a mean has a smaller error


def sequence(kind, rng, scales=(0.2, 0.5, 0.8)):
    """Models of one kind, and a base layer that resembles the first."""
    _, n_visible, n_hidden, _ = sized(kind, 4, 3)
    models = [oracles.random_parameters(kind, n_visible, n_hidden, rng, scale=s) for s in scales]
    if kind == "count":  # whose numbers of a few strong fields have no estimable weights
        models = [p.replace(weights=0.3 * p.weights) for p in models]
    v = oracles.sample_exact(models[0], 500, rng)[0]
    return models, started_layer(models[0], v.mean(axis=0), v.var(axis=0), len(v))


class TrackerOfTheSameChains(PartitionTracker):
    """Chains are kept, since to take the better of two biases the mean; few steps on every way."""

    max_std_error = np.inf
    base_step_factor = 1

    def _better(self, chains, anchors):
        return chains


def tracker_with(kind=PartitionTracker, **attributes):
    """Type of trackers with other attributes."""
    return type(kind.__name__, (kind,), attributes)


def ratios(
    models,
    base,
    rng,
    max_steps,
    n_trackers=N_TRACKERS,
    anchors=None,
    kind=PartitionTracker,
    n_chains=N_CHAINS,
):
    """Estimates over exact partition functions, (n_trackers, n_models), and the last results."""
    machines = [machine_from(p) for p in models]
    exact = [oracles.log_partition(p) for p in models]
    rows, results = [], []
    for _ in range(n_trackers):
        tracker = kind(base, machines[0], rng, n_chains=n_chains)
        results = [tracker.follow(machine, max_steps, anchors) for machine in machines]
        rows.append([*(r.value for r in results), results[-1].std_error])
    rows = np.array(rows)
    return np.exp(rows[:, :-1] - exact), rows[:, -1]


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", oracles.KINDS)
@pytest.mark.parametrize("few", [0.5, 1.0])
def test_mean_ratio_to_the_exact_partition_function_is_one(kind, few, rng):
    # Slips: weights taken after the step; a step at the model that is left; weights kept when the
    # chains are drawn anew; the shift of a centered machine forgotten or of the wrong sign. Drawn
    # anew at times, always.
    models, base = sequence(kind, rng)
    tracker = tracker_with(TrackerOfTheSameChains, min_ess_share=few)
    means, _ = ratios(models, base, rng, 3, **FEW_TRACKERS, kind=tracker)
    assert_mean(means, 1)


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_jumps_on_the_way_leave_the_mean_ratio_at_one(kind, rng):
    # Slips: a jump at the model that is left, or by the last one's weights.
    models, base = sequence(kind, rng)
    tracker = tracker_with(TrackerOfTheSameChains, jump_pause=1)
    rows = draw_rows(models[1], 5, rng)
    means, _ = ratios(models, base, rng, 3, **FEW_TRACKERS, anchors=rows, kind=tracker)
    assert_mean(means, 1)


def two_modes(tilts, rng):
    """Models of six bits that are mostly all 0 or all 1, in proportions that change."""
    models = [
        oracles.Parameters(
            "spin", np.full((6, 2), 2.0), np.full(6, t), *(np.zeros(n) for n in (2, 6, 2))
        )
        for t in tilts
    ]
    return models, started_layer(models[0], np.zeros(6), np.ones(6), 100)


@pytest.mark.slow
def test_modes_far_apart_are_not_lost(rng):
    # Slips: jumps to the rows, but no start from draws around them; such a start though the chains
    # have found more.
    models, base = two_modes([0.2, 0.1, 0.0, -0.1, -0.2], rng)
    rows = np.repeat([[-1.0], [1.0]], 6, axis=1)
    means, stated = ratios(models, base, rng, 4, 30, rows)
    assert np.sqrt(np.mean(np.log(means[:, -1]) ** 2)) < 0.3
    assert stated.max() < 0.3
    # Rows of one mode alone do not take away what the chains know of the other.
    models, base = two_modes(np.full(5, 0.01), rng)
    means, _ = ratios(models, base, rng, 40, 30, rows[:1])
    assert np.median(np.abs(np.log(means[:, -1]))) < 0.3


@pytest.mark.slow
def test_chains_that_a_model_left_behind_are_exchanged(rng):
    # Slips: chains from the base that are never taken, or that start in the model. Strong models and
    # weak ones by turns, with one step between.
    errors = []
    for unsure in (0.5, np.inf):
        tracker = tracker_with(max_std_error=unsure, base_step_factor=100)
        stream = np.random.default_rng(0)
        for _ in range(6):
            models, base = sequence("bernoulli", stream, (0.1, 2.0, 0.1, 2.0))
            means, _ = ratios(models, base, rng, 1, 50, kind=tracker)
            errors.append(np.log(means[:, -1]))
    exchanged, kept = np.sqrt(np.mean(np.square(errors).reshape(2, -1), axis=1))
    assert exchanged < 0.75 * kept


def test_correction_is_what_exchanged_chains_add(rng):
    # Slips: the whole value; a rise where chains stay.
    models, base = sequence("bernoulli", rng, (0.1, 2.0))
    machines = [machine_from(p) for p in models]
    n_exchanges = 0
    for trial in range(10):
        values = {}
        for unsure in (0.0, np.inf):
            stream, kind = np.random.default_rng(trial), tracker_with(max_std_error=unsure)
            tracker = kind(base, machines[0], stream, n_chains=25)
            values[unsure] = [tracker.follow(machine, 1).value for machine in machines]
            if unsure == 0.0:
                correction = tracker.correction
        assert correction == pytest.approx(values[0.0][1] - values[np.inf][1], abs=1e-12)
        assert tracker.correction == 0
        n_exchanges += correction > 0
    assert 0 < n_exchanges < 10


def test_correction_stays_finite_where_a_model_is_not(rng):
    # Slip: NaN minus NaN, with which no pass is ever better again.
    (p, *_), base = sequence("bernoulli", rng)
    rows = draw_rows(p, 5, rng)
    tracker = PartitionTracker(base, machine_from(p), rng, n_chains=25)
    machine = machine_from(p)
    machine.weights[0, 0] = np.nan
    with np.errstate(all="ignore"):
        tracker.follow(machine, 2, rows)
    assert tracker.correction == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spin", "cho", "categorical"])
def test_standard_error_is_the_spread_of_estimates(kind, rng):
    # Slip: the weights since the chains were last drawn anew alone.
    models, base = sequence(kind, rng, (0.3, 0.9, 0.5, 1.1))
    means, stated = ratios(models, base, rng, 4, kind=TrackerOfTheSameChains)
    spread = np.std(np.log(means[:, -1]))
    assert 0.7 < np.sqrt(np.mean(stated**2)) / spread < 1.4


@pytest.mark.slow
def test_standard_error_counts_modes_that_chains_do_not_leave(rng):
    # Slip: families forgotten whenever chains are drawn anew. Two modes, between which the weight
    # moves to and fro, while the chains stay: what was drawn first decides later.
    tilts = [*np.linspace(0, 1.5, 3), *np.linspace(1.5, -1.5, 6), *np.linspace(-1.5, 1.5, 6)]
    models = [
        oracles.Parameters(
            "spin", np.full((4, 2), 2.0), np.full(4, tilt / 4), *(np.zeros(n) for n in (2, 4, 2))
        )
        for tilt in tilts
    ]
    base = started_layer(models[0], np.zeros(4), np.ones(4), 100)
    tracker = tracker_with(TrackerOfTheSameChains, min_ess_share=0.9)
    means, stated = ratios(models, base, rng, 4, 60, kind=tracker)
    spread = np.std(np.log(means[:, -1]))
    assert 0.6 < np.sqrt(np.mean(stated**2)) / spread < 1.7


def test_steps_are_as_many_as_the_weights_ask_for(rng):
    # Slip: always as many as allowed.
    models, base = sequence("bernoulli", rng)
    near, far = machine_from(models[0]), machine_from(models[2])
    tracker = PartitionTracker(base, near, rng, n_chains=100)
    first = tracker.follow(near, 50)
    again = tracker.follow(near, 50)
    assert first.n_temperatures > again.n_temperatures == 1
    assert again.value == pytest.approx(first.value, abs=1e-12)
    assert again.std_error == pytest.approx(first.std_error, rel=1e-12)
    assert tracker.follow(far, 1).n_temperatures == 1


def test_what_happens_to_the_machine_later_does_not_matter(rng):
    # Slip: arrays shared with a machine that training changes in place.
    models, base = sequence("cho", rng)
    values = []
    for changes in (False, True):
        machine, stream = machine_from(models[0]), np.random.default_rng(0)
        tracker = PartitionTracker(base, machine, stream, n_chains=100)
        tracker.follow(machine, 5)
        if changes:
            for array in machine.parameters.values():
                array += 1
        values.append(tracker.follow(machine_from(models[1]), 5).value)
    assert values[0] == values[1]


def test_single_precision_agrees_with_double(rng):
    models, base = sequence("bernoulli", rng)
    values = []
    for dtype in (np.float32, np.float64):
        stream = np.random.default_rng(0)
        tracker = PartitionTracker(base, machine_from(models[0]), stream, dtype=dtype, n_chains=100)
        results = [tracker.follow(machine_from(p), 20) for p in models]
        values.append(results[-1].value)
    assert abs(values[0] - values[1]) < 4 * results[-1].std_error


@pytest.mark.parametrize("n_chains", [10, 100])
def test_error_allows_for_a_mode_that_no_chain_is_in(n_chains, rng):
    """Chains of equal weights do not show one of less than a chain's share: 5.6 errors too low.

    Slip: an error of zero where all chains agree.
    """
    models, _ = sequence("bernoulli", rng)
    machine = machine_from(models[0].replace(weights=0 * models[0].weights))
    tracker = PartitionTracker(machine.visible, machine, rng, n_chains=n_chains)
    assert tracker.follow(machine, 5).std_error >= 1 / n_chains
