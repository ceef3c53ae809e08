"""Counts: a unit type that is not of the package, and needs nothing changed in it."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from skrbm.core.numerics import dense
from skrbm.core.units import LinearUnits, Support

LARGEST = 5
VALUES = np.arange(LARGEST + 1.0)
LOG_MEASURE = -gammaln(VALUES + 1)


@dataclass(frozen=True, eq=False)
class Count(LinearUnits):
    r"""Poisson counts cut off at five: :math:`p(k \mid x) \propto e^{kx} / k!`."""

    support = Support.of(*VALUES)

    def energy(self, states):
        own = gammaln(dense(states) + 1).sum(axis=1)
        return (super().energy(states) + own).astype(states.dtype)

    def log_normaliser(self, x):
        return logsumexp(_log_weights(x), axis=-1).sum(axis=1, dtype=np.float64)

    def expectation(self, x):
        return (softmax(_log_weights(x), axis=-1) @ VALUES).astype(x.dtype)

    def draw(self, x, rng):
        below = np.cumsum(softmax(_log_weights(x), axis=-1), axis=-1)[..., :-1]
        return (rng.random(x.shape)[..., None] > below).sum(axis=-1).astype(x.dtype)


def _log_weights(x):
    """Log-weights of the values, (n_samples, n_columns, n_values)."""
    return x[..., None] * VALUES + LOG_MEASURE
