"""Common interface to the columns of pandas and polars DataFrames and of arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from skrbm.core.numerics import Array
from skrbm.estimators.input.validation import is_time_type

MISSING = -1  # code of a missing value
NUMPY_DATES = np.datetime64, np.timedelta64
TIMES = date, time, timedelta, *NUMPY_DATES
DOUBLE = np.dtype(np.float64)
FINE_UNITS = "ns", "ps", "fs", "as"  # of NumPy, finer than times of Python
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOOLEANS = "bool", "boolean", "|b1"  # names from `dtype_name`, in lower case
# Types of a column whose known values do not fit into the type that was learned, in this order.
WIDER = {"pandas": ("float64", "object"), "polars": ("Float64", "Object"), "array": ("f8", "O")}
# Limits of integers of polars that NumPy does not have, in the form of `numpy.iinfo`.
WIDE_LIMITS = {
    "int128": SimpleNamespace(min=-(2**127), max=2**127 - 1, dtype=object),
    "uint128": SimpleNamespace(min=0, max=2**128 - 1, dtype=object),
}
POLARS_KINDS = {"Boolean": "binary"} | dict.fromkeys(
    ("String", "Categorical", "Enum", "Object", "Null"), "categorical"
)


def as_table(X: Any) -> Any:
    """Return data frames and arrays unchanged, and convert nested lists to an array.

    The array of a list with text has objects: NumPy would convert the numbers to text as well.
    """
    if hasattr(X, "dtype") or hasattr(X, "columns"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def container_of(X: Any) -> str:
    """Type of a table: "pandas", "polars", or "array" for all objects other than DataFrames."""
    is_frame = _library_of(X) in ("pandas", "polars") and type(X).__name__ == "DataFrame"
    return _library_of(X) if is_frame else "array"


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a table or, for an array, their indices."""
    return list(range(X.shape[1])) if container_of(X) == "array" else list(X.columns)


def column_index(names: list[Any], column: Any) -> int | None:
    """Index of the column with a given name or index, or None if there is no such column.

    A negative index counts from the end. A truth value can be a name, but not an index.
    """
    is_flag = isinstance(column, bool | np.bool_)
    for index, name in enumerate(names):  # True and 1 are equal
        if name == column and isinstance(name, bool | np.bool_) == is_flag:
            return index
    if not isinstance(column, int | np.integer) or is_flag:
        return None
    return int(column) % len(names) if -len(names) <= column < len(names) else None


def columns_of(X: Any) -> list[Any]:
    """Columns of a table: pandas or polars Series, or one-dimensional arrays."""
    container = container_of(X)
    if container == "pandas":
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return X.get_columns() if container == "polars" else list(X.T)


def has_only(X: Any, is_expected: Callable[[Array], Array]) -> bool:
    """Test that a table has numbers alone, all of which pass an elementwise test.

    The columns of a data frame are read one by one: an array of several types would have objects.
    Arrays that do not have two dimensions, which every fit refuses, have no values to test.
    """
    if container_of(X) == "array":
        X = np.asarray(X)
        parts = [X] if X.ndim == 2 else []
    else:
        parts = columns_of(X)
    arrays = (np.asarray(part) for part in parts)
    return all(array.dtype.kind in "biuf" and is_expected(array).all() for array in arrays)


def dtype_name(column: Any) -> str:
    """Name of the data type of a column, in the form that `written` expects."""
    dtype, library = column.dtype, _library_of(column)
    if library == "polars":
        if dtype.is_decimal():
            return str(dtype)
        return f"{type(dtype).__name__} {getattr(dtype, 'time_unit', '')}".rstrip()
    if library == "numpy":
        return dtype.str
    if hasattr(dtype, "fill_value"):  # without the type that NumPy 2 writes before a number
        return f"Sparse[{dtype.subtype}, {dtype.fill_value}]"
    return "ordered category" if getattr(dtype, "ordered", False) else str(dtype)


def kind_of(column: Any) -> str:
    """Kind inferred from the data type of a column, or "" for unsupported types.

    Columns of arrays of text or objects are "numeric"; `numbers_of` refuses their text.
    """
    dtype, library = column.dtype, _library_of(column)
    if library == "numpy":
        numeric = "" if dtype.kind in "cmM" else "numeric"  # neither complex numbers nor times
        return "binary" if dtype == bool else numeric
    if library == "polars":
        numeric = "numeric" if dtype.is_numeric() else ""
        return POLARS_KINDS.get(type(dtype).__name__, numeric)
    if hasattr(dtype, "categories") or str(dtype).startswith(("object", "str", "large_string")):
        return "categorical"
    return {"b": "binary", "i": "numeric", "u": "numeric", "f": "numeric"}.get(dtype.kind, "")


def has_times(column: Any) -> bool:
    """True if a column has dates, times or durations, by its data type or among its objects."""
    if is_time_type(column.dtype):
        return True
    return any(isinstance(x, TIMES) and not is_missing(x) for x in cells_of(column))


def declared_categories(column: Any) -> list[Any] | None:
    """Categories that the data type of a column declares, or None if it declares none."""
    has_categories = type(column.dtype).__name__ in ("CategoricalDtype", "Enum")
    return column.dtype.categories.to_list() if has_categories else None


@contextmanager
def explain_unhashable(name: Any) -> Iterator[None]:
    """Explain the errors of `factorized` and of sets about values of a named column."""
    try:
        yield
    except TypeError as error:
        raise TypeError(
            f"Column {name!r} expected to have text, numbers or other hashable values, got "
            f"{error}. Convert the values, for example by str."
        ) from error


def factorized(column: Any) -> tuple[Array, list[Any]]:
    """Encode the values of a column as integers.

    The first result, of shape (n_samples,), is the index of each value in the list of distinct
    values, or `MISSING` for a missing value. The second result is this list.

    Raises
    ------
    TypeError
        If a value is not hashable, such as a list.
    """
    if _library_of(column) == "pandas":
        codes, values = column.factorize()
        return codes, values.tolist()
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        values, codes = np.unique(column, return_inverse=True)
        is_known = ~np.isnan(values)
        return np.where(is_known[codes], codes, MISSING), values[is_known].tolist()
    numbers: dict[Any, int] = {}
    codes = [
        MISSING if is_missing(x) else numbers.setdefault(x, len(numbers)) for x in cells_of(column)
    ]
    return np.array(codes, dtype=np.intp), list(numbers)


def cells_of(column: Any) -> Array:
    """Values of a column as an array of Python objects.

    Times of NumPy that are not a whole number of microseconds are integers in their unit.

    Raises
    ------
    ValueError
        If a time of polars is not a whole number of microseconds, as are times of Python.
    """
    if _library_of(column) != "polars":
        cells = np.fromiter(column.tolist(), object, len(column))
        kind = column.dtype.kind if isinstance(column, np.ndarray) else ""
        if kind and kind in "mM" and np.datetime_data(column.dtype)[0] in FINE_UNITS:
            whole = column.astype(f"{kind}8[us]")
            cells = np.where(whole == column, whole.astype(object), cells)
        return cells
    is_nanoseconds = str(column.dtype) == "Time" or getattr(column.dtype, "time_unit", "") == "ns"
    if is_nanoseconds and (column.to_physical() % 1000 != 0).any():
        raise ValueError(
            f"Column {column.name!r} expected to have times in whole microseconds, got fractions. "
            f"Round the times, for example by .dt.round('1us')."
        )
    return np.fromiter(column.to_list(), object, len(column))


def precision_of(dtype: str) -> np.dtype[Any]:
    """Floating-point type of a column, given a name from `dtype_name`; else double precision."""
    name = {"float[pyarrow]": "float32"}.get(dtype, dtype.lower())
    return np.dtype(name if re.fullmatch(r"[<>=]?f(loat)?\d+", name) else DOUBLE)


def without_numpy_times(value: Any) -> Any:
    """Time of Python for a scalar time of NumPy, as in `cells_of`; other values are unchanged."""
    return cells_of(np.array([value]))[0] if isinstance(value, NUMPY_DATES) else value


def comparable(value: Any, precision: np.dtype[Any] = DOUBLE) -> Any:
    """Value that is equal for equal categories.

    Floats are rounded to a precision. Times of any unit, and of any time zone, are equal if they
    are the same instant.
    """
    value = without_numpy_times(value)
    if isinstance(value, datetime):  # times that a zone has twice a year equal no time of another
        return value if value.tzinfo is None else value - EPOCH
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    is_double = precision == DOUBLE and isinstance(value, float)
    if is_double or not isinstance(value, float | np.floating):
        return value
    with np.errstate(over="ignore"):
        result = precision.type(value)
    return result if np.isfinite(result) else value


def is_missing(value: Any) -> bool:
    """True for None, NaN of floats and decimals, NaT of NumPy, and NaT and NA of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, NUMPY_DATES):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and math.isnan(value)


def numbers_of(column: Any) -> Array:
    """Values of a numeric column as floating-point numbers, with NaN for missing values.

    Raises
    ------
    ValueError
        If a value is text, even if the text represents a number.
    TypeError
        If a value is neither a number nor text, such as a date.
    OverflowError
        If an integer is too large for double precision.
    """
    dtype = np.float32 if str(column.dtype).lower() == "float32" else np.float64
    is_array = isinstance(column, np.ndarray)
    if kind_of(column) not in ("numeric", "binary") or (is_array and column.dtype.kind in "OSU"):
        values = [np.nan if is_missing(value) else value for value in cells_of(column)]
        text = next((value for value in values if isinstance(value, str | bytes)), None)
        if text is not None:
            raise ValueError(f"text, {text!r}")
        # NumPy converts dates in nanoseconds to numbers; `tolist` has done so in arrays of dates
        if (is_array and column.dtype.kind in "mM") or any(
            isinstance(x, NUMPY_DATES) for x in values
        ):
            raise TypeError("dates or times")
        return np.fromiter(map(float, values), dtype, len(values))
    if is_array:
        return np.asarray(column.astype(dtype))
    if _library_of(column) == "polars":
        import polars as pl

        return np.array(column.cast(pl.Float64).to_numpy(), dtype)
    return np.array(column.to_numpy(dtype=dtype, na_value=np.nan), dtype)


def rounded(values: Array, dtype: str) -> Array:
    """Numbers rounded to a boolean or integer type, and clipped; for other types, unchanged."""
    plain = re.split(r"[\[\],]", dtype.lower().removeprefix("sparse["))[0]  # without "[pyarrow]"
    if plain in BOOLEANS:
        return values > 0.5
    try:
        limits: Any = WIDE_LIMITS.get(plain) or np.iinfo(plain)
    except (TypeError, ValueError):
        return values
    whole = np.rint(values)
    if limits.dtype is object:  # integers of Python
        clipped = [min(max(int(x), limits.min), limits.max) for x in whole.tolist()]
        return np.array(clipped, object)
    with np.errstate(invalid="ignore"):
        integers = whole.astype(limits.dtype)
    # Not numpy.clip: no float equals the largest 64-bit integer.
    integers[whole >= limits.max], integers[whole <= limits.min] = limits.max, limits.min
    return integers


def written(
    container: str,
    names: Sequence[Any],
    dtypes: Sequence[str],
    columns: Sequence[Array],
    categories: Sequence[Array | None],
    is_known: Sequence[Array],
    index: Any,
) -> Any:
    """Create a table from its columns.

    Parameters
    ----------
    container : {"pandas", "polars", "array"}
        Type of the table.
    names : sequence of length n_features
        Names of the columns.
    dtypes : sequence of str of length n_features
        Names of the data types of the columns, as returned by `dtype_name`. If a known value of a
        column would be changed by its data type, the first of the types `WIDER` that keeps all
        known values is used instead. An array has one data type for all columns.
    columns : sequence of ndarray of shape (n_samples,)
        Columns of numbers, with NaN for missing values, or of objects, with None for missing
        values.
    categories : sequence of ndarray or None
        Categories of each binary or categorical column, and None for other columns.
    is_known : sequence of ndarray of bool of shape (n_samples,)
        Mask of the known values of each column.
    index : object
        Index of the new table if it is a pandas DataFrame. If None, the rows are numbered.

    Returns
    -------
    table : DataFrame or ndarray of shape (n_samples, n_features)
        New table.
    """
    wider = WIDER[container]
    if container == "array":
        values = np.column_stack(columns)
        dtype = np.dtype(dtypes[0])
        if dtype.kind in "US":  # a category may be longer than the learned values
            dtype = np.result_type(dtype, values.astype(dtype.kind))
        cells = _converted(
            values.ravel().astype, values.ravel(), (dtype, *wider), np.ravel(is_known, "F")
        )
        return cells.reshape(values.shape)
    write = _series if container == "pandas" else _polars_series
    series = [
        _converted(partial(write, values, listed), values, (dtype, *wider), mask)
        for values, listed, dtype, mask in zip(columns, categories, dtypes, is_known, strict=True)
    ]
    if container == "polars":
        import polars as pl

        return pl.DataFrame(dict(zip(names, series, strict=True)))
    import pandas as pd

    table = pd.concat(series, axis=1, keys=range(len(series)))
    table.columns = pd.Index(list(names))  # tuples become a MultiIndex
    table.index = table.index if index is None else index
    return table


def in_library(table: Any, library: str, index: Any = None) -> Any:
    """Convert a data frame to one of "pandas" or "polars", column by column.

    Arrays, and frames of this library, are returned unchanged, as are all tables for "default". A
    converted frame of pandas has the given index.
    """
    if library == "default" or container_of(table) in ("array", library):
        return table
    columns = {}
    for name, column in zip(column_names(table), columns_of(table), strict=True):
        needs_objects = dtype_name(column).lower() in WIDE_LIMITS
        array = cells_of(column) if needs_objects else column.to_numpy()
        if array.dtype == object or getattr(column.dtype, "time_zone", None):
            array = [None if is_missing(x) else x for x in cells_of(column)]
        columns[str(name) if library == "polars" else name] = array
    if library == "polars":
        import polars as pl

        return pl.DataFrame(columns, strict=False)  # converts values of several types
    import pandas as pd

    table = pd.DataFrame(columns)
    return table if index is None else table.set_axis(index)


def _converted(
    write: Callable[[Any], Any], values: Array, dtypes: Sequence[Any], is_known: Array
) -> Any:
    """Column of the first of several data types that keeps all known values.

    `write` creates the column, given a data type. The last type can hold any value.
    """
    known = values[is_known]
    for dtype in dtypes[:-1]:
        try:
            with np.errstate(all="ignore"):  # a value that overflows is not kept
                column = write(dtype)
        except (TypeError, ValueError, OverflowError):
            if not len(known):
                raise
        else:
            if not len(known) or (cells_of(column)[is_known] == known).all():
                return column
    return write(dtypes[-1])


def _series(values: Array, categories: Array | None, dtype: str) -> Any:
    """Create a pandas Series from values and the name of its data type.

    A ValueError is raised if a value is not among the categories of a categorical type.
    """
    import pandas as pd

    if dtype.endswith("category"):
        if categories is not None and not set(values) <= {None, *categories.tolist()}:
            raise ValueError("other categories")
        is_ordered = dtype.startswith("ordered")
        return pd.Series(pd.Categorical(values, categories=categories, ordered=is_ordered))
    # pandas parses the names of sparse types with the default fill value alone
    sparse = re.fullmatch(r"Sparse\[((?:u?int|float)\d+|bool), (?!nan)(.+)\]", dtype)
    if sparse is None:
        return pd.Series(values, dtype=dtype)
    kind, fill = np.dtype(sparse[1]), sparse[2]
    fill_value = fill == "True" if kind == bool else kind.type(fill).item()
    return pd.Series(values, dtype=pd.SparseDtype(kind, fill_value))


def _polars_series(values: Array, categories: Array | None, dtype: str) -> Any:
    """Create a polars Series from values and the name of its data type."""
    import polars as pl

    type_name, *sizes = re.findall(r"[A-Z]\w*|\d+", dtype)  # "Decimal(precision=10, scale=2)"
    kind = getattr(pl, type_name)
    if sizes:
        kind = kind(*map(int, sizes))
    elif dtype == "Enum" and categories is not None:
        kind = kind(list(categories))
    numbers = values.tolist()
    if type_name == "Decimal":  # polars would convert floats by truncation
        numbers = [None if is_missing(x) else Decimal(f"{x:.{sizes[1]}f}") for x in numbers]
    series = pl.Series(numbers, dtype=kind, strict=False)
    if type_name in ("Datetime", "Duration"):  # created in microseconds; "Datetime ms"
        series = series.dt.cast_time_unit(dtype.split()[1])
    return series


def _library_of(container: Any) -> str:
    """Name of the library that defines the type of a table or column."""
    return type(container).__module__.partition(".")[0]
