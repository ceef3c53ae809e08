"""Expectations over joint states against sums of logarithms, one for each unit."""

import numpy as np
import pytest

from skrbm.core.units import Bernoulli, shifts
from skrbm.core.units.base import Units


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
    changes = layer.log_partition_shifts(field)(d)
    default = Units.log_partition_shifts(layer, field)(d)
    np.testing.assert_allclose(changes, default, rtol=1e-12, atol=1e-12)
