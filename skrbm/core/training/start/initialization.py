"""Initial machine with small random weights, and initial particles."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.start.statistics import MOMENT_BLOCK_ELEMENTS
from skrbm.core.units import Units
from skrbm.core.units.support import ColumnStatistics

# Hidden units that are rarely active and have small weights become feature detectors. Units with a
# mean of 1/2 and zero weights learn slowly, and make the variance of a continuous layer too large.
INITIAL_FIELD = 0.5  # nats, standard deviation of the log-odds of hidden units under the data
INITIAL_ACTIVITY = 0.1  # mean of a hidden unit minus its low state, relative to its range
INITIAL_HEIGHT = 0.8  # mean of units with only a lower bound minus this bound, at zero bias
MAX_INITIAL_LOST_CURVATURE = 0.25  # share of the layers' curvature that random weights may cancel
MIN_VARIANCE = 0.25  # of an unbiased binary unit; lower bound of the largest column variance
MEAN_DIFFERENCE_STEP = 0.03  # step of finite differences, in standard deviations
N_CG_STEPS, CG_TOLERANCE = 50, 1e-3  # steps of conjugate gradients, residual relative to the target
DIFFERENCE_ROUNDING = 1e-10  # second differences of means below this are rounding errors
N_ASSUMED_ROWS = 10**6  # number of rows assumed for a prescribed mean


def initial_hidden_layer(kind: type[Units], n_columns: int) -> Units:
    """Hidden layer with prescribed means without a field.

    The mean of units with two bounds exceeds their lower bound by `INITIAL_ACTIVITY` times the
    difference between the bounds. Units without bounds have a mean of zero. The mean of units with
    only a lower bound exceeds this bound by `INITIAL_HEIGHT`.

    Parameters
    ----------
    kind : type
        Type of the units.
    n_columns : int
        Number of columns.

    Returns
    -------
    units : Units
        Plain layer in double precision.
    """
    low, high = kind.support.low, kind.support.high
    mean = low + INITIAL_ACTIVITY * (high - low)
    if np.isinf(high):
        mean = low + INITIAL_HEIGHT if np.isfinite(low) else 0.0
    return kind.start(np.full(n_columns, mean), np.zeros(n_columns), N_ASSUMED_ROWS)


def initial_machine(
    visible: Units, hidden: Units, mean: Array, variance: Array, rng: np.random.Generator
) -> Machine:
    """Machine with small random weights.

    The weights are drawn from normal distributions. The variance of a weight is proportional to the
    product of the factors `Metric.signal` of its visible and its hidden column. If the columns of
    the data are independent, the scale of the weights limits the standard deviation of the fields
    on the hidden units for any number of columns [1]_. The weights are drawn in double precision,
    so that models of single and double precision have the same initial weights, up to rounding. If
    the visible units are equal to the mean of the data, the hidden units have the distribution of
    `hidden`.

    Fluctuations of the hidden units couple the visible units to themselves and to each other. To
    bound this coupling, the weights are scaled down so that the standard deviation of the field on
    a visible unit, times that of its signal, is at most about `INITIAL_FIELD`. The visible biases
    compensate for the first-order effect of the coupling on the visible means. If both layers are
    unbounded, the weights are also scaled down such that the fraction `Machine.lost_curvature` is
    at most `MAX_INITIAL_LOST_CURVATURE`.

    Parameters
    ----------
    visible : Units
        Visible layer in double precision whose distribution, without a field, resembles the data.
    hidden : Units
        Hidden layer in double precision. Its distribution without a field is the initial
        distribution of the hidden units if the visible units are equal to the mean of the data.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of the data.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        Plain machine. If the columns of the data are independent, the log-odds of a two-state
        hidden unit have a standard deviation of about `INITIAL_FIELD` over the data. This standard
        deviation is smaller if there are few columns, if the data hardly vary, or if the weights
        are scaled down to bound the coupling.

    References
    ----------
    .. [1] LeCun, Bottou, Orr, Müller (2012), "Efficient backprop", Neural Networks: Tricks of the
       Trade, 9-48, section 4.6. :doi:`10.1007/978-3-642-35289-8_3`
    """
    no_field = hidden.zero_field(1)
    shape = len(mean), no_field.shape[1]
    metric = np.broadcast_to(visible.metric(ColumnStatistics(variance)).signal, shape[0])
    hidden_metric = np.broadcast_to(hidden.metric().signal, shape[1])
    hidden_variance = column_variances(hidden) * hidden.affine_signal[1]
    slope = visible.affine_signal[1]
    visible_variance = column_variances(visible)
    widest = max((metric * slope * visible_variance).max(), MIN_VARIANCE)
    # Products of order one: squares of slopes may overflow.
    given = (metric * slope) @ (slope * variance)
    largest = max(given, widest * (hidden_metric @ hidden_variance), 1.0)
    weights = rng.standard_normal(shape)
    weights *= INITIAL_FIELD * np.sqrt(metric / largest)[:, None]
    weights *= np.sqrt(hidden_metric)
    lost = Machine(visible, hidden, weights).lost_curvature
    if lost > MAX_INITIAL_LOST_CURVATURE:
        weights *= np.sqrt(MAX_INITIAL_LOST_CURVATURE / lost)
    coupling = _self_coupling(visible, visible_variance, weights, hidden_variance)
    centered = Machine(
        visible.recentered(mean, -coupling),
        hidden.recentered(hidden.mean(no_field)[0], no_field[0]),
        weights,
    )
    return recenter(centered, None, None)


def with_new_columns(machine: Machine, is_new: Array, visible: Units, state: Array) -> Machine:
    """Machine whose new visible columns are independent of the hidden units.

    Parameters
    ----------
    machine : Machine
        Plain machine.
    is_new : ndarray of bool of shape (n_visible,)
        Mask of the columns, which contains all columns of a unit or none.
    visible : Units
        Plain layer of the same structure as that of `machine`, which has the new columns.
    state : ndarray of shape (n_visible,)
        Visible state for which the hidden units keep their distribution.

    Returns
    -------
    machine : Machine
        Plain machine in which the weights of the new columns are zero.
    """
    removed = np.where(is_new[:, None], machine.weights, 0)
    field = machine.visible.signal(state[None])[0] @ removed
    hidden = machine.hidden.recentered(None, field)
    layer = machine.visible.with_columns(is_new, visible)
    return Machine(layer, hidden, machine.weights - removed)


def column_variances(layer: Units) -> Array:
    """Covariance between the state and the signal of each column, without a field.

    The covariance equals the derivative of the column's mean with respect to its field. This
    derivative is computed by finite differences; the fields on columns of the same unit are varied
    one after the other.

    Parameters
    ----------
    layer : Units
        Layer in double precision.

    Returns
    -------
    variances : ndarray of shape (n_columns,)
        Covariance between the state and the signal of each column.
    """
    n_columns = layer.n_columns
    unit_of_column = layer.by_column(np.arange(layer.n_units))
    position = np.arange(n_columns) - np.searchsorted(unit_of_column, unit_of_column)
    variances = np.zeros(n_columns)
    unit = np.broadcast_to(np.sqrt(layer.metric().signal), n_columns)
    for number in range(position.max() + 1):
        chosen = position == number
        variances[chosen] = _response(layer, chosen * unit)[chosen] / unit[chosen]
    return variances


def _response(layer: Units, field: Array) -> Array:
    """Derivative of the layer's mean along the direction of a field, at a field of zero."""
    below, above = layer.mean(MEAN_DIFFERENCE_STEP * np.stack([-field, field]))
    return (above - below) / (2 * MEAN_DIFFERENCE_STEP)


def _self_coupling(
    visible: Units, variances: Array, weights: Array, hidden_variance: Array
) -> Array:
    r"""Field with the same first-order effect on the visible means as hidden fluctuations.

    Let :math:`w_j` be the weights of hidden unit j, :math:`s_j^2` the variance of its signal, and
    :math:`\delta\varphi` the visible signals minus their means. To second order in the weights, the
    sum over the hidden states multiplies the distribution of the visible layer by
    :math:`\exp \tfrac12 \sum_j s_j^2 (w_j^T \delta\varphi)^2`. To the same order, this factor
    changes the visible means by half the sum over :math:`j` of :math:`s_j^2` times the second
    derivative of the means along the field :math:`w_j`. The field that causes the same change
    solves a linear system. This field is computed by the conjugate gradient method, preconditioned
    by `variances` from `column_variances`; one step is enough if all units have a single column.
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
    to_field = 1 / np.sqrt(np.where(variances > 0, variances, np.inf))  # zero if constant
    unit = np.sqrt(visible.metric().signal)

    def response(x: Array) -> Array:
        field = to_field * x
        size = np.abs(field / unit).max() or 1.0  # columns of small variance have large fields
        return to_field * _response(visible, field / size) * size

    operator = LinearOperator(2 * shift.shape, response, dtype=shift.dtype)
    target = to_field * shift
    size = float(np.linalg.norm(target))
    if size < DIFFERENCE_ROUNDING:  # all columns have symmetric distributions or are constant
        return np.zeros_like(shift)
    # The iteration would not converge to a residual below the error of the finite differences.
    tolerance = CG_TOLERANCE * size
    solution, _ = cg(operator, target, atol=tolerance, maxiter=N_CG_STEPS)
    return to_field * solution


def initial_particles(
    machine: Machine, base: Units, n_particles: int, rng: np.random.Generator
) -> Array:
    """Draw hidden states given visible states that are drawn from a model of independent units.

    Parameters
    ----------
    machine : Machine
        Machine that the chains sample.
    base : Units
        Visible layer whose distribution, without a field, resembles the data.
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
