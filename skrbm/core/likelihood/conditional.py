"""Conditional distribution of one visible unit given all other visible units."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, apart_from, log_sum_exp
from skrbm.core.units import QuadratureError, Units, UnknownRangeError

# Range of a quadrature if hidden units are unbounded: decrease of the log-density, in nats, from
# the current state to the ends, and margin of the hidden units' field, in standard deviations.
QUADRATURE_DEPTH, FIELD_MARGIN = 37.0, 8.0


def field_ranges(machine: Machine, v: Array) -> tuple[Array, Array]:
    r"""Ranges of the field of the hidden units on each visible unit, given the other visible units.

    If all hidden units have two bounds, the bounds of the field are the same for all visible
    states. Otherwise, let :math:`s_j^2` be an upper bound on the variance of the signal of hidden
    unit j given any field, :math:`\sigma_i` the slope of the signal of visible unit i, and
    :math:`\kappa_i` the smallest curvature of its energy. Consider the normal distribution with the
    precision

    .. math:: \kappa_i - \sigma_i^2 q_i, \qquad q_i = \sum_j W_{ij}^2 s_j^2

    whose log-density has the gradient :math:`\kappa_i (m_i - v_i)` at the current state
    :math:`v_i`, where :math:`m_i` is the mean of visible unit i given the mean hidden states. For
    Gaussian units, the log-density of the conditional distribution has the same gradient there. The
    conditional distribution is no wider than this normal distribution. The variance of the field
    given the visible states is at most :math:`q_i`.

    The range of the states of unit i ends where the log-density of this normal distribution is
    `QUADRATURE_DEPTH` nats lower than at :math:`v_i`. If the density is a sum of several log-concave
    functions (see `Units.log_concave_parts`), the range contains those of all functions. For a
    visible unit with two bounds, the range ends at the bounds. If the state changes by
    :math:`\delta`, the expectation of the field changes by at most :math:`\sigma_i q_i |\delta|`.
    This gives a range of the expectation, which is extended by `FIELD_MARGIN` times
    :math:`\sqrt{q_i}` on both sides.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Current visible states.

    Returns
    -------
    low, high : ndarray of shape (n_visible,) or (n_samples, n_visible)
        Bounds of the field on each visible unit. If all hidden units have two bounds, these arrays
        have shape (n_visible,) and hold for all samples. Otherwise, the probability of a field
        beyond the bounds is negligible.

    Raises
    ------
    QuadratureError
        If the precision of a bounding normal distribution is not positive, since the weights are
        too large.
    UnknownRangeError
        If a hidden unit lacks a bound, and the energy of a visible unit that lacks one is not known
        to be convex (see `Units.log_concave_parts`).
    """
    visible, hidden = machine.visible, machine.hidden
    low, high = hidden.field_bounds(machine.weights)
    if np.isfinite(high - low).all():
        return low, high
    signal_variance = hidden.affine_signal[1] ** 2 * hidden.largest_variance
    spread = machine.weights**2 @ signal_variance
    field, slope = machine.visible_field(machine.mean_hidden(v)), visible.affine_signal[1]
    down, up = (bound - v for bound in visible.column_bounds)
    for real, curvature, mean in visible.log_concave_parts(field):
        if np.isnan(curvature).any():
            raise UnknownRangeError(
                f"A real-valued unit given the others has no known range: its energy is not convex, "
                f"and {hidden.type_name} hidden units have no bounds. Use log-likelihoods or free "
                f"energies, or hidden units with two states."
            )
        scaled = slope[real, None] * machine.weights[real]  # before squares, which may overflow
        reduced = curvature - (scaled**2 @ signal_variance)[:, None]
        if not (reduced > 0).all():
            raise QuadratureError(
                f"A real-valued unit given the others expected an energy whose curvature exceeds "
                f"the reduction by {hidden.type_name} hidden units, got a difference of "
                f"{reduced.min():.3g}."
            )
        shift = curvature / reduced * (mean - v[:, real, None])
        half_range = np.sqrt(shift**2 + 2 * QUADRATURE_DEPTH / reduced)
        down[:, real] = (shift - half_range).min(axis=2)
        up[:, real] = (shift + half_range).max(axis=2)
    margin = FIELD_MARGIN * np.sqrt(spread)
    return field + slope * spread * down - margin, field + slope * spread * up + margin


def conditional_distribution(
    machine: Machine, v: Array, number: int, refinement: int = 1
) -> tuple[Array, Array]:
    r"""Conditional distribution of a continuous visible unit given the other visible units.

    .. math:: p(v_u \mid v_{-u}) \propto e^{-F(v)}

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states. The states of the unit itself must be finite. They affect the result only
        if a hidden unit lacks a bound: the quadrature nodes may then depend on them.
    number : int
        Index of the unit.
    refinement : int, default=1
        Factor by which the number of intervals of an evenly spaced quadrature is multiplied. It
        must be 1 for types whose nodes are not evenly spaced.

    Returns
    -------
    values : ndarray of shape (n_values, n_samples or 1, width)
        Atoms of the unit and, after them, its quadrature nodes. The width is the number of its
        columns.
    probability : ndarray of shape (n_values, n_samples)
        Probabilities of the values, which sum to one for each sample. The probability of a
        quadrature node is its density, multiplied by the quadrature weight.

    Raises
    ------
    QuadratureError
        If `field_ranges` or `Units.conditional_values` raises it.
    UnknownRangeError
        If `field_ranges` raises it.
    """
    values, log_weight = _log_weights(machine, v, number, refinement)
    return values, softmax(log_weight, axis=0)


def log_sum_over_unit(machine: Machine, v: Array, number: int) -> Array:
    r"""Log-sum over the states of a visible unit: :math:`\log \sum_{v_u} e^{-F(v)}`.

    The parameters and errors are described in `conditional_distribution`. The states of a
    continuous unit are integrated over by quadrature. The result has shape (n_samples,), in nats.
    """
    _, log_weight = _log_weights(machine, v, number, 1)
    energies = machine.visible.unit_energies(v)
    energies[:, number] = 0
    return log_sum_exp(log_weight, axis=0) - energies.sum(axis=1)


def log_weights_of_values(
    hidden: Units, unit: Units, weights: Array, rest: Array, values: Array
) -> Array:
    """Logarithms of the unnormalized probabilities of values of a visible unit, in nats.

    The energies of the other visible units are omitted.

    Parameters
    ----------
    hidden : Units
        Hidden layer.
    unit : Units
        Layer of the visible unit alone.
    weights : ndarray of shape (width, n_hidden)
        Weights of the unit.
    rest : ndarray of shape (n_samples, n_hidden)
        Fields of the other visible units on the hidden units.
    values : ndarray of shape (n_values, n_samples or 1, width)
        Values of the unit.

    Returns
    -------
    log_weights : ndarray of shape (n_values, n_samples)
        In double precision.
    """
    if values.shape[1] == 1:  # those of all samples
        fields, energies = unit.signal(values[:, 0]) @ weights, unit.energy(values[:, 0])
        return _log_weights_of_fields(hidden, rest, fields, energies)
    log_weights = np.empty((len(values), len(rest)))
    for k, value in enumerate(values):
        log_weights[k] = hidden.log_partition(rest + unit.signal(value) @ weights)
        log_weights[k] -= unit.energy(value)
    return log_weights


def _log_weights_of_fields(hidden: Units, rest: Array, fields: Array, energies: Array) -> Array:
    """Result of `log_weights_of_values` for values with the given fields and energies.

    These have the shapes (n_values, n_hidden) and (n_values,), and are the same for all samples.
    """
    log_weights = hidden.shifted(rest).log_partition_changes(fields).astype(np.float64)
    return log_weights + hidden.log_partition(rest) - energies[:, None]


def _log_weights(machine: Machine, v: Array, number: int, refinement: int) -> tuple[Any, Array]:
    """Values of `conditional_distribution`, and logarithms of their unnormalized probabilities.

    For a discrete unit, the first result is None: the array of all states may be large. The
    energies of the other units are omitted.
    """
    unit, columns = machine.visible.take(number), machine.visible.unit_columns(number)
    states, weights = v[:, columns], machine.weights[columns]
    rest = machine.hidden_field(v) - unit.signal(states) @ weights
    if unit.is_discrete:
        return None, _log_weights_of_fields(
            machine.hidden, rest, *unit.fields_and_energies(weights)
        )
    low, high = field_ranges(machine, v)
    values, log_measure = unit.conditional_values(states, low[..., columns], high[..., columns])
    if refinement > 1:
        n_atoms = len(unit.unit_atoms(0))
        (atoms, nodes), steps = np.split(values, [n_atoms]), log_measure[-1:] - np.log(refinement)
        n_nodes = refinement * (len(nodes) - 1) + 1
        nodes = np.linspace(nodes[0], nodes[-1], n_nodes, dtype=values.dtype)
        values = np.concatenate([atoms, apart_from(atoms, nodes)])
        log_measure = np.concatenate([log_measure[:n_atoms], np.repeat(steps, n_nodes, axis=0)])
    log_weight = log_weights_of_values(machine.hidden, unit, weights, rest, values)
    log_weight += log_measure
    return values, log_weight


def conditional_mean(machine: Machine, v: Array, number: int) -> Array:
    """Conditional mean of a visible unit given the other visible units.

    The parameters and errors are described in `conditional_distribution`. The result has shape
    (n_samples, width), where width is the number of columns of the unit. For a one-hot encoded
    unit, the means are the probabilities of its values.
    """
    values, log_weight = _log_weights(machine, v, number, 1)
    probability = softmax(log_weight, axis=0)
    if values is None:
        mean = machine.visible.take(number).unit_mean(probability.T)
    elif values.shape[1] == 1:  # those of all samples
        mean = probability.T @ values[:, 0]
    else:
        mean = (probability[:, :, None] * values).sum(axis=0)
    return mean.astype(machine.dtype)
