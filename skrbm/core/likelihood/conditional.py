"""The distribution of one visible unit given all others."""

from __future__ import annotations

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array


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
        If a continuous unit's law is too wide to be integrated.
    """
    unit, columns = machine.visible.take(number), machine.visible.unit_columns(number)
    states, weights = v[:, columns], machine.weights[columns]
    values, log_measure = unit.unit_values(0), np.zeros((1, 1))
    if values is None:
        values, log_measure = unit.conditional_values(states, *machine.hidden.field_bounds(weights))
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


def conditional_mean(machine: Machine, v: Array, number: int) -> Array:
    """Expected columns of a visible unit given the other units, (n_samples, n_own).

    Parameters are those of `conditional_distribution`. The columns of a unit with several are 0 or
    1, and their means its probabilities.
    """
    values, probability = conditional_distribution(machine, v, number)
    return np.asarray((probability[:, :, None] * values).sum(axis=0).astype(machine.dtype))
