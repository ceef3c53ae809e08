"""Real-valued units: standard Gaussian, rectified linear and double rectified linear."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from skrbm.core.draws import draw_normal, draw_uniform
from skrbm.core.numerics import Array, copy_into, dense, last_rows
from skrbm.core.units.base import EveryPair, Outs, ShiftedUnits, Units
from skrbm.core.units.linear import LinearUnits
from skrbm.core.units.support import UNKNOWN, ColumnStatistics, Metric, Support

# The unwrapped ufuncs, which call the library of an array on a device. If SCIPY_ARRAY_API is set,
# SciPy wraps them in functions that support some libraries only.
_UFUNCS: Any = map(inspect.unwrap, (special.erfcx, special.expit, special.ndtr, special.ndtri))
erfcx, expit, ndtr, ndtri = _UFUNCS
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# Consider a normal variable that is truncated to positive values. If its mean before truncation, in
# standard deviations, is below FAR_MEAN, the truncated mean is computed by a continued fraction. If
# it is below FAR_DRAW, draws are computed by fixed-point iteration. With these numbers of terms and
# steps, both are exact to 1e-13.
FAR_MEAN, N_FRACTION_TERMS = -10.0, 12
FAR_DRAW, N_FIXED_POINT_STEPS = -30.0, 5
# Two grids of fields on which the variance of a bimodal unit is maximized; the factor covers the
# error of the grids. The second grid is centered by Newton's method.
N_VARIANCE_FIELDS, VARIANCE_GRID_MARGIN, N_NEWTON_STEPS = 201, 1.01, 3
LARGEST_ASYMMETRY = 0.9  # learned curvatures differ by a factor of 19 at most


class RealUnits(LinearUnits):
    r"""Real-valued units whose energy is a linear term plus half the square of the state.

    .. math:: A(s) = \tfrac12 |s|^2 - (s - o)^T b, \qquad \varphi(s) = s - o, \qquad x = b + f

    where :math:`b` is the bias, :math:`o` the offset and :math:`f` the field. The curvature of one
    fixes the scale of the states. Another scale would only rescale the weights and biases. `DReLU`
    adds further terms to the energy.
    """

    def energy(self, states: Any) -> Array:
        square = np.square(dense(states)).sum(axis=1)
        return super().energy(states) + square / 2

    @property
    def tail_curvature(self) -> Array:
        return np.ones_like(self.bias)

    @property
    def largest_variance(self) -> Array:
        return 1 / self.tail_curvature

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        # Inverse of the Fisher information of the bias (the variance of the states); at most one.
        share = np.ones_like(self.bias)
        if statistics.variance is not None:
            share /= np.maximum(statistics.variance, 1)
        return Metric(share, {"bias": share})


@final
@dataclass(frozen=True, eq=False)
class StandardGaussian(RealUnits):
    r"""Real-valued units of variance one, with :math:`p(s \mid f) = \mathcal{N}(b + f, 1)`.

    Unlike the energy of `Gaussian`, their energy is linear in the bias, so `is_tempered_exactly` is
    True. As hidden units, they couple the signals of the visible units pairwise, with the couplings
    :math:`W W^T` [1]_.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Mean of each unit without a field.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Barra, Bernacchia, Santucci, Contucci (2012), "On the equivalence of Hopfield networks
       and Boltzmann machines", Neural Networks 34, 1-9. :doi:`10.1016/j.neunet.2012.06.003`

    Examples
    --------
    >>> unit = StandardGaussian(np.array([1.0]))
    >>> float(unit.mean(np.array([[0.5]]))[0, 0])
    1.5
    """

    support = Support(-np.inf, np.inf)
    type_name = "Gaussian"

    def log_normaliser(self, x: Array) -> Array:
        square = np.einsum("ij,ij->i", x, x, dtype=np.float64)
        return x.shape[1] * HALF_LOG_TWO_PI + 0.5 * square

    def expectation(self, x: Array) -> Array:
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        return draw_normal(x, np.ones_like(self.bias), rng)

    def shifted(self, field: Array) -> ShiftedUnits:
        return _ShiftedGaussian(self, field)


@final
class _ShiftedGaussian(ShiftedUnits):
    """Standard Gaussian units, whose log-partition is quadratic in the field."""

    def log_partitions(self, shifts: Array) -> Array:
        return self.log_partition_changes(shifts) + self.units.log_partition(self.field)

    def log_partition_changes(self, shifts: Array) -> Array:
        signal = self.units.signal(self.field + self.units.bias)
        return shifts @ signal.T + 0.5 * np.square(shifts).sum(axis=1)[:, None]

    def sums(
        self, shifts: Array, weights: Array, layer: Units | None = None
    ) -> tuple[Array, Array, dict[str, Array]]:
        return EveryPair(self.units, self.field).sums(shifts, weights, layer)


@final
@dataclass(frozen=True, eq=False)
class ReLU(RealUnits):
    r"""Rectified linear units: normal with mean :math:`b + f`, truncated to :math:`s \ge 0`.

    .. math::

        L(x) = \tfrac12 \log 2 \pi + \tfrac12 x^2 + \log \Phi(x), \qquad
        \mathrm{E}[s \mid x] = x + \frac{\phi(x)}{\Phi(x)}

    where :math:`x = b + f`, :math:`L` is the log-partition of a unit without an offset, and
    :math:`\phi` is the density and :math:`\Phi` the distribution function of the standard normal
    distribution.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Mean, without a field, of the normal distribution before truncation.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence
       data", eLife 8:e39397. :doi:`10.7554/eLife.39397`

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
        return half_normal(x.astype(np.float64))[0].sum(axis=1)

    def expectation(self, x: Array) -> Array:
        _, x[...] = half_normal(x.astype(np.float64))
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        x[...] = half_normal_quantile(x.astype(np.float64), 1 - draw_uniform(x.shape, rng, x))
        return x


@final
@dataclass(frozen=True, eq=False)
class DReLU(RealUnits):
    r"""Double rectified linear units: the curvature and slope of the energy change at zero.

    .. math::

        A(s) = \tfrac12 \gamma_+ s_+^2 + \tfrac12 \gamma_- s_-^2 + \theta (s_+ - s_-) - (s - o)^T b,
        \qquad \gamma_\pm = 1 \pm \eta

    where :math:`s_+ = \max(s, 0)`, :math:`s_- = \min(s, 0)`, :math:`b` is the bias and :math:`o`
    the offset. In [1]_, each side of zero has its own curvature and threshold. A common factor of
    the curvatures only changes the scale of the states, and the mean of the thresholds acts as a
    bias. Here, the mean of the curvatures is therefore one, and the thresholds on the two sides are
    :math:`\theta` and :math:`-\theta`. The energy is linear in all parameters. With a positive
    :math:`\theta`, states near zero are more probable than with a threshold of zero. With a
    negative :math:`\theta` and a field :math:`f`, there are two modes, one on each side of zero, if
    :math:`|b + f| < -\theta`.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Linear coefficient of the negative energy, common to both sides of zero.
    threshold : ndarray of shape (n_columns,)
        Threshold :math:`\theta`, which is the coefficient of :math:`|s|` in the energy.
    asymmetry : ndarray of shape (n_columns,)
        Asymmetry :math:`\eta` of the curvatures, between -1 and 1.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence
       data", eLife 8:e39397. :doi:`10.7554/eLife.39397`

    Examples
    --------
    Without threshold and asymmetry, the unit is Gaussian:

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
        return super().parameters | {"threshold": self.threshold, "asymmetry": self.asymmetry}

    @property
    def tail_curvature(self) -> Array:
        return 1 - np.abs(self.asymmetry)

    @property
    def largest_variance(self) -> Array:
        if (self.threshold >= 0).all():  # a convex energy
            return super().largest_variance
        # The variance is largest near the field at which both sides of zero are equally probable:
        # the higher the barrier between them, the nearer, and the narrower the peak.
        up, down = np.sqrt(1 + self.asymmetry), np.sqrt(1 - self.asymmetry)
        field = (self.threshold * (down - up) / (up + down)).astype(np.float64)
        for _ in range(N_NEWTON_STEPS):  # from the field at which both scores are equal
            sides = self._sides(field[None])
            distance = (sides.magnitudes / sides.probabilities).sum(axis=0)
            up, down = sides.log_normalisers
            field -= (up - down)[0] / distance[0]
        grid = np.linspace(-1, 1, N_VARIANCE_FIELDS)[:, None]
        near = field + 8 / distance * grid
        sides = self._sides(np.concatenate([(np.abs(self.threshold) + 4) * grid, near]))
        up, down = sides.second_moments
        variance = up + down - np.square(sides.mean)
        largest = np.maximum(variance.max(axis=0), super().largest_variance)
        return (VARIANCE_GRID_MARGIN * largest).astype(self.bias.dtype, copy=False)

    def energy(self, states: Any) -> Array:
        size = np.abs(dense(states))
        terms = size * (self.threshold + 0.5 * self.asymmetry * states)
        return super().energy(states) + terms.sum(axis=1)

    def log_normaliser(self, x: Array) -> Array:
        return np.logaddexp(*self._sides(x).log_normalisers).sum(axis=1)

    def expectation(self, x: Array) -> Array:
        x[...] = self._sides(x).mean
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        x[...] = self._sides(x).draw(rng)
        return x

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        sides = self._sides(field + self.bias)
        mean, states = sides.mean.astype(field.dtype), sides.draw(rng).astype(field.dtype)
        return copy_into(mean, out[0]), copy_into(last_rows(states, out[1]), out[1])

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        size = np.abs(dense(states))
        derivatives = {"threshold": -size, "asymmetry": -0.5 * size * states}
        return super().moments(states, sample_weight) | {
            name: sample_weight @ values for name, values in derivatives.items()
        }

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        if field is None:
            raise ValueError("Moments of double rectified units expected a field, got None.")
        sides = self._sides(field + self.bias)
        size, (up, down) = sides.magnitudes.sum(axis=0), sides.second_moments
        derivatives = {"threshold": -size, "asymmetry": -0.5 * (up - down)}
        return super().moments(mean, sample_weight) | {
            name: (sample_weight @ values).astype(mean.dtype)
            for name, values in derivatives.items()
        }

    def scale_gradient(self, work: Array) -> dict[str, Array]:
        return {"asymmetry": 0.5 * np.sign(self.asymmetry) / self.tail_curvature * work}

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        # Inverse Fisher information for normal states of variance V: the variance of |s| is at most
        # V (threshold), the variance of s |s| / 2 is 3/4 V^2 (asymmetry).
        metric = super().metric(statistics)
        of_sides = {"threshold": metric.signal, "asymmetry": 4 / 3 * np.square(metric.signal)}
        return Metric(metric.signal, {**metric.parameters, **of_sides})

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        largest = np.full_like(variance, LARGEST_ASYMMETRY)
        return {"asymmetry": (-largest, largest)}

    def _sides(self, x: Array) -> Sides:
        """Distributions of positive and negative states given x = b + f, in double precision."""
        x, eta, theta = x.astype(np.float64), self.asymmetry.astype(np.float64), self.threshold
        gamma = np.stack([1 + eta, 1 - eta])
        gamma = gamma.reshape(2, -1, x.shape[-1])  # parameters may have a row for each sample
        z = np.stack([x - theta, -x - theta]) / np.sqrt(gamma)
        return Sides(z, np.broadcast_to(gamma, z.shape))


@final
class Sides:
    """Truncated normal distributions of the positive and the negative states of `DReLU` units.

    In arrays of shape (2, n_samples, n_columns), index 0 of the first axis stands for positive
    states s, and index 1 for negative states, represented by -s.

    Parameters
    ----------
    scores : ndarray of shape (2, n_samples, n_columns)
        Means of the normal distributions before truncation, in standard deviations.
    curvatures : ndarray of shape (2, n_samples, n_columns)
        Inverse variances of the normal distributions before truncation.
    """

    def __init__(self, scores: Array, curvatures: Array) -> None:
        self._scores, self._scale = scores, 1 / np.sqrt(curvatures)
        log_normaliser, self._means = half_normal(scores)
        self.log_normalisers = log_normaliser + np.log(self._scale)
        up, down = self.log_normalisers
        self.probabilities = expit(np.stack([up - down, down - up]))

    @property
    def magnitudes(self) -> Array:
        """Expected magnitude on each side of zero; states on the other side count as zero."""
        return self.probabilities * self._scale * self._means

    @property
    def mean(self) -> Array:
        """Expected states, of shape (n_samples, n_columns)."""
        up, down = self.magnitudes
        return up - down

    @property
    def second_moments(self) -> Array:
        """Expected square on each side of zero; states on the other side count as zero."""
        return self.probabilities * np.square(self._scale) * (1 + self._scores * self._means)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw states, of shape (n_samples, n_columns)."""
        u = 1 - draw_uniform(self._scores.shape, rng, self._scores)
        is_up = u[0] <= self.probabilities[0]
        size = half_normal_quantile(np.where(is_up, self._scores[0], self._scores[1]), u[1])
        size *= np.where(is_up, self._scale[0], self._scale[1])
        return np.where(is_up, size, -size)


def half_normal(z: Array) -> tuple[Array, Array]:
    r"""Log-normalizer and mean of the normal distribution N(z, 1) truncated to positive values.

    For z up to zero, both are computed from :math:`\Phi(z) = \tfrac12 e^{-z^2 / 2}
    \operatorname{erfcx}(-z / \sqrt{2})`: if z is below about -38, :math:`\Phi` underflows, but its
    last factor does not. For z below `FAR_MEAN`, the mean is computed by a continued fraction
    instead.

    Parameters
    ----------
    z : ndarray
        Means before truncation, in double precision.

    Returns
    -------
    log_normaliser : ndarray
        :math:`\log \int_0^\infty e^{-s^2 / 2 + z s} ds = \tfrac12 \log 2 \pi + z^2 / 2 + \log
        \Phi(z)`.
    mean : ndarray
        :math:`z + \phi(z) / \Phi(z)`.
    """
    half_square = 0.5 * np.square(z)
    below, peak = 0.5 * erfcx(np.abs(z) / math.sqrt(2)), np.exp(-half_square)
    is_above = z > 0
    # Phi(z) / exp(-z^2 / 2) for z below zero, Phi(z) above.
    share = np.where(is_above, 1 - below * peak, below)
    log_normaliser = HALF_LOG_TWO_PI + np.where(is_above, half_square, 0) + np.log(share)
    mean = z + math.sqrt(0.5 / math.pi) * np.where(is_above, peak, 1) / share
    is_far = z < FAR_MEAN
    if is_far.any():  # the terms would cancel; use Laplace's continued fraction of the Mills ratio
        far = -z[is_far]
        rest = far
        for k in range(N_FRACTION_TERMS, 1, -1):
            rest = far + k / rest
        mean[is_far] = 1 / rest
    return log_normaliser, mean


def half_normal_quantile(z: Array, u: Array) -> Array:
    r"""Value that is exceeded with probability u by the normal variable N(z, 1) truncated to s > 0.

    `z` and `u` have the same shape, and `u` is in (0, 1]. If z is below `FAR_DRAW`, the state s is
    computed by fixed-point iteration. The log-survival function is :math:`z s - s^2 / 2` plus a
    remainder that varies slowly with s. Each step solves for s with the remainder at the previous
    iterate.
    """
    near = np.maximum(z, FAR_DRAW)
    states = np.maximum(near - ndtri(u * ndtr(near)), 0)
    is_far = z < FAR_DRAW
    if is_far.any():
        far, depth = -z[is_far], -np.log(u[is_far])
        solution, scale = np.zeros_like(far), erfcx(far / math.sqrt(2))
        for _ in range(N_FIXED_POINT_STEPS):
            remainder = np.log(erfcx((far + solution) / math.sqrt(2)) / scale)
            left = 2 * np.maximum(depth + remainder, 0)
            solution = left / (far + np.sqrt(far**2 + left))
        states[is_far] = solution
    return states
