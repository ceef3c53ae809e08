"""Units whose signal is the states minus an offset, among them two-state units."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from skrbm.core.draws import draw_bernoulli
from skrbm.core.numerics import (
    MAX_EXPONENT,
    SHARED_FACTORS,
    Array,
    copy_into,
    dense,
    expm1,
    is_on_host,
    is_sparse,
    like,
    row_blocks,
    sum_log,
    sum_log_two_cosh,
)
from skrbm.core.units.base import EveryPair, Outs, ShiftedUnits, Units
from skrbm.core.units.shifts import JointStates
from skrbm.core.units.support import UNKNOWN, ColumnStatistics, Metric, Support

LARGEST_START = 2.0**30  # nats; n rows at an end of an interval give a bias of about 2 n
N_BISECTIONS = 100  # of an interval of 2^31: the last one is 2^-69 wide
MEAN_ROUNDING = 4 * float(np.finfo(np.float32).eps)  # a rounded mean may exceed the states by this


@dataclass(frozen=True, eq=False)
class LinearUnits(Units):
    r"""Units with a signal equal to the states minus an offset, and an energy linear in the bias.

    .. math:: A(s) = -(s - o)^T b, \qquad \varphi(s) = s - o, \qquad x = b + f

    where :math:`b` is the bias, :math:`o` the offset and :math:`f` the field. A subclass may add
    terms to the energy that depend neither on the bias nor on the offset. The distribution given
    the field depends only on :math:`x` and on parameters in these terms. A subclass defines its
    `support` and the methods `log_normaliser`, `expectation` and `draw`. Their argument :math:`x`,
    an array of shape (n_samples, n_columns), may be overwritten.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Bias of each column.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.
    """

    bias: Array
    offset: Array | None = field(default=None, kw_only=True)

    is_mean_sufficient = True  # the moments are linear in the states
    is_tempered_exactly = True

    @property
    @abstractmethod
    def support(self) -> Support:  # type: ignore[override]  # a subclass declares a constant
        """Values that every column can take, declared by the type."""

    @abstractmethod
    def log_normaliser(self, x: Array) -> Array:
        r"""Sum of :math:`L(x) = \log \sum_s e^{s x}` over the units, in double precision.

        The result has shape (n_samples,). For continuous units, an integral replaces the sum over
        the states. Terms that a subclass adds to the energy are subtracted in the exponent.
        """

    @abstractmethod
    def expectation(self, x: Array) -> Array:
        """Expected states, which are the derivatives of `log_normaliser`, in the shape of `x`."""

    @abstractmethod
    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """Draw states, in the shape and dtype of `x`."""

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Find the bias for each mean by bisection; the mean increases with the bias.

        In columns with two bounds, means close to a bound or beyond it are first moved inwards.
        Their distance from the bound is then half the range of the states, divided by
        n_samples + 1.
        """
        units = cls(np.zeros_like(mean), **options)
        low, high = units.column_bounds
        target = mean
        if np.isfinite(high - low).all():
            middle, half_range = (low + high) / 2, (high - low) / 2
            extreme = _extreme(n_samples)
            target = middle + half_range * np.clip((mean - middle) / half_range, -extreme, extreme)
        return replace(units, bias=bias_of_mean(units, target))

    @property
    def parameters(self) -> dict[str, Array]:
        return {"bias": self.bias}

    def signal(self, states: Any) -> Any:
        return states if self.offset is None else dense(states) - self.offset

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        origin = np.zeros_like(self.bias) if self.offset is None else -self.offset
        return origin, np.ones_like(self.bias)

    def signal_shift(self, after: Self) -> Array:
        return offset_change(self, after.offset)

    def energy(self, states: Any) -> Array:
        return -row_dots(self.signal(states), self.bias)

    def log_partition(self, field: Array) -> Array:
        x = field + self.bias
        linear = 0.0 if self.offset is None else (self.offset * x).sum(axis=1, dtype=np.float64)
        return (self.log_normaliser(x) - linear).astype(field.dtype)

    def mean(self, field: Array, out: Array | None = None) -> Array:
        x = np.add(field, self.bias, out=out)
        mean = self.expectation(x)
        return mean if mean is x else copy_into(mean, out)

    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        x = np.add(field, self.bias, out=out)
        states = self.draw(x, rng)
        return states if states is x else copy_into(states, out)

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        total = sample_weight @ states
        if self.offset is not None:
            total -= self.offset * sample_weight.sum()
        return {"bias": total}

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        return self.moments(mean, sample_weight)

    def recentered(self, offset: Array | None, field: Array) -> Self:
        return self._with(bias=self.bias + field, offset=offset)

    def in_zero_sum_gauge(self) -> Self:
        return replace(self, bias=self.gauge(self.bias[:, None])[:, 0])

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        parameters, arrays = self.parameters, dict[str, Array]()
        for name, of_base in base.parameters.items():
            arrays[name] = (parameters[name] - of_base) * inverse_temperature
            arrays[name] += of_base
        return self._with(**arrays)

    def _with(self, **arrays: Array | None) -> Self:
        """Layer in which some arrays are replaced; faster than `dataclasses.replace`."""
        layer = object.__new__(type(self))
        vars(layer).update(vars(self), **arrays)
        return layer


@dataclass(frozen=True, eq=False)
class TwoStateUnits(LinearUnits):
    r"""Units with two states, which are the values of `support`.

    .. math::

        \mathrm{E}[s \mid x] = m + r \tanh(r x), \qquad L(x) = m x + \log(2 \cosh(r x))

    where :math:`m` is the midpoint of the two states, :math:`r` is half the distance between them,
    :math:`x = b + f` is the sum of the bias and the field, and :math:`L` is the log-partition of a
    unit without an offset.
    """

    low: ClassVar[float]
    high: ClassVar[float]
    middle: ClassVar[float]
    distance: ClassVar[float]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.low, cls.high = low, high = cast(Support, cls.support).values
        cls.middle, cls.distance = (low + high) / 2, high - low

    def log_normaliser(self, x: Array) -> Array:
        linear = self.middle * x.sum(axis=1, dtype=np.float64)
        return linear + sum_log_two_cosh(_scaled(x, self.distance / 2))

    def heated(self, temperature: float) -> Self:
        return replace(self, bias=self.bias / temperature)

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        extreme = _extreme(n_samples)
        half = cls.distance / 2
        polarity = np.clip((mean - cls.middle) / half, -extreme, extreme)
        return cls(np.arctanh(polarity) / half, **options)

    def has_means(self, values: Any) -> bool:
        if is_sparse(values):
            return False
        blocks = (values[rows] for rows in row_blocks(values))
        return any(((block != self.low) & (block != self.high)).any() for block in blocks)

    def draw_states_of_means(self, values: Any, rng: np.random.Generator) -> Any:
        if is_sparse(values):
            return values
        low, high = self.low - MEAN_ROUNDING, self.high + MEAN_ROUNDING
        if values.min() >= low and values.max() <= high:
            return self._draw_from(values, rng, values)
        rows = np.flatnonzero(((values >= low) & (values <= high)).all(axis=1))
        values[rows] = self._draw_from(values[rows], rng, None)
        return values

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        # `mean` and `last_rows`, without their two calls in every update
        x = np.add(field, self.bias, out=out[0])
        mean = self.expectation(x)
        if mean is not x:
            mean = copy_into(mean, out[0])
        drawn = mean if out[1] is None else mean[len(mean) - len(out[1]) :]
        return mean, self._draw_from(drawn, rng, out[1])

    def states(self, begin: int, end: int) -> Array:
        shape = (2,) * self.n_units
        digits = np.stack(np.unravel_index(np.arange(begin, end), shape), axis=1)
        return like(np.array(self.support.values, dtype=self.bias.dtype)[digits], self.bias)

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        # A value between the states, such as a gray pixel, is paired with its mirror image.
        return np.stack([states, 2 * self.middle - states]), np.zeros(
            (1, 1), states.dtype, like=states
        )

    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        change = field - other_field
        change += self.bias - other.bias
        largest = self.distance * max(change.max(), -change.min())
        if not SHARED_FACTORS * largest < MAX_EXPONENT:
            return super().log_partition_change(other, field, other_field, other_mean)
        # Mean of e^{s change} under `other`, with the common factor e^{low change} taken out.
        lowest = self.low if self.offset is None else self.low - self.offset
        linear = 0 if self.low == 0 and self.offset is None else (change * lowest).sum(axis=1)
        factors = expm1(_scaled(change, self.distance), largest)
        factors *= other_mean if self.low == 0 else other_mean - self.low
        factors = _scaled(factors, 1 / self.distance)
        factors += 1
        return -linear - sum_log(factors)

    def shifted(self, field: Array) -> ShiftedUnits:
        return _ShiftedBits(self, field) if is_on_host(field) else super().shifted(field)

    @property
    def value_step(self) -> float:
        return self.distance

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        # With this metric, training of a centered machine is the same for all pairs of states, for
        # example 0 and 1, or -1 and 1.
        share = self.distance**-2.0
        return Metric(signal=share, parameters={"bias": share})

    def _draw_from(self, mean: Array, rng: np.random.Generator, out: Array | None) -> Array:
        states = np.empty_like(mean) if out is None else out
        if self.low == 0 and self.high == 1:
            return draw_bernoulli(mean, rng, out=states)
        probability = np.subtract(mean, self.low, out=states)
        probability /= self.distance
        draw_bernoulli(probability, rng, out=states)
        states *= self.distance
        states += self.low
        return states


@final
@dataclass(frozen=True, eq=False)
class _ShiftedBits(ShiftedUnits):
    """Two-state units, whose joint states turn the sums over pairs into matrix products."""

    units: TwoStateUnits

    @cached_property
    def _bits(self) -> JointStates:
        return JointStates((self.field + self.units.bias) * self.units.distance)

    def log_partitions(self, shifts: Array) -> Array:
        return self.log_partition_changes(shifts) + self.units.log_partition(self.field)

    def log_partition_changes(self, shifts: Array) -> Array:
        units, bits = self.units, self._bits
        lowest = units.low if units.offset is None else units.low - units.offset
        is_near = bits.is_near(units.distance * shifts)
        near, result = shifts[is_near], np.empty((len(shifts), len(self.field)))
        result[is_near] = bits.log_mean_exponentials(units.distance * near)
        result[is_near] += (near * lowest).sum(axis=1)[:, None]
        if len(near) < len(shifts):
            far = EveryPair(units, self.field).log_partition_changes(shifts[~is_near])
            result[~is_near] = far
        return result

    def sums(
        self, shifts: Array, weights: Array, layer: Units | None = None
    ) -> tuple[Array, Array, dict[str, Array]]:
        units, bits = self.units, self._bits
        if not bits.is_near(units.distance * shifts).all():
            return EveryPair(units, self.field).sums(shifts, weights, layer)
        of_rows, of_shifts = bits.mean_sums(units.distance * shifts, weights)
        for sums, axis in ((of_rows, 0), (of_shifts, 1)):
            sums *= units.distance
            sums += units.low * weights.sum(axis=axis)[:, None]
        if layer is None:
            return of_rows, of_shifts, {}
        origin, _ = layer.affine_signal
        return of_rows, of_shifts, {"bias": of_rows.sum(axis=0) + origin * weights.sum()}


def _scaled(array: Array, factor: float) -> Array:
    """Multiply an array in place; nothing is done for a factor of one."""
    return array if factor == 1 else np.multiply(array, factor, out=array)


def _extreme(n_samples: float) -> float:
    """Largest mean of a unit of states -1 and 1 after `n_samples` rows; its bias is finite."""
    return min(n_samples / (n_samples + 1), 1 - float(np.finfo(np.float64).eps))


def bias_of_mean(units: Units, target: Array) -> Array:
    """Find, by bisection, the biases at which the means without a field equal `target`.

    `target` and the result have shape (n_columns,). The means must increase with the biases, and
    the biases of `units` must be zero. Biases beyond `LARGEST_START` in magnitude are clipped to
    this bound, up to rounding.
    """
    low, high = np.full_like(target, -LARGEST_START), np.full_like(target, LARGEST_START)
    for _ in range(N_BISECTIONS):
        bias = (low + high) / 2
        is_low = units.mean(bias[None])[0] < target
        low, high = np.where(is_low, bias, low), np.where(is_low, high, bias)
    return bias


def offset_change(layer: Units, offset: Array | None) -> Array:
    """New offset minus old offset, of shape (n_columns,); an offset of None counts as zero."""
    old = layer.offset
    if old is None:
        return np.zeros_like(layer.bias) if offset is None else offset
    return -old if offset is None else offset - old


def row_dots(rows: Any, vectors: Array) -> Array:
    """Inner product of each row with a common vector, or with a separate vector for each row.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_rows, n_columns)
        Rows, which may be sparse only if `vectors` has one dimension.
    vectors : ndarray of shape (n_columns,) or (n_rows or 1, n_columns)
        One vector for all rows, or one vector for each row.

    Returns
    -------
    products : ndarray of shape (n_rows,)
        Inner products, in the dtype of the inputs.
    """
    return rows @ vectors if vectors.ndim == 1 else (rows * vectors).sum(axis=1)
