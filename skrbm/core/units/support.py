"""Declarations of a unit type: the values of its columns, and the metric of its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from skrbm.core.numerics import Array


class QuadratureError(ValueError):
    """The law of a unit spreads over more values than can be summed."""


@dataclass(frozen=True)
class Support:
    """Values that a column can take: a few, or all from `low` to `high` where `values` is empty."""

    low: float
    high: float
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, *values: float) -> Self:
        """Support of a few values, in ascending order."""
        return cls(values[0], values[-1], values)


class Metric(NamedTuple):
    """Multiples of the gradient that a step follows: numbers, or one for each column.

    That of the weights goes by the column of the signal, those of the layer's own parameters by
    name; what is missing is one.
    """

    signal: Array | float = 1.0
    parameters: Mapping[str, Array | float] = MappingProxyType({})
