"""Encoding of tables as states of the visible units, and decoding."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress
from numbers import Real
from operator import attrgetter
from typing import Any, Self, final

import numpy as np

from skrbm.core.numerics import Array
from skrbm.core.units import Bernoulli, Categorical, Gaussian, Interval, Mixture
from skrbm.estimators.input.validation import DomainWarning, number_of_rows, warn_user, weight_sums
from skrbm.estimators.tables.encoded import EncodedTable
from skrbm.estimators.tables.frames import (
    DOUBLE,
    MISSING,
    cells_of,
    column_index,
    column_names,
    columns_of,
    comparable,
    container_of,
    dtype_name,
    explain_unhashable,
    factorized,
    is_missing,
    precision_of,
    rounded,
    written,
)
from skrbm.estimators.tables.kinds import (
    COLUMN_KINDS,
    are_numbers,
    checked_numbers,
    column_kind,
    given_kinds,
)
from skrbm.estimators.tables.mixtures import scale_from, stacked_bases


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Kinds, categories and scales of the columns of a table, for encoding and decoding.

    The encoded columns are ordered by kind: binary, categorical, numeric, interval. Columns of the
    same kind are in the order of the table. No field contains an object of a class of this package.

    Parameters
    ----------
    container : {"pandas", "polars", "array"}
        Type of the table.
    names : list of length n_features
        Names of the columns or, for an array, their indices.
    dtypes : list of str of length n_features
        Names of the data types of the columns.
    kinds : list of length n_features
        Kind of each column: "binary", "categorical", "numeric", or ("interval", low, high).
    categories : list of length n_features
        Categories of each binary or categorical column, and None for other columns.
    origin, scale : ndarray of shape (n_features,)
        Location and scale of each column. A number x is encoded as ``(x - origin) / scale`` if the
        column has no transformation in `scores`.
    scores : list of length n_features
        Dictionary of the fields of the `NumericScale` that transforms each numeric column, and None
        for columns without such a transformation.
    """

    container: str
    names: list[Any]
    dtypes: list[str]
    kinds: list[Any]
    categories: list[Any]
    origin: Array
    scale: Array
    scores: list[dict[str, Any] | None]

    @classmethod
    def of(cls, X: Any, kinds: Any, numeric_scale: str, sample_weight: Array | None = None) -> Self:
        """Learn the kinds, categories and scales of the columns of a table.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n_samples, n_features)
            Table.
        kinds : "auto" or dict
            As in `TabularRBM`.
        numeric_scale : {"normal", "mixture", "standard"}
            As in `TabularRBM`.
        sample_weight : ndarray of shape (n_samples,), default=None
            Positive weights of the rows. If None, all rows have equal weights.

        Returns
        -------
        table : Table
            Kinds, categories and scales of these columns.

        Raises
        ------
        ValueError
            If a kind is unknown or does not match its column, if two categories of a column are
            equal or print alike, if the keys of `kinds` are not different columns, if a number is
            too large, or if all columns are discrete and without categories.
        TypeError
            If a numeric or interval column has a value that is neither a number nor text, or if a
            value of a discrete column is not hashable, such as a list.

        Warns
        -----
        UserWarning
            If a column has no observed values, or seems to consist of identifiers.
        """
        names, columns = column_names(X), columns_of(X)
        if sample_weight is None:
            counts = np.ones(len(X))
        else:
            sums = weight_sums(sample_weight)
            counts = sample_weight * (number_of_rows(sums) / sums[0])
        given = zip(names, columns, given_kinds(names, kinds), strict=True)
        found = zip(*(column_kind(*column, numeric_scale, counts) for column in given), strict=True)
        column_kinds, categories, origin, scale, is_empty, scores = map(list, found)
        table = cls(
            container_of(X),
            names,
            [dtype_name(column) for column in columns],
            column_kinds,
            categories,
            np.array(origin),
            np.array(scale),
            [None if arrays is None else asdict(arrays) for arrays in scores],
        )
        empty = list(compress(names, is_empty))
        if not table.order:
            raise ValueError("X expected to have an observed value in some column, got none.")
        if empty:
            warn_user(
                f"Columns {empty} of X have no observed value: their samples carry no information, "
                f"and are missing for categorical columns. Drop the columns, or name their "
                f"categories in kinds.",
                UserWarning,
            )
        return table

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Indices of the columns of each kind; discrete columns without categories are left out.

        Numeric columns with mixtures come after the other numeric columns.
        """
        groups: dict[str, list[int]] = {name: [] for name in COLUMN_KINDS}
        for j, (kind, categories) in enumerate(zip(self.kinds, self.categories, strict=True)):
            if categories is None or len(categories):
                groups[kind if isinstance(kind, str) else kind[0]].append(j)
        groups["numeric"].sort(key=self._has_mixture)
        return groups

    def _has_mixture(self, j: int) -> bool:
        """True if the base distribution of a column is a mixture of normals and atoms."""
        return self.maps[j] is not None and self.maps[j].is_mixture

    @cached_property
    def order(self) -> list[int]:
        """Index of the table's column for each visible unit."""
        return [j for group in self.groups.values() for j in group]

    @cached_property
    def widths(self) -> list[int]:
        """Number of encoded columns of each visible unit."""
        kinds, categories = self.kinds, self.categories
        return [len(categories[j]) if kinds[j] == "categorical" else 1 for j in self.order]

    @property
    def columns(self) -> Array:
        """Names of the encoded columns, such as "age" or "port=Southampton"."""
        names = []
        for j in self.order:
            name, categories = self.names[j], self.categories[j]
            if categories is None:
                names.append(str(name))
            else:
                n_dropped = int(self.kinds[j] == "binary")  # one column for two values
                names += [f"{name}={value}" for value in categories[n_dropped:]]
        return np.array(names, dtype=object)

    @property
    def n_discrete(self) -> int:
        """Number of binary and categorical units, which come first."""
        return len(self.groups["binary"]) + len(self.groups["categorical"])

    @property
    def numeric_columns(self) -> slice:
        """Slice that selects the numeric columns among the encoded columns."""
        begin = sum(self.widths[: self.n_discrete])
        return slice(begin, begin + len(self.groups["numeric"]))

    def types(self, learn_variance: Array) -> list[tuple[Any, int, dict[str, Any]]]:
        """Unit type, number of encoded columns and options of each part of the visible layer.

        Parts without columns are left out. `learn_variance`, of shape (n_numeric,), is the mask of
        the numeric columns whose variance is learned.
        """
        numeric = self.groups["numeric"]
        mixtures = [self.maps[j] for j in numeric if self._has_mixture(j)]
        n_normal = len(numeric) - len(mixtures)
        normal = {"learn_variance": learn_variance[:n_normal], "parameterization": "cho"}
        bases = {"learn_variance": learn_variance[n_normal:], **stacked_bases(mixtures)}
        counts = tuple(len(self.categories[j]) for j in self.groups["categorical"])
        types: list[tuple[Any, int, dict[str, Any]]] = [
            (Bernoulli, len(self.groups["binary"]), {}),
            (Categorical, sum(counts), {"n_categories": counts}),
            (Gaussian, n_normal, normal),
            (Mixture, len(mixtures), bases),
            (Interval, len(self.groups["interval"]), {}),
        ]
        return [part for part in types if part[1]]

    @cached_property
    def maps(self) -> list[Any]:
        """Transformation of each column of the table: a `NumericScale` or None."""
        return [None if arrays is None else scale_from(arrays) for arrays in self.scores]

    @cached_property
    def mapped_columns(self) -> dict[int, Any]:
        """Transformations of encoded columns, by the index of the encoded column.

        Columns without a transformation are left out.
        """
        ends = zip(np.cumsum(self.widths).tolist(), self.order, strict=True)
        return {end - 1: scores for end, j in ends if (scores := self.maps[j]) is not None}

    def number_of(self, column: Any) -> int:
        """Index of the column with a given name or index; a negative index counts from the end.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        index = column_index(self.names, column)
        if index is None:
            raise ValueError(
                f"column expected to be one of {self.names}, or its number, got {column!r}."
            )
        return index

    def encode(self, X: Any, handle_unknown: str, check_input: str) -> EncodedTable:
        """Encode a table.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n_samples, n_features)
            Table with the same columns as the table that was learned.
        handle_unknown : {"missing", "nearest", "error"}
            Treatment of unknown categories.
        check_input : {"warn", "raise", "ignore"}
            Treatment of numbers outside their interval.

        Returns
        -------
        rows : EncodedTable
            Encoded rows of shape (n_samples, n_columns).

        Raises
        ------
        ValueError
            If a value does not match the kind of its column, if a category is unknown and
            `handle_unknown` is "error", or if a number is outside its interval and `check_input` is
            "raise".
        TypeError
            If a numeric or interval column has a value that is neither a number nor text, or if a
            value of a discrete column is not hashable, such as a list.

        Warns
        -----
        DomainWarning
            If a number is outside its interval and `check_input` is "warn".
        """
        columns = columns_of(X)
        discrete, real = self.order[: self.n_discrete], self.order[self.n_discrete :]
        # Codes are between MISSING and the largest width, in the smallest sufficient integer type.
        codes = np.empty((len(X), len(discrete)), np.min_scalar_type(-max(self.widths)))
        unknown, n_new = {}, np.zeros((2, len(X)), dtype=np.intp)
        for k, j in enumerate(discrete):
            found = self._codes(j, columns[j], handle_unknown)
            codes[:, k], unknown[self.names[j]], is_new = found
            n_new += is_new
        values = [checked_numbers(self.names[j], columns[j]) for j in real]
        precision = np.result_type(*values) if values else np.float64
        numbers = np.empty((len(X), len(real)), precision)
        for k, (j, column) in enumerate(zip(real, values, strict=True)):
            self._compare(j, column, check_input)
            scores = self.maps[j]
            if scores is None:
                numbers[:, k] = (column - self.origin[j]) / self.scale[j]
            else:
                numbers[:, k] = scores.forward(column)
        return EncodedTable(*self._discrete_columns, codes, numbers, X, unknown, *n_new)

    def expected_values(
        self, mean: Array, draws: Array, is_needed: Array, deviation: Array
    ) -> Array:
        """Replace means of transformed columns by estimates of the means of their numbers.

        All means are conditional on the hidden units. The estimates are unbiased, and depend on
        `draws`; for columns with atoms or a `MixtureScale`, they are the numbers that correspond to
        `draws`.
        Only means in the mask `is_needed` are replaced. `mean`, `draws` and `is_needed` have the
        shape (n_samples, n_columns). `deviation`, of shape (n_numeric,), contains the standard
        deviations of the scaled numeric columns given the hidden units.
        """
        result = mean.astype(np.float64)
        for column, scores in self.mapped_columns.items():
            rows = np.flatnonzero(is_needed[:, column])
            if len(rows):
                of_scores, std = mean[rows, column], deviation[column - self.numeric_columns.start]
                drawn = draws[rows, column]
                result[rows, column] = scores.expected_values(of_scores, drawn, std)
        return result

    def decode(self, v: Array, given: Any, is_observed: Array | None, *, is_averaged: bool) -> Any:
        """Decode states of the machine, or their means.

        The means of a binary or categorical column are decoded as the most probable category. The
        values of discrete columns without categories are missing.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_columns)
            States or means.
        given : DataFrame, ndarray of shape (n_samples, n_features) or None
            Table whose observed values replace the decoded values. The index of a pandas DataFrame
            is kept.
        is_observed : ndarray of bool of shape (n_samples, n_units) or None
            Mask of the observed values of `given`. If None, all values are decoded.
        is_averaged : bool
            Whether transformed columns are results of `expected_values` instead of states.

        Returns
        -------
        table : DataFrame or ndarray of shape (n_samples, n_features)
            Table with the container, column names and data types of the table from which the
            columns were learned. If a data type cannot hold a known value, the column has a wider
            type, see `frames.written`.
        """
        columns: list[Array] = [np.full(len(v), None, dtype=object)] * len(self.names)
        is_known = [np.zeros(len(v), dtype=bool)] * len(self.names)
        before = [] if given is None else columns_of(given)
        states_of_units = np.hsplit(v, np.cumsum(self.widths[:-1]))
        for k, (j, states) in enumerate(zip(self.order, states_of_units, strict=True)):
            if self.categories[j] is None:
                values, scores = states[:, 0].astype(np.float64), self.maps[j]
                if scores is None:
                    values = self.origin[j] + self.scale[j] * values
                elif not is_averaged:
                    values = scores.values(states[:, 0])
                columns[j] = rounded(values, self.dtypes[j])
            else:
                is_binary = self.kinds[j] == "binary"
                codes = states[:, 0] > 0.5 if is_binary else states.argmax(axis=1)
                columns[j] = self.categories[j].astype(object)[codes.astype(np.intp)]
            if is_observed is not None:  # the original objects, not converted to floating point
                is_known[j] = is_observed[:, k]
                columns[j] = np.where(is_known[j], cells_of(before[j]), columns[j])
        for j in set(range(len(before))) - set(self.order):  # without categories
            columns[j] = cells_of(before[j])
            is_known[j] = np.array([not is_missing(x) for x in columns[j]], dtype=bool)
        table = self.container, self.names, self.dtypes, columns, self.categories
        return written(*table, is_known, getattr(given, "index", None))

    @property
    def _discrete_columns(self) -> tuple[Array, Array]:
        """Unit index and category index of each encoded column of a discrete unit."""
        n_binary, widths = len(self.groups["binary"]), self.widths[: self.n_discrete]
        categories = np.concatenate([np.ones(n_binary), *map(np.arange, widths[n_binary:])])
        return np.repeat(np.arange(len(widths)), widths), categories.astype(np.intp)

    def _codes(self, j: int, column: Any, handle_unknown: str) -> tuple[Array, list[Any], Array]:
        """Category code of each value in a column, and the list of unknown categories.

        The code of an unknown category is `MISSING`. If `handle_unknown` is "nearest" and all
        categories are numbers, no number is unknown: it has the code of the nearest category. The
        third result, of shape (2, n_samples), contains the masks of these numbers and of unknown
        categories.
        """
        with explain_unhashable(self.names[j]):
            codes, values = factorized(column)
        categories = self.categories[j].tolist()
        # The last entries are those of `MISSING`.
        found = np.array([*self._found(j, dtype_name(column), values), MISSING])
        is_present, is_new = np.zeros(len(found), dtype=bool), np.zeros((2, len(found)), dtype=bool)
        is_present[codes] = True
        is_present[-1] = False
        if handle_unknown == "nearest" and are_numbers(self.categories[j]):
            places = _doubles(categories)
            order = np.argsort(places)
            halves = places[order] / 2
            others = np.flatnonzero(is_present & (found == MISSING))
            others = np.array([i for i in others if isinstance(values[i], Real)], dtype=np.intp)
            numbers = _doubles([values[i] for i in others])
            found[others] = order[np.searchsorted(halves[1:] + halves[:-1], numbers)]
            is_new[0, others] = True
        is_new[1] = is_present & (found == MISSING)
        unknown = [values[i] for i in np.flatnonzero(is_new[1])]
        if unknown and handle_unknown == "error":
            raise ValueError(
                f"Column {self.names[j]!r} expected categories {categories}, got "
                f"{unknown[:10]}. Set handle_unknown='missing' to treat them as missing values."
            )
        return found[codes], unknown, is_new[:, codes]

    def _found(self, j: int, dtype: str, values: list[Any]) -> list[int]:
        """Category code of each of several values of a column, or `MISSING`.

        Floating-point numbers are compared in the lower of two precisions, that of `dtype` and that
        of the column which was learned, unless two categories are equal in this precision.
        """
        categories = self.categories[j].tolist()
        lower = min(precision_of(self.dtypes[j]), precision_of(dtype), key=attrgetter("itemsize"))
        for precision in lower, DOUBLE:
            listed = [comparable(value, precision) for value in categories]
            if len(set(listed)) == len(listed):
                break
        numbers = dict(zip(listed, range(len(listed)), strict=True))
        return [numbers.get(comparable(value, precision), MISSING) for value in values]

    def _compare(self, j: int, values: Array, check_input: str) -> None:
        """Warn or raise a ValueError if numbers are outside the interval of their column."""
        if isinstance(self.kinds[j], str) or check_input == "ignore":
            return
        with np.errstate(over="ignore"):
            low, high = map(values.dtype.type, self.kinds[j][1:])  # rounded as the values are
        least, greatest = np.fmin.reduce(values), np.fmax.reduce(values)
        if not (least < low or greatest > high):  # also if all values are missing
            return
        message = (
            f"Column {self.names[j]!r} is an interval from {low:g} to {high:g}, but has values "
            f"from {least:g} to {greatest:g}. Widen it in kinds, or set check_input='ignore'."
        )
        if check_input == "raise":
            raise ValueError(message)
        warn_user(message, DomainWarning)


def _doubles(numbers: list[Any]) -> Array:
    """Numbers in double precision, with the largest finite one for integers beyond it."""
    limit = int(np.finfo(np.float64).max)
    return np.array(
        [min(max(x, -limit), limit) if isinstance(x, int) else x for x in numbers], np.float64
    )
