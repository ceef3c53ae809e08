"""Expectations over joint states against sums of logarithms, one for each unit."""

import numpy as np
import pytest

from skrbm.core.units import Bernoulli, EveryPair, Spin, shifts


def expected(log_odds, d):
    """One logarithm for each unit, in double precision."""
    x, d = log_odds.astype(float)[None], d.astype(float)[:, None]
    return (np.logaddexp(0, x + d) - np.logaddexp(0, x)).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_rows", "n_units", "n_shifts"), [(1, 1, 1), (70, 301, 65), (130, 40, 7)]
)
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1, 9])
def test_expectations_are_products_over_units(n_rows, n_units, n_shifts, scale, dtype):
    """Slips: RANGE = 1000, products beyond single precision; the last rows, shifts or groups left
    out; the joint states in another order than their exponentials.
    """
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 5, (n_rows, n_units)).astype(dtype)
    d = rng.uniform(-scale, scale, (n_shifts, n_units)).astype(dtype)
    bits = shifts.JointStates(log_odds)
    assert bits.is_near(d).all()
    exact = expected(log_odds, d)
    tolerance = np.finfo(dtype).eps * (n_units + 100 + 2 * np.abs(d).sum(axis=1).max())
    np.testing.assert_allclose(bits.log_mean_exponentials(d), exact, rtol=0, atol=tolerance)


def test_shifts_out_of_range_are_left_to_the_logarithms():
    """Slip: all shifts taken for near; 0 * inf where a probability is too small to be a number."""
    rng = np.random.default_rng(0)
    layer, field = Bernoulli(np.zeros(9)), np.full((5, 9), -700.0)
    field[1] = rng.normal(size=9)
    d = np.concatenate([rng.normal(size=(3, 9)), np.full((2, 9), 600.0), np.full((1, 9), -90.0)])
    changes = layer.shifted(field).log_partition_changes(d)
    default = EveryPair(layer, field).log_partition_changes(d)
    np.testing.assert_allclose(changes, default, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "n_units", "n_shifts"), [(1, 1, 1), (70, 301, 65), (90, 40, 7)])
@pytest.mark.parametrize("units", [Bernoulli, Spin])
def test_sums_of_joint_states_are_those_of_all_pairs(units, n_rows, n_units, n_shifts, dtype):
    """Slips: the last units, rows or groups left out; bits of a group exchanged; weights of rows
    and shifts exchanged; the lowest state of a spin, or the offset of its moments, forgotten.
    """
    rng = np.random.default_rng(0)
    bias, offset, field = (rng.normal(0, 2, (n, n_units)).astype(dtype) for n in (1, 1, n_rows))
    layer, shifts = units(bias[0]), rng.normal(0, 3, (n_shifts, n_units)).astype(dtype)
    moved = layer.recentered(offset[0], offset[0])
    weights = rng.normal(size=(n_shifts, n_rows)).astype(dtype)
    for far in (0, 1000):
        shifts[-1, -1] += far
        sums = layer.shifted(field).sums(shifts, weights, moved)
        expected = EveryPair(layer, field).sums(shifts, weights, moved)
        tolerance = 20 * np.finfo(dtype).eps * np.abs(weights).sum()
        for actual, exact in zip(sums[:2], expected[:2], strict=True):
            assert actual.dtype == dtype
            np.testing.assert_allclose(actual, exact, rtol=0, atol=tolerance)
        np.testing.assert_allclose(sums[2]["bias"], expected[2]["bias"], rtol=0, atol=5 * tolerance)
