"""The last visible unit as a label: its exact distribution given the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
from scipy.special import log_softmax, softmax

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array


@final
class Labels:
    r"""Distribution of the last visible unit of a machine given the others.

    With :math:`f` the field that the others exert on the hidden units, :math:`f_k` that of value
    :math:`k` and :math:`A(k)` its energy,

    .. math:: \log p(k \mid v) = -A(k) + L(f + f_k) - \log \sum_l e^{-A(l) + L(f + f_l)}

    where :math:`L` is the log-partition of the hidden layer [1]_. Rows are visited in blocks, so
    that memory does not grow with rows times values times hidden units.

    Parameters
    ----------
    machine : Machine
        Plain; its last visible unit has a few values, and an indicator column for each.

    Attributes
    ----------
    columns : ndarray of shape (n_labels,)
        Columns of the unit.
    n_block_elements : int
        Rows times labels times hidden units at a time, at most: they stay in the cache.

    References
    ----------
    .. [1] Larochelle, Mandel, Pascanu, Bengio (2012), "Learning algorithms for the classification
       restricted Boltzmann machine", Journal of Machine Learning Research 13, 643-669, eq. 3.

    Examples
    --------
    A hidden unit that is coupled to the second of two labels:

    >>> from skrbm.core.units import Bernoulli, Categorical, Composite
    >>> visible = Composite((Bernoulli(np.zeros(1)), Categorical(np.zeros(2), (2,))))
    >>> machine = Machine(visible, Bernoulli(np.zeros(1)), np.array([[1.0], [0.0], [3.0]]))
    >>> Labels(machine).probabilities(np.array([[0.0], [1.0]])).round(2)
    array([[0.09, 0.91],
           [0.06, 0.94]])
    """

    n_block_elements = 2**16

    def __init__(self, machine: Machine) -> None:
        visible = machine.visible
        unit = visible.take(visible.n_units - 1)
        values = unit.unit_values(0)
        self.columns = np.arange(visible.n_columns - unit.n_columns, visible.n_columns)
        if values is None or values.shape[0] != values.shape[1]:
            raise ValueError(
                f"Labels expected to be a unit with a column for each of its values, got "
                f"{type(unit).__name__} units."
            )
        self._hidden = machine.hidden
        self._fields = np.asarray(unit.signal(values) @ machine.weights[self.columns])
        self._log_weights = -unit.energy(values)

    @property
    def n_labels(self) -> int:
        """Number of values."""
        return len(self._fields)

    def blocks(self, field: Array) -> Iterator[tuple[slice, Array]]:
        """Fields of some rows with every label in turn.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            That of the other units on the hidden ones.

        Yields
        ------
        rows : slice
            Of the field.
        fields : ndarray of shape (n_rows * n_labels, n_hidden)
            The labels of a row together.
        """
        n_rows = max(1, self.n_block_elements // self._fields.size)
        for begin in range(0, len(field), n_rows):
            rows = slice(begin, begin + n_rows)
            yield rows, (field[rows, None] + self._fields).reshape(-1, field.shape[1])

    def log_odds(self, fields: Array) -> Array:
        """Log-probabilities up to a constant of each row, (n_rows, n_labels), of a block."""
        return np.asarray(
            self._hidden.log_partition(fields).reshape(-1, self.n_labels) + self._log_weights
        )

    def log_joint(self, field: Array) -> Array:
        """Log-probability of every label and the hidden units summed out, up to what labels share.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            That of the other units on the hidden ones.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_labels)
            In nats; log-sum-exp over the labels is minus the free energy of the other units, but
            for their own energy.
        """
        return np.concatenate([self.log_odds(fields) for _, fields in self.blocks(field)])

    def probabilities(self, field: Array) -> Array:
        """Probability of every label given the other units, (n_samples, n_labels)."""
        return np.asarray(softmax(self.log_joint(field), axis=1))

    def log_probabilities(self, field: Array) -> Array:
        """Logarithms of the probabilities in nats, (n_samples, n_labels)."""
        return np.asarray(log_softmax(self.log_joint(field), axis=1))

    def mean_hidden(self, field: Array) -> Array:
        """Expected hidden states given the other units, the label summed out.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            That of the other units on the hidden ones.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Means over the labels of what is expected given each.
        """
        result = np.empty_like(field)
        for rows, fields in self.blocks(field):
            probabilities = softmax(self.log_odds(fields), axis=1)
            mean = self._hidden.mean(fields).reshape(*probabilities.shape, -1)
            result[rows] = np.einsum("nk,nkh->nh", probabilities, mean)
        return result

    def without(self, v: Array, field: Array) -> Array:
        """Field without what the labels of some rows have added to it.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_labels)
            Columns of the label.
        field : ndarray of shape (n_samples, n_hidden)
            Field of all visible units.

        Returns
        -------
        field : ndarray of shape (n_samples, n_hidden)
            That of the others.
        """
        return np.asarray(field - v @ self._fields)
