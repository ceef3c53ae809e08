"""Kinds of a table's columns, with their categories or scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skrbm.core.numerics import Array
from skrbm.estimators.input.validation import warn_user
from skrbm.estimators.tables.frames import declared_categories, factorized, kind_of, numbers_of
from skrbm.estimators.tables.mixtures import MixtureScale
from skrbm.estimators.tables.scores import NormalScores

MIN_IDENTIFIERS = 20  # categories, below which few rows are reason enough for one in two rows
DISCRETE, REAL = ("binary", "categorical"), ("numeric", "interval")
COLUMN_KINDS = (*DISCRETE, *REAL)
# By `numeric_scale`: what is learned of a column, beyond its mean and deviation.
LEARNED_SCALES: dict[str, Any] = {"normal": NormalScores, "mixture": MixtureScale}


class ColumnKind(NamedTuple):
    """Kind of a column, with its categories or its scale.

    Attributes
    ----------
    kind : str or tuple
        "binary", "categorical", "numeric", or ("interval", low, high).
    categories : ndarray or None
        Of binary and categorical columns.
    origin, scale : float
        What is subtracted from a number, and what the difference is divided by.
    is_empty : bool
        Whether no value is known.
    scores : NormalScores, MixtureScale or None, default=None
        Map of a number, which then is not standardised.
    """

    kind: Any
    categories: Array | None
    origin: float
    scale: float
    is_empty: bool
    scores: NormalScores | MixtureScale | None = None


def given_kinds(names: Sequence[Any], kinds: Any) -> list[Any]:
    """Kind that the user gives to each column, by its name or number; "auto" for none.

    Parameters
    ----------
    names : sequence of length n_features
        Names of the columns.
    kinds : "auto" or dict
        As the user gave it.

    Returns
    -------
    given : list of length n_features
        Not checked yet.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    given: list[Any] = ["auto"] * len(names)
    for key, kind in ({} if isinstance(kinds, str) else kinds).items():
        number = names.index(key) if key in names else key
        if number not in range(len(names)):
            raise ValueError(f"kinds expected keys among the columns {list(names)}, got {key!r}.")
        given[int(number)] = kind
    return given


def column_kind(
    name: Any, column: Any, given: Any, numeric_scale: str, counts: Array
) -> ColumnKind:
    """Kind of a column, from its type or as given.

    Parameters
    ----------
    name : object
        Of the column, for messages.
    column : Series or ndarray of shape (n_samples,)
        Values.
    given : object
        From `given_kinds`.
    numeric_scale : {"normal", "mixture", "standard"}
        What numbers become.
    counts : ndarray of shape (n_samples,)
        Numbers of rows that each is worth.

    Returns
    -------
    kind : ColumnKind
        With categories or scale.

    Raises
    ------
    ValueError
        If the kind is unknown or does not go with the values.
    """
    kind, *options = (given,) if isinstance(given, str) else given
    kind = kind_of(column) if kind == "auto" else kind
    n_options = {"numeric": (0,), "interval": (0, 2)}.get(kind, (0, 1))
    if kind in REAL and len(options) in n_options:
        return _real(name, column, kind, options, numeric_scale, counts)
    if kind not in DISCRETE or len(options) not in n_options:
        raise ValueError(
            f"Kind of column {name!r} expected to be one of {COLUMN_KINDS}, ('interval', low, high) or "
            f"('categorical', categories), got {given!r} for a column of type {column.dtype}. Name its "
            f"kind, as in kinds={{{name!r}: 'categorical'}}, or convert the column to numbers: dates to "
            f"days since the first one."
        )
    return _discrete(name, column, kind, options)


def checked_numbers(name: Any, column: Any) -> Array:
    """Numbers of a column (n_samples,), NaN where one is missing.

    Parameters
    ----------
    name : object
        Of the column.
    column : Series or ndarray of shape (n_samples,)
        Values.

    Returns
    -------
    numbers : ndarray of shape (n_samples,)
        Finite or NaN.

    Raises
    ------
    ValueError
        If there is text or infinity.
    TypeError
        If there are other objects, such as dates.
    """
    try:
        numbers = numbers_of(column)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"Column {name!r} expected to have numbers, got {error}. Convert it to numbers, or fit with "
            f"kinds={{{name!r}: 'categorical'}}."
        ) from error
    if np.isinf(numbers).any():
        raise ValueError(
            f"Column {name!r} expected finite numbers or missing values, got infinity."
        )
    return numbers


def _real(
    name: Any, column: Any, kind: str, options: list[Any], numeric_scale: str, counts: Array
) -> ColumnKind:
    numbers = checked_numbers(name, column)
    is_known = ~np.isnan(numbers)
    known, counts = numbers[is_known].astype(np.float64), counts[is_known]
    if kind == "interval":
        low, high = options or (0.0, 1.0)
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(
                f"Interval of column {name!r} expected to have finite ends, the lower one first, got "
                f"{(low, high)}."
            )
        return ColumnKind((kind, low, high), None, low, high - low, not len(known))
    learner = LEARNED_SCALES.get(numeric_scale)
    scores = None if learner is None else learner.of(known, counts)
    if scores is not None:
        low, high = float(known.min()), float(known.max())
        return ColumnKind(kind, None, low, (high - low) or 1.0, is_empty=False, scores=scores)
    largest = float(np.abs(known).max(initial=0.0)) or 1.0
    origin, scale = 0.0, 0.0
    if len(known) and known.min() < known.max():  # not for rounding to decide
        mean = np.average(known / largest, weights=counts)
        variance = np.average((known / largest - mean) ** 2, weights=counts)
        origin, scale = largest * mean, largest * np.sqrt(variance)
    elif len(known):
        origin = float(known[0])
    return ColumnKind(kind, None, float(origin), float(scale) or 1.0, not len(known))


def _discrete(name: Any, column: Any, kind: str, options: list[Any]) -> ColumnKind:
    codes, values = factorized(column)
    is_empty = bool((codes < 0).all())
    declared = options[0] if options else declared_categories(column)
    categories = _sorted(values) if declared is None else list(declared)
    if kind == "binary":
        if kind_of(column) == "binary" and not options:
            categories = [False, True]
        elif declared is None and set(categories) < {0, 1} and categories:
            categories = [type(categories[0])(bit) for bit in (0, 1)]
        if len(categories) != 2:
            raise ValueError(
                f"Binary column {name!r} expected to have 2 values, got {categories[:10]}. Use kind "
                f"'categorical', or give both values: ('binary', [value, other])."
            )
    shown: dict[str, Any] = {}
    for value in categories:
        other = shown.setdefault(str(value), value)
        if other is not value:
            raise ValueError(
                f"Column {name!r} has categories that print alike: {other!r} of type "
                f"{type(other).__name__} and {value!r} of type {type(value).__name__}. Convert the "
                f"column to one type."
            )
    if declared is None and len(values) > max(MIN_IDENTIFIERS, (codes >= 0).sum() / 2):
        warn_user(
            f"Column {name!r} has {len(values)} categories, more than one for two rows, as identifiers "
            f"and names have. They say little about new rows, and samples repeat them. Drop the "
            f"column, or name its categories in kinds={{{name!r}: ('categorical', [...])}}.",
            UserWarning,
        )
    types = {type(value) for value in categories}
    is_plain = len(types) == 1 and all(issubclass(one, bool | int | float) for one in types)
    listed = np.array(categories) if is_plain else np.fromiter(categories, dtype=object)
    return ColumnKind(kind, listed, 0.0, 1.0, is_empty)


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (str(value), type(value).__name__))
