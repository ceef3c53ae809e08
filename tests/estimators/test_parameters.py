"""Constructors that store their arguments."""

import numpy as np

from skrbm import BernoulliRBM
from skrbm.core.units import Bernoulli
from skrbm.estimators.base_rbm import BaseRBM, store_parameters


class Chair:
    def __init__(self, size, *, legs=4, weight=5e-4, colour="red"):
        super().__init__()
        store_parameters(self, locals())


def test_arguments_become_attributes():
    # Slip: `__class__`, which is a local of an __init__ that calls super(), is stored too.
    class Stool(Chair):
        pass

    stool = Stool(3, colour=None)
    assert vars(stool) == {"size": 3, "legs": 4, "weight": 5e-4, "colour": None}
    assert type(stool) is Stool


def test_a_subclass_has_the_defaults_of_parameters_that_it_does_not_take():
    class ShortRBM(BaseRBM):
        _visible_type = _hidden_type = Bernoulli

        def __init__(self, n_components=4, *, n_iter=2, random_state=0):
            store_parameters(self, locals())

    # States are drawn by `BernoulliRBM` alone, of values that are not 0 or 1.
    X = (np.random.default_rng(0).random((40, 5)) < 0.4).astype(float)
    whole = BernoulliRBM(4, n_iter=2, random_state=0).fit(X)
    short = ShortRBM().fit(X)
    assert set(short.get_params()) == {"n_components", "n_iter", "random_state"}
    np.testing.assert_array_equal(short.components_, whole.components_)
