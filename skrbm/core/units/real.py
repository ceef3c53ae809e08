"""Real-valued units of curvature one: Gaussian, rectified, and rectified on both sides."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.special import erfcx, expit, log_ndtr, ndtr, ndtri

from skrbm.core.draws import draw_normal
from skrbm.core.numerics import Array, dense
from skrbm.core.units.linear import LinearUnits
from skrbm.core.units.support import Metric, Support

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# Standard deviations below zero of a cut normal variable, beyond which means are a continued fraction
# of so many terms, and draws a fixed point of so many steps: both are then exact to 1e-13.
FAR_MEAN, N_FRACTION_TERMS = -10.0, 12
FAR_DRAW, N_FIXED_POINT_STEPS = -30.0, 5
# Fields at which the variance of a unit with two modes is asked, and what may be missed between them.
N_VARIANCE_FIELDS, VARIANCE_GRID_MARGIN = 201, 1.01
LARGEST_ASYMMETRY = 0.9  # of learned curvatures: they differ by a factor of 19 at most


class RealUnits(LinearUnits):
    r"""Real-valued units with a signal linear in their columns, and an energy of curvature one.

    .. math:: A(s) = \tfrac12 |s|^2 - (s - o)^T b, \qquad \varphi(s) = s - o, \qquad x = b + f

    The curvature fixes the scale of the states: multiples of it are multiples of the weights.
    """

    def energy(self, states: Any) -> Array:
        square = np.square(dense(states)).sum(axis=1)
        return np.asarray(super().energy(states) + square / 2)

    @property
    def tail_curvature(self) -> Array:
        return np.ones_like(self.bias)

    @property
    def largest_variance(self) -> Array:
        return 1 / self.tail_curvature

    def metric(self, variance: Array | None, kurtosis: Array | None = None) -> Metric:
        # One over the Fisher information of the bias, which is the variance of the states.
        share = np.ones_like(self.bias)
        if variance is not None:
            share /= np.maximum(variance, 1)
        return Metric(share, {"bias": share})

    @property
    @abstractmethod
    def support(self) -> Support:  # type: ignore[override]  # a subclass declares a constant
        """Values that every column can take, declared by the type."""


@final
@dataclass(frozen=True, eq=False)
class StandardGaussian(RealUnits):
    r"""Real-valued units of variance one, with :math:`p(s \mid f) = \mathcal{N}(b + f, 1)`.

    Unlike `Gaussian` of that variance, the energy is linear in the bias, so that all energies
    between two layers are known exactly. As a hidden layer they couple the visible units by pairs,
    with the couplings :math:`W W^T` [1]_.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Mean of each unit without a field.
    offset : ndarray of shape (n_columns,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.

    References
    ----------
    .. [1] Barra, Bernacchia, Santucci, Contucci (2012), "On the equivalence of Hopfield networks and
       Boltzmann machines", Neural Networks 34, 1-9. :doi:`10.1016/j.neunet.2012.06.003`

    Examples
    --------
    >>> unit = StandardGaussian(np.array([1.0]))
    >>> float(unit.mean(np.array([[0.5]]))[0, 0])
    1.5
    """

    support = Support(-np.inf, np.inf)

    def log_normaliser(self, x: Array) -> Array:
        square = np.einsum("ij,ij->i", x, x, dtype=np.float64)
        return np.asarray(x.shape[1] * HALF_LOG_TWO_PI + 0.5 * square)

    def expectation(self, x: Array) -> Array:
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        return draw_normal(x, np.ones(x.shape[1]), rng, out=x)

    def log_partition_shifts(self, field: Array) -> Callable[[Array], Array]:
        signal = self.signal(field + self.bias)
        return lambda d: np.asarray(d @ signal.T + 0.5 * np.square(d).sum(axis=1)[:, None])


@final
@dataclass(frozen=True, eq=False)
class ReLU(RealUnits):
    r"""Rectified linear units: :math:`s \ge 0`, the normal law of mean :math:`b + f` cut at zero.

    .. math::

        L(x) = \tfrac12 \log 2 \pi + \tfrac12 x^2 + \log \Phi(x), \qquad
        \mathrm{E}[s \mid x] = x + \frac{\phi(x)}{\Phi(x)}

    with :math:`\phi` and :math:`\Phi` of the standard normal law.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Mean without a field of the law that is cut.
    offset : ndarray of shape (n_columns,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.

    References
    ----------
    .. [1] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence data",
       eLife 8:e39397. :doi:`10.7554/eLife.39397`

    Examples
    --------
    >>> unit = ReLU(np.array([0.0]))
    >>> unit.mean(np.array([[-10.0], [0.0], [10.0]])).round(2)
    array([[ 0.1],
           [ 0.8],
           [10. ]])
    """

    support = Support(0.0, np.inf)

    def log_normaliser(self, x: Array) -> Array:
        return np.asarray(log_half_normal(x.astype(np.float64)).sum(axis=1))

    def expectation(self, x: Array) -> Array:
        x[...] = half_normal_mean(x.astype(np.float64))
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        x[...] = half_normal_quantile(x.astype(np.float64), 1 - rng.random(x.shape))
        return x


@final
@dataclass(frozen=True, eq=False)
class DReLU(RealUnits):
    r"""Double rectified linear units: the two sides of zero have a curvature and a threshold each.

    .. math::

        A(s) = \tfrac12 \gamma_+ s_+^2 + \tfrac12 \gamma_- s_-^2 + \theta (s_+ - s_-) - (s - o)^T b,
        \qquad \gamma_\pm = 1 \pm \eta

    with :math:`s_+ = \max(s, 0)` and :math:`s_- = \min(s, 0)`. The four parameters of the sides [1]_
    have two freedoms too many, a scale and a bias: their curvatures have the mean one, and their
    thresholds are opposite. So the energy is linear in all parameters. A positive threshold
    :math:`\theta` makes states near zero likelier, a negative one makes two modes.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Slope of minus the energy that both sides share.
    threshold : ndarray of shape (n_columns,)
        :math:`\theta`, in nats for a state of one.
    asymmetry : ndarray of shape (n_columns,)
        :math:`\eta`, between -1 and 1.
    offset : ndarray of shape (n_columns,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.

    References
    ----------
    .. [1] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence data",
       eLife 8:e39397. :doi:`10.7554/eLife.39397`

    Examples
    --------
    Without thresholds and asymmetry, it is Gaussian:

    >>> unit = DReLU(np.array([1.0]), np.zeros(1), np.zeros(1))
    >>> round(float(unit.mean(np.array([[0.5]]))[0, 0]), 12)
    1.5
    """

    threshold: Array
    asymmetry: Array

    support = Support(-np.inf, np.inf)
    is_mean_sufficient = False

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        return cls(np.array(mean), np.zeros_like(mean), np.zeros_like(mean), **options)

    @property
    def parameters(self) -> dict[str, Array]:
        own = {"threshold": self.threshold, "asymmetry": self.asymmetry}
        return super().parameters | own

    @property
    def tail_curvature(self) -> Array:
        return 1 - np.abs(self.asymmetry)

    @property
    def largest_variance(self) -> Array:
        if (self.threshold >= 0).all():  # a convex energy
            return super().largest_variance
        # Largest where both sides are about alike, which is within the thresholds.
        reach = np.abs(self.threshold) + 4
        x = np.linspace(-1, 1, N_VARIANCE_FIELDS)[:, None] * reach
        up, down, z, gamma = self._sides(x)
        share, first = expit(up - down), half_normal_mean(z)
        second = (1 + z * first) / gamma
        first /= np.sqrt(gamma)
        mean = share * first[0] - (1 - share) * first[1]
        variance = share * second[0] + (1 - share) * second[1] - mean**2
        largest = np.maximum(variance.max(axis=0), super().largest_variance)
        return np.asarray(VARIANCE_GRID_MARGIN * largest, dtype=self.bias.dtype)

    def energy(self, states: Any) -> Array:
        size = np.abs(dense(states))
        own = size * (self.threshold + 0.5 * self.asymmetry * states)
        return np.asarray(super().energy(states) + own.sum(axis=1))

    def log_normaliser(self, x: Array) -> Array:
        up, down, _, _ = self._sides(x)
        return np.asarray(np.logaddexp(up, down).sum(axis=1))

    def expectation(self, x: Array) -> Array:
        up, down, z, gamma = self._sides(x)
        means = half_normal_mean(z) / np.sqrt(gamma)
        share = expit(up - down)
        x[...] = share * means[0] - (1 - share) * means[1]
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        up, down, z, gamma = self._sides(x)
        u = 1 - rng.random((2, *x.shape))
        is_up = u[0] <= expit(up - down)
        size = half_normal_quantile(np.where(is_up, z[0], z[1]), u[1])
        size /= np.sqrt(np.where(is_up, gamma[0], gamma[1]))
        x[...] = np.where(is_up, size, -size)
        return x

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        size = np.abs(dense(states))
        own = {"threshold": -size, "asymmetry": -0.5 * size * states}
        return super().moments(states, sample_weight) | {
            name: np.asarray(sample_weight @ values) for name, values in own.items()
        }

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        up, down, z, gamma = self._sides(self.bias if field is None else field + self.bias)
        share = expit(up - down)
        first = half_normal_mean(z)
        second = (1 + z * first) / gamma
        first /= np.sqrt(gamma)
        size = share * first[0] + (1 - share) * first[1]
        signed_square = share * second[0] - (1 - share) * second[1]
        own = {"threshold": -size, "asymmetry": -0.5 * signed_square}
        return super().moments(mean, sample_weight) | {
            name: np.asarray(sample_weight @ values).astype(mean.dtype)
            for name, values in own.items()
        }

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        own, other = self.parameters, base.parameters
        return replace(
            self,
            **{name: a + inverse_temperature * (own[name] - a) for name, a in other.items()},
        )

    def metric(self, variance: Array | None, kurtosis: Array | None = None) -> Metric:
        # Likewise of states that are normal: their magnitudes, of which the threshold is the factor,
        # vary no more than they do, half their signed squares by 3/4 of the square of that.
        metric = super().metric(variance)
        own = {"threshold": metric.signal, "asymmetry": 4 / 3 * np.square(metric.signal)}
        return Metric(metric.signal, {**metric.parameters, **own})

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        largest = np.full_like(variance, LARGEST_ASYMMETRY)
        return {"asymmetry": (-largest, largest)}

    def _sides(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Log-normalisers of the upper and the lower side, their standard scores, curvatures.

        In double precision; scores and curvatures have the sides along a first axis.
        """
        x = x.astype(np.float64)
        eta, theta = self.asymmetry.astype(np.float64), self.threshold
        gamma = np.stack(np.broadcast_arrays(1 + eta, 1 - eta, x)[:2])
        z = np.stack([x - theta, -x - theta]) / np.sqrt(gamma)
        up, down = log_half_normal(z) - 0.5 * np.log(gamma)
        return up, down, z, gamma


def log_half_normal(z: Array) -> Array:
    r"""Logarithm of :math:`\int_0^\infty e^{-s^2 / 2 + z s} ds`, in double precision.

    It is :math:`\tfrac12 \log 2 \pi + z^2 / 2 + \log \Phi(z)`, whose last two terms cancel for
    negative arguments.
    """
    low, high = np.minimum(z, 0), np.maximum(z, 0)
    below = np.log(0.5 * erfcx(-low / math.sqrt(2)))
    return np.asarray(HALF_LOG_TWO_PI + np.where(z < 0, below, 0.5 * high**2 + log_ndtr(high)))


def half_normal_mean(z: Array) -> Array:
    r"""Mean :math:`z + \phi(z) / \Phi(z)` of a normal variable of mean z that is cut at zero."""
    near = np.maximum(z, FAR_MEAN)
    mean = near + math.sqrt(2 / math.pi) / erfcx(-near / math.sqrt(2))
    is_far = z < FAR_MEAN
    if is_far.any():  # where both terms cancel: Laplace's continued fraction of Mills' ratio
        far = -z[is_far]
        rest = far
        for k in range(N_FRACTION_TERMS, 1, -1):
            rest = far + k / rest
        mean[is_far] = 1 / rest
    return np.asarray(mean)


def half_normal_quantile(z: Array, u: Array) -> Array:
    r"""State that a normal variable of mean z, cut at zero, exceeds with probability u.

    Far below zero :math:`z s` is compared with the logarithm of u, as for an exponential law, and
    the rest of the law's logarithm, which hardly varies, is that of the last approximation.
    """
    near = np.maximum(z, FAR_DRAW)
    states = np.maximum(near - ndtri(u * ndtr(near)), 0)
    is_far = z < FAR_DRAW
    if is_far.any():
        far, depth = -z[is_far], -np.log(u[is_far])
        own, scale = np.zeros_like(far), erfcx(far / math.sqrt(2))
        for _ in range(N_FIXED_POINT_STEPS):
            left = 2 * np.maximum(depth + np.log(erfcx((far + own) / math.sqrt(2)) / scale), 0)
            own = left / (far + np.sqrt(far**2 + left))
        states[is_far] = own
    return np.asarray(states)
