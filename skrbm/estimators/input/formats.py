"""Row formats: conversion of the user's rows to the columns of a machine, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, final

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array, validate_data

from skrbm.core.numerics import Array, dense
from skrbm.estimators.input.validation import (
    check_domain,
    check_has_arrays,
    check_width,
    compared_domain,
    explain_missing_values,
    explain_other_types,
    parameter_shape,
)


class RowFormat(ABC):
    """Conversion of the user's rows to states of a machine, and back.

    A format has no state; the information learned from the rows is stored in the estimator.

    Attributes
    ----------
    learned : tuple of str
        Names of the public attributes of the estimator that `read` sets.
    has_tables : bool
        True if rows may contain data other than numbers.
    is_standardized : bool
        True if `read` scales numbers, so that single precision is sufficient in training.
    """

    learned: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")
    has_tables: ClassVar[bool] = False
    is_standardized: ClassVar[bool] = False

    @abstractmethod
    def read(
        self, rbm: Any, X: Any, *, reset: bool, finite: bool, missing: bool, sample_weight: Any
    ) -> Any:
        """Validate rows, and convert them to the columns of the machine.

        Parameters
        ----------
        rbm : BaseRBM
            Estimator. If `reset` is True, its attributes named in `learned` are set; otherwise, the
            rows must match its attributes.
        X : object
            Rows passed by the user.
        reset : bool
            True to learn the format from these rows.
        finite : bool
            True to refuse missing values and, in arrays, infinite values, and to check that the
            values of an array are in the domain of the units.
        missing : bool
            True to allow missing values, even if `finite` is True, in an estimator that
            marginalizes over them. Sparse rows must be complete nevertheless.
        sample_weight : ndarray of shape (n_samples,) or None
            Positive weights of the rows, used to learn the format. If None, all rows have equal
            weights.

        Returns
        -------
        v : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
            Numbers of any type, with NaN for missing values.

        Raises
        ------
        ValueError
            If the rows do not match the estimator, or if they have values that are refused (see
            `finite` and `missing`).
        TypeError
            If the type of the rows or of their values is not supported.
        """

    @abstractmethod
    def write(
        self,
        rbm: Any,
        v: Array,
        *,
        given: Any = None,
        is_observed: Array | None = None,
        is_averaged: bool = False,
    ) -> Any:
        """Convert states, or means of states, to rows in the user's format.

        `v` has the shape (n_samples, n_columns). `given` contains rows returned by `read`, whose
        values are kept where the mask `is_observed`, of shape (n_samples, n_units), is True. If
        `is_averaged` is True, `v` contains means to which the function from `expected_values`, if
        there is one, has already been applied.
        """

    @abstractmethod
    def expected_values(self, rbm: Any) -> Callable[[Array, Array, Array], Array] | None:
        """Function that replaces the means of transformed columns by means of the user's values.

        Its arguments are means and draws of states and the mask of the means to replace, all of
        shape (n_samples, n_columns). It is None if no column has a transformation other than a
        shift and a scale.
        """

    @abstractmethod
    def warn_of_unknown(self, v: Any, consequence: str) -> None:
        """Warn if rows from `read` had unknown categories, which are treated as missing values.

        `consequence` is the participle of the warning that says what becomes of them.
        """

    @abstractmethod
    def is_known_to(self, rbm: Any) -> bool:
        """True if the estimator has learned a format that can be used with its public arrays."""

    @abstractmethod
    def array_length(self, rbm: Any, name: str, n_columns: int) -> int:
        """Expected length of the public array `name` of the visible layer."""

    @abstractmethod
    def observed_units(self, rbm: Any, v: Any, mask: Any = None) -> Array:
        """Mask of the observed units, of shape (n_samples, n_units).

        `mask` is the user's mask of the observed features. If it is None, a unit is observed if
        its value is not NaN.
        """

    @abstractmethod
    def constant_features(self, rbm: Any, is_varying: Array) -> list[Any]:
        """Indices or names of the constant real-valued features without bounds.

        `is_varying` is the mask of the columns that are not constant.
        """

    @abstractmethod
    def names(self, rbm: Any, n_columns: int) -> dict[str, Array]:
        """Names of the features and of the columns, and the index of the feature of each column.

        The keys are "features", "columns" and "feature_of_column".
        """

    @abstractmethod
    def log_jacobians(self, rbm: Any, v: Any = None) -> Array:
        """Log-density of the states minus log-density of the user's values, per unit, in nats.

        Without `v`, the result is a constant for each unit, which the method `log_partition` of the
        estimators includes. Its shape is (n_units,) or, in formats without scales, (1,).
        With rows `v`, the shape is (n_samples, n_units), unless the result is equal for all rows;
        in that case, it is the same as without `v`.
        """

    def log_jacobian(self, rbm: Any, v: Any = None, is_scored: Array | None = None) -> Array:
        """Sum of `log_jacobians` over units in nats: a scalar, or one value per row.

        The sum is over the units in the mask `is_scored`, of shape (n_samples, n_units), or over
        all units if it is None.
        """
        scored = True if is_scored is None else is_scored
        return np.asarray(np.where(scored, self.log_jacobians(rbm, v), 0).sum(axis=-1))


@final
class ArrayRows(RowFormat):
    """Format of arrays and sparse matrices with one column per unit."""

    def read(
        self, rbm: Any, X: Any, *, reset: bool, finite: bool, missing: bool, sample_weight: Any
    ) -> Any:
        units = rbm._visible_type
        missing = missing and rbm.missing == "marginalize" and not issparse(X)
        expected: Any = finite and compared_domain(units, rbm) is None
        options = {
            "accept_sparse": "csr" if units.support.values else False,
            "dtype": "numeric",
            "ensure_all_finite": "allow-nan" if expected and missing else expected,
        }
        is_mapped = isinstance(X, np.memmap)
        if not reset:
            check_has_arrays(rbm)
        with explain_missing_values(rbm), explain_other_types(X):
            if reset or self.is_known_to(rbm):
                X = validate_data(rbm, X, reset=reset, **options)
            else:  # arrays assigned by hand
                X = check_array(X, estimator=rbm, input_name="X", **options)
                check_width(X, parameter_shape(rbm, "components_", 2)[1], rbm)
            if X.dtype == object:  # None in a list is missing, like NaN
                X = X.astype(np.float64)
                if finite:
                    name = type(rbm).__name__
                    assert_all_finite(X, allow_nan=missing, estimator_name=name, input_name="X")
            if isinstance(X, np.ndarray) and not is_mapped:
                X = np.ascontiguousarray(X)  # rounding errors depend on the memory layout
            if issparse(X) and X.dtype.kind == "f" and X.dtype.itemsize not in (4, 8):
                # SciPy has no products of half precision, and NumPy no counts of long doubles.
                X = type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
            if issparse(X) and not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            if finite:
                check_domain(X, units, rbm, allow_nan=missing)
        return X

    def write(self, rbm: Any, v: Array, **_: Any) -> Any:
        return v

    def expected_values(self, rbm: Any) -> Callable[[Array, Array, Array], Array] | None:
        return None

    def warn_of_unknown(self, v: Any, consequence: str) -> None:
        pass

    def is_known_to(self, rbm: Any) -> bool:
        # Arrays of another width may have been assigned since the last fit.
        width = parameter_shape(rbm, "components_", 2)[1]
        return width == getattr(rbm, "n_features_in_", None)

    def array_length(self, rbm: Any, name: str, n_columns: int) -> int:
        return n_columns

    def observed_units(self, rbm: Any, v: Any, mask: Any = None) -> Array:
        if mask is None:
            return ~np.isnan(dense(v))
        return np.broadcast_to(checked_mask(mask, v.shape), v.shape)

    def constant_features(self, rbm: Any, is_varying: Array) -> list[Any]:
        is_scaled = not rbm._visible_type.support.values
        return np.flatnonzero(~is_varying).tolist() if is_scaled else []

    def names(self, rbm: Any, n_columns: int) -> dict[str, Array]:
        numbers = np.arange(n_columns)
        names = getattr(rbm, "feature_names_in_", numbers)
        names = names if len(names) == n_columns else numbers  # arrays assigned by hand
        return {"features": names, "columns": names, "feature_of_column": numbers}

    def log_jacobians(self, rbm: Any, v: Any = None) -> Array:
        return np.zeros(1)


def observed_units(rbm: Any, v: Any) -> Array | None:
    """Mask of the observed units of checked rows, or None if all are observed.

    Parameters
    ----------
    rbm : BaseRBM
        Estimator. If its `missing` is "raise", all units are observed.
    v : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
        Rows returned by `RowFormat.read`.

    Returns
    -------
    is_observed : ndarray of bool of shape (n_samples, n_units) or None
        Mask with True for observed units, or None if all units are observed.
    """
    if rbm.missing == "raise" or issparse(v) or v.dtype.kind != "f":
        return None
    is_observed: Array = rbm._row_format.observed_units(rbm, v)
    return None if is_observed.all() else is_observed


def checked_mask(values: Any, shape: tuple[int, int]) -> Array:
    """Validate the user's mask of observed values for rows of the shape `shape`.

    The mask may have the shape of all rows or of one row.

    Raises
    ------
    ValueError
        If the mask is not boolean or has another shape.
    """
    mask: Array = np.asarray(values)
    if mask.dtype != bool or mask.shape not in (shape, shape[1:]):
        raise ValueError(
            f"mask expected to be boolean and of shape {shape} or {shape[1:]}, True for observed "
            f"values, got {mask.dtype} of shape {mask.shape}."
        )
    return mask
