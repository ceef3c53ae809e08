"""Data of modes that lie far apart, as real tables have them: fits by defaults, and likelihoods."""

import numpy as np
import pytest
from scipy.special import logsumexp

from skrbm import BernoulliRBM, GaussianBernoulliRBM, SpinRBM

NOISE = 0.02


@pytest.fixture
def rng(seed):
    return np.random.default_rng([seed, 1])


def clusters(shares, rng, n_columns=50, n_rows=1000):
    """Bits that repeat the pattern of a row's cluster with some noise, and their log-likelihood."""
    patterns = rng.random((len(shares), n_columns)) < 0.5
    patterns[1] = ~patterns[0]
    of_row = rng.choice(len(shares), n_rows, p=shares)
    X = patterns[of_row] ^ (rng.random((n_rows, n_columns)) < NOISE)
    n_wrong = (X[:, None] != patterns).sum(axis=2)
    n_right = n_columns - n_wrong
    likelihood = np.log(shares) + n_wrong * np.log(NOISE) + n_right * np.log(1 - NOISE)
    return X.astype(float), float(logsumexp(likelihood, axis=1).mean())


def exact_mean(rbm, X):
    return float(rbm.log_likelihood(X, rbm.log_partition("exact")).mean())


@pytest.mark.parametrize(
    ("estimator", "shares"),
    [
        (BernoulliRBM, (0.5, 0.5)),
        (BernoulliRBM, (0.4, 0.3, 0.3)),
        (SpinRBM, (0.5, 0.5)),
        (SpinRBM, (0.8, 0.2)),
    ],
)
def test_clusters_of_bits(estimator, shares, rng):
    """Within 2 nats of the truth by defaults, where independent bits are 10 to 29 below.

    Slip: chains that never jump to the data.
    """
    X, truth = clusters(np.array(shares), rng)
    if estimator is SpinRBM:
        X = 2 * X - 1
    rbm = estimator(10, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - 2


def test_clusters_of_numbers(rng):
    # Slip: as above.
    X = rng.normal(size=(1000, 10)) + np.where(rng.random((1000, 1)) < 0.5, 0, 40)
    truth = -np.log(2) - 5 * np.log(2 * np.pi * np.e)
    rbm = GaussianBernoulliRBM(4, n_iter=20, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - 5  # ten independent numbers are 29 below
