"""Jumps to given rows: started from exact samples, the law must not move; from elsewhere, it must."""

import tracemalloc

import numpy as np
import oracles
import pytest
from core.models import (
    assert_law,
    assert_mean,
    balanced_model,
    draw_rows,
    draw_states,
    hidden_given_visible,
    hidden_law,
    hidden_states,
    machine_from,
    sized,
)
from scipy import sparse

from skrbm.core.chains import jumps
from skrbm.core.chains.jumps import (
    EXTRAPOLATIONS,
    draws_from_modes,
    extrapolated_rows,
    jump,
    mixed_rows,
    propose,
    rows_near_modes,
)
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, Gaussian, StandardGaussian

N_CHAINS = 20_000
JUMPED = [sized(kind, 2, 3, offsets) for kind in oracles.KINDS for offsets in (0, 1)]


@pytest.fixture(params=JUMPED, ids=lambda case: f"{case[0]}-{'offsets' if case[3] else 'plain'}")
def p(request, seed):
    return balanced_model(request.param, seed)


def acceptance(p, rows):
    """Share of jumps from the law of p that the Metropolis rule accepts, state by state."""
    law, proposal = hidden_law(p), hidden_given_visible(p, rows).mean(axis=0)
    ratio = law / proposal
    return law @ np.minimum(1, ratio / ratio[:, None]) @ proposal


def test_jumps_leave_the_law_alone_whatever_the_rows(p, rng):
    # Slips: no log-partition of either layer, a hidden bias too much, the sum over rows for their
    # mean taken in one place, the ratio upside down; no jump at all.
    rows = draw_rows(p, 3, rng)
    h = draw_states(hidden_states(p), hidden_law(p), N_CHAINS, rng)
    moved, has_jumped, _ = jump(machine_from(p), h, rows, rng)
    assert_law(moved, hidden_states(p), hidden_law(p))
    np.testing.assert_array_equal(moved[~has_jumped], h[~has_jumped])
    assert_mean(has_jumped[:, None].astype(float), acceptance(p, rows))


def test_weights_of_proposals_have_the_partition_function_as_their_mean(p, rng):
    # Slips: the number of rows forgotten; the hidden bias twice; shares of the row drawn from alone.
    machine, rows = machine_from(p), draw_rows(p, 3, rng)
    h, log_weights = propose(machine, rows, N_CHAINS, rng)
    assert_law(h, hidden_states(p), hidden_given_visible(p, rows).mean(axis=0))
    assert_mean(np.exp(log_weights - oracles.log_partition(p))[:, None], 1)


def test_jumps_reach_a_mode_that_gibbs_sampling_does_not(rng):
    """Of two modes of unequal weight, chains that all start in one are shared out as they weigh."""
    p = oracles.random_parameters("bernoulli", 6, 3, rng, offsets=False)
    p = p.replace(
        weights=np.full((6, 3), 8.0), visible_bias=np.full(6, -12.0), hidden_bias=np.full(3, -23.9)
    )
    machine, rows = machine_from(p), np.repeat([[0.0], [1.0]], 6, axis=1)
    law = hidden_law(p)
    assert law[[0, -1]].min() > 0.1
    assert law[[0, -1]].sum() > 0.99
    h = np.zeros((N_CHAINS, 3))
    for _ in range(20):
        h, *_ = jump(machine, h, rows, rng)
    assert_law(h, hidden_states(p), law)


@pytest.mark.parametrize("sharpness", [4.0, 8.0])
def test_proposals_are_distant_if_their_row_hardly_explains_the_state(sharpness, rng):
    # Slips: the share of the proposed state; of the most likely row; no mean over the rows.
    p = oracles.random_parameters("bernoulli", 6, 8, rng, offsets=False)
    p = p.replace(weights=sharpness * p.weights)
    rows = (rng.random((40, 6)) < 0.5).astype(float)
    explained = hidden_given_visible(p, rows)
    mean = explained.mean(axis=0)
    h = draw_states(hidden_states(p), mean, N_CHAINS, rng)
    *_, is_distant = jump(machine_from(p), h, rows, rng)
    expected = mean @ (explained < 0.01 * mean).mean(axis=0)
    assert 0.05 < expected < 0.95
    assert_mean(is_distant[:, None].astype(float), expected)


@pytest.mark.parametrize("kind", ["bernoulli", "spin", "composite"])
def test_precision_and_sparsity_draw_the_same_jumps(kind, seed, rng):
    # Slip: sparse rows in a product that is not theirs.
    p = balanced_model(sized(kind, 6, 3), seed)
    rows = np.abs(draw_rows(p, 5, rng))
    h = draw_states(hidden_states(p), hidden_law(p), 200, rng)
    results = []
    for dtype, container in (
        (np.float64, np.asarray),
        (np.float32, np.asarray),
        (np.float64, sparse.csr_array),
    ):
        stream = np.random.default_rng(seed)
        moved, *_ = jump(
            machine_from(p, dtype), h.astype(dtype), container(rows.astype(dtype)), stream
        )
        assert moved.dtype == dtype
        results.append((moved, stream.random()))
    (expected, number), *others = results
    for moved, other_number in others:
        np.testing.assert_array_equal(moved, expected)
        assert other_number == number


def test_extrapolated_rows_lie_on_lines_through_a_row_and_the_farthest_one(rng):
    # Slips: the nearest row; a line away from the row; one factor for all; means of the other layer.
    machine = Machine(
        Gaussian(np.zeros(2), np.zeros(2), parameterization="cho"),
        StandardGaussian(np.zeros(2)),
        1e4 * np.eye(2),
    )
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0]])
    far = np.array([2, 2, 0])
    expected = [rows[far] + t * (rows - rows[far]) for t in EXTRAPOLATIONS]
    v = extrapolated_rows(machine, rows, 600, rng) / 1e8
    for t, (of_factor, places) in enumerate(zip(expected, (v[::2], v[1::2]), strict=True)):
        distance = np.abs(places[:, None] - of_factor).max(axis=2)
        assert distance.min(axis=1).max() < 0.01, t
        assert (np.bincount(distance.argmin(axis=1), minlength=3) > 60).all()


def test_rows_are_led_to_the_modes_near_them():
    # Slips: a single iteration, hidden means in place of visible ones.
    patterns = np.kron(np.eye(2), np.ones(10))
    machine = Machine(Bernoulli(np.full(20, -2.0)), Bernoulli(np.full(2, -18.0)), 4 * patterns.T)
    rows = np.repeat(patterns, 2, axis=0)
    rows[1:3] *= np.arange(20) % 10 < 5  # half of a pattern leads to it, a tenth does not
    rows[3] *= np.arange(20) % 10 < 1
    expected = machine.mean_visible(np.array([[1.0, 0], [1, 0], [0, 1], [0, 0]]))
    np.testing.assert_allclose(rows_near_modes(machine, rows), expected, atol=1e-3)


def test_mixed_rows_take_each_unit_from_a_row_or_from_the_farthest_one(rng):
    # Slips: no mixture; the nearest row, or any other, in place of the farthest; one coin for all
    # units of a row.
    copies = np.kron(np.eye(3), np.ones((1, 8)))  # eight visible units show each hidden unit
    machine = Machine(Bernoulli(np.full(24, -20.0)), Bernoulli(np.full(3, -160.0)), 40 * copies.T)
    rows = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 1]]) @ copies
    v = mixed_rows(machine, rows, N_CHAINS, rng)
    assert np.isin(v @ copies.T / 8, (0, 1)).all()
    # 000 and 100 are mixed with 111, and 111 with 000.
    law = np.full(8, 2 / 3 / 8)
    law[4:] += 1 / 3 / 4
    assert_law(v[:, ::8], oracles.states((0.0, 1.0), 3), law)


def test_searches_take_little_memory_beside_the_hidden_states(rng):
    """Slip: the differences of all pairs and rows in one array."""
    h = (rng.random((150, 2000)) < 0.5).astype(float)
    tracemalloc.start()
    one, other = jumps._distant_pairs(h, 100, np.random.default_rng(0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    distances = np.abs(h[one[:3], None] - h).sum(axis=2)
    np.testing.assert_array_equal(other[:3], distances.argmax(axis=1))
    assert peak < 4 * h.nbytes
    assert [len(rows) for rows in jumps._distant_pairs(h, 0, rng)] == [0, 0]


def test_draws_from_modes_have_the_law_of_the_machine_in_random_order(rng):
    """Slips: copies of a proposal beside each other; proposals that are not weighted."""
    bias = np.full(6, -20.0)
    machine = Machine(Bernoulli(bias), Bernoulli(np.array([-120.5])), np.full((6, 1), 40.0))
    anchors = np.repeat([[0.0], [1.0]], 6, axis=1)
    n_draws = 2 * jumps.MAX_JOINT_PROPOSALS
    draw = draws_from_modes(machine, anchors, n_draws, rng)
    v = np.concatenate([draw(n_draws // 4) for _ in range(4)])
    is_high = v[:, 0] > 0.5
    share = np.exp(-0.5) / (1 + np.exp(-0.5))  # of the hidden unit: both visible states are certain
    assert is_high.mean() == pytest.approx(share, abs=0.02)
    agree = (is_high[1:] == is_high[:-1]).mean()
    assert agree == pytest.approx(share**2 + (1 - share) ** 2, abs=0.02)
