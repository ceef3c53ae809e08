"""Categorical (Potts) units: one of several values, one-hot encoded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from skrbm.core.draws import draw_uniform
from skrbm.core.numerics import IN_PLACE_BYTES, Array, is_on_host, like, row_blocks
from skrbm.core.units.columns import WideUnits
from skrbm.core.units.linear import LinearUnits
from skrbm.core.units.support import UNKNOWN, ColumnStatistics, Metric, Support
from skrbm.core.units.value_table import ValueTable, chosen_values, value_table

TABLE_BYTES = 2**19  # of the rows drawn at once: they fit the cache, and NumPy calls are few
# Units of more than FEW_VALUES effective values learn faster, by up to MANY_VALUES / FEW_VALUES.
# With 8 and 64, contacts of proteins are lost in fits of 100 epochs; with 16 and 128, columns of 200
# values need more epochs.
FEW_VALUES, MANY_VALUES = 12, 96
MIN_CALL_SIZE = 200  # values for each NumPy call of a table; with fewer, `chosen_values` is faster


@final
@dataclass(frozen=True, eq=False)
class Categorical(WideUnits, LinearUnits):
    r"""Units that take one of several values, one-hot encoded with one column for each value.

    .. math:: p(s_k = 1 \mid x) = e^{x_k} / \sum_{c \in \text{unit}} e^{x_c}, \qquad
        L(x) = \log \sum_{c \in \text{unit}} e^{x_c}

    where :math:`x = b + f` is the sum of the bias and the field, and :math:`L` is the log-partition
    of a unit without an offset. `gauge` subtracts the mean over the columns of each unit. From the
    biases, it subtracts a constant for each unit, which does not change the probabilities. From the
    weights, it subtracts a constant for each pair of a unit and a column of the other layer. This
    changes the field on that column by a constant, which the bias of the column can absorb.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Log-probability of each value without a field, up to a constant for each unit.
    n_categories : tuple of int
        Number of values of each unit.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Salakhutdinov, Mnih, Hinton (2007), "Restricted Boltzmann machines for collaborative
       filtering", ICML, 791-798, eq. 1. :doi:`10.1145/1273496.1273596`

    Examples
    --------
    A unit with three values, the last twice as likely as each of the others:

    >>> unit = Categorical(np.log([1.0, 1.0, 2.0]), (3,))
    >>> unit.mean(np.zeros((1, 3))).round(2)
    array([[0.25, 0.25, 0.5 ]])
    """

    n_categories: tuple[int, ...]

    support = Support.of(0.0, 1.0)

    @property
    def widths(self) -> tuple[int, ...]:
        return self.n_categories

    def take(self, index: Any) -> Self:
        unit: Any = super().take(index)
        return replace(unit, n_categories=unit.bias.shape[-1:])

    def unit_values(self, index: int) -> Array:
        return np.eye(self.n_categories[index], dtype=self.bias.dtype)

    def n_unit_states(self, index: int) -> int:
        return self.n_categories[index]

    def unit_states(self, index: int, numbers: Array) -> Array:
        is_value = numbers[:, None] == np.arange(self.n_categories[index])
        return is_value.astype(self.bias.dtype)

    def fields_and_energies(self, weights: Array) -> tuple[Array, Array]:
        if self.offset is None:
            return weights, -self.bias
        return weights - self.offset @ weights, self.offset @ self.bias - self.bias

    def unit_mean(self, probability: Array) -> Array:
        return probability

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Set the bias to log-frequencies, minus their mean over the columns of each unit.

        Frequencies below ``1 / (n_values * (n_samples + 1))`` are replaced by this bound, where
        `n_values` is the number of values of the unit.
        """
        units = cls(np.zeros_like(mean), **options)
        n_values = np.take(units.n_categories, units.unit_of_column)
        bias = np.log(np.clip(mean, 1 / (n_values * (n_samples + 1)), 1))
        return replace(units, bias=bias).in_zero_sum_gauge()

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        # The Fisher information of the biases of n equally likely values is 1/n, so units of many
        # values would hardly learn. For other frequencies, 1/n becomes the sum of their squares,
        # the probability that two rows have equal values.
        if statistics.variance is None:
            return Metric()
        agreement = 1 - self._totals(statistics.variance[:, np.newaxis])[:, 0]
        multiple = 1 / (FEW_VALUES * np.clip(agreement, 1 / MANY_VALUES, 1 / FEW_VALUES))
        multiple = self.by_column(multiple).astype(self.bias.dtype)
        return Metric(multiple, {"bias": multiple})

    def heated(self, temperature: float) -> Self:
        return replace(self, bias=self.bias / temperature)

    def gauge(self, rows: Array) -> Array:
        means = self._totals(rows) / like(np.reshape(self.n_categories, (-1, 1)), rows)
        return rows - self._spread(means.T).T

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        # Rolling a one-hot state gives all values; fractional states are rolled likewise.
        values = np.stack([np.roll(states, k, axis=1) for k in range(self.n_columns)])
        return values, np.zeros((1, 1), states.dtype, like=states)

    def log_normaliser(self, x: Array) -> Array:
        result = np.empty(len(x), like=x)
        for rows in row_blocks(x, IN_PLACE_BYTES):
            top, total = self._exponentiate(x[rows])
            result[rows] = (top + np.log(total, out=total)).sum(axis=1, dtype=np.float64)
        return result

    def expectation(self, x: Array) -> Array:
        for rows in row_blocks(x, IN_PLACE_BYTES):
            block = x[rows]
            _, total = self._exponentiate(block)
            block /= self._spread(total)
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        if not is_on_host(x):
            return self._draw_on_device(x, rng)
        table = self._table
        for rows in row_blocks(x, TABLE_BYTES):
            block = x[rows]
            number = rng.random((len(block), self.n_units))
            if block.size < MIN_CALL_SIZE * table.n_calls:
                block[...] = chosen_values(block, table.first_columns, table.repeats, number)
            else:
                columns = table.chosen_columns(block, number)
                block[...] = 0
                block[np.arange(len(block)), columns] = 1
        return x

    @property
    def _table(self) -> ValueTable:
        return value_table(self.n_categories)

    def _spread(self, values: Array) -> Array:
        """Repeat the value of each unit for its columns; on the host, faster than `by_column`.

        `values` has shape (n_samples, n_units).
        """
        if not is_on_host(values):
            return values[:, self._places[2]]
        return np.repeat(values, self._table.repeats, axis=1)

    def _totals(self, rows: Array) -> Array:
        """Add up the rows of each unit; the result has shape (n_units, n)."""
        if is_on_host(rows):
            return np.add.reduceat(rows, self.first_columns, axis=0)
        return self._by_unit(rows.T, 0).sum(axis=2).T

    def _exponentiate(self, x: Array) -> tuple[Array, Array]:
        """Subtract each unit's maximum and exponentiate, in place; return the maxima and sums.

        The maxima and the sums of the exponentials have shape (n_samples, n_units).
        """
        if not is_on_host(x):
            top = self._by_unit(x, -np.inf).max(axis=2)
            x -= self._spread(top)
            return top, self._by_unit(np.exp(x, out=x), 0).sum(axis=2)
        first = self._table.first_columns
        top = np.maximum.reduceat(x, first, axis=1)
        x -= self._spread(top)
        np.exp(x, out=x)
        return top, np.add.reduceat(x, first, axis=1)

    # Methods for arrays on a device, where `numpy.ufunc.reduceat` is not available.

    @cached_property
    def _places(self) -> tuple[Array, ...]:
        """Columns by unit and value, mask of existing values, unit and value of each column.

        The first two arrays have shape (n_units, n_values), where n_values is the largest number of
        values of a unit. The last two have shape (n_columns,). Values are numbered from 0 in each
        unit.
        """
        widths, columns = np.array(self.n_categories), np.arange(self.n_columns)
        number = np.arange(widths.max())
        is_value = number < widths[:, None]
        by_unit = np.where(is_value, self.first_columns[:, None] + number, 0)
        unit = self.unit_of_column
        places = by_unit, is_value, unit, columns - self.first_columns[unit]
        return tuple(like(array, self.bias) for array in places)

    def _by_unit(self, x: Array, fill: float) -> Array:
        """Rearrange to (n_samples, n_units, n_values); `fill` pads units with fewer values."""
        if len(set(self.n_categories)) == 1:
            return x.reshape(len(x), self.n_units, -1)
        by_unit, is_value, _, _ = self._places
        return np.where(is_value, x[:, by_unit], fill)

    def _draw_on_device(self, x: Array, rng: np.random.Generator) -> Array:
        """Draw the first value whose cumulative probability exceeds a uniform number, in place."""
        log_odds = self._by_unit(x.astype(np.float64), -np.inf)
        cumulated = np.exp(log_odds - log_odds.max(axis=2, keepdims=True)).cumsum(axis=2)
        total = cumulated[:, :, -1]
        target = draw_uniform((len(x), self.n_units), rng, x) * total
        target = np.minimum(target, np.nextafter(total, 0))[:, :, None]
        number = (cumulated <= target).sum(axis=2)
        x[...] = self._places[3] == self._spread(number)
        return x
