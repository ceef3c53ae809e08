"""Base class of the parts of training, whose hooks extend runs, epochs and updates."""

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
    """Data of one update, passed to the hooks from `move_chains` to `after_step` of the parts.

    Parameters
    ----------
    machine : Machine
        Machine before the update, plain (without offsets) and in the precision of states, which
        `UpdateBuffers` defines. It may share arrays with the machine in training, so that it is
        valid only until the parameters are updated. To keep values of its arrays, or of the arrays
        of `state`, copy them.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch.
    positive : DataExpectation
        Positive phase. If the phases of the `Trainer` are a `NegativePhase`, as in all fits without
        labels, it is a `Samples` with a single block (v, mean). If they are a `LabelObjective`, it
        is a `LabelExpectation`. Here, mean[i, j] is the expected state of hidden column j given row
        i of the mini-batch. In both cases, the row weights sum to one, and `averages()` returns the
        weighted averages of `v` and `mean` over the rows.
    rate : float
        Learning rate of the update, multiplied by the mean weight of the mini-batch if the rows are
        weighted. The hooks that are called before the parameters are updated may change it.
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
    """Base class of extensions of training, with hooks that do nothing unless they are overridden.

    A part overrides the hooks that it needs. State that it keeps in the dictionary `memory(state)`
    is preserved by checkpoints and, except for `data_rows`, by `partial_fit` without further code.

    Attributes
    ----------
    name : str
        Key of the part in `TrainingState.parts`. An estimator whose `_left_out` contains this name
        trains without the part, or raises a ValueError if the part cannot be left out.
    needs : frozenset of str
        Capabilities of the algorithm that the part requires, such as persistent chains. A `Trainer`
        with the part raises a ValueError if `offers` of its phases does not contain all of them.
    data_rows : tuple of str
        Keys under which the state of the part holds rows of the data. These rows are stored in
        checkpoints, but not in fitted estimators.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    data_rows: ClassVar[tuple[str, ...]] = ()

    def memory(self, state: TrainingState) -> dict[str, Any]:
        """Return the state of this part, an initially empty dictionary in `state.parts`."""
        return state.parts.setdefault(self.name, {})

    def begin(
        self, machine: Machine, state: TrainingState, v: Any, rows: Array | None = None
    ) -> None:
        """Prepare the part for a run on the data `v`, or raise an error to refuse model or data.

        The hook is called before the first epoch of a run, unless `n_done` of `run_epochs` is
        positive, as for a run that is resumed from a checkpoint. `machine` is plain. `rows` are the
        indices of the training rows; if it is None, no rows of `v` are held out.
        """

    def around_epoch(
        self, machine: Machine, state: TrainingState, v: Any
    ) -> AbstractContextManager[object]:
        """Context manager that encloses all updates of an epoch on the data `v`.

        `machine` is plain. It has the current parameters when the context manager is entered and
        when it exits, but not necessarily between two updates.
        """
        return nullcontext()

    def draw_rows(
        self,
        machine: Machine,
        state: TrainingState,
        rows: Array | slice,
        v: Any,
        rng: np.random.Generator,
    ) -> Any:
        """Return a mini-batch to use in place of the rows `v`, whose indices are `rows`.

        `v` is in the precision of states and may be overwritten. `machine` is the machine in
        training, whose parameters are centered if training is centered.
        """
        return v

    def move_chains(self, step: Step) -> None:
        """Move persistent chains by a kernel that leaves the model's distribution invariant.

        The hook is called after the states of both phases are drawn and before the gradient is
        computed.
        """

    def observe(self, step: Step) -> None:
        """Read the mini-batch and the chains, or change the learning rate of the step.

        The hook is called after `move_chains` of all parts and before the gradient is computed.
        """

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Return the difference between the phases, positive minus negative, with new row weights.

        `difference.weights` contains the weights of the rows of the mini-batch, followed by the
        negative weights of the model states; they must not be changed in place. The result is
        `difference.weighted(...)`, or `difference` itself. A part that overrides this hook must
        have `ROW_WEIGHTS` in `needs`, because the exact gradient and the gradient of a
        `LabelObjective` have no such weights. `machine` is the machine in training before the
        update, in the precision of states.
        """
        return difference

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Change the arrays of the gradient in place, before the step.

        Training maximizes the mean log-likelihood or, with labels, the mean of the objective of
        `LabelObjective`. `gradient` is an estimate of the gradient of this mean, from which the
        gradient of a penalty must be subtracted. Its keys and shapes are those of
        `Machine.parameters`, with keys such as "weights", "visible_bias" and "hidden_bias". After
        this hook, `Preconditioner` clips the gradient and multiplies it by the factors of the
        metric. `machine` is the machine in training, whose parameters are centered if training is
        centered.
        """

    def after_step(self, step: Step, machine: Machine) -> None:
        """Constrain the parameters of `machine` in place after a step, or record them.

        `machine` is the machine in training, whose parameters are centered if training is centered.
        """


def without_data(parts: Iterable[Part], state: TrainingState) -> dict[str, dict[str, Any]]:
    """Return the states of all parts, without the entries in `data_rows` of the given parts."""
    data_rows = {part.name: part.data_rows for part in parts}
    return {
        name: {key: value for key, value in memory.items() if key not in data_rows.get(name, ())}
        for name, memory in state.parts.items()
    }


def hooks(parts: Iterable[Part], name: str) -> tuple[Callable[..., Any], ...]:
    """Bound methods with the name of a hook, from the parts that override this hook."""
    return tuple(
        getattr(part, name)
        for part in parts
        if getattr(type(part), name) is not getattr(Part, name)
    )
