"""Tree of the strongest dependences between bits, and the RBM that is this tree exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skrbm import BernoulliRBM

N_COUNTS_ADDED = 0.25  # to each of the four cells of a pair of columns
FREE_WEIGHTS = 0.01  # standard deviation of the weights of hidden units that are no edge


@dataclass(frozen=True)
class Tree:
    """Distribution of bits in which each column depends on one other.

    Parameters
    ----------
    edges : list of tuple of int
        Pairs of a column whose distribution is known already and one that depends on it.
    frequency : ndarray of shape (n_columns,)
        Probabilities of a one.
    both : ndarray of shape (n_columns, n_columns)
        Probabilities of two ones.

    References
    ----------
    .. [1] Chow, Liu (1968), "Approximating discrete probability distributions with dependence
       trees", IEEE Transactions on Information Theory 14(3), 462-467.
       :doi:`10.1109/TIT.1968.1054142`
    """

    edges: list[tuple[int, int]]
    frequency: np.ndarray
    both: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Tree:
        """Likeliest tree for some rows."""
        together = X.astype(np.float64).T @ X
        n_counted = len(X) + 4 * N_COUNTS_ADDED
        frequency = (np.diag(together) + 2 * N_COUNTS_ADDED) / n_counted
        tree = cls([], frequency, (together + N_COUNTS_ADDED) / n_counted)
        information = tree._information()
        is_in = np.zeros(len(frequency), dtype=bool)
        is_in[0] = True
        best, parent = information[0].copy(), np.zeros(len(frequency), dtype=int)
        for _ in range(len(frequency) - 1):
            column = int(np.where(is_in, -np.inf, best).argmax())
            tree.edges.append((int(parent[column]), column))
            is_in[column] = True
            is_better = information[column] > best
            best[is_better] = information[column, is_better]
            parent[is_better] = column
        return tree

    def _information(self) -> np.ndarray:
        """Mutual information of all pairs of columns, in nats."""
        total = np.zeros_like(self.both)
        for first in (True, False):
            for second in (True, False):
                joint = self._joint(first, second)
                alone = [self.frequency if one else 1 - self.frequency for one in (first, second)]
                total += joint * np.log(joint / np.outer(*alone))
        np.fill_diagonal(total, 0)
        return total

    def _joint(self, first: bool, second: bool) -> np.ndarray:
        """Probabilities of a pair of values, for all pairs of columns; the diagonal means nothing."""
        rows, columns = self.frequency[:, None], self.frequency[None]
        if first and second:
            return self.both
        if first or second:
            return np.maximum((rows if first else columns) - self.both, 1e-300)
        return np.maximum(1 - rows - columns + self.both, 1e-300)

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Log-likelihood of each row, in nats."""
        is_one = X > 0.5
        total = np.where(is_one[:, 0], np.log(self.frequency[0]), np.log1p(-self.frequency[0]))
        for i, j in self.edges:
            given_one = self.both[i, j] / self.frequency[i]
            given_zero = (self.frequency[j] - self.both[i, j]) / (1 - self.frequency[i])
            p = np.where(is_one[:, i], given_one, given_zero)
            total += np.where(is_one[:, j], np.log(p), np.log1p(-p))
        return total

    def machine(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Weights and biases of the RBM whose distribution is the tree.

        An edge of log odds ratio :math:`J` is one hidden unit of weights :math:`w` to one end and
        :math:`\pm w` to the other, with :math:`\cosh(w / 2) = e^{|J| / 2}`.

        Returns
        -------
        weights : ndarray of shape (n_columns - 1, n_columns)
            As `components_`.
        bias_hidden : ndarray of shape (n_columns - 1,)
            As `intercept_hidden_`.
        bias_visible : ndarray of shape (n_columns,)
            As `intercept_visible_`.
        """
        odds = np.log(self.frequency) - np.log1p(-self.frequency)
        bias_visible, bias_hidden = odds.copy(), np.zeros(len(self.edges))
        weights = np.zeros((len(self.edges), len(self.frequency)))
        cells = {(a, b): np.log(self._joint(a, b)) for a in (True, False) for b in (True, False)}
        for k, (i, j) in enumerate(self.edges):
            one_i, one_j, both, none = (
                cells[cell][i, j]
                for cell in ((True, False), (False, True), (True, True), (False, False))
            )
            ratio = both + none - one_i - one_j
            w = 2 * np.arccosh(np.exp(abs(ratio) / 2))
            sign = 1 if ratio > 0 else -1
            weights[k, i], weights[k, j] = w, sign * w
            bias_hidden[k] = -w if ratio > 0 else 0.0
            at = np.logaddexp(0, bias_hidden[k] + np.array([0, w, sign * w]))
            bias_visible[i] += one_i - none - odds[i] - (at[1] - at[0])
            bias_visible[j] += one_j - none - odds[j] - (at[2] - at[0])
        return weights, bias_hidden, bias_visible


def start_from_tree(rbm: BernoulliRBM, X: np.ndarray, seed: int) -> BernoulliRBM:
    """Set an unfitted RBM to the tree of some rows, so that the next `fit` goes on from there.

    Hidden units beyond the edges of the tree get small random weights. The persistent chains start
    at training rows.

    Parameters
    ----------
    rbm : BernoulliRBM
        Of at least as many hidden units as columns, less one; changed in place.
    X : ndarray of shape (n_samples, n_columns)
        Training rows.
    seed : int
        Of the random weights and of the chains.

    Returns
    -------
    rbm : BernoulliRBM
        The same, with `warm_start`.
    """
    rng: Any = np.random.default_rng(seed)
    n_iter = rbm.n_iter
    rbm.set_params(n_iter=0).fit(X)
    weights, bias_hidden, bias_visible = Tree.of(X).machine()
    n_edges, n_free = len(weights), len(rbm.components_) - len(weights)
    free = rng.normal(0, FREE_WEIGHTS, (n_free, X.shape[1]))
    rbm.components_[:n_edges], rbm.components_[n_edges:] = weights, free
    rbm.intercept_hidden_[:n_edges] = bias_hidden
    rbm.intercept_hidden_[n_edges:] = -free @ X.mean(axis=0)
    rbm.intercept_visible_[:] = bias_visible
    means = rbm.transform(X[rng.choice(len(X), len(rbm.h_samples_))])
    rbm.h_samples_ = (rng.random(means.shape) < means).astype(rbm.h_samples_.dtype)
    return rbm.set_params(n_iter=n_iter, warm_start=True)
