"""One update against the oracle's gradient, and what the loop promises about rows and numbers."""

from dataclasses import dataclass, field

import joblib
import numpy as np
import oracles
import pytest
from core.labelled import labelled_machine, random_labelled
from core.models import (
    CASES,
    assert_mean,
    assert_same_arrays,
    balanced_model,
    case_id,
    centered_path,
    draw_rows,
    fields,
    machine_from,
    model,
    negative_phase,
    parameters_from,
    renamed,
    sized,
    started_layer,
    visible_states,
)
from scipy import sparse
from scipy.special import logit
from threadpoolctl import threadpool_info, threadpool_limits

from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.gradient import DataExpectation, UpdateBuffers
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import (
    ALGORITHMS,
    ContrastiveDivergence,
    Exact,
    OneTemperature,
    PersistentContrastiveDivergence,
)
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.parts.average import Average
from skrbm.core.training.parts.guard import DivergenceError, Guard
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.start.initialization import (
    initial_hidden_layer,
    initial_machine,
    initial_particles,
)
from skrbm.core.training.state import OFFSET_RATE, TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units.support import ColumnStatistics

PLAIN = [case for case in CASES if not case[3]]
SMALL = [sized(kind, 4, 3) for kind in oracles.KINDS]


@dataclass
class ScriptedRows(DataExpectation):
    """Data alone, with a parameter that is broken."""

    v: np.ndarray
    mean: np.ndarray
    broken: str | None

    def weighted(self, weights):
        return self

    def averages(self):
        return self.v.mean(axis=0), self.mean.mean(axis=0)

    def __sub__(self, other):
        return self

    def gradient(self, machine, buffers=None):
        gradient = machine.gradient(self.v)
        if self.broken is not None:
            gradient[self.broken] = gradient[self.broken] + np.nan
        return gradient


@dataclass(frozen=True)
class Scripted(OneTemperature):
    """Negative phase that moves nothing, records the means and breaks a parameter when told."""

    means: list = field(default_factory=list)
    breaks: dict = field(default_factory=dict)

    def __call__(self, machine, v, particles, buffers, rng):
        self.means.append(machine.mean_hidden(v))
        rows = ScriptedRows(v, self.means[-1], self.breaks.get(len(self.means)))
        return rows, None, particles + 1


def state_of(machine, rng, n_particles=5):
    return TrainingState(initial_particles(machine, machine.visible, n_particles, rng))


def copies(machine):
    return {name: array.copy() for name, array in machine.parameters.items()}


def moves(machine, before):
    return {name: array - before[name] for name, array in machine.parameters.items()}


@pytest.mark.every_kind
@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_exact_update_moves_parameters_by_learning_rate_times_gradient(case, seed, rng):
    # Slips: descent, learning rate applied twice, sums in place of means.
    p = model(case, seed)
    machine, v = machine_from(p), visible_states(p, rng)[:5]
    trainer = Trainer(Exact(), 1e-3, batch_size=len(v), centering=False)
    assert list(run_epochs(trainer, machine, state_of(machine, rng), v, 1, rng)) == [1]
    ascent = oracles.ascent(p, oracles.log_likelihood_gradient(p, v))
    expected = {n: 1e-3 * g for n, g in ascent.items()}
    assert_same_arrays(renamed(moves(machine, copies(machine_from(p)))), expected, atol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_update_does_not_write_to_its_rows(algorithm, seed, rng):
    # Slip: a sum over all states whose mini-batch is not copied into the room of the update.
    p = model(("bernoulli", 4, 3, 0), seed)
    machine, rows = machine_from(p), visible_states(p, rng)[:5]
    phase = negative_phase(ALGORITHMS[algorithm], machine.astype(np.float64, copy=True), 3)
    state, v = state_of(machine, rng, 5 * phase.n_temperatures), rows.copy()
    state.visible_offset, state.hidden_offset = np.full(4, 0.3), np.full(3, 0.2)
    Trainer(phase, 1e-3, batch_size=5).update(machine, state, v, rng)
    np.testing.assert_array_equal(v, rows)


@pytest.mark.every_kind
@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_centered_update_is_an_explicitly_centered_step(case, seed, rng):
    # Slip: offsets of one layer used for the other, or applied to one phase only.
    p = model(case, seed)
    machine, v = machine_from(p), visible_states(p, rng)[:5]
    state = state_of(machine, rng)
    list(run_epochs(Trainer(Exact(), 1e-3, batch_size=len(v)), machine, state, v, 1, rng))
    offsets = state.visible_offset, state.hidden_offset
    np.testing.assert_allclose(offsets[0], v.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(offsets[1], oracles.mean_hidden(p, v).mean(axis=0), atol=1e-12)
    plain, velocity = centered_path(p, v, offsets, ascent=oracles.ascent)
    expected = {name: fields(plain(1e-3))[name] for name in velocity}
    assert_same_arrays(renamed(machine.parameters), expected, atol=1e-9)


@pytest.mark.every_kind
@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("case", [sized(kind, 3, 2) for kind in oracles.KINDS], ids=case_id)
def test_each_phase_is_averaged_over_its_own_samples(case, n_rows, seed, rng):
    # Slip: both phases divided by the number of rows (a ragged last batch of 1 row against m chains
    # drives the biases away) or of chains.
    p = balanced_model(case, seed)
    v = visible_states(p, rng)[-n_rows:]
    n_repeats, n_particles = 150, 47
    _, h = oracles.sample_exact(p, n_repeats * n_particles, rng)
    rate = 1e-6
    trainer = Trainer(PersistentContrastiveDivergence(), rate, 100, centering=False)
    draws = []
    for particles in np.split(h, n_repeats):
        machine = machine_from(p)
        trainer.update(machine, TrainingState(particles), v, rng)
        change = renamed(moves(machine, machine_from(p).parameters))
        draws.append(np.concatenate([change[name].ravel() / rate for name in sorted(change)]))
    gradient = oracles.ascent(p, oracles.log_likelihood_gradient(p, v))
    assert_mean(draws, np.concatenate([gradient[name].ravel() for name in sorted(gradient)]))


@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_repeating_the_rows_of_a_batch_changes_nothing(case, centering, seed, rng):
    p = model(case, seed)
    v = visible_states(p, rng)[:5]
    trainer = Trainer(Exact(), 0.1, batch_size=100, centering=centering, shuffle=False)
    results = []
    for rows in (v, np.tile(v, (3, 1))):
        machine = machine_from(p)
        list(run_epochs(trainer, machine, state_of(machine, rng), rows, 3, rng))
        results.append(machine.parameters)
    assert_same_arrays(*results, atol=1e-12)


@pytest.mark.every_kind
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_every_algorithm_learns_a_model_of_every_kind(kind, algorithm, seed, rng):
    """Three quarters of the likelihood that independent units lack are made up for."""
    # Slips: a negative phase of the wrong sign, of another layer's units or of the data's own rows; a
    # metric, or bounds, of one part of a layer used for another.
    teacher = balanced_model(sized(kind, 4, 1), seed, strength=1.5)
    v, _ = oracles.sample_exact(teacher, 500, rng)
    mean, variance = v.mean(axis=0), v.var(axis=0)
    visible = started_layer(teacher, mean, variance, len(v))
    hidden = initial_hidden_layer(type(machine_from(teacher).hidden), 3)
    machine = initial_machine(visible, hidden, mean, variance, rng)
    phase = negative_phase(ALGORITHMS[algorithm], machine.astype(np.float64, copy=True), 3)
    state = state_of(machine, rng, 100 * phase.n_temperatures)
    like = model(sized(kind, 4, 3), seed)

    def log_likelihood():
        return oracles.log_likelihood(parameters_from(like, machine), v).mean()

    before, best = log_likelihood(), oracles.log_likelihood(teacher, v).mean()
    adam, linear = OPTIMIZERS["adam"](0.9), SCHEDULES["linear"]
    trainer = Trainer(
        phase,
        0.1,
        50,
        optimizer=adam,
        schedule=linear,
        preconditioner=Preconditioner(ColumnStatistics(variance)),
    )
    list(run_epochs(trainer, machine, state, v, 20, rng))
    assert log_likelihood() - before > 0.75 * (best - before)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("n_samples", "batch_size"), [(1, 1), (1, 10), (10, 10), (101, 10), (19, 10), (7, 1), (23, 8)]
)
def test_minibatches_cover_every_row_once_and_are_even(n_samples, batch_size, shuffle, rng):
    # Slips: a ragged last batch, rows dropped, one order for all passes.
    p = oracles.Parameters("cho", [[0.1]], [0.0], [0.0], [0.0], [0.0], [0.0])
    machine, phase = machine_from(p), Scripted()  # the mean's log-odds tell the row's number
    v = np.arange(n_samples, dtype=float)[:, None]
    trainer = Trainer(phase, 0.0, batch_size, shuffle=shuffle)
    n_passes = 3
    list(run_epochs(trainer, machine, state_of(machine, rng), v, n_passes, rng))
    n_batches = -(-n_samples // batch_size)
    assert len(phase.means) == n_passes * n_batches
    orders = []
    for begin in range(0, len(phase.means), n_batches):
        batches = phase.means[begin : begin + n_batches]
        sizes = [len(batch) for batch in batches]
        assert max(sizes) <= min(batch_size, min(sizes) + 1)
        orders.append(np.rint(10 * logit(np.concatenate(batches).ravel())))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(n_samples))
    if shuffle and n_samples > 15:  # two equal permutations: less than 1 in 15!
        assert (orders[0] != orders[1]).any()
        assert (orders[0] != np.arange(n_samples)).any()
    if not shuffle:
        np.testing.assert_array_equal(orders, [np.arange(n_samples)] * n_passes)


@pytest.mark.every_kind
@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_precisions_stay_within_rounding(case, algorithm, centering, seed, rng):
    # Slips: other random numbers in single precision, after one draw of which all chains differ;
    # parameters rounded where only states are.
    p = model(case, seed, scale=0.3)
    v = draw_rows(p, 16, rng).astype(np.float32)
    n_iter, batch_size = 3, 4
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    results = {}
    for dtype, states in ((double, None), (single, None), (double, single)):
        machine, stream = machine_from(p, dtype), np.random.default_rng(seed)
        phase = negative_phase(ALGORITHMS[algorithm], machine)
        trainer = Trainer(
            phase, 0.01, batch_size, centering=centering, buffers=UpdateBuffers(states)
        )
        state = state_of(machine, stream, 6)
        state.particles = state.particles.astype(states or dtype)
        list(run_epochs(trainer, machine, state, v, n_iter, stream))
        assert {array.dtype for array in machine.parameters.values()} == {dtype}
        assert state.particles.dtype == (states or dtype)
        results[dtype, states] = machine.parameters, stream.random()
    (expected, number), *others = results.values()
    n_updates = n_iter * len(v) // batch_size
    tolerance = 16 * n_updates * np.finfo(np.float32).eps
    for parameters, other_number in others:
        assert other_number == number
        assert_same_arrays(parameters, expected, atol=tolerance)
    weights = results[double, single][0]["weights"]
    assert (weights != weights.astype(single)).any()


@pytest.mark.parametrize("centering", [False, True])
def test_steps_that_single_precision_cannot_see_add_up(centering, seed, rng):
    # Slip: parameters rounded where only states are, before the step or after it.
    p = model(("bernoulli", 4, 3, 0), seed)
    v = visible_states(p, rng, 16)
    moves = []
    for states in (None, np.float32):
        machine, stream = machine_from(p), np.random.default_rng(seed)
        phase = negative_phase(PersistentContrastiveDivergence, machine)
        trainer = Trainer(phase, 1e-10, 4, centering=centering, buffers=UpdateBuffers(states))
        state = state_of(machine, stream, 6)
        before = machine.weights.copy()
        list(run_epochs(trainer, machine, state, v, 3, stream))
        moves.append(machine.weights - before)
    double, single = moves
    np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3 * np.abs(double).max())


@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize(
    "container", [np.uint8, bool, np.float32, sparse.csr_array, sparse.csr_matrix]
)
@pytest.mark.parametrize("case", [("bernoulli", 4, 3, 0), ("composite", 6, 3, 0)], ids=case_id)
def test_type_of_the_data_does_not_matter(case, container, centering, seed, rng):
    # Slips: integer arithmetic before the cast, a sparse mean of shape (1, n_visible), columns of a
    # part cut out of sparse rows in another format.
    p = model(case, seed)
    v = np.abs(draw_rows(p, 21, rng))  # a spin that is always up does not matter here
    data = (
        container(v) if container in (sparse.csr_array, sparse.csr_matrix) else v.astype(container)
    )
    results = []
    for rows in (v, data):
        machine, stream = machine_from(p), np.random.default_rng(seed)
        trainer = Trainer(PersistentContrastiveDivergence(), 0.1, 5, centering=centering)
        list(run_epochs(trainer, machine, state_of(machine, stream), rows, 2, stream))
        results.append(machine.parameters)
    assert_same_arrays(*results, atol=1e-12)


def test_offsets_follow_the_data(seed, rng):
    # Slips: offsets frozen at their start, or those of a single batch.
    p = model(("bernoulli", 4, 3, 0), seed)
    machine = machine_from(p)
    state = state_of(machine, rng)
    early, late = (rng.random((40, 4)) < q for q in (0.1, 0.9))
    trainer = Trainer(PersistentContrastiveDivergence(), 0.0, batch_size=40)
    list(run_epochs(trainer, machine, state, early, 1, rng))
    means = [early.mean(axis=0), oracles.mean_hidden(p, early).mean(axis=0)]
    np.testing.assert_allclose(state.visible_offset, means[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.hidden_offset, means[1], rtol=0, atol=1e-12)
    n_updates = 30
    list(run_epochs(trainer, machine, state, late, n_updates, rng))
    kept = (1 - OFFSET_RATE) ** n_updates
    targets = [late.mean(axis=0), oracles.mean_hidden(p, late).mean(axis=0)]
    offsets = [state.visible_offset, state.hidden_offset]
    for offset, mean, target in zip(offsets, means, targets, strict=True):
        np.testing.assert_allclose(offset, target + kept * (mean - target), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["weights", "visible_bias", "hidden_bias"])
@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("rule", OPTIMIZERS)
def test_divergence_restores_the_last_finite_parameters(rule, name, centering, seed, rng):
    # Slips: parameters of the broken pass, or of the start, left behind; a momentum or an average
    # that the broken pass has spoilt.
    p = model(("bernoulli", 4, 3, 0), seed)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (10, 4))
    state = state_of(machine, rng)
    trainer = Trainer(
        Scripted(breaks={6: name}),
        0.125,
        batch_size=5,
        optimizer=OPTIMIZERS[rule](0.5),
        parts=(Guard(), Average()),
        centering=centering,
    )
    run = run_epochs(trainer, machine, state, v, 9, rng)
    assert [next(run), next(run)] == [1, 2]
    before, attributes = copies(machine), joblib.hash(vars(state))
    with pytest.raises(DivergenceError, match=rf"epoch 3: .*{name}.* learning_rate=0\.125"):
        next(run)
    assert_same_arrays(machine.parameters, before, atol=0)
    assert joblib.hash(vars(state)) == attributes


@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_learning_rate_far_too_large_is_named(kind, seed, rng):
    p = model((kind, 4, 3, 0), seed)
    machine, v = machine_from(p), rng.normal(0, 100, (20, 4))
    trainer = Trainer(PersistentContrastiveDivergence(), 1e4, batch_size=5, parts=(Guard(),))
    with pytest.raises(DivergenceError, match=r"Reduce learning_rate=10000\.0"):
        list(run_epochs(trainer, machine, state_of(machine, rng), v, 50, rng))
    assert all(np.isfinite(array).all() for array in machine.parameters.values())


def test_data_are_left_as_they_were(seed, rng):
    p = model(("cho", 4, 3, 0), seed)
    machine, v = machine_from(p), rng.normal(size=(20, 4))
    before = v.copy()
    trainer = Trainer(PersistentContrastiveDivergence(), 0.01, 5, shuffle=False)
    list(run_epochs(trainer, machine, state_of(machine, rng), v, 2, rng))
    np.testing.assert_array_equal(v, before)


@pytest.mark.parametrize(
    ("shape", "batch_size", "is_exact", "n_threads"),
    [
        ((256, 64), 4, False, 1),
        ((1024, 1024), 16, False, 2),
        ((4, 3), 4, False, 2),  # they are not shared in any case
        ((256, 3), 78, True, 1),  # 8 states and 78 rows by 768 weights: 2^16, not with 5 chains
    ],
)
def test_small_products_are_not_shared_among_threads(
    shape, batch_size, is_exact, n_threads, seed, rng
):
    # Slips: threads that wait for each other in every small product, on a busy machine for long; a
    # pass of one small update that takes a fifth longer by asking for one thread.
    machine, seen = machine_from(model(("bernoulli", *shape, 0), seed)), []
    v = rng.integers(2, size=(4, shape[0])).astype(float)

    @dataclass(frozen=True)
    class Phase(Exact if is_exact else PersistentContrastiveDivergence):
        def __call__(self, *arguments):
            pools = threadpool_info()
            seen.extend(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
            return super().__call__(*arguments)

    with threadpool_limits(2, user_api="blas"):
        trainer = Trainer(Phase(), 0.1, batch_size)
        list(run_epochs(trainer, machine, state_of(machine, rng), v, 1, rng))
    assert set(seen) == {n_threads}


@pytest.mark.parametrize(("centering", "unit"), [(False, 0.25), (True, 5 / 8)])
@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_step_is_as_long_as_the_weight_of_the_rows(case, centering, unit, seed, rng):
    # Slips: sums in place of means, a step that forgets the weight, offsets of unweighted rows.
    p = model(case, seed)
    v, n_copies = draw_rows(p, 5, rng), np.array([1, 2, 3, 1, 1])
    trainer = Trainer(Exact(), 1e-3, batch_size=len(v), centering=centering)
    machines = []
    for rows, weight in ((np.repeat(v, n_copies, axis=0), None), (v, unit * n_copies)):
        machine = machine_from(p)
        state = state_of(machine, np.random.default_rng(0))
        state.visible_offset, state.hidden_offset = v[0], np.full(case[2], 0.3)
        trainer.update(machine, state, rows, rng, sample_weight=weight)
        machines.append((moves(machine, machine_from(p).parameters), state))
    (copied, one), (weighted, other) = machines
    scaled = {name: array * unit * 8 / 5 for name, array in copied.items()}
    assert_same_arrays(weighted, scaled, atol=1e-12)  # centered ones of weight one, not linear
    np.testing.assert_allclose(one.visible_offset, other.visible_offset, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.hidden_offset, other.hidden_offset, rtol=0, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rows", ["without classes", "labelled", "unlabelled"])
def test_weighted_rows_with_the_law_of_the_model_do_not_move_it_by_contrastive_divergence(
    rows, container, rng
):
    # Slips: chains that start at the rows, but count alike while the rows do not; chains that start
    # without a label where it is not known; drawn labels in the rows of the positive phase.
    phase = ContrastiveDivergence()
    machine = machine_from(model(("bernoulli", 4, 3, 0), 0, scale=2.0))
    if rows != "without classes":
        phase = LabelObjective(phase, 0.0, 0.5)
        machine = labelled_machine(random_labelled("bernoulli", rng, offsets=False))
    v = machine.visible.states(0, machine.visible.n_states)
    weight = np.exp(-machine.free_energy(v))
    if rows == "unlabelled":
        v[:, -3:] = 0  # each of the others three times
    trainer = Trainer(phase, 1.0, batch_size=len(v), centering=False)
    before, state, draws = copies(machine), state_of(machine, rng), []
    for _ in range(400):
        batch = container(v.copy())
        trainer.update(machine, state, batch, rng, sample_weight=weight / weight.mean())
        draws.append(np.concatenate([a.ravel() for a in moves(machine, before).values()]))
        machine.assign(before)
    assert_mean(draws, np.zeros(len(draws[0])))
