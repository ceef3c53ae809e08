"""What MIGRATING.md says of scikit-learn's class is so, and every test that it names exists."""

import re
from pathlib import Path

import numpy as np
import pytest
from estimators.instances import assigned, random_machine
from estimators.test_scikit_learn_suite import EXCEPTIONS
from scipy import stats
from scipy.special import expit
from sklearn import neural_network

from skrbm import BernoulliRBM

ROOT = Path(__file__).parents[2]
PRIVATE = ("_mean_hiddens", "_free_energy")


@pytest.fixture(name="pair")
def _pair():
    """Our class and scikit-learn's with the same arrays, and rows of that model."""
    p, v, _ = random_machine("bernoulli", 6, 3)
    ours, theirs = assigned(p), neural_network.BernoulliRBM(3)
    theirs.components_ = ours.components_
    theirs.intercept_hidden_ = ours.intercept_hidden_
    theirs.intercept_visible_ = ours.intercept_visible_
    theirs.n_features_in_ = 6
    return ours, theirs, v


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "MIGRATING.md").read_text()))
    defined = re.findall(
        r"^def (test_\w+)",
        "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py")),
        re.MULTILINE,
    )
    assert set(EXCEPTIONS) < named <= {*defined, *EXCEPTIONS}


def test_same_arrays_give_the_same_features_and_free_energies(pair):
    """Catches another sign, or a bias that is left out, beside scikit-learn's definition."""
    ours, theirs, v = pair
    np.testing.assert_allclose(ours.transform(v), theirs.transform(v), rtol=0, atol=1e-14)
    for name in PRIVATE:
        np.testing.assert_allclose(
            getattr(ours, name)(v), getattr(theirs, name)(v), rtol=0, atol=1e-13, err_msg=name
        )


@pytest.mark.slow
def test_score_samples_is_the_expectation_of_one_random_flip(pair):
    """Catches a mean over features in place of the sum, and flips that are weighted unevenly."""
    ours, theirs, v = pair
    draws = []
    for seed in range(2000):
        theirs.random_state = seed
        draws.append(theirs.score_samples(v[:10]))
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    gap = np.abs(np.mean(draws, axis=0) - ours.score_samples(v[:10]))
    assert (gap <= 4 * error + 1e-9).all()


def test_fresh_start_is_at_the_log_odds_of_the_means():
    """Catches a start at zero, and one at infinity where a feature is constant.

    Bits are coupled to themselves by hidden units of variance 0.09, exactly as by a bias.
    """
    X = np.repeat([[0, 0, 1, 1], [0, 1, 1, 1]], [30, 10], axis=0)
    rbm = BernoulliRBM(3, n_iter=0).fit(X)
    start = np.log([0.5, 10, 40.5, 40.5]) - np.log([40.5, 30, 0.5, 0.5])
    at_rest = rbm.intercept_visible_ + 0.1 * rbm.components_.sum(axis=0)
    p = expit(start)
    coupling = 0.09 / 2 * (rbm.components_**2).sum(axis=0) * (1 - 2 * p)
    # Found by differences of fields of 0.03 standard deviations, whose squares are left out.
    excess = 0.03**2 / (p * (1 - p)) * np.abs(coupling)
    assert (np.abs(at_rest + coupling - start) <= excess).all()


@pytest.mark.slow
def test_scikit_learn_class_is_biased_by_a_ragged_batch_and_ours_is_not():
    """Catches phases of one normalisation: fair coins, 101 rows, batches of 10.

    The coins of one fit depend on each other through the hidden units, the fits do not.
    """
    drifts = {BernoulliRBM: [], neural_network.BernoulliRBM: []}
    for seed in range(8):
        X = (np.random.default_rng(seed).random((101, 20)) < 0.5).astype(float)
        for estimator, means in drifts.items():
            rbm = estimator(2, batch_size=10, n_iter=100, random_state=seed).fit(X)
            means.append(np.mean(rbm.intercept_visible_))
    limit = stats.t.isf(stats.norm.sf(4), len(drifts[BernoulliRBM]) - 1)
    ours, theirs = (np.mean(m) / stats.sem(m) for m in drifts.values())
    assert abs(ours) < limit < -theirs
