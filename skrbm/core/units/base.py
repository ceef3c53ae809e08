"""What a layer of units has to answer: everything else in the package asks these questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skrbm.core.numerics import Array


class QuadratureError(ValueError):
    """The law of a unit spreads over more values than can be summed."""


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


@dataclass(frozen=True, eq=False)
class Units(ABC):
    r"""A layer of units that are independent of each other given the other layer.

    A layer has an energy of its own, :math:`A(s)`, and sends the other layer a `signal`,
    :math:`\varphi(s)`, an affine function of its states. Two layers and the weights between
    them are a machine of energy

    .. math:: E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h)

    so that a layer feels the other one only through the `field`
    :math:`f = W \psi(h)` or :math:`W^T \varphi(v)`, and every answer below is about the law

    .. math:: p(s \mid f) \propto \exp(-A(s) + \varphi(s)^T f)

    Parameters
    ----------
    bias : ndarray of shape (n_units,)
        Bias of each unit.
    offset : ndarray of shape (n_units,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.

    Attributes
    ----------
    domain : tuple of two floats or None
        Least and largest meaningful value of a state or of its mean; None if all are.

    See Also
    --------
    skrbm.core.units.checks.check_units : Examines a unit type, one's own included.
    """

    bias: Array
    offset: Array | None = field(default=None, kw_only=True)

    domain: ClassVar[tuple[float, float] | None]

    @property
    @abstractmethod
    def states(self) -> tuple[float, ...] | None:
        """Values that a unit can take, declared by the type; None when it takes real ones."""

    @property
    def n_units(self) -> int:
        """Number of units in the layer."""
        return len(self.bias)

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        """Layer in which every array of one value per unit is replaced by its image."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(
            self, **{name: function(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
        )

    def take(self, index: int) -> Self:
        """One of the units as a layer of its own, sharing memory with this one."""
        return self.map_arrays(lambda array: array[index : index + 1])

    @classmethod
    @abstractmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Plain layer that, without a field, resembles data with these statistics.

        Parameters
        ----------
        mean, variance : ndarray of shape (n_units,)
            Of the data in each unit.
        n_samples : int
            Number of rows behind the statistics: few rows allow no extreme start.
        **options : dict
            Further arguments of the unit type.

        Returns
        -------
        units : Units
            Layer with finite parameters, whatever the statistics.
        """

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Arrays that training may change, by field name; no copies."""

    @abstractmethod
    def signal(self, states: Any) -> Any:
        """What the layer sends through the weights, an affine function of its states.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_units)
            Sparse only where `states` zero stands for signal zero.

        Returns
        -------
        signal : {ndarray, sparse matrix} of shape (n_samples, n_units)
            Sparse if `states` is.
        """

    @abstractmethod
    def energy(self, states: Any) -> Array:
        """Energy of the layer alone.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_units)
            States.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
            In nats.
        """

    @abstractmethod
    def log_partition(self, field: Array) -> Array:
        """Log-normaliser of the layer given its field.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_units)
            Contribution of the other layer to each unit, bias excluded.

        Returns
        -------
        log_partition : ndarray of shape (n_samples,)
            In nats.
        """

    @abstractmethod
    def mean(self, field: Array) -> Array:
        """Expected states given the field.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_units)
            Contribution of the other layer to each unit, bias excluded.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_units)
            Expectation of each unit.
        """

    @abstractmethod
    def sample(self, field: Array, rng: np.random.Generator) -> Array:
        """Draw states given the field.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_units)
            Contribution of the other layer to each unit, bias excluded.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        states : ndarray of shape (n_samples, n_units)
            Same dtype as `field`.
        """

    def mean_signal(self, field: Array) -> Array:
        """Expected signal given the field.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_units)
            Contribution of the other layer to each unit, bias excluded.

        Returns
        -------
        signal : ndarray of shape (n_samples, n_units)
            Expectation of the signal of each unit.
        """
        return np.asarray(self.signal(self.mean(field)))

    @abstractmethod
    def moments(self, states: Any, probabilities: Array | None) -> tuple[Array, ...]:
        """Averages over samples that the gradient of the layer's own parameters needs.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_units)
            States.
        probabilities : ndarray of shape (n_samples,) or None
            Weights of the samples, summing to one; None weighs them alike.

        Returns
        -------
        moments : tuple of ndarray of shape (n_units,)
            As many as the type needs, in an order of its own.
        """

    @abstractmethod
    def mean_moments(self, field: Array, probabilities: Array | None) -> tuple[Array, ...]:
        """Moments with the states averaged out given their field.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_units)
            Contribution of the other layer to each unit, bias excluded.
        probabilities : ndarray of shape (n_samples,) or None
            Weights of the samples, summing to one; None weighs them alike.

        Returns
        -------
        moments : tuple of ndarray of shape (n_units,)
            Expectation of `moments`.
        """

    @abstractmethod
    def gradient(
        self,
        moments: tuple[Array, ...],
        field: Callable[[], Array],
        work: Callable[[], Array],
    ) -> dict[str, Array]:
        """Average of minus the energy's gradient in the layer's own parameters.

        Parameters
        ----------
        moments : tuple of ndarray of shape (n_units,)
            From `moments` or `mean_moments`.
        field : callable returning an ndarray of shape (n_units,)
            Average field, computed when it is asked for.
        work : callable returning an ndarray of shape (n_units,)
            Average product of signal and field, likewise.

        Returns
        -------
        gradient : dict of str to ndarray of shape (n_units,)
            Same keys as `parameters`.
        """

    @abstractmethod
    def recentered(self, offset: Array | None, field: Array) -> Self:
        """Layer with another offset that has absorbed a constant field.

        Up to a constant, its energy is the old one minus the new signal times `field`.

        Parameters
        ----------
        offset : ndarray of shape (n_units,) or None
            New offset.
        field : ndarray of shape (n_units,)
            Constant field to absorb.

        Returns
        -------
        units : Units
            Same type.
        """

    @abstractmethod
    def uncentering(self, offset: Array, field: Array) -> Uncentering:
        """How this plain layer came out of a centred one.

        Parameters
        ----------
        offset : ndarray of shape (n_units,)
            Offset that the centred layer had.
        field : ndarray of shape (n_units,)
            Field that the plain layer has absorbed.

        Returns
        -------
        uncentering : Uncentering
            Shift of the signal and derivatives.
        """

    @abstractmethod
    def alternatives(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Values that a single unit could take in place of its own, for a layer of one unit.

        Parameters
        ----------
        states : ndarray of shape (n_samples, 1)
            Present states.
        low, high : ndarray of shape (1,)
            Bounds of the field that the unit may feel.

        Returns
        -------
        values : ndarray of shape (n_samples or 1, n_alternatives)
            Discrete units: every other state. Continuous units: nodes of a quadrature that
            is exact for every law of the unit given a field within the bounds.
        log_weights : ndarray of shape (n_alternatives,)
            Log-measure of each value, in nats.

        Raises
        ------
        QuadratureError
            If continuous units need too many nodes.
        """
