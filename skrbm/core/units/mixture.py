"""Mixture units: real values with several modes and atoms (values of positive probability)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, final

import numpy as np

from skrbm.core.numerics import Array, apart_from, copy_into, dense, log_sum_exp
from skrbm.core.units.base import Units
from skrbm.core.units.linear import bias_of_mean
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

MIN_PRECISION = 0.1  # of a component, relative to the base; must be positive for a finite Z


class Components(NamedTuple):
    """Components of each unit given its field.

    The arrays can be broadcast to the shape (n_samples, n_columns, n_parts), where n_parts is the
    largest number of components of a unit.

    Attributes
    ----------
    weight : ndarray
        Unnormalized log-probabilities of the components (from `Mixture._components`), or their
        probabilities (from `Mixture._shares`).
    mean, variance : ndarray
        Means and variances of the components; the variance of an atom is zero.
    """

    weight: Array
    mean: Array
    variance: Array


@final
@dataclass(frozen=True, eq=False)
class Mixture(Units):
    r"""Real-valued units, distributed as an exponentially tilted mixture of normals and atoms.

    .. math::

        A(v) = \sum_i \left( -\log p_{0i}(v_i) + \frac{e^{-z_i} - 1}{2} v_i^2
        - a_i \varphi_i(v_i) \right), \qquad
        \varphi(v) = (v - o) e^{-z}

    The base :math:`p_0 = \sum_k \pi_k \mathcal{N}(\mu_k, \sigma_k^2)` is fixed in training.
    Components with a variance of zero are atoms, that is, values with a positive probability. The
    distribution given the field is again a mixture. With :math:`x = (a + f) e^{-z}` and :math:`D_k
    = 1 + (e^{-z} - 1) \sigma_k^2`,

    .. math::

        v \mid k, f \sim \mathcal{N}\left( \frac{\mu_k + \sigma_k^2 x}{D_k}, \frac{\sigma_k^2}{D_k}
        \right), \qquad
        p(k \mid f) \propto \frac{\pi_k}{\sqrt{D_k}} \exp \frac{\mu_k x + \sigma_k^2 x^2 / 2
        - (e^{-z} - 1) \mu_k^2 / 2}{D_k}

    Without an offset, units with a single standard normal component have the distributions of
    `Gaussian` units with the parameterization "cho". The energy is linear in :math:`a e^{-z}` and
    :math:`e^{-z}`; tempered layers are therefore of the same type.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Bias :math:`a`, which is added to the field.
    log_variance : ndarray of shape (n_columns,)
        Logarithm :math:`z` of the variance of a standard normal component given the other layer.
    log_weight, center, spread : ndarray of shape (n_columns, n_parts)
        Log-weights, means and variances of the components of the base. Columns with fewer than
        n_parts components are padded with log-weights of minus infinity and variances of zero.
    is_natural : bool, default=False
        True if the factor :math:`e^{-z}` is omitted from the signal and from :math:`x`.
    learn_variance : bool or ndarray of shape (n_columns,), default=True
        Mask of the log-variances that are learned.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal. If None, nothing is subtracted.

    Examples
    --------
    A value is zero with a probability of 1/4, and normally distributed otherwise:

    >>> base = np.log([[0.25, 0.75]]), np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]])
    >>> unit = Mixture(np.zeros(1), np.zeros(1), *base)
    >>> np.exp(-unit.energy(np.zeros((1, 1)))).round(2)
    array([0.25])
    """

    bias: Array
    log_variance: Array
    log_weight: Array
    center: Array
    spread: Array
    is_natural: bool = False
    learn_variance: bool | Array = True
    offset: Array | None = field(default=None, kw_only=True)

    support = Support(-np.inf, np.inf)
    is_signal_fixed = False

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Compute log-variances from the variances of the data, and find biases by bisection.

        The log-variances are clipped to their `bounds`. They are zero in columns without variance.
        """
        zero = np.zeros_like(mean)
        units = cls(zero, zero, **options)
        base_mean, base_square = units._moments_given(zero[None])
        base_variance = np.where(variance > 0, base_square - base_mean**2, 1)[0]
        ratio = np.where(variance > 0, variance, 1) / base_variance
        low, high = units.bounds(variance)["log_variance"]
        units = replace(units, log_variance=np.clip(np.log(ratio), low, high))
        return replace(units, bias=bias_of_mean(units, mean))

    @property
    def start_options(self) -> dict[str, Any]:
        names = "log_weight", "center", "spread"
        return super().start_options | {name: getattr(self, name) for name in names}

    @property
    def parameters(self) -> dict[str, Array]:
        learned = {"bias": self.bias}
        if np.any(self.learn_variance):
            learned["log_variance"] = self.log_variance
        return learned

    @property
    def tail_curvature(self) -> Array:
        # The widest component dominates far from zero.
        precision = np.full_like(self.spread, np.inf)
        is_normal = (self.spread > 0) & np.isfinite(self.log_weight)
        np.divide(1, self.spread, out=precision, where=is_normal)
        return precision.min(axis=-1) + self._tilt

    def log_concave_parts(self, field: Array) -> Iterator[tuple[Array, Array, Array]]:
        _, mean, variance = self._components(self._coefficient(field))
        # Copies of the widest component replace atoms, whose curvature would be infinite.
        widest = self.spread.argmax(axis=-1)[:, None]
        numbers = np.where(self.spread > 0, np.arange(self.spread.shape[-1]), widest)
        curvature = 1 / np.take_along_axis(variance, numbers, axis=-1)
        yield np.arange(len(numbers)), curvature, np.take_along_axis(mean, numbers[None], axis=-1)

    def unit_atoms(self, index: int) -> Array:
        return self.center[index][self._is_atom[index]]

    def signal(self, states: Any) -> Any:
        signal = dense(states)
        if self.offset is not None:
            signal = signal - self.offset
        return signal * self._slope

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        slope = np.broadcast_to(self._slope, self.bias.shape).astype(self.bias.dtype)
        return np.zeros_like(slope) if self.offset is None else -self.offset * slope, slope

    def energy(self, states: Any) -> Array:
        s = dense(states)
        terms = self._tilt * s**2 / 2 - self.signal(s) * self.bias - self._log_base(s)
        return terms.sum(axis=1)

    def log_partition(self, field: Array) -> Array:
        x = self._coefficient(field)
        total = log_sum_exp(self._components(x).weight, axis=-1)
        if self.offset is not None:
            total = total - self.offset * x
        return total.sum(axis=1, dtype=np.float64).astype(field.dtype)

    def mean(self, field: Array, out: Array | None = None) -> Array:
        return copy_into(self._moments_given(field)[0], out)

    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        components = self._shares(self._coefficient(field))
        cumulated = np.cumsum(components.weight, axis=-1, dtype=np.float64)
        end = cumulated[..., -1]
        target = np.minimum(rng.random(field.shape) * end, np.nextafter(end, 0))
        chosen = (cumulated <= target[..., None]).sum(axis=-1)[..., None]
        mean, variance = (
            np.take_along_axis(np.broadcast_to(values, cumulated.shape), chosen, axis=-1)[..., 0]
            for values in (components.mean, components.variance)
        )
        noise = rng.standard_normal(field.shape)
        return copy_into((mean + np.sqrt(variance) * noise).astype(field.dtype), out)

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        return self._moments(dense(states), dense(states) ** 2, sample_weight)

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        if field is None:
            raise ValueError("Moments of mixture units expected a field, got None.")
        return self._moments(mean, self._moments_given(field)[1], sample_weight)

    def _moments(self, mean: Array, square: Array, sample_weight: Array) -> dict[str, Array]:
        signal = sample_weight @ self.signal(mean)
        moments = {"bias": signal}
        if np.any(self.learn_variance):
            derivative = np.exp(-self.log_variance) * (sample_weight @ square) / 2
            if not self.is_natural:
                derivative = derivative - self.bias * signal
            moments["log_variance"] = self.learn_variance * derivative
        return moments

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        if self.is_natural or not np.any(self.learn_variance):
            return {}
        return {"log_variance": -(self.learn_variance * work)}

    def scale_gradient(self, work: Array) -> dict[str, Array]:
        if not np.any(self.learn_variance):
            return {}
        of_curvature = np.exp(-self.log_variance) / (2 * self.tail_curvature)
        slope = of_curvature if self.is_natural else of_curvature - 1
        return {"log_variance": slope * (self.learn_variance * work)}

    def recentered(self, offset: Array | None, field: Array) -> Self:
        return replace(self, bias=self.bias + field, offset=offset)

    def natural(self) -> Self:
        return replace(self, bias=self.bias * self._slope, offset=None, is_natural=True)

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        full, base_precision = np.exp(-self.log_variance), np.exp(-base.log_variance)
        precision = base_precision + inverse_temperature * (full - base_precision)
        bias = base.bias + inverse_temperature * (self.bias - base.bias)
        return replace(self, bias=bias, log_variance=-np.log(precision))

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        # Same metric as for Gaussian units, the special case of a base with one component.
        scale = np.exp(self.log_variance)
        share, of_variance = metric_shares(scale, statistics)
        of_bias = share / (scale * self._slope**2)
        return Metric(of_bias, {"bias": of_bias, "log_variance": of_variance})

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        widest = np.maximum(self.spread.max(axis=-1), np.finfo(self.spread.dtype).tiny)
        least = np.maximum(1 / LARGEST_SHARE, 1 - (1 - MIN_PRECISION) / widest)
        low = np.full_like(self.bias, math.log(SMALLEST_SHARE))
        return {"log_variance": (low, -np.log(least).astype(low.dtype))}

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        ends = [self._components(self._coefficient(np.atleast_2d(end))) for end in (low, high)]
        is_normal, shape = self.spread > 0, ends[0].mean.shape
        deviation = np.sqrt(np.where(is_normal, ends[0].variance, np.inf))
        margin = np.where(is_normal, QUADRATURE_MARGIN * deviation, -np.inf)  # leaves atoms out
        first, last = (ends[0].mean - margin).min(axis=-1), (ends[1].mean + margin).max(axis=-1)
        n_steps = ((last - first) / (QUADRATURE_STEP * deviation.min(axis=-1))).max()
        if not n_steps < MAX_QUADRATURE_NODES:
            raise QuadratureError(
                f"A visible unit given the others ranges from {first.min():.3g} to "
                f"{last.max():.3g}, which needs more than the {MAX_QUADRATURE_NODES} quadrature "
                f"nodes that are allowed."
            )
        nodes, step = np.linspace(first, last, math.ceil(n_steps) + 1, retstep=True)
        is_any = self._is_atom.reshape(-1, shape[-1]).any(axis=0)
        atoms, has_mass = (
            np.moveaxis(np.broadcast_to(array, shape)[..., is_any], -1, 0)
            for array in (self.center.astype(states.dtype), self._is_atom)
        )
        nodes = apart_from(atoms, nodes.astype(states.dtype))
        has_mass, log_step = has_mass[..., 0], np.broadcast_to(np.log(step[:, 0]), nodes.shape[:2])
        log_measure = np.concatenate([np.where(has_mass, 0.0, -np.inf), log_step])
        return np.concatenate([atoms, nodes]), log_measure.astype(states.dtype)

    @property
    def _is_atom(self) -> Array:
        return (self.spread == 0) & np.isfinite(self.log_weight)

    @property
    def _tilt(self) -> Array:
        """Precision that the tilt adds to each component."""
        return np.expm1(-self.log_variance)

    @property
    def _slope(self) -> Array | float:
        """Derivative of the signal with respect to the state."""
        return 1.0 if self.is_natural else np.exp(-self.log_variance)

    def _coefficient(self, field: Array) -> Array:
        """Coefficient x of the state in the exponent, of shape (n_samples, n_columns)."""
        return (field + self.bias) * self._slope

    def _components(self, x: Array) -> Components:
        x, tilt = x[..., None], self._tilt[..., None]
        share = 1 / (1 + tilt * self.spread)  # variance relative to that of the base
        center, variance = self.center * share, self.spread * share
        log_weight = self.log_weight + (np.log(share) - tilt * self.center * center) / 2
        return Components(
            log_weight + x * (center + variance * x / 2), center + variance * x, variance
        )

    def _shares(self, x: Array) -> Components:
        """Components with normalized probabilities as weights."""
        log_weight, mean, variance = self._components(x)
        weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
        weight /= weight.sum(axis=-1, keepdims=True)
        return Components(weight, mean, variance)

    def _moments_given(self, field: Array) -> tuple[Array, Array]:
        """Mean and mean square given the field, both of shape (n_samples, n_columns)."""
        weight, mean, variance = self._shares(self._coefficient(field))
        return (weight * mean).sum(axis=-1), (weight * (mean**2 + variance)).sum(axis=-1)

    def _log_base(self, s: Array) -> Array:
        """Log-probability of each state under the base if it is an atom, else its log-density."""
        distance = s[..., None] - self.center
        # In single precision, the states are rounded, so the atoms are rounded likewise.
        is_here = self._is_atom & (s[..., None] == self.center.astype(s.dtype))
        is_normal = self.spread > 0
        spread = np.where(is_normal, self.spread, 1)
        densities = self.log_weight - (distance**2 / spread + np.log(2 * np.pi * spread)) / 2
        of_rest = log_sum_exp(np.where(is_normal, densities, -np.inf), axis=-1)
        of_atom = np.where(is_here, self.log_weight, -np.inf).max(axis=-1)
        return np.where(is_here.any(axis=-1), of_atom, of_rest)
