"""Values that columns can take (`Support`) and preconditioner of the gradient (`Metric`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from skrbm.core.numerics import Array

# Trapezoid rule for normal densities, in standard deviations. A step of 0.8 has an error of
# 2 exp(-2 pi^2 / step^2) = 8e-14; a margin of 8 beyond the outermost means leaves out
# exp(-margin^2 / 2) = 1e-14.
QUADRATURE_STEP = 0.8
QUADRATURE_MARGIN = 8
MAX_QUADRATURE_NODES = 10_000  # for each unit; each node costs a row of hidden fields per sample
# Bounds of a learned variance, relative to the variance of the feature. A smaller variance fits the
# rounding of the data; a larger variance is a sign that the chains diverge.
SMALLEST_SHARE, LARGEST_SHARE = 1e-4, 10.0
# Number of updates that chains may take to forget their states before steps are shorter. With 30,
# three factors of twelve columns lose a nat in the default number of epochs. What is lost without
# shorter steps: benchmarks/results/leave_one_out.json.
MAX_RELAXATION = 100.0
CURVATURE_ROUNDING = 1e-3  # tolerance of curvature times largest variance <= 1 for convex energies


class QuadratureError(ValueError):
    """The distribution of a unit cannot be integrated by the available quadratures.

    The error is raised if no quadrature is implemented for the unit type, or if the quadrature
    would need too many nodes. It is also raised if the nodes would be too close to each other for
    the dtype, or if the weights are so large that the field on the unit cannot be bounded.
    """


class UnknownRangeError(ValueError):
    """No bounds are known for the field on a visible unit, see `field_ranges`."""


@dataclass(frozen=True)
class Support:
    """Values of a column: `values` or, if `values` is empty, all numbers from `low` to `high`."""

    low: float
    high: float
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, *values: float) -> Self:
        """Support of finitely many values."""
        values = tuple(sorted(values))
        return cls(values[0], values[-1], values)


class ColumnStatistics(NamedTuple):
    """Statistics of the states of each column; None if they are unknown.

    Attributes
    ----------
    variance : ndarray of shape (n_columns,) or None
        Variance.
    kurtosis : ndarray of shape (n_columns,) or None
        Fourth standardized moment, which is 3 for a normal distribution.
    redundancy : ndarray of shape (n_columns,) or None
        Sum of the squared correlations with all columns, which is 1 for an uncorrelated column.
    """

    variance: Array | None = None
    kurtosis: Array | None = None
    redundancy: Array | None = None


UNKNOWN = ColumnStatistics()


class Metric(NamedTuple):
    """Diagonal preconditioner of the gradient.

    Each factor is a scalar or an array with one entry for each column of the layer. In `parameters`
    of `Composite` layers, the arrays have one entry for each column of the part. The gradient of
    the weights is multiplied by `signal` along the axis of the layer: its rows for the visible
    layer, its columns for the hidden layer. The gradients of the layer's parameters are multiplied
    by the factors of the same names in `parameters`. A parameter without an entry has a factor of
    one.
    """

    signal: Array | float = 1.0
    parameters: Mapping[str, Array | float] = MappingProxyType({})


def metric_shares(noise: Array, statistics: ColumnStatistics) -> tuple[Array, Array]:
    r"""Factors of the metric of normal units for biases and weights, and for log-variances.

    The first is :math:`\sigma^2 / \mathrm{Var}(v)`. Times :math:`\sigma^2`, it is the inverse of
    the Fisher information of the bias alone; weights are treated likewise. Training is then
    invariant to the units of measurement, and steps are short enough for clusters that are narrow
    compared with their distances. The second is the same if the kurtosis is at most 3. If the
    kurtosis is far larger, it is half the inverse of the Fisher information
    :math:`\mathrm{Var}(v^2) / (4 \sigma^4)`: otherwise, rare and distant clusters (heavy tails)
    would make the updates of log-variances unstable.

    Let :math:`r` be the redundancy. If :math:`r` columns follow one normal factor, the variance of
    the factor is about

    .. math:: \tau = r \, \mathrm{Var}(v) / \sigma^2

    times that of the noise along it. Gibbs chains then forget their states within about
    :math:`\tau` updates, so that the negative phase lags behind the parameters, and the
    log-likelihood is as much more curved along the factor than along one column. Both factors of
    the metric are therefore multiplied by :math:`\min(1, \tau_0 / \tau)`, where :math:`\tau_0` is
    `MAX_RELAXATION`. Otherwise, the variance of the factor under the model would oscillate, and
    that under the averaged parameters would be too small.

    Parameters
    ----------
    noise : ndarray of shape (n_columns,)
        Variance :math:`\sigma^2` of each unit given the other layer.
    statistics : ColumnStatistics
        Statistics of the columns of the data.

    Returns
    -------
    share, of_variance : ndarray of shape (n_columns,)
        The two factors, which are at most one.
    """
    variance, kurtosis, redundancy = statistics
    share = np.ones_like(noise)
    if variance is not None:
        share = noise / np.maximum(noise, variance)
    heaviness = 0.0 if kurtosis is None else np.maximum(kurtosis - 3, 0) / 2
    of_variance = share**2 / (share + heaviness)
    if redundancy is None:
        return share, of_variance
    reach = MAX_RELAXATION * share
    pace = reach / np.maximum(reach, redundancy)
    return pace * share, pace * of_variance
