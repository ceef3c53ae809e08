"""Rows that are far from all others are found first."""

import numpy as np
import pytest

from skrbm.core.training.start.far_rows import far_rows


def test_far_rows_have_one_of_each_group_first(rng):
    # Slips: rows near each other; distances in which a wide column's noise outweighs the others; rows
    # that come twice.
    centres = np.array([[0, 0, 0], [900, 0, 0], [0, 3, 0], [0, 0, 3], [900, 3, 3]])
    noise = rng.normal(size=(57, 3)) * [20, 1e-3, 1e-3]
    v = np.repeat(centres, [50, 3, 2, 1, 1], axis=0) + noise
    span = np.array([np.inf, 1, 1])
    found = far_rows(rng.permutation(v), span, 5)
    nearest = np.abs((found[:, None] - centres) / [100, 1, 1]).max(axis=2)
    assert set(nearest.argmin(axis=1)) == set(range(5))
    assert nearest.min(axis=1).max() < 1
    assert len(far_rows(np.zeros((9, 3)), span, 5)) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8])
def test_rows_of_all_types_are_chosen_as_in_double_precision(dtype, rng):
    """Slips: means and distances in the type of the rows, which overflow or break ties."""
    v = rng.integers(0, 2, (300, 12)) * 100
    span = np.full(12, np.inf)
    np.testing.assert_array_equal(far_rows(v.astype(dtype), span, 64), far_rows(1.0 * v, span, 64))
    v = rng.normal(size=(300, 5)).astype(dtype)
    scale = np.finfo(dtype).max / 8 if dtype == np.float16 else 1
    span = np.full(5, np.inf)
    np.testing.assert_array_equal(
        far_rows(scale * v, span, 64), far_rows((scale * v).astype(np.float64), span, 64)
    )
