"""Formats of rows: from what users hand over to the columns of a machine, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, final

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skrbm.core.numerics import Array, dense
from skrbm.estimators.input.validation import (
    check_domain,
    check_width,
    compared_domain,
    explain_input_errors,
    parameter_shape,
)


class RowFormat(ABC):
    """Way from the rows that users hand over to columns of a machine's states, and back.

    A format has no attributes of its own: what it learned is the estimator's.

    Attributes
    ----------
    learned : tuple of str
        Names of the attributes that `read` learns from rows.
    has_tables : bool
        Whether rows may be of other things than numbers.
    is_standardized : bool
        Whether numbers are read in standard deviations, which single precision is enough for.
    """

    learned: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")
    has_tables: ClassVar[bool] = False
    is_standardized: ClassVar[bool] = False

    @abstractmethod
    def read(
        self,
        rbm: Any,
        X: Any,
        *,
        reset: bool,
        finite: bool,
        missing: bool,
        sample_weight: Array | None = None,
    ) -> Any:
        """Columns of numbers of any type that is finite, or unless `finite` of any type.

        Parameters
        ----------
        rbm : BaseRBM
            Says what it expects, and learns the features' number and names if that is reset.
        X : object
            Rows as the user gave them.
        reset : bool
            Whether to learn the format from these rows.
        finite : bool
            Whether all values have to be finite and in the units' domain.
        missing : bool
            Whether values may be missing all the same, if the estimator sums over them.
        sample_weight : ndarray of shape (n_samples,), default=None
            Positive weights of the rows that the format is learned from; None for one each.

        Returns
        -------
        v : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
            With NaN for what is missing.
        """

    @abstractmethod
    def write(
        self,
        rbm: Any,
        v: Array,
        *,
        given: Any = None,
        is_known: Array | None = None,
        is_averaged: bool = False,
    ) -> Any:
        """Rows as the user wants them from states or their means (n_samples, n_columns).

        What `is_known`, by unit, of the rows `given` is kept as it was; means of
        `expected_values` are `is_averaged`.
        """

    @abstractmethod
    def expected_values(self, rbm: Any) -> Callable[[Array, Array], Array] | None:
        """Map from conditional means and draws of states to means of values; None if they are equal."""

    @abstractmethod
    def warn_if_unlearned(self, v: Any) -> None:
        """Warn of values in rows from `read` that training can only take for missing ones."""

    @abstractmethod
    def is_known_to(self, rbm: Any) -> bool:
        """True if a fitted estimator still has the format that its arrays go with."""

    @abstractmethod
    def array_length(self, rbm: Any, name: str, n_columns: int) -> int:
        """Number of values of a public array of the visible layer."""

    @abstractmethod
    def known_units(self, rbm: Any, v: Any, mask: Any = None) -> Array:
        """Mask of the known units of each row (n_samples, n_units): from a user's mask, or not NaN."""

    @abstractmethod
    def constant_features(self, rbm: Any, is_varying: Array) -> list[Any]:
        """Numbers or names of real-valued features whose scale no data tell."""

    @abstractmethod
    def names(self, rbm: Any, n_columns: int) -> dict[str, Array]:
        """Names of the "features" and of the "columns", and the "feature_of_column" of each."""

    @abstractmethod
    def log_jacobians(self, rbm: Any, v: Any = None) -> Array:
        """Log-densities of the states above those of the rows as given, in nats.

        Of each unit (n_units,), or zero for all (1,); without rows `v`, what is common to all rows, and
        with them, if it differs, of each (n_samples, n_units).
        """

    def log_jacobian(self, rbm: Any, v: Any = None, is_scored: Array | None = None) -> Array:
        """Sum of `log_jacobians` over the scored units of each row: () or (n_samples,)."""
        scored = True if is_scored is None else is_scored
        return np.asarray(np.where(scored, self.log_jacobians(rbm, v), 0).sum(axis=-1))


@final
class ArrayRows(RowFormat):
    """Arrays and sparse matrices, each column of which is a unit."""

    def read(
        self,
        rbm: Any,
        X: Any,
        *,
        reset: bool,
        finite: bool,
        missing: bool,
        sample_weight: Array | None = None,
    ) -> Any:
        units, missing = rbm._visible_type, missing and rbm.missing == "marginalize"
        expected: Any = finite and compared_domain(units, rbm) is None
        options = {
            "accept_sparse": "csr" if units.support.values else False,
            "dtype": "numeric",
            "ensure_all_finite": "allow-nan" if expected and missing else expected,
        }
        width, is_mapped = None, isinstance(X, np.memmap)
        if not reset:
            check_is_fitted(rbm)
            width = parameter_shape(rbm, "components_", 2)[1]
        with explain_input_errors(rbm):
            if width == getattr(rbm, "n_features_in_", None) or reset:
                X = validate_data(rbm, X, reset=reset, **options)
            else:  # arrays assigned by hand
                X = check_array(X, estimator=rbm, input_name="X", **options)
            if width is not None:
                check_width(X, width, rbm)
            if X.dtype == object:  # None in a list is what is missing, like NaN
                X = X.astype(np.float64)
                if finite:
                    name = type(rbm).__name__
                    assert_all_finite(X, allow_nan=missing, estimator_name=name, input_name="X")
            if isinstance(X, np.ndarray) and not is_mapped:
                X = np.ascontiguousarray(X)  # sums in another order are other bits
            if issparse(X) and X.dtype == np.float16:  # SciPy lets them be made, but not be used
                X = type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
            if issparse(X) and not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            if finite:
                check_domain(X, units, rbm, allow_nan=missing and not issparse(X))
        return X

    def write(self, rbm: Any, v: Array, **_: Any) -> Any:
        return v

    def expected_values(self, rbm: Any) -> Callable[[Array, Array], Array] | None:
        return None

    def warn_if_unlearned(self, v: Any) -> None:
        pass

    def is_known_to(self, rbm: Any) -> bool:
        # Arrays of another width may have been assigned since the last fit.
        width = parameter_shape(rbm, "components_", 2)[1]
        return width == getattr(rbm, "n_features_in_", None)

    def array_length(self, rbm: Any, name: str, n_columns: int) -> int:
        return n_columns

    def known_units(self, rbm: Any, v: Any, mask: Any = None) -> Array:
        if mask is None:
            return np.asarray(~np.isnan(dense(v)))
        return np.broadcast_to(checked_mask(mask, v.shape), v.shape)

    def constant_features(self, rbm: Any, is_varying: Array) -> list[Any]:
        is_scaled = not rbm._visible_type.support.values
        return list(np.flatnonzero(~is_varying).tolist()) if is_scaled else []

    def names(self, rbm: Any, n_columns: int) -> dict[str, Array]:
        numbers = np.arange(n_columns)
        names = getattr(rbm, "feature_names_in_", numbers)
        names = names if len(names) == n_columns else numbers  # arrays assigned by hand
        return {"features": names, "columns": names, "feature_of_column": numbers}

    def log_jacobians(self, rbm: Any, v: Any = None) -> Array:
        return np.zeros(1)


def known_units(rbm: Any, v: Any) -> Array | None:
    """Mask of the known units of checked rows; None where an estimator has nothing to sum over.

    Parameters
    ----------
    rbm : BaseRBM
        Its `missing` says whether values may be.
    v : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
        From `RowFormat.read`.

    Returns
    -------
    is_known : ndarray of bool of shape (n_samples, n_units) or None
        None for complete rows.
    """
    if rbm.missing == "raise" or issparse(v) or v.dtype.kind != "f":
        return None
    is_known: Array = rbm._row_format.known_units(rbm, v)
    return None if is_known.all() else is_known


def checked_mask(values: Any, shape: tuple[int, int]) -> Array:
    """Mask of known values of rows of that shape, or a ValueError if it is none."""
    mask: Array = np.asarray(values)
    if mask.dtype != bool or mask.shape not in (shape, shape[1:]):
        raise ValueError(
            f"mask expected to be boolean and of shape {shape} or {shape[1:]}, True where a "
            f"value is known, got {mask.dtype} of shape {mask.shape}."
        )
    return mask
