"""Interface of a layer of units, on which the rest of the package is built."""

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
    r"""Layer of units that are conditionally independent given the other layer.

    A layer has an energy :math:`A(s)` and sends the other layer a `signal` :math:`\varphi(s)`,
    which is affine in its states. Two layers and the weights between them form a machine with
    energy

    .. math:: E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h)

    A layer depends on the other one only through the `field` :math:`f = W \psi(h)` or
    :math:`W^T \varphi(v)`: :math:`p(s \mid f) \propto \exp(-A(s) + \varphi(s)^T f)`.

    A unit takes one or several columns of states, fields and parameters. Every type implements the
    abstract methods. The other methods have default implementations, which a type overrides for
    speed or to support further operations. Throughout, `states`, `field` and `mean` are of shape
    (n_samples, n_columns); energies and log-partitions are of shape (n_samples,), in nats. Arrays
    of a layer have an entry for each column. In layers returned by `take` and `tempered`, they may
    also have a row for each sample.

    As in NumPy, `out` is the array that receives the result, and it may be one of the inputs. If it
    is None, a new array is allocated.

    Attributes
    ----------
    bias : ndarray of shape (n_columns,)
        Bias of each column.
    offset : ndarray of shape (n_columns,) or None
        Constant that is subtracted from the states in the energy; None if the layer is plain
        (uncentered).
    support : Support
        Values that every column can take.
    is_signal_fixed : bool
        True if neither the signal nor the `metric` depends on a parameter of the layer.
    is_mean_sufficient : bool
        True if `expected_moments` needs no field.
    is_tempered_exactly : bool
        True if the energies of `tempered` are exact, not only up to a constant.

    See Also
    --------
    skrbm.testing.check_units : Tests of a unit type.
    """

    bias: Array
    offset: Array | None
    support: Support
    is_signal_fixed: bool = True
    is_mean_sufficient: bool = False
    is_tempered_exactly: bool = False

    # Abstract methods.

    @classmethod
    @abstractmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Create a plain layer that, without a field, matches the column statistics of data.

        The parameters are finite for all statistics: means are kept away from the bounds by a
        margin that shrinks with `n_samples`. `mean` and `variance` are of shape (n_columns,);
        `options` are further arguments, which depend on the type.
        """

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Arrays that training changes, by attribute name; not copied."""

    @abstractmethod
    def signal(self, states: Any, out: Array | None = None) -> Any:
        """Signal that the layer sends through the weights; it is affine in each column of states.

        The signal of sparse states is sparse if the type supports it. If the signal equals the
        states, they are returned without a copy and `out` is not used.
        """

    @abstractmethod
    def energy(self, states: Any) -> Array:
        """Energy A(s) of the layer, without the coupling."""

    @abstractmethod
    def log_partition(self, field: Array) -> Array:
        """Log-partition (logarithm of the normalization constant) of the layer given its field."""

    @abstractmethod
    def mean(self, field: Array, out: Array | None = None) -> Array:
        """Expected states given the field."""

    @abstractmethod
    def sample(self, field: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        """Draw states given the field, in the dtype of the field."""

    @abstractmethod
    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        """Weighted sum over samples of the derivatives of -A(s) with respect to the parameters.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_columns)
            States.
        sample_weight : ndarray of shape (n_samples,)
            Weights of the samples, which may have any sign and any sum.

        Returns
        -------
        moments : dict of str to ndarray of shape (n_columns,)
            Sums, with the same keys as `parameters`.
        """

    @abstractmethod
    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        """Expectation of `moments` given the field and the conditional mean.

        The field may be None if `is_mean_sufficient` is True.
        """

    @abstractmethod
    def recentered(self, offset: Array | None, field: Array) -> Self:
        """Layer with another offset, and with a constant field (n_columns,) absorbed into its bias.

        Up to a constant, its energy is the old energy minus the new signal times the field.
        """

    @abstractmethod
    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        r"""Layer at an inverse temperature between `base` and this layer, both of them natural.

        Its energy is :math:`(1 - \beta) A_\text{base} + \beta A`: exactly if `is_tempered_exactly`
        is True, otherwise up to a constant. The inverse temperature is a number or an array of
        shape (n_samples, 1).
        """

    @property
    def start_options(self) -> dict[str, Any]:
        """Options with which `start` creates a layer of the same type and structure."""
        layer: Any = self
        values = {f.name: getattr(self, f.name) for f in fields(layer) if f.name != "offset"}
        return {name: v for name, v in values.items() if not isinstance(v, np.ndarray)}

    @property
    def value_step(self) -> float | None:
        """Distance between the two values of every column; 0 or None for other types of units.

        It is 0 for real values with a learned variance, and None for all other types.
        Initialization searches for clusters unless it is None: in columns with a few values, the
        gaps between these values would be mistaken for gaps between clusters.
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
        """Groups of unit indices; `take` accepts several units if they belong to the same group."""
        return [np.arange(self.n_units)]

    def unit_columns(self, index: Any) -> Array:
        """Columns (width,) of a unit, or columns (n_samples, width) of one unit for each sample."""
        return np.asarray(index)[..., None]

    def by_column(self, values: Array) -> Array:
        """Repeat the value of each unit for all of its columns, along the last axis."""
        return values

    def take(self, index: Any) -> Units:
        """Layer of one unit, the same for all samples or one of the same group for each sample."""
        columns = self.unit_columns(index)
        return self.map_arrays(lambda array: np.asarray(array[columns]))

    def unit_values(self, index: int) -> Array | None:
        """All states of a unit, of shape (n_values, width); None for a continuous unit."""
        values = np.array(self.support.values, dtype=self.bias.dtype)
        return values[:, None] if len(values) else None

    def unit_atoms(self, index: int) -> Array:
        """Atoms (n_atoms,) of a continuous unit, which are values with a positive probability."""
        return np.empty(0, dtype=self.bias.dtype)

    @property
    def n_states(self) -> float:
        """Number of states of the layer, an exact integer or infinity."""
        values: list[Any] = [self.unit_values(i) for i in range(self.n_units)]
        return math.inf if any(v is None for v in values) else math.prod(map(len, values))

    @property
    def is_discrete(self) -> bool:
        """True if the layer has finitely many states."""
        return len(self.support.values) > 0

    def states(self, begin: int, end: int) -> Array:
        """States `begin` to `end` - 1 of a discrete layer; the last unit varies fastest."""
        tables: list[Any] = [self.unit_values(i) for i in range(self.n_units)]
        digits = np.unravel_index(np.arange(begin, end), [*map(len, tables)])
        return np.concatenate([t[digit] for t, digit in zip(tables, digits, strict=True)], axis=1)

    @property
    def tail_curvature(self) -> Array:
        """Smallest second derivative of the energy far from zero, (n_columns,).

        The curvature is infinite for bounded units. Unit types without bounds must define it, since
        a machine of two such layers has a normalizable distribution only if the curvature exceeds
        the effect of the weights.
        """
        low, high = self.column_bounds
        if not np.isfinite(high - low).all():
            raise NotImplementedError(
                f"{type(self).__name__} units have no bounds and no tail_curvature. Define "
                f"tail_curvature, the second derivative of their energy far from zero."
            )
        return np.full_like(low, np.inf)

    @property
    def largest_variance(self) -> Array:
        """Upper bound (n_columns,) on the variance of each column given any field."""
        low, high = self.column_bounds
        return np.asarray(((high - low) / 2) ** 2)

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value of each column, both (n_columns,)."""
        shape, dtype = self.bias.shape[-1:], self.bias.dtype
        return np.full(shape, self.support.low, dtype), np.full(shape, self.support.high, dtype)

    def field_bounds(self, weights: Array) -> tuple[Array, Array]:
        """Bounds (n,) on the field that this layer causes through weights (n, n_columns)."""
        low, high = (self.signal(bound[None])[0] for bound in self.column_bounds)
        if not np.isfinite(high - low).all():
            infinite = np.full(len(weights), np.inf, dtype=weights.dtype)
            return -infinite, infinite
        middle, half = weights @ ((low + high) / 2), np.abs(weights) @ (np.abs(high - low) / 2)
        return middle - half, middle + half

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Values over which the conditional distribution of a layer of one unit is summed.

        For a discrete unit, these are all states, including the current one. For a continuous unit,
        they are the nodes of a quadrature that is exact to rounding for every field between `low`
        and `high`. These bounds have the shape (n_columns,) or (n_samples, n_columns).

        Returns
        -------
        values : ndarray of shape (n_values, n_samples or 1, n_columns)
            States or quadrature nodes.
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

    # Methods with a default implementation.

    def natural(self) -> Self:
        """Plain layer with the same distribution, whose signal equals its states (natural form)."""
        return self.recentered(None, self.zero_field(1)[0])

    def heated(self, temperature: float) -> Self:
        """Layer whose energy is the energy of this natural layer divided by a temperature.

        The energy of the new layer may differ by a constant.

        Raises
        ------
        ValueError
            If the type has no layer with this energy.
        """
        raise ValueError(
            f"{type(self).__name__} units have no distribution at another temperature."
        )

    def zero_field(self, n_samples: int) -> Array:
        """Field of a layer without coupling: zeros of shape (n_samples, n_columns)."""
        return np.zeros((n_samples, self.n_columns), dtype=self.bias.dtype)

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        """Intercept and slope of the signal as a function of the state, both (n_columns,)."""
        zero = self.zero_field(1)
        origin, one = self.signal(np.concatenate([zero, zero + 1]))
        return origin, one - origin

    def signal_shift(self, after: Self) -> Array:
        """Difference (n_columns,) between the signal of this layer and the signal of `after`.

        `after` is the same layer with another offset or bias, so that the difference is constant.
        """
        return self.affine_signal[0] - after.affine_signal[0]

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        """Gradient terms of the parameters in the signal, which `moments` does not include.

        `field` is the weighted sum of the field over samples, and `work` is the weighted sum of the
        signal times the field, both of shape (n_columns,).
        """
        return {}

    def has_means(self, values: Any) -> bool:
        """True if dense values include means, which `draw_states_of_means` replaces by states."""
        return False

    def draw_states_of_means(self, values: Any, rng: np.random.Generator) -> Any:
        """Replace dense values in place by states with these means, in rows of valid means."""
        return values

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        """Expected states and draws; if the mean determines the distribution, it is used to draw.

        The first array of `out` may be the field. The length of the second array is the number of
        draws: states are drawn only for as many of the last rows of the field.
        """
        states = self.sample(last_rows(field, out[1]), rng, out=out[1])
        return self.mean(field, out=out[0]), states

    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        """Change of the log-partition from this layer to `other`, given the mean of `other`."""
        return other.log_partition(other_field) - self.log_partition(field)

    def log_partition_shifts(self, field: Array) -> Callable[[Array], Array]:
        """Function that computes the changes of the log-partition if the fields are shifted.

        It maps shifts of shape (n_shifts, n_columns), each of which is added to the fields of all
        samples, to changes of shape (n_shifts, n_samples).
        """
        before = self.log_partition(field)
        return lambda shifts: np.stack([self.log_partition(field + d) - before for d in shifts])

    def metric(self, variance: Array | None, kurtosis: Array | None = None) -> Metric:
        """Preconditioner of the gradient, from the moments of the data's columns if known."""
        return Metric()

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        """Lower and upper bounds of parameters in training, by name, from the data's variance."""
        return {}

    def gauge(self, rows: Array) -> Array:
        """Weights (n_columns, n) without the components that do not affect the distribution."""
        return rows

    def in_zero_sum_gauge(self) -> Self:
        """Layer with the same distribution, whose bias has no component that `gauge` removes."""
        return self

    # Conversion to and from arrays.

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], **options: Any) -> Self:
        """Create a layer from its `arrays`; the options are those of `start`."""
        return cls(**arrays, **options)

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays of the layer, by attribute name; not copied."""
        layer: Any = self  # `dataclasses.fields` takes as long as a product of small layers
        values = {name: vars(self).get(name) for name in layer.__dataclass_fields__}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        """Layer with `function` applied to every array."""
        layer: Any = self
        images = {name: function(array) for name, array in self.arrays.items()}
        is_same = all(image is vars(self)[name] for name, image in images.items())
        return self if is_same else replace(layer, **images)

    def astype(self, dtype: Any, *, copy: bool = False) -> Self:
        """Convert the layer to a dtype; arrays that have it are shared unless `copy` is True."""
        return self.map_arrays(lambda a: a if a.dtype == bool else a.astype(dtype, copy=copy))
