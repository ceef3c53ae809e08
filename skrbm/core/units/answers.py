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


class Uncentering(NamedTuple):
    """How a layer absorbs its own offset and the other layer's, with derivatives.

    Taking the offsets out of a centred machine turns the layer's bias into one that carries
    `field`, the pull of the other layer's offset, and shifts the layer's signal by a
    constant, which the other layer's bias has to absorb.

    Attributes
    ----------
    shift : ndarray of shape (n_units,)
        Signal of the plain layer minus that of the centred one.
    bias_by_field : ndarray of shape (n_units,) or float
        Derivative of the plain bias in the field.
    shift_by_field : ndarray of shape (n_units,) or float
        Derivative of the shift in the field.
    by_parameter : mapping of str to (ndarray, ndarray)
        For each own parameter but the bias, the derivatives of the plain bias and of the
        shift in that parameter, each of shape (n_units,); zero for a unit whose parameter is
        not learned.
    """

    shift: Array
    bias_by_field: Array | float = 1.0
    shift_by_field: Array | float = 0.0
    by_parameter: Mapping[str, tuple[Array, Array]] = MappingProxyType({})
