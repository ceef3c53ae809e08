"""Discriminative and hybrid training objectives for labeled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, is_sparse
from skrbm.core.training.gradient import (
    AllStates,
    DataExpectation,
    Expectation,
    Gradient,
    UpdateBuffers,
)
from skrbm.core.training.negative_phase import ROW_WEIGHTS, NegativePhase


@final
@dataclass(frozen=True)
class LabelExpectation(DataExpectation):
    r"""Weighted sum of the negative gradients of the energy over rows and labels.

    The sum contains each row :math:`n` with each possible label :math:`k`. The gradient of a pair
    is averaged over the hidden states given the pair. The weight of the pair is

    .. math:: c_{nk} = s_n (\delta \, ([y_n = k] - p_{nk}) + \gamma \, [y_n = k])

    if the row has the label :math:`y_n`, and :math:`c_{nk} = s_n \gamma \, p_{nk}` if the row is
    unlabeled. Here, :math:`p_{nk}` is the probability of label :math:`k` given row :math:`n`.

    Parameters
    ----------
    machine : Machine
        Plain machine before the update.
    labels : Labels
        Distribution of the label given the other visible units.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch; unlabeled rows have zeros in all label columns.
    mean : ndarray of shape (n_samples, n_hidden)
        Expected hidden states given the rows. For unlabeled rows, the label contributes no field.
    field : ndarray of shape (n_samples, n_hidden)
        Hidden field of the rows, without the contribution of the label.
    factors : tuple of float
        Factor :math:`\delta` of the conditional log-likelihood, and factor :math:`\gamma` of the
        joint log-likelihood.
    weights : ndarray of shape (n_samples,)
        Row weights :math:`s_n`, which sum to one.
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

    def gradient(self, machine: Machine) -> Gradient:
        v, labels = self.v, self.labels
        known = dense(v[:, labels.columns])
        share = self.weights.astype(self.field.dtype)
        pairs = labels.hidden(self.field)
        weight = self._label_weights(known, softmax(labels.log_weights(pairs), axis=1), share)
        of_rows, of_labels, hidden = pairs.sums(labels.fields, weight.T, machine.hidden)
        origin, slope = machine.hidden.affine_signal
        signal, label_signal = (
            origin * weight.sum(axis=axis)[:, None] + slope * mean
            for axis, mean in ((1, of_rows), (0, of_labels))
        )
        weights = machine.signal_product(v, signal)
        origin = machine.visible.affine_signal[0][labels.columns]
        weights[labels.columns] = label_signal + np.outer(origin, signal.sum(axis=0))
        # The moments of the visible layer are first summed over the rows as they are, with the
        # known label of each labeled row. However, a row has a weight for each label. The sums are
        # therefore corrected by additional rows, each of which contains one label and zeros in all
        # other columns. A row of zeros is added so that the weights of these rows sum to zero.
        row_weight = weight.sum(axis=1)
        exchanged = weight.sum(axis=0) - row_weight @ known
        exchanged = np.append(exchanged, -exchanged.sum()).astype(signal.dtype)
        label_rows = np.zeros((len(exchanged), v.shape[1]), signal.dtype)
        label_rows[np.arange(labels.n_labels), labels.columns] = 1
        visible = machine.visible.moments(v, row_weight)
        for name, array in machine.visible.moments(label_rows, exchanged).items():
            visible[name] += array
        return machine.assembled_gradient(weights, visible, hidden, signal)

    def _label_weights(self, known: Array, probabilities: Array, share: Array) -> Array:
        discriminative, generative = self.factors
        is_known = known.sum(axis=1, keepdims=True)
        likely = known + (1 - is_known) * probabilities
        weight = discriminative * is_known * (known - probabilities) + generative * likely
        return np.asarray(weight * share[:, None], dtype=known.dtype)


@final
@dataclass(frozen=True)
class LabelObjective:
    r"""Weighted sum of the log-likelihood of labels given rows and the joint log-likelihood.

    .. math:: \delta \log p(y \mid v) + \gamma \log p(v, y)

    is the objective of a row with the label :math:`y` and the other visible states :math:`v`; the
    objective of an unlabeled row is :math:`\gamma \log p(v)`. The gradient of the conditional
    log-likelihood is computed exactly [1]_. The gradients of the other terms require the negative
    phase.

    Parameters
    ----------
    negative_phase : NegativePhase
        Estimator of the expectation under the model.
    discriminative_weight : float
        Weight :math:`\delta` of the conditional log-likelihood.
    generative_weight : float
        Weight :math:`\gamma` of the joint log-likelihood. If it is 0, the negative phase is not
        computed.

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
        """True if the negative phase is used and sums over all states of a layer."""
        return self.generative_weight > 0 and self.negative_phase.is_exact

    @property
    def starts_at_data(self) -> bool:
        """True if the negative phase is used and its chains start at the rows."""
        return self.generative_weight > 0 and self.negative_phase.starts_at_data

    @property
    def offers(self) -> frozenset[str]:
        """Capabilities that the parts of training may need (see `Part.needs`).

        Row weights are not among them, because a row has one weight for each label. If the
        generative weight is 0, there are none.
        """
        offers = self.negative_phase.offers if self.generative_weight > 0 else frozenset[str]()
        return offers - {ROW_WEIGHTS}

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> tuple[LabelExpectation, Expectation, Array]:
        """Compute both phases for a mini-batch of labeled and unlabeled rows.

        Parameters
        ----------
        machine : Machine
            Plain machine before the update, whose last visible unit is the label.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch; unlabeled rows have zeros in all label columns.
        h : ndarray of shape (n_temperatures * n_particles, n_hidden)
            Hidden states of the persistent chains. The array may be overwritten.
        buffers : UpdateBuffers
            Buffers for the arrays of the update.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        positive : LabelExpectation
            Sum of the gradient of the conditional log-likelihood and the positive phase of the
            joint log-likelihood, each multiplied by its weight.
        negative : Expectation
            Expectation under the model, multiplied by the generative weight.
        h : ndarray of shape (n_temperatures * n_particles, n_hidden)
            Hidden states of the persistent chains after the update's Gibbs steps. They are
            unchanged without persistent chains, or if the generative weight is 0.

        Raises
        ------
        ValueError
            If the last visible unit does not have one column for each of its values.
        """
        labels, field = Labels(machine), machine.hidden_field(v)
        factors = self.discriminative_weight, self.generative_weight
        mean, n_rows = machine.hidden.mean(field), v.shape[0]
        known = dense(v[:, labels.columns])
        field = labels.without(known, field)
        equal = np.full(n_rows, 1 / n_rows)
        positive = LabelExpectation(machine, labels, v, mean, field, factors, equal)
        model: Expectation = AllStates()
        if self.generative_weight:
            rows = v if self.starts_at_data else v[:0]  # other chains do not need the rows
            (unlabeled,) = (known.sum(axis=1) == 0).nonzero()
            if self.starts_at_data and len(unlabeled):
                drawn = labels.draw(field[unlabeled], rng)
                rows = _with_labels(v, unlabeled, labels, drawn)
            _, model, h = self.negative_phase(machine, rows, h, buffers, rng)
        return positive, self.generative_weight * model, h


def _with_labels(v: Any, rows: Array, labels: Labels, states: Array) -> Any:
    """Copy of rows, of which some unlabeled ones get one-hot `states` of the label."""
    if not is_sparse(v):
        labeled = v.copy()
        labeled[np.ix_(rows, labels.columns)] = states
        return labeled
    places = rows, labels.columns[states.argmax(axis=1)]
    return v + csr_array((np.ones_like(v.data, shape=len(rows)), places), shape=v.shape)
