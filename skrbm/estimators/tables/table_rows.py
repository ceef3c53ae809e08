"""Row format of tables: validation, encoding and decoding for an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, final

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skrbm.core.numerics import Array
from skrbm.estimators.input.array_libraries import check_library
from skrbm.estimators.input.formats import RowFormat, checked_mask
from skrbm.estimators.input.validation import (
    DomainWarning,
    check_has_arrays,
    warn_user,
    write_attributes,
)
from skrbm.estimators.tables.codec import Table
from skrbm.estimators.tables.encoded import EncodedTable
from skrbm.estimators.tables.frames import as_table, column_names, container_of


def table_of(rbm: Any) -> Table:
    """Create the `Table` of an estimator from its fitted attributes."""
    check_is_fitted(rbm, "_data")
    return Table(kinds=rbm.kinds_, categories=rbm.categories_, **rbm._data["table"])


@final
class TableRows(RowFormat):
    """Format of data frames, and of arrays whose columns may have different kinds."""

    learned = (*RowFormat.learned, "kinds_", "categories_", "columns_")
    has_tables = True
    is_standardized = True

    def read(
        self, rbm: Any, X: Any, *, reset: bool, finite: bool, missing: bool, sample_weight: Any
    ) -> EncodedTable:
        check_library(rbm, X)
        if not reset:
            check_has_arrays(rbm)
        X = checked_table(rbm, X, reset=reset)
        if reset:
            rbm._validate_params()
            table = Table.of(X, rbm.kinds, rbm.numeric_scale, sample_weight)
            plain = {field.name: getattr(table, field.name) for field in fields(table)}
            public = {f"{name}_": plain.pop(name) for name in ("kinds", "categories")}
            write_attributes(rbm, public | {"columns_": table.columns, "_data": {"table": plain}})
        table = table_of(rbm)
        _check_other_names(table, X)
        rows = table.encode(X, rbm.handle_unknown, rbm.check_input)
        may_be_missing = not finite or (missing and rbm.missing == "marginalize")
        if not (may_be_missing or rows.is_complete):
            units = np.flatnonzero(~rows.observed_units.all(axis=0))
            others = ", as does RBMOutlierDetector(criterion='pseudo_likelihood')"
            if rbm.missing != "marginalize":
                others = " if missing='marginalize'"
            raise ValueError(
                f"Input X contains NaN, None or an unknown category in columns "
                f"{[table.names[table.order[i]] for i in units[:10]]}, but {type(rbm).__name__} "
                f"needs complete rows here. Impute them first, with impute or with RBMImputer in a "
                f"Pipeline. fit, transform, score_samples and log_likelihood accept incomplete "
                f"rows{others}."
            )
        return rows

    def write(
        self,
        rbm: Any,
        v: Array,
        *,
        given: Any = None,
        is_observed: Array | None = None,
        is_averaged: bool = False,
    ) -> Any:
        table = None if given is None else given.table
        return table_of(rbm).decode(v, table, is_observed, is_averaged=is_averaged)

    def expected_values(self, rbm: Any) -> Callable[[Array, Array, Array], Array] | None:
        table = table_of(rbm)
        if not table.mapped_columns:
            return None
        return partial(table.expected_values, deviation=np.sqrt(rbm.noise_variance_))

    def warn_of_unknown(self, v: Any, consequence: str) -> None:
        shown = {name: values[:10] for name, values in v.unknown.items() if values}
        if not shown:
            return
        name, values = next(iter(shown.items()))
        warn_user(
            f"X has categories that are neither declared nor in the first rows, {shown}: they are "
            f"treated as missing and are {consequence}. Name all categories before the first rows, "
            f"by kinds={{{name!r}: ('categorical', [..., {values[0]!r}])}} or by a categorical type, "
            f"or set handle_unknown='error'.",
            DomainWarning,
        )

    def is_known_to(self, rbm: Any) -> bool:
        return "table" in getattr(rbm, "_data", {})

    def array_length(self, rbm: Any, name: str, n_columns: int) -> int:
        is_scale = name == "noise_variance_"
        return len(table_of(rbm).groups["numeric"]) if is_scale else n_columns

    def observed_units(self, rbm: Any, v: Any, mask: Any = None) -> Array:
        if mask is None:
            return v.observed_units
        shape = (len(v), rbm.n_features_in_)
        return np.broadcast_to(checked_mask(mask, shape), shape)[:, table_of(rbm).order]

    def constant_features(self, rbm: Any, is_varying: Array) -> list[Any]:
        table = table_of(rbm)
        numeric = zip(table.groups["numeric"], is_varying[table.numeric_columns], strict=True)
        return [table.names[j] for j, varies in numeric if not varies]

    def names(self, rbm: Any, n_columns: int) -> dict[str, Array]:
        table = table_of(rbm)
        features = np.empty(len(table.names), dtype=object)
        features[:] = table.names  # names that are tuples remain the entries
        return {
            "features": features,
            "columns": table.columns,
            "feature_of_column": np.repeat(table.order, table.widths),
        }

    def log_jacobians(self, rbm: Any, v: Any = None) -> Array:
        table = table_of(rbm)
        constant = np.log(table.scale[table.order])
        if v is None or not table.mapped_columns:
            return constant
        log_jacobians, n_columns = np.tile(constant, (len(v), 1)), sum(table.widths)
        numbers = v.numbers if isinstance(v, EncodedTable) else v
        for column, scores in table.mapped_columns.items():
            from_end = column - n_columns  # numbers are the last columns and the last units
            log_jacobians[:, from_end] = -scores.log_slope(numbers[:, from_end])
        return log_jacobians


def _check_other_names(table: Table, X: Any) -> None:
    """Raise a ValueError if names that are no strings, which scikit-learn ignores, differ."""
    if "array" in (table.container, container_of(X)):
        return
    names = column_names(X)
    if names != table.names and not any(isinstance(name, str) for name in names + table.names):
        raise ValueError(
            f"Columns of X expected to be those of fit in the same order, {table.names[:10]}, got "
            f"{names[:10]}."
        )


def checked_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate the number and the names of the columns of a table.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator that reads the table.
    X : DataFrame or array-like
        Table.
    reset : bool
        If True, the number and the names of the columns are stored in the estimator. If False, they
        are compared with the stored number and names.

    Returns
    -------
    table : DataFrame or ndarray of shape (n_samples, n_features)
        Validated table. A data frame is returned unchanged; other input is converted to an array.

    Raises
    ------
    ValueError
        If `X` does not have two dimensions, if there are no rows or no columns, if the columns
        differ from the columns of the estimator, or if two columns have the same name.
    TypeError
        If `X` is sparse, or if some column names are strings and others are not.
    """
    if container_of(X) == "array":
        X = as_table(X)
        return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    names = column_names(X)
    if not len(X) or not names:
        what, count = ("sample", len(X)) if names else ("feature", len(names))
        raise ValueError(
            f"Found array with {count} {what}(s) (shape={(len(X), len(names))}) while a minimum of "
            f"1 is required by {type(estimator).__name__}."
        )
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"Columns of X expected to have unique names, got {twice} more than once. Rename them."
        )
    return validate_data(estimator, X, reset=reset, skip_check_array=True)
