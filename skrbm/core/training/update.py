"""One update of the parameters from a mini-batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.optimizer import SGD, Optimizer, Schedule, constant_factor
from skrbm.core.training.part import Part, Step, hooks
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import TrainingState

RECENTERING_PAUSE = 10  # updates between changes of the offsets, which average about 100 updates

Hooks = tuple[Callable[..., Any], ...]


@final
@dataclass(frozen=True)
class Trainer:
    """Training algorithm with its settings.

    Parameters
    ----------
    phases : NegativePhase or LabelObjective
        Callable that computes the expectations under the data and under the model.
    learning_rate : float
        Learning rate, before it is multiplied by the factor from `schedule` and by
        `TrainingState.rate_factor`.
    batch_size : int
        Largest number of rows in a mini-batch. The sizes of the mini-batches in an epoch differ by
        at most one.
    optimizer : Optimizer, default=SGD()
        Update rule.
    schedule : callable, default=constant_factor
        Function that computes a factor of the learning rate from the completed share of the planned
        run. The share is 0 if the run is not planned.
    preconditioner : Preconditioner, default=Preconditioner()
        Conversion of the gradient to the direction of the step.
    parts : tuple of Part, default=()
        Parts of training, in the order in which their hooks are called.
    shuffle : bool, default=True
        Whether to shuffle the rows in every epoch.
    centering : bool, default=True
        Whether gradients are taken with respect to centered parameters. The offsets follow the
        running means in `TrainingState`.
    buffers : UpdateBuffers, default=UpdateBuffers()
        Buffers for the arrays of the updates, with the precision of states. They serve one machine
        at a time.

    Raises
    ------
    ValueError
        If a part needs a feature that `phases` does not offer.
    """

    phases: NegativePhase | LabelObjective
    learning_rate: float
    batch_size: int
    optimizer: Optimizer = field(default_factory=SGD)
    schedule: Schedule = constant_factor
    preconditioner: Preconditioner = field(default_factory=Preconditioner)
    parts: tuple[Part, ...] = ()
    shuffle: bool = True
    centering: bool = True
    buffers: UpdateBuffers = field(default_factory=UpdateBuffers)

    def __post_init__(self) -> None:
        for part in self.parts:
            missing = part.needs - self.phases.offers
            if missing:
                raise ValueError(
                    f"The part {part.name!r} needs {sorted(missing)}, but "
                    f"{type(self.phases).__name__} offers {sorted(self.phases.offers)}. Leave it out."
                )

    @cached_property
    def _hooks(self) -> tuple[Hooks, ...]:
        """Overridden hooks of an update: one tuple for each name, in calling order."""
        names = "move_chains", "observe", "weigh_rows", "transform", "after_step"
        return tuple(hooks(self.parts, name) for name in names)

    def update(
        self,
        machine: Machine,
        state: TrainingState,
        v: Any,
        rng: np.random.Generator,
        progress: float = 0.0,
        sample_weight: Array | None = None,
    ) -> None:
        """Update machine and state in place with one mini-batch.

        Parameters
        ----------
        machine : Machine
            Machine in training with writeable arrays, which is centered if `centering` is True.
        state : TrainingState
            State of training, changed in place.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch in the precision of states, as from `UpdateBuffers.take`.
        rng : numpy.random.Generator
            Source of random numbers.
        progress : float, default=0.0
            Completed share of the planned run; 0 if training is not planned.
        sample_weight : ndarray of shape (n_samples,), default=None
            Weights of the rows, as returned by `TrainingState.relative_weight`. If None, all rows
            have a weight of one. The positive phase is a weighted mean, as is the negative phase if
            its chains start at the rows. The learning rate is multiplied by the mean weight of the
            mini-batch.

        Raises
        ------
        ValueError
            If `phases` is a `LabelObjective`, and the last visible unit does not have one column
            for each of its values. If chains are sampled by `ParallelTempering`, and
            `is_tempered_exactly` of the hidden units is False.
        TooManyStatesError
            If `is_exact` of `phases` is True, and both layers have more than `exact.MAX_STATES`
            states.
        """
        move_chains, observe, weigh_rows, transform, after_step = self._hooks
        rate = self.learning_rate * state.rate_factor * self.schedule(progress)
        state.learning_rate, buffers = rate, self.buffers
        is_rounded = buffers.dtype not in (None, machine.weights.dtype)  # saves a call if not
        centered = buffers.rounded(machine) if is_rounded else machine
        plain = recenter(centered, None, None) if self.centering else centered

        positive, negative, state.particles = self.phases(plain, v, state.particles, buffers, rng)
        if sample_weight is not None:
            rate *= float(sample_weight.mean())
            total = sample_weight.sum() or 1.0  # all may be too small for their type
            shares = (sample_weight / total).astype(v.dtype)
            positive = positive.weighted(shares)
            if self.phases.starts_at_data:
                negative = negative.weighted(shares)
        means = positive.averages() if self.centering else None
        step = Step(plain, v, positive, rate, state, rng)
        for hook in (*move_chains, *observe):
            hook(step)

        difference = positive - negative
        for hook in weigh_rows:
            difference = hook(step, centered, difference)
        gradient = difference.gradient(centered)
        for hook in transform:
            hook(step, machine, gradient)
        direction = self.preconditioner.direction(machine, gradient)
        self.optimizer.step(machine.parameters, direction, step.rate, state.memory)
        for hook in after_step:
            hook(step, machine)

        state.n_updates += 1
        if means is not None:
            state.follow(*means)
            if state.n_updates % RECENTERING_PAUSE == 0:
                machine.assign(recenter(machine, *state.offsets(machine.dtype)).arrays)
