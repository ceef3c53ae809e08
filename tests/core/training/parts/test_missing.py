"""Draws of what is missing, against enumerated conditional laws."""

import tracemalloc

import numpy as np
import oracles
import pytest
from core.models import balanced_model, machine_from

from skrbm.core.machine import Machine
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.parts.missing import ImputedRows, MissingValues
from skrbm.core.training.state import TrainingState
from skrbm.core.units import Bernoulli, Gaussian

N_ROWS = 4000


def holed(kind="categorical", n_visible=5):
    """Machine, and exact samples of it with holes: one unit, two units, or none of a row missing."""
    p = balanced_model((kind, n_visible, 2, 0), seed=0, strength=2.0)
    rng = np.random.default_rng(0)
    complete, _ = oracles.sample_exact(p, N_ROWS, rng)
    machine = machine_from(p)
    is_known = rng.random((N_ROWS, machine.visible.n_units)) < 0.6
    v = np.where(machine.visible.by_column(is_known), complete, np.nan)
    return p, machine, v, is_known, complete


def test_what_is_known_stays_and_nothing_is_left_open():
    """Catches draws that land in other rows or columns."""
    _, machine, v, is_known, _ = holed()
    rng = np.random.default_rng(1)
    rows = ImputedRows(v, machine.visible, 3, rng)
    np.testing.assert_array_equal(rows.observed, is_known)
    assert rows.shape == v.shape
    for some in (slice(None), slice(5, None, 7), rng.permutation(N_ROWS)[:300]):
        for _ in range(2):
            completed = rows[some]
            known = ~np.isnan(v[some])
            np.testing.assert_array_equal(completed[known], v[some][known])
            assert (completed[:, :3].sum(axis=1) == 1).all()  # one category each
            assert (completed[:, 3:].sum(axis=1) == 1).all()
            rows.redraw(machine, some, rng)


def test_rows_that_are_redrawn_keep_their_draws_and_others_are_left_alone():
    _, machine, v, _, _ = holed()
    rng = np.random.default_rng(1)
    rows = ImputedRows(v, machine.visible, 1, rng)
    before, some = rows[:], np.array([7, 3, 1999])
    rows.redraw(machine, np.arange(100, 200), rng)
    after = rows[:]
    np.testing.assert_array_equal(
        np.delete(after, np.s_[100:200], 0), np.delete(before, np.s_[100:200], 0)
    )
    assert (after != before).any()
    np.testing.assert_array_equal(rows[some], after[some])


@pytest.mark.parametrize(("kind", "n_visible"), [("categorical", 5), ("spin", 4)])
def test_redrawn_rows_follow_the_model(kind, n_visible):
    """Rows of the model stay rows of the model: 4.5 standard errors of every state's share.

    Catches one step of other chains, draws given nothing, and chains that start anew.
    """
    p, machine, v, _, _ = holed(kind, n_visible)
    rng = np.random.default_rng(2)
    rows = ImputedRows(v, machine.visible, 5, rng)
    for _ in range(60):
        rows.redraw(machine, slice(None), rng)
    states = oracles.visible_states(p)
    expected = oracles.model_probabilities(p)
    shares = (rows[:][:, None] == states).all(axis=2).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / N_ROWS)
    assert (np.abs(shares - expected) < 4.5 * error + 1e-9).all()


def test_complete_rows_draw_nothing():
    _, machine, v, is_known, _ = holed()
    rng = np.random.default_rng(1)
    rows = ImputedRows(v, machine.visible, 1, rng)
    state = rng.bit_generator.state
    rows.redraw(machine, np.flatnonzero(is_known.all(axis=1)), rng)
    assert rng.bit_generator.state == state


def test_draws_follow_known_values_that_were_drawn():
    """Two units that are equal, the known one a new fair coin in every pass.

    Catches draws that are given the coin's mean, which are equal to the coin in half of the rows, and
    draws that are a step away from the coin before, equal in three quarters.
    """
    machine = Machine(
        Bernoulli(np.full(2, -10.0)), Bernoulli(np.array([-20.0])), np.full((2, 1), 20.0)
    )
    rng = np.random.default_rng(0)
    rows = ImputedRows(np.tile([0.5, np.nan], (2000, 1)), Bernoulli(np.zeros(2)), 1, rng)
    for some in (slice(None), slice(None), rng.permutation(2000)):
        v = machine.visible.draw_states_of_means(rows[some], rng)
        coins = v[:, 0].copy()
        v = rows.redraw(machine, some, rng, v)
        np.testing.assert_array_equal(v[:, 0], coins)
        np.testing.assert_array_equal(rows[some][:, 1], v[:, 1])
        assert (v[:, 1] == coins).mean() > 0.98


def test_first_values_are_those_of_near_rows():
    """Two far modes, known by any two of five columns: draws of the other mode would stay there.

    Slip: first values drawn without regard to the known ones.
    """
    rng = np.random.default_rng(0)
    sign = np.where(rng.random((3000, 1)) < 0.5, 1.0, -1.0)
    v = np.where(rng.random((3000, 5)) < 0.5, np.nan, 10 * sign + rng.normal(size=(3000, 5)))
    units = Gaussian(np.zeros(5), np.full(5, np.log(101.0)), parameterization="natural")
    rows = ImputedRows(v, units, 1, rng)
    is_right = np.sign(rows[:]) == sign
    assert is_right[(~np.isnan(v)).sum(axis=1) >= 2].mean() > 0.999


def test_a_mini_batch_costs_nothing_for_other_rows():
    """Slip: indices of all rows in every update, so that an epoch is quadratic in the rows."""
    v = np.zeros((200_000, 2))
    v[::3, 0] = np.nan
    rng = np.random.default_rng(0)
    rows = ImputedRows(v, Bernoulli(np.zeros(2)), 1, rng)
    machine = Machine(Bernoulli(np.zeros(2)), Bernoulli(np.zeros(1)), np.zeros((2, 1)))
    for some in (slice(9, 19), rng.permutation(200_000)[:10]):
        tracemalloc.start()
        rows.redraw(machine, some, rng, rows[some])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100_000  # bytes; eight for every row are 1.6 million


def test_a_new_model_learns_from_the_initial_values():
    """The rows of a mini-batch are returned as they are, until `n_initial_updates`."""
    _, machine, v, _, _ = holed()
    rng = np.random.default_rng(0)
    rows, some = ImputedRows(v, machine.visible, 1, rng), np.arange(1000)
    part, before = MissingValues(rows, UpdateBuffers(v.dtype), n_initial_updates=3), rows[some]
    for n_updates, is_initial in ((0, True), (2, True), (3, False)):
        state = TrainingState(particles=np.empty((0, 2)), n_updates=n_updates)
        states = part.draw_rows(machine, state, some, rows[some], rng)
        assert np.array_equal(states, before) == is_initial
