"""Mixture of independent bits, fitted by expectation maximisation: the peer of the density tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

N_CLUSTERS = 10, 30, 100, 300
COUNTS_ADDED = 0.1, 1.0  # rows like the mean of all, added to each cluster
MAX_STEPS, MIN_GAIN = 100, 1e-3  # steps of a fit; nats per row below which it ends
MIN_FREQUENCY = 1e-6  # of a one, and of a zero


@dataclass(frozen=True)
class BernoulliMixture:
    """Mixture of distributions of independent bits.

    Parameters
    ----------
    share : ndarray of shape (n_clusters,)
        Probabilities of the clusters.
    frequency : ndarray of shape (n_clusters, n_columns)
        Probabilities of a one.
    """

    share: np.ndarray
    frequency: np.ndarray

    def joint(self, X: np.ndarray) -> np.ndarray:
        """Log-probability of each row and each cluster, in nats."""
        one, zero = np.log(self.frequency), np.log1p(-self.frequency)
        return X @ (one - zero).T + zero.sum(axis=1) + np.log(self.share)

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Log-likelihood of each row, in nats."""
        return logsumexp(self.joint(X), axis=1).astype(np.float64)


def fit_mixture(X: np.ndarray, n_clusters: int, added: float, seed: int) -> BernoulliMixture:
    """Mixture by expectation maximisation, from random rows as centres.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        Training rows.
    n_clusters : int
        Number of clusters.
    added : float
        Rows like the mean of all that are added to each cluster.
    seed : int
        Of the rows that are centres at first.
    """
    rng = np.random.default_rng(seed)
    centres = X[rng.choice(len(X), n_clusters, replace=n_clusters > len(X))]
    mean = ((X.sum(axis=0) + 1) / (len(X) + 2)).astype(np.float32)
    share = np.full(n_clusters, 1 / n_clusters, dtype=np.float32)
    mixture = BernoulliMixture(share, (centres + mean) / 2)
    rows, n_copies = np.unique(X, axis=0, return_counts=True)
    weight = n_copies.astype(np.float32)[:, None]
    before = -np.inf
    for _ in range(MAX_STEPS):
        joint = mixture.joint(rows)
        largest = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - largest)
        total = posterior.sum(axis=1, keepdims=True)
        posterior *= weight / total
        mean_log = float((weight * (largest + np.log(total))).sum() / len(X))
        counts = posterior.sum(axis=0)
        frequency = (posterior.T @ rows + added * mean) / (counts + added)[:, None]
        share = (counts + added) / (len(X) + n_clusters * added)
        mixture = BernoulliMixture(share, np.clip(frequency, MIN_FREQUENCY, 1 - MIN_FREQUENCY))
        if mean_log - before < MIN_GAIN:
            break
        before = mean_log
    return mixture


def choose_mixture(
    X: np.ndarray, valid: np.ndarray, seed: int
) -> tuple[BernoulliMixture, dict[str, float]]:
    """Mixture that is likeliest on validation rows, and its settings."""
    best: tuple[float, BernoulliMixture | None, dict[str, float]] = (-np.inf, None, {})
    for n_clusters in N_CLUSTERS:
        for added in COUNTS_ADDED:
            mixture = fit_mixture(X, n_clusters, added, seed)
            score = float(mixture.log_likelihood(valid).mean())
            if score > best[0]:
                best = score, mixture, {"n_clusters": n_clusters, "counts_added": added}
    assert best[1] is not None
    return best[1], best[2] | {"valid": best[0]}
