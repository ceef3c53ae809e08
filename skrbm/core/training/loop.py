"""Loop over epochs and mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import numpy as np

from skrbm.core.centering import recenter
from skrbm.core.draws import draw_permutation
from skrbm.core.likelihood.exact import smaller_discrete
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, like, spread_rows
from skrbm.core.parallel import FEW_PRODUCTS, MANY_PRODUCTS, one_blas_thread
from skrbm.core.training.part import hooks
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer

N_OFFSET_ROWS = 1024  # largest number of rows averaged for the initial offsets


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
    """Run training epochs, changing machine and state in place.

    Parameters
    ----------
    trainer : Trainer
        Training algorithm with its settings.
    machine : Machine
        Plain machine with writeable arrays.
    state : TrainingState
        State of training, changed in place.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type, or a container whose rows can be indexed. Each mini-batch is
        converted to the precision of states.
    n_iter : int
        Total number of epochs, including the `n_done` epochs that are already completed.
    rng : numpy.random.Generator
        Source of random numbers.
    rows : ndarray of shape (n_rows,), default=None
        Indices of the training rows. If None, all rows are used.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of all rows. If None, all rows have a weight of one. The weights are
        divided by the mean weight of the training rows. If `is_planned` is False, the training rows
        of earlier runs are included in this mean.
    is_planned : bool, default=True
        Whether the total number of epochs is known in advance. If False, the learning-rate schedule
        stays at its first value.
    n_done : int, default=0
        Number of epochs already completed with this machine and state.
    after_update : callable, default=None
        Function that is called after every update. An exception that it raises ends training.

    Yields
    ------
    epoch : int
        Number of epochs completed so far.

    Raises
    ------
    DivergenceError
        If a `Guard` is among the parts, and an epoch diverges (see `Guard.around_epoch`). Machine
        and state are restored to their values before the epoch.
    TooManyStatesError
        If `is_exact` of the trainer's `phases` is True, and both layers have more than
        `exact.MAX_STATES` states.
    ValueError
        If the trainer's `phases` are a `LabelObjective`, and the last visible unit does not have
        one column for each of its values.
    """
    rows, sample_weight = like(rows, v), like(sample_weight, v)
    if trainer.centering and state.visible_offset is None:
        _initialize_offsets(machine, state, v, rows, sample_weight)
    n_rows = v.shape[0] if rows is None else len(rows)
    n_batches = -(-n_rows // trainer.batch_size)
    bounds = np.arange(n_batches + 1) * n_rows // n_batches
    parts = trainer.parts
    draw_rows, around_epoch = hooks(parts, "draw_rows"), hooks(parts, "around_epoch")
    # The rows are counted, and the parts are prepared, before the first epoch.
    counts = state.n_rows, state.total_weight
    options = {"is_planned": is_planned, "is_counted": n_done > 0}
    weight = like(state.relative_weight(sample_weight, v.shape[0], rows, **options), v)
    if not n_done:
        for hook in hooks(parts, "begin"):
            hook(machine, state, v, rows)
    for epoch in range(n_done, n_iter):
        moved = machine  # shares the weights of the plain machine if training is centered
        if trainer.centering:
            moved = recenter(machine, *state.offsets(machine.dtype))
        try:
            with ExitStack() as contexts:
                for hook in around_epoch:
                    contexts.enter_context(hook(machine, state, v))
                contexts.callback(_publish, moved, machine)
                contexts.enter_context(_blas_threads(trainer, moved, state))
                contexts.enter_context(np.errstate(all="ignore"))
                for number, batch in enumerate(_batches(trainer, v, rows, bounds, rng)):
                    mini_batch = trainer.buffers.take(v, batch, moved)
                    for hook in draw_rows:
                        mini_batch = hook(moved, state, batch, mini_batch, rng)
                    progress = (epoch + number / n_batches) / n_iter if is_planned else 0.0
                    batch_weight = None if weight is None else weight[batch]
                    trainer.update(moved, state, mini_batch, rng, progress, batch_weight)
                    if after_update is not None:
                        after_update()
        except DivergenceError as error:
            if epoch == 0:
                state.n_rows, state.total_weight = counts
            raise DivergenceError(
                f"Training diverged in epoch {epoch + 1}: {error}. Reduce "
                f"learning_rate={trainer.learning_rate}, or rescale the data. Earlier parameters "
                f"are kept."
            ) from None
        yield epoch + 1


def _publish(moved: Machine, machine: Machine) -> None:
    """Write the trained parameters to the plain `machine`, unless `moved` is this machine."""
    if moved is not machine:
        with np.errstate(all="ignore"):
            machine.assign(recenter(moved, None, None).parameters)


def _blas_threads(
    trainer: Trainer, machine: Machine, state: TrainingState
) -> AbstractContextManager[None]:
    """Context manager that limits BLAS to one thread if updates are of medium size."""
    is_exact = trainer.phases.is_exact
    n_model = smaller_discrete(machine).visible.n_states if is_exact else len(state.particles)
    n_products = (trainer.batch_size + n_model) * machine.weights.size
    is_medium = FEW_PRODUCTS <= n_products < MANY_PRODUCTS
    return one_blas_thread() if is_medium else nullcontext()


def _batches(
    trainer: Trainer, v: Any, rows: Array | None, bounds: Array, rng: np.random.Generator
) -> Iterator[Array | slice]:
    """Row indices of each mini-batch in an epoch, in which each training row occurs once.

    `bounds` contains the numbers of rows before each mini-batch, and the number of all rows.
    """
    batches = map(slice, bounds[:-1], bounds[1:])
    if trainer.shuffle:
        order = draw_permutation(bounds[-1], rng, v)
        rows = order if rows is None else rows[order]
    return batches if rows is None else (rows[batch] for batch in batches)


def _initialize_offsets(
    machine: Machine,
    state: TrainingState,
    v: Any,
    rows: Array | None,
    sample_weight: Array | None,
) -> None:
    """Set the offsets to weighted means of both layers over at most `N_OFFSET_ROWS` rows."""
    some = spread_rows(v, N_OFFSET_ROWS) if rows is None else v[spread_rows(rows, N_OFFSET_ROWS)]
    some = some.astype(machine.dtype, copy=False)
    weight = like(np.ones(v.shape[0]), v) if sample_weight is None else sample_weight
    share = spread_rows(weight if rows is None else weight[rows], N_OFFSET_ROWS)
    share = (share / share.sum()).astype(machine.dtype)
    state.visible_offset = share @ some
    state.hidden_offset = share @ machine.mean_hidden(some)
