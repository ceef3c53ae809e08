"""Encoded rows of a table with the interface of an array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array


@final
@dataclass(frozen=True, eq=False)
class EncodedTable:
    """Encoded rows of a table, whose one-hot columns are created only for indexed rows.

    The rows are read by indexing, as from an array, for instance one mini-batch at a time. The
    one-hot columns of all rows together may need many times the memory of the table.

    Parameters
    ----------
    unit_of_column, category_of_column : ndarray of int of shape (n_discrete_columns,)
        Unit index and category index of each encoded column of a discrete unit. These columns
        precede the columns of numbers.
    codes : ndarray of int of shape (n_samples, n_discrete)
        Category codes of the discrete units; the code of a missing value is negative.
    numbers : ndarray of shape (n_samples, n_real)
        Scaled numbers of the numeric and interval units, with NaN for missing values.
    table : DataFrame or ndarray of shape (n_samples, n_features)
        Table before encoding.
    unknown : dict of list
        List of the unknown categories of each discrete column, by the name of the column. They are
        encoded as missing values.
    n_nearest, n_unknown : ndarray of int of shape (n_samples,)
        Number of values in each row that are encoded as the nearest category, and number of unknown
        categories, which are encoded as missing values.
    """

    unit_of_column: Array
    category_of_column: Array
    codes: Array
    numbers: Array
    table: Any
    unknown: dict[Any, list[Any]]
    n_nearest: Array
    n_unknown: Array

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

    def select(self, rows: Array) -> EncodedTable:
        """Encoded rows at given indices or a mask, without one-hot columns."""
        arrays = "codes", "numbers", "n_nearest", "n_unknown"
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self[:].astype(dtype or self.dtype, copy=False)

    @cached_property
    def is_complete(self) -> bool:
        """True if no unit has a missing value."""
        return bool(self.observed_units.all())

    @cached_property
    def observed_units(self) -> Array:
        """Mask of the observed values, of shape (n_samples, n_units)."""
        return np.concatenate([self.codes >= 0, ~np.isnan(self.numbers)], axis=1)
