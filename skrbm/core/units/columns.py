"""Layers whose units take one or several columns."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from skrbm.core.numerics import Array, like
from skrbm.core.units.base import Units


class WideUnits(Units):
    """Layer whose units take one or several adjacent columns."""

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each unit."""

    @cached_property
    def _widths(self) -> Array:
        return np.array(self.widths)

    @cached_property
    def first_columns(self) -> Array:
        """Index of the first column of each unit, of shape (n_units,)."""
        return np.cumsum(self.widths) - self.widths

    @cached_property
    def unit_of_column(self) -> Array:
        """Index of the unit to which each column belongs, of shape (n_columns,)."""
        return np.repeat(np.arange(self.n_units), self.widths)

    @property
    def n_units(self) -> int:
        return len(self.widths)

    @property
    def unit_groups(self) -> list[Array]:
        return [np.flatnonzero(np.equal(self.widths, width)) for width in sorted(set(self.widths))]

    def unit_columns(self, index: Any) -> Array:
        width = np.unique(self._widths[index]).item()
        return self.first_columns[index][..., None] + np.arange(width)

    def by_column(self, values: Array) -> Array:
        return values[..., like(self.unit_of_column, values)]
