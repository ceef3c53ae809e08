"""Exact distribution of a label (the last visible unit) given the other visible units."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.special import log_softmax, softmax

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.units import EveryPair, ShiftedUnits

FIELD_BYTES = 2**20  # of the hidden fields of a block; their joint states take four times as much
MANY_LABELS = 8  # for fewer labels, every pair of a row and a label is faster than joint states


@final
class Labels:
    r"""Distribution of the last visible unit of a machine given the other visible units.

    Let :math:`f` be the field of the other visible units on the hidden units, :math:`f_k` the field
    of label :math:`k` and :math:`A(k)` the energy of this label. Then

    .. math:: \log p(k \mid v) = -A(k) + L(f + f_k) - \log \sum_l e^{-A(l) + L(f + f_l)}

    where :math:`L` is the log-partition of the hidden layer [1]_.

    Parameters
    ----------
    machine : Machine
        Plain machine whose last visible unit is one-hot encoded.

    Attributes
    ----------
    columns : ndarray of shape (n_labels,)
        Indices of the columns of the label in the visible layer.
    fields : ndarray of shape (n_labels, n_hidden)
        Field of each label on the hidden units.

    Raises
    ------
    ValueError
        If the last visible unit does not have one column for each of its values.

    References
    ----------
    .. [1] Larochelle, Mandel, Pascanu, Bengio (2012), "Learning algorithms for the classification
       restricted Boltzmann machine", Journal of Machine Learning Research 13, 643-669, eq. 3.

    Examples
    --------
    A hidden unit coupled to a binary unit and to the second of two labels:

    >>> from skrbm.core.units import Bernoulli, Categorical, Composite
    >>> visible = Composite((Bernoulli(np.zeros(1)), Categorical(np.zeros(2), (2,))))
    >>> machine = Machine(visible, Bernoulli(np.zeros(1)), np.array([[1.0], [0.0], [3.0]]))
    >>> Labels(machine).probabilities(np.array([[0.0], [1.0]])).round(2)
    array([[0.09, 0.91],
           [0.06, 0.94]])
    """

    def __init__(self, machine: Machine) -> None:
        visible = machine.visible
        unit = visible.take(visible.n_units - 1)
        self.columns = np.arange(visible.n_columns - unit.n_columns, visible.n_columns)
        if unit.n_unit_states(0) != unit.n_columns:
            raise ValueError(
                f"The label expected a unit with a column for each of its values, got "
                f"{type(unit).__name__} units."
            )
        self._hidden, self._unit = machine.hidden, unit
        self.fields, energies = unit.fields_and_energies(machine.weights[self.columns])
        self._log_weights = -energies

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.fields)

    def hidden(self, field: Array) -> ShiftedUnits:
        """Hidden layer for each pair of a row and a label, given the field of the other units."""
        pairs = EveryPair(self._hidden, field)
        # Pairs of a single block cost less than the probabilities of the joint states.
        is_large = len(field) * self.fields.size > pairs.n_block_elements
        is_slow = is_large and self.n_labels >= MANY_LABELS
        return self._hidden.shifted(field) if is_slow else pairs

    def log_weights(self, hidden: ShiftedUnits) -> Array:
        """Unnormalized log-probabilities of the labels, of shape (n_samples, n_labels).

        `hidden` is a result of the method `hidden`.
        """
        return (hidden.log_partitions(self.fields) + self._log_weights[:, None]).T

    def log_joint(self, field: Array) -> Array:
        """Unnormalized joint log-probability of each label and the other visible states.

        The energy of the other visible units is omitted, since it is the same for all labels of a
        row.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            Field of the other visible units on the hidden units.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_labels)
            Unnormalized log-probabilities, in nats. Their log-sum-exp over the labels, minus the
            energy of the other visible units, is the negative free energy of these units.
        """
        blocks = [
            self.log_weights(self.hidden(field[rows])) for rows in row_blocks(field, FIELD_BYTES)
        ]
        return np.concatenate(blocks).astype(field.dtype, copy=False)

    def probabilities(self, field: Array) -> Array:
        """Probabilities of the labels given the other visible units, (n_samples, n_labels)."""
        return softmax(self.log_joint(field), axis=1)

    def draw(self, field: Array, rng: np.random.Generator) -> Array:
        """Draw a label for each row given the other visible units.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            Field of the other visible units on the hidden units.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        v : ndarray of shape (n_samples, n_labels)
            One-hot states of the label.
        """
        return self._unit.sample(self.log_joint(field) - self._log_weights, rng)

    def log_probabilities(self, field: Array) -> Array:
        """Log-probabilities of the labels in nats, of shape (n_samples, n_labels)."""
        return log_softmax(self.log_joint(field), axis=1)

    def mean_hidden(self, field: Array) -> Array:
        """Expected hidden states given the other visible units, marginalized over the label.

        Parameters
        ----------
        field : ndarray of shape (n_samples, n_hidden)
            Field of the other visible units on the hidden units.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Expected hidden states.
        """
        means = []
        for rows in row_blocks(field, FIELD_BYTES):
            hidden = self.hidden(field[rows])
            probabilities = softmax(self.log_weights(hidden), axis=1).astype(field.dtype)
            means.append(hidden.sums(self.fields, probabilities.T)[0])
        return np.concatenate(means)

    def without(self, v: Array, field: Array) -> Array:
        """Subtract the contribution of the label from a field.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_labels)
            States of the label, as a dense one-hot array.
        field : ndarray of shape (n_samples, n_hidden)
            Field of all visible units.

        Returns
        -------
        field : ndarray of shape (n_samples, n_hidden)
            Field of the other visible units.
        """
        return field - v @ self.fields
