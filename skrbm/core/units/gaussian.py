"""Gaussian units: real values, in three published parameterizations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from skrbm.core.draws import draw_normal
from skrbm.core.numerics import Array, dense
from skrbm.core.units.base import Units
from skrbm.core.units.support import (
    LARGEST_SHARE,
    MAX_QUADRATURE_NODES,
    QUADRATURE_MARGIN,
    QUADRATURE_STEP,
    SMALLEST_SHARE,
    UNKNOWN,
    ColumnStatistics,
    Metric,
    QuadratureError,
    Support,
    metric_shares,
)

MIN_STEP = 4  # smallest distance of quadrature nodes, in units in the last place


@dataclass(frozen=True)
class Parameterization:
    r"""Definition of the signal, which differs between the published energies.

    .. math:: \varphi(v) = \frac{v - o - [\text{subtracts\_bias}]\, a}{\sigma^{2\,\text{power}}}

    where :math:`o` is the offset, :math:`a` the bias and :math:`\sigma^2` the variance given the
    field. The bracket is one if the flag is True, and zero otherwise.

    Parameters
    ----------
    power : float
        Exponent of the variance in the divisor of the signal.
    subtracts_bias : bool
        True if the bias is subtracted from the states in the signal.
    """

    power: float
    subtracts_bias: bool


PARAMETERIZATIONS = {
    "krizhevsky": Parameterization(power=0.5, subtracts_bias=False),
    "cho": Parameterization(power=1.0, subtracts_bias=False),
    "goodfellow": Parameterization(power=1.0, subtracts_bias=True),
}
NATURAL = "natural"  # the signal is the state; layers of all parameterizations convert to it
KINDS = PARAMETERIZATIONS | {NATURAL: Parameterization(power=0.0, subtracts_bias=False)}


@final
@dataclass(frozen=True, eq=False)
class Gaussian(Units):
    r"""Real-valued units with a normal distribution given the field.

    .. math::

        A(v) = \sum_i \frac{(v_i - a_i - o_i)^2}{2 \sigma_i^2}, \qquad
        v_i \mid f \sim \mathcal{N}\left(
            a_i + o_i + \sigma_i^{2 - 2\,\text{power}} f_i,\; \sigma_i^2 \right)

    where :math:`a` is the bias and :math:`o` the offset. The learned parameter of the variance is
    :math:`z = \log \sigma^2`. :class:`Parameterization` defines the signal and the power.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Mean of each unit without a field, minus the offset.
    log_variance : ndarray of shape (n_columns,)
        Logarithm of the variance of each unit given the other layer.
    parameterization : {"krizhevsky", "cho", "goodfellow", "natural"}
        Definition of the signal, apart from the offset. "krizhevsky" [1]_ divides the states by
        :math:`\sigma`, and "cho" [2]_ divides them by :math:`\sigma^2`. "goodfellow" [3]_ subtracts
        the bias from the states and divides by :math:`\sigma^2`. "natural" leaves the states
        unchanged.
    learn_variance : bool or ndarray of shape (n_columns,), default=True
        Mask of the variances that are learned.
    variance_rate : float, default=1.0
        Learning rate of :math:`z`, as a multiple of that of the other parameters.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the energy. If None,
        nothing is subtracted.

    References
    ----------
    .. [1] Krizhevsky (2009), "Learning multiple layers of features from tiny images",
       technical report, University of Toronto, section 1.4.
    .. [2] Cho, Ilin, Raiko (2011), "Improved learning of Gaussian-Bernoulli restricted
       Boltzmann machines", ICANN, eq. 3. :doi:`10.1007/978-3-642-21735-7_2`
    .. [3] Goodfellow, Bengio, Courville (2016), "Deep Learning", MIT Press, section 20.5.

    Examples
    --------
    >>> unit = Gaussian(np.array([1.0]), np.log([4.0]), parameterization="krizhevsky")
    >>> float(unit.mean(np.array([[0.5]]))[0, 0])
    2.0
    """

    bias: Array
    log_variance: Array
    parameterization: str
    learn_variance: bool | Array = True
    variance_rate: float = 1.0
    offset: Array | None = field(default=None, kw_only=True)

    support = Support(-np.inf, np.inf)
    is_signal_fixed = False
    is_mean_sufficient = True

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        return cls(mean, np.log(np.where(variance > 0, variance, 1)), **options)

    @property
    def parameters(self) -> dict[str, Array]:
        learned = {"bias": self.bias}
        if np.any(self.learn_variance):
            learned["log_variance"] = self.log_variance
        return learned

    @property
    def tail_curvature(self) -> Array:
        return 1 / self._variance

    @property
    def largest_variance(self) -> Array:
        return self._variance

    def signal(self, states: Any) -> Any:
        signal = dense(states)
        if self.offset is not None:
            signal = signal - self.offset
        if self._kind.subtracts_bias:
            signal = signal - self.bias
        return signal / self._scale

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        # A difference of two signals would lose precision if the bias is large.
        return self.signal(self.zero_field(1))[0], 1 / self._scale

    def energy(self, states: Any) -> Array:
        return (self._residual(states) ** 2 / (2 * self._variance)).sum(axis=1)

    def log_partition(self, field: Array) -> Array:
        drift = 0.0 if self._kind.subtracts_bias else self.bias / self._scale
        constant = 0.5 * (math.log(2 * math.pi) + self.log_variance)
        terms = constant + field * (drift + 0.5 * self._gain * field / self._scale)
        return terms.sum(axis=1)

    def mean(self, field: Array, out: Array | None = None) -> Array:
        mean = np.multiply(field, self._gain, out=out)
        mean += self._location
        return mean

    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        mean = self.mean(field, out=out)
        return draw_normal(mean, np.sqrt(self._variance), rng)

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        return self._moments(states, 0.0, sample_weight)

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        return self._moments(mean, self._variance, sample_weight)

    def _moments(
        self, mean: Array, variance: Array | float, sample_weight: Array
    ) -> dict[str, Array]:
        """Expected moments of states with the given means and variances."""
        residual = self._residual(mean)
        moments = {"bias": (sample_weight @ residual) / self._variance}
        if np.any(self.learn_variance):
            square = sample_weight @ (residual**2 + variance)
            moments["log_variance"] = self.learn_variance * square / (2 * self._variance)
        return moments

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        gradient = {}
        if self._kind.subtracts_bias:
            gradient["bias"] = -field / self._scale
        if np.any(self.learn_variance):
            gradient["log_variance"] = -self._kind.power * (self.learn_variance * work)
        return gradient

    def scale_gradient(self, work: Array) -> dict[str, Array]:
        slope = 0.5 - self._kind.power
        if not (slope and np.any(self.learn_variance)):
            return {}
        return {"log_variance": slope * (self.learn_variance * work)}

    def recentered(self, offset: Array | None, field: Array) -> Self:
        location = self._location + self._gain * field
        return replace(self, bias=location if offset is None else location - offset, offset=offset)

    def natural(self) -> Self:
        return replace(self, bias=self._location, offset=None, parameterization=NATURAL)

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        share = inverse_temperature / self._variance
        base_share = (1 - inverse_temperature) / base._variance
        precision = share + base_share
        bias = (share * self.bias + base_share * base.bias) / precision
        return replace(self, bias=bias, log_variance=-np.log(precision))

    @property
    def value_step(self) -> float | None:
        return 0.0 if self.learns_variance.any() else None

    @property
    def learns_variance(self) -> Array:
        is_learned = np.not_equal(self.variance_rate, 0) & self.learn_variance
        return np.broadcast_to(is_learned, self.n_columns)

    def heated(self, temperature: float) -> Self:
        return replace(self, log_variance=self.log_variance + math.log(temperature))

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        share, of_variance = metric_shares(self._variance, statistics)
        # The square of the scale, divided by the variance, which alone may not be representable.
        square = np.exp((2 * self._kind.power - 1) * self.log_variance)
        return Metric(
            share * square,
            {"bias": share * self._variance, "log_variance": of_variance * self.variance_rate},
        )

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        log_variance = np.log(np.where(variance > 0, variance, 1))
        low, high = (log_variance + math.log(s) for s in (SMALLEST_SHARE, LARGEST_SHARE))
        return {"log_variance": (low, high)}

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        deviation = np.sqrt(self._variance)
        first = self.mean(low) - QUADRATURE_MARGIN * deviation
        last = self.mean(high) + QUADRATURE_MARGIN * deviation
        deviation = np.broadcast_to(deviation, first.shape)
        rounding = np.spacing(np.maximum(np.abs(first), np.abs(last)).astype(states.dtype))
        steps = QUADRATURE_STEP * deviation / rounding
        finest = np.argmin(steps)
        if not steps.flat[finest] > MIN_STEP:
            raise QuadratureError(
                f"A visible unit of standard deviation {deviation.flat[finest]:.3g} near "
                f"{first.flat[finest]:.3g} is too narrow for {states.dtype}, whose spacing there "
                f"is {rounding.flat[finest]:.3g}."
            )
        n_steps = np.ceil((last - first) / (QUADRATURE_STEP * deviation))
        worst = np.argmax(n_steps)
        if not n_steps.flat[worst] < MAX_QUADRATURE_NODES:
            raise QuadratureError(
                f"A visible unit of standard deviation {deviation.flat[worst]:.3g} given the "
                f"others ranges from {first.flat[worst]:.3g} to {last.flat[worst]:.3g}, which "
                f"needs more than the {MAX_QUADRATURE_NODES} quadrature nodes that are allowed."
            )
        n_nodes = int(n_steps.flat[worst]) + 1
        values, step = np.linspace(
            np.atleast_2d(first), np.atleast_2d(last), n_nodes, dtype=states.dtype, retstep=True
        )
        return values, np.log(step[:, 0]).astype(states.dtype)[None]

    @property
    def _kind(self) -> Parameterization:
        return KINDS[self.parameterization]

    @property
    def _variance(self) -> Array:
        return np.exp(self.log_variance)

    @property
    def _scale(self) -> Array:
        """Divisor of the signal."""
        return np.exp(self._kind.power * self.log_variance)

    @property
    def _gain(self) -> Array:
        """Derivative of the mean with respect to the field."""
        return np.exp((1 - self._kind.power) * self.log_variance)

    @property
    def _location(self) -> Array:
        """Mean without a field."""
        return self.bias if self.offset is None else self.bias + self.offset

    def _residual(self, states: Any) -> Array:
        return dense(states) - self._location
