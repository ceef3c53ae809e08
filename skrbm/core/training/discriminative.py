"""Objective of labelled rows: their labels, the rows, or both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.special import softmax

from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.training.gradient import (
    AllStates,
    DataExpectation,
    Expectation,
    Gradient,
    UpdateBuffers,
)
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS, ROW_WEIGHTS, NegativePhase


@final
@dataclass(frozen=True)
class LabelledRows(DataExpectation):
    r"""Weighted sum over rows and labels of minus the energy's gradient.

    Row :math:`n` with label :math:`k` has the weight

    .. math:: c_{nk} = s_n (\delta \, ([y_n = k] - p_{nk}) + \gamma \, [y_n = k])

    and :math:`c_{nk} = s_n \gamma \, p_{nk}` where the label is not known.

    Parameters
    ----------
    machine : Machine
        Plain machine of the mini-batch.
    labels : Labels
        Labels of that machine.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch; rows whose label is not known have zeros in all of its columns.
    mean : ndarray of shape (n_samples, n_hidden)
        Expected hidden states given the rows.
    field : ndarray of shape (n_samples, n_hidden)
        Field on the hidden units, without the label's.
    factors : tuple of float
        :math:`\delta` and :math:`\gamma`.
    weights : ndarray of shape (n_samples,)
        :math:`s_n`, which sum to one.
    """

    machine: Machine
    labels: Labels
    v: Any
    mean: Array
    field: Array
    factors: tuple[float, float]
    weights: Array

    def weighted(self, weights: Array) -> Self:
        return replace(self, weights=weights)

    def averages(self) -> tuple[Array, Array]:
        weights = self.weights.astype(self.mean.dtype, copy=False)
        return weights @ self.v, weights @ self.mean

    def gradient(self, machine: Machine, buffers: UpdateBuffers | None = None) -> Gradient:

        v, labels = self.v, self.labels
        known = dense(v[:, labels.columns])
        share = self.weights.astype(self.field.dtype)
        weight = np.empty_like(known)
        signal = np.empty_like(self.field)  # of the hidden units, summed over the labels
        label_signal = np.zeros((labels.n_labels, signal.shape[1]), signal.dtype)
        hidden: Gradient = {}
        # Fields are those of the plain machine, whose biases are others.
        absorbed = self.machine.hidden.bias - machine.hidden.bias
        for rows, fields in labels.blocks(self.field):
            probabilities = softmax(labels.log_odds(fields), axis=1)
            own = weight[rows] = self._label_weights(known[rows], probabilities, share[rows])
            mean = self.machine.hidden.mean(fields)
            moments = machine.hidden.expected_moments(mean, fields + absorbed, own.ravel())
            for name, array in moments.items():
                hidden[name] = hidden.get(name, 0) + array
            signals = machine.hidden.signal(mean).reshape(*own.shape, -1)
            np.matmul(own[:, None], signals, out=signal[rows][:, None])
            label_signal += np.einsum("nk,nkh->kh", own, signals)
        return _assembled(machine, v, known, weight, signal, label_signal, hidden)

    def _label_weights(self, known: Array, probabilities: Array, share: Array) -> Array:
        discriminative, generative = self.factors
        is_known = known.sum(axis=1, keepdims=True)
        likely = known + (1 - is_known) * probabilities
        weight = discriminative * is_known * (known - probabilities) + generative * likely
        return np.asarray(weight * share[:, None], dtype=known.dtype)


@final
@dataclass(frozen=True)
class LabelObjective:
    r"""Weighted sum of the log-likelihoods of labels given rows, and of both.

    .. math:: \delta \log p(y \mid v) + \gamma \log p(v, y)

    for every row, and :math:`\gamma \log p(v)` for a row whose label is not known. The first part is
    exact [1]_, the model's own average of the others comes from the negative phase.

    Parameters
    ----------
    negative_phase : NegativePhase
        Estimate of the model's average.
    discriminative_weight : float
        :math:`\delta`.
    generative_weight : float
        :math:`\gamma`; zero lets the chains rest.

    References
    ----------
    .. [1] Larochelle, Bengio (2008), "Classification using discriminative restricted Boltzmann
       machines", ICML, 536-543. :doi:`10.1145/1390156.1390224`
    """

    negative_phase: NegativePhase
    discriminative_weight: float
    generative_weight: float

    @property
    def is_exact(self) -> bool:
        """True if an update sums over all states."""
        return self.generative_weight > 0 and self.negative_phase.is_exact

    @property
    def offers(self) -> frozenset[str]:
        """Features of an update that parts may need; rows have a weight for each label."""
        offers = self.negative_phase.offers if self.generative_weight > 0 else frozenset[str]()
        return offers - {ROW_WEIGHTS}

    @property
    def n_chains(self) -> int:
        """Number of Markov chains that belong to one particle."""
        return self.negative_phase.n_chains

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> tuple[LabelledRows, Expectation, Array]:
        """Phases of a mini-batch of labelled rows.

        Parameters
        ----------
        machine : Machine
            Present model, whose last visible unit is the label.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch; zeros in all columns of a label that is not known.
        h : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains.
        buffers : UpdateBuffers
            Arrays of the update.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        positive, negative : Expectation
            Expectations under the data and under the model, times their factors.
        h : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains after their steps.
        """
        labels, field, factors = (
            Labels(machine),
            machine.hidden_field(v),
            (self.discriminative_weight, self.generative_weight),
        )
        mean, n_rows = machine.hidden.mean(field), v.shape[0]
        field = labels.without(dense(v[:, labels.columns]), field)
        equal = np.full(n_rows, 1 / n_rows)
        positive = LabelledRows(machine, labels, v, mean, field, factors, equal)
        model: Expectation = AllStates()
        if self.generative_weight:
            # Chains that start at the data need the rows, other phases only the model.
            starts_at_data = not (self.negative_phase.is_exact or PERSISTENT_CHAINS in self.offers)
            rows = v if starts_at_data else v[:0]
            _, model, h = self.negative_phase(machine, rows, h, buffers, rng)
        return positive, self.generative_weight * model, h


def _assembled(
    machine: Machine,
    v: Any,
    known: Array,
    weight: Array,
    signal: Array,
    label_signal: Array,
    hidden: Gradient,
) -> Gradient:
    """Gradient from sums over the labels of each row.

    What the rows' own labels would have in place of all labels is exchanged by rows of the label
    alone, whose weights sum to zero with that of a row without any.
    """
    n_labels = weight.shape[1]
    columns = np.arange(v.shape[1] - n_labels, v.shape[1])
    weights = machine.signal_product(v, signal)
    origin = machine.visible.affine_signal[0][columns]
    weights[columns] = label_signal + np.outer(origin, signal.sum(axis=0))
    row_weight = weight.sum(axis=1)
    exchanged = weight.sum(axis=0) - row_weight @ known
    rows = np.zeros((n_labels + 1, v.shape[1]), signal.dtype)
    rows[np.arange(n_labels), columns] = 1
    visible = machine.visible.moments(v, row_weight)
    for name, array in machine.visible.moments(
        rows, np.append(exchanged, -exchanged.sum()).astype(signal.dtype)
    ).items():
        visible[name] += array
    return machine.assembled_gradient(weights, visible, hidden, signal)
