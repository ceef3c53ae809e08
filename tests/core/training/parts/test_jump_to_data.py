"""Jumps of chains to the data: which chains, to which rows, how often."""

import numpy as np
import pytest
from core.models import balanced_model, draw_rows, machine_from, sized
from scipy import sparse

from skrbm.core.machine import Machine
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import PersistentContrastiveDivergence
from skrbm.core.training.part import Step, without_data
from skrbm.core.training.parts.jump_to_data import (
    FREQUENT_SHARE,
    MAX_TRY_PAUSE,
    MIN_TRY_PAUSE,
    SEARCH_SHARE,
    JumpToData,
)
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units import Bernoulli

N_PARTICLES, N_REPLICAS = 40, 120


@pytest.fixture
def machine(seed):
    return machine_from(balanced_model(sized("bernoulli", 4, 3), seed))


def update(part, machine, state, v, rng):
    """One more update as far as the part has a say in it."""
    part.move_chains(Step(machine, v, None, 0.0, state, rng))
    state.n_updates += 1


def tried(machine, v, rng, n_updates, does_jump, is_distant=True):
    """Numbers of the updates in which chains tried, and the particles behind them all."""
    numbers, state = [], TrainingState(np.zeros((N_PARTICLES + N_REPLICAS, 3)))

    def scripted(machine, h, v, rng):
        numbers.append(state.n_updates)
        return np.full_like(h, does_jump), np.full(len(h), does_jump), np.full(len(h), is_distant)

    part = JumpToData((N_PARTICLES + N_REPLICAS) // N_PARTICLES, kernel=scripted)
    for _ in range(n_updates):
        update(part, machine, state, v, rng)
    return np.array(numbers), state.particles


def test_jumps_that_are_accepted_are_tried_at_the_shortest_pace(machine, rng):
    # Slips: replicas at other temperatures that jump too; chains that are never chosen.
    v = np.zeros((20, 4))
    numbers, particles = tried(machine, v, rng, 60, True)
    np.testing.assert_array_equal(numbers, np.arange(0, 60, MIN_TRY_PAUSE))
    np.testing.assert_array_equal(particles[:N_PARTICLES], 1)
    np.testing.assert_array_equal(particles[N_PARTICLES:], 0)


@pytest.mark.parametrize(("does_jump", "is_distant"), [(False, True), (True, False)])
def test_jumps_that_are_never_accepted_or_short_become_rare_and_do_not_end(
    does_jump, is_distant, machine, rng
):
    # Slips: a pace that does not follow the acceptance; none at all after the first failures.
    v = np.zeros((20, 4))
    numbers, _ = tried(machine, v, rng, 1000, does_jump, is_distant)
    assert set(np.diff(numbers)[-5:]) == {MAX_TRY_PAUSE}
    assert len(numbers) < 100


@pytest.mark.parametrize("wait", [3, 5, MAX_TRY_PAUSE])
def test_the_pace_follows_the_share_and_mixtures_keep_theirs(wait, machine, rng):
    # Slips: the shortest or the longest pause alone; a constant share of the attempts with mixtures.
    share, n_mixed, tries = FREQUENT_SHARE * MIN_TRY_PAUSE / wait, 0, []

    def scripted(machine, h, v, rng):
        nonlocal n_mixed
        n_mixed += len(v) > 10
        return h, np.full(len(h), True), rng.random(len(h)) < share

    part, state, v = (
        JumpToData(kernel=scripted),
        TrainingState(np.zeros((16, 3))),
        np.zeros((10, 4)),
    )
    n_updates = 12_000
    for _ in range(n_updates):
        update(part, machine, state, v, rng)
        tries.append(part.memory(state)["next_try"])
    assert abs(np.diff(np.unique(tries))[50:].mean() / wait - 1) < 0.25
    expected = n_updates * SEARCH_SHARE / MIN_TRY_PAUSE
    assert abs(n_mixed - expected) < 4 * np.sqrt(expected)


def test_chains_leave_for_known_modes_that_a_mini_batch_has_no_row_of(rng):
    # Slips: rows alone; a pause where jumps are refused.
    halves = np.repeat(np.eye(2), 20, axis=0)
    machine = Machine(Bernoulli(np.full(40, -4.0)), Bernoulli(np.full(2, -79.0)), 8 * halves)
    modes, part = halves.T, JumpToData()
    memory = {"modes": modes, "acceptance": 0.0}
    state = TrainingState(np.tile([1.0, 0.0], (40, 1)), parts={"jumps": memory})
    for n_updates in range(200):
        update(part, machine, state, modes[:1], rng)
        assert memory["next_try"] == n_updates + MIN_TRY_PAUSE - n_updates % MIN_TRY_PAUSE
    # Half of them or more, within four standard errors.
    assert state.particles[:, 1].mean() > 0.5 - 4 * 0.5 / np.sqrt(40)


def test_refused_jumps_to_mixed_rows_do_not_slow_those_to_data(machine, rng):
    # Slip: an acceptance of both.
    def scripted(machine, h, v, rng):
        return h, np.full(len(h), len(v) == 10), np.full(len(h), True)

    part = JumpToData(search_share=0.9, kernel=scripted)
    state, v = TrainingState(np.zeros((N_PARTICLES, 3))), np.zeros((10, 4))
    for n_updates in range(500):
        update(part, machine, state, v, rng)
        assert part.memory(state)["next_try"] <= n_updates + MIN_TRY_PAUSE


def test_chains_find_a_mode_without_rows(rng):
    # Slip: jumps to rows of data alone.
    halves = np.repeat(np.eye(2), 20, axis=0)  # each hidden unit turns on twenty of forty bits
    v = halves.T[rng.integers(2, size=50)]
    machine = Machine(Bernoulli(np.full(40, -4.0)), Bernoulli(np.full(2, -75.0)), 8 * halves)
    particles = machine.sample_hidden(v[:40], rng)
    assert set(particles.sum(axis=1)) == {1}
    both_on = machine.visible.log_partition(machine.visible_field(np.eye(2)[:1] + np.eye(2)[1:]))
    one_on = machine.visible.log_partition(machine.visible_field(np.eye(2)[:1]))
    assert 3 < both_on[0] - one_on[0] - 75 < 10  # what most of the model's weight lies in
    state, part = TrainingState(particles), JumpToData()
    for _ in range(12_000):
        update(part, machine, state, v, rng)
    assert (state.particles.sum(axis=1) == 2).mean() > 0.8


@pytest.mark.parametrize("n_rows", [1, 7, 500])
@pytest.mark.parametrize("n_particles", [1, 5, 16])
def test_few_chains_and_few_rows_will_do(n_rows, n_particles, machine, rng, seed):
    v = draw_rows(balanced_model(sized("bernoulli", 4, 3), seed), n_rows, rng)
    state, part = TrainingState(np.full((n_particles, 3), 0.5)), JumpToData()
    for _ in range(2 * MAX_TRY_PAUSE * n_particles):
        update(part, machine, state, v, rng)
    assert np.isin(state.particles, (0, 1)).all()


def test_a_mode_of_one_row_is_offered_when_its_free_energy_is_lowest(rng):
    # Slips: rows of the mini-batch alone; anchors of highest free energy.
    bulk = (rng.random((500, 40)) < 0.1).astype(float)
    v = np.concatenate([bulk, np.ones((1, 40))])
    # A hidden unit leads to the single row, whose mode has most of the model's weight.
    machine = Machine(
        Bernoulli(np.full(40, -2.0)), Bernoulli(np.full(1, -75.0)), np.full((40, 1), 4.0)
    )
    state, part = TrainingState(np.zeros((40, 1))), JumpToData(search_share=0.0)
    part.begin(machine, state, v)
    for _ in range(1600):
        update(part, machine, state, bulk[:20], rng)
    assert state.particles.mean() > 0.9


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_anchors_are_rows_of_the_run_that_the_state_does_not_keep(container, machine, rng):
    # Slips: rows of the runs before; choices of anchors that are no more; rows that stay in the state.
    state, part, v = TrainingState(np.zeros((40, 3))), JumpToData(), 1.0 * np.eye(4)
    for rows in (v, v[:1], v[2:]):
        part.begin(machine, state, container(rows))
        found = {tuple(row) for row in part.memory(state)["anchors"]}
        assert found == {tuple(row) for row in rows}
        update(part, machine, state, container(rows), rng)
        assert part.memory(state)["offered"].max() < len(rows)
        state.parts = without_data([part], state)
        assert "anchors" not in part.memory(state)
        state.n_updates = part.memory(state)["next_try"]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_held_out_rows_are_no_anchors(container, machine, rng):
    # Slips: anchors among all rows, and a run that does not name its training rows.
    v, anchors = 1.0 * np.eye(4), []

    class Spied(JumpToData):
        def move_chains(self, step):
            anchors[:] = [self.memory(step.state)["anchors"]]

    state = TrainingState(np.zeros((40, 3)))
    trainer = Trainer(PersistentContrastiveDivergence(), 0.1, 2, parts=(Spied(),))
    list(run_epochs(trainer, machine, state, container(v), 1, rng, rows=np.array([3, 1])))
    assert {tuple(row) for row in anchors[0]} == {tuple(v[1]), tuple(v[3])}
