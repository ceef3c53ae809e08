"""Deficit of a machine's likelihood relative to a model of independent visible units."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.jumps import propose
from skrbm.core.likelihood.partition import BOUND_MARGIN, log_partition_at_least
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, every_kth_row
from skrbm.core.units import Units

N_DEFICIT_ROWS = 100  # largest number of rows of the data, and of chains
N_STD_ERRORS = 3  # standard errors between the mean and the lower confidence bound


def likelihood_deficit(
    machine: Machine, base: Units, v: Any, particles: Array, sample_weight: Array | None = None
) -> float:
    """Lower confidence bound on a machine's loss of log-likelihood against independent units.

    The log-partition function is replaced by a lower bound. For discrete hidden units, the bound is
    the logarithm of the partition function, with its sum restricted to the hidden states of the
    chains and to hidden states drawn given the data. These usually contribute most to the sum. For
    continuous hidden units, the bound is an importance sampling estimate minus `BOUND_MARGIN`. The
    probability that this bound exceeds the true value is at most 1/1000.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    base : Units
        Visible layer whose distribution without a field is the independent model.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training data, of which at most `N_DEFICIT_ROWS` rows are used.
    particles : ndarray of shape (n_chains, n_hidden)
        Hidden states of the persistent chains, of which at most `N_DEFICIT_ROWS` are used. They are
        not used for continuous hidden units.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows. If None, all rows have a weight of one.

    Returns
    -------
    likelihood_deficit : float
        Mean log-likelihood of a row under the independent model, minus an upper bound on the mean
        log-likelihood under the machine, in nats. `N_STD_ERRORS` standard errors of this difference
        are subtracted. If the result is positive, the machine is significantly worse than the
        independent model.
    """
    machine, base = machine.astype(np.float64), base.astype(np.float64)
    rows = every_kth_row(v, N_DEFICIT_ROWS).astype(np.float64)
    weight = None if sample_weight is None else every_kth_row(sample_weight, N_DEFICIT_ROWS)
    rng = np.random.default_rng(0)
    if machine.hidden.is_discrete:
        given_data = machine.sample_hidden(rows, rng)
        chains = every_kth_row(particles, N_DEFICIT_ROWS).astype(np.float64)
        bound = log_partition_at_least(machine, np.concatenate([chains, given_data]))
    else:
        _, log_weights = propose(machine, rows, N_DEFICIT_ROWS, rng)
        bound = float(logsumexp(log_weights)) - np.log(N_DEFICIT_ROWS) - BOUND_MARGIN
    independent = -base.energy(rows) - base.log_partition(base.zero_field(1))
    difference = independent + machine.free_energy(rows) + bound
    mean = float(np.average(difference, weights=weight))
    error = float(np.sqrt(np.average((difference - mean) ** 2, weights=weight) / len(difference)))
    return mean - N_STD_ERRORS * error
