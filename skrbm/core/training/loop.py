"""Mini-batch training: positive phase, negative phase, gradient, step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from skrbm.core.centering import centered_gradient, recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, average_rows, spread_rows
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.optimizer import SGD

OFFSET_RATE = 0.01
OFFSET_ROWS = 1024


class DivergenceError(ValueError):
    """Training left the range of finite numbers; the last finite parameters are kept."""


@final
@dataclass
class TrainingState:
    """What training carries from one update to the next besides the parameters.

    Parameters
    ----------
    particles : ndarray of shape (n_particles, n_hidden)
        Hidden states of the persistent chains.
    visible_offset : ndarray of shape (n_visible,), default=None
        Running mean of the data; None until the first centred pass.
    hidden_offset : ndarray of shape (n_hidden,), default=None
        Running mean of the hidden units under the data; None likewise.
    """

    particles: Array
    visible_offset: Array | None = None
    hidden_offset: Array | None = None


@final
@dataclass(frozen=True)
class Trainer:
    """Training algorithm with all its settings.

    Parameters
    ----------
    negative_phase : NegativePhase
        Estimate of the model's average.
    optimizer : SGD
        Update rule.
    batch_size : int
        Largest number of rows in a mini-batch; the batches of a pass differ by at most one row.
    shuffle : bool, default=True
        Whether every pass visits the rows in a new order.
    centering : bool, default=True
        Whether to step along the gradient in centred parameters.
    precision : dtype, default=numpy.float64
        Floating-point type in whose range the parameters have to stay.
    """

    negative_phase: NegativePhase
    optimizer: SGD
    batch_size: int
    shuffle: bool = True
    centering: bool = True
    precision: Any = np.float64

    def run(
        self, machine: Machine, state: TrainingState, v: Any, n_iter: int, rng: np.random.Generator
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

        Yields
        ------
        epoch : int
            Number of passes done so far.

        Raises
        ------
        DivergenceError
            If a parameter is no longer finite after a pass; machine and state are then what
            they were before it.
        """
        if self.centering and state.visible_offset is None:
            _start_offsets(machine, state, v)
        for epoch in range(1, n_iter + 1):
            last = {name: array.copy() for name, array in machine.parameters.items()}
            last_state = vars(state).copy()
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    for rows in _minibatches(v.shape[0], self.batch_size, self.shuffle, rng):
                        self.update(machine, state, _cast(v[rows], machine.weights.dtype), rng)
            finally:  # also after an interrupt
                with np.errstate(over="ignore"):
                    broken = non_finite(machine.astype(self.precision))
                if broken:
                    _assign(machine, last)
                    vars(state).update(last_state)
            if broken:
                raise DivergenceError(
                    f"Training diverged in epoch {epoch}: {', '.join(broken)} expected finite, got "
                    f"infinite or NaN. Reduce learning_rate={self.optimizer.learning_rate}, or "
                    f"rescale the data. The parameters before this epoch are kept."
                )
            yield epoch

    def update(
        self, machine: Machine, state: TrainingState, v: Any, rng: np.random.Generator
    ) -> None:
        """Change machine and state in place after one mini-batch.

        Parameters
        ----------
        machine : Machine
            Plain machine with writeable arrays.
        state : TrainingState
            Continued.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch, of the machine's floating-point type.
        rng : numpy.random.Generator
            Source of random numbers.
        """
        field = machine.hidden_field(v)
        positive = machine.gradient(v, field=field)
        negative, state.particles = self.negative_phase(machine, state.particles, field, rng)
        gradient = {name: array - negative[name] for name, array in positive.items()}
        if not self.centering:
            self.optimizer.step(machine.parameters, gradient)
            return
        assert state.visible_offset is not None
        assert state.hidden_offset is not None
        state.visible_offset = _follow(state.visible_offset, average_rows(v))
        state.hidden_offset = _follow(state.hidden_offset, average_rows(machine.hidden.mean(field)))
        offsets = state.visible_offset, state.hidden_offset
        centred = recenter(machine, *offsets)
        self.optimizer.step(centred.parameters, centered_gradient(machine, gradient, *offsets))
        _assign(machine, recenter(centred, None, None).parameters)


def _assign(machine: Machine, parameters: dict[str, Array]) -> None:
    """Write parameters into the arrays of a machine, where they are not those arrays already."""
    for name, array in machine.parameters.items():
        if parameters[name] is not array:
            array[...] = parameters[name]


def non_finite(machine: Machine) -> list[str]:
    """Names of what is not finite in a machine: parameters, or the moments that they imply."""
    still = np.zeros((1, machine.visible.n_units), dtype=machine.weights.dtype)
    numbers = dict(machine.parameters)
    with np.errstate(over="ignore", invalid="ignore"):
        for order, moment in enumerate(machine.visible.mean_moments(still, None), 1):
            numbers[f"visible moment {order}"] = moment
    return [name for name, array in numbers.items() if not np.isfinite(array).all()]


def _start_offsets(machine: Machine, state: TrainingState, v: Any) -> None:
    spread = _cast(spread_rows(v, OFFSET_ROWS), machine.weights.dtype)
    state.visible_offset = average_rows(spread)
    state.hidden_offset = average_rows(machine.mean_hidden(spread))


def _follow(offset: Array, mean: Array) -> Array:
    return offset + OFFSET_RATE * (mean - offset)


def _minibatches(
    n_samples: int, batch_size: int, shuffle: bool, rng: np.random.Generator
) -> Iterator[Array | slice]:
    n_batches = -(-n_samples // batch_size)
    if shuffle:
        yield from np.array_split(rng.permutation(n_samples), n_batches)
    else:
        bounds = np.arange(n_batches + 1) * n_samples // n_batches
        yield from map(slice, bounds[:-1], bounds[1:])


def _cast(v: Any, dtype: Any) -> Any:
    return v.astype(dtype, copy=False)
