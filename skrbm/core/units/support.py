"""Values that columns can take (`Support`) and preconditioner of the gradient (`Metric`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from skrbm.core.numerics import Array

# Trapezoid rule for normal densities, in standard deviations. A step of 0.8 has an error of
# 2 exp(-2 pi^2 / step^2) = 8e-14; a margin of 8 beyond the outermost means leaves out
# exp(-margin^2 / 2) = 1e-14.
QUADRATURE_STEP = 0.8
QUADRATURE_MARGIN = 8
MAX_QUADRATURE_NODES = 10_000  # for each unit; each node costs a row of hidden fields per sample
# Bounds of a learned variance, relative to the variance of the feature. A smaller variance fits the
# rounding of the data; a larger variance is a sign that the chains diverge.
SMALLEST_SHARE, LARGEST_SHARE = 1e-4, 10.0


class QuadratureError(ValueError):
    """The distribution of a unit cannot be integrated by the available quadratures.

    The error is raised if no quadrature is implemented for the unit type, or if the quadrature
    would need too many nodes. It is also raised if the nodes would be too close to each other for
    the dtype, or if the weights are so large that the field on the unit cannot be bounded.
    """


class UnknownRangeError(ValueError):
    """No bounds are known for the field on a visible unit, see `field_ranges`."""


@dataclass(frozen=True)
class Support:
    """Values of a column: `values` or, if `values` is empty, all numbers from `low` to `high`."""

    low: float
    high: float
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, *values: float) -> Self:
        """Support of finitely many values."""
        values = tuple(sorted(values))
        return cls(values[0], values[-1], values)


class Metric(NamedTuple):
    """Diagonal preconditioner of the gradient.

    Each factor is a scalar or an array with one entry for each column of the layer. In `parameters`
    of `Composite` layers, the arrays have one entry for each column of the part. The gradient of
    the weights is multiplied by `signal` along the axis of the layer: its rows for the visible
    layer, its columns for the hidden layer. The gradients of the layer's parameters are multiplied
    by the factors of the same names in `parameters`. A parameter without an entry has a factor of
    one.
    """

    signal: Array | float = 1.0
    parameters: Mapping[str, Array | float] = MappingProxyType({})
