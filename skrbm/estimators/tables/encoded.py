"""Encoded rows of a table with the interface of an array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array


@final
@dataclass(frozen=True, eq=False)
class EncodedTable:
    """Encoded rows of a table, expanded to the columns of the machine for each mini-batch.

    Rows are read by indexing, as from an array. One-hot columns of the whole table would take many
    times its memory.

    Parameters
    ----------
    unit_of_column, category_of_column : ndarray of int of shape (n_discrete_columns,)
        Unit and category of each encoded column of a discrete unit; these columns come first.
    codes : ndarray of int of shape (n_samples, n_discrete)
        Category codes, which are negative for missing values.
    numbers : ndarray of shape (n_samples, n_real)
        Scores or standardized numbers, NaN for missing values.
    table : DataFrame or ndarray of shape (n_samples, n_features)
        Original table.
    unknown : dict of list
        Unknown categories, by the names of their columns. They are encoded as missing values.
    """

    unit_of_column: Array
    category_of_column: Array
    codes: Array
    numbers: Array
    table: Any
    unknown: dict[Any, list[Any]]

    @cached_property
    def dtype(self) -> Any:
        """Floating-point type of the encoded columns."""
        return self.numbers.dtype

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of encoded columns."""
        return len(self.codes), len(self.unit_of_column) + self.numbers.shape[1]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Array:
        codes = self.codes[rows][:, self.unit_of_column]
        columns = np.empty((len(codes), self.shape[1]), dtype=self.dtype)
        indicators, numbers = np.hsplit(columns, [codes.shape[1]])
        np.equal(codes, self.category_of_column, out=indicators, casting="unsafe")
        numbers[:] = self.numbers[rows]
        if not self.is_complete:
            indicators[codes < 0] = np.nan
        return columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self[:].astype(dtype or self.dtype, copy=False)

    @cached_property
    def is_complete(self) -> bool:
        """True if no value is missing."""
        return bool(self.observed_units.all())

    @cached_property
    def observed_units(self) -> Array:
        """Mask of the observed values, (n_samples, n_units)."""
        return np.concatenate([self.codes >= 0, ~np.isnan(self.numbers)], axis=1)
