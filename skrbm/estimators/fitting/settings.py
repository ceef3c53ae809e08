"""Conversion of an estimator's parameters to a training algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.machine import Machine, by_layer
from skrbm.core.numerics import Array, is_array, like
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.part import Part
from skrbm.core.training.parts.average import Average
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.damping import Damping
from skrbm.core.training.parts.gray_values import GrayValues
from skrbm.core.training.parts.guard import Guard
from skrbm.core.training.parts.hidden_scale import HiddenScale
from skrbm.core.training.parts.jump_to_data import (
    N_EXTRAPOLATED_ROWS,
    N_FAR_ROWS,
    N_MIXED_ROWS,
    JumpToData,
)
from skrbm.core.training.parts.missing import N_INITIAL_UPDATES, ImputedRows, MissingValues
from skrbm.core.training.parts.normalization import Normalization
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.update import Trainer
from skrbm.core.units.support import ColumnStatistics
from skrbm.estimators.fitting.problem import Data, Problem, Start

# Largest number of weights, and largest total number of weights and of elements of the states of an
# update, up to which double precision costs no time, since products take little of the time of an
# update (tests/estimators/test_tabular.py, tests/estimators/test_learning.py).
MAX_DOUBLE_WEIGHTS, MAX_DOUBLE_ELEMENTS = 2**12, 2**13


# Learning rate times `momentum_gain` and `_metric_unit` up to which steps are longer for columns of
# small variance: eight times the default. With a momentum of 0.9 and a rate of 1, CD diverges at six
# times this rate.
MAX_SCALED_RATE = 3.2


# Names that experiments may leave out: parts; mixtures, extrapolations and anchors of `JumpToData`;
# the pretraining on clusters, the factors and the step scale in `start_fit`, the kurtosis and the
# redundancy in the metric of `Preconditioner`, and the initial values of `MissingValues` in the
# first updates.
LEAVABLE = frozenset(
    {"guard", "jumps", "mixed rows", "extrapolated rows", "anchors", "damping", "average"}
    | {"clusters", "factors", "sources", "step scale", "kurtosis", "redundancy", "initial values"}
)


def trainer_of(problem: Problem, start: Start, machine: Machine, rows: Any) -> Trainer:
    """Create the training algorithm defined by the current parameters of an estimator.

    Parameters
    ----------
    problem : Problem
        Training data and model, which define the training objective.
    start : Start
        Initialization, which contains the chains and the statistics of the data.
    machine : Machine
        Machine to train in place.
    rows : object of shape (n_samples, n_visible)
        Visible states of all rows, including held-out rows, as in `Fit.rows`.

    Returns
    -------
    trainer : Trainer
        Training algorithm, with buffers for this machine.

    Raises
    ------
    ValueError
        If `_left_out` of the estimator has a name that is not in `LEAVABLE`, or if a part in
        `_added_parts` needs a feature that the algorithm does not offer.
    """
    model, rbm, phases = problem.model, problem.model.rbm, problem.objective(start.phase)
    unknown = rbm._left_out - LEAVABLE
    if unknown:
        raise ValueError(
            f"_left_out expected names among {sorted(LEAVABLE)}, got {sorted(unknown)}."
        )
    _, variance = model.moments(start.data["all"])
    has_chains = PERSISTENT_CHAINS in phases.offers
    statistics = _column_statistics(machine, variance, start.data, has_chains)
    is_alike = machine.visible.is_discrete or rbm._row_format.is_standardized
    bounds = _bounds(machine, variance)
    n_states = (problem.batch_size + len(start.state.particles)) * sum(machine.weights.shape)
    is_large = machine.weights.size + n_states > MAX_DOUBLE_ELEMENTS
    is_rounded = is_large and is_alike and not phases.is_exact
    buffers = UpdateBuffers(np.float32 if is_rounded else machine.dtype)
    optimizer = OPTIMIZERS[rbm.optimizer](rbm.momentum)
    preconditioner = Preconditioner(
        statistics,
        rbm._metric_unit * _bounded_scale(rbm, start.data, optimizer.momentum_gain),
        rbm.max_gradient_norm,
    )
    penalties = penalties_of(rbm)
    is_visible_unbounded, is_hidden_unbounded = map(np.any, machine.curvature_scales)
    n_initial = 0 if "initial values" in rbm._left_out else N_INITIAL_UPDATES
    hidden_scale = HiddenScale(preconditioner, not is_visible_unbounded, has_chains)
    # Rows that are not an array are checked in each mini-batch.
    may_be_gray = rbm.draw_states and (not is_array(rows) or machine.visible.has_means(rows))
    parts: tuple[Part, ...] = (
        Guard(start.dtype),
        *([GrayValues()] if may_be_gray else ()),
        _jumps(start.phase.n_temperatures, rbm._left_out),
        *([hidden_scale] if is_hidden_unbounded else ()),
        Damping(preconditioner, optimizer.momentum_gain),
        *([penalties] if penalties else ()),
        *rbm._added_parts,
        *([Normalization()] if is_visible_unbounded and is_hidden_unbounded else ()),
        *([Constraints(rbm.max_norm, bounds)] if rbm.max_norm or bounds else ()),
        *([Average()] if rbm.average else ()),
        *([MissingValues(rows, buffers, n_initial)] if isinstance(rows, ImputedRows) else ()),
    )
    return Trainer(
        phases,
        rbm.learning_rate,
        problem.batch_size,
        optimizer=optimizer,
        schedule=SCHEDULES[rbm.learning_rate_schedule],
        preconditioner=preconditioner,
        parts=tuple(  # an added part that the phases cannot serve raises a ValueError
            part
            for part in parts
            if part.name not in rbm._left_out
            and (part in rbm._added_parts or part.needs <= phases.offers)
        ),
        shuffle=rbm.shuffle,
        centering=rbm.centering,
        buffers=buffers,
    )


def _column_statistics(
    machine: Machine, variance: Array, data: Data, has_chains: bool
) -> ColumnStatistics:
    """Statistics of the visible columns for the metric; only persistent chains lag behind."""
    arrays = variance, data["kurtosis"], data["redundancy"] if has_chains else variance[:0]
    of_columns = (np.pad(a, (0, len(variance) - len(a))) for a in arrays)  # 0 for a label: not used
    dtype, weights = machine.dtype, machine.weights
    return ColumnStatistics(*(like(array.astype(dtype), weights) for array in of_columns))


def penalties_of(rbm: Any) -> Penalties:
    """Penalties of the weights, from the parameters of an estimator."""
    return Penalties(rbm.l1, rbm.l1_squared, rbm.l2)


def _jumps(n_temperatures: int, left_out: frozenset[str]) -> JumpToData:
    """Jumps of the chains, without the kinds of rows that are left out."""
    return JumpToData(
        n_temperatures,
        n_mixed=0 if "mixed rows" in left_out else N_MIXED_ROWS,
        n_extrapolated=0 if "extrapolated rows" in left_out else N_EXTRAPOLATED_ROWS,
        n_anchors=0 if "anchors" in left_out else N_FAR_ROWS,
    )


def _bounded_scale(rbm: Any, data: Data, momentum_gain: float) -> float:
    """Entry "step_scale" of `Start.data`, reduced if other settings already make the steps long.

    With the factor, the rate is at most `MAX_SCALED_RATE`, and a step is at most Newton's step for
    the quadratic penalties. The factor is never less than 1.
    """
    tiny = np.finfo(float).tiny
    rate = rbm.learning_rate * momentum_gain
    longest = min(
        MAX_SCALED_RATE / max(rate * rbm._metric_unit, tiny),
        1 / max(rate * (rbm.l2 + rbm.l1_squared), tiny),
    )
    return max(1.0, min(data["step_scale"], longest))


def _bounds(machine: Machine, variance: Array) -> dict[str, tuple[Array, Array]]:
    """Lower and upper bounds of parameters of both layers, given the variances of the data.

    The bounds are widened to include the current values. Parameters without bounds are left out.
    """
    variance = like(variance, machine.weights)
    hidden_variance = np.ones_like(machine.weights, np.float64, shape=machine.hidden.n_columns)
    ranges = by_layer(machine.visible.bounds(variance), machine.hidden.bounds(hidden_variance))
    bounds = {}
    for name, (low, high) in ranges.items():
        present = machine.parameters.get(name)
        if present is not None:  # the user may have assigned values
            bounds[name] = np.minimum(low, present), np.maximum(high, present)
    return bounds
