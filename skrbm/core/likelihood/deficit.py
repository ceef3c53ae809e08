"""Deficit of a machine's likelihood relative to a model of independent visible units."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.jumps import propose
from skrbm.core.likelihood.partition import BOUND_MARGIN, log_partition_at_least
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row
from skrbm.core.units import Units

N_DEFICIT_ROWS = 100  # largest number of rows of the data, and of chains
MAX_PROPOSED_ELEMENTS, MIN_PROPOSALS = 2**18, 20  # of the visible states of all proposals
N_STD_ERRORS = 3  # standard errors between an estimate and its confidence bound
# Effective number of proposals below which their standard error is unreliable.
MIN_EFFECTIVE_PROPOSALS = 10


def likelihood_deficit(
    machine: Machine, base: Units, v: Any, particles: Array, sample_weight: Array | None = None
) -> float:
    """Lower confidence bound on a machine's loss of log-likelihood against independent units.

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
    base : Units
        Visible layer whose distribution without a field is the independent model.
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
        Mean log-likelihood of a row under the independent model, minus an upper bound on that under
        the machine, minus `N_STD_ERRORS` standard errors of the difference, in nats. If the value
        is positive, the machine is significantly worse than the independent model. It is minus
        infinity for a single row, whose standard error is unknown.
    """
    machine, base = machine.astype(np.float64), base.astype(np.float64)
    rng, rows = np.random.default_rng(0), every_kth_row(v, N_DEFICIT_ROWS).astype(np.float64)
    if rows.shape[0] < 2:
        return -np.inf
    rows = machine.visible.draw_states_of_means(rows, rng)
    chains = every_kth_row(particles, N_DEFICIT_ROWS).astype(np.float64)
    weight = None if sample_weight is None else every_kth_row(sample_weight, N_DEFICIT_ROWS)
    states = np.concatenate([chains, machine.sample_hidden(rows, rng)])
    bound = max(
        log_partition_at_least(machine, states), _proposed_bound(machine, rows, chains, rng)
    )
    independent = -base.energy(rows) - base.log_partition(base.zero_field(1))
    difference = independent + machine.free_energy(rows) + bound
    mean = float(np.average(difference, weights=weight))
    error = float(np.sqrt(np.average((difference - mean) ** 2, weights=weight) / len(difference)))
    return mean - N_STD_ERRORS * error


def _proposed_bound(machine: Machine, rows: Any, chains: Array, rng: np.random.Generator) -> float:
    """Lower confidence bound on log Z by importance sampling, see `likelihood_deficit`."""
    most = max(MIN_PROPOSALS, MAX_PROPOSED_ELEMENTS // machine.visible.n_columns)
    n_proposals = min(most, 2 * N_DEFICIT_ROWS)
    rows, chains = (every_kth_row(x, n_proposals // 2) for x in (rows, chains))
    v = np.concatenate([dense(rows), machine.sample_visible(chains, rng)])
    _, log_weights = propose(machine, v, n_proposals, rng)
    log_sum = logsumexp(log_weights)
    inverse_size = float(np.exp(logsumexp(2 * log_weights) - 2 * log_sum))
    margin = BOUND_MARGIN
    if inverse_size * MIN_EFFECTIVE_PROPOSALS < 1:
        margin = N_STD_ERRORS * np.sqrt(max(0.0, inverse_size - 1 / n_proposals))
    return float(log_sum - np.log(n_proposals) - margin)
