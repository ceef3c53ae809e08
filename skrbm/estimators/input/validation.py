"""Validation of user input, and restoration of an estimator after a failed fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isfunction, unwrap
from numbers import Integral
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing, assert_all_finite, check_random_state, get_tags
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    make_constraint,
    validate_params,
)
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.likelihood.exact import TooManyStatesError
from skrbm.core.numerics import Array
from skrbm.core.units import QuadratureError, Units
from skrbm.estimators.input.array_libraries import to_numpy

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
WeightSums = tuple[float, float]  # see `weight_sums`
RANDOM_STATE = ["random_state", np.random.Generator]
FLOATS = (np.float64, np.float32)
LIBRARIES = ("skrbm.", "sklearn.")
EXTREMES_BLOCK = 2**16  # values: half a megabyte, which stays in the cache for the second pass


def public_methods_of(cls: type[T]) -> type[T]:
    """Remove the name of a mix-in class from the qualified names of its methods.

    Error messages then show the name of the method alone. Methods can still be pickled, because the
    module of the mix-in looks up their new names in the class.
    """
    for method in filter(isfunction, vars(cls).values()):
        method.__qualname__ = unwrap(method).__qualname__ = method.__name__
    vars(sys.modules[cls.__module__])["__getattr__"] = partial(getattr, cls)
    return cls


def checked_arguments(**constraints: Any) -> Callable[[Function], Function]:
    """Decorator that checks the arguments of a function by scikit-learn's constraints.

    Arguments without constraints are not checked, even if they are passed on to another decorated
    function.
    """
    return validate_params(constraints, prefer_skip_nested_validation=True)


class Described(HasMethods):
    """Another constraint of scikit-learn, with a description for error messages."""

    def __init__(self, constraint: Any, description: str) -> None:
        super(HasMethods, self).__init__()  # scikit-learn takes no other class of constraints
        self.constraint, self.description = make_constraint(constraint), description

    def is_satisfied_by(self, val: Any) -> bool:
        return self.constraint.is_satisfied_by(val)

    def __str__(self) -> str:
        return self.description


class Count(Interval):
    """Constraint of a positive integer, which is no boolean."""

    def __init__(self) -> None:
        super().__init__(Integral, 1, None, closed="left")

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


COUNT = [Count()]


def estimator_of(constraint: Any) -> Described:
    """Constraint of a parameter that may be an estimator of this package."""
    description = (
        f"{make_constraint(constraint)}, such as the estimators of skrbm ('from skrbm import "
        f"BernoulliRBM', not from sklearn.neural_network)"
    )
    return Described(constraint, description)


def tags_of(estimator: Any) -> Tags:
    """Tags of an inner estimator.

    Raises
    ------
    TypeError
        If the estimator is a class, which older versions of scikit-learn do not explain.
    """
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"Expected an estimator instance ({name}()), got the class {name}.")
    return get_tags(estimator)


class DomainWarning(UserWarning):
    """Warning that data have values that the units cannot take, or unknown categories."""


class AnnealingWarning(UserWarning):
    """Warning that an estimate of the partition function is not reliable."""


class OverfittingWarning(UserWarning):
    """Warning that a model is likely to be overfitted.

    On new rows, it is expected to lose most of the gain in log-likelihood over a model of
    independent features.
    """


class VersionWarning(UserWarning):
    """Warning that a pickle was written by another version of the package."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of user code that called this package or scikit-learn."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def write_attributes(estimator: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Write fitted attributes to an estimator.

    `fit_estimator` calls this function after training, so that invalid input leaves the estimator
    unchanged.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted estimator, or a copy of an estimator that a fit modifies.
    attributes : dict
        Values by name; None deletes the attribute.
    """
    for name, value in attributes.items():
        if value is not None:
            setattr(estimator, name, value)
        elif hasattr(estimator, name):
            delattr(estimator, name)


@contextmanager
def restored_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Context manager that restores all attributes of an estimator if its body fails.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator whose attributes the body may set.

    Yields
    ------
    None
        Nothing.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        with deferred_interrupts():
            vars(estimator).clear()
            vars(estimator).update(before)
        raise


def check_weights(sample_weight: Any, X: Any) -> Array | None:
    """Validate sample weights.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        Weights from the user; a weight of k is equivalent to k copies of the row. A float is the
        weight of every row.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, validated or not.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
        Weights in double precision, not all zero; None if the input is None.

    Raises
    ------
    ValueError
        If a weight is negative, infinite or NaN, if the sum of the weights is zero, subnormal or
        infinite in double precision, or if the number of weights is not the number of rows.
    """
    if sample_weight is None:
        return None
    weights = _check_sample_weight(to_numpy(sample_weight), X, dtype=np.float64)
    with np.errstate(over="ignore"):
        is_summable = np.finfo(np.float64).tiny <= weights.sum() < np.inf
    if weights.min() < 0 or not is_summable:
        raise ValueError(
            f"sample_weight expected to be at least zero, and positive for some rows, with a sum "
            f"in the range of double precision, got values from {weights.min():g} to "
            f"{weights.max():g}. A weight of k equals k copies of a row; zero leaves it out."
        )
    return np.asarray(weights)


def present_rows(X: Any, sample_weight: Array | None, *others: Array) -> tuple[Any, ...]:
    """Select the rows with positive weights, without a copy if all weights are positive.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, validated or not.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights returned by `check_weights`.
    *others : ndarray of shape (n_samples, ...)
        Further arrays with one entry per row, such as labels.

    Returns
    -------
    present : tuple
        Selected rows, their weights, and their entries in the other arrays. If `sample_weight` is
        None, all rows are selected, and the weights are None.
    """
    if sample_weight is None or sample_weight.all():
        return X, sample_weight, *others
    rows, X = np.flatnonzero(sample_weight), X.tocsr() if issparse(X) else X
    present = _safe_indexing(X, rows)
    return present, sample_weight[rows], *(other[rows] for other in others)


def weight_sums(sample_weight: Array) -> WeightSums:
    """Sum of the weights, and sum of their squares divided by the sum of the weights.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,)
        Positive weights.

    Returns
    -------
    total, mean_weight : float
        Sum of the weights, and weighted mean of the weights.
    """
    largest = sample_weight.max()
    shares = sample_weight / largest  # so that squares do not overflow
    return float(sample_weight.sum()), float(largest * (shares @ shares) / shares.sum())


def merged_weight_sums(one: WeightSums, other: WeightSums) -> WeightSums:
    """`weight_sums` of the union of two sets of rows."""
    (total_one, mean_one), (total_other, mean_other) = one, other
    total = total_one + total_other
    return total, mean_one + total_other / total * (mean_other - mean_one)


def number_of_rows(sums: WeightSums) -> float:
    """Effective number of weighted rows.

    Parameters
    ----------
    sums : tuple of two floats
        Result of `weight_sums`.

    Returns
    -------
    n_rows : float
        Sum of the weights or, if it is larger, Kish's effective sample size [1]_. If the weights
        are numbers of copies of the rows, the sum is the number of rows. Kish's size is larger if
        the weights are small, for example if they are shares with a sum of one.

    References
    ----------
    .. [1] Kish (1965), "Survey sampling", Wiley, section 11.7.
    """
    total, mean_weight = sums
    return total / min(1.0, mean_weight)


def floating_type(X: Any, fallback: Any) -> Any:
    """Data type of `X` if it is single or double precision, otherwise the data type `fallback`."""
    return X.dtype if X.dtype in FLOATS else np.dtype(fallback)


def is_time_type(dtype: Any) -> bool:
    """True for the data types of dates, times and durations of NumPy, pandas and polars."""
    if hasattr(dtype, "is_temporal"):  # of polars
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", None) in ("M", "m") or type(dtype).__name__ == "PeriodDtype"


def check_has_arrays(rbm: Any) -> None:
    """Raise a NotFittedError, which names absent arrays, unless an RBM has its public arrays."""
    names, absent = rbm._public_names, rbm._absent_names
    if 0 < len(absent) < len(names):
        raise NotFittedError(
            f"{type(rbm).__name__} expected the arrays {', '.join(names)}, got no "
            f"{', '.join(absent)}. Assign all of them, or call fit."
        )
    check_is_fitted(rbm)


def check_parameter(estimator: BaseEstimator, name: str, ndim: int) -> Array:
    """Validate a public array of an estimator, which may be fitted or assigned by hand.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator with the attribute.
    name : str
        Name of the attribute.
    ndim : int
        Expected number of dimensions.

    Returns
    -------
    array : ndarray
        Array in single or double precision, without a copy if possible.

    Raises
    ------
    ValueError
        If the attribute is not an array of finite numbers with `ndim` dimensions.
    """
    parameter_shape(estimator, name, ndim)
    value = to_numpy(getattr(estimator, name))
    # Most calls end here; `check_array` takes 80 microseconds.
    is_floating = type(value) is np.ndarray and value.dtype in FLOATS
    if is_floating and value.size and np.isfinite(value).all():
        return value
    return np.asarray(check_array(value, dtype=FLOATS, ensure_2d=ndim == 2, input_name=name))


def parameter_shape(estimator: BaseEstimator, name: str, ndim: int) -> tuple[int, ...]:
    """Shape of a public array.

    Raises
    ------
    ValueError
        If the number of dimensions is not `ndim`.
    """
    shape: tuple[int, ...] = np.shape(getattr(estimator, name))
    if len(shape) != ndim:
        raise ValueError(f"Expected {name} to be {ndim}-dimensional, got shape {shape}.")
    return shape


def check_width(
    X: Any, expected: int, estimator: BaseEstimator, *, name: str = "X", what: str = "features"
) -> None:
    """Raise a ValueError unless `X` has `expected` columns; messages use `name` and `what`."""
    if X.shape[1] != expected:
        raise ValueError(
            f"{name} has {X.shape[1]} {what}, but {type(estimator).__name__} is expecting "
            f"{expected} {what} as input."
        )


def compared_domain(units: type[Units], estimator: BaseEstimator) -> tuple[float, float] | None:
    """Range of values that the units can take, or None if `check_domain` accepts all values."""
    is_bounded = estimator.check_input != "ignore" and np.isfinite(units.support.low)
    return (units.support.low, units.support.high) if is_bounded else None


def check_domain(
    X: Any,
    units: type[Units],
    estimator: BaseEstimator,
    *,
    name: str = "X",
    allow_nan: bool = False,
) -> None:
    """Check that data are in the domain of the units, unless `check_input` is "ignore".

    The data are not checked if the units can take all real numbers.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_units)
        Numbers, which may include NaN and infinite values.
    units : type
        Unit type.
    estimator : BaseEstimator
        Estimator with the parameter `check_input`.
    name : str, default="X"
        Name of the data in messages.
    allow_nan : bool, default=False
        True to ignore NaN, which then marks missing values.

    Raises
    ------
    ValueError
        If a value is not finite, except for NaN with `allow_nan`, or if a value is outside the
        domain and `check_input` is "raise".

    Warns
    -----
    DomainWarning
        If a value is outside the domain and `check_input` is "warn". Data of spins that consist of
        0 and 1 count as outside the domain.
    """
    domain = compared_domain(units, estimator)
    if domain is None or (X.dtype == bool and domain[0] == 0):
        return
    (low, high), (lowest, highest) = domain, _extremes(X, allow_nan)
    rounding = 4 * np.finfo(floating_type(X, np.float64)).eps
    if allow_nan and np.isnan(lowest):  # no value is observed
        return
    is_inside = lowest >= low - rounding and highest <= high + rounding and np.isfinite(highest)
    are_bits_of_spins = (lowest, highest) == (0, 1) and 0 not in units.support.values
    if is_inside and not (are_bits_of_spins and low < 0 and _are_bits(X)):
        return
    assert_all_finite(
        X, allow_nan=allow_nan, estimator_name=type(estimator).__name__, input_name=name
    )
    rows = f"{name}.toarray()" if issparse(X) else name
    if is_inside:
        message = (
            f"{units.__name__} units expect {low:g} and {high:g}, but {name} has only 0 and 1, and "
            f"0 would be read as a mean of zero. Pass 2.0 * {rows} - 1, use BernoulliRBM, or set "
            f"check_input='ignore'."
        )
    elif np.isinf(high):
        message = (
            f"{units.__name__} units expect values of at least {low:g}, but {name} has values from "
            f"{lowest:.9g}. Pass states of these units, or set check_input='ignore'."
        )
    else:
        scaler = f"MinMaxScaler(({low:g}, {high:g}), clip=True)"
        if issparse(X) and low == 0 <= lowest:  # these scalers keep zeros, and X sparse
            rows = name
            scaler = "MaxAbsScaler(), make counts 0 and 1 with sklearn.preprocessing.Binarizer()"
        message = (
            f"{units.__name__} units expect values in [{low:g}, {high:g}], but {name} has values "
            f"from {lowest:.9g} to {highest:.9g}. Rescale {rows}, for example with "
            f"sklearn.preprocessing.{scaler}, or set check_input='ignore'."
        )
    if estimator.check_input == "raise":
        raise ValueError(message)
    warn_user(message, DomainWarning)


def _are_bits(X: Any) -> bool:
    """True if all values are 0, 1 or NaN."""
    values = X.data if issparse(X) else X
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


def _extremes(X: Any, allow_nan: bool) -> tuple[float, float]:
    """Smallest and largest value, computed in blocks that fit into the cache.

    In a dense array, NaN is ignored if `allow_nan` is True. Otherwise, both results are NaN if the
    data contain NaN.
    """
    if issparse(X):
        return float(X.min()), float(X.max())
    lines = X.T if X.flags.f_contiguous else X
    n_lines = max(1, EXTREMES_BLOCK // lines.shape[1])
    blocks = [lines[begin : begin + n_lines] for begin in range(0, len(lines), n_lines)]
    least, greatest = (np.fmin, np.fmax) if allow_nan else (np.minimum, np.maximum)
    extremes = np.array([[f.reduce(block, None) for f in (least, greatest)] for block in blocks])
    return float(least.reduce(extremes[:, 0])), float(greatest.reduce(extremes[:, 1]))


@contextmanager
def explain_core_errors() -> Iterator[None]:
    """Context manager that adds advice to errors about too many states and failed quadratures.

    Yields
    ------
    None
        Nothing.
    """
    try:
        yield
    except TooManyStatesError as error:
        advice = "Use method='ais' for the partition function, or algorithm='pcd' for training."
        raise TooManyStatesError(f"{error} {advice}") from None
    except QuadratureError as error:
        advice = (
            "Subtract the mean of the data, for example with sklearn.preprocessing.StandardScaler. "
            "If the model has diverged, reduce components_ or increase noise_variance_."
        )
        raise QuadratureError(f"{error} {advice}") from None


@contextmanager
def explain_missing_values(estimator: BaseEstimator) -> Iterator[None]:
    """Context manager that adds advice to scikit-learn's errors about missing values.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator whose rows the body checks.

    Yields
    ------
    None
        Nothing.
    """
    name = type(estimator).__name__
    try:
        yield
    except ValueError as error:
        message = str(error)
        if "contains NaN" not in message:
            raise
        advice = "Put skrbm.RBMImputer before the estimator in a Pipeline, or use impute."
        if getattr(estimator, "missing", None) != "marginalize":
            advice += (
                f" fit, transform, score_samples and log_likelihood of {name} accept missing "
                f"values if missing='marginalize'."
            )
        raise ValueError(
            f"{message.splitlines()[0]}\n{name} does not accept missing values encoded as NaN "
            f"here: free_energy, draws, RBMClassifier and sparse X need complete rows. {advice}"
        ) from None


@contextmanager
def explain_other_types(X: Any) -> Iterator[None]:
    """Context manager that refuses dates, and adds advice to errors about text and dates.

    Parameters
    ----------
    X : object
        Rows that the body converts to numbers.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    TypeError
        If the rows have dates, times or other objects that are no numbers.
    ValueError
        If the rows have text.
    """
    expected = "X expected numbers in every column, got"
    advice = "Convert dates to numbers, for example to days, counted from the first date."
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        # Dates of polars would be converted to large numbers.
        columns = zip(X.columns, X.dtypes, strict=True)
        dates = [name for name, dtype in columns if is_time_type(dtype)]
        if dates:
            raise TypeError(f"{expected} dates or times in columns {dates[:10]}. {advice}")
    elif is_time_type(getattr(X, "dtype", None)):
        raise TypeError(f"{expected} {X.dtype}. {advice}")
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if "could not convert" in message or "bytes/strings" in message:
            text = message.partition("float: ")[2].removeprefix("np.str_(").removesuffix(")")
            raise ValueError(
                f"{expected} text{text and ', '}{text}. Use skrbm.TabularRBM, which accepts tables "
                f"with categories, or encode them, for example with "
                f"sklearn.preprocessing.OneHotEncoder."
            ) from None
        if "argument must be a string or a real number" in message:
            raise TypeError(f"{expected} dates or other objects: {message}. {advice}") from None
        raise


@contextmanager
def finite_results() -> Iterator[Callable[[Array], None]]:
    """Context manager that suppresses floating-point warnings, and yields a check of results.

    Yields
    ------
    check : callable
        Function that raises a ValueError if an array is not finite.
    """

    def check(results: Array) -> None:
        if not np.isfinite(results).all():
            raise ValueError(
                f"Expected finite results, got infinity or NaN: X or the parameters are beyond the "
                f"range of {results.dtype}. Rescale X or, if they are single precision, pass both "
                f"in double precision."
            )

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield check


def generators(random_state: Any, n_generators: int) -> list[np.random.Generator]:
    """Create independent NumPy generators from a random state.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        Seed, or generator from which seeds are drawn. If None, NumPy's global generator is used.
    n_generators : int
        Number of generators.

    Returns
    -------
    generators : list of numpy.random.Generator
        Generators that do not share state with `random_state`. Unless `random_state` is an int, the
        generator from which seeds are drawn is advanced.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        draw = check_random_state(random_state).randint
    return [
        np.random.default_rng(draw(2**32, size=4, dtype=np.uint32).tolist())
        for _ in range(n_generators)
    ]
