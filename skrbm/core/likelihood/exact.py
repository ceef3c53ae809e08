"""Exact sums over the states of small layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.machine import Machine, exchange_layers
from skrbm.core.numerics import Array
from skrbm.core.parallel import map_blocks
from skrbm.core.units import Units

MAX_UNITS = 25
TASK_BLOCKS = 2**9
MANY_STATES = 2**22
BLOCK_ELEMENTS = 2**17  # of one temporary array: a megabyte stays in a core's cache


def n_states(units: Units) -> float:
    """Number of states of a layer, infinite for continuous units."""
    return np.inf if units.states is None else float(len(units.states)) ** units.n_units


def enumerate_states(
    units: Units, dtype: Any, n_rows: int, begin: int = 0, end: int | None = None
) -> Iterator[Array]:
    """States of a discrete layer in blocks.

    Parameters
    ----------
    units : Units
        Discrete layer.
    dtype : dtype
        Floating-point type of the states.
    n_rows : int
        Largest number of states in a block.
    begin, end : int, default=0, None
        First state and the one behind the last, of all in order; None for the end.

    Yields
    ------
    states : ndarray of shape (n_rows or less, n_units)
        Next block of states.
    """
    assert units.states is not None
    values = np.array(units.states, dtype=dtype)
    shape = (len(values),) * units.n_units
    end = len(values) ** units.n_units if end is None else end
    for first in range(begin, end, n_rows):
        block = np.arange(first, min(first + n_rows, end))
        yield values[np.stack(np.unravel_index(block, shape), axis=1)]


def log_partition(machine: Machine, n_jobs: int | None = None) -> float:
    r"""Exact logarithm of the partition function, summed over the smaller discrete layer.

    .. math:: \log Z = \log \sum_s e^{-F(s)}

    Parameters
    ----------
    machine : Machine
        At least one layer discrete with at most `MAX_UNITS` units.
    n_jobs : int, default=None
        Number of workers over blocks of states; the result does not depend on it.

    Returns
    -------
    log_partition : float
        In nats.

    Raises
    ------
    ValueError
        If no discrete layer is small enough.
    """
    marginal = enumerable(machine)
    units = marginal.visible
    assert units.states is not None
    n_values = len(units.states)
    n_low = min(units.n_units, int(np.log(_n_rows(marginal)) / np.log(n_values)))
    n_blocks = n_values ** (units.n_units - n_low)
    tasks = (
        (marginal, n_low, begin, min(begin + TASK_BLOCKS, n_blocks))
        for begin in range(0, n_blocks, TASK_BLOCKS)
    )
    # Threads wait for each other between short operations; processes take a second to start.
    is_long = n_states(units) >= MANY_STATES
    return float(logsumexp(map_blocks(_log_sum, tasks, n_jobs, processes=is_long)))


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
    marginal = enumerable(machine)
    normaliser = log_partition(machine)
    total: dict[str, Array] = {}
    for states in enumerate_states(marginal.visible, machine.dtype, _n_rows(marginal)):
        probabilities = np.exp(-marginal.free_energy(states) - normaliser)
        part = marginal.gradient(states, sample_weight=probabilities)
        total = {name: total.get(name, 0) + array for name, array in part.items()}
    return total if marginal is machine else exchange_layers(total)


def smaller_discrete(machine: Machine) -> Machine:
    """The machine, or its transpose, whose visible layer has the fewer states."""
    return min(machine, machine.transposed, key=lambda m: n_states(m.visible))


def enumerable(machine: Machine) -> Machine:
    """The machine, or its transpose, whose visible layer can be enumerated.

    Parameters
    ----------
    machine : Machine
        Any unit types.

    Returns
    -------
    marginal : Machine
        Of the same distribution.

    Raises
    ------
    ValueError
        If no discrete layer is small enough.
    """
    smallest = smaller_discrete(machine)
    if smallest.visible.states is None or smallest.visible.n_units > MAX_UNITS:
        raise ValueError(
            f"Exact enumeration needs a layer of at most {MAX_UNITS} discrete units, but this "
            f"machine has {machine.visible.n_units} visible and {machine.hidden.n_units} hidden "
            f"units. Use method='ais' for the partition function, algorithm='pcd' for training, or "
            f"fewer n_components."
        )
    return smallest


def _n_rows(marginal: Machine) -> int:
    return int(max(1, BLOCK_ELEMENTS // max(marginal.weights.shape)))


def _log_sum(marginal: Machine, n_low: int, begin: int, end: int) -> float:
    """Log-sum of minus the free energies of some blocks of states.

    A block has all states of the last `n_low` units. Energy and field are sums over units: those of
    a block are those of its first state plus what the last units add, the same for every block.
    """
    units, dtype = marginal.visible, marginal.dtype
    assert units.states is not None
    n_rows = len(units.states) ** n_low
    (low,) = enumerate_states(units, dtype, n_rows, 0, n_rows)
    energy, field = units.energy(low), marginal.hidden_field(low)
    energy, field = energy - energy[0], field - field[0]
    log_weights = []
    for block in range(begin, end):
        (first,) = enumerate_states(units, dtype, 1, block * n_rows, block * n_rows + 1)
        log_partition = marginal.hidden.log_partition(field + marginal.hidden_field(first))
        log_weights.append(log_partition - energy - units.energy(first))
    return float(logsumexp(np.concatenate(log_weights)))
