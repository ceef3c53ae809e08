"""Initial machine with small random weights, and initial particles."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.start.statistics import MOMENT_BLOCK_ELEMENTS
from skrbm.core.units import Units

# Rarely active units with small weights become feature detectors; units at 1/2 without weights learn
# slowly, and make the variance of a continuous layer too large.
START_FIELD = 0.5  # nats, standard deviation of the hidden fields under the data
START_ACTIVITY = 0.1  # of the way from the low to the high state
START_HEIGHT = 0.8  # mean over the least state of units without a greatest one: no field, no bias
MAX_START_LOSS = 0.25  # share of the layers' curvature that random weights may take away
MIN_VARIANCE = 0.25  # that of a fair bit: rare ones may be moved as little
MEAN_DIFFERENCE_STEP = 0.03  # standard deviations
N_CG_STEPS, CG_TOLERANCE = 50, 1e-3  # steps of conjugate gradients, residual relative to the target
DIFFERENCE_ROUNDING = 1e-10  # second differences of means that are rounding
N_ASSUMED_ROWS = 10**6  # rows behind a prescribed mean


def initial_hidden_layer(
    kind: type[Units], n_columns: int, activity: float = START_ACTIVITY
) -> Units:
    """Hidden layer whose units are rarely in the higher of their states without a field.

    Units without bounds are at zero, or at `START_HEIGHT` over their least state.

    Parameters
    ----------
    kind : type
        Of the units.
    n_columns : int
        How many.
    activity : float, default=START_ACTIVITY
        Mean of a unit, between 0 and 1 on the way from its low to its high state.

    Returns
    -------
    units : Units
        Plain; of bounded states `activity` of the way from the least to the greatest on average.
    """
    low, high = kind.support.low, kind.support.high
    mean = low + activity * (high - low)
    if np.isinf(high):
        mean = low + START_HEIGHT if np.isfinite(low) else 0.0
    return kind.start(np.full(n_columns, mean), np.zeros(n_columns), N_ASSUMED_ROWS)


def initial_machine(
    visible: Units, hidden: Units, mean: Array, variance: Array, rng: np.random.Generator
) -> Machine:
    """Machine of layers that are hardly coupled.

    The weights are normal, and alike in the metric of both layers. They are drawn in double
    precision, so that single and double precision models start alike. At the data's mean the
    hidden units feel their own bias alone.

    Hidden units that vary couple the visible units to themselves and to each other. The weights
    are small enough for that, whatever the number of hidden units, and what the coupling to
    themselves does to the visible means is taken back.

    Parameters
    ----------
    visible : Units
        Double precision layer that resembles the data without a field.
    hidden : Units
        Double precision layer as it should be at the data's mean.
    mean, variance : ndarray of shape (n_visible,)
        Of the data.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        Plain. Under data of independent columns the log-odds of hidden units with two states have
        standard deviation `START_FIELD`; less where the data hardly vary, or where the fields of
        the visible units, in their standard deviations, would be larger; and of two layers without
        bounds, so small that they have a distribution.

    References
    ----------
    .. [1] LeCun, Bottou, Orr, Müller (2012), "Efficient backprop", Neural Networks: Tricks of the
       Trade, 9-48, section 4.6. :doi:`10.1007/978-3-642-35289-8_3`
    """
    no_field = hidden.zero_field(1)
    shape = len(mean), no_field.shape[1]
    metric = np.broadcast_to(visible.metric(variance).signal, shape[0])
    hidden_metric = np.broadcast_to(hidden.metric(None).signal, shape[1])
    hidden_variance = column_variances(hidden) * hidden.affine_signal[1]
    slope = visible.affine_signal[1]
    visible_variance = column_variances(visible)
    widest = max((metric * slope * visible_variance).max(), MIN_VARIANCE)
    largest = max(metric @ (slope**2 * variance), widest * (hidden_metric @ hidden_variance), 1.0)
    weights = rng.standard_normal(shape)
    weights *= START_FIELD * np.sqrt(metric / largest)[:, None]
    weights *= np.sqrt(hidden_metric)
    lost = Machine(visible, hidden, weights).lost_curvature
    if lost > MAX_START_LOSS:
        weights *= np.sqrt(MAX_START_LOSS / lost)
    coupling = _self_coupling(visible, visible_variance, weights, hidden_variance)
    centred = Machine(
        visible.recentered(mean, -coupling),
        hidden.recentered(hidden.mean(no_field)[0], no_field[0]),
        weights,
    )
    return recenter(centred, None, None)


def column_variances(layer: Units) -> Array:
    """Covariance of each column's state with its signal, without a field: how its mean responds.

    Parameters
    ----------
    layer : Units
        Double precision.

    Returns
    -------
    variances : ndarray of shape (n_columns,)
        By a finite difference of the mean. Columns of one unit have a field in turn.
    """
    n_columns, n_units = layer.n_columns, layer.n_units
    position = np.zeros(n_columns, dtype=int)
    if n_units < n_columns:
        for columns in map(layer.unit_columns, range(n_units)):
            position[columns] = np.arange(len(columns))
    variances = np.zeros(n_columns)
    unit = np.broadcast_to(np.sqrt(layer.metric(None).signal), n_columns)
    for number in range(position.max() + 1):
        is_own = position == number
        variances[is_own] = _response(layer, is_own * unit)[is_own] / unit[is_own]
    return variances


def _response(layer: Units, field: Array) -> Array:
    """Derivative of the mean along a field."""
    below, above = layer.mean(MEAN_DIFFERENCE_STEP * np.stack([-field, field]))
    return np.asarray((above - below) / (2 * MEAN_DIFFERENCE_STEP))


def _self_coupling(
    visible: Units, variances: Array, weights: Array, hidden_variance: Array
) -> Array:
    r"""Constant field that moves the visible means as their coupling to themselves does.

    Hidden units of variances :math:`s_j^2` multiply the distribution of each visible unit by
    :math:`\exp \tfrac12 \sum_j s_j^2 (w_j^T \delta\varphi)^2`. To first order that moves its mean
    by half the second derivatives along the rows of weights. The field that does the same is found
    by conjugate gradients, in which units of one column take a single step; `variances` has the
    visible columns' own.
    """
    n_visible, n_hidden = weights.shape
    mean = visible.mean(np.zeros((1, n_visible)))
    shift = np.zeros(n_visible)
    n_rows = max(1, MOMENT_BLOCK_ELEMENTS // n_visible)
    for begin in range(0, n_hidden, n_rows):
        block = slice(begin, begin + n_rows)
        field = MEAN_DIFFERENCE_STEP * weights[:, block].T
        bend = (visible.mean(field) - mean) + (visible.mean(-field) - mean)
        shift += hidden_variance[block] @ bend / (2 * MEAN_DIFFERENCE_STEP**2)
    does_vary = variances > 0
    to_field = np.where(does_vary, 1 / np.sqrt(np.where(does_vary, variances, 1)), 0.0)

    unit = np.sqrt(visible.metric(None).signal)

    def response(x: Array) -> Array:
        field = to_field * x
        size = np.abs(field / unit).max() or 1.0  # units that hardly vary have large fields
        return to_field * _response(visible, field / size) * size

    operator = LinearOperator(2 * shift.shape, response, dtype=shift.dtype)
    target = to_field * shift
    # A smaller residue than finite differences have sends the directions astray.
    size = float(np.linalg.norm(target))
    if size < DIFFERENCE_ROUNDING:  # symmetric columns, perhaps of units that no field moves
        return np.zeros_like(shift)
    residue = CG_TOLERANCE * size
    solution, _ = cg(operator, target, atol=residue, maxiter=N_CG_STEPS)
    return np.asarray(to_field * solution)


def initial_particles(
    machine: Machine, base: Units, n_particles: int, rng: np.random.Generator
) -> Array:
    """Hidden states under visible ones that have the data's statistics and nothing else of them.

    Parameters
    ----------
    machine : Machine
        Whose hidden units.
    base : Units
        Visible layer that resembles the data without a field.
    n_particles : int
        Number of chains.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    particles : ndarray of shape (n_particles, n_hidden)
        Hidden states.
    """
    v = base.sample(base.zero_field(n_particles), rng)
    return machine.sample_hidden(v.astype(machine.dtype), rng)
