"""Interface of a layer of units, on which the rest of the package is built."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from skrbm.core.numerics import Array, is_on_host, last_rows, like
from skrbm.core.units.support import (
    CURVATURE_ROUNDING,
    UNKNOWN,
    ColumnStatistics,
    Metric,
    QuadratureError,
    Support,
)

Outs = tuple[Array | None, Array | None]


class Units(ABC):
    r"""Layer of units that are conditionally independent given the other layer.

    A layer with states :math:`s` has an energy :math:`A(s)` and sends the other layer a `signal`
    :math:`\varphi(s)`, which is affine in the states. A visible layer with the energy :math:`A` and
    the signal :math:`\varphi`, a hidden layer with :math:`B` and :math:`\psi`, and the weights
    :math:`W` between them form a machine with energy

    .. math:: E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h)

    A layer depends on the other one only through the `field` :math:`f = W \psi(h)` or
    :math:`W^T \varphi(v)`: :math:`p(s \mid f) \propto \exp(-A(s) + \varphi(s)^T f)`.

    A unit occupies one or several columns of the arrays of states, fields and parameters. Every
    type implements the abstract methods. The other methods have default implementations. A type
    overrides a default that does not hold for its units or that is slow. A default that raises an
    error is overridden if the units support the operation. Unless stated otherwise, `states`,
    `field` and `mean` are of shape (n_samples, n_columns); energies and log-partitions are of shape
    (n_samples,), in nats. The first axis of a layer's arrays has one entry for each column. In
    layers returned by `take` and `tempered`, an axis of length n_samples may precede it.

    As in NumPy, `out` is the array that receives the result. Unless stated otherwise, it may be one
    of the inputs. If it is None, a new array is allocated.

    Attributes
    ----------
    bias : ndarray of shape (n_columns,)
        Bias of each column.
    offset : ndarray of shape (n_columns,) or None
        Constant that is subtracted from the states in the signal. It is None if the layer is plain
        (not centered).
    support : Support
        Values that every column can take. For `Composite` layers, whose columns may differ, it is
        the set of all real numbers.
    is_signal_fixed : bool
        True if neither the signal nor the `metric` can depend on a learned parameter. It is False
        for `Gaussian` and `Mixture` units, even if their variances are fixed, and for `Composite`
        layers that contain such units.
    is_mean_sufficient : bool
        True if `expected_moments` can be computed without the field.
    is_tempered_exactly : bool
        True only if the layer returned by `tempered` has exactly the interpolated energy. If it is
        False, the energies may differ by a constant.

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

    @property
    def type_name(self) -> str:
        """Name of the type for messages: of each part if there are parts."""
        return type(self).__name__

    # Abstract methods.

    @classmethod
    @abstractmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        """Create a plain layer whose means without a field equal the means of the data.

        Types with a log-variance set it from the variances of the data. A mean at a bound would
        need an infinite bias. In columns with two bounds, means at or near a bound are therefore
        moved inwards, to a distance of the order of 1 / (n_samples + 1). In columns with one bound,
        an infinite bias is replaced by a large finite number. `mean` and `variance`, of shape
        (n_columns,), are computed from the `n_samples` rows of the data; `options` are further
        arguments, which depend on the type.
        """

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Arrays that training changes, not copied, by name.

        The names are those of the attributes. In `Composite` layers, each name is prefixed by the
        index of the part.
        """

    @property
    def offsets(self) -> dict[str, Array]:
        """Offset by name, of shape (n_columns,) and not copied; empty for a plain layer.

        The name is "offset". In `Composite` layers, each part has an offset for its columns, whose
        name is prefixed by the index of the part.
        """
        return {} if self.offset is None else {"offset": self.offset}

    @abstractmethod
    def signal(self, states: Any) -> Any:
        """Signal that the layer sends through the weights; it is affine in each column of states.

        A type may return the states themselves if the signal equals them: sparse states then stay
        sparse. In all other cases, the types of this package return a dense signal for sparse
        states.
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
        """Draw states given the field.

        If the layer and the field have the same dtype, the states have it as well.
        """

    @abstractmethod
    def moments(self, states: Any, sample_weight: Array) -> dict[str, Array]:
        """Derivatives of -A(s) with respect to the parameters, summed over samples with weights.

        Parameters
        ----------
        states : {ndarray, sparse matrix} of shape (n_samples, n_columns)
            States.
        sample_weight : ndarray of shape (n_samples,)
            Weights of the samples. They may be negative, and they need not sum to one.

        Returns
        -------
        moments : dict of str to ndarray
            Weighted sums, with the same keys and shapes as `parameters`.
        """

    @abstractmethod
    def expected_moments(
        self, mean: Array, field: Array | None, sample_weight: Array
    ) -> dict[str, Array]:
        """Expectation of `moments` given the field and the conditional mean.

        If `is_mean_sufficient` is True, the field may be None.

        Raises
        ------
        ValueError
            If the field is None but `is_mean_sufficient` is False.
        """

    @abstractmethod
    def recentered(self, offset: Array | None, field: Array) -> Self:
        """Layer with another offset, and with a constant field absorbed into its bias.

        The field has shape (n_columns,). Up to a constant, the energy of the new layer equals the
        energy of this layer minus the inner product of the new signal and the field.
        """

    @abstractmethod
    def tempered(self, base: Self, inverse_temperature: Array | float) -> Self:
        r"""Interpolate between `base` and this layer, both in `natural` form.

        The energy of the new layer is :math:`(1 - \beta) A_\text{base} + \beta A`. If
        `is_tempered_exactly` is False, the energy may differ from this by a constant. The inverse
        temperature :math:`\beta` is a number or an array of shape (n_samples, 1).
        """

    @property
    def start_options(self) -> dict[str, Any]:
        """Options with which `start` creates a layer of the same type and structure.

        Masks of learned parameters are omitted if they are arrays.
        """
        layer: Any = self
        values = {f.name: getattr(self, f.name) for f in fields(layer) if f.name != "offset"}
        return {name: v for name, v in values.items() if getattr(v, "ndim", 0) == 0}

    @property
    def value_step(self) -> float | None:
        """Distance between the two states of each unit; 0 or None if there is no such distance.

        For `TwoStateUnits`, it is the distance. For `Gaussian` units, it is 0 if training changes a
        variance, and None otherwise. For a layer with parts, it is the common result of the parts,
        or None if their results differ. For all remaining types, it is None. If it is None,
        initialization does not search for clusters.
        """
        return None

    @property
    def learns_variance(self) -> Array:
        """Mask of the columns whose variance given the field is learned, of shape (n_columns,)."""
        return np.zeros(self.n_columns, dtype=bool)

    # Columns, units and states.

    @property
    def n_columns(self) -> int:
        """Number of columns of the states."""
        return self.bias.shape[-1]

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.n_columns

    @property
    def unit_groups(self) -> list[Array]:
        """Groups of unit indices; an array of indices in `take` must contain units of one group.

        All units of a group have the same number of columns and the same number of states.
        """
        return [np.arange(self.n_units)]

    def unit_columns(self, index: Any) -> Array:
        """Column indices of a unit, or of one unit for each sample.

        The result has shape (width,) for a single index and (n_samples, width) for an array of
        indices, where width is the number of columns of the unit.
        """
        return np.expand_dims(index, -1)

    def by_column(self, values: Array) -> Array:
        """Repeat the value of each unit for all of its columns, along the last axis."""
        return values

    def take(self, index: Any) -> Units:
        """Layer that consists of one unit.

        If `index` is an array, it contains the index of the unit for each sample. These units must
        belong to the same group.
        """
        columns = self.unit_columns(index)
        return self.map_arrays(lambda array: array[like(columns, array)])

    def with_columns(self, is_chosen: Array, other: Self) -> Self:
        """Layer whose columns in the mask `is_chosen` are those of another layer like this one."""
        layer: Any = self
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            array[is_chosen] = other.arrays[name][is_chosen]
        return replace(layer, **arrays)

    def unit_energies(self, states: Array) -> Array:
        """Energies of each unit of dense states, of shape (n_samples, n_units), in nats.

        Their sum over the units is `energy`. A state of a unit that is NaN affects only its own
        energy.
        """
        return self._of_units(states, lambda units, parts: units.energy(parts))

    def unit_log_partitions(self, field: Array) -> Array:
        """Log-partitions of each unit given the field, of shape (n_samples, n_units), in nats.

        Their sum over the units is `log_partition`.
        """
        return self._of_units(field, lambda units, parts: units.log_partition(parts))

    def _of_units(self, rows: Array, function: Callable[[Units, Array], Array]) -> Array:
        """Apply a function, which returns one number per row, to each unit and its columns."""
        result = np.empty((self.n_units, len(rows)), rows.dtype, like=rows)
        for group in self.unit_groups:
            columns = self.unit_columns(group)
            parts = rows.T[like(columns, rows)].transpose(0, 2, 1).reshape(-1, columns.shape[1])
            units = self.take(np.repeat(group, len(rows)))
            result[like(group, rows)] = function(units, parts).reshape(len(group), -1)
        return result.T

    def unit_values(self, index: int) -> Array | None:
        """Array (n_values, width) of all states of a unit, or None for a continuous unit."""
        values = np.array(self.support.values, dtype=self.bias.dtype)
        return values[:, None] if len(values) else None

    # Without these four methods, the array of all states of a categorical unit, with n_values^2
    # elements, would be needed.

    def n_unit_states(self, index: int) -> int | None:
        """Number of states of a unit, or None for a continuous unit."""
        values = self.unit_values(index)
        return None if values is None else len(values)

    def unit_states(self, index: int, numbers: Array) -> Array:
        """States of a discrete unit: the rows `numbers` of `unit_values`."""
        values: Any = self.unit_values(index)
        return values[numbers]

    def fields_and_energies(self, weights: Array) -> tuple[Array, Array]:
        """Fields on the other layer, and energies, of all states of a layer of one discrete unit.

        Parameters
        ----------
        weights : ndarray of shape (n_columns, n)
            Weights of the unit, where n is the number of columns of the other layer.

        Returns
        -------
        fields : ndarray of shape (n_values, n)
            Fields of the states of `unit_values`. They may share memory with the weights.
        energies : ndarray of shape (n_values,)
            In nats.
        """
        values = self.unit_values(0)
        return self.signal(values) @ weights, self.energy(values)

    def unit_mean(self, probability: Array) -> Array:
        """Mean of a layer of one discrete unit from the probabilities of its states.

        The probabilities have shape (n_samples, n_values), in the order of `unit_values`.
        """
        return probability @ self.unit_values(0)

    def unit_atoms(self, index: int) -> Array:
        """Atoms of a continuous unit (values with a positive probability), of shape (n_atoms,)."""
        return np.empty(0, dtype=self.bias.dtype)

    @property
    def n_states(self) -> float:
        """Number of states of the layer, which is an exact integer or infinity."""
        n_states = 1
        for group in self.unit_groups:
            n_values = self.n_unit_states(group[0])
            if n_values is None:
                return math.inf
            n_states *= n_values ** len(group)
        return n_states

    @property
    def is_discrete(self) -> bool:
        """True if the layer has finitely many states."""
        return len(self.support.values) > 0

    def states(self, begin: int, end: int) -> Array:
        """States of a discrete layer with the indices `begin` to `end` - 1.

        The result has shape (end - begin, n_columns). The states are numbered so that the last unit
        varies fastest.
        """
        number, states = np.arange(begin, end), []
        for index in reversed(range(self.n_units)):
            n_values: Any = self.n_unit_states(index)
            number, digit = np.divmod(number, n_values)
            states.append(self.unit_states(index, digit))
        return like(np.concatenate(states[::-1], axis=1), self.bias)

    @property
    def tail_curvature(self) -> Array:
        """Smallest second derivative of the energy far from zero, for each column.

        The curvature is infinite for units with two bounds; all other types must define it. If both
        layers of a machine have finite positive curvatures, its partition function is finite for
        weights that are small enough compared with the curvatures, see `Machine.lost_curvature`.

        Raises
        ------
        NotImplementedError
            If the type neither has two bounds nor defines the curvature.
        """
        low, high = self.column_bounds
        if not np.isfinite(high - low).all():
            raise NotImplementedError(
                f"{type(self).__name__} units lack a bound and a tail_curvature. Define "
                f"tail_curvature, the second derivative of their energy far from zero."
            )
        return np.full_like(low, np.inf)

    @property
    def largest_variance(self) -> Array:
        """Upper bound on the variance of each column, for every field; infinite if unknown."""
        low, high = self.column_bounds
        return ((high - low) / 2) ** 2

    def log_concave_parts(self, field: Array) -> Iterator[tuple[Array, Array, Array]]:
        r"""Yield columns without two bounds, with a decomposition of their densities.

        Given the field, the density of a state of such a column is a sum of log-concave functions,
        except for atoms. The logarithm of each function has its second derivative bounded from
        above by a negative constant. For a unit with a convex energy, the density is the only
        function.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_columns)
            Fields of the other layer.

        Yields
        ------
        columns : ndarray of int of shape (n_real,)
            Indices of columns.
        curvature : ndarray of shape (n_real, n_parts)
            Smallest second derivatives of the negative logarithms of the functions. They are NaN if
            the energy is not known to be convex: `largest_variance` exceeds the inverse of
            `tail_curvature` by a fraction of `CURVATURE_ROUNDING` or more.
        mean : ndarray of shape (n_samples, n_real, n_parts)
            Means of the distributions that are proportional to the functions.
        """
        curvature = self.tail_curvature
        (real,) = np.isfinite(curvature).nonzero()
        if len(real):
            curvature = curvature[real]
            is_convex = curvature * self.largest_variance[real] < 1 + CURVATURE_ROUNDING
            known = np.where(is_convex, curvature, np.nan)
            yield real, known[:, None], self.mean(field)[:, real, None]

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the columns, both of shape (n_columns,); infinite if absent."""
        bias, shape = self.bias, self.bias.shape[-1:]
        low, high = (
            np.full_like(bias, end, shape=shape) for end in (self.support.low, self.support.high)
        )
        return low, high

    def field_bounds(self, weights: Array) -> tuple[Array, Array]:
        """Lower and upper bounds on the fields that this layer sends through the weights.

        The weights have shape (n, n_columns), where n is the number of columns of the other layer.
        Both bounds have shape (n,). They are infinite if a column of this layer lacks a lower or an
        upper bound.
        """
        low, high = (self.signal(bound[None])[0] for bound in self.column_bounds)
        if not np.isfinite(high - low).all():
            infinite = np.full_like(weights, np.inf, shape=len(weights))
            return -infinite, infinite
        middle, half = weights @ ((low + high) / 2), np.abs(weights) @ (np.abs(high - low) / 2)
        return middle - half, middle + half

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Values over which the distribution of a layer of one unit is summed or integrated.

        For a discrete unit, these are all states. If the current values are fractional, such as
        gray pixels, two-state units return these values and their mirror images. Categorical units
        return all cyclic shifts of their columns. For a continuous unit, the values are its
        atoms, if any, and the nodes of a quadrature. The relative error of the quadrature is below
        1e-9, apart from rounding, for every field between `low` and `high`.

        Parameters
        ----------
        states : ndarray of shape (n_samples, n_columns)
            Current states.
        low, high : ndarray of shape (n_columns,) or (n_samples, n_columns)
            Bounds on the field.

        Returns
        -------
        values : ndarray of shape (n_values, n_samples or 1, n_columns)
            States, or atoms and quadrature nodes.
        log_measure : ndarray of shape (n_values or 1, n_samples or 1)
            Log-weight of each value, in nats. Values with a log-weight of minus infinity do not
            count.

        Raises
        ------
        QuadratureError
            If no quadrature is implemented for a continuous unit, or if it would need too many
            nodes. For `Gaussian` units, also if the nodes would be too close to each other for the
            dtype of `states`.
        """
        values = self.unit_values(0)
        if values is None:
            raise QuadratureError(f"{type(self).__name__} units have no quadrature.")
        return values[:, None], np.zeros((1, 1), states.dtype, like=states)

    # Methods with a default implementation.

    def natural(self) -> Self:
        """Plain layer whose signal equals its states, with the same distribution without a field.

        Such a layer is said to be in natural form.
        """
        return self.recentered(None, self.zero_field(1)[0])

    def heated(self, temperature: float) -> Self:
        """Layer with the energy of this layer divided by a temperature.

        This layer must be in `natural` form. The energy of the new layer may differ from the
        quotient by a constant.

        Raises
        ------
        ValueError
            If the unit type of the layer or of one of its parts does not override this method.
        """
        raise ValueError(
            f"{type(self).__name__} units have no distribution at another temperature than 1. "
            f"Use temperature=1."
        )

    def zero_field(self, n_samples: int) -> Array:
        """Field of a layer without coupling: zeros of shape (n_samples, n_columns)."""
        return np.zeros((n_samples, self.n_columns), self.bias.dtype, like=self.bias)

    @property
    def affine_signal(self) -> tuple[Array, Array]:
        """Intercept and slope of the signal as a function of the state, both (n_columns,)."""
        zero = self.zero_field(1)
        origin, one = self.signal(np.concatenate([zero, zero + 1]))
        return origin, one - origin

    def signal_shift(self, after: Self) -> Array:
        """Signal of this layer minus the signal of `after`, of shape (n_columns,).

        `after` is the same layer with another offset or bias, so the difference is equal for all
        states.
        """
        return self.affine_signal[0] - after.affine_signal[0]

    def signal_gradient(self, field: Array, work: Array) -> dict[str, Array]:
        r"""Derivatives of :math:`\varphi(s)^T f` with respect to the parameters in the signal.

        `moments` does not include these terms of the gradient. `field` is the weighted sum of the
        field over samples, and `work` is the weighted sum of the signal times the field, both of
        shape (n_columns,). The result contains weighted sums of the derivatives, by parameter name.
        Parameters that are not in the signal may be omitted.
        """
        return {}

    def scale_gradient(self, work: Array) -> dict[str, Array]:
        r"""Gradient of :math:`\log(s / \sqrt{\kappa})` with respect to parameters, times `work`.

        Here, :math:`s` is the slope of a column's signal, and :math:`\kappa` is its
        `tail_curvature`. The array `work` has the shape (n_columns,). Parameters that do not affect
        :math:`s / \sqrt{\kappa}` are omitted.
        """
        return {}

    def has_means(self, values: Any) -> bool:
        """Test if dense values contain NaN or a number that is not a state.

        Numbers between the states are interpreted as means. The result is False for sparse values,
        and for types that do not override this method.
        """
        return False

    def draw_states_of_means(self, values: Any, rng: np.random.Generator) -> Any:
        """Replace dense means by states that are drawn with these means, in place.

        Rows that contain NaN, or a value that is outside the range of the states by more than a
        rounding error, are left unchanged. In `Composite` layers, this holds for the columns of
        each part separately. Sparse values are left unchanged, and so are all values if the type
        does not override this method.
        """
        return values

    def mean_and_sample(
        self, field: Array, rng: np.random.Generator, out: Outs = (None, None)
    ) -> tuple[Array, Array]:
        """Expected states and draws given the field.

        Types override this method to compute both from common intermediate results. For example,
        the states of two-state units are drawn with the means that have been computed.

        The two arrays of `out` receive the means and the draws. Only the first array may be the
        field. If the second array is shorter than the field, it receives draws for the last
        ``len(out[1])`` rows of the field only.
        """
        states = self.sample(last_rows(field, out[1]), rng, out=out[1])
        return self.mean(field, out=out[0]), states

    def log_partition_change(
        self, other: Self, field: Array, other_field: Array, other_mean: Array
    ) -> Array:
        """Log-partition of `other` given `other_field`, minus that of this layer given `field`.

        `other` is of the same type and has the same offset. `other_mean` is its mean given
        `other_field`.
        """
        return other.log_partition(other_field) - self.log_partition(field)

    def shifted(self, field: Array) -> ShiftedUnits:
        """Layer under a field to which shifts are added, such as the fields of several labels."""
        return EveryPair(self, field)

    def metric(self, statistics: ColumnStatistics = UNKNOWN) -> Metric:
        """Preconditioner of the gradient.

        `statistics` are those of the states of each column. For a visible layer, they are computed
        from the data. By default, all factors are one.
        """
        return Metric()

    def bounds(self, variance: Array) -> dict[str, tuple[Array, Array]]:
        """Lower and upper bounds of parameters in training, with the parameter names as keys.

        `variance`, of shape (n_columns,), contains the variances of the data if the layer is
        visible, and ones if it is hidden. Parameters without bounds are omitted. Parameters that
        are not learned may be included.
        """
        return {}

    def gauge(self, rows: Array) -> Array:
        """Remove components of weights whose field on the other layer is the same for all states.

        `rows` contains the weights, of shape (n_columns, n), where n is the number of columns of
        the other layer. The bias of the other layer can absorb the removed components.
        """
        return rows

    def in_zero_sum_gauge(self) -> Self:
        """Layer with the same distribution and a bias that `gauge` leaves unchanged."""
        return self

    # Conversion to and from arrays.

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], **options: Any) -> Self:
        """Create a layer from arrays, with the attribute names as keys.

        `options` are the other attributes of the layer.
        """
        return cls(**arrays, **options)

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays of the layer, not copied, with the attribute names as keys."""
        layer: Any = self  # `dataclasses.fields` takes as long as a product of small layers
        values: dict[str, Any] = {n: vars(self).get(n) for n in layer.__dataclass_fields__}
        return {name: value for name, value in values.items() if getattr(value, "ndim", 0)}

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        """Layer with `function` applied to every array."""
        layer: Any = self
        return replace(layer, **{name: function(array) for name, array in self.arrays.items()})

    def astype(self, dtype: Any, *, copy: bool = False) -> Self:
        """Convert the layer to a dtype; arrays that have it are shared unless `copy` is True.

        Boolean arrays are always shared and not converted.
        """
        return self.map_arrays(lambda a: a if a.dtype == bool else a.astype(dtype, copy=copy))


@dataclass(frozen=True, eq=False)
class ShiftedUnits(ABC):
    """Layer for all pairs of a row, which has a field, and a shift, which is added to this field.

    Parameters
    ----------
    units : Units
        Layer.
    field : ndarray of shape (n_rows, n_columns)
        Field of each row.
    """

    units: Units
    field: Array

    @abstractmethod
    def log_partitions(self, shifts: Array) -> Array:
        """Log-partition of each pair in nats, of shape (n_shifts, n_rows).

        `shifts` has the shape (n_shifts, n_columns). The results of both methods have the precision
        of the field, or double precision.
        """

    @abstractmethod
    def log_partition_changes(self, shifts: Array) -> Array:
        """Changes of the log-partitions by the shifts, in nats, of shape (n_shifts, n_rows)."""

    @abstractmethod
    def sums(
        self, shifts: Array, weights: Array, layer: Units | None = None
    ) -> tuple[Array, Array, dict[str, Array]]:
        """Weighted sums of the expected states and moments of the pairs.

        Parameters
        ----------
        shifts : ndarray of shape (n_shifts, n_columns)
            Shifts of the fields.
        weights : ndarray of shape (n_shifts, n_rows)
            Weights of the pairs.
        layer : Units, default=None
            Layer whose moments are computed: `units`, or the same layer with another offset. If
            None, no moments are computed.

        Returns
        -------
        of_rows : ndarray of shape (n_rows, n_columns)
            Expected states of each row, summed over the shifts.
        of_shifts : ndarray of shape (n_shifts, n_columns)
            Expected states of each shift, summed over the rows.
        moments : dict of str to ndarray
            Expected moments of `layer`, summed over all pairs.
        """


@final
class EveryPair(ShiftedUnits):
    """Pairs of any layer, one after another.

    To limit the size of the arrays that have an element for each row, shift and column, the rows
    are processed in blocks.

    Attributes
    ----------
    n_block_elements, n_device_elements : int
        Largest number of elements of a block on the host and on a device: rows times shifts times
        columns. On the host, a block of this size fits the cache. Blocks have at least one row,
        even if this row has more elements.
    """

    n_block_elements: ClassVar[int] = 2**16
    n_device_elements: ClassVar[int] = 2**24

    def log_partitions(self, shifts: Array) -> Array:
        result = np.empty_like(self.field, shape=(len(shifts), len(self.field)))
        for rows, shifted in self._blocks(shifts):
            log_partition = self.units.log_partition(shifted)
            result[:, rows] = log_partition.reshape(-1, len(shifts)).T
        return result

    def log_partition_changes(self, shifts: Array) -> Array:
        return self.log_partitions(shifts) - self.units.log_partition(self.field)

    def sums(
        self, shifts: Array, weights: Array, layer: Units | None = None
    ) -> tuple[Array, Array, dict[str, Array]]:
        of_rows, of_shifts = np.zeros_like(self.field), np.zeros_like(shifts)
        moments: dict[str, Array] = {}
        for rows, shifted in self._blocks(shifts):
            weight = weights[:, rows].T
            mean = self.units.mean(shifted)
            if layer is not None:
                shifted += self.units.bias - layer.bias  # the offset of `layer` is in its bias
                block = layer.expected_moments(mean, shifted, weight.ravel())
                moments = {name: moments.get(name, 0) + block[name] for name in block}
            mean = mean.reshape(*weight.shape, -1)
            np.matmul(weight[:, None], mean, out=of_rows[rows][:, None])
            of_shifts += np.einsum("nk,nkh->kh", weight, mean)
        return of_rows, of_shifts, moments

    def _blocks(self, shifts: Array) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows and their shifted fields; the shifts of a row are adjacent."""
        if not len(shifts):
            return
        on_host = is_on_host(self.field)
        n_elements = self.n_block_elements if on_host else self.n_device_elements
        n_rows = max(1, n_elements // shifts.size)
        for begin in range(0, len(self.field), n_rows):
            rows = slice(begin, begin + n_rows)
            yield rows, (self.field[rows, None] + shifts).reshape(-1, self.field.shape[1])
