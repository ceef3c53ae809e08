"""Columns of a pandas or polars DataFrame or of an array, read and written alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skrbm.core.numerics import Array

MISSING = -1  # code of a value that is not there


def container_of(X: Any) -> str:
    """Name of the library whose table `X` is: "pandas", "polars", or "array" for all else."""
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    return library if library in ("pandas", "polars") and kind == "DataFrame" else "array"


def column_names(X: Any) -> list[Any]:
    """Names of the columns; those of an array are their numbers."""
    container = container_of(X)
    if container == "array":
        return list(range(X.shape[1]))
    return list(X.columns.tolist() if container == "pandas" else X.columns)


def columns_of(X: Any) -> list[Any]:
    """Columns as one-dimensional containers of the same library."""
    container = container_of(X)
    if container == "pandas":
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return list(X.get_columns()) if container == "polars" else list(X.T)


def dtype_name(column: Any) -> str:
    """Name of a column's type, from which `written` makes such a column again."""
    dtype = column.dtype
    if _is_pandas(column):
        is_ordered = getattr(dtype, "ordered", False)
        return "ordered category" if is_ordered else str(dtype)
    return type(dtype).__name__ if _is_polars(column) else np.dtype(dtype).str


def kind_of(column: Any) -> str:
    """What values a column has, by its type: "binary", "categorical", "numeric" or "" for others."""
    if isinstance(column, np.ndarray):
        return "binary" if column.dtype == bool else "numeric"
    dtype = column.dtype
    if _is_polars(column):
        name = type(dtype).__name__
        if name == "Boolean":
            return "binary"
        if name in ("String", "Categorical", "Enum", "Object", "Null"):
            return "categorical"
        return "numeric" if dtype.is_numeric() else ""
    if hasattr(dtype, "categories"):
        return "categorical"
    is_text = str(dtype).startswith(("object", "str"))
    return {"b": "binary", "i": "numeric", "u": "numeric", "f": "numeric"}.get(
        dtype.kind, "categorical" if is_text else ""
    )


def declared_categories(column: Any) -> list[Any] | None:
    """Categories that the type of a column lists, in their order; None where it lists none."""
    if isinstance(column, np.ndarray) or not hasattr(column.dtype, "categories"):
        return None
    if _is_polars(column):
        is_enum = type(column.dtype).__name__ == "Enum"
        return list(column.dtype.categories.to_list()) if is_enum else None
    return list(column.dtype.categories.tolist())


def factorized(column: Any) -> tuple[Array, list[Any]]:
    """Codes of the values (n_samples,), `MISSING` for those that are not there, and the values."""
    if _is_pandas(column):
        if hasattr(column.dtype, "categories"):
            return column.cat.codes.to_numpy(), list(column.dtype.categories.tolist())
        codes, values = column.factorize()
        return codes, list(values.tolist())
    numbers: dict[Any, int] = {}
    codes = np.fromiter(
        (
            MISSING if is_missing(x) else numbers.setdefault(x, len(numbers))
            for x in _listed(column)
        ),
        dtype=np.intp,
        count=len(column),
    )
    return codes, list(numbers)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def numbers_of(column: Any) -> Array:
    """Values of a numeric column in floating-point (n_samples,), NaN for those that are not there.

    Raises
    ------
    ValueError
        If a value is text, even such that spells a number.
    """
    dtype = np.float32 if str(column.dtype).lower() == "float32" else np.float64
    if kind_of(column) not in ("numeric", "binary") or column.dtype == object:
        values = [np.nan if is_missing(value) else value for value in _listed(column)]
        text = next((value for value in values if isinstance(value, str | bytes)), None)
        if text is not None:
            raise ValueError(f"text, {text!r}")
        return np.fromiter(map(float, values), dtype, len(values))
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "US":
            raise ValueError(f"text, {column[0].item()!r}")
        return column.astype(dtype)
    if _is_polars(column):
        return np.array([np.nan if x is None else x for x in column.to_list()], dtype)
    return np.array(column.to_numpy(dtype=dtype, na_value=np.nan), dtype)


def rounded(values: Array, dtype: str) -> Array:
    """Numbers as a column of that type can hold them."""
    try:
        kind = np.dtype(dtype.lower())
    except TypeError:
        return values
    if kind.kind not in "iu":
        return values
    limits = np.iinfo(kind)
    return np.clip(np.rint(values), limits.min, limits.max)


def written(
    container: str,
    names: Sequence[Any],
    dtypes: Sequence[str],
    columns: Sequence[Array],
    categories: Sequence[Array | None],
    index: Any = None,
) -> Any:
    """Table of a library.

    Parameters
    ----------
    container : {"pandas", "polars", "array"}
        Which library.
    names : sequence of length n_features
        Names of the columns.
    dtypes : sequence of str of length n_features
        From `dtype_name`.
    columns : sequence of ndarray of shape (n_samples,)
        Numbers, with NaN for missing ones, or objects, with None for missing ones.
    categories : sequence of ndarray or None
        What a categorical type lists.
    index : object, default=None
        Of a pandas DataFrame.

    Returns
    -------
    table : DataFrame or ndarray of shape (n_samples, n_features)
        In new memory.
    """
    if container == "pandas":
        import pandas as pd

        own = [_series(*column) for column in zip(columns, dtypes, categories, strict=True)]
        table = pd.concat([pd.Series(array) for array in own], axis=1, keys=range(len(own)))
        table.columns, table.index = list(names), table.index if index is None else index
        return table
    if container == "polars":
        return _polars_frame(names, dtypes, columns, categories)
    table = np.empty((len(columns[0]), len(columns)), dtype=dtypes[0])
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def _series(values: Array, dtype: str, categories: Array | None) -> Any:
    """Array of pandas of the type of that name."""
    import pandas as pd

    if dtype.endswith("category"):
        is_ordered = dtype.startswith("ordered")
        return pd.Categorical(values, categories=categories, ordered=is_ordered)
    return pd.array(values, dtype=dtype) if dtype != "object" else np.asarray(values, dtype)


def _polars_frame(
    names: Sequence[Any],
    dtypes: Sequence[str],
    columns: Sequence[Array],
    categories: Sequence[Array | None],
) -> Any:
    import polars as pl

    own = []
    for name, dtype, values, listed in zip(names, dtypes, columns, categories, strict=True):
        kind = pl.Enum(list(listed)) if dtype == "Enum" and listed is not None else None
        kind = getattr(pl, dtype) if kind is None else kind
        cells = values.tolist()
        if values.dtype != object:
            convert = int if "Int" in dtype else float
            cells = [None if math.isnan(cell) else convert(cell) for cell in cells]
        own.append(pl.Series(name, cells, dtype=kind, strict=False))
    return pl.DataFrame(own)


def _listed(column: Any) -> list[Any]:
    """Values of a column as Python's own."""
    return list(column.to_list() if _is_polars(column) else column.tolist())


def _is_pandas(column: Any) -> bool:
    return type(column).__module__.startswith("pandas")


def _is_polars(column: Any) -> bool:
    return type(column).__module__.startswith("polars")
