"""Deficit of a machine's likelihood relative to a simpler model of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from skrbm.core.chains.jumps import extrapolated_rows, rows_near_modes
from skrbm.core.likelihood.partition import N_STD_ERRORS, attained_log_partition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row, spread_rows
from skrbm.core.units import Units

N_DEFICIT_ROWS = 100  # largest number of rows of the data, and of chains
# Largest number of elements, and smallest number, of the rows of data that proposals are drawn from.
MAX_PROPOSED_ELEMENTS, MIN_ROWS = 3 * 2**15, 3
# Widths of the kernels that are tried, in standard deviations of the columns.
KERNEL_WIDTHS = np.geomspace(0.01, 1, 9)
MAX_KERNEL_COLUMNS = 20  # with more columns, a hundred rows are too few for kernels
MIN_DISTINCT_SHARE = 0.9  # of the values of a column; the density of repeated values is infinite


def likelihood_deficit(
    machine: Machine,
    base: Units | None,
    v: Any,
    particles: Array,
    sample_weight: Array | None = None,
) -> float:
    """Lower confidence bound on a machine's loss of log-likelihood against another model.

    The log-partition function is replaced by `attained_log_partition`. Its states are drawn given
    rows of the data, visible states of the chains, extrapolated rows (see `extrapolated_rows`) and
    modes near these, so that modes far from the data count as well.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    base : Units or None
        Layer of independent units, which are the other model. If None, the other model is a kernel
        density estimate (see `kernel_log_density`).
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training data, of which at most `N_DEFICIT_ROWS` rows are used. Means in place of states are
        replaced by states that are drawn with these means.
    particles : ndarray of shape (n_chains, n_hidden)
        Hidden states of the persistent chains, of which at most `N_DEFICIT_ROWS` are used.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows. If None, all rows have a weight of one.

    Returns
    -------
    likelihood_deficit : float
        Mean log-likelihood of a row under the other model, minus an upper bound on that under the
        machine, minus `N_STD_ERRORS` standard errors of the difference, in nats. If the value is
        positive, the machine is significantly worse than the other model. It is minus infinity for
        fewer than two effective rows, whose standard error is unknown.
    """
    machine = machine.astype(np.float64)
    rng, rows = np.random.default_rng(0), spread_rows(v, N_DEFICIT_ROWS).astype(np.float64)
    if rows.shape[0] < 2:
        return -np.inf
    rows = machine.visible.draw_states_of_means(rows, rng)
    weight = spread_rows(sample_weight, N_DEFICIT_ROWS)
    if base is None:
        reference = kernel_log_density(rows, weight)
    else:
        reference = independent_log_density(base, rows)
    if np.isneginf(reference).all():  # unknown
        return -np.inf
    chains = every_kth_row(particles, N_DEFICIT_ROWS).astype(np.float64)
    n_rows = max(MIN_ROWS, MAX_PROPOSED_ELEMENTS // machine.visible.n_columns)
    some, others = dense(spread_rows(rows, n_rows)), every_kth_row(chains, n_rows)
    beyond = extrapolated_rows(machine, some, len(some), rng)
    near = rows_near_modes(machine, beyond)
    v = np.concatenate([some, machine.sample_visible(others, rng), beyond, near])
    bound = attained_log_partition(machine, v, rng, chains)
    difference = reference + machine.free_energy(rows) + bound
    shares = np.ones(len(difference)) if weight is None else weight / weight.max()
    shares = shares / shares.sum()
    if shares @ shares > 0.5:  # fewer than two effective rows
        return -np.inf
    mean = float(shares @ difference)
    error = float(np.sqrt(shares @ (difference - mean) ** 2 * (shares @ shares)))
    return mean - N_STD_ERRORS * error


def independent_log_density(base: Units, rows: Array) -> Array:
    """Log-densities of rows under independent units with the distribution of `base`, in nats."""
    base = base.astype(np.float64)
    return -base.energy(rows) - base.log_partition(base.zero_field(1))


def kernel_log_density(rows: Array, sample_weight: Array | None = None) -> Array:
    """Log-densities of rows under a kernel density estimate from all other rows.

    The kernels are normal. Their width, relative to the standard deviations of the columns, is the
    one of `KERNEL_WIDTHS` with the largest mean log-density.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Rows of real numbers.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows. If None, all rows have a weight of one.

    Returns
    -------
    log_density : ndarray of shape (n_samples,)
        Log-densities in nats. They are minus infinity if there are more than `MAX_KERNEL_COLUMNS`
        columns, if a value is missing, or if less than `MIN_DISTINCT_SHARE` of the values of a
        column are distinct.
    """
    n_rows, n_columns = rows.shape
    n_distinct = [len(np.unique(column)) for column in rows.T]
    unknown = n_columns > MAX_KERNEL_COLUMNS or min(n_distinct) < MIN_DISTINCT_SHARE * n_rows
    if unknown or n_rows < 2 or np.isnan(rows).any():
        return np.full(n_rows, -np.inf)
    scale = rows.std(axis=0)
    squares = cdist(rows / scale, rows / scale, "sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    weight = np.ones(n_rows) if sample_weight is None else sample_weight
    estimates = [
        logsumexp(-squares / (2 * width**2), b=weight, axis=1) - n_columns * np.log(width)
        for width in KERNEL_WIDTHS
    ]
    best: Array = max(estimates, key=lambda estimate: float(np.average(estimate, weights=weight)))
    constant = np.log(scale).sum() + n_columns * np.log(2 * np.pi) / 2
    return best - np.log(weight.sum() - weight) - constant
