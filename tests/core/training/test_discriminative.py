"""The gradient of labelled rows against finite differences of what it ascends."""

import numpy as np
import oracles
import pytest
from core.labelled import finite_differences, labelled_machine, random_labelled, renamed
from core.models import TWO_STATE, assert_same_arrays, draw_rows
from scipy import sparse
from scipy.special import logsumexp

from skrbm.core.centering import recenter
from skrbm.core.labels import MANY_LABELS
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import (
    ContrastiveDivergence,
    Exact,
    PersistentContrastiveDivergence,
)
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units import EveryPair

N_ROWS = 5
LABELS = np.array([2, 0, -1, 1, 2])  # minus one: not known


def objective_of(v, y, weight, discriminative, generative):
    """Weighted mean of what every row counts by."""

    def objective(q):
        log_joint = q.log_joint(v)
        log_free = logsumexp(log_joint, axis=1)
        own = log_joint[np.arange(len(y)), y]
        log_z = q.log_partition() if generative else 0.0
        labelled = discriminative * (own - log_free) + generative * (own - log_z)
        return weight @ np.where(y >= 0, labelled, generative * (log_free - log_z))

    return objective


def rows_of(v, y, n_labels=3):
    """Features and label columns side by side; zeros where a label is not known."""
    return np.concatenate([v, np.eye(n_labels + 1)[y, :n_labels]], axis=1)


def gradient_of(q, rows, weight, objective, particles=None):
    """The package's gradient in the offsets of a labelled machine."""
    machine, buffers = labelled_machine(q), UpdateBuffers()
    plain = recenter(machine, None, None)
    particles = np.zeros((0, machine.hidden.n_columns)) if particles is None else particles
    phases = objective(plain, rows, particles, buffers, np.random.default_rng(0))
    positive, negative, _ = phases
    positive = positive if weight is None else positive.weighted(weight)
    gradient = (positive - negative).gradient(machine)
    return phases, renamed(gradient, len(q.features.weights))


@pytest.mark.parametrize("n_labels", [3, MANY_LABELS])
@pytest.mark.parametrize("block", [1, 2**16])
@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_gradient_of_the_labels_is_that_of_their_log_probability(
    kind, offsets, block, n_labels, rng, monkeypatch
):
    # Slips: biases of the features moved, a mean given the wrong label, signals without offset,
    # weights of the rows forgotten, a Gaussian unit's variance left where it is.
    monkeypatch.setattr(EveryPair, "n_block_elements", block)
    q = random_labelled(kind, rng, n_labels=n_labels, offsets=offsets)
    v, weight = draw_rows(q.features, N_ROWS, rng), rng.dirichlet(np.ones(N_ROWS))
    expected = finite_differences(q, objective_of(v, LABELS, weight, 0.7, 0.0))
    objective = LabelObjective(Exact(), 0.7, 0.0)
    _, gradient = gradient_of(q, rows_of(v, LABELS, n_labels), weight, objective)
    assert_same_arrays(gradient, expected, atol=1e-8)


def test_gradient_of_the_labels_moves_both_sides_of_hidden_units(rng):
    # Slip: moments of the hidden units at fields without the offsets that their biases have.
    q = random_labelled("bernoulli", rng, n_visible=1, n_hidden=1, hidden="drelu")
    v, weight = draw_rows(q.features, N_ROWS, rng), rng.dirichlet(np.ones(N_ROWS))
    expected = finite_differences(q, objective_of(v, LABELS, weight, 0.7, 0.4))
    objective = LabelObjective(Exact(), 0.7, 0.4)
    _, gradient = gradient_of(q, rows_of(v, LABELS), weight, objective)
    assert_same_arrays(gradient, expected, atol=1e-8)


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("kind", TWO_STATE)
def test_hybrid_gradient_counts_rows_without_a_label_by_themselves(kind, offsets, rng):
    # Slips: the model's average not weighted, or twice; rows without a label taken for all labels
    # alike, or for their log-probability of a label.
    q = random_labelled(kind, rng, offsets=offsets)
    v, weight = draw_rows(q.features, N_ROWS, rng), np.full(N_ROWS, 1 / N_ROWS)
    expected = finite_differences(q, objective_of(v, LABELS, weight, 0.7, 0.4))
    objective = LabelObjective(Exact(), 0.7, 0.4)
    for share in (weight, None):
        _, gradient = gradient_of(q, rows_of(v, LABELS), share, objective)
        assert_same_arrays(gradient, expected, atol=1e-8)


@pytest.mark.parametrize("algorithm", [PersistentContrastiveDivergence, ContrastiveDivergence])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_without_discriminative_weight_it_is_the_plain_machine(algorithm, container, rng):
    # Slips: chains of contrastive divergence that start without data, particles that rest.
    q = random_labelled("bernoulli", rng)
    rows = container(rows_of(draw_rows(q.features, N_ROWS, rng), LABELS % 3))
    particles = rng.integers(0, 2, (4, 2)).astype(float)
    objective = LabelObjective(algorithm(), 0.0, 1.0)
    phases, gradient = gradient_of(q, rows, None, objective, particles.copy())
    machine, buffers = labelled_machine(q), UpdateBuffers()
    plain = recenter(machine, None, None)
    positive, negative, moved = algorithm()(
        plain, rows, particles, buffers, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(phases[2], moved)
    for average, own in zip(phases[0].averages(), positive.averages(), strict=True):
        np.testing.assert_allclose(average, own, rtol=0, atol=1e-12)
    own = (positive - negative).gradient(machine)
    assert_same_arrays(gradient, renamed(own, 3), atol=1e-12)


def test_chains_rest_where_only_labels_count(rng):
    # Slip: a negative phase that costs two products and does nothing.
    q = random_labelled("bernoulli", rng)
    rows = rows_of(draw_rows(q.features, N_ROWS, rng), LABELS)
    objective = LabelObjective(PersistentContrastiveDivergence(), 1.0, 0.0)
    particles = np.ones((3, 2))
    phases, _ = gradient_of(q, rows, None, objective, particles)
    assert phases[1].gradient(labelled_machine(q)) == {}
    assert phases[2] is particles


class Container:
    """Rows that are no array."""

    def __init__(self, rows):
        self.rows, self.shape = rows, rows.shape

    def __getitem__(self, numbers):
        return self.rows[numbers].copy()


@pytest.mark.parametrize("algorithm", [ContrastiveDivergence, PersistentContrastiveDivergence])
def test_chains_leave_the_rows_of_the_mini_batch_alone(algorithm, seed, rng):
    # Slip: states of chains in the buffer that contains the rows.
    q, learned = random_labelled("bernoulli", rng, n_visible=4, offsets=False), []
    rows = rows_of((rng.random((20, 4)) < 0.5).astype(float), rng.integers(3, size=20))
    for container in (np.asarray, Container):
        machine = labelled_machine(q)
        trainer = Trainer(LabelObjective(algorithm(), 0.0, 1.0), 0.1, 6, centering=False)
        state = TrainingState(np.zeros((5, 2)))
        list(run_epochs(trainer, machine, state, container(rows), 3, np.random.default_rng(seed)))
        learned.append(machine.weights)
    np.testing.assert_array_equal(*learned)
