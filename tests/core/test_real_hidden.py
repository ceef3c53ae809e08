"""Every route of core/ over real-valued hidden units: against quadrature, or refused by name."""

import numpy as np
import oracles
import pytest
from core.models import (
    REAL_HIDDEN,
    REAL_HIDDEN_CASES,
    assert_law,
    assert_mean,
    assert_same_arrays,
    case_id,
    draw_rows,
    hidden_given_visible,
    machine_from,
    model,
    renamed,
    started_layer,
    uncoupled_like,
    visible_layer,
)

from skrbm.core.centering import recenter
from skrbm.core.chains.gibbs import clamped_gibbs, gibbs
from skrbm.core.chains.jumps import jump, mixed_rows, propose
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.couplings import effective_couplings
from skrbm.core.labels import Labels
from skrbm.core.likelihood.annealing import (
    annealed_log_partition,
    reversed_log_partition,
)
from skrbm.core.likelihood.bar import bridged_log_partition
from skrbm.core.likelihood.conditional import conditional_mean
from skrbm.core.likelihood.deficit import likelihood_deficit
from skrbm.core.likelihood.exact import (
    TooManyStatesError,
    log_partition,
    log_partition_and_gradient,
)
from skrbm.core.likelihood.partition import (
    BOUND_MARGIN,
    attained_log_partition,
    log_partition_at_least,
)
from skrbm.core.likelihood.pseudo import estimate_pseudo_likelihood, pseudo_likelihood
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine, NormalizationError
from skrbm.core.training.start.initialization import initial_hidden_layer, initial_machine
from skrbm.core.units import Bernoulli, DReLU, Gaussian, QuadratureError, Spin, StandardGaussian

N_CHAINS = 5_000
GAUSSIAN_VISIBLE = [("cho", 2, 2, 0, hidden) for hidden in REAL_HIDDEN]


@pytest.fixture(params=REAL_HIDDEN_CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed, scale=0.6)


@pytest.fixture(params=REAL_HIDDEN_CASES + GAUSSIAN_VISIBLE, ids=case_id)
def any_visible(request, seed):
    return tame(model(request.param, seed, scale=0.6))


def tame(p):
    """Model whose weights leave Gaussian visible units the most of their curvature."""
    if not p.is_gaussian:
        return p
    lost = machine_from(p).lost_curvature
    p = p.replace(weights=p.weights * np.sqrt(0.3 / lost))
    return p if p.threshold is None else p.replace(threshold=np.abs(p.threshold))


def path_to(p, anchors=None):
    v, _ = oracles.sample_exact(p, 500, np.random.default_rng(0))
    base = started_layer(p, v.mean(axis=0), v.var(axis=0), len(v))
    return TemperedPath.to(machine_from(p), base, anchors)


def assert_visible_law(p, v):
    assert_law(v, oracles.visible_states(p), oracles.model_probabilities(p))


def assert_hidden_moments(p, h):
    states, law = oracles.hidden_states(p), oracles.hidden_probabilities(p)
    for power in (1, 2):
        assert_mean(h**power, law @ states**power)


def test_gibbs_steps_leave_the_law_alone(p, rng):
    # Slips: draws of the mean, a rectified unit without its cut.
    v, _ = oracles.sample_exact(p, N_CHAINS, rng)
    machine = machine_from(p)
    moved = gibbs(machine, v, 2, rng)
    assert_visible_law(p, moved)
    assert_hidden_moments(p, machine.sample_hidden(moved, rng))
    is_known = np.arange(machine.visible.n_units) > 0
    held = clamped_gibbs(machine, v, np.tile(is_known, (N_CHAINS, 1)), 2, rng)
    assert_visible_law(p, held)


def test_jumps_leave_the_law_alone_and_weights_of_proposals_have_the_mean_z(p, rng):
    # Slips: a hidden energy that is not that of both laws; densities taken for probabilities.
    machine, rows = machine_from(p), draw_rows(p, 3, rng)
    _, h = oracles.sample_exact(p, N_CHAINS, rng)
    moved, has_jumped, _ = jump(machine, h, rows, rng)
    assert 0.02 < has_jumped.mean() < 1
    assert_hidden_moments(p, moved)
    assert_visible_law(p, machine.sample_visible(moved, rng))
    proposed, log_weights = propose(machine, rows, N_CHAINS, rng)
    proposal = hidden_given_visible(p, rows).mean(axis=0)
    assert_mean(proposed, proposal @ oracles.hidden_states(p))
    assert_mean(np.exp(log_weights - oracles.log_partition(p))[:, None], 1)
    assert np.isin(mixed_rows(machine, rows, 50, rng), oracles.visible_states(p)).all()


def test_tempered_chains_have_the_law_of_the_machine(p, rng):
    # Slip: energies that are right up to a constant of the temperature.
    v, _ = oracles.sample_exact(p, N_CHAINS // 2, rng)
    assert_visible_law(p, sample_tempered(path_to(p, v[:4]), v, 3, 12, rng))


@pytest.mark.slow
def test_every_estimate_of_the_partition_function_agrees_with_quadrature(any_visible, rng):
    # Slips: half of log(2 pi) for each hidden unit left out at one end; the shift of offsets.
    p = any_visible
    expected = oracles.log_partition(p)
    v, _ = oracles.sample_exact(p, 500, rng)
    path = path_to(p, v[:4])
    tracker = PartitionTracker(path.visible_base, machine_from(p), rng, n_chains=500)
    for result in (
        annealed_log_partition(path, 500, 100, rng),
        reversed_log_partition(path, v, 100, rng),
        bridged_log_partition(path, 100, 300, rng),
        tracker.follow(machine_from(p), 100),
    ):
        assert result.std_error < 0.1
        assert abs(result.value - expected) < 4 * result.std_error + 1e-9, result


def test_bound_of_the_partition_function_counts_no_density(p, rng):
    # Slip: states of continuous hidden units added up as if each had a probability.
    v, h = oracles.sample_exact(p, 200, rng)
    assert log_partition_at_least(machine_from(p), h) == -np.inf
    expected = oracles.log_partition(p)
    assert expected - BOUND_MARGIN - 1 < attained_log_partition(machine_from(p), v, rng) < expected


def test_exact_sums_are_over_the_visible_layer(p):
    # Slip: the smaller layer taken for the one with fewer columns.
    machine = machine_from(p)
    np.testing.assert_allclose(log_partition(machine), oracles.log_partition(p), atol=1e-9)
    expected = oracles.finite_difference_gradient(oracles.log_partition, p)
    assert_same_arrays(renamed(log_partition_and_gradient(machine)[1]), expected, atol=1e-7)


def test_exact_sums_over_two_continuous_layers_are_refused_by_name(seed):
    machine = machine_from(tame(model(GAUSSIAN_VISIBLE[1], seed)))
    with pytest.raises(TooManyStatesError, match="2 hidden ReLU, continuous, units"):
        log_partition(machine)


def test_pseudo_likelihood_is_that_of_quadrature(any_visible, rng):
    # Slips: nodes that do not reach the law of a unit whose hidden units have no bounds, the
    # bounds of another row.
    p = any_visible
    v, _ = oracles.sample_exact(p, 3, rng)
    if p.is_gaussian:
        v[0] *= 5  # far from all others
    machine, expected = machine_from(p), oracles.log_pseudo_likelihood(p, v)
    np.testing.assert_allclose(pseudo_likelihood(machine, v), expected, rtol=1e-9, atol=1e-9)
    n_units = machine.visible.n_units
    estimate = estimate_pseudo_likelihood(machine, v, n_units, rng)
    np.testing.assert_allclose(estimate, expected, rtol=1e-9, atol=1e-9)


def test_conditional_laws_of_gaussian_units_are_those_of_the_joint_normal_law(rng):
    # Slips: a mean given the present state of the unit itself; nodes that do not reach its law,
    # which is wide where weights are large.
    weights, bias = rng.normal(size=(3, 2)), rng.normal(size=3)
    weights[1] *= 10
    weights *= np.sqrt(0.95) / np.linalg.norm(weights, 2)
    visible = Gaussian(bias, rng.normal(0, 0.5, 3), parameterization="natural")
    weights *= np.exp(-visible.log_variance / 2)[:, None]
    machine = Machine(visible, StandardGaussian(rng.normal(size=2)), weights)
    precision = np.diag(np.exp(-visible.log_variance)) - weights @ weights.T
    mean = np.linalg.solve(
        precision, bias * np.exp(-visible.log_variance) + weights @ machine.hidden.bias
    )
    v = mean + 5 * np.arange(4)[:, None] * rng.normal(size=(4, 3))  # at the mean, and far away
    own = np.diag(precision)
    distance = (v - mean) @ precision / own  # from the mean of each given the others
    means = v - distance
    np.testing.assert_allclose(conditional_mean(machine, v, 1)[:, 0], means[:, 1], atol=1e-9)
    expected = (np.log(own / (2 * np.pi)) - own * distance**2).sum(axis=1) / 2
    np.testing.assert_allclose(pseudo_likelihood(machine, v), expected, rtol=1e-9, atol=1e-9)


def test_two_modes_of_a_hidden_unit_may_leave_no_quadrature(rng):
    hidden = DReLU(np.zeros(1), np.full(1, -3.0), np.zeros(1))
    visible = Gaussian(np.zeros(1), np.zeros(1), parameterization="cho")
    machine = Machine(visible, hidden, np.full((1, 1), 0.9))
    with pytest.raises(QuadratureError, match="exceeds the reduction by DReLU hidden units"):
        pseudo_likelihood(machine, np.zeros((1, 1)))


def test_offsets_move_without_a_change_of_the_law(any_visible, rng):
    # Slips: a curvature that moves with the offset, an absorbed field at one side alone.
    p = any_visible
    machine, v = machine_from(p), draw_rows(p, 6, rng)
    moved = recenter(machine, rng.normal(size=len(p.weights)), rng.normal(size=2))
    change = moved.free_energy(v) - machine.free_energy(v)
    np.testing.assert_allclose(change, change[0], atol=1e-10)
    np.testing.assert_allclose(moved.mean_hidden(v), machine.mean_hidden(v), atol=1e-10)


def test_probabilities_of_labels_sum_over_real_hidden_units(seed):
    p = model(("categorical", 5, 2, 0, "drelu"), seed)
    v = oracles.visible_states(p)[::2]  # with the first value of the last unit of two
    machine, states = machine_from(p), np.eye(2)
    both = [np.hstack([v[:, :3], np.tile(state, (len(v), 1))]) for state in states]
    log_joint = -np.stack([oracles.free_energy(p, rows) for rows in both], axis=1)
    expected = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])
    labels = Labels(machine)
    field = labels.without(v[:, labels.columns], machine.hidden_field(v))
    np.testing.assert_allclose(labels.probabilities(field), expected, atol=1e-9)


def test_deficit_is_certain(p, rng):
    # Slip: densities of hidden states added up as if they were probabilities.
    base, v = uncoupled_like(p, rng), draw_rows(p, 40, rng)
    truth = oracles.log_likelihood(base, v) - oracles.log_likelihood(p, v)
    machine, layer = machine_from(p), visible_layer(base)
    deficit = likelihood_deficit(machine, layer, v, np.zeros((1, 2)))
    assert truth.mean() - 12 < deficit < truth.mean()


def test_gaussian_hidden_units_couple_spins_by_their_weights(rng):
    # Slip: half of it, or each pair twice.
    weights, bias = rng.normal(size=(6, 3)), rng.normal(size=3)
    machine = Machine(Spin(rng.normal(size=6)), StandardGaussian(bias), weights)
    expected = weights @ weights.T
    np.fill_diagonal(expected, 0)
    result = effective_couplings(machine, 3)
    np.testing.assert_allclose(result.pairs, expected, atol=1e-10)
    np.testing.assert_allclose(result.triples, 0, atol=1e-10)
    np.testing.assert_allclose(result.fields, machine.visible.bias + weights @ bias, atol=1e-10)


def test_exact_couplings_of_real_hidden_units_are_refused_by_name(p):
    machine = machine_from(p)
    message = rf"hidden units that have two states, got {machine.hidden.type_name} units\. Use the"
    with pytest.raises(ValueError, match=message):
        effective_couplings(machine, method="exact")


@pytest.mark.parametrize("hidden", REAL_HIDDEN)
def test_weights_without_a_distribution_are_refused_by_name(hidden, seed):
    # Slips: the largest weight in place of the largest singular value, a variance for a precision.
    p = model(("krizhevsky", 4, 3, 0, hidden), seed)
    p = p if p.asymmetry is None else p.replace(asymmetry=0 * p.asymmetry)
    largest = np.linalg.norm(p.weights, 2)
    machine_from(p.replace(weights=0.99 * p.weights / largest)).check_normalizable()
    wide = machine_from(p.replace(weights=1.01 * p.weights / largest))
    np.testing.assert_allclose(wide.lost_curvature, 1.01**2)
    message = rf"Gaussian visible and {wide.hidden.type_name} hidden units may have no joint .* fraction of 1.02"
    with pytest.raises(NormalizationError, match=message):
        wide.check_normalizable()
    assert machine_from(model(("spin", 4, 3, 0, hidden), seed)).lost_curvature == 0


def test_a_side_without_curvature_is_refused_by_name():
    hidden = DReLU(np.zeros(1), np.zeros(1), np.full(1, -1.5))
    with pytest.raises(NormalizationError, match=r"DReLU units expected .* a curvature of -0\.5"):
        Machine(Spin(np.zeros(2)), hidden, np.ones((2, 1))).check_normalizable()


@pytest.mark.parametrize("kind", REAL_HIDDEN.values(), ids=REAL_HIDDEN)
def test_first_machine_has_a_distribution_and_the_means_of_the_data(kind, rng):
    # Slip: as many random weights as make the largest singular value one.
    mean, variance = rng.normal(size=30), np.full(30, 2.0)
    visible = Gaussian.start(mean, variance, 100, parameterization="cho")
    hidden = initial_hidden_layer(kind, 30)
    machine = initial_machine(visible, hidden, mean, variance, rng)
    machine.check_normalizable()
    assert machine.lost_curvature > 0.1
    h = machine.hidden.mean(machine.hidden_field(mean[None]))
    np.testing.assert_allclose(h, hidden.mean(hidden.zero_field(1)), atol=1e-9)


def test_moments_without_a_field_are_refused():
    # Slip: the biases in the place of the rows.
    units = DReLU(np.ones(2), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="double rectified units expected a field, got None"):
        units.expected_moments(np.zeros((2, 2)), None, np.full(2, 0.5))


@pytest.mark.parametrize("asymmetry", [-0.9, 0.0, 0.5])
@pytest.mark.parametrize("threshold", [-2.5, -5.0, -50.0])
def test_largest_variance_is_that_between_two_distant_modes(threshold, asymmetry):
    # Slip: a grid of fields that misses the narrow peak where both modes are equally probable.
    units = DReLU(np.zeros(1), np.array([threshold]), np.array([asymmetry]))
    field = np.linspace(-1, 1, 400_001)[:, None] * (abs(threshold) + 4)
    mean = units.mean(field)
    variance = np.diff(mean, axis=0) / np.diff(field, axis=0)  # the mean's derivative
    assert variance.max() <= units.largest_variance[0] <= 1.02 * variance.max()


def test_conditional_means_in_single_precision_are_not_lost_in_large_free_energies(rng):
    """Slip: a sum with the log-partition of the hidden units in single precision."""
    weights = [[0.0002], [1000.0]] * rng.normal(size=(2, 20))
    machine = Machine(Bernoulli(np.zeros(2)), StandardGaussian(np.zeros(20)), weights)
    single, v = machine.astype(np.float32), np.array([[0.0, 1.0]])
    expected = conditional_mean(machine, v, 0)
    found = conditional_mean(single, v.astype(np.float32), 0)
    assert 0.1 < expected[0, 0] < 0.9
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
