"""Units whose energy and signal are linear in their columns: a type is a function of one number."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skrbm.core.numerics import Array, average_rows, dense, placed, row_products
from skrbm.core.units.base import Units
from skrbm.core.units.support import Support

LARGEST_START = 2.0**30  # nats; rows that are all alike reach a bias of about their number
N_BISECTIONS = 100  # leave an interval of 2^-70


@dataclass(frozen=True, eq=False)
class LinearUnits(Units):
    r"""Units with an energy and a signal linear in their columns.

    .. math:: A(s) = -(s - o)^T b, \qquad \varphi(s) = s - o, \qquad x = b + f

    with bias :math:`b` and offset :math:`o`, so that a layer given its field is a function of
    :math:`x` alone. A subclass says what its `support` is, and answers three questions about
    :math:`x`, an array of shape (n_samples, n_columns) that it may overwrite.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Bias of each column.
    offset : ndarray of shape (n_columns,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.
    """

    bias: Array
    offset: Array | None = field(default=None, kw_only=True)

    is_mean_sufficient = True  # for the moments, which are the states themselves

    @property
    @abstractmethod
    def support(self) -> Support:  # type: ignore[override]  # a subclass declares a constant
        """Values that every column can take, declared by the type."""

    @abstractmethod
    def log_normaliser(self, x: Array) -> Array:
        r"""Sum over units of :math:`L(x) = \log \sum_s e^{s x}`, double precision (n_samples,)."""

    @abstractmethod
    def expectation(self, x: Array) -> Array:
        """Expected states, the derivative of `log_normaliser`: (n_samples, n_columns)."""

    @abstractmethod
    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """States in the precision of `x`: (n_samples, n_columns)."""

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Find the bias of each mean by bisection: means grow with the bias."""
        units = cls(np.zeros_like(mean), **options)
        low, high = units.column_bounds
        middle, reach = (low + high) / 2, (high - low) / 2
        extreme = n_samples / (n_samples + 1)
        target = middle + reach * np.clip((mean - middle) / reach, -extreme, extreme)
        low, high = np.full_like(mean, -LARGEST_START), np.full_like(mean, LARGEST_START)
        for _ in range(N_BISECTIONS):
            bias = (low + high) / 2
            is_low = units.mean(bias[None])[0] < target
            low, high = np.where(is_low, bias, low), np.where(is_low, high, bias)
        return replace(units, bias=bias)

    @property
    def parameters(self) -> dict[str, Array]:
        return {"bias": self.bias}

    def signal(self, states: Any, out: Array | None = None) -> Any:
        if self.offset is None:
            return states
        return np.subtract(dense(states), self.offset, out=out)

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        origin = np.zeros_like(self.bias) if self.offset is None else -self.offset
        return origin, np.ones_like(self.bias)

    def lost_signal(self, after: Self) -> Array:
        if self.offset is None:
            return np.zeros_like(self.bias) if after.offset is None else after.offset
        return -self.offset if after.offset is None else after.offset - self.offset

    def energy(self, states: Any) -> Array:
        return -row_products(self.signal(states), self.bias)

    def log_partition(self, field: Array) -> Array:
        x = field + self.bias
        linear = 0.0 if self.offset is None else (self.offset * x).sum(axis=1, dtype=np.float64)
        return (self.log_normaliser(x) - linear).astype(field.dtype)

    def mean(self, field: Array, out: Array | None = None) -> Array:
        x = np.add(field, self.bias, out=out)
        mean = self.expectation(x)
        return mean if mean is x else placed(mean, out)

    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        x = np.add(field, self.bias, out=out)
        states = self.draw(x, rng)
        return states if states is x else placed(states, out)

    def moments(self, states: Any, sample_weight: Array | None) -> dict[str, Array]:
        average = average_rows(states, sample_weight)
        if self.offset is not None:
            average -= self.offset * (1 if sample_weight is None else sample_weight.sum())
        return {"bias": average}

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array | None
    ) -> dict[str, Array]:
        return self.moments(mean, sample_weight)

    def recentered(self, offset: Array | None, field: Array) -> Self:
        layer = object.__new__(type(self))  # `replace` takes ten times as long, twice an update
        vars(layer).update(vars(self), bias=self.bias + field, offset=offset)
        return layer

    def gauged(self) -> Self:
        return replace(self, bias=self.gauge(self.bias[:, None])[:, 0])

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        return replace(self, bias=base.bias + inverse_temperature * (self.bias - base.bias))
