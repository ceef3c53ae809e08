"""Parts of training: whatever acts on an update or an epoch besides the gradient and its step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import Gradient, Samples
from skrbm.core.training.state import TrainingState


@final
@dataclass(slots=True)
class Step:
    """One update as the parts see it.

    Parameters
    ----------
    machine : Machine
        Plain machine before the update, in the precision of states.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch, until the gradient has used it up.
    mean_hidden : ndarray of shape (n_hidden,)
        Mean of the hidden units over the mini-batch before the update, weighted as its rows are.
    rate : float
        Multiple of the direction that is added to the parameters.
    state : TrainingState
        Moved on by the update.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    machine: Machine
    v: Any
    mean_hidden: Array
    rate: float
    state: TrainingState
    rng: np.random.Generator


class Part:
    """One thing that training does besides following the gradient; by default, nothing.

    A part overrides the hooks that it acts in. Its numbers live in the state under its name, so
    that checkpoints and streams carry them without knowing it.

    Attributes
    ----------
    name : str
        Key of its numbers in `TrainingState.parts`, and the name by which it is left out.
    needs : frozenset of str
        Features of an update that it cannot do without, from `NegativePhase.offers`.
    data_rows : tuple of str
        Those of its numbers that are rows of the data, which a fitted estimator does not carry.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    data_rows: ClassVar[tuple[str, ...]] = ()

    def memory(self, state: TrainingState) -> dict[str, Any]:
        """Numbers of this part, which travel with the state."""
        return state.parts.setdefault(self.name, {})

    def applies_to(self, machine: Machine, v: Any) -> bool:
        """True if the part has anything to do for the data `v`; asked once a run."""
        return True

    def begin(self, machine: Machine, state: TrainingState, v: Any) -> None:
        """Take note of the data `v` of a run before its first update."""

    def around_epoch(
        self, machine: Machine, state: TrainingState, v: Any
    ) -> AbstractContextManager[object]:
        """Context of the updates of an epoch over the data `v`."""
        return nullcontext()

    def draw_rows(
        self, machine: Machine, rows: Array | slice, v: Any, rng: np.random.Generator
    ) -> Any:
        """Mini-batch to learn from, in place of the rows `v` with the numbers `rows`."""
        return v

    def move_chains(self, step: Step) -> None:
        """Move persistent chains by a kernel that leaves the model's distribution invariant.

        Called after the phases have moved them, before the gradient.
        """

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Positive minus negative phase with other weights of the rows."""
        return difference

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Change the gradient in place, before the step.

        `machine` is the one in training, in centred coordinates if training is centred; the gradient
        has the keys of its parameters. It is then multiplied by the metric of the layers and clipped.
        """

    def after_step(self, step: Step, machine: Machine) -> None:
        """Constrain the parameters after a step, or take note of them."""


def without_data(parts: Iterable[Part], state: TrainingState) -> dict[str, dict[str, Any]]:
    """Numbers of all parts in a state, but for rows of the data."""
    data_rows = {part.name: part.data_rows for part in parts}
    return {
        name: {key: value for key, value in memory.items() if key not in data_rows.get(name, ())}
        for name, memory in state.parts.items()
    }


def hooks(parts: Iterable[Part], name: str) -> tuple[Callable[..., Any], ...]:
    """Methods of one hook, of the parts that override it."""
    return tuple(
        getattr(part, name)
        for part in parts
        if getattr(type(part), name) is not getattr(Part, name)
    )
