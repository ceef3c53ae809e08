"""A numpy Generator wherever a random state is taken."""

import numpy as np
import pytest
from estimators.instances import KINDS, assigned, draw, learned_bits, new, random_machine
from sklearn.base import clone

from skrbm import BernoulliRBM, RBMImputer, TabularRBM

METHODS = {
    "sample": lambda rbm, X, rng: rbm.sample(5, 3, random_state=rng),
    "tempered": lambda rbm, X, rng: rbm.sample(5, 3, n_temperatures=3, random_state=rng),
    "inpaint": lambda rbm, X, rng: rbm.inpaint(X, X > 0.5, n_gibbs_steps=2, random_state=rng),
    "impute": lambda rbm, X, rng: rbm.impute(
        np.where(X > 0.5, X, np.nan), n_imputations=2, n_gibbs_steps=2, random_state=rng
    ),
    "log_partition": lambda rbm, X, rng: (
        rbm.log_partition("ais", n_chains=20, n_temperatures=50, X=X, random_state=rng).value
    ),
}


def state(rng):
    return rng.bit_generator.state


@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_equal_generators_are_equal_and_move_them_on(kind):
    # Slips: the generator copied, or only its seed read, so that a second fit is the first again.
    X = draw(kind)
    rng = np.random.default_rng(3)
    first = new(kind, n_iter=2, random_state=rng)
    copy = clone(first)
    before = state(rng)
    first.fit(X)
    assert first.random_state is rng
    assert state(rng) != before
    assert learned_bits(copy.fit(X)) == learned_bits(first)
    assert learned_bits(clone(copy).fit(X)) == learned_bits(first.fit(X)) != learned_bits(copy)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "cho"])
def test_methods_draw_from_a_generator(kind, method):
    # Slip: the parameter not declared, and refused.
    p, X, _ = random_machine(kind)
    rbm, rng = assigned(p, random_state=0), np.random.default_rng(5)
    first, second = (METHODS[method](rbm, X, rng) for _ in range(2))
    again = METHODS[method](rbm, X, np.random.default_rng(5))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "column"), [("conditional_proba", 0), ("conditional_mean", 1)])
def test_conditional_laws_of_tables_draw_from_a_generator(method, column):
    # Slips: scikit-learn's own rule for the parameter, which refuses one; a stream of one's own.
    X = draw("cho")
    rbm = TabularRBM(2, kinds={0: "categorical"}, n_iter=2, random_state=0)
    rbm.fit(np.column_stack([X[:, 0] > X[:, 0].mean(), X[:, 1:]]))
    rows, rng = [[np.nan, np.nan, np.nan, *X[0, 3:]]], np.random.default_rng(5)
    ask = getattr(rbm, method)
    first, second = (ask(rows, column, random_state=rng) for _ in range(2))
    np.testing.assert_array_equal(ask(rows, column, random_state=np.random.default_rng(5)), first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_every_kind_of_generator_will_do(bits):
    X = draw("bernoulli")
    fits = [new("bernoulli", random_state=np.random.Generator(bits(1))).fit(X) for _ in range(2)]
    assert learned_bits(fits[0]) == learned_bits(fits[1])


def test_imputer_takes_a_generator():
    X = draw("bernoulli").astype(float)
    X[::3, 0] = np.nan
    rng = np.random.default_rng(1)
    imputer = RBMImputer(BernoulliRBM(2, n_iter=2, random_state=0), random_state=rng)
    copy = clone(imputer)
    first, second = imputer.fit_transform(X), imputer.fit_transform(X)
    np.testing.assert_array_equal(copy.fit_transform(X), first)
    assert not np.array_equal(second, first)
