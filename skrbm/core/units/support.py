"""Declarations of a unit type: the values of its columns, and the metric of its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from skrbm.core.numerics import Array

# Of normal distributions, in standard deviations; the trapezoid rule of this step errs by
# 2 exp(-2 pi^2 / step^2) = 8e-14, and the margin beyond the outermost means leaves out
# exp(-margin^2 / 2) = 1e-14.
QUADRATURE_STEP = 0.8
QUADRATURE_MARGIN = 8
MAX_QUADRATURE_NODES = 10_000  # of a unit, each of which costs a row of the hidden units' fields
# Of a learned variance, relative to the feature's: below, a cluster is the grain of the data; above,
# chains have run away.
SMALLEST_SHARE, LARGEST_SHARE = 1e-4, 10.0


class QuadratureError(ValueError):
    """The distribution of a unit spreads over more values than can be summed."""


class UnknownRangeError(ValueError):
    """The values that a unit may take have no known range, whatever the data."""


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
