"""The average of the parameters over the updates."""

import numpy as np
import oracles
import pytest
from core.models import CASES, assert_same_arrays, case_id, machine_from, model, sized

from skrbm.core.centering import recenter
from skrbm.core.training.state import MANY, RECENCY, STRIDE, TrainingState

N_UPDATES = 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", [c for c in CASES if not c[3]], ids=case_id)
def test_average_weighs_updates_by_the_third_power_of_their_number(case, dtype, seed):
    # Slips: an average of the start, a horizon, uniform weights, precision that is raised.
    models = [machine_from(model(case, seed + k), dtype) for k in range(N_UPDATES)]
    state = TrainingState(np.zeros((1, case[2]), dtype))
    assert state.averaged(models[0]) is models[0]
    for machine in models:
        state.add_to_average(machine)
    t = np.arange(1, N_UPDATES + 1)
    weights = t * (t + 1) * (t + 2)
    average = state.averaged(models[-1])
    expected = {
        name: np.tensordot(weights / weights.sum(), [m.parameters[name] for m in models], 1)
        for name in average.parameters
    }
    assert {array.dtype for array in average.parameters.values()} == {np.dtype(dtype)}
    assert_same_arrays(average.parameters, expected, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_average_of_centered_machines_is_plain_and_does_not_know_the_origin(kind, seed, rng):
    # Slip: plain parameters averaged, which mixes the offsets with weights of other updates.
    p = model(sized(kind, 4, 3), seed)
    offsets = rng.random(len(p.weights)), rng.random(3)
    state = TrainingState(np.zeros((1, 3)))
    for _ in range(3):
        state.add_to_average(recenter(machine_from(p), *offsets))
    average = state.averaged(machine_from(model(sized(kind, 4, 3), seed + 1)))
    assert average.offsets == {}
    assert_same_arrays(average.parameters, machine_from(p).parameters, atol=1e-12)


def test_average_starts_anew_in_other_coordinates(seed):
    p = model(("bernoulli", 4, 3, 0), seed)
    state, machine = TrainingState(np.zeros((1, 3))), machine_from(p)
    state.add_to_average(machine_from(model(("bernoulli", 4, 3, 0), seed + 1)))
    state.add_to_average(recenter(machine, np.ones(4), np.ones(3)))
    assert state.n_averaged == 1
    assert_same_arrays(state.averaged(machine).parameters, machine.parameters, atol=1e-12)


@pytest.mark.parametrize("n_pending", [0, 4])
def test_average_of_many_updates_takes_some_for_those_before_them(n_pending, seed):
    # Slips: the weight of one update for that of ten; the last few left out.
    p = model(("bernoulli", 4, 3, 0), seed)
    state, machine = TrainingState(np.zeros((1, 3))), machine_from(p)
    n_updates = MANY + 20 * STRIDE + n_pending
    for t in range(1, n_updates + 1):
        machine.weights[...] = t
        state.add_to_average(machine)
    t = np.arange(1, n_updates + 1)
    weights = t * (t + 1) * (t + 2)
    mean = (weights * t).sum() / weights.sum()
    average = state.averaged(machine).weights
    assert mean < average.min() <= average.max() < mean + STRIDE
    before = average.copy()
    machine.weights[...] += 100
    share = n_pending * (1 + RECENCY) / (n_updates + RECENCY)
    np.testing.assert_allclose(state.averaged(machine).weights, before + 100 * share, rtol=1e-12)


def test_weights_are_compared_with_the_mean_of_a_plan_or_of_the_stream():
    # Slips: every call's own mean in a stream, so that single rows all weigh the same; rows that
    # are held out in the mean; rows without a weight among weighted ones taken for average ones.
    state, weight = TrainingState(np.zeros((1, 2))), np.array([1.0, 2.0, 9.0])
    assert state.relative_weight(None, 3, is_planned=False) is None
    np.testing.assert_allclose(
        state.relative_weight(weight, 3, np.array([0, 1]), is_planned=True), weight / 1.5
    )
    for w, mean in ((np.array([2.0]), 8 / 6), (np.array([13.0]), 3)):
        np.testing.assert_allclose(state.relative_weight(w, 1, is_planned=False), w / mean)
    np.testing.assert_allclose(state.relative_weight(None, 3, is_planned=False), [10 / 24] * 3)
