"""From an estimator's parameters to the training algorithm that they describe."""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.chains.ladder import Ladder
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.monitoring import Judge, Plateau
from skrbm.core.training.negative_phase import ALGORITHMS, NegativePhase
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.part import Part
from skrbm.core.training.parts.average import Average
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.damping import Damping
from skrbm.core.training.parts.grey_values import GreyValues
from skrbm.core.training.parts.guard import Guard
from skrbm.core.training.parts.jump_to_data import MIXED_SHARE, N_FAR_ROWS, JumpToData
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.update import Trainer
from skrbm.core.units import Units

SMALLEST_BATCH, LARGEST_BATCH = 20, 100
SMALL = 2**12  # number of weights of a machine that spends its time outside the products
# Numbers in the weights and states of an update, beyond which single precision saves more than rounding
# takes.
LARGE_UPDATE = 2**13


def batch_rows(rbm: Any, n_rows: int) -> int:
    """Largest number of rows in a mini-batch of a pass over so many rows."""
    n_batch: int | str = rbm.batch_size
    if isinstance(n_batch, str):  # "auto": a hundred updates in a pass
        return min(max(n_rows // 100, SMALLEST_BATCH), LARGEST_BATCH)
    return n_batch


def algorithm_of(rbm: Any, base: Units, betas: Any) -> tuple[Ladder, NegativePhase]:
    """Negative phase, with the given temperatures unless another number is asked for."""
    n_temperatures = rbm.n_temperatures
    ladder = Ladder(betas) if len(betas) == n_temperatures else Ladder.of(n_temperatures)
    return ladder, ALGORITHMS[rbm.algorithm].create(rbm.n_gibbs_steps, base, ladder)


def working_copy(machine: Machine, dtype: Any) -> Machine:
    """Machine to train, in the precision of the public arrays or, where that costs nothing, double."""
    return machine.astype(np.float64 if machine.weights.size <= SMALL else dtype, copy=True)


def trainer_of(
    rbm: Any,
    machine: Machine,
    phases: NegativePhase | LabelObjective,
    n_batch: int,
    n_chains: int,
    precision: Any,
    variance: Array,
    kurtosis: Array,
) -> Trainer:
    """Training algorithm of an estimator's present parameters.

    Parameters
    ----------
    rbm : BaseRBM
        Has the parameters.
    machine : Machine
        What is to be trained.
    phases : NegativePhase or LabelObjective
        Estimator of the positive and the negative phase.
    n_batch : int
        Largest number of rows in a mini-batch.
    n_chains : int
        Number of persistent chains, of all temperatures.
    precision : dtype
        Of the public arrays.
    variance, kurtosis : ndarray of shape (n_visible,)
        Of the data.

    Returns
    -------
    trainer : Trainer
        For this machine alone.
    """
    bounds = {}
    for name, (low, high) in machine.visible.bounds(variance).items():
        present = machine.parameters.get(f"visible_{name}")
        if present is not None:  # values assigned by hand are left where they are
            bounds[f"visible_{name}"] = np.minimum(low, present), np.maximum(high, present)
    is_discrete = machine.visible.is_discrete and machine.hidden.is_discrete
    is_alike = is_discrete or rbm._row_format.is_standardized
    n_states = (n_batch + n_chains) * sum(machine.weights.shape)
    is_large = machine.weights.size + n_states > LARGE_UPDATE
    is_rounded = is_large and is_alike and not phases.is_exact
    optimizer = OPTIMIZERS[rbm.optimizer](rbm.momentum)
    preconditioner = Preconditioner(
        variance.astype(machine.dtype),
        kurtosis.astype(machine.dtype),
        rbm._metric_unit,
        rbm.max_gradient_norm,
    )
    penalties = Penalties(rbm.l1, rbm.l2, rbm.sparsity_target, rbm.sparsity_cost)
    parts: tuple[Part, ...] = (
        Guard(precision),
        *([GreyValues()] if rbm.draw_states else ()),
        JumpToData(
            phases.n_chains,
            0.0 if "mixed rows" in rbm._left_out else MIXED_SHARE,
            0 if "anchors" in rbm._left_out else N_FAR_ROWS,
        ),
        Damping(preconditioner, optimizer.momentum_gain),
        *([penalties] if any((rbm.l1, rbm.l2, rbm.sparsity_cost)) else ()),
        *([Constraints(rbm.max_norm, bounds)] if rbm.max_norm or bounds else ()),
        *([Average()] if rbm.average else ()),
    )
    return Trainer(
        phases,
        rbm.learning_rate,
        n_batch,
        optimizer=optimizer,
        schedule=SCHEDULES[rbm.learning_rate_schedule],
        preconditioner=preconditioner,
        parts=tuple(
            part for part in parts if part.needs <= phases.offers and part.name not in rbm._left_out
        ),
        shuffle=rbm.shuffle,
        centering=rbm.centering,
        buffers=UpdateBuffers(np.float32 if is_rounded else machine.dtype),
    )


def judge_of(rbm: Any, *, is_planned: bool) -> Judge | None:
    """Judge of a run's scores; None where training goes on whatever they are."""
    slows_down = rbm.learning_rate_schedule == "adaptive"
    if not is_planned or not (slows_down or rbm.early_stopping):
        return None
    plateau = Plateau(rbm.tol, rbm.n_iter_no_change)
    return Judge(plateau, slows_down, keeps_best=rbm.early_stopping)
