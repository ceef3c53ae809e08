"""Penalties and constraints: gradients of what they say, and bounds that hold."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    GAUSSIAN_CASES,
    assert_same_arrays,
    case_id,
    centered_path,
    fields,
    machine_from,
    model,
    renamed,
    visible_states,
)

from skrbm.core.machine import Machine
from skrbm.core.numerics import BLOCK_BYTES
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import Exact
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.start.initialization import initial_particles
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units import Bernoulli, Gaussian
from skrbm.core.units.gaussian import NATURAL
from skrbm.core.units.support import ColumnStatistics

PLAIN = [case for case in CASES if not case[3]]
RATE = 1e-3
PENALTIES = Penalties(l1=0.3, l1_squared=0.9, l2=0.7)


def cost(p):
    weights = oracles.zero_sum(p, p.weights)
    sums = np.abs(weights).sum(axis=0)
    squares = 0.45 / len(weights) * np.sum(sums**2)
    return np.sum(0.3 * np.abs(weights) + 0.35 * weights**2) + squares


def penalised(p, gradient):
    """Direction of a step that also climbs down from the cost of the weights in the gauge in which
    those of a categorical unit sum to zero.
    """

    slope = oracles.finite_difference_gradient(cost, p, step=1e-6)["weights"]
    return oracles.ascent(p, gradient | {"weights": gradient["weights"] - slope})


def update(p, v, rng, **options):
    """Machine after one exact update."""
    machine = machine_from(p)
    state = TrainingState(initial_particles(machine, machine.visible, 2, rng))
    trainer = Trainer(Exact(), RATE, batch_size=len(v), **options)
    list(run_epochs(trainer, machine, state, v, 1, rng))
    return machine, state


@pytest.mark.every_kind
@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_penalties_bend_the_plain_and_the_centered_step(case, seed, rng):
    # Slips: a penalty of other coordinates than the plain weights', l2 without its half, a wrong sign,
    # sums over visible columns in place of hidden units, a sum divided by hidden units,
    # signs of weights that are in another gauge, a slope that leaves the gauge.
    p = model(case, seed)
    assert PENALTIES.of_weights(machine_from(p)) == pytest.approx(cost(p))
    v = visible_states(p, rng)[:5]
    machine, _ = update(p, v, rng, centering=False, parts=(PENALTIES,))
    direction = penalised(p, oracles.log_likelihood_gradient(p, v))
    moved = {name: getattr(p, name) + RATE * array for name, array in direction.items()}
    assert_same_arrays(renamed(machine.parameters), moved, atol=1e-9)
    machine, state = update(p, v, rng, parts=(PENALTIES,))
    offsets = state.visible_offset, state.hidden_offset
    plain, velocity = centered_path(p, v, offsets, ascent=penalised)
    expected = {name: fields(plain(RATE))[name] for name in velocity}
    assert_same_arrays(renamed(machine.parameters), expected, atol=1e-9)


@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_norms_of_columns_are_bounded_and_directions_kept(case, centering, seed, rng):
    # Slips: rows in place of columns, columns within the bound that are stretched, biases that
    # forget what the offsets of a centered machine made of the weights.
    p = model(case, seed)
    v = visible_states(p, rng)[:5]
    free, _ = update(p, v, rng, centering=centering)
    norms = np.linalg.norm(free.weights, axis=0)
    bound = np.median(norms)
    machine, _ = update(p, v, rng, centering=centering, parts=(Constraints(max_norm=bound),))
    expected = free.weights * np.minimum(1, bound / norms)
    np.testing.assert_allclose(machine.weights, expected, atol=1e-12)


@pytest.mark.parametrize("bound", [1e-3, 1e3])
@pytest.mark.parametrize("case", PLAIN[::3], ids=case_id)
def test_long_gradients_are_shortened_in_the_metric_and_short_ones_left(case, bound, seed, rng):
    # Slips: each array clipped to the norm of its own, a norm that depends on the data's units.
    p = model(case, seed)
    v = visible_states(p, rng)[:5]
    gradient = oracles.log_likelihood_gradient(p, v)
    ascent = oracles.ascent(p, gradient)
    norm = np.sqrt(sum((gradient[name] * ascent[name]).sum() for name in gradient))
    machine, _ = update(p, v, rng, centering=False, preconditioner=Preconditioner(max_norm=bound))
    factor = RATE * min(1, bound / norm)
    expected = {name: getattr(p, name) + factor * array for name, array in ascent.items()}
    assert_same_arrays(renamed(machine.parameters), expected, atol=1e-9)


@pytest.mark.parametrize("bound", [None, 1e-3])
@pytest.mark.parametrize("case", PLAIN[::3], ids=case_id)
def test_metric_unit_is_a_multiple_of_the_metric_and_of_the_norm_in_it(case, bound, seed, rng):
    # Slips: a unit of the weights alone; a bound on the norm of a gradient in another unit.
    p = model(case, seed)
    v = visible_states(p, rng)[:5]
    gradient = oracles.log_likelihood_gradient(p, v)
    ascent = {name: 16 * array for name, array in oracles.ascent(p, gradient).items()}
    norm = np.sqrt(sum((gradient[name] * ascent[name]).sum() for name in gradient))
    preconditioner = Preconditioner(unit=16.0, max_norm=bound)
    machine, state = update(p, v, rng, centering=False, preconditioner=preconditioner)
    factor = RATE * (1 if bound is None else min(1, bound / norm))
    expected = {name: getattr(p, name) + factor * array for name, array in ascent.items()}
    assert_same_arrays(renamed(machine.parameters), expected, atol=1e-9)
    assert state.learning_rate == RATE


@pytest.mark.parametrize("case", [c for c in PLAIN if c in GAUSSIAN_CASES], ids=case_id)
def test_steps_are_shorter_where_chains_are_slow(case, seed, rng):
    # Slips: all columns paced by one, a pace of the weights alone, shorter steps for few updates.
    p = model(case, seed)
    v = visible_states(p, rng)[:5]
    variance, redundancy = 9 * np.exp(p.log_variance), np.linspace(0.5, 100, len(p.visible_bias))
    ascent = oracles.ascent(
        p, oracles.log_likelihood_gradient(p, v), variance, redundancy=redundancy
    )
    preconditioner = Preconditioner(ColumnStatistics(variance, redundancy=redundancy))
    machine, _ = update(p, v, rng, centering=False, preconditioner=preconditioner)
    expected = {name: getattr(p, name) + RATE * array for name, array in ascent.items()}
    assert_same_arrays(renamed(machine.parameters), expected, atol=1e-9)


@pytest.mark.parametrize("has_variances", [False, True])
def test_the_norm_of_a_large_gradient_is_that_of_all_its_entries(has_variances, rng):
    # Slips: squares in single precision, which overflow; the first block of rows alone.
    bias, hidden_bias = np.zeros(300, np.float32), np.zeros(200, np.float32)
    visible = Bernoulli(bias)
    if has_variances:  # a factor of the metric for each column
        visible = Gaussian(bias, bias, NATURAL, learn_variance=False)
    machine = Machine(visible, Bernoulli(hidden_bias), np.zeros((300, 200), np.float32))
    assert machine.weights.nbytes > BLOCK_BYTES
    gradient = {
        name: (1e20 * rng.normal(size=array.shape)).astype(np.float32)
        for name, array in machine.parameters.items()
    }
    before = {name: array.astype(float) for name, array in gradient.items()}
    norm = np.sqrt(sum(np.square(array).sum() for array in before.values()))
    direction = Preconditioner(max_norm=2.0).direction(machine, gradient)  # the metric is one
    for name, array in before.items():
        np.testing.assert_allclose(direction[name], 2 / norm * array, rtol=1e-5)


@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_metric_is_that_of_the_present_variances(kind, seed):
    # Slip: a metric that is looked up once, as that of discrete units is.
    p, used = model((kind, 3, 2, 0), seed), Preconditioner()
    for q in (p, p.replace(log_variance=p.log_variance + 1)):
        one, other = (
            preconditioner.direction(
                machine_from(q), {n: np.ones_like(a) for n, a in machine_from(q).parameters.items()}
            )
            for preconditioner in (used, Preconditioner())
        )
        assert_same_arrays(one, other, atol=0)


def test_parameters_stay_within_bounds():
    parameters = {"weights": np.zeros((1, 1)), "visible_log_variance": np.array([-9.0, 0.0, 9.0])}
    bounds = {"visible_log_variance": (np.full(3, -1.0), np.full(3, 2.0))}
    Constraints(bounds=bounds).enforce(parameters)
    np.testing.assert_array_equal(parameters["visible_log_variance"], [-1, 0, 2])
