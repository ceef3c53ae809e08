"""Partition functions: result type with a standard error, and lower bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.jumps import propose
from skrbm.core.likelihood.exact import n_summed_rows
from skrbm.core.likelihood.weighted_chains import Population
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, like, to_host

# Nats. By Markov's inequality an unbiased estimate of Z is too large by a factor of e^7 with a
# probability of at most 1/1000.
BOUND_MARGIN = 7.0
N_STD_ERRORS = 3  # standard errors between an estimate and its confidence bound
# Effective number of proposals below which their standard error is unreliable.
MIN_EFFECTIVE_PROPOSALS = 10


@final
@dataclass(frozen=True)
class LogPartition:
    """Logarithm of a partition function with its standard error.

    Parameters
    ----------
    value : float
        Log-partition function, in nats.
    std_error : float
        Standard error of `value`, in nats; zero for an exact sum. For "ais" and "reverse_ais", it
        is infinite for a single chain, and unreliable if `effective_sample_size` is below about 10.
    method : {"exact", "ais", "reverse_ais", "bar", "tracked"}
        Method of computation.
    n_chains, n_temperatures : int or None
        Numbers of chains and temperatures of the simulation; None for an exact sum. For "bar",
        `n_chains` is the number of ladders. For "tracked", `n_temperatures` is the number of Gibbs
        steps since the previous estimate.
    effective_sample_size : float or None
        Number of equally weighted chains that is equivalent to the weighted chains, between 1 and
        `n_chains`. For "bar", it is the equivalent number of independent steps, summed over all
        ladders, which may be larger. None for an exact sum.

    Examples
    --------
    >>> print(LogPartition(451.28163, 0.0412, "ais", 100, 10_000, 86.31))
    log Z = 451.282 +- 0.041 nats (ais: 100 chains, 10000 temperatures, effective sample size 86.3)
    >>> float(LogPartition(12.5, 0.0, "exact"))
    12.5
    """

    value: float
    std_error: float
    method: str
    n_chains: int | None = None
    n_temperatures: int | None = None
    effective_sample_size: float | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.effective_sample_size is None:
            return f"log Z = {self.value:.6f} nats ({self.method})"
        unit = "Gibbs steps" if self.method == "tracked" else "temperatures"
        digits = 2
        if 0 < self.std_error < 1:  # two digits of the error
            digits = 1 - math.floor(math.log10(self.std_error))
        return (
            f"log Z = {self.value:.{digits}f} +- {self.std_error:.{digits}f} nats ({self.method}: "
            f"{self.n_chains} chains, {self.n_temperatures} {unit}, effective sample size "
            f"{self.effective_sample_size:.1f})"
        )


def log_partition_at_least(machine: Machine, h: Array) -> float:
    r"""Lower bound on a log-partition function, from the sum over a subset S of hidden states.

    .. math:: \log Z \ge \log \sum_{h \in S} \int e^{-E(v, h)} dv

    For discrete visible units, a sum over their states replaces the integral.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    h : ndarray of shape (n_samples, n_hidden)
        Hidden states; duplicates are counted once.

    Returns
    -------
    log_partition : float
        Lower bound in nats; minus infinity for continuous hidden units.
    """
    if not machine.hidden.is_discrete:
        return -np.inf
    states = like(np.unique(to_host(h), axis=0), h)
    n_rows = n_summed_rows(machine)
    blocks = np.array_split(states, range(n_rows, len(states), n_rows))
    energies = [machine.transposed.free_energy(block) for block in blocks]
    return float(logsumexp(-to_host(np.concatenate(energies))))


def attained_log_partition(
    machine: Machine, v: Array, rng: np.random.Generator, h: Array | None = None
) -> float:
    """Lower confidence bound on a log-partition function, from states that cover its modes.

    The result is the larger of two bounds:

    - The logarithm of the partition function, with its sum restricted to `h` and to hidden states
      drawn given `v` (see `log_partition_at_least`). This bound is tight for few hidden units.
    - An importance sampling estimate from these draws (see `propose`) minus `N_STD_ERRORS` standard
      errors or, if the effective number of draws is at most `MIN_EFFECTIVE_PROPOSALS`, minus
      `BOUND_MARGIN`. This bound is tight for any number of hidden units if `v` covers all modes.

    Parameters
    ----------
    machine : Machine
        Any unit types, in double precision.
    v : ndarray of shape (n_samples, n_visible)
        Visible states. The number of draws is the number of these states.
    rng : numpy.random.Generator
        Source of random numbers.
    h : ndarray of shape (n_chains, n_hidden), default=None
        Further hidden states.

    Returns
    -------
    log_partition : float
        Lower bound in nats.
    """
    states, log_weights = propose(machine, v, len(v), rng)
    draws = Population(states, to_host(log_weights).astype(np.float64))
    is_reliable = draws.effective_sample_size > MIN_EFFECTIVE_PROPOSALS
    margin = N_STD_ERRORS * draws.std_error if is_reliable else BOUND_MARGIN
    states = states if h is None else np.concatenate([h, states])
    return max(log_partition_at_least(machine, states), draws.value - margin)
