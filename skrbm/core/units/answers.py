"""What layers answer with where an array would not say enough."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from skrbm.core.numerics import Array


class QuadratureError(ValueError):
    """The law of a unit spreads over more values than can be summed."""


class Metric(NamedTuple):
    """Diagonal metric of a layer: multiples of the gradient that a step of training follows.

    Attributes
    ----------
    signal : ndarray of shape (n_units,) or None
        For the weights that the layer's signal goes through; None for ones.
    parameters : mapping of str to (ndarray of shape (n_units,) or float)
        For the layer's own parameters; one for those that are not in it.
    """

    signal: Array | None = None
    parameters: Mapping[str, Array | float] = MappingProxyType({})
