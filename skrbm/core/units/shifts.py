"""Expectations over many two-state units, for many shifts of their field at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np

from skrbm.core.numerics import Array, logistic

GROUP = 4  # units whose joint states one matrix product sums over
RANGE = 40.0  # nats: no product of factors within e^-40 and e^40 leaves single precision
BLOCK = 64, 64, 2**17  # shifts, rows and all factors of a matrix product: they stay in the cache


@final
class JointStates:
    r"""Probabilities of the joint states of bits, a few at a time, in many rows.

    Parameters
    ----------
    log_odds : ndarray of shape (n_rows, n_units)
        Of the bits, in nats.

    Examples
    --------
    >>> bits = JointStates(np.zeros((1, 3)))
    >>> bits.log_mean_exponentials(np.log([[3.0, 3.0, 1.0]])).round(6)
    array([[1.386294]])
    """

    def __init__(self, log_odds: Array) -> None:
        log_odds = _grouped(log_odds)
        self._probability = _of_states(logistic(-log_odds), logistic(log_odds))
        self._log_total = np.log(self._probability.sum(axis=1, dtype=np.float64)).sum(axis=0)

    @staticmethod
    def is_near(shifts: Array) -> Array:
        """Mask of the shifts, of shape (n_shifts, n_units), that `log_mean_exponentials` takes."""
        return np.asarray((_spans(_grouped(shifts)) <= RANGE).all(axis=0))

    def log_mean_exponentials(self, shifts: Array) -> Array:
        r"""Logarithms of expectations over the bits.

        .. math::

            \log \mathrm{E} \left[ e^{\sum_j d_{mj} u_j} \right]
            = \sum_j \log \left( 1 - p_{nj} + p_{nj} e^{d_{mj}} \right)

        for every row n of probabilities and every shift m. The factors of a few bits are a sum over
        their joint states: a product of two small matrices, those of the states' probabilities and
        of their exponentials. All terms are positive, so that no digits are lost.

        Parameters
        ----------
        shifts : ndarray of shape (n_shifts, n_units)
            Of which all are near.

        Returns
        -------
        log_mean : ndarray of shape (n_shifts, n_rows)
            In nats and in double precision.
        """
        shifts = _grouped(shifts)
        n_shifts, n_rows, n_factors = BLOCK
        work = np.empty(n_factors, dtype=self._probability.dtype)
        # Without a shift the answer is zero, also where the probabilities' sum has been rounded.
        result = np.repeat(-self._log_total[None], shifts.shape[2], axis=0)
        for begin in range(0, len(result), n_shifts):
            own = shifts[:, :, begin : begin + n_shifts]
            blocks = list(_blocks(_spans(own).max(axis=1)))
            exponential = _of_states(np.ones_like(own), np.exp(own)).transpose(0, 2, 1)
            for first in range(0, result.shape[1], n_rows):
                part = result[begin : begin + n_shifts, first : first + n_rows]
                for groups in blocks:
                    states = self._probability[groups, :, first : first + n_rows]
                    shape = len(states), *part.shape
                    factors = work[: math.prod(shape)].reshape(shape)
                    np.matmul(exponential[groups], states, out=factors)
                    part += np.log(np.multiply.reduce(factors, axis=0))
        return result


def _grouped(values: Array) -> Array:
    """Values (n_samples, n_units) by group (n_groups, GROUP, n_samples), the last filled with zeros."""
    padded = np.pad(values.T, ((0, -values.shape[1] % GROUP), (0, 0)))
    return padded.reshape(len(padded) // GROUP, GROUP, len(values))


def _spans(shifts: Array) -> Array:
    """Nats that the exponents of each group's states lie apart at most (n_groups, n_shifts)."""
    return np.asarray(np.abs(shifts).sum(axis=1))


def _blocks(spans: Array) -> Iterator[slice]:
    """Groups of units whose factors may share one logarithm, and fit into the workspace."""
    n_shifts, n_rows, n_factors = BLOCK
    most, begin, total = n_factors // (n_shifts * n_rows), 0, 0.0
    for number, span in enumerate(spans.tolist()):
        if number - begin == most or total + span > RANGE:
            yield slice(begin, number)
            begin, total = number, 0.0
        total += span
    yield slice(begin, len(spans))


def _of_states(off: Array, on: Array) -> Array:
    """Products of what the units of each group give, over its states (n_groups, 2^GROUP, n_samples)."""
    products = np.ones_like(off[:, :1])
    for j in range(GROUP):
        halves = products * off[:, j, None], products * on[:, j, None]
        products = np.concatenate(halves, axis=1)
    return products
