"""Elementwise functions that do not overflow, random draws, and averages over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def log_two_cosh(x: Array) -> Array:
    r"""Logarithm of twice the hyperbolic cosine, for arguments of any size.

    .. math:: \log(2 \cosh x) = |x| + \log(1 + e^{-2|x|})

    Parameters
    ----------
    x : ndarray
        Any shape.

    Returns
    -------
    log_two_cosh : ndarray
        Same shape and dtype as `x`.

    Examples
    --------
    >>> float(log_two_cosh(np.array(1e4)))
    10000.0
    """
    magnitude = np.abs(x)
    tail = np.exp(-2 * magnitude)
    return np.asarray(magnitude + np.log1p(tail))


def draw_bernoulli(probability: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Independent draws that are true with the given probabilities.

    The uniform numbers are always drawn in double precision: single and double precision
    models see the same ones, and no probability is rounded to a multiple of 2**-24.

    Parameters
    ----------
    probability : ndarray
        Any shape.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    draws : ndarray of bool
        Same shape as `probability`.
    """
    return np.less(rng.random(probability.shape), probability)


def draw_normal(mean: Array, standard_deviation: Array, rng: np.random.Generator) -> Array:
    """Independent normal draws, drawn in double precision and returned in that of `mean`.

    Parameters
    ----------
    mean : ndarray of shape (n_samples, n_units)
        Expectations.
    standard_deviation : ndarray of shape (n_units,)
        Standard deviations.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    draws : ndarray of shape (n_samples, n_units)
        Same dtype as `mean`.
    """
    noise = rng.standard_normal(mean.shape).astype(mean.dtype, copy=False)
    return np.asarray(mean + standard_deviation * noise)


def average_rows(rows: Any, probabilities: Array | None = None) -> Array:
    """Weighted average over the rows of a dense or sparse matrix.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_samples, n_columns)
        What to average, floating-point.
    probabilities : ndarray of shape (n_samples,), default=None
        Weights that sum to one; None weighs all rows alike.

    Returns
    -------
    average : ndarray of shape (n_columns,)
        Same dtype as `rows`.
    """
    if probabilities is None:
        probabilities = np.full(rows.shape[0], 1 / rows.shape[0], dtype=rows.dtype)
    return np.asarray(probabilities @ rows)


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
