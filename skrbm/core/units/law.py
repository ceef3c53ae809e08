"""The law of a layer of units given the other layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from skrbm.core.numerics import Array
from skrbm.core.units.arrays import UnitArrays


@dataclass(frozen=True, eq=False)
class Law(UnitArrays, ABC):
    r"""Law of units that are independent of each other given the other layer.

    With :math:`A(s)` the layer's own energy, :math:`\varphi(s)` its `signal`, an affine function
    of the states, and :math:`f` the `field` of the other layer,

    .. math:: p(s \mid f) \propto \exp(-A(s) + \varphi(s)^T f)

    Every array of one value per unit may also have the shape (n_samples, n_units), which gives
    each sample a law of its own: so come layers out of `take` and `tempered`.

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
        return int(self.bias.shape[-1])

    def still(self, n_samples: int) -> Array:
        """Field of a layer that is not coupled to another.

        Parameters
        ----------
        n_samples : int
            Number of rows.

        Returns
        -------
        field : ndarray of shape (n_samples, n_units)
            Zeros of the layer's precision.
        """
        return np.zeros((n_samples, self.n_units), dtype=self.bias.dtype)

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        """Signal of the state zero, and what every unit of state adds to it.

        Returns
        -------
        origin, slope : ndarray of shape (n_units,)
            The signal is `origin` plus `slope` times the state.
        """
        states = np.repeat(np.array([[0.0], [1.0]], dtype=self.bias.dtype), self.n_units, axis=1)
        origin, one = self.signal(states)
        return origin, one - origin

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
    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        """Log-normaliser of another layer given its field, minus that of this one.

        Parameters
        ----------
        other : Units
            Same type.
        field, other_field : ndarray of shape (n_samples, n_units)
            Fields of this layer and of the other.
        other_mean : ndarray of shape (n_samples, n_units)
            Expected states of the other layer given its field.

        Returns
        -------
        change : ndarray of shape (n_samples,)
            In nats; of laws that are alike at the cost of a single log-normaliser.
        """

    @abstractmethod
    def log_partition_shift(self, mean: Array, shift: Array, field: Callable[[], Array]) -> Array:
        """Log-normaliser after a field that is added to every sample's, minus that before.

        Parameters
        ----------
        mean : ndarray of shape (n_samples, n_units)
            From `mean`, given the field before.
        shift : ndarray of shape (n_units,)
            What is added.
        field : callable returning an ndarray of shape (n_samples, n_units)
            Field before, asked for where the means do not say enough.

        Returns
        -------
        change : ndarray of shape (n_samples,)
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
    def draw(self, mean: Array, rng: np.random.Generator) -> Array:
        """Draw states given their expectations, which determine their law.

        Parameters
        ----------
        mean : ndarray of shape (n_samples, n_units)
            From `mean`.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        states : ndarray of shape (n_samples, n_units)
            Same dtype as `mean`.
        """

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
        return self.draw(self.mean(field), rng)

    @abstractmethod
    def natural(self) -> Self:
        """Plain layer that sends its states as they are, with the law of this one.

        Given a field that does as much to it as the old field did, and up to a constant, its
        energy is the old one.

        Returns
        -------
        units : Units
            Same type, with the identity for `signal`.
        """

    @abstractmethod
    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        r"""Layer on the way from another one to this one, both natural.

        Its energy is :math:`(1 - \beta)` times that of `base` plus :math:`\beta` times its own:
        exactly for discrete units, up to a constant for continuous ones.

        Parameters
        ----------
        base : Units
            Where the way begins; from `natural`, like this one.
        inverse_temperature : float or ndarray of shape (n_samples, 1)
            How far to go, between 0 and 1, for all samples alike or for each.

        Returns
        -------
        units : Units
            Same type, natural.
        """

    @abstractmethod
    def alternatives(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Values that a single unit could take in place of its own, for a layer of one unit.

        Parameters
        ----------
        states : ndarray of shape (n_samples, 1)
            Present states.
        low, high : ndarray of shape (1,) or (n_samples, 1)
            Bounds of the field that the unit may feel.

        Returns
        -------
        values : ndarray of shape (n_samples or 1, n_alternatives)
            Discrete units: every other state. Continuous units: nodes of a quadrature that
            is exact for every law of the unit given a field within the bounds.
        log_weights : ndarray of shape (n_samples or 1, n_alternatives or 1)
            Log-measure of each value, in nats.

        Raises
        ------
        QuadratureError
            If continuous units need too many nodes.
        """
