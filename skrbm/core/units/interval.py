"""Interval units: real values between 0 and 1."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.special import roots_legendre

from skrbm.core.draws import draw_uniform
from skrbm.core.numerics import Array
from skrbm.core.units.linear import LinearUnits
from skrbm.core.units.support import QuadratureError, Support

SMALLEST_SLOPE = np.finfo(np.float64).tiny  # of a log-density, in nats; avoids a division by zero
MAX_SERIES_SLOPE = 0.03  # nats; the remainder of the series is below x^5 / 30000
# Nodes of a Gauss-Legendre rule, and largest rise of a log-density, in nats, that it integrates
# with a relative error of 2e-14.
N_NODES, MAX_RISE = 32, 16
MAX_HALVINGS = 32  # of the interval towards an end; steeper densities are refused


@final
@dataclass(frozen=True, eq=False)
class Interval(LinearUnits):
    r"""Units with values between 0 and 1 and an exponential density.

    .. math:: p(s \mid x) = \frac{x\, e^{xs}}{e^x - 1}, \qquad L(x) = \log \frac{e^x - 1}{x}

    where :math:`x = b + f` is the sum of the bias and the field, and :math:`L` is the log-partition
    of a unit without an offset. At :math:`x = 0`, the formulas stand for their limits.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Slope of the log-density without a field; zero gives a uniform distribution.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Bengio, Lamblin, Popovici, Larochelle (2007), "Greedy layer-wise training of deep
       networks", NIPS 19, 153-160, section 3.1.

    Examples
    --------
    >>> unit = Interval(np.array([0.0]))
    >>> unit.mean(np.array([[0.0], [3.0]])).round(2)
    array([[0.5 ],
           [0.72]])
    """

    support = Support(0.0, 1.0)

    def log_normaliser(self, x: Array) -> Array:
        size = np.maximum(np.abs(x, dtype=np.float64), SMALLEST_SLOPE)
        return (np.maximum(x, 0) + np.log(-np.expm1(-size) / size)).sum(axis=1)

    def expectation(self, x: Array) -> Array:
        is_small = np.abs(x) < MAX_SERIES_SLOPE
        small, far = np.where(is_small, x, 0), np.where(is_small, 1, x.astype(np.float64))
        series = 0.5 + small / 12 - small**3 / 720
        x[:] = np.where(is_small, series, 0.5 + 0.5 / np.tanh(far / 2) - 1 / far)
        return x

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        size = np.maximum(np.abs(x, dtype=np.float64), SMALLEST_SLOPE)
        # Distance from the end of highest density; log1p keeps the digits of small distances.
        distance = -np.log1p(draw_uniform(x.shape, rng, x) * np.expm1(-size)) / size
        x[:] = np.where(x > 0, 1 - distance, distance)
        return x

    def heated(self, temperature: float) -> Self:
        return replace(self, bias=self.bias / temperature)

    def conditional_values(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        steepest = float(max(np.abs(low + self.bias).max(), np.abs(high + self.bias).max()))
        if not steepest <= MAX_RISE * 2**MAX_HALVINGS:
            raise QuadratureError(
                f"The log-density of an interval unit given the others rises by up to "
                f"{steepest:.3g} nats, too steep for a quadrature."
            )
        n_halvings = max(0, int(np.ceil(np.log2(max(steepest, 1) / MAX_RISE))))
        nodes, log_weights = _quadrature(n_halvings)
        return nodes[:, None, None].astype(states.dtype), log_weights[:, None].astype(states.dtype)


@functools.cache
def _quadrature(n_halvings: int) -> tuple[Any, Any]:
    """Nodes between 0 and 1, and logarithms of their weights, both of shape (n_nodes,).

    The interval is divided into parts that halve towards both ends, each with a Gauss-Legendre rule
    of `N_NODES` nodes. The log-density of a unit given the others is convex, since log-partitions
    are: where it is steeper than a rule can integrate, the density is negligible. In single
    precision, nodes near 1 are rounded; the error is 4e-5 nats for slopes of 1e4 nats.
    """
    ends = 0.5 ** np.arange(n_halvings, 0, -1)
    edges = np.unique(np.concatenate([[0], ends, 1 - ends, [1]]))
    nodes, weights = roots_legendre(N_NODES)
    widths = np.diff(edges)[:, None]
    log_weights = np.log(widths) + np.log(weights / 2)
    return (edges[:-1, None] + widths * (nodes + 1) / 2).ravel(), log_weights.ravel()
