"""What a layer of units has to answer: everything else in the package asks these questions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from skrbm.core.numerics import Array
from skrbm.core.units.answers import Metric
from skrbm.core.units.law import Law


@dataclass(frozen=True, eq=False)
class Units(Law):
    r"""A layer of units that are independent of each other given the other layer.

    A layer has an energy of its own, :math:`A(s)`, and sends the other layer a `signal`,
    :math:`\varphi(s)`, an affine function of its states. Two layers and the weights between
    them are a machine of energy

    .. math:: E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h)

    so that a layer feels the other one only through the `field`
    :math:`f = W \psi(h)` or :math:`W^T \varphi(v)`. Its law given the field is one half of what a
    type has to answer; the other half, here, is how its parameters are started, learned and moved
    with the offsets.

    Parameters
    ----------
    bias : ndarray of shape (n_units,)
        Bias of each unit.
    offset : ndarray of shape (n_units,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.

    See Also
    --------
    skrbm.core.units.checks.check_units : Examines a unit type, one's own included.
    """

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
    def moments(self, states: Any, sample_weight: Array | None) -> tuple[Array, ...]:
        """Averages over samples that the gradient of the layer's own parameters needs.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_units)
            States.
        sample_weight : ndarray of shape (n_samples,) or None
            Weights of the samples, of either sign and any sum, in which the answer is linear;
            None weighs them alike, with a sum of one.

        Returns
        -------
        moments : tuple of ndarray of shape (n_units,)
            As many as the type needs, in an order of its own.
        """

    @abstractmethod
    def mean_moments(self, mean: Array, sample_weight: Array | None) -> tuple[Array, ...]:
        """Moments with the states averaged out, given their expectations.

        Parameters
        ----------
        mean : ndarray of shape (n_samples, n_units)
            From `mean`; it determines the law of the states.
        sample_weight : ndarray of shape (n_samples,) or None
            Weights of the samples, of either sign and any sum, in which the answer is linear;
            None weighs them alike, with a sum of one.

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
    def metric(self, variance: Array | None) -> Metric:
        """Units of measurement in which all parameters are alike to a step of training.

        Parameters
        ----------
        variance : ndarray of shape (n_units,) or None
            Of the data in each unit; None where that is not known.

        Returns
        -------
        metric : Metric
            Multiples of the gradient.
        """

    @classmethod
    @abstractmethod
    def limits(cls, variance: Array) -> dict[str, tuple[Array, Array]]:
        """Range in which training keeps the layer's own parameters.

        Parameters
        ----------
        variance : ndarray of shape (n_units,)
            Of the data in each unit; zero where it is constant.

        Returns
        -------
        limits : dict of str to (ndarray, ndarray)
            Lowest and highest values, by the keys of `parameters`; those without are free.
        """
