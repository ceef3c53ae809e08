"""Base class of the parts of training, which act on an update besides the gradient step."""

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
    """Data of one update that the hooks of the parts receive.

    Parameters
    ----------
    machine : Machine
        Plain machine before the update, in the precision of states.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch; the gradient overwrites it, after `weigh_rows` and before `transform`.
    mean_hidden : ndarray of shape (n_hidden,)
        Weighted mean of the hidden units over the mini-batch, before the update.
    rate : float
        Length of the step relative to the direction.
    state : TrainingState
        State of training, changed in place.
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
    """Extension of training by hooks, which do nothing by default.

    A part overrides the hooks that it needs. It keeps its state in `TrainingState.parts` under its
    name, so that checkpoints and `partial_fit` preserve it without further code.

    Attributes
    ----------
    name : str
        Key of the part in `TrainingState.parts`, and its name among the parts that can be left out.
    needs : frozenset of str
        Features of an update that the part requires, from `NegativePhase.offers`.
    data_rows : tuple of str
        Keys of its state that hold rows of the data; a fitted estimator does not keep these.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    data_rows: ClassVar[tuple[str, ...]] = ()

    def memory(self, state: TrainingState) -> dict[str, Any]:
        """State of this part, a dictionary in the training state."""
        return state.parts.setdefault(self.name, {})

    def applies_to(self, machine: Machine, v: Any) -> bool:
        """True if the part acts on the data `v`; called once per run."""
        return True

    def begin(self, machine: Machine, state: TrainingState, v: Any) -> None:
        """Prepare for the data `v` of a run, before its first update."""

    def around_epoch(
        self, machine: Machine, state: TrainingState, v: Any
    ) -> AbstractContextManager[object]:
        """Context manager around the updates of an epoch over the data `v`."""
        return nullcontext()

    def draw_rows(
        self, machine: Machine, rows: Array | slice, v: Any, rng: np.random.Generator
    ) -> Any:
        """Mini-batch that replaces the rows `v`, whose indices are `rows`."""
        return v

    def move_chains(self, step: Step) -> None:
        """Move persistent chains by a kernel that leaves the model's distribution invariant.

        Called after both phases, before the gradient.
        """

    def observe(self, step: Step) -> None:
        """Read the mini-batch and the chains, and change the rate of the step.

        Called after the chains have moved, before the gradient.
        """

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Difference of the phases with changed row weights.

        Only for parts that need `ROW_WEIGHTS`: the exact gradient has no weights of rows. `machine` is
        the machine in training before the update, in the precision of states.
        """
        return difference

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Change the gradient in place, before the step.

        `machine` is the machine in training, with centred parameters if training is centred; the
        gradient has the keys of its parameters. The metric and the clipping follow.
        """

    def after_step(self, step: Step, machine: Machine) -> None:
        """Constrain or record the parameters after a step."""


def without_data(parts: Iterable[Part], state: TrainingState) -> dict[str, dict[str, Any]]:
    """States of all parts, without rows of the data."""
    data_rows = {part.name: part.data_rows for part in parts}
    return {
        name: {key: value for key, value in memory.items() if key not in data_rows.get(name, ())}
        for name, memory in state.parts.items()
    }


def hooks(parts: Iterable[Part], name: str) -> tuple[Callable[..., Any], ...]:
    """Methods of the parts that override the given hook."""
    return tuple(
        getattr(part, name)
        for part in parts
        if getattr(type(part), name) is not getattr(Part, name)
    )
