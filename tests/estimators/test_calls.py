"""Number of Python calls of an update and of a row's inference, which set the time of small calls."""

import collections
import sys
from pathlib import Path

import numpy as np
import pytest

import skrbm
from skrbm import BernoulliRBM

PLAIN = {
    "n_particles": None,
    "learning_rate_schedule": "constant",
    "shuffle": False,
    "centering": False,
    "average": False,
}
N_ROWS, BATCH_SIZE = 2000, 10


def calls_into_the_package(fit):
    """Number of calls of functions that the package defines."""
    n_calls, package = 0, str(Path(skrbm.__file__).parent)

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += event == "call" and frame.f_code.co_filename.startswith(package)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return n_calls


@pytest.mark.parametrize(("options", "most"), [(PLAIN, 52), ({}, 80)], ids=["plain", "defaults"])
def test_an_update_makes_few_calls(options, most):
    # Slip: jumps or damping in every update; a layer of wrappers around a state.
    X = (np.random.default_rng(0).random((N_ROWS, 64)) < 0.3).astype(float)

    def fit(n_iter):
        BernoulliRBM(64, n_iter=n_iter, batch_size=BATCH_SIZE, random_state=0, **options).fit(X)

    n_first = calls_into_the_package(lambda: fit(1))
    n_updates = 5 * N_ROWS // BATCH_SIZE
    assert (calls_into_the_package(lambda: fit(6)) - n_first) / n_updates < most


def test_inference_of_a_row_checks_no_array_but_the_row():
    """It takes half the time. Slips: `check_array` of the fitted arrays; `get_params`."""
    X = (np.random.default_rng(0).random((20, 4)) < 0.3).astype(float)
    rbm = BernoulliRBM(3, n_iter=1, random_state=0).fit(X)
    calls = collections.Counter()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_name] * (event == "call")))
    try:
        rbm.transform(X[:1])
    finally:
        sys.setprofile(before)
    assert calls["_validate_params"] == 1
    assert calls["check_array"] == 1
    assert calls["signature"] == 0
