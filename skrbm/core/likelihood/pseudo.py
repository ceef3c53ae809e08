"""Exact pseudo-likelihoods, and estimates for monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skrbm.core.likelihood.conditional import field_ranges, log_weights_of_values
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, log_sum_exp, spread_rows
from skrbm.core.parallel import map_blocks
from skrbm.core.units import QuadratureError, ShiftedUnits, Units, UnknownRangeError

MONITOR_ROWS = 100, 1000  # smallest and largest number of rows
MONITOR_FLIPS = 8  # units in each row, before the number of rows is increased
MONITOR_EVALUATIONS = 2**15, 2**22  # limits of evaluations of a hidden unit's log-partition
MONITOR_OVERHEAD = 32  # fixed cost of a pair of a row and a unit, in evaluations
MONITOR_NODES = 1000  # largest number for a quadrature; more are a sign that training diverges
TYPICAL_NODES = 32  # of a continuous unit; 21 to 417 in fits of eight data sets
MONITOR_SHARE = 1536  # multiplications in an epoch for each evaluation; about 3 % of the cost
DENSE_ELEMENTS = 2**22  # largest size of a block of rows, since sparse rows are converted


def pseudo_likelihood(
    machine: Machine, v: Any, n_jobs: int | None = None, is_scored: Array | None = None
) -> Array:
    r"""Exact log pseudo-likelihood of visible states.

    .. math:: \log \mathrm{PL}(v) = \sum_i \log p(v_i \mid v_{-i})

    Each conditional distribution is normalized by a sum of :math:`e^{-F}` over the values of the
    unit, where :math:`F` is the free energy. For a continuous unit, the sum is over its atoms, if
    any, and the nodes of a quadrature. For fractional states of a discrete unit, such as gray
    pixels, the values are given by `Units.conditional_values`.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Visible states.
    n_jobs : int, default=None
        Number of threads that process the blocks of rows, as in `map_blocks`; the result does not
        depend on it.
    is_scored : ndarray of bool of shape (n_samples, n_units), default=None
        Mask of the units whose terms are included in the sum. If None, all units are included.

    Returns
    -------
    pseudo_likelihood : ndarray of shape (n_samples,)
        Log pseudo-likelihood in nats, summed over the units of `is_scored`.

    Raises
    ------
    QuadratureError
        If `field_ranges` or `Units.conditional_values` raises it, for example because the weights
        are too large for a quadrature.
    UnknownRangeError
        If `field_ranges` raises it: a hidden unit lacks a bound, and the energy of a visible unit
        that lacks a bound is not known to be convex.

    References
    ----------
    .. [1] Besag (1975), "Statistical analysis of non-lattice data", The Statistician 24(3),
       179-195. :doi:`10.2307/2987782`
    """
    n_visible, n_hidden = machine.weights.shape
    widest = max(n_hidden, _most_others(machine, v))
    n_rows = max(1, min(_Rows.max_elements // widest, DENSE_ELEMENTS // n_visible))

    def scores(begin: int) -> Array:
        rows = _Rows(machine, v[begin : begin + n_rows])
        total = np.zeros(len(rows))
        for units in _unit_blocks(machine, len(rows)):
            counted = 1 if is_scored is None else is_scored[begin : begin + n_rows, units].T
            total += (counted * rows.of_units(units)).sum(axis=0)
        return total.astype(machine.dtype)  # summed in double precision

    blocks = ((begin,) for begin in range(0, v.shape[0], n_rows))
    return np.concatenate(map_blocks(scores, blocks, n_jobs))


def estimate_pseudo_likelihood(
    machine: Machine,
    v: Any,
    n_flips: int,
    rng: np.random.Generator,
    *,
    is_scored: Array | None = None,
) -> Array:
    """Unbiased estimate of the log pseudo-likelihood from a few units of each row.

    In each row, the first unit is random, and the units are evenly spaced, so that no unit is used
    twice. If `n_flips` is the number of visible units, the estimate is exact.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Visible states.
    n_flips : int
        Number of visible units to evaluate in each row, between 1 and the number of units.
    rng : numpy.random.Generator
        Source of random numbers.
    is_scored : ndarray of bool of shape (n_samples, n_units), default=None
        Mask of the units whose terms are included in the sum. If None, all units are included.

    Returns
    -------
    estimate : ndarray of shape (n_samples,)
        Estimate in nats of the sum over the units of `is_scored`.

    Raises
    ------
    QuadratureError
        If `field_ranges` or `Units.conditional_values` raises it, for example because the weights
        are too large for a quadrature.
    UnknownRangeError
        If `field_ranges` raises it: a hidden unit lacks a bound, and the energy of a visible unit
        that lacks a bound is not known to be convex.
    """
    n_units = machine.visible.n_units
    first = rng.integers(n_units, size=v.shape[0])
    spacing = np.arange(n_flips)[:, None] * n_units // n_flips
    total = np.zeros(len(first))
    n_rows = max(1, DENSE_ELEMENTS // machine.visible.n_columns)
    for begin in range(0, len(first), n_rows):
        block = slice(begin, begin + n_rows)
        rows = _Rows(machine, v[block])
        n_together = max(1, _Rows.max_elements // (len(rows) * machine.hidden.n_columns))
        for flip in range(0, n_flips, n_together):
            units = (first[block] + spacing[flip : flip + n_together]) % n_units
            numbers = np.broadcast_to(np.arange(len(rows)), units.shape)
            scores = rows.log_conditionals(numbers.ravel(), units.ravel()).reshape(units.shape)
            counted = 1 if is_scored is None else is_scored[block][numbers, units]
            total[block] += (counted * scores).sum(axis=0)
    return total * (n_units / n_flips)


def monitored_rows(
    machine: Machine,
    v: Any,
    n_samples: int | None = None,
    sample_weight: Array | None = None,
    is_scored: Array | None = None,
) -> tuple[Array, Array | None]:
    """Estimate the log pseudo-likelihoods of some rows for a training curve, at bounded cost.

    The choice of rows and units depends neither on the random stream of training nor on the
    parameters of the machine. The curve is therefore smooth, and the scores of two epochs can be
    compared row by row. The number of quadrature nodes, which changes with the parameters, is
    assumed to be `TYPICAL_NODES`; the cost of the estimate is proportional to the actual number.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data.
    n_samples : int, default=None
        Number of rows in an epoch. The cost of the estimate is about 3 % of the cost of the epoch
        (see `MONITOR_SHARE`), within the limits of `MONITOR_EVALUATIONS` and `MONITOR_ROWS`. It is
        lower for few visible units or rows, and higher if one unit in each of ``MONITOR_ROWS[0]``
        rows costs more. If None, the number of rows of `v` is used.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows. If None, all rows have a weight of one.
    is_scored : ndarray of bool of shape (n_samples, n_units), default=None
        Mask of the units whose terms are included in the sum. If None, all units are included.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        Estimates in nats. The result is a single NaN if a sum over the atoms and quadrature nodes
        of a continuous unit would have more than `MONITOR_NODES` terms, or if the estimate fails
        with an error that `estimate_pseudo_likelihood` describes.
    weight : ndarray of shape (n_rows,) or None
        Weights of these rows. None if `sample_weight` is None or `scores` is a single NaN.
    """
    n_units, n_hidden = machine.visible.n_units, machine.hidden.n_columns
    work = (n_samples or v.shape[0]) * machine.weights.size // MONITOR_SHARE
    try:
        n_evaluations = np.clip(work, *MONITOR_EVALUATIONS)
        n_others = _most_others(machine, v, MONITOR_NODES, TYPICAL_NODES)
        n_pairs = int(n_evaluations // (n_hidden * n_others + MONITOR_OVERHEAD))
        n_rows = int(np.clip(n_pairs // MONITOR_FLIPS, *MONITOR_ROWS))
        rows = spread_rows(v, n_rows)
        n_flips = min(max(n_pairs // rows.shape[0], 1), n_units)
        rng = np.random.default_rng(0)
        counted = spread_rows(is_scored, n_rows)
        scores = estimate_pseudo_likelihood(machine, rows, n_flips, rng, is_scored=counted)
    except (QuadratureError, UnknownRangeError):
        return np.full(1, np.nan), None
    return scores, spread_rows(sample_weight, n_rows)


class _Rows:
    """Conditional log-probabilities of the visible units of a block of rows.

    The hidden fields of the rows are computed once and used for all units.
    """

    max_elements: ClassVar[int] = 2**19  # of a temporary array; below, NumPy's overhead dominates
    max_paired: ClassVar[int] = 10  # values of a unit; with more, values are not compared in pairs

    def __init__(self, machine: Machine, v: Any) -> None:
        self._machine = machine
        v = v.astype(machine.dtype, copy=False)
        self._v, self._field = dense(v), machine.hidden_field(v)

    def __len__(self) -> int:
        return len(self._v)

    @cached_property
    def _shifted(self) -> ShiftedUnits:
        return self._machine.hidden.shifted(self._field)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        return field_ranges(self._machine, self._v)

    @cached_property
    def _log_partition(self) -> Array:
        return self._machine.hidden.log_partition(self._field)

    def of_units(self, units: Array) -> Array:
        """Log-probabilities of each of `units` given all other visible units.

        The units must belong to one group of `Units.unit_groups`. The result has shape (n_units,
        n_rows).
        """
        n_values = self._machine.visible.n_unit_states(units[0])
        if n_values is not None and n_values > self.max_paired:
            rows = np.arange(len(self))
            return np.stack([self._of_unit(number, rows) for number in units])
        values = self._machine.visible.unit_values(units[0])
        columns = self._machine.visible.unit_columns(units)
        states, log_probability = self._v.T[columns], np.zeros((len(units), len(self)))
        is_other = np.ones(log_probability.shape, dtype=bool)
        if values is not None:
            is_value = (states == values[:, None, :, None]).all(axis=2)
            is_other, index = ~is_value.any(axis=0), is_value.argmax(axis=0)
            log_probability += self._from_pairs(units, columns, values, index)
        for k in np.flatnonzero(is_other.any(axis=1)):  # continuous units and gray values
            rows, unit = np.flatnonzero(is_other[k]), self._machine.visible.take(units[k])
            current = states[k][:, rows].T
            log_probability[k, rows] = self._from_all_values(unit, columns[k], current, rows)
        return log_probability

    def _from_pairs(self, units: Array, columns: Array, values: Array, index: Array) -> Array:
        """Log-probabilities from the log-odds of all pairs of values.

        `index`, of shape (n_units, n_rows), contains the indices of the current values. For each
        row, only the pairs with its current value are needed. The log-odds of all pairs are
        computed nevertheless, since this is faster than a selection of the rows with each value.
        """
        layer, weights = self._machine.visible.take(units), self._machine.weights[columns]
        others = np.array([np.delete(np.arange(len(values)), k) for k in range(len(values))])
        states = [np.broadcast_to(value, columns.shape) for value in values]
        field = np.stack([_products(layer.signal(value), weights) for value in states])
        energy = np.stack([layer.energy(value) for value in states])
        shifts = (field[others] - field[:, None]).reshape(-1, field.shape[2])
        log_odds = self._shifted.log_partition_changes(shifts).reshape(*others.shape, *index.shape)
        log_odds += (energy[:, None] - energy[others])[..., None]
        log_odds = np.take_along_axis(log_odds, index[None, None], axis=0)[0]
        return -np.logaddexp.reduce(log_odds, axis=0, initial=0)

    def _of_unit(self, number: int, rows: Array) -> Array:
        """Log-probabilities of one unit in some rows, from the hidden fields with all its states.

        The array of all states is not needed: for a one-hot unit, it has n_values^2 elements.
        """
        layer = self._machine.visible
        unit, columns = layer.take(number), layer.unit_columns(number)
        states = self._v[rows[:, None], columns]
        if states.shape[1] > 1:  # one-hot
            index = states.argmax(axis=1)
        else:
            values: Any = unit.unit_values(0)
            index = (states == values.T).argmax(axis=1)
        field, energy = unit.fields_and_energies(self._machine.weights[columns])
        shifted = self._machine.hidden.shifted(self._field[rows] - field[index])
        log_weight = shifted.log_partition_changes(field) - energy[:, None]
        chosen = np.take_along_axis(log_weight, index[None], axis=0)[0]
        log_probability = chosen - np.logaddexp.reduce(log_weight, axis=0)
        is_state = (states == unit.unit_states(0, index)).all(axis=1)
        others = np.flatnonzero(~is_state)  # such as gray values
        if len(others):
            log_probability[others] = self._from_all_values(
                unit, columns, states[others], rows[others]
            )
        return log_probability

    def log_conditionals(self, rows: Array, units: Array) -> Array:
        """Log-probabilities of unit `units[k]` in row `rows[k]`, for each k.

        The result has shape (n_pairs,), the shape of `rows` and of `units`.
        """
        log_probability, layer = np.zeros(len(units)), self._machine.visible
        for group in layer.unit_groups:
            pairs = np.flatnonzero(np.isin(units, group))
            n_values = layer.n_unit_states(group[0])
            if n_values is not None and n_values > self.max_paired:
                for number in np.unique(units[pairs]):
                    chosen = pairs[units[pairs] == number]
                    log_probability[chosen] = self._of_unit(number, rows[chosen])
            elif len(pairs):
                columns, chosen = layer.unit_columns(units[pairs]), rows[pairs]
                unit, states = layer.take(units[pairs]), self._v[chosen[:, None], columns]
                log_probability[pairs] = self._from_all_values(unit, columns, states, chosen)
        return log_probability

    def _from_all_values(self, unit: Units, columns: Array, states: Array, rows: Any) -> Array:
        """Log-probabilities of one unit of each row, from a sum over values of the unit.

        The values, such as quadrature nodes, are those of `Units.conditional_values`.
        """
        weights, (low, high) = self._machine.weights[columns], self._bounds
        places: Any = columns if low.ndim == 1 else (rows[:, None], columns)
        values, log_measure = unit.conditional_values(states, low[places], high[places])
        field, hidden = self._field[rows], self._machine.hidden
        current = self._log_partition[rows] - unit.energy(states)
        if values.shape[1] == 1 and weights.ndim == 2:  # those of all rows
            rest = field - unit.signal(states) @ weights
            log_weights = log_weights_of_values(hidden, unit, weights, rest, values)
            return current - log_sum_exp(log_weights + log_measure, axis=0)
        log_odds = np.empty((len(values), len(states)), dtype=field.dtype)
        for k, value in enumerate(values):
            change = unit.signal(value) - unit.signal(states)
            if not change.any():  # the current values
                log_odds[k] = 0
                continue
            log_odds[k] = hidden.log_partition(field + _products(change, weights))
            log_odds[k] -= unit.energy(value) + current
        log_odds += log_measure
        return -np.logaddexp.reduce(log_odds, axis=0)


def _unit_blocks(machine: Machine, n_rows: int) -> Iterator[Array]:
    """Yield blocks of unit indices. The units of a block belong to the same group.

    `_Rows.max_elements`, the size of a temporary array, limits the number of units in a block.
    """
    for group in machine.visible.unit_groups:
        n_values = machine.visible.n_unit_states(group[0])
        n_pairs = 1 if n_values is None else max(1, n_values * (n_values - 1))
        n_units = max(1, _Rows.max_elements // (n_pairs * max(n_rows, machine.hidden.n_columns)))
        yield from np.array_split(group, -(-len(group) // n_units))


def _products(change: Array, weights: Array) -> Array:
    """Change of the hidden field, of shape (n_samples, n_hidden), due to a change of the signal.

    The weights have shape (n_columns, n_hidden), or (n_samples, n_columns, n_hidden) if they differ
    between the samples.
    """
    return change @ weights if weights.ndim == 2 else np.einsum("nc,nch->nh", change, weights)


def _most_others(
    machine: Machine, v: Any, max_nodes: float = np.inf, assumed: int | None = None
) -> int:
    """Largest number of values of a unit other than the current one, or of atoms and nodes.

    If `assumed` is passed, it replaces the number of atoms and nodes of every continuous unit.

    The bounds of the fields, which determine the nodes, are computed from at most
    ``MONITOR_ROWS[0]`` of the rows. If a hidden unit lacks a bound, other rows may have fields
    beyond these bounds. The result is at least one. A QuadratureError is raised if a continuous
    unit has more than `max_nodes` atoms and nodes.
    """
    some = dense(spread_rows(v, MONITOR_ROWS[0])).astype(machine.dtype, copy=False)
    low, high = field_ranges(machine, some)
    if low.ndim > 1:
        low, high = low.min(axis=0), high.max(axis=0)
    counts = []
    for group in machine.visible.unit_groups:
        n_values = machine.visible.n_unit_states(group[0])
        if n_values is not None:
            counts.append(n_values - 1)
            continue
        columns = machine.visible.unit_columns(group)
        states = np.zeros(columns.shape, dtype=machine.dtype)
        units = machine.visible.take(group)
        values, _ = units.conditional_values(states, low[columns], high[columns])
        if len(values) > max_nodes:
            raise QuadratureError(f"Expected at most {max_nodes} nodes, got {len(values)}.")
        counts.append(assumed or len(values))
    return max(1, *counts)
