"""Units with two states: a subclass declares which, all else is derived."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from skrbm.core.numerics import (
    MAX_EXPONENT,
    SHARED_FACTORS,
    Array,
    average_rows,
    draw_bernoulli,
    expm1,
    logistic,
    row_products,
    sum_log,
    sum_log_two_cosh,
)
from skrbm.core.units.answers import Metric
from skrbm.core.units.base import Units

LOST_DIGITS = 0.3  # share of all digits that a difference of probabilities may lose


@dataclass(frozen=True, eq=False)
class TwoStateUnits(Units):
    r"""Units with two states and an energy linear in them.

    .. math:: A(s) = -(s - o)^T b, \qquad \varphi(s) = s - o

    with bias :math:`b` and offset :math:`o`. With :math:`m` the middle of the two states,
    :math:`r` half their distance and :math:`x = b + f`,

    .. math::

        \mathrm{E}[s \mid f] = m + r \tanh(r x), \qquad
        \log \sum_s e^{s x} = m x + \log(2 \cosh(r x))

    Parameters
    ----------
    bias : ndarray of shape (n_units,)
        Bias of each unit.
    offset : ndarray of shape (n_units,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.
    """

    middle: ClassVar[float]
    reach: ClassVar[float]

    @property
    @abstractmethod
    def states(self) -> tuple[float, float]:
        """The two values, declared by the type."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.domain = low, high = cast(tuple[float, float], cls.states)
        cls.middle, cls.reach = (low + high) / 2, (high - low) / 2

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        extreme = n_samples / (n_samples + 1)
        polarity = np.clip((mean - cls.middle) / cls.reach, -extreme, extreme)
        return cls(np.arctanh(polarity) / cls.reach, **options)

    @property
    def parameters(self) -> dict[str, Array]:
        return {"bias": self.bias}

    def signal(self, states: Any) -> Any:
        return states if self.offset is None else states - self.offset

    def energy(self, states: Any) -> Array:
        return -row_products(self.signal(states), self.bias)

    def log_partition(self, field: Array) -> Array:
        total = field + self.bias
        linear = self.middle * total.sum(axis=1, dtype=np.float64)
        if self.offset is not None:
            linear -= (self.offset * total).sum(axis=1, dtype=np.float64)
        return np.asarray(
            (linear + sum_log_two_cosh(_scaled(total, self.reach))).astype(field.dtype)
        )

    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        low, high = self.states
        change = other_field - field
        change += other.bias - self.bias
        largest = (high - low) * max(change.max(), -change.min())
        if not SHARED_FACTORS * largest < MAX_EXPONENT:
            return np.asarray(other.log_partition(other_field) - self.log_partition(field))
        own = np.full_like(self.bias, high) if self.offset is None else high - self.offset
        linear = row_products(change, own)
        # e^{low x} + e^{high x} relative to the same at x + change, where p(low) is known.
        factors = expm1(_scaled(change, high - low), largest)
        factors *= _scaled(high - other_mean, 1 / (high - low))
        factors += 1
        return np.asarray(linear - sum_log(factors))

    def log_partition_shift(self, mean: Array, shift: Array, field: Callable[[], Array]) -> Array:
        low, high = self.states
        exponent = (high - low) * np.abs(shift)
        largest = exponent.max(initial=0.0)
        if not largest < -LOST_DIGITS * np.log(np.finfo(mean.dtype).eps):
            before = field()
            return np.asarray(self.log_partition(before + shift) - self.log_partition(before))
        # Relative to the state that the shift is against: no factor is less than one.
        growth = np.copysign(np.expm1(exponent), shift)
        factors = mean * (growth / (high - low))
        factors += 1 - np.minimum(growth, 0) - growth * (low / (high - low))
        against = np.where(shift > 0, low, high)
        if self.offset is not None:
            against = against - self.offset
        return np.asarray(sum_log(factors, largest) + shift @ against)

    def mean(self, field: Array) -> Array:
        low, high = self.states
        if low == 0:  # half of one plus tanh would round small probabilities away
            return _scaled(logistic(_scaled(field + self.bias, high)), high)
        total = _scaled(field + self.bias, self.reach)
        mean = _scaled(np.tanh(total, out=total), self.reach)
        if self.middle != 0:
            mean += self.middle
        return mean

    def draw(self, mean: Array, rng: np.random.Generator) -> Array:
        low, high = self.states
        probability = mean if (low, high) == (0, 1) else (mean - low) / (high - low)
        states = _scaled(draw_bernoulli(probability, rng).astype(mean.dtype), high - low)
        if low != 0:
            states += low
        return states

    def moments(self, states: Any, sample_weight: Array | None) -> tuple[Array, ...]:
        average = average_rows(states, sample_weight)
        if self.offset is not None:
            average -= self.offset * (1 if sample_weight is None else sample_weight.sum())
        return (average,)

    def mean_moments(self, mean: Array, sample_weight: Array | None) -> tuple[Array, ...]:
        return self.moments(mean, sample_weight)

    def gradient(
        self,
        moments: tuple[Array, ...],
        field: Callable[[], Array],
        work: Callable[[], Array],
    ) -> dict[str, Array]:
        return {"bias": moments[0]}

    def recentered(self, offset: Array | None, field: Array) -> Self:
        return replace(self, bias=self.bias + field, offset=offset)

    def natural(self) -> Self:
        return replace(self, offset=None)

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        return replace(self, bias=base.bias + inverse_temperature * (self.bias - base.bias))

    def metric(self, variance: Array | None) -> Metric:
        return Metric()

    @classmethod
    def limits(cls, variance: Array) -> dict[str, tuple[Array, Array]]:
        return {}

    def alternatives(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        # A value between the states, such as a grey pixel's, is compared with its mirror image.
        return 2 * self.middle - states, np.zeros((1, 1), dtype=states.dtype)


def _scaled(array: Array, factor: float) -> Array:
    """Array multiplied in place, without a pass over it where the factor is one."""
    return array if factor == 1 else np.multiply(array, factor, out=array)
