"""Numerically stable functions, and helpers for arrays and their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])

SHARED_FACTORS = 2**6  # factors in one product; if each is at most 2, 2^64 fits single precision
MAX_EXPONENT = 80  # e^80 fits single precision
BLOCK_BYTES = 2**16  # of a temporary array, which then fits the cache
IN_PLACE_BYTES = 2**18  # of a block that needs no temporary array, which can therefore be larger
MIN_RELATIVE_RANGE = 1e-9  # of the largest magnitude; smaller ranges are due to rounding
MAX_SERIES_ARGUMENT = 2**-4  # the remainder x^4 / 120 is at most 1.3e-7, about a rounding error


def sum_log_two_cosh(x: Array) -> Array:
    r"""Row sums of log(2 cosh x), without overflow.

    .. math:: \sum_j \log(2 \cosh x_j) = \sum_j |x_j| + \log \prod_j (1 + e^{-2|x_j|})

    Every factor is between 1 and 2. Several factors can therefore be multiplied before the
    logarithm of their product is taken.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_columns)
        Overwritten.

    Returns
    -------
    sums : ndarray of shape (n_rows,)
        Sums, accumulated in double precision, since the callers use differences of these sums.

    Examples
    --------
    >>> sum_log_two_cosh(np.array([[1e4, -1e4]]))
    array([20000.])
    """
    magnitude = np.abs(x, out=x)
    total = magnitude.sum(axis=1, dtype=np.float64)
    magnitude *= -2
    factors = np.exp(magnitude, out=magnitude)
    factors += 1
    return total + sum_log(factors)


def sum_log(factors: Array) -> Array:
    """Row sums of logarithms.

    On the host, several factors are multiplied before the logarithm of their product is taken.

    Parameters
    ----------
    factors : ndarray of shape (n_rows, n_columns)
        Positive factors. A product of `SHARED_FACTORS` factors of a row must neither overflow nor
        underflow. An array on a device is overwritten.

    Returns
    -------
    sums : ndarray of shape (n_rows,)
        Sums, accumulated in double precision.
    """
    if not isinstance(factors, np.ndarray):
        return np.log(factors, out=factors).sum(axis=1, dtype=np.float64)
    first = range(0, factors.shape[1], SHARED_FACTORS)
    products = np.multiply.reduceat(factors, first, axis=1)
    return np.log(products, out=products).sum(axis=1, dtype=np.float64)


def ignore_overflow(function: F) -> F:
    """Decorate a function of one argument so that it does not warn of overflow."""
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return np.errstate(over="ignore")(function)  # two calls less than a context

    @wraps(function)
    def quiet(x: Array) -> Array:
        # Before NumPy 2, all threads share the state of an errstate that is used as a decorator.
        with np.errstate(over="ignore"):
            return cast(Array, function(x))

    return cast(F, quiet)


@ignore_overflow
def logistic(x: Array) -> Array:
    """Compute the logistic function, in place, with full relative precision for small results.

    Results below the smallest normal number may be rounded to zero.

    Parameters
    ----------
    x : ndarray
        Overwritten.

    Returns
    -------
    result : ndarray
        The same array.

    Examples
    --------
    >>> logistic(np.array([-800.0, 0.0, 800.0]))
    array([0. , 0.5, 1. ])
    """
    # scipy.special.expit takes 2 to 4 times as long where NumPy has a vectorized exponential.
    x *= -1  # in-place numpy.negative is wrong for columns of four or eight values (NumPy 2.4)
    np.exp(x, out=x)  # may overflow: clipping would read and write the exponents once more
    x += 1
    return np.divide(1, x, out=x)


def expm1(x: Array, largest: float) -> Array:
    """Compute the exponential minus one, in place.

    On most processors, `numpy.expm1` has no vectorized kernel and is slow. If `x` is in single
    precision and `largest` is below `MAX_SERIES_ARGUMENT`, a short series is used, whose relative
    error is at most 3e-7.

    Parameters
    ----------
    x : ndarray
        Overwritten.
    largest : float
        Upper bound on the magnitudes of the entries of `x`.

    Returns
    -------
    result : ndarray
        The same array.

    Examples
    --------
    >>> small = np.array([1e-3], dtype=np.float32)
    >>> print(f"{expm1(small, 1e-3)[0]:.9f}")
    0.001000500
    """
    if x.dtype != np.float32 or not largest < MAX_SERIES_ARGUMENT:
        return np.expm1(x, out=x)
    rest = x / 24
    for share in (1 / 6, 1 / 2):
        rest += share
        rest *= x
    rest += 1
    x *= rest
    return x


def row_blocks(array: Array, n_bytes: int = BLOCK_BYTES) -> list[slice]:
    """Split the rows of an array into blocks.

    The number of rows of each block but the last is a multiple of four. An array on a device is a
    single block, since the purpose of smaller blocks is to fit the processor's cache.

    Parameters
    ----------
    array : ndarray of shape (n_rows, ...)
        Array to split.
    n_bytes : int, default=BLOCK_BYTES
        Largest size of a block in bytes. Blocks of at most four rows may exceed it.

    Returns
    -------
    blocks : list of slice
        Rows of each block, in order.
    """
    if array.nbytes <= n_bytes or not isinstance(array, np.ndarray):
        return [slice(None)]
    row_bytes = array.itemsize * max(1, array[:1].size)
    n_rows = max(4, n_bytes // row_bytes // 4 * 4)  # a random word contains four 16-bit numbers
    return [slice(begin, begin + n_rows) for begin in range(0, len(array), n_rows)]


def apart_from(atoms: Array, nodes: Array) -> Array:
    """Quadrature nodes, of which those that equal an atom are moved by a rounding step.

    A node at an atom would count the atom twice. An entry of `atoms` contains an atom of each unit.
    """
    for atom in atoms:
        nodes = np.where(nodes == atom, np.nextafter(nodes, np.inf), nodes)
    return nodes


def copy_into(answer: Array, out: Array | None) -> Array:
    """Copy a result into `out`, unless the result is `out` itself or `out` is None.

    Parameters
    ----------
    answer : ndarray
        Result.
    out : ndarray or None
        Output array. If None, nothing is copied.

    Returns
    -------
    answer : ndarray
        `out`, or the given result if `out` is None.
    """
    if out is None or answer is out:
        return answer
    out[...] = answer
    return out


def log_sum_exp(values: Array, axis: int) -> Array:
    """Logarithm of the sum of exponentials along an axis, without overflow.

    Parameters
    ----------
    values : ndarray
        Values below infinity, at least one of which is finite in each sum.
    axis : int
        Axis along which the exponentials are summed.

    Returns
    -------
    sums : ndarray
        In the dtype of `values`, without the axis.

    Examples
    --------
    >>> log_sum_exp(np.full((1, 2), 1e4), axis=1) - 1e4
    array([0.69314718])
    """
    # For small arrays, scipy.special.logsumexp takes ten times as long, np.logaddexp.reduce three
    # times.
    largest = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - largest).sum(axis=axis)) + largest.squeeze(axis)


def last_rows(rows: Array, other: Array | None) -> Array:
    """Last `len(other)` of the rows, or all rows if `other` is None."""
    return rows if other is None else rows[len(rows) - len(other) :]


def is_array(rows: Any) -> bool:
    """Test for an array, on the host or on a device; sparse matrices are not arrays."""
    return hasattr(rows, "__array_function__")


def is_on_host(array: Any) -> bool:
    """Test for a NumPy array, as opposed to an array on a device.

    Applied to an array on a device, NumPy's functions call the array's library (NEP 13 and 18).
    """
    return isinstance(array, np.ndarray)


def to_host(array: Any) -> Array:
    """Copy an array from its device to a NumPy array; a NumPy array is returned as it is."""
    return array if isinstance(array, np.ndarray) else array.get()


def like(values: Any, array: Any) -> Any:
    """Copy a NumPy array to the device of `array`.

    The values are returned as they are if `array` is not on a device, or if the values are not a
    NumPy array.
    """
    if isinstance(array, np.ndarray) or not isinstance(values, np.ndarray):
        return values
    return np.asarray(values, like=array) if is_array(array) else values


def histogram_range(low: float, high: float) -> tuple[float, float]:
    """Range of a histogram, which is wider than the given range if that is due to rounding."""
    pad = MIN_RELATIVE_RANGE * max(abs(low), abs(high))
    if high - low > pad:
        return low, high
    return low - max(pad, 0.5), high + max(pad, 0.5)


def is_sparse(rows: Any) -> bool:
    """Test for a sparse matrix; for arrays, the test is faster than `scipy.sparse.issparse`."""
    return not isinstance(rows, np.ndarray) and bool(issparse(rows))


def dense(rows: Any) -> Array:
    """Convert a sparse matrix or an array-like to an array; arrays are returned without a copy.

    Parameters
    ----------
    rows : {array-like, sparse matrix} of shape (n_rows, n_columns)
        Matrix to convert.

    Returns
    -------
    array : ndarray of shape (n_rows, n_columns)
        Same dtype as `rows`.
    """
    if isinstance(rows, np.ndarray):
        return np.asarray(rows)  # converts memory-mapped arrays to plain ones
    if is_array(rows):
        return rows
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def weighted_mean(values: Array, sample_weight: Array | None = None) -> float:
    """Weighted mean of one value per row.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Values to average.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights with a positive sum, in double precision. If None, all weights are equal.

    Returns
    -------
    mean : float
        Weighted mean, computed in double precision.
    """
    if sample_weight is None:
        return float(values.mean(dtype=np.float64))
    return float(np.average(values, weights=like(sample_weight, values)))


def every_kth_row(rows: Any, n_rows: int) -> Any:
    """At most `n_rows` rows, evenly spaced; only for rows in random order, as in a mini-batch.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_samples, ...)
        Matrix, or vector of one value per row, to choose from.
    n_rows : int
        Largest number of rows.

    Returns
    -------
    some : {ndarray, sparse matrix} of shape (n_some, ...)
        Chosen rows, which are a view if `rows` is an array. The first is row 0.
    """
    return rows[:: -(-rows.shape[0] // n_rows)]


def spread_rows(rows: Any, n_rows: int) -> Any:
    """At most `n_rows` rows that represent all rows, also sorted or periodic ones.

    The rows are divided into blocks of consecutive rows, and one row is chosen from each block, at a
    random but fixed place. If every 12th row were chosen from a table of months, all of them could
    be Januaries.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_samples, ...), or None
        Matrix, or vector of one value per row, to choose from.
    n_rows : int
        Largest number of rows.

    Returns
    -------
    some : {ndarray, sparse matrix} of shape (n_some, ...), or None
        Chosen rows; the choice depends only on `n_samples` and `n_rows`. None if `rows` is None.
    """
    if rows is None:
        return None
    if rows.shape[0] <= n_rows:
        return rows[:]  # an `EncodedTable` becomes an array
    return rows[like(_spread(rows.shape[0], n_rows), rows)]


@lru_cache(maxsize=64)
def _spread(n_samples: int, n_rows: int) -> Array:
    """Indices of the rows that `spread_rows` chooses."""
    first = np.arange(0, n_samples, -(-n_samples // n_rows))
    place = np.random.default_rng(0).random(len(first)) * np.diff(first, append=n_samples)
    chosen = first + place.astype(np.intp)
    chosen.flags.writeable = False  # shared by all calls
    return chosen
