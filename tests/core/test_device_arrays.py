"""Arrays on a device: the same code as for NumPy arrays, with the same results."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    REAL_HIDDEN_CASES,
    assert_law,
    assert_mean,
    assert_same_arrays,
    balanced_model,
    case_id,
    draw_rows,
    draw_states,
    hidden_law,
    hidden_states,
    machine_from,
    model,
    sized,
    tempered_hidden_law,
    uncoupled_like,
    visible_layer,
    visible_states,
)
from device_arrays import DeviceArray, counted, stand_in_only, to_device
from scipy import stats

from skrbm.core.centering import in_zero_sum_gauge, recenter
from skrbm.core.chains.gibbs import clamped_gibbs, clamped_mean, gibbs, sample_scattered
from skrbm.core.chains.jumps import (
    draw_given_observed,
    extrapolated_rows,
    jump,
    mixed_rows,
    rows_near_modes,
)
from skrbm.core.chains.ladder import Ladder
from skrbm.core.chains.path import TemperedPath, heated_machine, natural_machine
from skrbm.core.chains.tempering import parallel_tempering
from skrbm.core.draws import draw_bernoulli
from skrbm.core.likelihood.annealing import (
    annealed_log_partition,
    reversed_log_partition,
    tempered_states,
)
from skrbm.core.likelihood.bar import bridged_log_partition
from skrbm.core.likelihood.exact import log_partition, log_partition_and_gradient
from skrbm.core.likelihood.partition import attained_log_partition
from skrbm.core.numerics import to_host
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import ALGORITHMS, Exact
from skrbm.core.training.optimizer import OPTIMIZERS
from skrbm.core.training.parts.average import Average, averaged
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.damping import Damping
from skrbm.core.training.parts.gray_values import GrayValues
from skrbm.core.training.parts.guard import Guard
from skrbm.core.training.parts.hidden_scale import HiddenScale
from skrbm.core.training.parts.jump_to_data import JumpToData
from skrbm.core.training.parts.normalization import Normalization
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.start.initialization import initial_particles
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units.support import ColumnStatistics

ALL_CASES = [case for case in CASES if case[0] != "count"] + REAL_HIDDEN_CASES  # it uses SciPy
DRAWN = [sized(kind, 2, 2, 1) for kind in oracles.KINDS if kind != "count"]
KINDS = [sized(kind, 3, 2, 1) for kind in oracles.KINDS if kind != "count"] + REAL_HIDDEN_CASES


def on_host(result):
    """Result with every array copied to the host; each of them was on the device."""
    if isinstance(result, dict):
        return {name: on_host(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [on_host(value) for value in result]
    if isinstance(result, float | int | None):
        return result
    assert isinstance(result, DeviceArray), type(result)
    return to_host(result)


def arrays_of(machine):
    """All arrays of a machine by name."""
    return dict(machine.arrays)


def deterministic(machine, v, h):
    """Results without draws, by name."""
    path = TemperedPath.to(machine, machine.visible)
    results = {
        "hidden field": machine.hidden_field(v),
        "mean hidden": machine.mean_hidden(v),
        "mean visible": machine.mean_visible(h),
        "energy": machine.energy(v, h[: len(v)]),
        "free energy": machine.free_energy(v),
        "gradient": machine.gradient(v),
        "natural": arrays_of(natural_machine(machine)[0]),
        "shift": natural_machine(machine)[1],
        "plain": arrays_of(recenter(machine, None, None)),
        "gauge": arrays_of(in_zero_sum_gauge(machine)),
        "half-way field": path.at(0.5).visible_field(h),
        "base": path.base_log_partition,
        "lost curvature": machine.lost_curvature,
    }
    if machine.visible.is_discrete or machine.hidden.is_discrete:
        results["log partition"] = log_partition(machine)
        results["expected gradient"] = log_partition_and_gradient(machine)[1]
    return results


@pytest.mark.parametrize("case", ALL_CASES, ids=case_id)
def test_results_are_those_of_numpy_arrays(case, seed, rng):
    p = model(case, seed)
    machine, v = machine_from(p), visible_states(p, rng)
    h = rng.choice(hidden_states(p), len(v))
    on_device = deterministic(machine.map_arrays(to_device), to_device(v), to_device(h))
    for name, expected in deterministic(machine, v, h).items():
        actual = on_host(on_device[name])
        if isinstance(expected, dict):
            assert_same_arrays(actual, expected, atol=1e-11)
        else:
            np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11, err_msg=name)


def device_model(p):
    """Machine of a model on the device."""
    return machine_from(p).map_arrays(to_device)


def device_path(p, base, anchors=None):
    """Path on the device from an uncoupled model to a model."""
    layer = visible_layer(base).map_arrays(to_device)
    return TemperedPath.to(device_model(p), layer, anchors)


@pytest.mark.every_kind
@pytest.mark.parametrize("case", KINDS, ids=case_id)
def test_conditional_draws_have_the_means_of_the_law(case, seed, rng):
    p, n_draws = model(case, seed, scale=0.2), 4000
    machine, v = device_model(p), visible_states(p, rng)[:1]
    h = oracles.mean_hidden(p, v)
    for half, given, expected in (
        (machine, v, h),
        (machine.transposed, h, oracles.mean_visible(p, h)),
    ):
        draws = half.sample_hidden(to_device(np.repeat(given, n_draws, axis=0)), rng)
        assert_mean(on_host(draws), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["categorical", "composite"])
def test_categories_are_drawn_one_of_a_unit(kind, dtype, seed, rng):
    p = model(sized(kind, 3, 2, 0), seed)
    layer, n_draws = visible_layer(p, dtype).map_arrays(to_device), 4000
    field = rng.normal(0, 1, (1, layer.n_columns)).astype(dtype)
    draws = on_host(layer.sample(to_device(np.repeat(field, n_draws, axis=0)), rng))
    assert draws.dtype == dtype
    for own in [own for kind, own in p.units if kind == "categorical"]:
        assert (draws[:, own].sum(axis=1) == 1).all()
    assert_mean(draws, on_host(layer.mean(to_device(field))))


def test_draws_are_those_of_the_seed(seed):
    # Slip: a stream of the device's own, which a copy of the run's stream does not bring along.
    probability = to_device(np.full((100, 3), 0.5))
    streams = [np.random.default_rng(seed) for _ in range(2)]
    draws = [[on_host(draw_bernoulli(probability, stream)) for _ in range(2)] for stream in streams]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0][0] != draws[0][1]).any()


@pytest.mark.every_kind
@pytest.mark.parametrize("case", DRAWN, ids=case_id)
def test_kernels_leave_the_law_alone(case, seed, rng):
    """Gibbs steps, jumps and tempering, started from exact samples."""
    p, n_chains = balanced_model(case, seed), 4000
    base = uncoupled_like(p, rng)
    machine, states, law = device_model(p), hidden_states(p), hidden_law(p)
    rows = to_device(draw_rows(p, 3, rng))
    h = draw_states(states, law, n_chains, rng)
    moved = machine.sample_hidden(
        gibbs(machine, machine.sample_visible(to_device(h), rng), 1, rng), rng
    )
    assert_law(on_host(moved), states, law)
    assert_law(on_host(jump(machine, to_device(h), rows, rng)[0]), states, law)
    ladder = Ladder(np.array([1.0, 0.5, 0.0]))
    laws = [tempered_hidden_law(p, base, beta) for beta in ladder.betas]
    h = np.stack([draw_states(states, each, n_chains, rng) for each in laws])
    _, moved = parallel_tempering(device_path(p, base), to_device(h), ladder, 1, rng)
    for each, expected in zip(on_host(moved), laws, strict=True):
        assert_law(each, states, expected)
    assert 0 < ladder.adapt() <= 1


@pytest.mark.every_kind
@pytest.mark.parametrize("case", DRAWN, ids=case_id)
def test_annealing_agrees_with_enumeration_within_its_error(case, seed, rng):
    p = balanced_model(case, seed)
    base, anchors = uncoupled_like(p, rng), to_device(draw_rows(p, 3, rng))
    exact, path = oracles.log_partition(p), device_path(p, base, anchors)
    v, _ = oracles.sample_exact(p, 400, rng)
    for result in (
        annealed_log_partition(path, 400, 60, rng),
        reversed_log_partition(path, to_device(v), 60, rng),
    ):
        assert 0 < result.std_error < 0.3
        assert abs(result.value - exact) < stats.norm.isf(1e-6) * result.std_error


@stand_in_only
@pytest.mark.parametrize("case", DRAWN, ids=case_id)
def test_annealing_copies_its_weights_alone_to_the_host(case, seed, rng):
    p = balanced_model(case, seed)
    path, v = device_path(p, uncoupled_like(p, rng)), to_device(draw_rows(p, 9, rng))
    with counted() as transfers:
        annealed_log_partition(path, 5, 20, rng)
        reversed_log_partition(path, v, 20, rng)
    assert transfers["to host"] == 2


@pytest.mark.parametrize("case", DRAWN, ids=case_id)
def test_samplers_run_on_the_device_to_their_end(case, seed, rng):
    """They can only fail by an exception, or by an array that is not on the device."""
    p = balanced_model(case, seed)
    machine, base = device_model(p), uncoupled_like(p, rng)
    rows = to_device(draw_rows(p, 4, rng))
    path = device_path(p, base, rows)
    on_host(sample_scattered(machine, 5, rng))
    on_host(mixed_rows(machine, rows, 5, rng))
    on_host(extrapolated_rows(machine, rows, 5, rng))
    on_host(rows_near_modes(machine, rows))
    on_host(tempered_states(path, 5, 3, 4, rng))
    is_observed = to_device(np.arange(machine.visible.n_units) % 2 == np.zeros((4, 1)))
    on_host(draw_given_observed(machine, rows, is_observed, rows, 20, rng))
    on_host(clamped_gibbs(machine, rows, is_observed, 2, rng))
    on_host(clamped_mean(machine, rows, is_observed, 2, rng))
    assert np.isfinite(attained_log_partition(machine, rows, rng))
    assert np.isfinite(bridged_log_partition(path, 3, 60, rng).value)
    on_host(heated_machine(machine, 2.0).mean_hidden(rows))


def particles_of(machine, n_particles, rng):
    """Hidden states of chains, on the device of the machine."""
    return initial_particles(machine, machine.visible, n_particles, rng)


def trained(trainer, machine, v, particles, rng, sample_weight=None):
    """Machine after two epochs, and its state of training."""
    state = TrainingState(particles)
    epochs = run_epochs(trainer, machine, state, v, 2, rng, sample_weight=sample_weight)
    assert list(epochs) == [1, 2]
    return machine, state


@pytest.mark.every_kind
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("case", KINDS, ids=case_id)
def test_exact_training_is_that_of_numpy_arrays(case, optimizer, seed, rng):
    p, results = model(case, seed), []
    rows, sample_weight = draw_rows(p, 7, rng), rng.uniform(0.5, 2, 7)
    for place in (np.asarray, to_device):
        machine = recenter(machine_from(p), None, None).astype(np.float64, copy=True)
        particles = place(particles_of(machine, 6, np.random.default_rng(seed)))
        machine, v = machine.map_arrays(place), place(rows)
        preconditioner = Preconditioner(
            ColumnStatistics(place(rows.var(axis=0) + 0.1)), max_norm=0.5
        )
        parts = (
            Guard(),
            Penalties(0.01, 0.01, 0.01),
            Constraints(0.9),
            *([HiddenScale(preconditioner)] if len(case) > 4 else ()),
            *([Normalization()] if machine.lost_curvature else ()),
            Average(),
        )
        trainer = Trainer(
            Exact(),
            0.05,
            batch_size=3,
            optimizer=OPTIMIZERS[optimizer](0.5),
            preconditioner=preconditioner,
            parts=parts,
            shuffle=False,
        )
        machine, state = trained(trainer, machine, v, particles, rng, sample_weight)
        results.append((dict(machine.parameters), dict(averaged(machine, state).parameters)))
    for expected, actual in zip(results[0], on_host(results[1]), strict=True):
        assert_same_arrays(actual, expected, atol=1e-10)


@pytest.mark.every_kind
@pytest.mark.parametrize("algorithm", ["cd", "pcd", "pt"])
@pytest.mark.parametrize("case", DRAWN, ids=case_id)
def test_phases_average_to_the_exact_gradient(case, algorithm, seed, rng):
    """Chains that start in the model, whose rows are samples of it, give a gradient of zero."""
    p, n_repeats, n_rows, n_particles = balanced_model(case, seed), 150, 21, 32
    machine, base = device_model(p), uncoupled_like(p, rng)
    ladder = Ladder(np.array([1.0, 0.0]))
    options = {"base": visible_layer(base).map_arrays(to_device), "ladder": ladder}
    phase = ALGORITHMS[algorithm].create(1, **options)
    laws = [tempered_hidden_law(p, base, beta) for beta in ladder.betas[: phase.n_temperatures]]
    buffers, gradients = UpdateBuffers(), []
    rows, _ = oracles.sample_exact(p, n_repeats * n_rows, rng)
    for v in np.split(rows, n_repeats):
        h = [draw_states(hidden_states(p), law, n_particles, rng) for law in laws]
        particles = to_device(np.concatenate(h))
        positive, negative, _ = phase(machine, to_device(v), particles, buffers, rng)
        gradient = on_host((positive - negative).gradient(machine))
        gradients.append(np.concatenate([array.ravel() for array in gradient.values()]))
    assert_mean(gradients, 0)


@stand_in_only
@pytest.mark.parametrize("algorithm", ["cd", "pcd", "pt"])
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "categorical", "cho"])
def test_an_epoch_makes_no_transfer(kind, algorithm, seed, rng):
    p = model(sized(kind, 3, 2, 0), seed)
    machine, v = device_model(p), to_device(draw_rows(p, 30, rng))
    base = machine.visible.astype(np.float64, copy=True)
    phase = ALGORITHMS[algorithm].create(1, base, Ladder.of(3))
    trainer = Trainer(phase, 0.01, batch_size=4, parts=(Average(),))
    state = TrainingState(particles_of(machine, 6, rng))
    epochs = run_epochs(trainer, machine, state, v, 2, rng)
    next(epochs)
    with counted() as transfers:
        next(epochs)
    assert state.n_updates == 16
    # A tempered path knows the difference between two energies, one number.
    assert transfers == ({"scalar": 8} if algorithm == "pt" else {})


@pytest.mark.parametrize("algorithm", ["cd", "pcd", "pt"])
@pytest.mark.parametrize("case", KINDS, ids=case_id)
def test_parts_of_training_run_on_the_device_to_their_end(case, algorithm, seed, rng):
    """They can only fail by an exception, or by an array that is not on the device."""
    p = model(case, seed, scale=0.3)
    machine, v = recenter(device_model(p), None, None), to_device(draw_rows(p, 30, rng))
    base = machine.visible.astype(np.float64, copy=True)
    phase = ALGORITHMS[algorithm].create(1, base, Ladder.of(3))
    preconditioner = Preconditioner()
    parts = (
        Guard(),
        GrayValues(),
        JumpToData(phase.n_temperatures),
        Damping(preconditioner),
        Average(),
    )
    trainer = Trainer(
        phase,
        0.01,
        batch_size=4,
        preconditioner=preconditioner,
        parts=tuple(part for part in parts if part.needs <= phase.offers),
    )
    particles = particles_of(machine, 6 * phase.n_temperatures, rng)
    machine, state = trained(trainer, machine, v, particles, rng)
    for array in (*machine.parameters.values(), state.particles, state.hidden_offset):
        assert np.isfinite(on_host(array)).all()


@stand_in_only
def test_stand_in_refuses_what_a_device_refuses():
    array = to_device(np.ones((2, 2)))
    for mixture in (
        lambda: array + np.ones((2, 2)),
        lambda: np.add(np.ones((2, 2)), array),
        lambda: np.concatenate([array, np.ones((2, 2))]),
        lambda: array[np.array([0])],
        lambda: array.__setitem__(0, np.ones(2)),
        lambda: np.asarray(array),
        lambda: np.logaddexp.reduce(array),
    ):
        with pytest.raises(TypeError):
            mixture()
