"""The same distribution over other states: what becomes of the constructor's parameters."""

import numpy as np
import oracles
import pytest
from estimators.instances import assigned, random_machine
from sklearn.neural_network import BernoulliRBM as TheirRBM

from skrbm import DivergenceError, to_bernoulli, to_spin

OPTIONS = {
    "plain": {},
    "momentum": {"momentum": 0.5},
    "l1": {"l1": 0.3},
    "l1_squared": {"l1_squared": 0.3},
    "l2": {"l2": 0.3},
    "max_norm": {"max_norm": 0.2},
    "max_gradient_norm": {"max_gradient_norm": 0.01},
}
SETTINGS = {
    "learning_rate": 0.01,
    "algorithm": "exact",
    "average": False,
    "batch_size": 1000,
    "random_state": 0,
}


def arrays(rbm):
    """The model's arrays, one after another."""
    return np.concatenate([rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_], None)


def weight_step(rbm, v):
    """By how much an update moves the weights."""
    weights = rbm.components_.copy()
    return rbm.partial_fit(v).components_ - weights


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_centered_updates_lead_twins_to_the_same_distribution(options):
    """Catches rates, penalties and bounds that are taken over as they are.

    And biases of spins that move a fourth as far, or count half as much in the norm of a gradient.
    """
    p, v, _ = random_machine("spin", 5, 3)
    rbm = assigned(p, **SETTINGS, **options)
    twin, again = to_bernoulli(rbm), to_spin(to_bernoulli(rbm))
    before = arrays(rbm)
    rbm.partial_fit(v)
    again.partial_fit(v)
    expected = arrays(to_spin(twin.partial_fit((v + 1) / 2)))
    assert (arrays(rbm) != before).all()
    np.testing.assert_allclose(arrays(rbm), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(arrays(again), arrays(rbm), rtol=0, atol=1e-12)


def test_updates_by_adam_move_the_weights_of_a_twin_as_far():
    """Catches a rate scaled by the gradient's size, which Adam's steps do not have."""
    p, v, _ = random_machine("spin", 5, 3)
    rbm = assigned(p, optimizer="adam", **SETTINGS)
    twin = to_bernoulli(rbm)
    spins, bits = weight_step(rbm, v), weight_step(twin, (v + 1) / 2)
    gradient = weight_step(assigned(p, **SETTINGS), v) / SETTINGS["learning_rate"]
    excess = 4 * 1e-6 / np.abs(gradient)  # 1e-6 is added to the size of a gradient of bits
    assert (np.abs(bits / (4 * spins) - 1) <= excess).all()


def test_learning_rate_of_spins_is_that_of_their_weights():
    """Catches an internal rate in the step of the weights, in the history or in an error."""
    p, v, _ = random_machine("spin", 5, 3)
    rbm = assigned(p, **(SETTINGS | {"centering": False}))
    gradient = oracles.log_likelihood_gradient(p, v)
    np.testing.assert_allclose(weight_step(rbm, v), 0.01 * gradient["weights"].T, atol=1e-9)
    bias = p.hidden_bias + 4 * 0.01 * gradient["hidden_bias"]
    np.testing.assert_allclose(rbm.intercept_hidden_, bias, atol=1e-9)
    rbm.set_params(learning_rate_schedule="constant", n_iter=1).fit(v)
    assert rbm.history_["learning_rate"] == [0.01]
    rbm.set_params(learning_rate=1e300, n_iter=9)
    with pytest.raises(DivergenceError, match=r"Reduce learning_rate=1e\+300"):
        rbm.fit(v)


def test_other_parameters_are_taken_over_and_all_come_back():
    p, _, _ = random_machine("spin", 5, 3)
    options = {"l1": 0.1, "l1_squared": 0.3, "l2": 0.2, "max_norm": 3.0, "max_gradient_norm": 5.0}
    rbm = assigned(p, learning_rate=0.3, **options)
    scaled = {"learning_rate", *options}
    twin = to_bernoulli(rbm)
    before, after = rbm.get_params(), twin.get_params()
    assert {name for name in before if before[name] != after[name]} == scaled
    assert to_spin(twin).get_params() == pytest.approx(before)
    unbound = to_bernoulli(assigned(p, max_norm=None, max_gradient_norm=None))
    assert unbound.max_norm is unbound.max_gradient_norm is None


def test_a_class_of_the_same_name_is_told_from_ours():
    # Slip: "Expected a BernoulliRBM, got a BernoulliRBM".
    message = r"Expected a BernoulliRBM of skrbm, .* got a BernoulliRBM of sklearn\."
    with pytest.raises(TypeError, match=message):
        to_spin(TheirRBM(2).fit(np.eye(3)))
