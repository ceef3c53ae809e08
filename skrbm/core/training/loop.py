"""Mini-batch training: positive phase, negative phase, gradient, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.centering import recenter
from skrbm.core.likelihood.exact import smaller_discrete
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, average_rows, spread_rows
from skrbm.core.parallel import FEW_PRODUCTS, MANY_PRODUCTS, one_blas_thread
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.optimizer import SGD, Optimizer, Schedule
from skrbm.core.training.parts.damping import Damping
from skrbm.core.training.parts.jump_to_data import jump_to_data
from skrbm.core.training.state import TrainingState
from skrbm.core.training.transforms import Constraints, Penalties, Preconditioner
from skrbm.core.training.workspace import Workspace

OFFSET_ROWS = 1024
GUARD_ROWS = 16
MAX_FIELD = 1e8  # nats; outliers of narrow clusters may cause a hundredth of it


class DivergenceError(ValueError):
    """Training left the range of finite numbers; the last finite parameters are kept."""


@final
@dataclass(frozen=True)
class Trainer:
    """Training algorithm with all its settings.

    Parameters
    ----------
    negative_phase : NegativePhase or LabelObjective
        What a mini-batch is set against.
    learning_rate : float
        Multiple of the direction that the first update adds to the parameters.
    batch_size : int
        Largest number of rows in a mini-batch; the batches of a pass differ by at most one row.
    optimizer : Optimizer, default=SGD()
        Update rule.
    schedule : Schedule, default=Schedule()
        Learning rate over time.
    average : bool, default=False
        Whether to average the parameters over the updates.
    penalties : Penalties, default=Penalties()
        What is paid for besides the likelihood.
    preconditioner : Preconditioner, default=Preconditioner()
        Makes the gradient a direction.
    constraints : Constraints, default=Constraints()
        What parameters may not exceed.
    shuffle : bool, default=True
        Whether every pass visits the rows in a new order.
    draw_states : bool, default=False
        Whether values between the states of a visible unit are means, from which its states are
        drawn anew in every pass. Sparse rows are left as they are.
    centering : bool, default=True
        Whether to step along the gradient in centred parameters.
    precision : dtype, default=numpy.float64
        Floating-point type in whose range the parameters have to stay.
    work : Workspace, default=Workspace()
        Precision of states, and arrays for one machine at a time.
    """

    negative_phase: NegativePhase | LabelObjective
    learning_rate: float
    batch_size: int
    optimizer: Optimizer = field(default_factory=SGD)
    schedule: Schedule = field(default_factory=Schedule)
    average: bool = False
    penalties: Penalties = field(default_factory=Penalties)
    preconditioner: Preconditioner = field(default_factory=Preconditioner)
    constraints: Constraints = field(default_factory=Constraints)
    shuffle: bool = True
    draw_states: bool = False
    centering: bool = True
    precision: Any = np.float64
    work: Workspace = field(default_factory=Workspace)

    def run(
        self,
        machine: Machine,
        state: TrainingState,
        v: Any,
        n_iter: int,
        rng: np.random.Generator,
        *,
        rows: Array | None = None,
        sample_weight: Array | None = None,
        is_planned: bool = True,
        n_done: int = 0,
        before_update: Callable[[Machine, Any, np.random.Generator, Any], Any] | None = None,
        after_update: Callable[[], object] | None = None,
    ) -> Iterator[int]:
        """Pass over the data several times, changing machine and state in place.

        Parameters
        ----------
        machine : Machine
            Plain machine with writeable arrays.
        state : TrainingState
            Continued.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Data of any numeric type; cast one mini-batch at a time.
        n_iter : int
            Number of passes.
        rng : numpy.random.Generator
            Source of random numbers.
        rows : ndarray of shape (n_rows,), default=None
            Numbers of the rows to learn from; None for all.
        sample_weight : ndarray of shape (n_samples,), default=None
            Positive weights of all rows; None for one each. What counts is their ratio to the mean
            weight, of the rows of this run or, without a plan, of all rows so far.
        is_planned : bool, default=True
            Whether training is over after these passes, for a schedule that ends with it.
        n_done : int, default=0
            Number of the passes that were made before, with this machine and state.
        before_update : callable, default=None
            Called with the machine, the numbers of the rows of a mini-batch, `rng` and these rows;
            returns the rows to learn from.
        after_update : callable, default=None
            Called between updates; what it raises ends training there.

        Yields
        ------
        epoch : int
            Number of passes done so far.

        Raises
        ------
        DivergenceError
            If after a pass parameters are not finite, or hold the hidden units by a force beyond
            all reason; machine and state are then what they were before it.
        """
        if self.centering and state.visible_offset is None:
            _start_offsets(machine, state, v, rows, sample_weight)
        n_batches = -(-_n_rows(v, rows) // self.batch_size)
        visible, is_array = machine.visible, isinstance(v, np.ndarray)  # an array is asked once
        is_drawn = self.draw_states and (not is_array or visible.has_means(v))
        counted = state.n_rows, state.total_weight
        weight = state.relative_weight(sample_weight, v.shape[0], rows, is_planned=is_planned)
        if n_done:  # the first of these passes has counted its rows
            state.n_rows, state.total_weight = counted
        for epoch in range(n_done, n_iter):
            last, last_state = _copied(machine.parameters), _copied(vars(state))
            try:
                with self._blas_threads(machine, state), np.errstate(all="ignore"):
                    for number, batch in enumerate(self._batches(v, rows, n_batches, rng)):
                        progress = (epoch + number / n_batches) / n_iter if is_planned else 0.0
                        own = None if weight is None else weight[batch]
                        mini_batch = self.work.batch(v, batch, machine)
                        if is_drawn and (is_array or visible.has_means(mini_batch)):
                            mini_batch = visible.drawn(mini_batch, rng)
                        if before_update is not None:
                            plain = self.work.rounded(machine)
                            mini_batch = before_update(plain, batch, rng, mini_batch)
                        self.update(machine, state, mini_batch, rng, progress, own)
                        if after_update is not None:
                            after_update()
            finally:
                symptom = self._symptom(machine, v)
                if symptom:
                    machine.assign(last)
                    vars(state).update(last_state)
            if symptom:
                raise DivergenceError(
                    f"Training diverged in epoch {epoch + 1}: {symptom}. Reduce "
                    f"learning_rate={self.learning_rate}, or rescale the data. The parameters "
                    f"before this epoch are kept."
                )
            yield epoch + 1

    def update(
        self,
        machine: Machine,
        state: TrainingState,
        v: Any,
        rng: np.random.Generator,
        progress: float = 0.0,
        sample_weight: Array | None = None,
    ) -> None:
        """Change machine and state in place after one mini-batch.

        Parameters
        ----------
        machine : Machine
            Plain machine with writeable arrays.
        state : TrainingState
            Continued.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch of any numeric type.
        rng : numpy.random.Generator
            Source of random numbers.
        progress : float, default=0.0
            Share of the planned run that is over, 0 without a plan.
        sample_weight : ndarray of shape (n_samples,), default=None
            Weights of the rows, one on average over the data; None for one each. The averages of
            the data are weighted, those of the model are not, and the step is as much longer or
            shorter as the mean weight of the mini-batch.
        """
        v, plain = self.work.rows(v, machine), self.work.rounded(machine)
        weight, share = 1.0, None
        if sample_weight is not None:
            weight = float(sample_weight.mean())
            share = (sample_weight / sample_weight.sum()).astype(v.dtype)
        factor = self.schedule.factor(state.n_updates, progress)
        rate = state.learning_rate = self.learning_rate * state.slowdown * factor
        phases = self.negative_phase(plain, v, state.particles, rng, self.work)
        state.particles, damping = phases.particles, None
        if self.negative_phase.is_persistent:
            in_the_end = rate * weight * self.optimizer.reach
            damping = Damping(self.preconditioner, in_the_end, state, self.work)
            n_particles = len(state.particles) // self.negative_phase.n_chains
            jump_to_data(plain, v, state, n_particles, rng)
        mean_hidden = average_rows(phases.positive.mean, share)
        moved = machine
        if self.centering:
            moved = recenter(machine, *state.follow(average_rows(v, share), mean_hidden))
        centred = self.work.rounded(moved, plain.weights)
        gradient = phases.gradient(centred, self.work, share, damping)
        self.penalties.add_to(gradient, moved, mean_hidden)
        direction = self.preconditioner.direction(moved, gradient)
        parameters = moved.parameters
        self.optimizer.step(parameters, direction, rate * weight, state.memory)
        self.constraints.enforce(parameters)
        if self.average:
            state.add_to_average(moved)
        if self.centering:
            machine.assign(recenter(moved, None, None).parameters)
        state.n_updates += 1

    def _blas_threads(self, machine: Machine, state: TrainingState) -> AbstractContextManager[None]:
        """Context in which threads are used for the products of an update if they are large."""
        is_exact = self.negative_phase.is_exact
        n_model = smaller_discrete(machine).visible.n_states if is_exact else len(state.particles)
        n_products = (self.batch_size + n_model) * machine.weights.size
        is_asked = FEW_PRODUCTS <= n_products < MANY_PRODUCTS
        return one_blas_thread() if is_asked else nullcontext()

    def _batches(
        self, v: Any, rows: Array | None, n_batches: int, rng: np.random.Generator
    ) -> Iterator[Array | slice]:
        n_rows = _n_rows(v, rows)
        bounds = np.arange(n_batches + 1) * n_rows // n_batches
        batches = map(slice, bounds[:-1], bounds[1:])
        if self.shuffle:
            order = rng.permutation(n_rows)
            rows = order if rows is None else rows[order]
        return batches if rows is None else (rows[own] for own in batches)

    def _symptom(self, machine: Machine, v: Any) -> str:
        """What is wrong with a machine, if anything."""
        with np.errstate(over="ignore", invalid="ignore"):
            is_precise = machine.dtype == self.precision  # `astype` looks at every array
            broken = _non_finite(machine if is_precise else machine.astype(self.precision))
            if broken:
                return f"{', '.join(broken)} expected finite, got infinite or NaN"
            rows = spread_rows(v, GUARD_ROWS).astype(machine.dtype, copy=False)
            hidden_field = machine.hidden_field(rows)
            largest = np.abs(hidden_field - hidden_field.mean(axis=0)).max()
        if not largest < MAX_FIELD:
            return (
                f"weights exploded, expected fields of hidden units below {MAX_FIELD:g} nats, got "
                f"{largest:.3g}"
            )
        return ""


def _non_finite(machine: Machine) -> list[str]:
    """Names of what is not finite in a machine: parameters, or the moments that they imply."""
    numbers, visible = dict(machine.parameters), machine.visible
    field = visible.zero_field(1)
    mean = numbers["mean of the visible units"] = visible.mean(field)
    for name, moment in visible.expected_moments(mean, field, None).items():
        numbers[f"moment of visible_{name}"] = moment
    return [name for name, array in numbers.items() if not np.isfinite(array).all()]


def _copied(record: Any) -> Any:
    """Copy of nested dictionaries of arrays and numbers; `deepcopy` takes as long as half an update."""
    if isinstance(record, dict):
        return {name: _copied(value) for name, value in record.items()}
    return record.copy() if isinstance(record, np.ndarray) else record


def _n_rows(v: Any, rows: Array | None) -> int:
    return int(v.shape[0] if rows is None else len(rows))


def _start_offsets(
    machine: Machine,
    state: TrainingState,
    v: Any,
    rows: Array | None,
    sample_weight: Array | None,
) -> None:
    spread = spread_rows(v, OFFSET_ROWS) if rows is None else v[spread_rows(rows, OFFSET_ROWS)]
    spread, share = spread.astype(machine.dtype, copy=False), None
    if sample_weight is not None:
        own = sample_weight if rows is None else sample_weight[rows]
        share = spread_rows(own, OFFSET_ROWS)
        share = (share / share.sum()).astype(machine.dtype)
    state.visible_offset = average_rows(spread, share)
    state.hidden_offset = average_rows(machine.mean_hidden(spread), share)
