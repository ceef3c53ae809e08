"""Draws of categorical units, vectorized over all units and samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from skrbm.core.numerics import Array

N_ROUNDINGS = 16  # of exponentials, random numbers and products; sums have one more per value
N_CALLS = 30  # NumPy calls for a table of one block; every two further blocks add as many


@final
@dataclass(frozen=True)
class ValueTable:
    """Order of one-hot columns by value: the first value of all units, then the second, and so on.

    Units are sorted by decreasing width, so that the units that have a k-th value come first.
    Consecutive values that occur in the same number of units form a block of shape (n_values,
    n_units, n_samples). There is one block for each distinct width. Rows of log-probabilities are
    transposed and copied into a table in this order. Sums and comparisons of values then run over
    all units and samples in memory order.

    Parameters
    ----------
    widths : tuple of int
        Number of values of each unit.

    Examples
    --------
    >>> ValueTable((2, 3)).columns
    array([2, 0, 3, 1, 4])
    """

    widths: tuple[int, ...]

    @cached_property
    def n_calls(self) -> int:
        """Approximate number of NumPy calls made by one call of `chosen_columns`."""
        return max(self.widths) + N_CALLS * (1 + len(self.shapes)) // 2

    @cached_property
    def first_columns(self) -> NDArray[np.intp]:
        """Index of the first column of each unit, of shape (n_units,)."""
        ends: NDArray[np.intp] = np.cumsum(np.array(self.widths))
        return ends - self.widths

    @cached_property
    def repeats(self) -> int | Array:
        """Number of values of each unit; a single int if all are equal, since this is faster."""
        return self.widths[0] if len(set(self.widths)) == 1 else np.array(self.widths)

    @cached_property
    def units(self) -> NDArray[np.intp]:
        """Indices of the units, from wide to narrow."""
        return np.argsort(np.negative(self.widths), kind="stable")

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """Number of values and number of units in each block."""
        ends = np.unique(self.widths)
        n_units = [int(np.greater_equal(self.widths, end).sum()) for end in ends]
        return list(zip(np.diff(ends, prepend=0).tolist(), n_units, strict=True))

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Index of the layer's column for each row of the table, of shape (n_columns,)."""
        first, columns = self.first_columns[self.units], []
        for n_values, n_units in self.shapes:
            columns.append(np.add.outer(np.arange(n_values), first[:n_units]).ravel())
            first = first[:n_units] + n_values
        return np.concatenate(columns)

    def chosen_columns(self, x: Array, number: Array) -> NDArray[np.intp]:
        r"""Draw the column of each unit, with probabilities proportional to :math:`e^x`.

        The column of a unit is the first whose cumulative probability exceeds the unit's random
        number. Nearly all columns are determined in the precision of `x`. The few columns that
        depend on rounding are determined in double precision.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_columns)
            Log-probabilities of the values, up to a constant for each unit.
        number : ndarray of shape (n_samples, n_units)
            Uniform random numbers in [0, 1), in double precision.

        Returns
        -------
        columns : ndarray of shape (n_units, n_samples)
            Chosen columns; the units are sorted from wide to narrow.
        """
        blocks = self._blocks(x)
        total = _cumulate(blocks)
        rounded = number.T[self.units].astype(x.dtype, copy=False)
        slack = (max(self.widths) + N_ROUNDINGS) * np.finfo(x.dtype).eps
        least = _count_until(blocks, (rounded - slack) * total)
        most = _count_until(blocks, (rounded + slack) * total)
        columns: NDArray[np.intp] = self.first_columns[self.units, None] + least
        is_open = np.nonzero(least != most)
        if len(is_open[0]):
            unit, row = self.units[is_open[0]], is_open[1]
            columns[is_open] = self._exact_columns(x, row, unit, number[row, unit])
        return columns

    def _exact_columns(self, x: Array, row: Array, unit: Array, number: Array) -> Array:
        """Chosen columns for pairs of a row and a unit, computed in double precision."""
        widths = np.take(self.widths, unit)
        begin = np.cumsum(widths) - widths
        columns: Array = np.arange(widths.sum()) + np.repeat(
            self.first_columns[unit] - begin, widths
        )
        log_odds = x[np.repeat(row, widths), columns]
        is_chosen = chosen_values(log_odds[None], begin, widths, number[None])
        return np.extract(is_chosen, columns)

    def _blocks(self, x: Array) -> list[Array]:
        """Blocks of the table of exponentials, divided by the largest exponential of each unit."""
        table = x.T[self.columns]
        blocks, begin = [], 0
        for n_values, n_units in self.shapes:
            end = begin + n_values * n_units
            blocks.append(table[begin:end].reshape(n_values, n_units, -1))
            begin = end
        top = blocks[0].max(axis=0)
        for block in blocks[1:]:
            block_top = top[: block.shape[1]]
            np.maximum(block_top, block.max(axis=0), out=block_top)
        for block in blocks:
            block -= top[: block.shape[1]]
        np.exp(table, out=table)
        return blocks


value_table = lru_cache(ValueTable)  # cached since every update creates new layers


def chosen_values(
    x: Array, first_columns: Array, widths: Array | int, number: Array
) -> NDArray[np.bool_]:
    """Draw the values of a few rows in double precision; see `ValueTable.chosen_columns`.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_columns)
        Log-probabilities of the values, up to a constant for each unit.
    first_columns : ndarray of shape (n_units,)
        Index of the first column of each unit.
    widths : int or ndarray of shape (n_units,)
        Number of values of each unit; one int if all are equal.
    number : ndarray of shape (n_samples, n_units)
        Uniform random numbers in [0, 1), in double precision.

    Returns
    -------
    is_chosen : ndarray of bool of shape (n_samples, n_columns)
        Mask that is True in one column of each unit.
    """
    x = x.astype(np.float64)
    x -= np.repeat(np.maximum.reduceat(x, first_columns, axis=1), widths, axis=1)
    cumulated = np.cumsum(np.exp(x, out=x), axis=1, out=x)
    # The cumulative sums of a unit lie between the last one of the previous unit and its last one.
    end = cumulated[:, np.append(first_columns[1:], x.shape[1]) - 1]
    begin = np.concatenate([np.zeros((len(x), 1)), end[:, :-1]], axis=1)
    target = np.minimum(begin + number * (end - begin), np.nextafter(end, begin))
    # True for the chosen value of the unit and all later ones.
    is_beyond = cumulated > np.repeat(target, widths, axis=1)
    is_chosen = is_beyond.copy()
    is_chosen[:, 1:] ^= is_beyond[:, :-1]
    is_chosen[:, first_columns] = is_beyond[:, first_columns]
    return is_chosen


def _cumulate(blocks: list[Array]) -> Array:
    """Replace the values of each unit by cumulative sums in place, and return the totals.

    The totals have shape (n_units, n_samples).
    """
    total: Array = np.zeros_like(blocks[0][0])
    for block in blocks:
        block_total = total[: block.shape[1]]
        block[0] += block_total
        for before, value in pairwise(block):
            value += before
        block_total[...] = block[-1]
    return total


def _count_until(blocks: list[Array], bound: Array) -> NDArray[Any]:
    """Count the cumulative sums of each unit and sample that do not exceed its entry of `bound`.

    `bound` and the result have shape (n_units, n_samples).
    """
    dtype = np.min_scalar_type(sum(map(len, blocks)))  # usually uint8, the fastest to sum
    counts: NDArray[Any] = np.zeros(bound.shape, dtype)
    for block in blocks:
        is_below = block <= bound[: block.shape[1]]
        counts[: block.shape[1]] += is_below.view(np.uint8).sum(axis=0, dtype=dtype)
    return counts
