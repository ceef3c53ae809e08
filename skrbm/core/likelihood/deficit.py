"""Deficit of a model's likelihood against independent columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.jumps import propose
from skrbm.core.likelihood.partition import SURE_GAP, log_partition_at_least
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, spread_rows
from skrbm.core.units import Units

N_DEFICIT_ROWS = 100  # of the data, and as many chains
N_STD_ERRORS = 3  # below the estimate, where a deficit is taken for certain


def likelihood_deficit(
    machine: Machine, base: Units, v: Any, particles: Array, sample_weight: Array | None = None
) -> float:
    """Lower confidence bound of the likelihood deficit against independent columns, in nats.

    No partition function is needed: every hidden state adds to it what it is worth, and the states
    of the chains and those given the data are worth most. For continuous hidden units, draws given
    the data make an unbiased estimate, which is too large by `SURE_GAP` once in a thousand times.

    Parameters
    ----------
    machine : Machine
        As learned.
    base : Units
        Visible layer that resembles the data without a field.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training data, of which at most a hundred rows are looked at.
    particles : ndarray of shape (n_chains, n_hidden)
        Hidden states of the chains.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    likelihood_deficit : float
        Least difference of the mean log-likelihoods that is certain within three standard errors, in
        nats; negative where nothing is certain.
    """
    machine, base = machine.astype(np.float64), base.astype(np.float64)
    rows = spread_rows(v, N_DEFICIT_ROWS).astype(np.float64)
    weight = None if sample_weight is None else spread_rows(sample_weight, N_DEFICIT_ROWS)
    rng = np.random.default_rng(0)
    if machine.hidden.is_discrete:
        given_data = machine.sample_hidden(rows, rng)
        chains = spread_rows(particles, N_DEFICIT_ROWS).astype(np.float64)
        bound = log_partition_at_least(machine, np.concatenate([chains, given_data]))
    else:
        _, log_weights = propose(machine, rows, N_DEFICIT_ROWS, rng)
        bound = float(logsumexp(log_weights)) - np.log(N_DEFICIT_ROWS) - SURE_GAP
    independent = -base.energy(rows) - base.log_partition(base.zero_field(1))
    difference = independent + machine.free_energy(rows) + bound
    mean = float(np.average(difference, weights=weight))
    error = float(np.sqrt(np.average((difference - mean) ** 2, weights=weight) / len(difference)))
    return mean - N_STD_ERRORS * error
