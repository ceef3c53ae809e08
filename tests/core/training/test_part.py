"""The seam: parts act in the hooks that they override, and training refuses what it cannot serve."""

import numpy as np
import pytest
from core.models import assert_same_arrays, machine_from, model, visible_states

from skrbm import BernoulliRBM
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import (
    ContrastiveDivergence,
    Exact,
    PersistentContrastiveDivergence,
)
from skrbm.core.training.part import Part, hooks
from skrbm.core.training.parts.damping import Damping
from skrbm.core.training.parts.jump_to_data import JumpToData
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer

HOOKS = ("draw_rows", "move_chains", "observe", "weigh_rows", "transform", "after_step")


class Noted(Part):
    """Part that takes note of its calls, and counts them in the state."""

    name = "noted"

    def __init__(self, calls):
        self.calls = calls

    def note(self, state):
        memory = self.memory(state)
        memory["n"] = memory.get("n", 0) + 1

    def draw_rows(self, machine, state, rows, v, rng):
        self.calls.append("draw_rows")
        return v

    def move_chains(self, step):
        self.calls.append("move_chains")

    def observe(self, step):
        self.calls.append("observe")

    def weigh_rows(self, step, machine, difference):
        self.calls.append("weigh_rows")
        return difference

    def transform(self, step, machine, gradient):
        self.calls.append("transform")

    def after_step(self, step, machine):
        self.calls.append("after_step")
        self.note(step.state)


@pytest.fixture
def fitted(seed, rng):
    def fit(*parts):
        p = model(("bernoulli", 4, 3, 0), seed)
        machine, v = machine_from(p), visible_states(p, rng)[:8]
        state = TrainingState(np.zeros((5, 3)))
        trainer = Trainer(PersistentContrastiveDivergence(), 0.1, 4, parts=parts)
        list(run_epochs(trainer, machine, state, v, 3, np.random.default_rng(seed)))
        return machine, state

    return fit


def test_hooks_act_in_the_order_of_an_update_and_parts_keep_numbers_in_the_state(fitted):
    # Slips: a hook that is never called, or before the phases; numbers kept in the part.
    calls = []
    _, state = fitted(Noted(calls))
    assert calls == list(HOOKS) * 6
    assert state.parts == {"noted": {"n": 6}}


def test_a_part_without_hooks_changes_and_costs_nothing(fitted):
    # Slip: hooks of the base class called for every part.
    class Idle(Part):
        name = "idle"

    assert all(hooks((Idle(),), name) == () for name in (*HOOKS, "around_epoch"))
    (machine, state), (other, other_state) = fitted(), fitted(Idle())
    assert_same_arrays(machine.parameters, other.parameters, atol=0)
    assert state.parts == other_state.parts == {}


@pytest.mark.parametrize("phases", [ContrastiveDivergence(), Exact()])
@pytest.mark.parametrize("part", [JumpToData(), Damping(Preconditioner())])
def test_parts_that_need_what_an_algorithm_lacks_are_refused(part, phases):
    with pytest.raises(ValueError, match=rf"'{part.name}' needs .*persistent chains.*Leave it out"):
        Trainer(phases, 0.1, 4, parts=(part,))


def test_an_estimator_trains_with_the_parts_that_a_subclass_adds(rng):
    """Also in every epoch, and with the state of its own numbers kept.

    Slip: parts that are built and not handed to the trainer.
    """

    class WithNotes(BernoulliRBM):
        _added_parts = (Noted([]),)

    rbm = WithNotes(3, n_iter=2, batch_size=10, random_state=0).fit(rng.integers(2, size=(40, 5)))
    assert rbm._training_state["parts"]["noted"] == {"n": 8}


def test_an_added_part_that_the_algorithm_cannot_serve_is_refused(rng):
    # Slip: a part that is dropped in silence, so that an experiment compares a fit with itself.
    class Needy(Noted):
        needs = frozenset({"persistent chains"})

    class WithNeedy(BernoulliRBM):
        _added_parts = (Needy([]),)

    with pytest.raises(ValueError, match=r"'noted' needs .*persistent chains"):
        WithNeedy(3, algorithm="exact").fit(rng.integers(2, size=(40, 5)))


def test_a_part_that_nobody_knows_cannot_be_left_out(rng):
    # Slip: a misspelt name that is ignored, so that an experiment compares a fit with itself.
    class Misspelt(BernoulliRBM):
        _left_out = frozenset({"jump"})

    with pytest.raises(
        ValueError, match=r"_left_out expected names among .*'jumps'.* got \['jump'\]"
    ):
        Misspelt(3).fit(rng.integers(2, size=(40, 5)))
