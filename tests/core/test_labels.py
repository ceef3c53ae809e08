"""The law of a label against the enumerated joint."""

import numpy as np
import oracles
import pytest
from core.labelled import labelled_machine, random_labelled
from core.models import machine_from, visible_states
from scipy.special import softmax

from skrbm.core.labels import MANY_LABELS, Labels
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, EveryPair, Gaussian

FEW_AND_MANY = 3, MANY_LABELS  # many labels are computed from joint states of hidden units


@pytest.mark.parametrize("n_labels", FEW_AND_MANY)
@pytest.mark.parametrize("block", [1, 2**16])
@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_probabilities_are_those_of_the_enumerated_joint(kind, block, n_labels, rng, monkeypatch):
    # Slips: the label's bias left out, rows and labels exchanged in a block, spins taken for bits.
    q = random_labelled(kind, rng, n_labels=n_labels, offsets=False)
    v, machine = visible_states(q.features, rng), labelled_machine(q)
    field = machine_from(q.features).hidden_field(v)
    expected = softmax(q.log_joint(v), axis=1)
    monkeypatch.setattr(EveryPair, "n_block_elements", block)
    own = Labels(machine)
    np.testing.assert_allclose(own.probabilities(field), expected, rtol=0, atol=1e-12)
    free_energy = oracles.free_energy(q.features, v)
    joint = own.log_joint(field) - machine_from(q.features).visible.energy(v)[:, None]
    np.testing.assert_allclose(joint, q.log_joint(v), rtol=0, atol=1e-12)
    assert np.abs(free_energy).max() > 0.1


@pytest.mark.parametrize("n_labels", FEW_AND_MANY)
@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_hidden_means_are_averaged_over_the_labels(kind, n_labels, rng, monkeypatch):
    # Slip: the mean given the most probable label, or given the mean label.
    monkeypatch.setattr(EveryPair, "n_block_elements", 1)
    q = random_labelled(kind, rng, n_labels=n_labels, offsets=False)
    v, h = visible_states(q.features, rng), oracles.hidden_states(q.features)
    weights = -oracles.energy(q.features, v, h)[:, None] + (q.weights @ h.T) + q.bias[:, None]
    law = softmax(weights.reshape(len(v), -1), axis=1).reshape(weights.shape).sum(axis=1)
    field = machine_from(q.features).hidden_field(v)
    mean = Labels(labelled_machine(q)).mean_hidden(field)
    np.testing.assert_allclose(mean, law @ h, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "visible", [Bernoulli(np.zeros(2)), Gaussian(np.zeros(2), np.zeros(2), "cho")]
)
def test_label_needs_a_column_for_each_value(visible):
    machine = Machine(visible, Bernoulli(np.zeros(2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=f"a column for each.*got {type(visible).__name__}"):
        Labels(machine)
