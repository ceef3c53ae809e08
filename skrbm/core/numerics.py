"""Elementwise functions that do not overflow, and work on rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

Array = NDArray[Any]

SHARED_FACTORS = 2**6  # 2^64 is far from the end of single precision
MAX_EXPONENT = 80  # and so is e^80
BLOCK_BYTES = 2**16  # of a temporary array: it stays in the cache, and costs no page
IN_PLACE_BYTES = 2**18  # of arrays that need no temporary one: fewer calls
MAX_SERIES_ARGUMENT = 2**-4  # x^4 / 120 is then below the rounding of single precision


def sum_log_two_cosh(x: Array) -> Array:
    r"""Row sums of the logarithm of twice the hyperbolic cosine, for arguments of any size.

    .. math:: \sum_j \log(2 \cosh x_j) = \sum_j |x_j| + \log \prod_j (1 + e^{-2|x_j|})

    Every factor lies between 1 and 2, so that many of them share one logarithm.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_columns)
        Overwritten.

    Returns
    -------
    sums : ndarray of shape (n_rows,)
        In double precision: sums are compared with each other, and hundreds of terms in single
        precision would lose digits.

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
    return np.asarray(total + sum_log(factors))


def sum_log(factors: Array) -> Array:
    """Row sums of the logarithms of factors, of which some share one logarithm.

    Parameters
    ----------
    factors : ndarray of shape (n_rows, n_columns)
        The product of any `SHARED_FACTORS` in a row has to be a normal number.

    Returns
    -------
    sums : ndarray of shape (n_rows,)
        In double precision.
    """
    first = range(0, factors.shape[1], SHARED_FACTORS)
    products = np.multiply.reduceat(factors, first, axis=1)
    return np.asarray(np.log(products, out=products).sum(axis=1, dtype=np.float64))


def logistic(x: Array) -> Array:
    """Logistic function, in place, as exact for small values as for those near one.

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
    # SciPy's function takes 2 to 4 times as long where NumPy's exponential has a kernel of its own.
    x *= -1  # numpy.negative is wrong in place for a column of four or eight (NumPy 2.4)
    with np.errstate(over="ignore"):  # a bound of the exponents takes another pass over them
        np.exp(x, out=x)
    x += 1
    return np.divide(1, x, out=x)


def expm1(x: Array, largest: float) -> Array:
    """Exponentials minus one, in place: by a short series where that is exact.

    NumPy has fast kernels of the exponential for every processor, but of this only for the newest.

    Parameters
    ----------
    x : ndarray
        Overwritten.
    largest : float
        Bound of the arguments' magnitude.

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
    """Rows of an array in blocks, of which all but the last have a multiple of four.

    Parameters
    ----------
    array : ndarray of shape (n_rows, ...)
        What will be worked on block by block.
    n_bytes : int, default=BLOCK_BYTES
        Of a block; it has four rows if these are more.

    Returns
    -------
    blocks : list of slice
        Rows of each block, in order.
    """
    if array.nbytes <= n_bytes:
        return [slice(None)]
    row_bytes = array.itemsize * max(1, array[:1].size)
    n_own = max(4, n_bytes // row_bytes // 4 * 4)  # random words are those of four numbers
    return [slice(begin, begin + n_own) for begin in range(0, len(array), n_own)]


def placed(answer: Array, out: Array | None) -> Array:
    """Answer in the array that was asked for, a copy only where it is not there yet.

    Parameters
    ----------
    answer : ndarray
        Wherever it is.
    out : ndarray or None
        Where it should be; None for anywhere.

    Returns
    -------
    answer : ndarray
        In `out` unless that is None.
    """
    if out is None or answer is out:
        return answer
    out[...] = answer
    return out


def last_rows(rows: Array, other: Array | None) -> Array:
    """As many of the last rows as another array has; all of them for None."""
    return rows if other is None else rows[len(rows) - len(other) :]


def is_sparse(rows: Any) -> bool:
    """Test for a sparse matrix; SciPy's own takes microseconds of an array."""
    return not isinstance(rows, np.ndarray) and bool(issparse(rows))


def dense(rows: Any) -> Array:
    """Rows of a dense or sparse matrix as an array, a copy only of sparse ones.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_rows, n_columns)
        What to convert.

    Returns
    -------
    array : ndarray of shape (n_rows, n_columns)
        Same dtype as `rows`.
    """
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def mean_of_rows(values: Array, sample_weight: Array | None = None) -> float:
    """Weighted mean of one number of each row, in double precision.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        What to average.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of any positive sum; None weighs all rows alike.

    Returns
    -------
    mean : float
        Average.
    """
    if sample_weight is None:
        return float(values.mean(dtype=np.float64))
    return float(np.average(values, weights=sample_weight))


def spread_rows(rows: Any, n_rows: int) -> Any:
    """Evenly spaced rows of a matrix, at most as many as asked for.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_samples, n_columns)
        What to choose from.
    n_rows : int
        Largest number of rows.

    Returns
    -------
    spread : {ndarray, sparse matrix} of shape (n_spread, n_columns)
        A view where that is possible.
    """
    return rows[:: -(-rows.shape[0] // n_rows)]
