"""The average of the parameters over the updates."""

import numpy as np
import oracles
import pytest
from core.models import CASES, assert_same_arrays, case_id, machine_from, model, sized

from skrbm.core.centering import recenter
from skrbm.core.training.part import Step
from skrbm.core.training.parts.average import N_ALL, RECENCY, STRIDE, Average, averaged
from skrbm.core.training.state import TrainingState

N_UPDATES = 7


def add(state, machine):
    """Average one more machine."""
    Average().after_step(Step(machine, None, None, 0.0, state, None), machine)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", [c for c in CASES if not c[3]], ids=case_id)
def test_average_weighs_updates_by_the_third_power_of_their_number(case, dtype, seed):
    # Slips: an average of the start, a horizon, uniform weights, precision that is raised.
    models = [machine_from(model(case, seed + k), dtype) for k in range(N_UPDATES)]
    state = TrainingState(np.zeros((1, case[2]), dtype))
    assert averaged(models[0], state) is models[0]
    for machine in models:
        add(state, machine)
    t = np.arange(1, N_UPDATES + 1)
    weights = t * (t + 1) * (t + 2)
    average = averaged(models[-1], state)
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
    later = rng.random(len(p.weights)), rng.random(3)
    state = TrainingState(np.zeros((1, 3)), visible_offset=later[0], hidden_offset=later[1])
    for _ in range(3):
        add(state, recenter(machine_from(p), *offsets))
    average = averaged(machine_from(model(sized(kind, 4, 3), seed + 1)), state)
    assert average.arrays.keys() == average.parameters.keys()
    assert_same_arrays(average.parameters, machine_from(p).parameters, atol=1e-12)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_pending_updates_are_averaged_in_centered_coordinates(kind, seed, rng):
    # Slips: plain parameters of the last update, offsets other than those of training.
    first, last = (machine_from(model(sized(kind, 4, 3), seed + k)) for k in (0, 1))
    old, new = ((rng.random(len(first.weights)), rng.random(3)) for _ in range(2))
    state = TrainingState(np.zeros((1, 3)), visible_offset=new[0], hidden_offset=new[1])
    centered, n_pending = recenter(first, *old), 4
    for _ in range(N_ALL + n_pending):
        add(state, centered)
    share = n_pending * (1 + RECENCY) / (N_ALL + n_pending + RECENCY)
    blend = recenter(last, *new).astype(np.float64, copy=True)
    blend.assign({n: share * a + (1 - share) * centered.arrays[n] for n, a in blend.arrays.items()})
    expected = recenter(blend, None, None).parameters
    assert_same_arrays(averaged(last, state).parameters, expected, atol=1e-12)


def test_average_starts_anew_in_other_coordinates(seed):
    p = model(("bernoulli", 4, 3, 0), seed)
    offsets = {"visible_offset": np.ones(4), "hidden_offset": np.ones(3)}
    state, machine = TrainingState(np.zeros((1, 3)), **offsets), machine_from(p)
    add(state, machine_from(model(("bernoulli", 4, 3, 0), seed + 1)))
    add(state, recenter(machine, *offsets.values()))
    assert state.parts["average"]["n_averaged"] == 1
    assert_same_arrays(averaged(machine, state).parameters, machine.parameters, atol=1e-12)


@pytest.mark.parametrize("n_pending", [0, 4])
def test_average_of_many_updates_takes_some_for_those_before_them(n_pending, seed):
    # Slips: the weight of one update for that of ten; the last few left out.
    p = model(("bernoulli", 4, 3, 0), seed)
    state, machine = TrainingState(np.zeros((1, 3))), machine_from(p)
    n_updates = N_ALL + 20 * STRIDE + n_pending
    for t in range(1, n_updates + 1):
        machine.weights[...] = t
        add(state, machine)
    t = np.arange(1, n_updates + 1)
    weights = t * (t + 1) * (t + 2)
    mean = (weights * t).sum() / weights.sum()
    average = averaged(machine, state).weights
    assert mean < average.min() <= average.max() < mean + STRIDE
    before = average.copy()
    machine.weights[...] += 100
    share = n_pending * (1 + RECENCY) / (n_updates + RECENCY)
    np.testing.assert_allclose(averaged(machine, state).weights, before + 100 * share, rtol=1e-12)
