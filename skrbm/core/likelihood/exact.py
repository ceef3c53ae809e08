"""Exact sums over all states of a small layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, to_host
from skrbm.core.parallel import map_blocks
from skrbm.core.units import Units

MAX_STATES = 2**25  # of the smaller layer; the sum takes seconds to minutes
MIN_PROCESS_STATES = 2**22  # the sum takes seconds, more than the time to start processes
# Elements of a temporary array (one megabyte, which fits the cache); blocks of a worker's task.
MAX_SUMMED_ELEMENTS, N_TASK_BLOCKS = BLOCKS = 2**17, 2**9


class TooManyStatesError(ValueError):
    """Both layers have too many states for an exact sum."""


def log_partition(
    machine: Machine,
    n_jobs: int | None = None,
    *,
    marginal: Machine | None = None,
    blocks: tuple[int, int] = BLOCKS,
) -> float:
    r"""Exact logarithm of the partition function, by a sum over the states of one layer.

    .. math:: \log Z = \log \sum_s e^{-F(s)}

    where :math:`s` are the states of the layer and :math:`F` is their free energy.

    Parameters
    ----------
    machine : Machine
        Machine with at least one layer of at most `MAX_STATES` states, unless `marginal` is given.
    n_jobs : int, default=None
        Number of workers that process the blocks of states, as in `map_blocks`; the result does not
        depend on it.
    marginal : Machine, default=None
        The machine or its transpose. The sum is over the visible states of `marginal`. If None, it
        is the machine or its transpose, whichever has fewer visible states.
    blocks : tuple of int, default=BLOCKS
        The first number is the largest number of elements of an array in a block, unless the block
        is a single state. The second is the largest number of blocks in the task of a worker.

    Returns
    -------
    log_partition : float
        In nats.

    Raises
    ------
    TooManyStatesError
        If `marginal` is None and both layers have more than `MAX_STATES` states.
    """
    marginal = marginal or enumerable(machine)
    n_low = _n_low(marginal, blocks[0])
    n_blocks = int(marginal.visible.n_states) // n_low
    begins = range(0, n_blocks, blocks[1])
    tasks = ((marginal, n_low, begin, min(begin + blocks[1], n_blocks)) for begin in begins)
    # Threads wait for the interpreter between short operations; processes take a second to start.
    is_long = marginal.visible.n_states >= MIN_PROCESS_STATES
    return float(logsumexp(map_blocks(_log_sum, tasks, n_jobs, processes=is_long)))


def n_missing_states(units: Units, is_observed: Array) -> Array:
    """Number of joint states of the missing units of each row, which may be infinite.

    Parameters
    ----------
    units : Units
        Layer to which the rows belong.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the observed units.

    Returns
    -------
    n_states : ndarray of shape (n_samples,)
        Numbers of states, in double precision.
    """
    counts = [units.n_unit_states(index) for index in range(units.n_units)]
    n_values = np.array([np.inf if count is None else count for count in counts])
    with np.errstate(over="ignore"):
        return np.where(is_observed, 1.0, n_values).prod(axis=1)


def log_sum_over_missing(machine: Machine, v: Array, is_observed: Array) -> float:
    r"""Log-partition function with clamped visible units, by a sum over the missing units.

    .. math:: \log Z(v_o) = \log \sum_{v_m} e^{-F(v_o, v_m)}

    where :math:`v_o` are the states of the observed units, which are clamped. The sum is over the
    joint states :math:`v_m` of the missing units, whose number is that of `n_missing_states`.

    Parameters
    ----------
    machine : Machine
        Machine whose missing units are discrete.
    v : ndarray of shape (n_visible,)
        Visible state. The values of the missing units are ignored.
    is_observed : ndarray of bool of shape (n_units,)
        Mask of the observed units.

    Returns
    -------
    log_partition : float
        In nats.
    """
    visible, rows = machine.visible, v[None]
    signal = np.where(visible.by_column(is_observed), visible.signal(rows), 0)
    field = signal @ machine.weights
    energy = visible.unit_energies(rows)[:, is_observed].sum(axis=1)
    for index in np.flatnonzero(~is_observed).tolist():  # fields and energies add over units
        weights = machine.weights[visible.unit_columns(index)]
        fields, energies = visible.take(index).fields_and_energies(weights)
        field = (field[:, None] + fields).reshape(-1, field.shape[1])
        energy = (energy[:, None] + energies).ravel()
    return float(logsumexp((machine.hidden.log_partition(field) - energy).astype(np.float64)))


def log_sum_over_hidden(machine: Machine, v: Array, is_observed: Array) -> Array:
    r"""Log-partition functions with clamped visible units, by a sum over the hidden states.

    .. math::

        \log Z(v_o) = \log \sum_h \sum_{v_m} e^{-E(v_o, v_m, h)}

    where :math:`v_o` are the states of the observed units, which are clamped. Given the hidden
    state, the missing units are independent: their sum or integral over :math:`v_m` is a product of
    partition functions.

    Parameters
    ----------
    machine : Machine
        Machine with discrete hidden units.
    v : ndarray of shape (n_samples, n_visible)
        Visible states. Those of the missing units are ignored.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the observed units.

    Returns
    -------
    log_partitions : ndarray of shape (n_samples,)
        In nats.
    """
    visible, h = machine.visible, machine.hidden.states(0, int(machine.hidden.n_states))
    field = machine.visible_field(h)
    log_partitions = visible.unit_log_partitions(field)
    total, n_rows = np.empty(len(v)), max(1, MAX_SUMMED_ELEMENTS // len(h))
    for begin in range(0, len(v), n_rows):
        rows = slice(begin, begin + n_rows)
        observed = is_observed[rows]
        energy = np.where(observed, visible.unit_energies(v[rows]), 0).sum(axis=1)
        signal = np.where(visible.by_column(observed), visible.signal(v[rows]), 0)
        log_weights = signal @ field.T + ~observed @ log_partitions.T
        log_weights -= energy[:, None] + machine.hidden.energy(h)
        total[rows] = logsumexp(log_weights, axis=1)
    return total


def log_partition_and_gradient(
    machine: Machine, *, marginal: Machine | None = None, blocks: tuple[int, int] = BLOCKS
) -> tuple[Any, dict[str, Array]]:
    """Exact logarithm of the partition function, and its gradient.

    The gradient is the exact negative phase: the expectation of `Machine.gradient` under the model.

    Parameters
    ----------
    machine : Machine
        Machine with at least one layer of at most `MAX_STATES` states, unless `marginal` is given.
    marginal, blocks
        See `log_partition`. Only the first number of `blocks` is used.

    Returns
    -------
    log_partition : float or ndarray of shape ()
        In nats, on the device of the machine.
    gradient : dict of str to ndarray
        Gradient, with the keys and shapes of `Machine.parameters`.

    Raises
    ------
    TooManyStatesError
        If `marginal` is None and both layers have more than `MAX_STATES` states.
    """
    marginal = marginal or enumerable(machine)
    total: dict[str, Array] = {}
    highest, mass = -np.inf, 0.0  # largest log-weight so far; sum of weights relative to it
    n_states, n_rows = int(marginal.visible.n_states), n_summed_rows(marginal, blocks[0])
    for begin in range(0, n_states, n_rows):
        states = marginal.visible.states(begin, min(begin + n_rows, n_states))
        field = marginal.hidden_field(states)
        log_weight = marginal.hidden.log_partition(field) - marginal.visible.energy(states)
        before, highest = highest, max(highest, log_weight.max())
        weight, shrinkage = np.exp(log_weight - highest), np.exp(before - highest)
        part = marginal.gradient(states, mean=marginal.hidden.mean(field), sample_weight=weight)
        total = {name: total.get(name, 0) * shrinkage + array for name, array in part.items()}
        mass = mass * shrinkage + weight.sum()
    gradient = {name: array / mass for name, array in total.items()}
    gradient = gradient if marginal is machine else exchange_layers(gradient)
    return highest + np.log(mass), gradient


def smaller_discrete(machine: Machine) -> Machine:
    """Return the machine or its transpose, whichever has fewer visible states.

    If both have equally many, for instance infinitely many, the machine is returned.
    """
    return min(machine, machine.transposed, key=lambda m: m.visible.n_states)


def enumerable(machine: Machine, max_states: int = MAX_STATES) -> Machine:
    """Return the machine of `smaller_discrete`, unless it has too many visible states.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    max_states : int, default=MAX_STATES
        Largest allowed number of visible states of the result.

    Returns
    -------
    marginal : Machine
        The machine or its transpose.

    Raises
    ------
    TooManyStatesError
        If both layers have more than `max_states` states.
    """
    smallest = smaller_discrete(machine)
    if smallest.visible.n_states > max_states:
        raise TooManyStatesError(
            f"Exact enumeration needs a layer of at most {max_states} states, for instance "
            f"{max_states.bit_length() - 1} two-state units, but this machine has "
            f"{_described(machine.visible, 'visible')} and {_described(machine.hidden, 'hidden')}."
            f"{' Enumeration is possible with fewer hidden units.' if machine.hidden.is_discrete else ''}"
        )
    return smallest


def _described(units: Units, name: str) -> str:
    kind = units.type_name + ("" if units.is_discrete else ", continuous,")
    return f"{units.n_units} {name} {kind} units"


def n_summed_rows(machine: Machine, max_elements: int = MAX_SUMMED_ELEMENTS) -> int:
    """Number of states whose free energies are computed together.

    Each array has at most `max_elements` elements, or a single row.
    """
    return int(max(1, max_elements // max(machine.weights.shape)))


def _n_low(marginal: Machine, max_elements: int) -> int:
    """Number of states of a block: all joint states of as many of the last units as possible.

    The number is at most `n_summed_rows`.
    """
    n_low = 1
    for i in reversed(range(marginal.visible.n_units)):
        n_values: Any = marginal.visible.n_unit_states(i)
        if n_low * n_values > n_summed_rows(marginal, max_elements):
            break
        n_low *= n_values
    return n_low


def _log_sum(marginal: Machine, n_low: int, begin: int, end: int) -> float:
    """Log-sum-exp of the negative free energies of the states in blocks `begin` to `end` - 1.

    A block contains the `n_low` joint states of the last units; the other units are constant.
    Energy and field are sums over units. Their values for a state are therefore the values for the
    first state of the block plus contributions of the last units. These contributions are the same
    in all blocks.
    """
    units = marginal.visible
    low = units.states(0, n_low)
    energy, field = units.energy(low), marginal.hidden_field(low)
    energy, field = energy - energy[0], field - field[0]
    log_weights = []
    for block in range(begin, end):
        first = units.states(block * n_low, block * n_low + 1)
        log_partition = marginal.hidden.log_partition(field + marginal.hidden_field(first))
        log_weights.append(log_partition - energy - units.energy(first))
    return float(logsumexp(to_host(np.concatenate(log_weights))))


def exchange_layers(parameters: dict[str, Array]) -> dict[str, Array]:
    """Convert parameters or gradients from the transposed machine to the machine.

    Parameters
    ----------
    parameters : dict of str to ndarray
        Parameters or gradient of the transposed machine.

    Returns
    -------
    exchanged : dict of str to ndarray
        The arrays, not copied, with the names and shapes of the machine's parameters.
    """
    other = {"visible": "hidden", "hidden": "visible"}
    exchanged = {"weights": parameters["weights"].T}
    for name, array in parameters.items():
        layer, _, parameter = name.partition("_")
        if parameter:
            exchanged[f"{other[layer]}_{parameter}"] = array
    return exchanged
