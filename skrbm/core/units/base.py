"""Questions that a layer of units answers: everything else in the package asks only these."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np

from skrbm.core.numerics import Array, last_rows
from skrbm.core.units.support import Metric, QuadratureError, Support

Outs = tuple[Array | None, Array | None]


class Units(ABC):
    r"""A layer of units that are independent of each other given the other layer.

    A layer has an energy of its own, :math:`A(s)`, and sends the other layer a `signal`,
    :math:`\varphi(s)`, affine in its states. Two layers and the weights between them are a machine
    of energy

    .. math:: E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h)

    so that a layer feels the other one only through the `field` :math:`f = W \psi(h)` or
    :math:`W^T \varphi(v)`, and :math:`p(s \mid f) \propto \exp(-A(s) + \varphi(s)^T f)`.

    A unit takes one column of states, fields and parameters, or several. What is abstract here,
    every type must answer; the rest follows, and may be overridden for speed or where a type can
    do more. Throughout, `states`, `field` and `mean` are of shape (n_samples, n_columns), energies
    and log-partitions of shape (n_samples,) and in nats. Arrays of a layer have a value for each
    column, or a row of them for each sample: so come layers out of `take` and `tempered`.

    Training asks without allocating: `out`, as in NumPy, is the array to write the answer into,
    and may be the very one that is asked about; None stands for a new array.

    Attributes
    ----------
    bias : ndarray of shape (n_columns,)
        Bias of each column.
    offset : ndarray of shape (n_columns,) or None
        Constant subtracted from the states in the energy; None for a plain layer.
    support : Support
        Values that every column can take.
    is_signal_fixed : bool
        Whether neither the signal nor the `metric` depends on a parameter of the layer.
    is_mean_sufficient : bool
        Whether `expected_moments` needs no field.
    is_tempered_exactly : bool
        Whether the energies of `tempered` are exact, not up to a constant alone.

    See Also
    --------
    skrbm.testing.check_units : Examines a unit type, one's own included.
    """

    bias: Array
    offset: Array | None
    support: Support
    is_signal_fixed: bool = True
    is_mean_sufficient: bool = False
    is_tempered_exactly: bool = False

    # What every type must answer.

    @classmethod
    @abstractmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Plain layer that, without a field, resembles data with these statistics.

        Its parameters are finite whatever the statistics: few rows allow no extreme start. The
        statistics are of shape (n_columns,); options are further arguments of the type.
        """

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Arrays that training may change, by attribute name; no copies."""

    @abstractmethod
    def signal(self, states: Any, out: Array | None = None) -> Any:
        """Signal that the layer sends through the weights: affine in each column of its states.

        Sparse if the states are, which a type may refuse. Where they are what is sent, the states
        themselves, and `out` is left alone.
        """

    @abstractmethod
    def energy(self, states: Any) -> Array:
        """Energy of the layer alone."""

    @abstractmethod
    def log_partition(self, field: Array) -> Array:
        """Log-normaliser of the layer given its field."""

    @abstractmethod
    def mean(self, field: Array, out: Array | None = None) -> Array:
        """Expected states given the field."""

    @abstractmethod
    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        """Draw states given the field, in its precision."""

    @abstractmethod
    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        """Sum over samples of minus the energy's derivatives in the layer's parameters.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_columns)
            States.
        sample_weight : ndarray of shape (n_samples,)
            Weights of the samples, of either sign and any sum.

        Returns
        -------
        moments : dict of str to ndarray of shape (n_columns,)
            Same keys as `parameters`.
        """

    @abstractmethod
    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        """Expectation of `moments` given the field, and the mean that belongs to it.

        The field is None where `is_mean_sufficient`.
        """

    @abstractmethod
    def recentered(self, offset: Array | None, field: Array) -> Self:
        """Layer with another offset that has absorbed a constant field of shape (n_columns,).

        Up to a constant, its energy is the old one minus the new signal times the field.
        """

    @abstractmethod
    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        r"""Layer on the way from another one to this one, both natural.

        Its energy is :math:`(1 - \beta)` times that of `base` plus :math:`\beta` times its own:
        exactly where `is_tempered_exactly`, up to a constant elsewhere. The inverse temperature
        is a number, or of shape (n_samples, 1).
        """

    @property
    def start_options(self) -> dict[str, Any]:
        """Further arguments with which `start` makes a layer like this one."""
        layer: Any = self
        values = {f.name: getattr(self, f.name) for f in fields(layer) if f.name != "offset"}
        return {name: v for name, v in values.items() if not isinstance(v, np.ndarray)}

    @property
    def value_step(self) -> float | None:
        """Distance of the two values of every column; 0 for numbers of learned variance, else None.

        Clusters are sought among rows of either: gaps between a few other values are no clusters.
        """
        return None

    # Columns, units and states.

    @property
    def n_columns(self) -> int:
        """Number of columns of the states."""
        return int(self.bias.shape[-1])

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.n_columns

    @property
    def unit_groups(self) -> list[Array]:
        """Numbers of the units, those together that `take` can mix in one layer."""
        return [np.arange(self.n_units)]

    def unit_columns(self, index: Any) -> Array:
        """Columns of a unit (n_own,), or of one for each sample (n_samples, n_own)."""
        return np.asarray(index)[..., None]

    def by_column(self, values: Array) -> Array:
        """Values given for each unit, spread over its columns along the last axis."""
        return values

    def take(self, index: Any) -> Units:
        """Layer of one unit, the same for all samples or, of one group, another for each."""
        columns = self.unit_columns(index)
        return self.map_arrays(lambda array: np.asarray(array[columns]))

    def unit_values(self, index: int) -> Array | None:
        """All states of a unit, of shape (n_values, n_own); None for a continuous one."""
        values = np.array(self.support.values, dtype=self.bias.dtype)
        return values[:, None] if len(values) else None

    def unit_atoms(self, index: int) -> Array:
        """Values of a continuous unit that have a probability, not a density, (n_atoms,)."""
        return np.empty(0, dtype=self.bias.dtype)

    @property
    def n_states(self) -> float:
        """Number of states of the layer: an exact integer, or infinity."""
        values: list[Any] = [self.unit_values(i) for i in range(self.n_units)]
        return math.inf if any(v is None for v in values) else math.prod(map(len, values))

    @property
    def is_discrete(self) -> bool:
        """True if the states can be counted."""
        return len(self.support.values) > 0

    def states(self, begin: int, end: int) -> Array:
        """States `begin` to `end` - 1 of a discrete layer, of which the last unit changes fastest."""
        tables: list[Any] = [self.unit_values(i) for i in range(self.n_units)]
        digits = np.unravel_index(np.arange(begin, end), [*map(len, tables)])
        return np.concatenate([t[own] for t, own in zip(tables, digits, strict=True)], axis=1)

    @property
    def tail_curvature(self) -> Array:
        """Least second derivative of the energy far from zero, (n_columns,): infinite within bounds.

        Types without bounds answer it: two such layers make a distribution only if it is more than
        their coupling takes away.
        """
        low, high = self.column_bounds
        if not np.isfinite(high - low).all():
            raise NotImplementedError(
                f"{type(self).__name__} units have no bounds, and do not say how steep their energy "
                f"is far from zero. Give them a tail_curvature."
            )
        return np.full_like(low, np.inf)

    @property
    def largest_variance(self) -> Array:
        """Bound of the variance of each column's states given any field, (n_columns,)."""
        low, high = self.column_bounds
        return np.asarray(((high - low) / 2) ** 2)

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        """Least and greatest value of each column, (n_columns,) both."""
        shape, dtype = self.bias.shape[-1:], self.bias.dtype
        return np.full(shape, self.support.low, dtype), np.full(shape, self.support.high, dtype)

    def field_bounds(self, weights: Array) -> tuple[Array, Array]:
        """Bounds of the field that the layer exerts through weights of shape (n, n_columns)."""
        low, high = (self.signal(bound[None])[0] for bound in self.column_bounds)
        if not np.isfinite(high - low).all():
            everything = np.full(len(weights), np.inf, dtype=weights.dtype)
            return -everything, everything
        middle, half = weights @ ((low + high) / 2), np.abs(weights) @ (np.abs(high - low) / 2)
        return middle - half, middle + half

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Values that the unit of a layer of one could take in place of its own.

        Discrete units: every state, its own included. Continuous units: nodes of a quadrature that
        is exact for every distribution of the unit given a field between `low` and `high`, of shape
        (n_columns,) or (n_samples, n_columns).

        Returns
        -------
        values : ndarray of shape (n_values, n_samples or 1, n_columns)
            To compare with the present states.
        log_measure : ndarray of shape (n_values or 1, n_samples or 1)
            Log-weight of each value, in nats.

        Raises
        ------
        QuadratureError
            If a continuous unit needs too many nodes, or has no quadrature.
        """
        values = self.unit_values(0)
        if values is None:
            raise QuadratureError(f"{type(self).__name__} units have no quadrature.")
        return values[:, None], np.zeros((1, 1), dtype=states.dtype)

    # What follows, and may be overridden.

    def natural(self) -> Self:
        """Plain layer whose signal is its states: the same distribution for equal effects."""
        return self.recentered(None, self.zero_field(1)[0])

    def heated(self, temperature: float) -> Self:
        """Layer whose energy is that of this natural one over a temperature, up to a constant.

        Raises
        ------
        ValueError
            If the type has no such layers.
        """
        raise ValueError(
            f"{type(self).__name__} units have no distribution at another temperature."
        )

    def zero_field(self, n_samples: int) -> Array:
        """Field of a layer that is not coupled to another."""
        return np.zeros((n_samples, self.n_columns), dtype=self.bias.dtype)

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        """Signal of the state zero, and what every unit of state adds to it, (n_columns,) both."""
        zero = self.zero_field(1)
        origin, one = self.signal(np.concatenate([zero, zero + 1]))
        return origin, one - origin

    def lost_signal(self, after: Self) -> Array:
        """Signal, the same for all states, that another offset or bias takes away, (n_columns,)."""
        return self.affine_signal[0] - after.affine_signal[0]

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        """Further terms of the moments, from averages (n_columns,) of field and signal times field."""
        return {}

    def has_means(self, values: Any) -> bool:
        """True for dense values that are not all states, so that there is something to be `drawn`."""
        return False

    def drawn(self, values: Any, rng: np.random.Generator) -> Any:
        """Draw in place the states whose means dense values are; rows with others stay."""
        return values

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        """Expected states, and draws; a type whose mean tells the distribution may draw from that.

        Of `out` the first may be the field itself; draws are of as many last rows as the second
        has.
        """
        states = self.sample(last_rows(field, out[1]), rng, out=out[1])
        return self.mean(field, out=out[0]), states

    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        """Log-normaliser of another layer given its field and mean, minus that of this one."""
        return other.log_partition(other_field) - self.log_partition(field)

    def log_partition_shifts(self, field: Array) -> Callable[[Array], Array]:
        """Change of the log-normaliser with a shift of the field that all samples share.

        A function from shifts (n_shifts, n_columns) to the changes (n_shifts, n_samples).
        """
        before = self.log_partition(field)
        return lambda shifts: np.stack([self.log_partition(field + d) - before for d in shifts])

    def metric(self, variance: Array | None, kurtosis: Array | None = None) -> Metric:
        """Measures in which parameters are alike to a step, given the data's moments where known."""
        return Metric()

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        """Ranges that training keeps parameters in, by name, given the data's variance."""
        return {}

    def gauge(self, rows: Array) -> Array:
        """Rows of weights, (n_columns, n), without what no probability depends on."""
        return rows

    def gauged(self) -> Self:
        """Layer of the same distribution whose bias is without it too."""
        return self

    # Layers as records of arrays.

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], **options: Any) -> Self:
        """Layer of these `arrays`; the options are those of `start`."""
        return cls(**arrays, **options)

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays of the layer, by attribute name; no copies."""
        layer: Any = self  # to ask `fields` takes as long as a product of small layers
        own = {name: vars(self).get(name) for name in layer.__dataclass_fields__}
        return {name: value for name, value in own.items() if isinstance(value, np.ndarray)}

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        """Layer in which every array is replaced by its image."""
        layer: Any = self
        images = {name: function(array) for name, array in self.arrays.items()}
        is_same = all(image is vars(self)[name] for name, image in images.items())
        return self if is_same else replace(layer, **images)

    def astype(self, dtype: Any, *, copy: bool = False) -> Self:
        """Layer of another precision; it shares the arrays that have it already, unless `copy`."""
        return self.map_arrays(lambda a: a if a.dtype == bool else a.astype(dtype, copy=copy))
