"""Deficit of a machine's likelihood relative to a simpler model of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from skrbm.core.chains.jumps import propose
from skrbm.core.likelihood.partition import BOUND_MARGIN, log_partition_at_least
from skrbm.core.likelihood.weighted_chains import Population
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row
from skrbm.core.units import Units

N_DEFICIT_ROWS = 100  # largest number of rows of the data, and of chains
MAX_PROPOSED_ELEMENTS, MIN_PROPOSALS = 2**18, 14  # of the visible states of all proposals
N_STD_ERRORS = 3  # standard errors between an estimate and its confidence bound
# Effective number of proposals below which their standard error is unreliable.
MIN_EFFECTIVE_PROPOSALS = 10
# Widths of the kernels that are tried, in standard deviations of the columns.
KERNEL_WIDTHS = np.geomspace(0.01, 1, 9)
MAX_KERNEL_COLUMNS = 20  # with more columns, a hundred rows are too few for kernels
MIN_DISTINCT_SHARE = 0.9  # of the values of a column; the density of repeated values is infinite

LogDensity = Callable[[Array, Array | None], Array]


def likelihood_deficit(
    machine: Machine,
    log_density: LogDensity,
    v: Any,
    particles: Array,
    sample_weight: Array | None = None,
) -> float:
    """Lower confidence bound on a machine's loss of log-likelihood against another model.

    The log-partition function is replaced by the larger of two lower bounds:

    - The logarithm of the partition function, with its sum restricted to the hidden states of the
      chains and to hidden states drawn given the data. This bound is tight for few hidden units,
      and if the chains are in a mode far from the data. For continuous hidden units, it is minus
      infinity.
    - An importance sampling estimate (see `jumps.propose`) minus `N_STD_ERRORS` standard errors or,
      if the effective number of proposals is less than `MIN_EFFECTIVE_PROPOSALS`, minus
      `BOUND_MARGIN`. Hidden states are proposed given rows of the data and visible states of the
      chains. This bound is tight for any number of hidden units if these rows and states cover all
      modes.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    log_density : callable
        Function that returns the log-probabilities or log-densities of rows under the other model.
        Its arguments are the rows and their weights, or None.
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
    rng, rows = np.random.default_rng(0), every_kth_row(v, N_DEFICIT_ROWS).astype(np.float64)
    if rows.shape[0] < 2:
        return -np.inf
    rows = machine.visible.draw_states_of_means(rows, rng)
    weight = None if sample_weight is None else every_kth_row(sample_weight, N_DEFICIT_ROWS)
    reference = log_density(rows, weight)
    if np.isneginf(reference).all():  # unknown
        return -np.inf
    chains = every_kth_row(particles, N_DEFICIT_ROWS).astype(np.float64)
    states = np.concatenate([chains, machine.sample_hidden(rows, rng)])
    bound = max(
        log_partition_at_least(machine, states), _proposed_bound(machine, rows, chains, rng)
    )
    difference = reference + machine.free_energy(rows) + bound
    shares = np.ones(len(difference)) if weight is None else weight / weight.max()
    shares = shares / shares.sum()
    if shares @ shares > 0.5:  # fewer than two effective rows
        return -np.inf
    mean = float(shares @ difference)
    error = float(np.sqrt(shares @ (difference - mean) ** 2 * (shares @ shares)))
    return mean - N_STD_ERRORS * error


def independent_log_density(base: Units) -> LogDensity:
    """Log-density of independent units with the distribution of `base` without a field."""
    base = base.astype(np.float64)

    def log_density(rows: Array, sample_weight: Array | None) -> Array:
        return -base.energy(rows) - base.log_partition(base.zero_field(1))

    return log_density


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


def _proposed_bound(machine: Machine, rows: Any, chains: Array, rng: np.random.Generator) -> float:
    """Lower confidence bound on log Z by importance sampling, see `likelihood_deficit`."""
    most = max(MIN_PROPOSALS, MAX_PROPOSED_ELEMENTS // machine.visible.n_columns)
    n_proposals = min(most, 2 * N_DEFICIT_ROWS)
    rows, chains = (every_kth_row(x, n_proposals // 2) for x in (rows, chains))
    v = np.concatenate([dense(rows), machine.sample_visible(chains, rng)])
    draws = Population(*propose(machine, v, n_proposals, rng))
    is_reliable = draws.effective_sample_size > MIN_EFFECTIVE_PROPOSALS
    return draws.value - (N_STD_ERRORS * draws.std_error if is_reliable else BOUND_MARGIN)
