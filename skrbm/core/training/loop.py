"""Epochs and mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import numpy as np

from skrbm.core.centering import recenter
from skrbm.core.likelihood.exact import smaller_discrete
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, spread_rows
from skrbm.core.parallel import one_blas_thread
from skrbm.core.training.part import hooks
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer

N_OFFSET_ROWS = 1024  # rows that the first offsets are means of


def run_epochs(
    trainer: Trainer,
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
    after_update: Callable[[], object] | None = None,
) -> Iterator[int]:
    """Pass over the data several times, changing machine and state in place.

    Parameters
    ----------
    trainer : Trainer
        Training algorithm.
    machine : Machine
        Plain machine with writeable arrays.
    state : TrainingState
        Continued.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type; cast one mini-batch at a time.
    n_iter : int
        Number of epochs.
    rng : numpy.random.Generator
        Source of random numbers.
    rows : ndarray of shape (n_rows,), default=None
        Numbers of the rows to learn from; None for all.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of all rows; None for one each. Their ratio to the mean weight counts, of
        the rows of this run or, without a plan, of all rows so far.
    is_planned : bool, default=True
        Whether training is over after these epochs, for a schedule that ends with it.
    n_done : int, default=0
        Number of the epochs that were made before, with this machine and state.
    after_update : callable, default=None
        Called between updates; an exception that it raises ends training there.

    Yields
    ------
    epoch : int
        Number of epochs done so far.

    Raises
    ------
    DivergenceError
        If a `Guard` is among the parts, and an epoch ends with parameters that are not finite or
        with weights that have exploded; machine and state are then what they were before it.
    """
    if trainer.centering and state.visible_offset is None:
        _start_offsets(machine, state, v, rows, sample_weight)
    n_batches = -(-_n_rows(v, rows) // trainer.batch_size)
    parts = [part for part in trainer.parts if part.applies_to(machine, v)]
    draw_rows, around_epoch = hooks(parts, "draw_rows"), hooks(parts, "around_epoch")
    counted = state.n_rows, state.total_weight
    weight = state.relative_weight(sample_weight, v.shape[0], rows, is_planned=is_planned)
    if n_done:  # the first of these epochs has counted its rows, and begun
        state.n_rows, state.total_weight = counted
    else:
        for hook in hooks(parts, "begin"):
            hook(machine, state, v)
    for epoch in range(n_done, n_iter):
        moved = trainer.start(machine, state)
        try:
            with ExitStack() as contexts:
                for hook in around_epoch:
                    contexts.enter_context(hook(machine, state, v))
                contexts.callback(_publish, moved, machine)
                contexts.enter_context(_blas_threads(trainer, moved, state))
                contexts.enter_context(np.errstate(all="ignore"))
                for number, batch in enumerate(_batches(trainer, v, rows, n_batches, rng)):
                    mini_batch = trainer.buffers.take(v, batch, moved)
                    for hook in draw_rows:
                        mini_batch = hook(moved, batch, mini_batch, rng)
                    progress = (epoch + number / n_batches) / n_iter if is_planned else 0.0
                    own = None if weight is None else weight[batch]
                    trainer.update(moved, state, mini_batch, rng, progress, own)
                    if after_update is not None:
                        after_update()
        except DivergenceError as error:
            raise DivergenceError(
                f"Training diverged in epoch {epoch + 1}: {error}. Reduce "
                f"learning_rate={trainer.learning_rate}, or rescale the data. The parameters "
                f"before this epoch are kept."
            ) from None
        yield epoch + 1


def _publish(moved: Machine, machine: Machine) -> None:
    """Write what was learned to the plain machine."""
    if moved is not machine:
        with np.errstate(all="ignore"):
            machine.assign(recenter(moved, None, None).parameters)


def _blas_threads(
    trainer: Trainer, machine: Machine, state: TrainingState
) -> AbstractContextManager[None]:
    """Context in which threads are used for the products of an update if they are large."""
    is_exact = trainer.phases.is_exact
    n_model = smaller_discrete(machine).visible.n_states if is_exact else len(state.particles)
    n_products = (trainer.batch_size + n_model) * machine.weights.size
    least, most = trainer.serial_products
    return one_blas_thread() if least <= n_products < most else nullcontext()


def _batches(
    trainer: Trainer, v: Any, rows: Array | None, n_batches: int, rng: np.random.Generator
) -> Iterator[Array | slice]:
    """Row numbers of the mini-batches of an epoch."""
    n_rows = _n_rows(v, rows)
    bounds = np.arange(n_batches + 1) * n_rows // n_batches
    batches = map(slice, bounds[:-1], bounds[1:])
    if trainer.shuffle:
        order = rng.permutation(n_rows)
        rows = order if rows is None else rows[order]
    return batches if rows is None else (rows[batch] for batch in batches)


def _n_rows(v: Any, rows: Array | None) -> int:
    return int(v.shape[0] if rows is None else len(rows))


def _start_offsets(
    machine: Machine,
    state: TrainingState,
    v: Any,
    rows: Array | None,
    sample_weight: Array | None,
) -> None:
    """Set the first offsets to means over some rows."""
    some = spread_rows(v, N_OFFSET_ROWS) if rows is None else v[spread_rows(rows, N_OFFSET_ROWS)]
    some = some.astype(machine.dtype, copy=False)
    own = np.ones(v.shape[0]) if sample_weight is None else sample_weight
    share = spread_rows(own if rows is None else own[rows], N_OFFSET_ROWS)
    share = (share / share.sum()).astype(machine.dtype)
    state.visible_offset = share @ some
    state.hidden_offset = share @ machine.mean_hidden(some)
