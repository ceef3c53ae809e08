"""What a mini-batch of labelled rows teaches: their labels, themselves, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import softmax

from skrbm.core.labels import Labels
from skrbm.core.likelihood.exact import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.phases import Damping, Phases, Samples
from skrbm.core.training.workspace import Workspace

Gradient = dict[str, Array]


@final
@dataclass(frozen=True)
class LabelledPhases:
    """What an update knows of a mini-batch of labelled rows, and of the model.

    Parameters
    ----------
    machine : Machine
        Plain, of the mini-batch.
    labels : Labels
        Of that machine.
    positive : Samples
        Mini-batch, and what is expected of the hidden units; rows whose label is not known have
        zeros in all of its columns.
    field : ndarray of shape (n_samples, n_hidden)
        Field on the hidden units, without the label's.
    model : Phases or None
        States of the model; None where they do not matter.
    particles : ndarray of shape (n_particles, n_hidden)
        Where the persistent chains are now.
    weights : tuple of float
        Of log p(label | row), and of the log-likelihood.
    """

    machine: Machine
    labels: Labels
    positive: Samples
    field: Array
    model: Phases | None
    particles: Array
    weights: tuple[float, float]

    def gradient(
        self,
        machine: Machine,
        work: Workspace,
        sample_weight: Array | None = None,
        damping: Damping | None = None,
    ) -> Gradient:
        """Gradient of the weighted objective.

        Parameters
        ----------
        machine : Machine
            That of the mini-batch, with other offsets.
        work : Workspace
            Of the run.
        sample_weight : ndarray of shape (n_samples,), default=None
            Shares of the rows, which sum to one; None for equal ones.
        damping : callable, default=None
            Not asked: rows have a share for each label.

        Returns
        -------
        gradient : dict of str to ndarray
            Same keys and shapes as the machine's parameters.
        """
        gradient = self._data_gradient(machine, sample_weight)
        if self.model is not None:
            negative = self.model.negative
            expected = (
                expected_gradient(machine)
                if negative is None
                else machine.gradient(negative.v, mean=negative.mean)
            )
            for name, array in expected.items():
                gradient[name] -= self.weights[1] * array
        return gradient

    def _data_gradient(self, machine: Machine, sample_weight: Array | None) -> Gradient:
        r"""Sum over rows and labels of minus the energy's gradient, weighted by labels.

        .. math:: c_{nk} = s_n (\delta \, ([y_n = k] - p_{nk}) + \gamma \, [y_n = k])

        and :math:`c_{nk} = s_n \gamma \, p_{nk}` where the label is not known.
        """
        v, labels = self.positive.v, self.labels
        known = dense(v[:, labels.columns])
        share = np.full(len(known), 1 / len(known)) if sample_weight is None else sample_weight
        share = share.astype(self.field.dtype)
        weight = np.empty_like(known)
        signal = np.empty_like(self.field)  # of the hidden units, summed over the labels
        label_signal = np.zeros((labels.n_labels, signal.shape[1]), signal.dtype)
        hidden: Gradient = {}
        for rows, fields in labels.blocks(self.field):
            probabilities = softmax(labels.log_odds(fields), axis=1)
            own = weight[rows] = self._label_weights(known[rows], probabilities, share[rows])
            mean = self.machine.hidden.mean(fields)
            moments = machine.hidden.expected_moments(mean, fields, own.ravel())
            for name, array in moments.items():
                hidden[name] = hidden.get(name, 0) + array
            signals = machine.hidden.signal(mean).reshape(*own.shape, -1)
            np.matmul(own[:, None], signals, out=signal[rows][:, None])
            label_signal += np.einsum("nk,nkh->kh", own, signals)
        return _assembled(machine, v, known, weight, signal, label_signal, hidden)

    def _label_weights(self, known: Array, probabilities: Array, share: Array) -> Array:
        discriminative, generative = self.weights
        is_known = known.sum(axis=1, keepdims=True)
        likely = known + (1 - is_known) * probabilities
        weight = discriminative * is_known * (known - probabilities) + generative * likely
        return np.asarray(weight * share[:, None], dtype=known.dtype)


@final
@dataclass(frozen=True)
class LabelObjective:
    r"""Mini-batch of labelled rows against what the model makes of them.

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
        """Whether an update sums over all states."""
        return self.generative_weight > 0 and self.negative_phase.is_exact

    @property
    def is_persistent(self) -> bool:
        """Whether the particles sample the model, and do not rest."""
        return self.generative_weight > 0 and self.negative_phase.is_persistent

    @property
    def n_chains(self) -> int:
        """Number of Markov chains that belong to one particle."""
        return self.negative_phase.n_chains

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> LabelledPhases:
        """Set a mini-batch against states of the model.

        Parameters
        ----------
        machine : Machine
            Present model, whose last visible unit is the label.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch; zeros in all columns of a label that is not known.
        particles : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains.
        rng : numpy.random.Generator
            Source of random numbers.
        work : Workspace
            Of the run.

        Returns
        -------
        phases : LabelledPhases
            Of data and model, and the chains' new states.
        """
        labels, field = Labels(machine), machine.hidden_field(v)
        positive = Samples(v, machine.hidden.mean(field))
        field, model = labels.without(dense(v[:, labels.columns]), field), None
        if self.generative_weight:
            rows = v
            if self.negative_phase.is_persistent or self.negative_phase.is_exact:
                rows = v[:0]  # the data are looked at here
            model = self.negative_phase(machine, rows, particles, rng, work)
            particles = model.particles
        weights = self.discriminative_weight, self.generative_weight
        return LabelledPhases(machine, labels, positive, field, model, particles, weights)


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
