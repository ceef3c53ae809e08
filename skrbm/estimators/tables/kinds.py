"""Kinds of the columns of a table, with their categories or scales."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np

from skrbm.core.numerics import Array
from skrbm.estimators.input.validation import warn_user
from skrbm.estimators.tables.frames import (
    cells_of,
    column_index,
    column_names,
    columns_of,
    comparable,
    declared_categories,
    explain_unhashable,
    factorized,
    has_times,
    is_missing,
    kind_of,
    numbers_of,
    without_numpy_times,
)
from skrbm.estimators.tables.mixtures import MixtureScale, NumericScale, normal_scale
from skrbm.estimators.tables.scores import MAX_VALUE, moments

MIN_IDENTIFIERS = 20  # a column with more distinct values may consist of identifiers
# Expected number of pairs of equal integers, if integers between the extremes were drawn at random.
# If it is at least 10, a column without such a pair is taken for identifiers: the probability of no
# pair is at most e^-10.
MIN_EXPECTED_TIES = 10
MAX_EXACT_INTEGER = 2**53  # largest integer up to which double precision represents all
# Numbers of few values are better categories where rare combinations matter
# (benchmarks/results/adbench.json).
MAX_FEW_VALUES, MIN_ROWS_PER_VALUE = 12, 10
COLUMN_KINDS = "binary", "categorical", "numeric", "interval"
# Transformations of numeric columns by `numeric_scale`; "standard" has none.
LEARNED_SCALES: dict[str, Any] = {"normal": normal_scale, "mixture": MixtureScale.of}


class ColumnKind(NamedTuple):
    """Kind of a column, with its categories or its scale.

    Attributes
    ----------
    kind : str or tuple
        Kind: "binary", "categorical", "numeric", or ("interval", low, high).
    categories : ndarray or None
        Categories of a binary or categorical column, and None for other kinds.
    origin, scale : float
        Location and scale of the column. A number x is encoded as ``(x - origin) / scale`` if
        `scores` is None.
    is_empty : bool
        True if the column has no observed values.
    scores : NumericScale or None, default=None
        Transformation of a numeric column.
    """

    kind: Any
    categories: Array | None
    origin: float
    scale: float
    is_empty: bool
    scores: NumericScale | None = None


def given_kinds(names: list[Any], kinds: Any) -> list[Any]:
    """Kind of each column in the parameter `kinds`, or "auto" for columns that are not listed.

    Parameters
    ----------
    names : list of length n_features
        Names of the columns.
    kinds : "auto" or dict
        Parameter of `TabularRBM`.

    Returns
    -------
    given : list of length n_features
        Kinds, which are not yet validated.

    Raises
    ------
    ValueError
        If a key is neither the name nor the index of a column, or if two keys are the same column.
    """
    given: list[Any] = ["auto"] * len(names)
    keys: dict[int, Any] = {}
    for key, kind in ({} if isinstance(kinds, str) else kinds).items():
        index = column_index(names, key)
        if index is None:
            raise ValueError(f"kinds expected keys among the columns {names}, got {key!r}.")
        if index in keys:
            raise ValueError(
                f"kinds expected each column once, got column {names[index]!r} by {keys[index]!r} "
                f"and {key!r}. Remove one of these keys."
            )
        given[index], keys[index] = kind, key
    return given


def column_kind(
    name: Any, column: Any, given: Any, numeric_scale: str, counts: Array
) -> ColumnKind:
    """Learn the kind of a column, with its categories or scale.

    Parameters
    ----------
    name : object
        Name of the column, for messages.
    column : Series or ndarray of shape (n_samples,)
        Values.
    given : object
        Kind from `given_kinds`. If "auto", the kind is inferred from the data type.
    numeric_scale : {"normal", "mixture", "standard"}
        Scaling of numbers, as in `TabularRBM`.
    counts : ndarray of shape (n_samples,)
        Weights of the rows, scaled so that their sum is the effective number of rows.

    Returns
    -------
    kind : ColumnKind
        Kind of the column, with its categories or scale.

    Raises
    ------
    ValueError
        If the kind is unknown or does not match the values, if two categories are equal or print
        alike, or if a number is larger than `MAX_VALUE` in magnitude.
    TypeError
        If a value of a numeric or interval column is neither a number nor text, or if a value of a
        discrete column is not hashable, such as a list.

    Warns
    -----
    UserWarning
        If the column seems to consist of identifiers, or if many numbers become categories because
        of the data type.
    """
    named = given if isinstance(given, tuple | list) and given else (given,)
    kind, *options = named if isinstance(named[0], str) else ("",)
    is_inferred = kind == "auto"
    kind = kind_of(column) if is_inferred else kind
    n_options = {"numeric": (0,), "interval": (0, 2)}.get(kind, (0, 1))
    if is_inferred and not kind and has_times(column):
        raise ValueError(_dates_refused(name, column))
    if kind not in COLUMN_KINDS or len(options) not in n_options:
        raise ValueError(
            f"Kind of column {name!r} expected to be one of {COLUMN_KINDS}, ('interval', low, "
            f"high) or ('categorical', categories), got {given!r} for a column of type "
            f"{column.dtype}. 'interval' alone is from 0 to 1. Name the kind, as in "
            f"kinds={{{name!r}: {kind_of(column) or 'categorical'!r}}}, or convert the column to "
            f"numbers or text."
        )
    if kind in ("binary", "categorical"):
        found = _discrete(name, column, kind, options)
        if is_inferred and str(column.dtype).lower() == "object":
            _warn_of_objects(name, found.categories)
        return found
    numbers = checked_numbers(name, column)
    found = _real(name, numbers, kind, options, numeric_scale, counts)
    _warn_if_rounded(name, column, numbers)
    if kind == "numeric" and is_inferred:
        _warn_if_numbered(name, numbers)
    return found


def checked_numbers(name: Any, column: Any) -> Array:
    """Validate a column of numbers.

    Parameters
    ----------
    name : object
        Name of the column, for messages.
    column : Series or ndarray of shape (n_samples,)
        Values.

    Returns
    -------
    numbers : ndarray of shape (n_samples,)
        Finite numbers, and NaN for missing values.

    Raises
    ------
    ValueError
        If a value is text, infinite or too large for double precision.
    TypeError
        If a value is neither a number nor text, such as a date.
    """
    try:
        numbers = numbers_of(column)
    except (TypeError, ValueError, OverflowError) as error:
        if has_times(column):
            raise TypeError(_dates_refused(name, column)) from error
        category = TypeError if isinstance(error, TypeError) else ValueError
        raise category(
            f"Column {name!r} expected to have numbers, got {error}. Convert it to numbers, or fit "
            f"TabularRBM(kinds={{{name!r}: 'categorical'}})."
        ) from error
    if np.isinf(numbers).any():
        raise ValueError(
            f"Column {name!r} expected finite numbers or missing values, got infinity."
        )
    return numbers


def _dates_refused(name: Any, column: Any) -> str:
    """Message of the error for a column of dates, times or durations."""
    conversion = "to days, counted from the first date"
    if hasattr(column, "iloc") and str(column.dtype).startswith("datetime64"):
        dates = f"df[{name!r}]"
        conversion = f"by {dates} = ({dates} - {dates}.min()) / pd.Timedelta(days=1)"
    return (
        f"Column {name!r} has dates or times ({column.dtype}), which TabularRBM does not accept as "
        f"numbers. Convert them, for example {conversion}, and set kinds={{{name!r}: 'numeric'}}. "
        f"Dates with few different values may be 'categorical'."
    )


def are_numbers(categories: Any, kind: type = Real) -> bool:
    """Test for a non-empty array of categories that are all numbers of an abstract type."""
    return bool(len(categories)) and all(isinstance(x, kind) for x in categories.tolist())


def columns_of_few_values(X: Any, n_rows: float) -> list[Any]:
    """Names of the columns of numbers with at most `MAX_FEW_VALUES` distinct values.

    There are at least `MIN_ROWS_PER_VALUE` of `n_rows`, the effective number of rows, for each of
    these values.
    """
    few = []
    for name, column in zip(column_names(X), columns_of(X), strict=True):
        if kind_of(column) == "numeric":
            numbers = checked_numbers(name, column)
            n_values = len(np.unique(numbers[~np.isnan(numbers)]))
            if n_values <= min(MAX_FEW_VALUES, n_rows / MIN_ROWS_PER_VALUE):
                few.append(name)
    return few


def _warn_of_objects(name: Any, categories: Any) -> None:
    """Warn if more than `MAX_FEW_VALUES` categories of a column of objects are all numbers."""
    if len(categories) > MAX_FEW_VALUES and are_numbers(categories, Number):  # or decimals
        warn_user(
            f"Column {name!r} has the data type object, so its {len(categories)} numbers are "
            f"categories without an order. Convert it, for example by pandas.to_numeric, or set "
            f"kinds={{{name!r}: 'numeric'}} (or 'categorical', if they are codes).",
            UserWarning,
        )


def _warn_if_numbered(name: Any, numbers: Array) -> None:
    """Warn if a column consists of integers without repetitions, like row numbers.

    The warning is issued only if there are more than `MIN_IDENTIFIERS` integers and repetitions are
    expected. Integers that are drawn independently from any distribution between the extremes have,
    in expectation, at least as many pairs of equal values as integers from the uniform
    distribution.
    """
    observed = numbers[~np.isnan(numbers)].astype(np.float64)
    n_rows = len(observed)
    if n_rows <= MIN_IDENTIFIERS or (observed % 1 != 0).any():
        return
    n_values = observed.max() - observed.min() + 1
    expected_ties = n_rows * (n_rows - 1) / 2 / n_values
    if expected_ties >= MIN_EXPECTED_TIES and len(np.unique(observed)) == n_rows:
        warn_user(
            f"Column {name!r} looks like row numbers or identifiers: {n_rows} different integers "
            f"between {observed.min():.0f} and {observed.max():.0f}. Identifiers carry no "
            f"information about new rows, and samples resemble them. Drop the column or, if its "
            f"numbers describe the rows, set kinds={{{name!r}: 'numeric'}}.",
            UserWarning,
        )


def _warn_if_rounded(name: Any, column: Any, numbers: Array) -> None:
    """Warn if a column of integers has magnitudes that double precision does not represent."""
    is_integer = str(column.dtype).lower().startswith(("int", "uint"))
    largest = np.nanmax(np.abs(numbers), initial=0)
    if is_integer and largest > MAX_EXACT_INTEGER:
        warn_user(
            f"Column {name!r} has integers of magnitudes up to {largest:.3g}, which are rounded to "
            f"double precision: different ones can become equal, and samples leave their range. "
            f"Subtract a constant, such as the smallest of them, or set "
            f"kinds={{{name!r}: 'categorical'}} if they are codes.",
            UserWarning,
        )


def _real(
    name: Any, numbers: Array, kind: str, options: list[Any], numeric_scale: str, counts: Array
) -> ColumnKind:
    is_observed = ~np.isnan(numbers)
    observed, counts = numbers[is_observed].astype(np.float64), counts[is_observed]
    if kind == "interval":
        low, high = options or (0.0, 1.0)
        are_numbers = isinstance(low, Real) and isinstance(high, Real)
        if not (are_numbers and -MAX_VALUE <= low < high <= MAX_VALUE):
            raise ValueError(
                f"Interval of column {name!r} expected to have finite bounds, the lower one first, "
                f"of magnitudes of at most {MAX_VALUE:g}, got {(low, high)}."
            )
        low, high = float(low), float(high)
        return ColumnKind((kind, low, high), None, low, high - low, not len(observed))
    largest = np.abs(observed).max(initial=0)
    if largest > MAX_VALUE:
        raise ValueError(
            f"Column {name!r} expected to have numbers of magnitudes of at most {MAX_VALUE:g}, got "
            f"{largest:g}. Divide the column by a constant, or replace placeholders by NaN."
        )
    learner = LEARNED_SCALES.get(numeric_scale)
    scores = None if learner is None else learner(observed, counts)
    if scores is not None:
        low, high = float(observed.min()), float(observed.max())
        return ColumnKind(kind, None, low, (high - low) or 1.0, is_empty=False, scores=scores)
    origin, scale = 0.0, 0.0
    # The extremes are compared, since rounding may give a constant column a positive variance.
    if len(observed) and observed.min() < observed.max():
        origin, scale = moments(observed, counts)
    elif len(observed):
        origin = float(observed[0])
    return ColumnKind(kind, None, origin, scale or 1.0, not len(observed))


def _discrete(name: Any, column: Any, kind: str, options: list[Any]) -> ColumnKind:
    declared = options[0] if options else declared_categories(column)
    if isinstance(declared, np.ndarray):
        declared = cells_of(declared)
    if isinstance(declared, str) or not (declared is None or isinstance(declared, Collection)):
        raise ValueError(
            f"Categories of column {name!r} expected to be a list, got {declared!r}. Pass all "
            f"categories, as in kinds={{{name!r}: ({kind!r}, ['a', 'b'])}}."
        )
    with explain_unhashable(name):
        codes, values = factorized(column)
        listed = values
        if declared is not None:
            listed = [without_numpy_times(x) for x in declared if not is_missing(x)]
        frozenset(listed)
    is_empty = bool((codes < 0).all())
    # The order of a set differs between processes.
    categories = (
        _sorted(listed) if declared is None or isinstance(declared, set | frozenset) else listed
    )
    if kind == "binary":
        if kind_of(column) == "binary" and not options:
            categories = [False, True]
        elif declared is None and set(categories) < {0, 1} and categories:
            categories = [type(categories[0])(value) for value in (0, 1)]
        if len(categories) != 2:
            raise ValueError(
                f"Binary column {name!r} expected to have 2 values, got {categories[:10]}. Use "
                f"kind 'categorical', or give both values: ('binary', [value, other])."
            )
    _check_distinct(name, (declared is None and _equal_cells(column, values)) or categories)
    if declared is None and len(values) > max(MIN_IDENTIFIERS, (codes >= 0).sum() / 2):
        warn_user(
            f"Column {name!r} has {len(values)} categories, more than one for two rows, like "
            f"identifiers and names. They carry no information about new rows, and samples repeat "
            f"them. Drop the column, or name its categories in "
            f"kinds={{{name!r}: ('categorical', [...])}}.",
            UserWarning,
        )
    types = {type(value) for value in categories}
    is_plain = len(types) == 1 and all(issubclass(one, bool | int | float) for one in types)
    array = np.array(categories) if is_plain else np.fromiter(categories, dtype=object)
    if array.dtype.kind == "f" and not isinstance(categories[0], float):  # -1 and 2**63 + 1
        array = np.fromiter(categories, dtype=object)
    return ColumnKind(kind, array, 0.0, 1.0, is_empty)


def _check_distinct(name: Any, categories: list[Any]) -> None:
    """Raise a ValueError if two categories are equal or print alike."""
    firsts: dict[tuple[str, Any], int] = {}
    for number, value in enumerate(categories):
        keys = {"print alike": str(value), "are equal": comparable(value)}
        for reason in keys.items():
            first = firsts.setdefault(reason, number)
            if first != number:
                other = categories[first]
                raise ValueError(
                    f"Column {name!r} has categories that {reason[0]}: {other!r} of type "
                    f"{type(other).__name__} and {value!r} of type {type(value).__name__}. Name "
                    f"each category once, and convert the column to one type."
                )


def _equal_cells(column: Any, values: list[Any]) -> list[Any]:
    """Truth value and equal number, if a column of objects has such a pair; else an empty list.

    `values` are the distinct values of the column, among which equal values are one value.
    """
    if str(column.dtype).lower() != "object" or {0, 1}.isdisjoint(values):
        return []
    cells = [x for x in cells_of(column) if not is_missing(x)]
    flags = {x for x in cells if isinstance(x, bool | np.bool_)}
    numbers = {x for x in cells if not isinstance(x, bool | np.bool_)}
    return next(([x, y] for x in sorted(flags) for y in numbers if x == y), [])


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (str(value), type(value).__name__))
