"""Checks of what users hand over, and the promise that a failed fit leaves no trace."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isfunction, unwrap
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array

from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.likelihood.exact import TooManyStatesError
from skrbm.core.numerics import Array
from skrbm.core.units import QuadratureError, Units

T = TypeVar("T")
RANDOM_STATE = ["random_state", np.random.Generator]
FLOATS = (np.float64, np.float32)
LIBRARIES = ("skrbm.", "sklearn.")
EXTREMES_BLOCK = 2**16  # values that are read twice: half a megabyte stays in a core's cache


def public_methods_of(cls: type[T]) -> type[T]:
    """Class whose methods have no class in their name: users know them as those of another one.

    Its module answers for them, so that they can be pickled by that name.
    """
    for method in filter(isfunction, vars(cls).values()):
        method.__qualname__ = unwrap(method).__qualname__ = method.__name__
    vars(sys.modules[cls.__module__])["__getattr__"] = partial(getattr, cls)
    return cls


class DomainWarning(UserWarning):
    """Data have values that the units cannot take."""


class AnnealingWarning(UserWarning):
    """An annealed estimate rests on too few chains to be believed."""


class VersionWarning(UserWarning):
    """A pickle was written by another version of the package."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into this package or, through it, into scikit-learn."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def write_attributes(estimator: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Write attributes to an estimator: all that a fit changes passes here, when it is over.

    Parameters
    ----------
    estimator : BaseEstimator
        That was fitted, or the copy of it that a fit works on.
    attributes : dict
        By their names; None for one that the estimator has no more.
    """
    for name, value in attributes.items():
        if value is not None:
            setattr(estimator, name, value)
        elif hasattr(estimator, name):
            delattr(estimator, name)


@contextmanager
def restored_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Put every attribute back if the body fails.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose attributes the body may set.

    Yields
    ------
    None
        Control.
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
    """Weights of rows in double precision, or None where they are None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        As the user gave it; a weight of k is k copies of a row.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, checked or as the user gave them.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
        Not all zero.

    Raises
    ------
    ValueError
        If a weight is negative, infinite or NaN, if their sum is zero or beyond the range of doubles,
        or if there is not one for each row.
    """
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    with np.errstate(over="ignore"):
        is_summable = np.finfo(np.float64).tiny <= weights.sum() < np.inf
    if weights.min() < 0 or not is_summable:
        raise ValueError(
            f"sample_weight expected to be at least zero, and positive for some rows, with a sum in "
            f"the range of doubles, got values from {weights.min():g} to {weights.max():g}. A weight "
            f"of k is k copies of a row; leave rows out by a weight of zero."
        )
    return np.asarray(weights)


def present_rows(X: Any, sample_weight: Array | None, *others: Array) -> tuple[Any, ...]:
    """Rows of positive weight with their weights; no copies where that is all of them.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, checked or as the user gave them.
    sample_weight : ndarray of shape (n_samples,) or None
        From `check_weights`.
    *others : ndarray of shape (n_samples, ...)
        What else belongs to the rows.

    Returns
    -------
    present : tuple
        Rows, weights and others.
    """
    if sample_weight is None or sample_weight.all():
        return X, sample_weight, *others
    rows, X = np.flatnonzero(sample_weight), X.tocsr() if issparse(X) else X
    present = _safe_indexing(X, rows)
    return present, sample_weight[rows], *(other[rows] for other in others)


def number_of_rows(sample_weight: Array) -> float:
    """Number of rows without weights that these are worth.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,)
        Positive weights.

    Returns
    -------
    n_rows : float
        Weighted rows are as many as their copies; where weights are small, such as shares of a
        sum of one, as many equal ones as tell a mean as well [1]_.

    References
    ----------
    .. [1] Kish (1965), "Survey sampling", Wiley, section 11.7.
    """
    shares = sample_weight / sample_weight.max()  # whose squares are finite
    return max(float(sample_weight.sum()), float(shares.sum() ** 2 / (shares @ shares)))


def floating_type(X: Any, fallback: Any) -> Any:
    """Precision of `X` if it is single or double, else `fallback`."""
    return X.dtype if X.dtype in FLOATS else np.dtype(fallback)


def check_parameter(estimator: BaseEstimator, name: str, ndim: int) -> Array:
    """Public array of an estimator, fitted or assigned by hand.

    Parameters
    ----------
    estimator : BaseEstimator
        Has the attribute.
    name : str
        Name of the attribute.
    ndim : int
        Number of dimensions that it must have.

    Returns
    -------
    array : ndarray
        Single or double precision; the attribute itself when it is such an array.

    Raises
    ------
    ValueError
        If the attribute is not a finite array of that many dimensions.
    """
    parameter_shape(estimator, name, ndim)
    value = getattr(estimator, name)
    return np.asarray(check_array(value, dtype=FLOATS, ensure_2d=ndim == 2, input_name=name))


def parameter_shape(estimator: BaseEstimator, name: str, ndim: int) -> tuple[int, ...]:
    """Shape of a public array, or a ValueError if it has not that many dimensions."""
    shape: tuple[int, ...] = np.shape(getattr(estimator, name))
    if len(shape) != ndim:
        raise ValueError(f"Expected {name} to be {ndim}-dimensional, got shape {shape}.")
    return shape


def check_width(X: Any, expected: int, estimator: BaseEstimator, what: str = "features") -> None:
    """Raise a ValueError unless `X` has as many columns as the model has units."""
    if X.shape[1] != expected:
        raise ValueError(
            f"X has {X.shape[1]} {what}, but {type(estimator).__name__} is expecting "
            f"{expected} {what} as input."
        )


def compared_domain(units: type[Units], estimator: BaseEstimator) -> tuple[float, float] | None:
    """Range with which `check_domain` compares data, None where it does not look at them."""
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
    """Compare data with what the units can take, if they are to be compared.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_units)
        Numbers; in one look at them, those that are not finite are found as well.
    units : type
        Unit type; its domain decides.
    estimator : BaseEstimator
        Its `check_input` says what to do about values outside.
    name : str, default="X"
        What to call the data.
    allow_nan : bool, default=False
        Whether NaN is a value that is not known, and left out.

    Raises
    ------
    ValueError
        If a compared value is not finite, or lies outside and `check_input` is "raise".
    """
    domain = compared_domain(units, estimator)
    if domain is None or (X.dtype == bool and domain[0] == 0):
        return
    (low, high), (lowest, highest) = domain, _extremes(X, allow_nan)
    rounding = 4 * np.finfo(floating_type(X, np.float64)).eps
    if allow_nan and np.isnan(lowest):  # nothing is known
        return
    is_inside = lowest >= low - rounding and highest <= high + rounding and np.isfinite(highest)
    if is_inside and not ((lowest, highest) == (0, 1) and low < 0 and _are_bits(X)):
        return
    assert_all_finite(
        X, allow_nan=allow_nan, estimator_name=type(estimator).__name__, input_name=name
    )
    if is_inside:
        message = (
            f"{units.__name__} units expect {low:g} and {high:g}, but {name} has only 0 and 1, and 0 "
            f"would be read as undecided. Pass 2 * {name} - 1, take BernoulliRBM, or set "
            f"check_input='ignore'."
        )
    elif np.isinf(high):
        message = (
            f"{units.__name__} units expect values of at least {low:g}, but {name} has values from "
            f"{lowest:.9g}. Pass states of these units, or set check_input='ignore'."
        )
    else:
        scaler = "MaxAbsScaler(), make counts 0 and 1 with sklearn.preprocessing.Binarizer()"
        if not issparse(X):  # which MinMaxScaler refuses
            scaler = f"MinMaxScaler(({low:g}, {high:g}), clip=True)"
        message = (
            f"{units.__name__} units expect values in [{low:g}, {high:g}], but {name} has values "
            f"from {lowest:.9g} to {highest:.9g}. Rescale them, for example with "
            f"sklearn.preprocessing.{scaler}, or set check_input='ignore'."
        )
    if estimator.check_input == "raise":
        raise ValueError(message)
    warn_user(message, DomainWarning)


def _are_bits(X: Any) -> bool:
    """True if all values are 0 or 1."""
    values = X.data if issparse(X) else X
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


def _extremes(X: Any, allow_nan: bool) -> tuple[float, float]:
    """Least and greatest value, or NaN; both are sought in what is in the cache."""
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
    """Say which of an estimator's parameters to change where the core cannot know them.

    Yields
    ------
    None
        Control.
    """
    try:
        yield
    except TooManyStatesError as error:
        advice = (
            "Use method='ais' for the partition function, algorithm='pcd' for training, or fewer "
            "n_components."
        )
        raise TooManyStatesError(f"{error} {advice}") from None
    except QuadratureError as error:
        advice = (
            "Subtract the mean of the data, for example with sklearn.preprocessing.StandardScaler. "
            "Reduce components_ or enlarge noise_variance_ of a model that has exploded."
        )
        raise QuadratureError(f"{error} {advice}") from None


@contextmanager
def explain_input_errors(estimator: BaseEstimator) -> Iterator[None]:
    """Name what takes text and missing values, where scikit-learn refuses them.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose rows the body checks.

    Yields
    ------
    None
        Control.
    """
    name = type(estimator).__name__
    try:
        yield
    except ValueError as error:
        message = str(error)
        if "contains NaN" in message:
            advice = "Fill them in with impute or skrbm.RBMImputer"
            if getattr(estimator, "missing", None) != "marginalize":
                advice += ", or set missing='marginalize' for fit, transform and score_samples"
            raise ValueError(
                f"{message.splitlines()[0]}\n{name} does not accept missing values encoded as NaN "
                f"here: free_energy, log_likelihood and draws need complete rows. {advice}."
            ) from None
        if "could not convert" in message or "bytes/strings" in message:
            raise ValueError(
                f"X expected numbers in every column, got text: {message} Use skrbm.TabularRBM, which "
                f"takes tables with categories, or encode them, for example with "
                f"sklearn.preprocessing.OneHotEncoder."
            ) from None
        raise


@contextmanager
def finite_results() -> Iterator[Callable[[Array], None]]:
    """Compute quietly, and refuse results that are not finite.

    Yields
    ------
    check : callable
        Raises a ValueError if an array is not finite.
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
    """Independent NumPy generators from what scikit-learn accepts as a random state, or from one.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        Seed, stream that is drawn from, or None for the global stream.
    n_generators : int
        How many.

    Returns
    -------
    generators : list of numpy.random.Generator
        Not kept in step with the random state.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        draw = check_random_state(random_state).randint
    return [
        np.random.default_rng(draw(2**32, size=4, dtype=np.uint32).tolist())
        for _ in range(n_generators)
    ]
