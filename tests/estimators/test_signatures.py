"""Calls with wrong arguments: the message names nothing that users have not seen."""

import inspect
import pickle
import re

import pytest
from sklearn.base import BaseEstimator

import skrbm

ESTIMATORS = [
    skrbm.BernoulliRBM,
    skrbm.SpinRBM,
    skrbm.GaussianBernoulliRBM,
    skrbm.TabularRBM,
    skrbm.RBMClassifier,
    skrbm.RBMImputer,
    skrbm.RBMOutlierDetector,
]
METHODS = [
    pytest.param(cls, name, id=f"{cls.__name__}.{name}")
    for cls in ESTIMATORS
    for name, method in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_") and "skrbm" in inspect.unwrap(method).__code__.co_filename
]


def complaint(function, *args, **kwargs):
    with pytest.raises(TypeError) as error:
        function(*args, **kwargs)
    return str(error.value)


def test_every_public_estimator_is_asked():
    classes = {getattr(skrbm, name) for name in skrbm.__all__}
    found = {c for c in classes if inspect.isclass(c) and issubclass(c, BaseEstimator)}
    assert found == set(ESTIMATORS)


@pytest.mark.parametrize(("cls", "name"), METHODS)
def test_messages_name_no_private_class(cls, name):
    """Slip: `LikelihoodMixin.score` in place of `score`, by a class that is not public_methods_of."""
    method = getattr(cls(None), name)
    for message in (complaint(method, *range(20)), complaint(method, unheard_of=1)):
        assert set(re.findall(r"(\w+)\.\w+\(", message)) <= {cls.__name__}
    qualified = inspect.unwrap(getattr(cls, name)).__qualname__
    assert qualified in (name, f"{cls.__name__}.{name}")


@pytest.mark.parametrize(("cls", "name"), METHODS)
def test_functions_can_be_pickled(cls, name):
    # Slips: plain names that no module answers for, or that are those of other functions of it.
    method = getattr(cls, name)
    assert pickle.loads(pickle.dumps(method)) is method


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_constructors_go_by_the_name_of_their_class(cls):
    # Slip: BaseRBM.__init__ inherited.
    for message in (complaint(cls, 1, 2, 3), complaint(cls, unheard_of=1)):
        assert message.startswith(f"{cls.__name__}.__init__()")
