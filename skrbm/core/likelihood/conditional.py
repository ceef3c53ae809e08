"""The distribution of one visible unit given all others."""

from __future__ import annotations

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import QuadratureError, UnknownRangeError

# Of a quadrature where hidden units have no bounds: depth in nats of its ends below the present
# state, and standard deviations of the field that the hidden units exert.
QUADRATURE_DEPTH, FIELD_MARGIN = 37.0, 8.0
CURVATURE_ROUNDING = 1e-3  # a unit of this curvature everywhere has at most one over it as variance


def field_ranges(machine: Machine, v: Array) -> tuple[Array, Array]:
    r"""Ranges of the fields that visible units feel from the hidden ones, given all others.

    Bounded hidden units exert a field between the same bounds whatever the others are. Of others
    the variance given any field is known to be at most :math:`s_j^2`, so that the distribution of a
    visible unit of slope :math:`\sigma_i` and curvature :math:`\kappa_i` given the others is no
    wider than a normal one of the precision

    .. math:: \kappa_i - \sigma_i^2 q_i, \qquad q_i = \sum_j W_{ij}^2 s_j^2

    around the present state, whose gradient is known, and the field's variance is :math:`q_i`.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states, about which the distributions are known.

    Returns
    -------
    low, high : ndarray of shape (n_visible,) or (n_samples, n_visible)
        Bounds for all samples or, without bounds of the hidden states, for each of them.

    Raises
    ------
    QuadratureError
        If a distribution may be wider than any normal one.
    """
    visible, hidden = machine.visible, machine.hidden
    low, high = hidden.field_bounds(machine.weights)
    if np.isfinite(high - low).all():
        return low, high
    spread = machine.weights**2 @ (hidden.affine_signal[1] ** 2 * hidden.largest_variance)
    field, slope = machine.visible_field(machine.mean_hidden(v)), visible.affine_signal[1]
    down, up = (bound - v for bound in visible.column_bounds)
    (real,) = np.isfinite(visible.tail_curvature).nonzero()
    own = visible.tail_curvature[real]
    if not (own * visible.largest_variance[real] < 1 + CURVATURE_ROUNDING).all():
        raise UnknownRangeError(
            f"A {type(visible).__name__} unit given the others has no known range: its energy is not "
            f"convex, and {type(hidden).__name__} hidden units have no bounds. Use "
            f"log-likelihoods or free energies, or hidden units with two states."
        )
    curvature = own - slope[real] ** 2 * spread[real]
    if not (curvature > 0).all():
        raise QuadratureError(
            f"A {type(visible).__name__} unit given the others expected its own curvature "
            f"to be more than {type(hidden).__name__} hidden units can take away, got "
            f"{curvature.min():.3g} more."
        )
    pull = own * (visible.mean(field) - v)[:, real] / curvature
    reach = np.sqrt(pull**2 + 2 * QUADRATURE_DEPTH / curvature)
    down[:, real], up[:, real] = pull - reach, pull + reach
    margin = FIELD_MARGIN * np.sqrt(spread)
    return field + slope * spread * down - margin, field + slope * spread * up + margin


def conditional_distribution(
    machine: Machine, v: Array, number: int, refinement: int = 1
) -> tuple[Array, Array]:
    r"""Probabilities of all that a visible unit could be, given the other units.

    .. math:: p(v_u \mid v_{-u}) \propto e^{-F(v)}

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states; the unit's own do not matter, as long as they are finite.
    number : int
        Number of the unit.
    refinement : int, default=1
        Times as many nodes of a quadrature with evenly spaced ones.

    Returns
    -------
    values : ndarray of shape (n_values, n_samples or 1, n_own)
        States of the unit, or nodes of a quadrature that is exact for a continuous one.
    probability : ndarray of shape (n_values, n_samples)
        With a sum of one for each sample; of nodes, with the weight of the quadrature.

    Raises
    ------
    QuadratureError
        If a continuous unit's distribution is too wide to be integrated.
    """
    unit, columns = machine.visible.take(number), machine.visible.unit_columns(number)
    states, weights = v[:, columns], machine.weights[columns]
    values, log_measure = unit.unit_values(0), np.zeros((1, 1))
    if values is None:
        values, log_measure = unit.conditional_values(states, *_own_ranges(machine, v, columns))
        if refinement > 1:
            n_nodes = refinement * (len(values) - 1) + 1
            values = np.linspace(values[0], values[-1], n_nodes, dtype=values.dtype)
            log_measure = log_measure - np.log(refinement)
    else:
        values = values[:, None]
    rest = machine.hidden_field(v) - unit.signal(states) @ weights
    log_weight = np.empty((len(values), len(v)))
    for k, value in enumerate(values):
        field = rest + unit.signal(value) @ weights
        log_weight[k] = machine.hidden.log_partition(field) - unit.energy(value)
    log_weight += log_measure
    log_weight -= np.logaddexp.reduce(log_weight, axis=0)
    return values, np.exp(log_weight)


def _own_ranges(machine: Machine, v: Array, columns: Array) -> tuple[Array, Array]:
    """Ranges of the fields of one unit's columns."""
    low, high = field_ranges(machine, v)
    return low[..., columns], high[..., columns]


def conditional_mean(machine: Machine, v: Array, number: int) -> Array:
    """Expected columns of a visible unit given the other units, (n_samples, n_own).

    Parameters are those of `conditional_distribution`. The columns of a unit with several are 0 or
    1, and their means its probabilities.
    """
    values, probability = conditional_distribution(machine, v, number)
    return np.asarray((probability[:, :, None] * values).sum(axis=0).astype(machine.dtype))
