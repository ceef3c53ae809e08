"""Pseudo-likelihood: the exact one of every row, and estimates for monitoring."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows
from skrbm.core.parallel import map_blocks
from skrbm.core.units import QuadratureError

MONITOR_ROWS = 100, 1000
MONITOR_FLIPS = 8  # of a row, before more rows are asked
MONITOR_EVALUATIONS = 2**15, 2**22
MONITOR_NODES = 1000  # of a quadrature: wider laws are those of models that have exploded
MONITOR_SHARE = 1024  # products of states and weights in a pass for one evaluation: about 5 %
DENSE_ELEMENTS = 2**22  # of a block of sparse data made dense
BLOCK_ELEMENTS = 2**19  # of one temporary array: smaller ones spend their time between operations


def pseudo_likelihood(machine: Machine, v: Any, n_jobs: int | None = None) -> Array:
    r"""Exact log pseudo-likelihood of visible states.

    .. math:: \log \mathrm{PL}(v) = \sum_i \log p(v_i \mid v_{-i})

    Each conditional law is a sum, or for continuous units a quadrature, of
    :math:`e^{-F}` over the values of one unit.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Visible states.
    n_jobs : int, default=None
        Number of threads over blocks of rows; the result does not depend on it.

    Returns
    -------
    pseudo_likelihood : ndarray of shape (n_samples,)
        In nats, summed over the visible units.

    References
    ----------
    .. [1] Besag (1975), "Statistical analysis of non-lattice data", The Statistician 24(3),
       179-195. :doi:`10.2307/2987782`
    """
    n_visible, n_hidden = machine.weights.shape
    n_rows = max(1, min(BLOCK_ELEMENTS // n_hidden, DENSE_ELEMENTS // n_visible))
    bounds, every = _field_bounds(machine), np.arange(n_visible)[:, None]

    def scores(begin: int) -> Array:
        return _sum_of_conditionals(machine, bounds, v[begin : begin + n_rows], every)

    blocks = ((begin,) for begin in range(0, v.shape[0], n_rows))
    return np.concatenate(map_blocks(scores, blocks, n_jobs))


def estimate_pseudo_likelihood(
    machine: Machine,
    v: Any,
    n_flips: int,
    rng: np.random.Generator,
    *,
    bounds: tuple[Array, Array] | None = None,
) -> Array:
    """Unbiased estimate of the log pseudo-likelihood from a few units of every row.

    The units of a row are evenly spaced from a random one on, so that none comes twice, and with
    `n_flips` the number of visible units the estimate is exact.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Visible states.
    n_flips : int
        Number of visible units of every row to look at, at most all of them.
    rng : numpy.random.Generator
        Source of random numbers.
    bounds : tuple of two ndarray of shape (n_visible,), default=None
        Least and greatest field of every visible unit, when they are already known.

    Returns
    -------
    estimate : ndarray of shape (n_samples,)
        In nats, scaled up to all visible units.

    Raises
    ------
    QuadratureError
        If a continuous unit's law is too wide to be integrated.
    """
    n_visible = machine.visible.n_units
    first = rng.integers(n_visible, size=v.shape[0])
    spacing = np.arange(n_flips)[:, None] * n_visible // n_flips
    bounds = _field_bounds(machine) if bounds is None else bounds
    total = _sum_of_conditionals(machine, bounds, v, (first + spacing) % n_visible)
    return np.asarray(total * (n_visible / n_flips))


def monitor(machine: Machine, v: Any, n_samples: int | None = None) -> float:
    """Mean estimated pseudo-likelihood of some rows: a training curve at bounded cost.

    Rows and units are the same on every call, so that the curve is smooth and the training's
    stream is left alone.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data.
    n_samples : int, default=None
        Number of rows of a pass, of whose cost this is a small part; None for those of `v`.

    Returns
    -------
    score : float
        In nats per row; NaN where a continuous unit's law is too wide to be integrated.
    """
    n_visible, n_hidden = machine.weights.shape
    work = (n_samples or v.shape[0]) * n_visible * n_hidden // MONITOR_SHARE
    bounds = _field_bounds(machine)
    try:
        n_evaluations = np.clip(work, *MONITOR_EVALUATIONS)
        n_alternatives = _most_alternatives(machine, bounds)
        if n_alternatives > MONITOR_NODES:
            return float("nan")
        n_pairs = int(n_evaluations // (n_hidden * n_alternatives))
        rows = spread_rows(v, int(np.clip(n_pairs // MONITOR_FLIPS, *MONITOR_ROWS)))
        n_flips = min(max(n_pairs // rows.shape[0], 1), n_visible)
        rng = np.random.default_rng(0)
        scores = estimate_pseudo_likelihood(machine, rows, n_flips, rng, bounds=bounds)
    except QuadratureError:
        return float("nan")
    return float(scores.mean(dtype=np.float64))


def _sum_of_conditionals(
    machine: Machine, bounds: tuple[Array, Array], v: Any, indices: Array
) -> Array:
    """Sum of log conditional probabilities for every row.

    `indices`, of shape (n_units, n_samples or 1), has the visible units that a row is asked for.
    """
    v = dense(v.astype(machine.dtype, copy=False))
    field = machine.hidden_field(v)
    total = np.zeros(len(v), dtype=field.dtype)
    states = machine.visible.states or ()
    is_for_all = len(indices[0]) == 1
    # Each row goes its own way, whatever its neighbours are.
    is_of_two = np.isin(v, states if len(states) == 2 and is_for_all else ()).all(axis=1)
    rows = np.flatnonzero(is_of_two)
    if len(rows):
        own_field = field[rows]
        mean = machine.hidden.mean(own_field)
        for (i,) in indices:
            total[rows] += _log_conditional_of_two(machine, v[rows, i], i, own_field, mean)
    rows = np.flatnonzero(~is_of_two)
    if len(rows):
        own_field = field[rows]
        own = machine.hidden.log_partition(own_field)
        for index in indices if is_for_all else indices[:, rows]:
            value = v[rows, index][:, None]
            total[rows] += _log_conditional(machine, bounds, value, index, own_field, own)
    return total


def _log_conditional_of_two(
    machine: Machine, state: Array, i: int, field: Array, mean: Array
) -> Array:
    """Log-probability of a visible unit with two states given the others, for all rows.

    `mean` has the expected hidden states given `field`.
    """
    unit, weights = machine.visible.take(np.array([i])), machine.weights[i]
    assert unit.states is not None
    values = np.array(unit.states, dtype=field.dtype)[:, None]
    signal, energy = unit.signal(values)[:, 0], unit.energy(values)
    log_odds = np.empty(len(state), dtype=np.float64)  # of the other state
    for this, other in ((0, 1), (1, 0)):
        rows = np.flatnonzero(state == values[this])
        shift = (signal[other] - signal[this]) * weights
        change = machine.hidden.log_partition_shift(mean[rows], shift, partial(field.take, rows, 0))
        log_odds[rows] = change - energy[other] + energy[this]
    return np.asarray(-np.logaddexp(0, log_odds))


def _log_conditional(
    machine: Machine,
    bounds: tuple[Array, Array],
    states: Array,
    index: Array,
    field: Array,
    own: Array,
) -> Array:
    """Log-probability of one visible unit of each row given the others."""
    unit, weights = machine.visible.take(index), machine.weights[index]
    values, log_weights = unit.alternatives(states, *(bound[index, None] for bound in bounds))
    log_odds = own - unit.energy(states)
    n_values = values.shape[1]
    others = np.zeros((len(states), n_values + (unit.states is not None)), dtype=field.dtype)
    for k in range(n_values):
        value = values[:, k : k + 1]
        change = unit.signal(value) - unit.signal(states)
        others[:, k] = machine.hidden.log_partition(field + change * weights)
        others[:, k] -= unit.energy(value) + log_odds
    others[:, :n_values] += log_weights
    return np.asarray(-np.logaddexp.reduce(others, axis=1))


def _most_alternatives(machine: Machine, bounds: tuple[Array, Array]) -> int:
    """Largest number of values that a visible unit is compared with."""
    every = np.arange(machine.visible.n_units)
    low, high = (bound[:, None] for bound in bounds)
    states = np.zeros_like(low)
    values, _ = machine.visible.take(every).alternatives(states, low, high)
    return int(values.shape[1])


def _field_bounds(machine: Machine) -> tuple[Array, Array]:
    """Bounds of the field of every visible unit over all hidden states."""
    states = machine.hidden.states
    assert states is not None
    extremes = np.array([[min(states)], [max(states)]], dtype=machine.dtype)
    low, high = machine.hidden.signal(np.tile(extremes, machine.hidden.n_units))
    middle = machine.weights @ ((low + high) / 2)
    reach = np.abs(machine.weights) @ (np.abs(high - low) / 2)
    return middle - reach, middle + reach
