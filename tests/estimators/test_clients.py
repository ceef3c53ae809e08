"""The ways in which real programs use scikit-learn's class."""

import json

import numpy as np
import pytest
from estimators.instances import KINDS, assert_same_arrays, draw, new, random_machine
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

from skrbm import BernoulliRBM

PUBLIC = ("components_", "intercept_hidden_", "intercept_visible_", "noise_variance_", "h_samples_")
X = draw("bernoulli", 60, 6)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


class Named:
    """Mixin with a parameter of its own."""

    def __init__(self, *, name, **others):
        super().__init__(**others)
        self.name = name


class NamedRBM(Named, BernoulliRBM):
    def __init__(self, n_components=2, *, name="rbm", learning_rate=0.1, n_iter=2, random_state=0):
        super().__init__(
            name=name,
            n_components=n_components,
            learning_rate=learning_rate,
            n_iter=n_iter,
            random_state=random_state,
        )


def test_subclasses_with_a_mixin_are_estimators():
    rbm = NamedRBM(3, name="first")
    assert set(rbm.get_params()) == {
        "n_components",
        "name",
        "learning_rate",
        "n_iter",
        "random_state",
    }
    plain = BernoulliRBM(3, learning_rate=0.1, n_iter=2, random_state=0)
    assert_same_arrays(clone(rbm).fit(X), plain.fit(X))
    search = GridSearchCV(rbm, {"name": ["a", "b"], "n_components": [2, 3]}, cv=2).fit(X)
    assert search.best_estimator_.name == "a"


def test_an_unfitted_object_with_assigned_parameters_runs_clamped_gibbs(kind):
    p, v, _ = random_machine(kind)
    rbm = new(kind, random_state=0)
    rbm.components_, rbm.intercept_visible_ = p.weights.T, p.visible_bias
    rbm.intercept_hidden_ = p.hidden_bias
    if p.is_gaussian:
        rbm.noise_variance_ = np.exp(p.log_variance)
    known = v[:, :2].copy()
    state = v.astype(float)
    for _ in range(5):
        state = rbm.gibbs(state).astype(float)
        state[:, :2] = known
    assert state.shape == v.shape
    assert np.isfinite(state).all()


def test_learned_features_start_a_classifier():
    """The first layer's arrays are copied into a network, which then goes on to train."""
    y = X[:, 0] > 0
    rbm = BernoulliRBM(4, random_state=0).fit(X)
    network = MLPClassifier(
        (4,), activation="logistic", solver="lbfgs", warm_start=True, max_iter=1, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        network.fit(X, y)
    network.coefs_[0] = rbm.components_.T
    network.intercepts_[0] = rbm.intercept_hidden_
    output = 1 / (1 + np.exp(-rbm.transform(X) @ network.coefs_[1] - network.intercepts_[1]))
    np.testing.assert_allclose(network.predict_proba(X)[:, 1:], output, rtol=0, atol=1e-12)
    network.set_params(max_iter=500).fit(X, y)
    assert network.score(X, y) > 0.9


def test_attributes_may_be_changed_after_construction():
    rbm = BernoulliRBM(random_state=0)
    rbm.n_components, rbm.n_iter, rbm.learning_rate = 3, 2, 0.1
    same = BernoulliRBM(3, n_iter=2, learning_rate=0.1, random_state=0)
    assert_same_arrays(rbm.fit(X), same.fit(X))
    rbm.set_params(learning_rate=0).fit(X)
    before = rbm.components_
    np.testing.assert_allclose(rbm.partial_fit(X).components_, before, rtol=0, atol=1e-12)


def test_public_attributes_go_through_json(kind):
    rows = draw(kind)
    rbm = new(kind, n_iter=2, random_state=0).fit(rows)
    attributes = {name: getattr(rbm, name) for name in PUBLIC if hasattr(rbm, name)}
    numbers = {"n_iter_": rbm.n_iter_, "n_features_in_": rbm.n_features_in_}
    text = json.dumps(
        {name: array.tolist() for name, array in attributes.items()}
        | numbers
        | {"history_": rbm.history_}
    )
    read = new(kind, random_state=0)
    for name, value in json.loads(text).items():
        setattr(read, name, np.asarray(value) if name in attributes else value)
    np.testing.assert_array_equal(read.transform(rows), rbm.transform(rows))
    np.testing.assert_array_equal(read.score_samples(rows), rbm.score_samples(rows))


def test_free_energies_rank_anomalies():
    rng = np.random.default_rng(0)
    normal = np.repeat(rng.random((200, 1)) < 0.5, 10, axis=1).astype(float)
    odd = (rng.random((20, 10)) < 0.5).astype(float)
    odd = odd[(odd.sum(axis=1) > 2) & (odd.sum(axis=1) < 8)]
    rbm = BernoulliRBM(4, n_iter=50, random_state=0).fit(normal)
    assert rbm._free_energy(odd).min() > rbm._free_energy(normal).max()
    np.testing.assert_array_equal(rbm._free_energy(odd), rbm.free_energy(odd))
