"""Weighted Markov chains, whose mean weight estimates a partition function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from scipy.special import softmax

from skrbm.core.numerics import Array

MIN_ANCESTOR_SHARE = 0.25  # of the chains; with fewer ancestors the variance estimate is unreliable


@final
@dataclass(eq=False)
class Population:
    """Population of weighted chains with resampling.

    The standard error is estimated from the total weights of the descendants of each initial
    chain [1]_. It therefore takes account of correlations between successive weights of a chain,
    but not of modes that no chain has reached. If the fraction of the initial chains that have
    descendants is below `MIN_ANCESTOR_SHARE`, the current chains take the place of the initial
    chains. The variance up to this time is stored and added to later ones.

    Parameters
    ----------
    v : ndarray of shape (n_chains, n_visible)
        Visible states.
    log_weights : ndarray of shape (n_chains,)
        Log-weights since the last resampling, in nats.
    log_partition : float, default=0.0
        Log-partition function that corresponds to log-weights of zero, in nats. At each resampling,
        it is set to `value`.

    References
    ----------
    .. [1] Lee, Whiteley (2018), "Variance estimation in the particle filter", Biometrika 105(3),
       609-625, section 3. :doi:`10.1093/biomet/asy028`
    """

    v: Array
    log_weights: Array
    log_partition: float = 0.0
    _variance: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._ancestors = np.arange(len(self.v))

    @property
    def value(self) -> float:
        """Logarithm of the mean weight, plus `log_partition`, in nats."""
        return float(
            self.log_partition + np.logaddexp.reduce(self.log_weights) - np.log(len(self.v))
        )

    @property
    def std_error(self) -> float:
        """Standard error of `value`, in nats."""
        return float(np.sqrt(self._variance + self._family_variance))

    @property
    def shares(self) -> Array:
        """Normalized weights of shape (n_chains,), whose sum is one."""
        return softmax(self.log_weights)

    @property
    def effective_sample_size(self) -> float:
        """Number of equally weighted chains that is equivalent to the weighted chains."""
        return float(1 / np.sum(self.shares**2))

    def resample(self, rng: np.random.Generator) -> Array:
        """Resample the chains in proportion to their weights, by systematic resampling.

        Returns
        -------
        chosen : ndarray of int of shape (n_chains,)
            Index of the old chain from which each new chain is copied.
        """
        n = len(self.v)
        targets = (np.arange(n) + rng.random()) / n
        chosen = np.minimum(np.searchsorted(np.cumsum(self.shares), targets), n - 1)
        variance, self.log_partition = self._family_variance, self.value
        self._ancestors = self._ancestors[chosen]
        if len(np.unique(self._ancestors)) < MIN_ANCESTOR_SHARE * n:
            self._variance += variance
            self._ancestors = np.arange(n)
        self.log_weights, self.v = np.zeros(n), self.v[chosen]
        return chosen

    @property
    def _family_variance(self) -> float:
        """Relative variance of the mean weight, from the total weights of families.

        A family consists of the descendants of one ancestor.
        """
        n = len(self._ancestors)
        shares = np.bincount(self._ancestors, self.shares, minlength=n)
        return float(np.sum((shares - 1 / n) ** 2) * n / (n - 1))
