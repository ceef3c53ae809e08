"""Partition functions: an estimate with its error, and a lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from skrbm.core.likelihood.exact import n_summed_rows
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array

SURE_GAP = 7.0  # nats: an unbiased estimate is so much too large less than once in a thousand times


@final
@dataclass(frozen=True)
class LogPartition:
    """Logarithm of a partition function, and how far it can be believed.

    Parameters
    ----------
    value : float
        In nats.
    std_error : float
        Standard error of `value`, in nats: zero for an exact sum. An estimate of it is only as
        good as `effective_sample_size` is large.
    method : {"exact", "ais", "reverse_ais", "bar", "tracked"}
        Where it comes from.
    n_chains, n_temperatures : int or None
        Size of the simulation; None for an exact sum.
    effective_sample_size : float or None
        Number of equally weighted chains that would say as much, between 1 and `n_chains`; None
        for an exact sum.

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
        digits = 2
        if 0 < self.std_error < 1:  # two digits of the error
            digits = 1 - math.floor(math.log10(self.std_error))
        return (
            f"log Z = {self.value:.{digits}f} +- {self.std_error:.{digits}f} nats ({self.method}: "
            f"{self.n_chains} chains, {self.n_temperatures} temperatures, effective sample size "
            f"{self.effective_sample_size:.1f})"
        )


def log_partition_at_least(machine: Machine, h: Array) -> float:
    r"""Lower bound of a partition function: what some hidden states add to it.

    .. math:: \log Z \ge \log \sum_{h \in \text{some}} \int e^{-E(v, h)} dv

    Parameters
    ----------
    machine : Machine
        Any unit types.
    h : ndarray of shape (n_samples, n_hidden)
        Hidden states; one that comes twice counts once.

    Returns
    -------
    log_partition : float
        In nats; minus infinity for continuous hidden units, whose states have a density alone.
    """
    if not machine.hidden.is_discrete:
        return -np.inf
    states = np.unique(h, axis=0)
    n_rows = n_summed_rows(machine)
    blocks = np.array_split(states, range(n_rows, len(states), n_rows))
    energies = [machine.transposed.free_energy(block) for block in blocks]
    return float(logsumexp(-np.concatenate(energies)))
