"""Expectations of exponentials over two-state units, for many shifts of the fields at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np

from skrbm.core.numerics import Array, logistic

GROUP = 4  # units whose joint states are summed in one matrix product
RANGE = 40.0  # nats; products of factors between e^-40 and e^40 fit single precision
BLOCK = 64, 64, 2**17  # shifts, rows and factors of one matrix product; they fit the cache


@final
class JointStates:
    r"""Probabilities of the joint states of groups of bits, for many rows.

    Parameters
    ----------
    log_odds : ndarray of shape (n_rows, n_units)
        Log-odds of each bit being one, in nats.

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
        """Mask (n_shifts,) of the `shifts` that are small enough for `log_mean_exponentials`."""
        return np.all(_spans(_grouped(shifts)) <= RANGE, axis=0)

    def log_mean_exponentials(self, shifts: Array) -> Array:
        r"""Logarithms of expected exponentials, for all pairs of a row and a shift.

        .. math::

            \log \mathrm{E} \left[ e^{\sum_j d_{mj} u_j} \right]
            = \sum_j \log \left( 1 - p_{nj} + p_{nj} e^{d_{mj}} \right)

        for every row n and every shift :math:`d_m`, where the bit :math:`u_j` of row n is one with
        the probability :math:`p_{nj}`. For a group of `GROUP` bits, the product of the expressions
        in parentheses equals a sum over the joint states of the bits. The sums of a group are a
        product of two small matrices. One contains the probabilities of the joint states. The other
        contains the exponentials of the summed shifts of the bits that are one. All terms are
        positive, so there is no cancellation.

        Parameters
        ----------
        shifts : ndarray of shape (n_shifts, n_units)
            Shifts, in nats, for which `is_near` is true: in every group of bits, the sum of their
            magnitudes is at most `RANGE`.

        Returns
        -------
        log_mean : ndarray of shape (n_shifts, n_rows)
            Logarithms in nats, summed in double precision.
        """
        shifts = _grouped(shifts)
        n_shifts, n_rows, n_factors = BLOCK
        work = np.empty(n_factors, dtype=self._probability.dtype)
        # Normalized by the rounded sum of the probabilities, so that a shift of zero gives zero.
        result = np.repeat(-self._log_total[None], shifts.shape[2], axis=0)
        for begin in range(0, len(result), n_shifts):
            chunk = shifts[:, :, begin : begin + n_shifts]
            blocks = list(_blocks(_spans(chunk).max(axis=1)))
            exponential = _of_states(np.ones_like(chunk), np.exp(chunk)).transpose(0, 2, 1)
            for first in range(0, result.shape[1], n_rows):
                part = result[begin : begin + n_shifts, first : first + n_rows]
                for groups in blocks:
                    states = self._probability[groups, :, first : first + n_rows]
                    shape = len(states), *part.shape
                    factors = work[: math.prod(shape)].reshape(shape)
                    np.matmul(exponential[groups], states, out=factors)
                    part += np.log(np.multiply.reduce(factors, axis=0))
        return result

    def mean_sums(self, shifts: Array, weights: Array) -> tuple[Array, Array]:
        r"""Weighted sums of the expected bits of all pairs of a row and a shift.

        The sums are the derivatives of :math:`\sum_{mn} c_{mn} \log M_{mn}` with respect to the
        log-odds of row n and to the shifts :math:`d_m`, where :math:`c` are the weights and
        :math:`M_{mn}` are the expected exponentials of `log_mean_exponentials`. For each group,
        these are two more products of small matrices.

        Parameters
        ----------
        shifts : ndarray of shape (n_shifts, n_units)
            Shifts, in nats, for which `is_near` is true.
        weights : ndarray of shape (n_shifts, n_rows)
            Weights of the pairs.

        Returns
        -------
        of_rows : ndarray of shape (n_rows, n_units)
            Expected bits of each row, summed over the shifts.
        of_shifts : ndarray of shape (n_shifts, n_units)
            Expected bits of each shift, summed over the rows.
        """
        n_units, shifts = shifts.shape[1], _grouped(shifts)
        probability = self._probability
        weights = weights.astype(probability.dtype, copy=False)
        n_shifts, n_all_rows = weights.shape
        of_rows = np.empty((len(shifts) * GROUP, n_all_rows), probability.dtype)
        of_shifts = np.zeros((len(shifts) * GROUP, n_shifts), probability.dtype)
        n_rows = max(BLOCK[1], BLOCK[2] // max(1, 2 * n_shifts))
        for first in range(0, n_all_rows, n_rows):
            part = slice(first, first + n_rows)
            pairs = weights[:, part]
            n_groups = max(1, BLOCK[2] // max(1, 2 * pairs.size))
            for begin in range(0, len(shifts), n_groups):
                groups = slice(begin, begin + n_groups)
                units = slice(begin * GROUP, (begin + n_groups) * GROUP)
                rows, chunk = probability[groups, :, part], shifts[groups]
                exponential = _of_states(np.ones_like(chunk), np.exp(chunk))
                share = pairs / np.matmul(exponential.transpose(0, 2, 1), rows)
                of_rows[units, part] = _of_bits(rows * np.matmul(exponential, share))
                share = share.transpose(0, 2, 1)
                of_shifts[units] += _of_bits(exponential * np.matmul(rows, share))
        return of_rows[:n_units].T, of_shifts[:n_units].T


def _grouped(values: Array) -> Array:
    """Transpose values of shape (n_samples, n_units), and split the units into groups.

    The axis of the units is padded with zeros to a multiple of `GROUP`. The result has shape
    (n_groups, GROUP, n_samples).
    """
    n_rows, n_units = values.shape
    n_groups = -(-n_units // GROUP)
    padded = np.zeros((n_groups * GROUP, n_rows), values.dtype)
    padded[:n_units] = values.T  # np.pad takes four times as long
    return padded.reshape(n_groups, GROUP, n_rows)


def _spans(shifts: Array) -> Array:
    """Bounds on the exponents of each group, in nats, of shape (n_groups, n_shifts)."""
    return np.abs(shifts).sum(axis=1)


def _blocks(spans: Array) -> Iterator[slice]:
    """Yield ranges of groups whose products neither overflow nor exceed the workspace.

    `spans`, of shape (n_groups,), contains the largest result of `_spans` for each group.
    """
    n_shifts, n_rows, n_factors = BLOCK
    most, begin, total = n_factors // (n_shifts * n_rows), 0, 0.0
    for number, span in enumerate(spans.tolist()):
        if number - begin == most or total + span > RANGE:
            yield slice(begin, number)
            begin, total = number, 0.0
        total += span
    yield slice(begin, len(spans))


def _of_states(off: Array, on: Array) -> Array:
    """Products of the factors of each group in each joint state.

    `off` and `on`, of shape (n_groups, GROUP, n_samples), contain the factors of each bit if it is
    zero and if it is one. The result has shape (n_groups, 2^GROUP, n_samples).
    """
    n_groups, _, n_samples = off.shape
    products = np.empty_like(off, shape=(n_groups, 2**GROUP, n_samples))
    products[:, 0] = 1
    for j in range(GROUP):
        without = products[:, : 2**j]
        np.multiply(without, on[:, j, None], out=products[:, 2**j : 2 ** (j + 1)])
        without *= off[:, j, None]
    return products


def _of_bits(joint: Array) -> Array:
    """Sums over the joint states in which each bit is one, of shape (n_groups * GROUP, n_samples).

    `joint` has the shape (n_groups, 2^GROUP, n_samples), as the result of `_of_states`.
    """
    is_one = np.arange(2**GROUP) >> np.arange(GROUP)[:, None] & 1
    return np.concatenate(np.matmul(is_one.astype(joint.dtype), joint))
