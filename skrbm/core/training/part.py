"""Base class of the parts of training, which act in addition to the gradient step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import DataExpectation, Gradient, Samples
from skrbm.core.training.state import TrainingState


@final
@dataclass(slots=True)
class Step:
    """Data of one update, passed to the hooks of the parts.

    Parameters
    ----------
    machine : Machine
        Plain machine before the update, in the precision of states. Later updates overwrite its
        arrays, and those of `state`: copy arrays to keep them.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch. The gradient may overwrite it, after `weigh_rows` and before `transform`.
    positive : DataExpectation
        Positive phase. The gradient may overwrite its states, as those of `v`.
    rate : float
        Learning rate of the update, multiplied by the mean weight of the mini-batch if the rows are
        weighted.
    state : TrainingState
        State of training, changed in place.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    machine: Machine
    v: Any
    positive: DataExpectation
    rate: float
    state: TrainingState
    rng: np.random.Generator


class Part:
    """Base class of extensions of training, whose hooks do nothing by default.

    A part overrides the hooks that it needs. It keeps its state in `TrainingState.parts` under its
    name, so that checkpoints and `partial_fit` preserve it without further code.

    Attributes
    ----------
    name : str
        Key of the part in `TrainingState.parts`. If `_left_out` of an estimator contains this name,
        the estimator trains without the part. Names of parts that cannot be left out are refused.
    needs : frozenset of str
        Features that the part requires; `NegativePhase.offers` must contain them.
    data_rows : tuple of str
        Keys under which the state of the part holds rows of the data. A fitted estimator does not
        store these rows.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    data_rows: ClassVar[tuple[str, ...]] = ()

    def memory(self, state: TrainingState) -> dict[str, Any]:
        """Return the state of this part, a dictionary stored in the training state."""
        return state.parts.setdefault(self.name, {})

    def applies_to(self, machine: Machine, v: Any) -> bool:
        """Return True if the part acts on the data `v`. The method is called once per run."""
        return True

    def begin(self, machine: Machine, state: TrainingState, v: Any) -> None:
        """Prepare the part for a run on the data `v`, before the first update."""

    def around_epoch(
        self, machine: Machine, state: TrainingState, v: Any
    ) -> AbstractContextManager[object]:
        """Context manager that encloses all updates of an epoch on the data `v`."""
        return nullcontext()

    def draw_rows(
        self, machine: Machine, rows: Array | slice, v: Any, rng: np.random.Generator
    ) -> Any:
        """Return a mini-batch to use in place of the rows `v`, whose indices are `rows`."""
        return v

    def move_chains(self, step: Step) -> None:
        """Move persistent chains by a kernel that leaves the model's distribution invariant.

        The hook is called after the states of both phases are drawn and before the gradient is
        computed.
        """

    def observe(self, step: Step) -> None:
        """Read the mini-batch and the chains, or change the learning rate of the step.

        The hook is called after `move_chains` and before the gradient is computed.
        """

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Change the row weights in the difference between the phases, and return the result.

        A part that overrides this hook must have `ROW_WEIGHTS` in `needs`, because the exact
        gradient has no row weights. `machine` is the machine in training before the update, in the
        precision of states.
        """
        return difference

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Change the gradient in place, before the step.

        `machine` is the machine in training, whose parameters are centered if training is centered.
        The gradient has the same keys as these parameters. It is clipped and multiplied by the
        metric afterwards.
        """

    def after_step(self, step: Step, machine: Machine) -> None:
        """Constrain or record the parameters after a step."""


def without_data(parts: Iterable[Part], state: TrainingState) -> dict[str, dict[str, Any]]:
    """Return the states of all parts without the rows of the data."""
    data_rows = {part.name: part.data_rows for part in parts}
    return {
        name: {key: value for key, value in memory.items() if key not in data_rows.get(name, ())}
        for name, memory in state.parts.items()
    }


def hooks(parts: Iterable[Part], name: str) -> tuple[Callable[..., Any], ...]:
    """Methods of the parts that override the hook with the given name."""
    return tuple(
        getattr(part, name)
        for part in parts
        if getattr(type(part), name) is not getattr(Part, name)
    )
