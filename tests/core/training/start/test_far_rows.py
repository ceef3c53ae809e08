"""Rows that are far from all others are found first."""

import numpy as np

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
