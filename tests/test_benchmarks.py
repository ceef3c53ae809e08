"""Benchmarks that train machines themselves, without an estimator."""

import numpy as np
import pytest

from benchmarks.quality import centering, tempering

CASES = dict.fromkeys(centering.CASES + tempering.CASES)
LEARNED = [case for case in CASES if case.data == "bars and stripes"]  # in few updates


@pytest.mark.parametrize("case", LEARNED, ids=lambda case: f"{case.algorithm}-{case.centering}")
def test_trials_learn_more_than_independent_pixels(case):
    v = centering.DATA[case.data]
    independent = v.size * np.log(0.5)  # half of the rows have each pixel
    best, last = centering.trial(case, seed=0, n_updates=1000)
    assert independent < last <= best < 0
