"""Exact sums over the states of small layers, and the exact pseudo-likelihood of any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from scipy.special import logsumexp

from skrbm.core.machine import Machine, exchange_layers
from skrbm.core.numerics import Array, spread_rows
from skrbm.core.units import QuadratureError, Units

MAX_UNITS = 25
BLOCK_STATES = 2**14
MONITOR_ROWS, MONITOR_UNITS = 100, 1024
MONITOR_EVALUATIONS = 2**24
DENSE_ELEMENTS = 2**22  # of a block of sparse data made dense
BLOCK_ELEMENTS = 2**16  # of one temporary array: half a megabyte stays in a core's cache


def enumerate_states(units: Units, dtype: Any) -> Iterator[Array]:
    """All states of a discrete layer, in blocks.

    Parameters
    ----------
    units : Units
        Discrete layer.
    dtype : dtype
        Floating-point type of the states.

    Yields
    ------
    states : ndarray of shape (n_states, n_units)
        Next block of states.
    """
    assert units.states is not None
    values = np.array(units.states, dtype=dtype)
    shape = (len(values),) * units.n_units
    n_states = len(values) ** units.n_units
    for begin in range(0, n_states, BLOCK_STATES):
        block = np.arange(begin, min(begin + BLOCK_STATES, n_states))
        yield values[np.stack(np.unravel_index(block, shape), axis=1)]


def log_partition(machine: Machine) -> float:
    r"""Exact logarithm of the partition function, summed over the smaller discrete layer.

    .. math:: \log Z = \log \sum_s e^{-F(s)}

    Parameters
    ----------
    machine : Machine
        At least one layer discrete with at most `MAX_UNITS` units.

    Returns
    -------
    log_partition : float
        In nats.

    Raises
    ------
    ValueError
        If no discrete layer is small enough.
    """
    marginal = _enumerable(machine)
    dtype = machine.weights.dtype
    blocks = enumerate_states(marginal.visible, dtype)
    return float(logsumexp([logsumexp(-marginal.free_energy(s)) for s in blocks]))


def expected_gradient(machine: Machine) -> dict[str, Array]:
    """Exact negative phase: `Machine.gradient` averaged over the model's distribution.

    Parameters
    ----------
    machine : Machine
        At least one layer discrete with at most `MAX_UNITS` units.

    Returns
    -------
    gradient : dict of str to ndarray
        Same keys and shapes as `Machine.parameters`.

    Raises
    ------
    ValueError
        If no discrete layer is small enough.
    """
    marginal = _enumerable(machine)
    normaliser = log_partition(machine)
    total: dict[str, Array] = {}
    for states in enumerate_states(marginal.visible, machine.weights.dtype):
        probabilities = np.exp(-marginal.free_energy(states) - normaliser)
        part = marginal.gradient(states, probabilities=probabilities)
        total = {name: total.get(name, 0) + array for name, array in part.items()}
    return total if marginal is machine else exchange_layers(total)


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
        Number of joblib threads over blocks of rows; the result does not depend on it.

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
    bounds = _field_bounds(machine)
    parts = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_pseudo_likelihood_block)(
            machine, bounds, v[begin : begin + n_rows], range(n_visible)
        )
        for begin in range(0, v.shape[0], n_rows)
    )
    return np.concatenate(parts)


def monitor(machine: Machine, v: Any) -> float:
    """Mean pseudo-likelihood of some rows: a training curve at bounded cost.

    Rows, and of wide data visible units, are evenly spaced and always the same, so that no random
    number is drawn and the curve is smooth.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data.

    Returns
    -------
    score : float
        In nats per row; NaN where a continuous unit's law is too wide to be integrated.
    """
    n_visible, n_hidden = machine.weights.shape
    indices = spread_rows(np.arange(n_visible), MONITOR_UNITS)
    bounds = _field_bounds(machine)
    first = _dense(v[:1], machine.weights.dtype)
    try:
        n_values = sum(_alternatives(machine, bounds, first, i)[1].size for i in indices)
        n_rows = max(1, min(MONITOR_ROWS, MONITOR_EVALUATIONS // (n_hidden * n_values)))
        scores = _pseudo_likelihood_block(machine, bounds, spread_rows(v, n_rows), indices)
    except QuadratureError:
        return float("nan")
    return float(scores.mean() * n_visible / len(indices))


def _pseudo_likelihood_block(
    machine: Machine, bounds: tuple[Array, Array], v: Any, indices: Iterable[int]
) -> Array:
    """Sum of the log conditional probabilities of some visible units, for every row."""
    v = _dense(v, machine.weights.dtype)
    field = machine.hidden_field(v)
    total = np.zeros(len(v), dtype=field.dtype)
    own = machine.hidden.log_partition(field)
    for i in indices:
        unit, states, weights = machine.visible.take(i), v[:, i : i + 1], machine.weights[i]
        values, log_weights = _alternatives(machine, bounds, v, i)
        log_odds = own - unit.energy(states)
        others = np.empty((len(v), values.shape[1]), dtype=field.dtype)
        for k in range(values.shape[1]):
            value = values[:, k : k + 1]
            change = unit.signal(value) - unit.signal(states)
            shifted = machine.hidden.log_partition(field + change * weights)
            others[:, k] = log_weights[k] + shifted - unit.energy(value) - log_odds
        if unit.states is not None:
            others = np.pad(others, ((0, 0), (0, 1)))
        total -= np.logaddexp.reduce(others, axis=1)
    return total


def _alternatives(
    machine: Machine, bounds: tuple[Array, Array], v: Array, i: int
) -> tuple[Array, Array]:
    lowest, highest = (bound[i : i + 1] for bound in bounds)
    return machine.visible.take(i).alternatives(v[:, i : i + 1], lowest, highest)


def _dense(v: Any, dtype: Any) -> Array:
    v = v.astype(dtype, copy=False)
    return np.asarray(v.toarray() if issparse(v) else v)


def _field_bounds(machine: Machine) -> tuple[Array, Array]:
    """Bounds of the field of every visible unit over all hidden states."""
    states = machine.hidden.states
    assert states is not None
    extremes = np.array([[min(states)], [max(states)]], dtype=machine.weights.dtype)
    low, high = machine.hidden.signal(np.tile(extremes, machine.hidden.n_units))
    at_low, at_high = machine.weights * low, machine.weights * high
    return np.minimum(at_low, at_high).sum(axis=1), np.maximum(at_low, at_high).sum(axis=1)


def _enumerable(machine: Machine) -> Machine:
    """The machine, or its transpose, whose visible layer is the one to enumerate."""
    candidates = [m for m in (machine, machine.transposed) if m.visible.states is not None]
    smallest = min(candidates, key=lambda m: m.visible.n_units, default=None)
    if smallest is None or smallest.visible.n_units > MAX_UNITS:
        raise ValueError(
            f"Exact enumeration needs a layer of at most {MAX_UNITS} discrete units, but this "
            f"machine has {machine.visible.n_units} visible and {machine.hidden.n_units} hidden "
            f"units. Train with algorithm='pcd' instead, or use fewer n_components."
        )
    return smallest
