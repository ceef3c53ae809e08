"""Negative phases against the enumerated chains that they simulate."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    assert_law,
    assert_mean,
    assert_same_arrays,
    balanced_model,
    case_id,
    chain,
    draw_rows,
    draw_states,
    hidden_given_visible,
    hidden_law,
    hidden_states,
    machine_from,
    mean_gradient,
    model,
    renamed,
    sized,
    tempered_hidden_law,
    uncoupled_like,
    visible_layer,
    visible_states,
)
from scipy import sparse

from skrbm.core.chains.ladder import Ladder
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.negative_phase import (
    ALGORITHMS,
    PERSISTENT_CHAINS,
    ContrastiveDivergence,
    Exact,
    ParallelTempering,
    PersistentContrastiveDivergence,
)

CHAINS = [ContrastiveDivergence, PersistentContrastiveDivergence]  # the random ones
N_REPEATS = 200
N_ROWS, N_PARTICLES = 31, 47  # unequal, so that neither phase can be divided by the other's count
KINDS = [sized(kind, 2, 2) for kind in oracles.KINDS]


@pytest.fixture(params=KINDS, ids=case_id)
def p(request, seed):
    return balanced_model(request.param, seed)


def flat(gradient):
    """All parameters' gradient as one vector, in the oracle's order of names."""
    gradient = renamed(gradient)
    return np.concatenate([gradient[name].ravel() for name in sorted(gradient)])


def negative(phase, machine, v, particles, rng):
    """The model's part of the gradient, and the particles' new states."""
    buffers = UpdateBuffers()
    own = particles.copy() if PERSISTENT_CHAINS in phase.offers else particles
    positive, negative, own = phase(machine, v, own, buffers, rng)
    (rows, mean), *_ = positive.blocks
    np.testing.assert_array_equal(rows, v)
    np.testing.assert_allclose(mean, machine.mean_hidden(v), rtol=1e-12)
    both = (positive - negative).gradient(machine)
    return {name: array - both[name] for name, array in machine.gradient(v).items()}, own


def no_rows(p):
    """Mini-batch that does not matter."""
    return np.zeros((N_ROWS, len(p.weights)))


def test_every_random_algorithm_is_tested():
    assert {*CHAINS, ParallelTempering, Exact} == set(ALGORITHMS.values())


@pytest.mark.every_kind
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_exact_phase_is_the_gradient_of_the_log_partition(case, seed, rng):
    p = model(case, seed)
    particles = np.full((3, p.weights.shape[1]), p.hidden_values[0])
    gradient, kept = negative(Exact(), machine_from(p), visible_states(p, rng), particles, rng)
    expected = oracles.finite_difference_gradient(oracles.log_partition, p)
    assert_same_arrays(renamed(gradient), expected, atol=1e-6)
    assert kept is particles


@pytest.mark.every_kind
@pytest.mark.parametrize("algorithm", CHAINS)
@pytest.mark.parametrize("n_gibbs_steps", [1, 2])
def test_chains_that_start_in_the_model_average_to_the_exact_phase(
    p, algorithm, n_gibbs_steps, rng
):
    # Slips: a sum divided by the batch size where there are more particles; samples without noise.
    machine, phase = machine_from(p), algorithm(n_gibbs_steps)
    v, _ = oracles.sample_exact(p, N_REPEATS * N_ROWS, rng)
    _, h = oracles.sample_exact(p, N_REPEATS * N_PARTICLES, rng)
    draws = [
        flat(negative(phase, machine, rows, particles, rng)[0])
        for rows, particles in zip(np.split(v, N_REPEATS), np.split(h, N_REPEATS), strict=True)
    ]
    assert_mean(draws, flat(oracles.finite_difference_gradient(oracles.log_partition, p)))


@pytest.mark.every_kind
@pytest.mark.parametrize("n_gibbs_steps", [1, 2])
def test_tempered_chains_that_start_in_their_models_average_to_the_exact_phase(
    p, n_gibbs_steps, rng
):
    # Slips: the hottest chains taken for the model's; particles returned in another order.
    machine, base = machine_from(p), uncoupled_like(p, rng)
    ladder = Ladder(np.array([1.0, 0.5, 0.0]))
    phase = ParallelTempering(n_gibbs_steps, base=visible_layer(base), ladder=ladder)
    laws = [tempered_hidden_law(p, base, beta) for beta in ladder.betas]
    draws, particles = [], []
    for _ in range(N_REPEATS):
        h = [draw_states(hidden_states(p), law, N_PARTICLES, rng) for law in laws]
        gradient, moved = negative(phase, machine, no_rows(p), np.concatenate(h), rng)
        draws.append(flat(gradient))
        particles.append(moved.reshape(3, N_PARTICLES, 2))
    assert_mean(draws, flat(oracles.finite_difference_gradient(oracles.log_partition, p)))
    for moved, law in zip(np.concatenate(particles, axis=1), laws, strict=True):
        assert_law(moved, hidden_states(p), law)
    notes = phase.finish_epoch()
    assert 0 < notes["swap_acceptance"] < 1
    assert phase.n_temperatures == 3


@pytest.mark.every_kind
@pytest.mark.parametrize("algorithm", CHAINS)
@pytest.mark.parametrize("n_gibbs_steps", [1, 2, 3])
def test_phase_averages_over_the_law_after_its_steps(p, algorithm, n_gibbs_steps, rng):
    # Slips: hidden samples of a previous state reused (in the model's own law that would cancel),
    # one step too many or too few, chains that start where they should not.
    machine, phase = machine_from(p), algorithm(n_gibbs_steps)
    unlikely = np.argmin(hidden_law(p))
    start = np.arange(4) == unlikely
    particles = np.repeat(hidden_states(p)[start], N_PARTICLES, axis=0)
    v = np.repeat(oracles.mean_visible(p, hidden_states(p)[start]), N_ROWS, axis=0)
    if algorithm is ContrastiveDivergence:
        start = hidden_given_visible(p, v[:1])[0]
    draws = [flat(negative(phase, machine, v, particles, rng)[0]) for _ in range(N_REPEATS)]
    states, law, _ = chain(p, start.astype(float), n_gibbs_steps)
    assert_mean(draws, flat(mean_gradient(p, states, law)))


@pytest.mark.parametrize("n_gibbs_steps", [1, 2, 3])
def test_persistent_particles_take_as_many_steps_as_they_are_told(p, n_gibbs_steps, rng):
    machine = machine_from(p)
    start = np.arange(4) == np.argmin(hidden_law(p))
    particles = np.repeat(hidden_states(p)[start], 20_000, axis=0)
    phase = PersistentContrastiveDivergence(n_gibbs_steps)
    _, particles = negative(phase, machine, no_rows(p), particles, rng)
    _, _, law = chain(p, start.astype(float), n_gibbs_steps)
    assert_law(particles, hidden_states(p), law)


def test_particles_rest_while_chains_start_at_the_batch(p, rng):
    machine = machine_from(p)
    v, particles = oracles.sample_exact(p, N_PARTICLES, rng)
    _, kept = negative(ContrastiveDivergence(2), machine, v, particles, rng)
    assert kept is particles


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("algorithm", [PersistentContrastiveDivergence, Exact])
def test_weighted_rows_are_copies_and_the_model_is_not_weighted(algorithm, container, rng):
    # Slips: shares of the chains' rows in place of the data's, weights that do not sum to one.
    p = model(sized("bernoulli", 4, 3), 0)
    machine, v = machine_from(p), draw_rows(p, 9, rng)
    n_copies, particles = rng.integers(1, 4, 9), rng.integers(0, 2, (5, 3)).astype(float)
    gradients = []
    for rows, share in ((v, n_copies / n_copies.sum()), (np.repeat(v, n_copies, axis=0), None)):
        buffers, rng = UpdateBuffers(), np.random.default_rng(0)
        own = particles.copy()
        positive, negative, _ = algorithm()(machine, container(rows), own, buffers, rng)
        positive = positive if share is None else positive.weighted(share)
        gradients.append((positive - negative).gradient(machine))
    assert_same_arrays(*gradients, atol=1e-12)
