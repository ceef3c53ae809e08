"""Manners of data frames: types that know missing values, polars, names, and set_output."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators.test_tabular import MIXED_KINDS, fitted, mixed
from sklearn.base import clone

from skrbm import RBMImputer, TabularRBM, effective_couplings
from skrbm.estimators.tables.frames import rounded

IS_MISSING = np.random.default_rng(0).random(mixed().shape) < 0.2
NULLABLE = {"port": "category", "age": "Int64", "alone": "boolean", "share": "Float64"}


def nullable(categories=("Q", "S", "C")):
    """Holes in the types of pandas that know them."""
    X = mixed().astype(NULLABLE | {"fare": "Float32"})
    X["port"] = X["port"].cat.set_categories(categories)
    return X.mask(IS_MISSING)


def in_polars(X, port):
    """The same table with nulls, its categories of a type of polars."""
    cells = {name: [None if pd.isna(x) else x for x in X[name]] for name in X}
    types = {"port": port, "age": pl.Int64, "alone": pl.Boolean, "share": pl.Float64}
    return pl.DataFrame(cells, schema=types | {"fare": pl.Float32})


def assert_filled(before, after):
    """Nothing is missing, and what was known is what it was."""
    for name, is_missing in zip(after.columns, IS_MISSING.T, strict=True):
        own, other = (np.array(table[name].to_list(), dtype=object) for table in (after, before))
        assert not pd.isna(own).any()
        assert (own[~is_missing] == other[~is_missing]).all()


def test_types_that_know_missing_values_are_filled_and_kept():
    """Slip: whole numbers and flags that come back as floats where some were missing."""
    X = nullable()
    filled = fitted(X).impute(X, n_gibbs_steps=5)
    pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
    assert_filled(X, filled)
    for table in fitted(X).impute(X, n_imputations=2, n_gibbs_steps=5):
        assert_filled(X, table)


@pytest.mark.slow
@pytest.mark.parametrize("port", [pl.String, pl.Categorical, pl.Enum(["Q", "S", "C"])])
def test_nulls_of_polars_are_those_of_pandas(port):
    """Slip: null taken for one more category. Only Enum has categories in an order of its own."""
    X = nullable(("Q", "S", "C") if isinstance(port, pl.Enum) else ("C", "Q", "S"))
    table = in_polars(X, port)
    one, other = fitted(X), fitted(table)
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(table))
    filled = other.impute(table, n_gibbs_steps=5, random_state=0)
    assert filled.schema == table.schema
    assert_filled(table, filled)
    expected = one.impute(X, n_gibbs_steps=5, random_state=0)
    for name in X:
        assert filled[name].to_list() == expected[name].to_list()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_names_features_and_leaves_filled_tables_as_they_are(library):
    """Slip: the index of the rows lost in their features."""
    X = nullable().set_index(np.arange(200) + 7)
    if library == "polars":
        X = in_polars(X, pl.String)
    rbm = clone(fitted()).set_output(transform=library).fit(X)
    out = rbm.transform(X)
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == list(rbm.get_feature_names_out())
    if library == "pandas":
        pd.testing.assert_index_equal(out.index, X.index)
    step = RBMImputer(clone(rbm), n_gibbs_steps=2, n_chains=1, random_state=0)
    filled = step.set_output(transform=library).fit_transform(X)
    assert type(filled).__module__.startswith(library)
    assert list(filled.columns) == list(X.columns)
    assert_filled(X, filled)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_in_the_other_library_keeps_the_types_of_columns(library):
    """Slips: all columns converted at once, to objects, or refused beside times; cut nanoseconds."""
    X = mixed().astype({"port": object, "fare": "float32", "age": "uint8"})
    X["day"] = np.array([1, 2] * 100, "M8[ns]")
    kinds = MIXED_KINDS | {"day": "categorical"}
    if library == "pandas":
        X = pl.DataFrame({name: X[name].to_numpy() for name in X}).with_columns(
            pl.col("day").dt.cast_time_unit("us"), pl.col("port").cast(pl.String)
        )
    step = RBMImputer(TabularRBM(2, kinds=kinds, n_iter=1, random_state=0))
    step.set_params(n_gibbs_steps=2, n_chains=1).set_output(transform=library)
    filled = step.fit_transform(X)
    assert type(filled).__module__.startswith(library)
    for name in X.columns[:-1]:
        assert filled[name].to_list() == X[name].to_list()
    assert (filled["day"].to_numpy() == X["day"].to_numpy()).all()
    for name, dtype in {"fare": "float32", "age": "uint8", "alone": "bool"}.items():
        assert str(filled[name].dtype).lower().startswith(dtype)


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [([1, 2.5, None, 3], "Float64"), (["a", 1, None, "b"], "String"), ([1, 2, None, 2**40], "")],
)
def test_set_output_converts_columns_of_several_types(cells, dtype):
    """Slip: an error of the other library after the fit."""
    X = pd.DataFrame({"x": np.arange(100) ** 0.5, "cell": pd.Series(cells * 25, dtype=object)})
    rbm = TabularRBM(2, kinds={"cell": "categorical"}, n_iter=1, random_state=0)
    step = RBMImputer(rbm, n_gibbs_steps=2, n_chains=1)
    if dtype:
        filled = step.set_output(transform="polars").fit_transform(X)
        assert str(filled["cell"].dtype) == dtype
    else:
        integers = pl.Series(cells * 25, dtype=getattr(pl, "Int128", pl.Int64))
        X = pl.DataFrame({"x": X["x"].to_list(), "cell": integers})
        filled = step.set_output(transform="pandas").fit_transform(X)
    known = [type(filled["cell"][0])(x) for x in cells if x is not None]
    assert [filled["cell"][i] for i in (0, 1, 3)] == known


def test_filled_rows_keep_their_labels():
    """Those of a subset in another order. Slip: index = None in decode. Drawn rows have none to keep."""
    X = nullable().set_index(pd.Index(np.arange(200) + 7, name="passenger"))
    rbm, part = fitted(X), X.iloc[[9, 3, 150]]
    step = RBMImputer(clone(rbm), n_gibbs_steps=2, n_chains=1, random_state=0).fit(X)
    size = {"n_gibbs_steps": 2, "n_chains": 1}
    for table in (
        rbm.impute(part, **size),
        rbm.impute(part, method="sample", **size),
        *rbm.impute(part, n_imputations=2, **size),
        rbm.inpaint(mixed().iloc[:3].set_index(part.index), np.arange(5) > 2, **size),
        step.transform(part),
        clone(step).set_output(transform="pandas").fit(in_polars(X, pl.String)).transform(part),
    ):
        pd.testing.assert_index_equal(table.index, part.index)
    pd.testing.assert_index_equal(rbm.sample(3).index, pd.RangeIndex(3))


def test_filled_rows_are_in_the_library_of_fit_whatever_theirs_is():
    """Slip: the container of the rows to fill, whose index the other library does not have."""
    X = nullable()
    table, size = in_polars(X, pl.String), {"n_gibbs_steps": 2, "n_chains": 1}
    filled = fitted(X).impute(table, **size)
    pd.testing.assert_index_equal(filled.index, pd.RangeIndex(200))
    pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
    assert_filled(X, filled)
    filled = fitted(table).impute(X.set_index(np.arange(200) + 7), **size)
    assert filled.schema == table.schema
    assert_filled(table, filled)


def test_rows_to_come_are_checked_as_those_of_fit_are():
    """Slip: infinity that is standardised, text in a number, and columns read by their place."""
    X, rbm = mixed(), fitted()
    step = RBMImputer(clone(rbm)).fit(X)
    changed = (
        (X.assign(fare=np.inf), r"'fare' expected finite numbers or missing values, got infinity"),
        (X.assign(fare="7"), r"'fare' expected to have numbers, got text, '7'"),
        (X[X.columns[::-1]], "feature names should match"),
        (X.drop(columns="port"), "feature names should match"),
        (X.iloc[:0], r"0 sample\(s\)"),
    )
    for other, message in changed:
        for method in (
            rbm.transform,
            rbm.score_samples,
            rbm.impute,
            rbm.partial_fit,
            step.transform,
        ):
            with pytest.raises(ValueError, match=message):
                method(other)
    for method in (rbm.fit, step.fit):
        with pytest.raises(ValueError, match=r"unique names, got \['age'\]"):
            method(X.rename(columns={"fare": "age"}))
    assert rbm.kinds_ == fitted(kinds=MIXED_KINDS).kinds_


COUNTS, GAPS = np.arange(60), np.arange(60) % 9 == 4
EXACT = {  # columns of values that no float is
    "int64": pd.Series(2**62 + 1001 * COUNTS),
    "uint64": pd.Series(2**64 - 1 - 5001 * COUNTS.astype(np.uint64)),
    "Int64": pd.Series(2**62 + 1001 * COUNTS, dtype="Int64").mask(GAPS),
    "object": pd.Series((2**62 + 1001 * COUNTS).astype(object)).mask(GAPS),
    "polars Int64": pl.Series(2**62 + 1001 * COUNTS),
    "polars UInt64": pl.Series(2**64 - 1 - 5001 * COUNTS.astype(np.uint64)),
    "polars Decimal": pl.Series([Decimal(7 * k).scaleb(-2) for k in range(60)]).cast(
        pl.Decimal(9, 2)
    ),
}


@pytest.mark.filterwarnings("ignore:.*integers of magnitudes")
@pytest.mark.parametrize("name", EXACT)
def test_known_numbers_stay_as_they_are(name):
    """Slips: known cells that come back from floating point, 60 identifiers as 2, and types without
    their sizes; drawn numbers beyond those of the type.
    """
    column, y = EXACT[name], np.where(GAPS, np.nan, COUNTS / 7)
    if name.startswith("polars"):
        gaps = pl.Series(GAPS | (COUNTS == 0))  # the first one as well
        X = pl.DataFrame({"id": column, "y": y}).with_columns(
            pl.when(~gaps).then(pl.col("id")).alias("id")
        )
    else:
        X = pd.DataFrame({"id": column, "y": y})
    rbm = TabularRBM(2, kinds={"id": "numeric"}, n_iter=2, random_state=0).fit(X)
    size = {"n_gibbs_steps": 2, "n_chains": 1, "random_state": 0}
    for filled in (rbm.impute(X, **size), RBMImputer(rbm, n_gibbs_steps=2).fit_transform(X)):
        assert str(filled["id"].dtype) == str(X["id"].dtype)
        for before, after in zip(X["id"].to_list(), filled["id"].to_list(), strict=True):
            assert not pd.isna(after)
            assert pd.isna(before) or before == after
    assert str(rbm.sample(5, 2)["id"].dtype) == str(X["id"].dtype)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_polars_keep_their_unit_and_zone(unit):
    """Slip: a unit or zone that is not written again."""
    times = pl.Series([datetime(2020, 1, 1), datetime(2021, 7, 1)] * 10)
    X = pl.DataFrame({"local": times.dt.cast_time_unit(unit)}).with_columns(
        utc=pl.col("local").dt.replace_time_zone("UTC"), gap=pl.col("local") - pl.col("local").min()
    )
    rbm = TabularRBM(2, kinds=dict.fromkeys(X.columns, "categorical"), n_iter=2).fit(X)
    holes = X.with_columns(local=pl.lit(None, X["local"].dtype))
    for table in (rbm.sample(5, 2), rbm.impute(holes, n_gibbs_steps=2, n_chains=1)):
        assert table.schema == X.schema
        assert set(table["local"]) <= set(X["local"])
    assert table.drop("local").equals(X.drop("local"))


@pytest.mark.parametrize("dtype", [pl.Datetime("ns"), pl.Duration("ns"), pl.Time])
def test_fractions_of_microseconds_are_refused_by_name(dtype):
    """Slip: times of polars as times of Python, which are equal within a microsecond."""
    X = pl.DataFrame({"clock": pl.Series([1000, 1001] * 20, dtype=pl.Int64).cast(dtype)})
    rbm = TabularRBM(2, kinds={"clock": "categorical"}, n_iter=1)
    with pytest.raises(ValueError, match=r"Column 'clock' expected .* whole microseconds"):
        rbm.fit(X)
    rbm.fit(X[::2])


@pytest.mark.parametrize("name", ["Int64", "Int128", "UInt128"])
def test_means_of_integers_are_rounded_in_polars(name):
    """Slip: 1.8 cut to 1 for types that NumPy does not have."""
    dtype = getattr(pl, name, None)
    if dtype is None:
        pytest.skip("a type of later versions of polars")
    X = pl.DataFrame(
        {"n": pl.Series([1, 2, 2, 2, None] * 20, dtype=dtype), "a": [True, False] * 50}
    )
    rbm = TabularRBM(2, n_iter=1, numeric_scale="standard", random_state=0).fit(X)
    filled = rbm.impute(X, n_gibbs_steps=5, random_state=0)
    assert filled.schema == X.schema
    assert filled["n"].to_list() == [1, 2, 2, 2, 2] * 20
    zeros = X.with_columns(n=pl.Series([0, 1, 1, 1, None] * 20, dtype=dtype))
    drawn = clone(rbm).fit(zeros).sample(300, 5, random_state=0)["n"]
    assert drawn.null_count() == 0
    assert name != "UInt128" or drawn.min() == 0


@pytest.mark.parametrize("dtype", ["int64", "uint8", "double", "string", "large_string", "bool"])
def test_columns_of_arrow_are_filled_and_drawn(dtype):
    """Slips: numbers that are not rounded for a type of another library, and text of another name."""
    pytest.importorskip("pyarrow")
    X = pd.DataFrame({"a": COUNTS % 2, "y": COUNTS / 7})
    X["a"] = X["a"].astype("str" if "string" in dtype else "Int64").astype(f"{dtype}[pyarrow]")
    X["a"] = X["a"].mask(GAPS)
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    filled = rbm.impute(X, n_gibbs_steps=2, n_chains=1)
    for table in (filled, rbm.sample(5, 2)):
        pd.testing.assert_series_equal(table.dtypes, X.dtypes)
        assert not table.isna().any(axis=None)
    assert filled["a"][~GAPS].equals(X["a"][~GAPS])


DATES = pd.date_range("2026-01-01", periods=60)


@pytest.mark.parametrize(
    ("X", "kinds"),
    [
        (pd.DataFrame({"day": DATES}), "auto"),
        (pd.DataFrame({"day": DATES - DATES[0]}), "auto"),
        (pd.DataFrame({"day": DATES.to_period("D")}), {"day": "interval"}),
        (pl.DataFrame({"day": DATES.to_list()}), "auto"),
        (pl.DataFrame({"day": DATES.date.tolist()}), {"day": "numeric"}),
        (DATES.to_numpy()[:, None], "auto"),
        (pd.DataFrame({"day": DATES}), {"day": "numeric"}),
        (DATES.to_numpy()[:, None], {0: "numeric"}),
        ((DATES - DATES[0]).to_numpy()[:, None], {0: "numeric"}),
        (np.array([[np.datetime64("2026-01-01", "ns")]] * 60), "auto"),
        (np.array([[np.datetime64("2026-01-01", "ns")], [None]] * 30, dtype=object), "auto"),
    ],
)
def test_dates_are_refused_with_advice(X, kinds):
    """Slips: nanoseconds of an array taken for its numbers; an error that leads to others."""
    advice = (
        r"Column ('day'|0) has dates or times .*Convert .*days.* kinds=\{('day'|0): 'numeric'\}"
    )
    with pytest.raises((TypeError, ValueError), match=advice) as error:
        TabularRBM(2, kinds=kinds).fit(X)
    is_pandas = isinstance(X, pd.DataFrame) and X["day"].dtype.kind == "M"
    assert ("pd.Timedelta" in str(error.value)) == is_pandas


def test_values_that_cannot_be_hashed_are_refused_by_name():
    """Slip: a bare TypeError of pandas or of a dict."""
    for cells, kinds in (([["S"]] * 4, "auto"), (["S"] * 4, {"port": ("categorical", [["S"]])})):
        with pytest.raises(TypeError, match=r"Column 'port' expected .* hashable .*'list'"):
            TabularRBM(2, kinds=kinds).fit(pd.DataFrame({"port": cells}))
    X = pd.DataFrame({"port": ["S", "C"] * 5}, dtype=object)
    rbm = TabularRBM(2, n_iter=1).fit(X)
    X.at[0, "port"] = ["S"]
    with pytest.raises(TypeError, match=r"Column 'port' expected .* hashable .*'list'"):
        rbm.transform(X)


def test_integers_beyond_double_precision_are_refused_by_name():
    """Slip: a bare OverflowError. Old versions of pandas cannot hold such integers themselves."""
    X = np.array([[10**400]] * 4, dtype=object)
    with pytest.raises(ValueError, match=r"Column 0 expected to have numbers, got int too large"):
        TabularRBM(2, kinds={0: "numeric"}).fit(X)


@pytest.mark.filterwarnings("ignore:.*integers of magnitudes")
def test_known_whole_numbers_of_arrays_stay_as_they_are():
    """Slip: columns stacked in floating point."""
    X = np.column_stack([2**62 + 1001 * COUNTS, COUNTS])
    rbm = TabularRBM(2, n_iter=2, kinds={1: "numeric"}, random_state=0).fit(X)
    filled = rbm.inpaint(X, ~np.column_stack([GAPS, GAPS]), n_gibbs_steps=2)
    np.testing.assert_array_equal(filled[~GAPS], X[~GAPS])
    assert filled.dtype == X.dtype


FIT = {  # tables from which types are learned, and rows with known values that they cannot hold
    "array": (np.stack([COUNTS % 7, COUNTS], axis=1), np.array([[2.7, np.nan]])),
    "integers": (np.stack([COUNTS % 7, COUNTS], axis=1), np.array([[2**62 + 1, None]])),
    "float32": (
        (np.stack([COUNTS, COUNTS], axis=1) / 7).astype(np.float32),
        np.array([[0.1, np.nan]]),
    ),
    "pandas": (
        pd.DataFrame({"a": COUNTS % 7, "b": COUNTS}),
        pd.DataFrame({"a": [2.5], "b": [None]}),
    ),
    "nullable": (
        pd.DataFrame({"a": COUNTS % 7, "b": COUNTS}).convert_dtypes(),
        pd.DataFrame({"a": [2.5], "b": [None]}),
    ),
    "nearest": (
        pd.DataFrame({"a": pd.Categorical(COUNTS % 3), "b": COUNTS}),
        pd.DataFrame({"a": [1.6], "b": [None]}),
    ),
    "polars": (
        pl.DataFrame({"a": (COUNTS % 7).astype(np.int8), "b": COUNTS}),
        pl.DataFrame({"a": [300.0], "b": [None]}),
    ),
    "object": (
        pl.DataFrame({"a": COUNTS % 7, "b": COUNTS}),
        pl.DataFrame({"a": [Decimal("0.1")], "b": [None]}),
    ),
}


@pytest.mark.parametrize("name", FIT)
def test_known_values_are_not_forced_into_the_types_of_fit(name):
    """Slips: whole numbers of what has a fraction, numbers clipped to a small type, rounded to single
    precision, or missing where no category is the same; a type that is wider without need.
    """
    X, rows = FIT[name]
    kinds = {0: "categorical" if name == "nearest" else "numeric", 1: "numeric"}
    rbm = TabularRBM(2, kinds=kinds, handle_unknown="nearest", n_iter=2, random_state=0).fit(X)
    step = RBMImputer(rbm, n_gibbs_steps=2, random_state=0).fit(X)
    for filled in (rbm.impute(rows, random_state=0), step.transform(rows)):
        (known, drawn), (before, _) = pd.DataFrame(filled).values[0], pd.DataFrame(rows).values[0]
        assert known == before
        assert 0 <= float(drawn) <= 60
        if isinstance(X, pd.DataFrame):
            assert filled["b"].dtype == X["b"].dtype


def test_text_of_arrays_is_as_wide_as_its_categories():
    """Slip: categories that are cut to the longest learned value."""
    X = np.array([["owl"], ["ox"]] * 30)
    kinds = {0: ("categorical", ["owl", "ox", "elephant"])}
    rbm = TabularRBM(2, kinds=kinds, n_iter=2, random_state=0).fit(X)
    sample = rbm.sample(300, 20, random_state=0)
    assert set(sample.ravel()) == {"owl", "ox", "elephant"}
    assert sample.dtype.kind == "U"


@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize("kind", ["interval", "numeric"])
def test_flags_as_numbers_are_rounded(kind, is_nullable):
    """Slip: every number but zero taken for True."""
    X = pd.DataFrame({"flag": COUNTS % 4 == 0, "y": COUNTS / 7})
    X = X.convert_dtypes() if is_nullable else X
    options = {"kinds": {"flag": kind}, "numeric_scale": "standard", "random_state": 0}
    sample = TabularRBM(2, n_iter=2, **options).fit(X).sample(200, 20, random_state=0)
    assert sample["flag"].dtype == X["flag"].dtype
    assert 0.1 < sample["flag"].mean() < 0.9


def test_numbers_of_lists_with_text_stay_numbers():
    """Slip: NumPy's text of a list, in which 1 is "1", and NaN a category."""
    X = [[1, "owl", 0.5], [2, "ox", 1.5], [2, np.nan, 2.5]] * 20
    kinds = {0: "categorical", 1: "categorical"}
    options = {"n_iter": 2, "random_state": 0, "missing": "marginalize"}
    rbm = TabularRBM(2, kinds=kinds, **options).fit(X)
    array = np.array(X, dtype=object)
    other = TabularRBM(2, kinds=kinds, **options).fit(array)
    assert rbm.categories_[0].tolist() == [1, 2]
    assert rbm.categories_[1].tolist() == ["owl", "ox"]
    np.testing.assert_array_equal(rbm.components_, other.components_)
    np.testing.assert_array_equal(rbm.score_samples(X), other.score_samples(array))


def test_names_that_are_no_strings_are_compared():
    """Slips: columns in another order, whose values come back under the wrong names; names of an
    array; tuples in place of two levels of names.
    """
    X = pd.DataFrame(np.random.default_rng(0).normal([0, 100], 1, (60, 2)))
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"same order, \[0, 1\], got \[1, 0\]"):
        rbm.impute(X[[1, 0]])
    expected = rbm.score_samples(X)
    np.testing.assert_array_equal(rbm.score_samples(X.to_numpy()), expected)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(rbm.score_samples(X.set_axis(["a", "b"], axis=1)), expected)
    two_levels = X.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]), axis=1)
    model = TabularRBM(2, n_iter=2).fit(two_levels)
    pd.testing.assert_index_equal(model.sample(3).columns, two_levels.columns)
    assert effective_couplings(model).features.tolist() == [("a", "x"), ("b", "y")]


def test_decimals_that_are_not_numbers_are_missing():
    """Slip: an error of the decimal library."""
    X = np.array([[Decimal("1.5")], [Decimal("NaN")], [Decimal("2.5")]] * 20, dtype=object)
    kinds, options = {0: "categorical"}, {"missing": "marginalize", "n_iter": 1}
    rbm = TabularRBM(2, kinds=kinds, **options).fit(X)
    assert rbm.categories_[0].tolist() == [Decimal("1.5"), Decimal("2.5")]


def test_categories_of_a_set_are_sorted_and_iterators_are_refused():
    """Slips: an order of text that changes with every process; categories that one fit uses up."""
    X = pd.DataFrame({"animal": ["owl", "ox"] * 30})
    kinds = {"animal": ("categorical", dict.fromkeys(["ox", "owl", "asp"]).keys())}
    rbm = TabularRBM(2, kinds=kinds, n_iter=1).fit(X)
    assert rbm.categories_[0].tolist() == ["ox", "owl", "asp"]
    kinds = {"animal": ("categorical", {"ox", "owl", "elephant", "asp", "bee"})}
    rbm = TabularRBM(2, kinds=kinds, n_iter=1).fit(X)
    assert rbm.categories_[0].tolist() == ["asp", "bee", "elephant", "owl", "ox"]
    with pytest.raises(ValueError, match="'animal' expected to be a list"):
        TabularRBM(2, kinds={"animal": ("categorical", iter(["owl", "ox"]))}).fit(X)


DAYS = np.array(["2020-01-01", "2021-01-01"] * 20, "M8[D]")


@pytest.mark.parametrize(
    "X",
    [
        DAYS[:, None],
        DAYS.astype("M8[ns]")[:, None],
        pd.DataFrame({0: DAYS}),
        pl.DataFrame({"day": pl.Series(DAYS)}),
        pl.DataFrame({"day": pl.Series(DAYS.astype("M8[ns]"))}),
        np.array(["yes", "no"] * 20)[:, None],
        np.arange(40)[:, None] % 2 == 1,
    ],
)
def test_categories_of_an_array_are_those_of_its_column(X):
    """Slip: items of NumPy, which are not equal to the dates of Python and pandas."""
    name = X.columns[0] if hasattr(X, "columns") else 0
    column = X[name] if hasattr(X, "columns") else X[:, 0]
    categories = np.unique(np.asarray(column))
    rbm = TabularRBM(2, kinds={name: ("categorical", categories)}, n_iter=1, random_state=0).fit(X)
    other = TabularRBM(2, kinds={name: "categorical"}, n_iter=1, random_state=0).fit(X)
    np.testing.assert_array_equal(rbm.categories_[0], other.categories_[0])
    np.testing.assert_array_equal(rbm.score_samples(X), other.score_samples(X))


def tables_of(times):
    """Tables of one column of equal times, in the units of each library."""
    arrays = [times.astype(f"{times.dtype.kind}8[{unit}]") for unit in ("s", "ms", "us", "ns")]
    tables = [array[:, None] for array in (*arrays, arrays[2].astype(object))]
    tables += [pd.DataFrame({"day": array}) for array in arrays]
    return tables + [pl.DataFrame({"day": pl.Series(array)}) for array in arrays[1:]]


def assert_equal_categories(tables, given, kind="categorical"):
    """The rows `given` are those of each of the tables, from which machines are learned."""
    for table in tables:
        options = {"handle_unknown": "error", "n_iter": 1, "random_state": 0}
        rbm = TabularRBM(2, kinds={0: kind}, **options).fit(table)
        expected, values = rbm.score_samples(table), pd.Series(np.ravel(table)).tolist()
        for rows in given:
            np.testing.assert_array_equal(rbm.score_samples(rows), expected)
            assert pd.Series(np.ravel(rbm.impute(rows, n_gibbs_steps=1))).tolist() == values
        assert set(pd.Series(np.ravel(rbm.sample(50, 5, random_state=0)))) == set(values)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("times", [DAYS, DAYS - DAYS[0]])
def test_times_of_every_unit_are_equal_categories(times):
    """Slip: integers for nanoseconds of NumPy."""
    tables = tables_of(times)
    if times.dtype.kind == "m":  # polars 1.0 takes the gaps of pandas for objects
        tables = tables[:9]
    assert_equal_categories(tables, tables)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("unit", ["D", "s", "ns"])
@pytest.mark.parametrize("make", [np.array, list])
def test_declared_times_of_every_unit_are_equal_categories(unit, make):
    """Slips: items of NumPy, or nanoseconds as integers, beside times of Python; an error of polars
    about seconds; dates that are not midnights.
    """
    tables, categories = tables_of(DAYS), make(DAYS[:2].astype(f"M8[{unit}]"))
    del tables[4]  # of objects: their samples are the declared ones
    assert_equal_categories(tables, tables[::3], ("categorical", categories))


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
def test_dates_are_midnights():
    """Slip: dates of Python, which are equal to no time."""
    for days in (DAYS[:, None], pl.DataFrame({"day": pl.Series(DAYS)})):
        for times in tables_of(DAYS):
            for learned, rows in ((days, times), (times, days)):
                options = {"handle_unknown": "error", "n_iter": 1, "random_state": 0}
                rbm = TabularRBM(2, kinds={0: "categorical"}, **options).fit(learned)
                np.testing.assert_array_equal(rbm.score_samples(rows), rbm.score_samples(learned))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_equal_instants_of_two_zones_are_equal_categories(library):
    """Slip: a time that comes twice in its zone, in the night in which summer ends, which Python
    compares with no time of another zone.
    """
    nights = pd.Series(pd.to_datetime(["2020-10-25 00:30", "2020-07-01 00:00"] * 20, utc=True))
    X, other = (
        pd.DataFrame({"day": nights.dt.tz_convert(zone)}) for zone in ("UTC", "Europe/Berlin")
    )
    if library == "polars":
        days = pl.Series(nights.dt.tz_localize(None).to_numpy())
        X = pl.DataFrame({"day": days.dt.replace_time_zone("UTC")})
        other = X.with_columns(pl.col("day").dt.convert_time_zone("Europe/Berlin"))
    for one, two in ((X, other), (other, X)):
        options = {"handle_unknown": "error", "n_iter": 1, "random_state": 0}
        rbm = TabularRBM(2, kinds={"day": "categorical"}, **options).fit(one)
        np.testing.assert_array_equal(rbm.score_samples(two), rbm.score_samples(one))


@pytest.mark.parametrize(
    "categories", [[-1, 2**63 + 1], [-1, 2**63], [0, 2**63 + 1], [-1, 10**400]]
)
@pytest.mark.parametrize("is_declared", [False, True])
def test_large_integers_are_categories(categories, is_declared):
    """Slip: integers of both signs in floating point. They were missing, or others, after impute."""
    X = np.array(categories * 20, dtype=object)[:, None]
    kinds = {0: ("categorical", categories) if is_declared else "categorical"}
    rbm = TabularRBM(2, kinds=kinds, n_iter=1, random_state=0).fit(X)
    assert rbm.categories_[0].tolist() == categories
    assert rbm.impute(X, n_gibbs_steps=1).tolist() == X.tolist()
    assert {type(x) for x in rbm.sample(10, 1)[:, 0]} == {int}


SHARES = pd.DataFrame({"a": [0.1, 1 / 3, -2.7] * 20})


@pytest.mark.parametrize("handle_unknown", ["error", "nearest"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, np.column_stack])
@pytest.mark.parametrize("learned", [np.float32, np.float64, "declared"])
def test_categories_are_the_same_in_both_precisions(learned, make, handle_unknown):
    """Slip: 0.1 in single precision, which is another number in double precision; exact matches of
    "nearest" counted as new.
    """
    one, two = (
        make([x]) if make is np.column_stack else make({"a": x})
        for x in (SHARES["a"].to_numpy(np.float32), SHARES["a"].to_numpy())
    )
    name = 0 if make is np.column_stack else "a"
    kind = ("categorical", [-2.7, 0.1, 1 / 3]) if learned == "declared" else "categorical"
    options = {"handle_unknown": handle_unknown, "n_iter": 2, "random_state": 0}
    rbm = TabularRBM(2, kinds={name: kind}, **options).fit(two if learned == np.float64 else one)
    np.testing.assert_array_equal(rbm.score_samples(one), rbm.score_samples(two))
    assert not rbm._model.check_X(one, finite=False).n_nearest.any()
    for table in (one, two):
        filled = rbm.impute(table, n_gibbs_steps=1)
        assert np.asarray(filled).tolist() == np.asarray(table).tolist()


def test_categories_that_single_precision_makes_equal_stay_apart():
    """Slip: the first of two categories for a number that is both of them."""
    X = np.array([[0.1], [0.1 + 1e-12], [0.5]] * 20)
    rbm = TabularRBM(2, kinds={0: "categorical"}, n_iter=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="unknown category"):
        rbm.free_energy(X[:1].astype(np.float32))
    np.testing.assert_array_equal(rbm.free_energy(np.float32([[0.5]])), rbm.free_energy(X[2:3]))


@pytest.mark.parametrize("values", [[1, True, "x", None], [False, 0.0, None, 2]])
@pytest.mark.parametrize("kind", ["categorical", "binary"])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame, pl.DataFrame])
def test_truth_values_and_equal_numbers_in_one_column_are_refused(values, kind, make):
    """Slip: one category for both, of which samples have only the first."""
    cells = np.array(values * 20, dtype=object)
    if make is pl.DataFrame:
        X = pl.DataFrame({"0": pl.Series(cells.tolist(), dtype=pl.Object)})
    else:
        X = make(cells[:, None], dtype=object)
    options = {"kinds": {0: kind}, "n_iter": 1, "missing": "marginalize"}
    message = r"Column '?0'? .* that are equal: (True|False) of type bool and (1|0.0) of type"
    with pytest.raises(ValueError, match=message):
        TabularRBM(2, **options).fit(X)
    TabularRBM(2, kinds={0: ("categorical", [True, False, "x", 2])}, n_iter=1).fit(cells[:, None])


@pytest.mark.parametrize(
    "categories",
    [[True, 1, "x"], [1, "x", 1.0], [np.datetime64("2020-01-01", "D"), datetime(2020, 1, 1)]],
)
def test_equal_categories_are_declared_once(categories):
    """Slip: two categories, of which one has no rows."""
    X = np.array(["x", 1] * 20, dtype=object)[:, None]
    with pytest.raises(ValueError, match="Column 0 has categories that are equal: "):
        TabularRBM(2, kinds={0: ("categorical", categories)}, n_iter=1).fit(X)


def test_missing_values_are_no_categories():
    """Slip: the missing value that `unique` of an incomplete column lists."""
    port = pd.Series(["C", "Q", None, "Q"] * 20, dtype=object)
    X = pd.DataFrame({"port": port, "y": COUNTS[:4].repeat(20) / 7})
    kinds = {"port": ("categorical", port.unique())}
    rbm = TabularRBM(2, kinds=kinds, n_iter=2, random_state=0).fit(X)
    assert rbm.categories_[0].tolist() == ["C", "Q"]
    assert not rbm.impute(X, random_state=0)["port"].isna().any()


def test_integers_of_sparse_columns_are_rounded():
    """Slip: a fraction that is cut off, because the type has another name."""
    y = np.random.default_rng(0).normal(size=60)
    X = pd.DataFrame({"count": COUNTS // 7, "y": y})
    other = X.assign(count=pd.arrays.SparseArray(X["count"]))
    options = {"n_iter": 2, "random_state": 0, "numeric_scale": "standard"}
    one, two = (
        TabularRBM(2, **options).fit(table).sample(50, 5, random_state=0) for table in (X, other)
    )
    np.testing.assert_array_equal(one["count"], np.asarray(two["count"]))
    assert two["count"].dtype == other["count"].dtype


@pytest.mark.parametrize(
    "dtype",
    [
        *[("f8", 0.0), ("f8", np.nan), ("f4", np.float32(1))],
        *[(int, 1), (bool, True), (bool, False)],
    ],
)
def test_sparse_columns_of_every_fill_value_are_drawn(dtype):
    """Slips: a fill value that pandas cannot read in the name of a type; a True that is no text."""
    X = pd.DataFrame({"bit": np.arange(60) % 3 == 0, "y": np.arange(60) ** 0.5})
    X["bit"] = X["bit"].astype(dtype[0]).astype(pd.SparseDtype(*dtype))
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    drawn = rbm.sample(200, 5, random_state=0)
    assert drawn["bit"].dtype == X["bit"].dtype
    assert 0.1 < np.asarray(drawn["bit"]).mean() < 0.6
    pd.testing.assert_frame_equal(rbm.fit(drawn).sample(3).dtypes.to_frame(), X.dtypes.to_frame())


@pytest.mark.parametrize("bound", [0.1, -0.1])
def test_bounds_of_single_precision_numbers_are_rounded_as_they_are(bound):
    """Slip: a bound in single precision that is beyond the same bound in double precision."""
    low, high = sorted([np.float64(0), np.float64(bound)])
    X = np.array([[bound / 2], [bound]], dtype=np.float32)
    TabularRBM(2, kinds={0: ("interval", low, high)}, check_input="raise", n_iter=1).fit(X)
    with pytest.raises(ValueError, match="is an interval"):
        TabularRBM(2, kinds={0: ("interval", low, high)}, check_input="raise").fit(X * 1.01)


def test_known_cells_of_columns_without_categories_stay():
    """Slip: None for every cell of a column that had no value in fit."""
    X = pd.DataFrame({"x": np.arange(40) / 7, "a": pd.Series([None] * 40, dtype=object)})
    with pytest.warns(UserWarning, match="no observed value"):
        rbm = TabularRBM(2, n_iter=1, random_state=0).fit(X)
    new = X.assign(a=["foo", None] * 20)
    filled = rbm.impute(new, n_gibbs_steps=1)
    assert filled["a"][0] == "foo"
    assert filled["a"].isna()[1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_may_be_decimals(library):
    """Slip: a name of NumPy's types expected of every column (polars: `Decimal(precision=...)`)."""
    prices = [Decimal("1.50"), Decimal("2.25")] * 10
    make = pd.DataFrame if library == "pandas" else pl.DataFrame
    X = make({"price": prices, "side": ["left", "right"] * 10})
    rbm = TabularRBM(2, kinds={"price": "categorical"}, n_iter=1, random_state=0).fit(X)
    assert [str(x) for x in rbm.categories_[0]] == ["1.50", "2.25"]
    assert list(rbm.impute(X)["price"]) == prices


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "Int64", "uint64", "int64[pyarrow]"])
def test_rounded_numbers_stay_within_their_type(dtype):
    # Slips: an overflow to the other end, the largest 64-bit integer by way of a float.
    limits = np.iinfo(dtype.lower().removesuffix("[pyarrow]"))
    numbers = rounded(np.array([-1e30, 2.5, 1e30]), dtype)
    assert numbers.tolist() == [limits.min, 2, limits.max]
