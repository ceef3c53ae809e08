"""Rows whose numeric columns are searched for factors or sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from skrbm.core.likelihood.deficit import independent_log_density
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, weighted_mean
from skrbm.core.training.start.initialization import column_variances
from skrbm.core.units import Units

# Numeric columns up to which factors are searched, and rows per column from which they are: a search
# takes 60 ms for 128 columns, and correlations of fewer rows contain false factors.
MAX_FACTOR_COLUMNS, MIN_ROWS_PER_COLUMN = 128, 10
# Smallest variance of a column in the rows that are looked at, relative to that in the data.
MIN_SPREAD = 0.5


@final
@dataclass(frozen=True)
class NumericRows:
    """Rows of the data, and their numeric columns in units of standard deviations of the data.

    Parameters
    ----------
    layer_of : callable
        Function that creates a visible layer in double precision, whose distribution without a
        field has the means of the data and the given variances of the columns.
    rows : ndarray of shape (n_samples, n_visible)
        Rows without missing values, in double precision.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of the columns of the data.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the rows. If None, all rows have equal weights.
    columns : ndarray of int of shape (n_columns,)
        Indices of the numeric columns to search.
    scaled : ndarray of shape (n_samples, n_columns)
        Deviations of these columns from their means, divided by their standard deviations.
    covariance : ndarray of shape (n_columns, n_columns)
        Covariance matrix of `scaled`.
    """

    layer_of: Callable[[Array], Units]
    rows: Array
    mean: Array
    variance: Array
    sample_weight: Array | None
    columns: Array
    scaled: Array
    covariance: Array

    @classmethod
    def of(
        cls,
        layer_of: Callable[[Array], Units],
        rows: Array,
        mean: Array,
        variance: Array,
        sample_weight: Array | None = None,
    ) -> Self | None:
        """Scale the `factor_columns` of rows.

        The parameters are those of the class. A column is left out if its variance in the rows is
        less than `MIN_SPREAD` times its variance in the data. The result is None if fewer than two
        columns are left, or if an element of their covariance matrix is not finite.
        """
        columns = factor_columns(layer_of(variance), variance, len(rows))
        if not len(columns):
            return None
        scaled = (rows[:, columns] - mean[columns]) / np.sqrt(variance[columns])
        covariance = np.cov(scaled, rowvar=False, bias=True, aweights=sample_weight)
        kept = np.flatnonzero(~(covariance.diagonal() < MIN_SPREAD))
        columns, scaled, covariance = columns[kept], scaled[:, kept], covariance[np.ix_(kept, kept)]
        if not (len(kept) > 1 and np.isfinite(covariance).all()):
            return None
        return cls(layer_of, rows, mean, variance, sample_weight, columns, scaled, covariance)

    def layer_and_fields(self, noise: Array, directions: Array) -> tuple[Units, Array]:
        """Visible layer with the given noise, and fields that move its means along directions.

        Parameters
        ----------
        noise : ndarray of shape (n_columns,)
            Variances of the numeric columns given the hidden units, relative to those of the data.
        directions : ndarray of shape (n_columns, n_directions)
            Shifts of the means of the numeric columns, in standard deviations of the noise.

        Returns
        -------
        visible : Units
            Centered visible layer, whose other columns have the variances of the data.
        fields : ndarray of shape (n_visible, n_directions)
            Fields that cause these shifts.
        """
        within = self.variance.copy()
        within[self.columns] *= noise
        visible = self.layer_of(within).recentered(self.mean, np.zeros_like(self.mean))
        fields = np.zeros((len(self.mean), directions.shape[1]))
        responses = column_variances(visible)[self.columns]
        deviation = np.sqrt(self.variance[self.columns])
        fields[self.columns] = directions * (deviation * np.sqrt(noise) / responses)[:, None]
        return visible, fields

    def gain(self, machine: Machine, log_partition: float) -> float:
        """Mean log-likelihood of the rows minus that under independent columns, in nats."""
        energy = weighted_mean(machine.free_energy(self.rows), self.sample_weight)
        return -energy - log_partition - self._independent

    @cached_property
    def _independent(self) -> float:
        """Mean log-likelihood of the rows under independent columns, in nats."""
        density = independent_log_density(self.layer_of(self.variance), self.rows)
        return weighted_mean(density, self.sample_weight)


def factor_columns(visible: Units, variance: Array, n_rows: int) -> Array:
    """Indices of the columns whose factors are searched.

    Parameters
    ----------
    visible : Units
        Visible layer.
    variance : ndarray of shape (n_visible,)
        Variance of the columns of the data.
    n_rows : int
        Number of rows to search.

    Returns
    -------
    columns : ndarray of int of shape (n_columns,)
        All columns that vary and whose variance given the hidden units is learned. The array is
        empty if there are fewer than two of them or more than `MAX_FACTOR_COLUMNS`, or fewer than
        `MIN_ROWS_PER_COLUMN` rows for each of them.
    """
    columns = np.flatnonzero(visible.learns_variance & (variance > 0))
    most = min(MAX_FACTOR_COLUMNS, n_rows // MIN_ROWS_PER_COLUMN)
    return columns if 2 <= len(columns) <= most else columns[:0]
