"""Composite layers of different unit types, for tables with columns of different kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Self, final

import numpy as np

from skrbm.core.numerics import Array, dense, is_sparse
from skrbm.core.units.base import Outs, Units
from skrbm.core.units.columns import WideUnits
from skrbm.core.units.support import UNKNOWN, ColumnStatistics, Metric, Support


@final
@dataclass(frozen=True, eq=False)
class Composite(WideUnits):
    r"""Layer composed of several layers (its parts), whose columns are concatenated.

    .. math:: A(s) = \sum_p A_p(s_p), \qquad \varphi(s) = (\varphi_1(s_1), \varphi_2(s_2), \dots)

    The names of parameters are prefixed by the index of the part, as in "0_bias".

    Parameters
    ----------
    parts : tuple of Units
        One or more layers. Either all or none of them have an offset, and all have the same dtype.

    Examples
    --------
    >>> from skrbm.core.units import Bernoulli, Categorical
    >>> layer = Composite((Categorical(np.zeros(3), (3,)), Bernoulli(np.zeros(1))))
    >>> layer.n_units, layer.n_columns, layer.n_states
    (2, 4, 6)
    """

    parts: tuple[Units, ...]

    support = Support(-np.inf, np.inf)  # the supports of the parts may be narrower

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Create the parts; the option `types` is a list of (type, number of columns, options)."""
        parts, end = [], 0
        for kind, n_columns, further in options["types"]:
            columns, end = slice(end, end + n_columns), end + n_columns
            parts.append(kind.start(mean[columns], variance[columns], n_samples, **further))
        return cls(tuple(parts))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], **options: Any) -> Self:
        """Create every part from its entries of the arrays; the options are those of `start`.

        Raises
        ------
        ValueError
            If the length of an array is not the total number of columns of the parts that have it.
        """
        ends, parts = dict.fromkeys(arrays, 0), []
        for kind, n_columns, further in options["types"]:
            names = {f.name for f in fields(kind)} & arrays.keys()
            ends |= {name: ends[name] + n_columns for name in names}
            slices = {name: arrays[name][ends[name] - n_columns : ends[name]] for name in names}
            parts.append(kind.from_arrays(slices, **further))
        lengths = {name: len(array) for name, array in arrays.items()}
        if ends != lengths:
            raise ValueError(f"Arrays of the parts expected total lengths {ends}, got {lengths}.")
        return cls(tuple(parts))

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays of the parts; arrays with the same name are concatenated."""
        arrays = [part.arrays for part in self.parts]
        names = sorted(set().union(*arrays))
        return {
            name: self._join([of_part[name] for of_part in arrays if name in of_part])
            for name in names
        }

    @property
    def type_name(self) -> str:
        return " and ".join(dict.fromkeys(part.type_name for part in self.parts))

    @property
    def start_options(self) -> dict[str, Any]:
        return {"types": [(type(p), p.n_columns, p.start_options) for p in self.parts]}

    @property
    def bias(self) -> Array:  # type: ignore[override]  # a property in place of an attribute
        return self._join([part.bias for part in self.parts])

    @property
    def offset(self) -> Array | None:  # type: ignore[override]  # a property, too
        offsets = [part.offset for part in self.parts if part.offset is not None]
        return self._join(offsets) if offsets else None

    @property
    def offsets(self) -> dict[str, Array]:
        return _named(part.offsets for part in self.parts)

    @property
    def is_signal_fixed(self) -> bool:  # type: ignore[override]  # a property, too
        return all(part.is_signal_fixed for part in self.parts)

    @property
    def is_mean_sufficient(self) -> bool:  # type: ignore[override]  # a property, too
        return all(part.is_mean_sufficient for part in self.parts)

    @property
    def is_discrete(self) -> bool:
        return all(part.is_discrete for part in self.parts)

    @property
    def is_tempered_exactly(self) -> bool:  # type: ignore[override]  # a property, too
        return all(part.is_tempered_exactly for part in self.parts)

    @property
    def tail_curvature(self) -> Array:
        return self._join([part.tail_curvature for part in self.parts])

    @property
    def largest_variance(self) -> Array:
        return self._join([part.largest_variance for part in self.parts])

    def log_concave_parts(self, field: Array) -> Iterator[tuple[Array, Array, Array]]:
        for (part, part_field), own in zip(self._split(field), self._columns, strict=True):
            for columns, *arrays in part.log_concave_parts(part_field):
                yield own.start + columns, *arrays

    @property
    def n_columns(self) -> int:
        return sum(part.n_columns for part in self.parts)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return tuple(len(part.unit_columns(i)) for part in self.parts for i in range(part.n_units))

    @property
    def n_units(self) -> int:  # without the widths of all units
        return sum(part.n_units for part in self.parts)

    @property
    def unit_groups(self) -> list[Array]:
        return [
            first + group
            for part, first in zip(self.parts, self._first_units, strict=True)
            for group in part.unit_groups
        ]

    def take(self, index: Any) -> Units:
        part, unit = self._part_of(index)
        return part.take(unit)

    def unit_values(self, index: int) -> Array | None:
        part, unit = self._part_of(index)
        return part.unit_values(unit)

    def n_unit_states(self, index: int) -> int | None:
        part, unit = self._part_of(index)
        return part.n_unit_states(unit)

    def unit_states(self, index: int, numbers: Array) -> Array:
        part, unit = self._part_of(index)
        return part.unit_states(unit, numbers)

    def unit_atoms(self, index: int) -> Array:
        part, unit = self._part_of(index)
        return part.unit_atoms(unit)

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        low, high = zip(*(part.column_bounds for part in self.parts), strict=True)
        return self._join(low), self._join(high)

    @property
    def parameters(self) -> dict[str, Array]:
        return _named(part.parameters for part in self.parts)

    def signal(self, states: Any) -> Any:
        if all(part.offset is None and part.is_signal_fixed for part in self.parts):
            return states
        if is_sparse(states):
            return self._join([dense(part.signal(s)) for part, s in self._split(states)])
        signal = np.empty_like(states, dtype=np.result_type(states, self.bias))
        for part, part_states, part_signal in self._split(states, signal):
            part_signal[...] = part.signal(part_states)
        return signal

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        origins, slopes = zip(*(part.affine_signal for part in self.parts), strict=True)
        return self._join(origins), self._join(slopes)

    def energy(self, states: Any) -> Array:
        return sum(part.energy(s) for part, s in self._split(states))

    def log_partition(self, field: Array) -> Array:
        return sum(part.log_partition(f) for part, f in self._split(field))

    def mean(self, field: Array, out: Array | None = None) -> Array:
        out = np.empty_like(field) if out is None else out
        for part, part_field, part_out in self._split(field, out):
            part.mean(part_field, out=part_out)
        return out

    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        out = np.empty_like(field) if out is None else out
        for part, part_field, part_out in self._split(field, out):
            part.sample(part_field, rng, out=part_out)
        return out

    def has_means(self, values: Any) -> bool:
        return any(part.has_means(part_values) for part, part_values in self._split(values))

    def draw_states_of_means(self, values: Any, rng: np.random.Generator) -> Any:
        for part, part_values in self._split(values):
            part.draw_states_of_means(part_values, rng)
        return values

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        mean, states = (np.empty_like(field) if array is None else array for array in out)
        for part, part_field, *part_out in self._split(field, mean, states):
            part.mean_and_sample(part_field, rng, out=part_out)
        return mean, states

    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        return _named(part.moments(s, sample_weight) for part, s in self._split(states))

    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        split = self._split(mean, field)
        return _named(part.expected_moments(*arrays, sample_weight) for part, *arrays in split)

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        return _named(part.signal_gradient(*arrays) for part, *arrays in self._split(field, work))

    def scale_gradient(self, work: Array) -> dict[str, Array]:
        return _named(part.scale_gradient(part_work) for part, part_work in self._split(work))

    def recentered(self, offset: Array | None, field: Array) -> Self:
        split = self._split(offset, field)
        return replace(self, parts=tuple(part.recentered(*arrays) for part, *arrays in split))

    def natural(self) -> Self:
        return replace(self, parts=tuple(part.natural() for part in self.parts))

    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        pairs = zip(self.parts, base.parts, strict=True)
        parts = tuple(part.tempered(part_base, inverse_temperature) for part, part_base in pairs)
        return replace(self, parts=parts)

    def heated(self, temperature: float) -> Self:
        return replace(self, parts=tuple(part.heated(temperature) for part in self.parts))

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        split = self._split(*statistics)
        metrics = [part.metric(ColumnStatistics(*arrays)) for part, *arrays in split]
        bias = self.parts[0].bias
        signal = np.empty(self.n_columns, bias.dtype, like=bias)
        for metric, columns in zip(metrics, self._columns, strict=True):
            signal[columns] = metric.signal
        return Metric(signal, _named(metric.parameters for metric in metrics))

    @property
    def value_step(self) -> float | None:
        steps = {part.value_step for part in self.parts}
        return steps.pop() if len(steps) == 1 else None

    @property
    def learns_variance(self) -> Array:
        return self._join([part.learns_variance for part in self.parts])

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        return _named(part.bounds(part_variance) for part, part_variance in self._split(variance))

    def gauge(self, rows: Array) -> Array:
        parts = [(part, columns.T) for part, columns in self._split(rows.T)]
        gauged = [part.gauge(part_rows) for part, part_rows in parts]
        is_same = all(new is old for new, (_, old) in zip(gauged, parts, strict=True))
        return rows if is_same else np.concatenate(gauged, axis=0)

    def with_columns(self, is_chosen: Array, other: Self) -> Self:
        pairs = zip(self._split(is_chosen), other.parts, strict=True)
        parts = (part.with_columns(columns, new) for (part, columns), new in pairs)
        return replace(self, parts=tuple(parts))

    def in_zero_sum_gauge(self) -> Self:
        return replace(self, parts=tuple(part.in_zero_sum_gauge() for part in self.parts))

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        return replace(self, parts=tuple(part.map_arrays(function) for part in self.parts))

    @cached_property
    def _first_units(self) -> Array:
        """Index of the first unit of each part."""
        n_units = [part.n_units for part in self.parts]
        return np.cumsum(n_units) - n_units

    @cached_property
    def _columns(self) -> list[slice]:
        """Slice of the columns of each part."""
        edges = accumulate((part.n_columns for part in self.parts), initial=0)
        return [slice(begin, end) for begin, end in pairwise(edges)]

    def _part_of(self, index: Any) -> tuple[Units, Any]:
        """Part that contains the given units, and their indices in it; all must be in one part."""
        p = int(np.searchsorted(self._first_units, np.max(index), side="right")) - 1
        return self.parts[p], index - self._first_units[p]

    def _split(self, *arrays: Any) -> Iterator[Any]:
        """Yield each part with its columns of each array; an array of None is yielded as None."""
        for part, columns in zip(self.parts, self._columns, strict=True):
            yield part, *(None if array is None else array[..., columns] for array in arrays)

    def _join(self, arrays: Sequence[Array]) -> Array:
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)


def _named(answers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the dictionaries of the parts; each name is prefixed by the index of its part."""
    parts = enumerate(answers)
    return {f"{p}_{name}": value for p, answer in parts for name, value in answer.items()}
