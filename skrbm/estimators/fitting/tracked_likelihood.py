"""Log-likelihood of a model during training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.likelihood import exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows, weighted_mean
from skrbm.core.units import Units
from skrbm.estimators.inference.log_partition import attained_by_rows, is_below
from skrbm.estimators.input.validation import AnnealingWarning, warn_user

MAX_LIKELIHOOD_ROWS = 1000  # rows whose free energies are averaged in an epoch
N_TRACKING_ANCHORS, N_LIKELIEST = 100, 8  # proposals of jumps: evenly spread rows, most likely rows
# Errors and cost of these settings: benchmarks/results/tracking_small.json and tracking_large.json.
N_TRACKING_CHAINS = 100, 500  # smallest and largest number of chains
ROWS_PER_CHAIN = 100  # training rows per chain
MIN_TRACKING_STEPS = 20  # smallest limit of the number of Gibbs steps of each chain per epoch
UPDATES_PER_STEP = 16  # updates per Gibbs step of the chains: about 5 % of the time of an epoch


@final
@dataclass
class LikelihoodRecorder:
    """Recorder that tracks the partition function and computes log-likelihoods after each epoch.

    Parameters
    ----------
    base : Units
        Visible layer of independent units with the means and variances of the data.
    rng : numpy.random.Generator
        Random stream of annealing. It is not advanced.
    n_rows, n_updates : int
        Number of training rows, and number of updates per epoch. The number of chains depends on
        `n_rows`, and the largest number of Gibbs steps per epoch depends on `n_updates`.
    dtype : dtype
        Floating-point type of the states of the chains.
    tracker : PartitionTracker, default=None
        Tracker whose chains are continued. If None, new chains are created when they are needed.

    Attributes
    ----------
    raised : float
        Amount in nats by which the last estimate of the log-partition was raised, because it was
        less than the lower bound computed from the rows; otherwise zero.
    has_warned : bool
        Whether a warning has been issued because an estimate was below the bound (see `is_below`).
    row_scores : dict of str to tuple
        Log-likelihoods of the rows of the last record in nats, without the log-partition, and
        weights of these rows; the keys are the prefixes of `record`.
    """

    base: Units
    rng: np.random.Generator
    n_rows: int
    n_updates: int
    dtype: Any
    tracker: PartitionTracker | None = None
    raised: float = field(default=0.0, init=False)
    has_warned: bool = field(default=False, init=False)
    row_scores: dict[str, tuple[Array, Array | None]] = field(default_factory=dict, init=False)

    # Largest number of states of a layer for an exact sum: as many as 100 chains visit in 20 steps.
    max_states: ClassVar[int] = N_TRACKING_CHAINS[0] * MIN_TRACKING_STEPS

    @property
    def correction(self) -> float:
        """Number of nats to add to the last log-likelihood to compare it with earlier ones.

        It is the sum of `raised` and of the changes of the estimated log-partition when chains were
        replaced.
        """
        return self.raised + (0.0 if self.tracker is None else self.tracker.correction)

    def log_partition(self, machine: Machine, v: Any, free_energy: Array) -> LogPartition:
        """Log-partition of a machine, in nats.

        It is exact if a layer has at most `max_states` states, and otherwise an estimate. Chains
        may jump to evenly spread rows of `v`, and to the rows with the lowest free energies. If all
        columns take the same few values (`support.values`), the sum of exp(-F) over the distinct
        rows of `v` with these values is a lower bound of the partition function. An estimate below
        this bound is raised to it.
        """
        n_steps = max(MIN_TRACKING_STEPS, self.n_updates // UPDATES_PER_STEP)
        if exact.smaller_discrete(machine).visible.n_states <= self.max_states:
            return LogPartition(exact.log_partition(machine.astype(np.float64)), 0.0, "exact")
        if self.tracker is None:
            bits: Any = self.rng.bit_generator
            self.tracker = PartitionTracker(
                self.base,
                machine,
                np.random.Generator(bits.jumped()),
                dtype=self.dtype,
                n_chains=int(np.clip(self.n_rows // ROWS_PER_CHAIN, *N_TRACKING_CHAINS)),
                max_chains=N_TRACKING_CHAINS[1],
            )
        rows = np.arange(len(free_energy))
        likeliest = np.argsort(free_energy)[:N_LIKELIEST]
        anchors = np.concatenate([spread_rows(rows, N_TRACKING_ANCHORS), likeliest])
        result = self.tracker.follow(machine, n_steps, dense(v[anchors]))
        bound = attained_by_rows(v, free_energy, machine.visible.support.values)
        if is_below(result, bound) and not self.has_warned:
            self.has_warned = True
            warn_user(
                f"The tracked {result} is too low: the rows alone contribute {bound:.6g} nats. This "
                f"log-likelihood, and perhaps others, is an upper bound. Use log_partition instead.",
                AnnealingWarning,
            )
        self.raised = max(0.0, bound - result.value) if np.isfinite(bound) else 0.0
        std_error = max(result.std_error, self.raised)
        return replace(result, value=result.value + self.raised, std_error=std_error)

    def record(self, machine: Machine, rows: Mapping[str, Any]) -> dict[str, float]:
        """Compute mean log-likelihoods, and the standard error of the log-partition, in nats.

        Each mean is over at most `MAX_LIKELIHOOD_ROWS` evenly spread rows.

        Parameters
        ----------
        machine : Machine
            Plain machine after the epoch.
        rows : dict of str to ScoredRows
            Rows and their weights. The keys are prefixes of column names in the history; the
            training rows have the prefix "".

        Returns
        -------
        notes : dict of str to float
            Values of "log_likelihood" and "log_likelihood_std_error" for each prefix, which is
            prepended to these names. A log-likelihood is NaN or infinite if the energies of the
            model overflow.
        """
        notes = {}
        with np.errstate(all="ignore"):
            few = {name: spread_rows(v, MAX_LIKELIHOOD_ROWS) for name, (v, *_) in rows.items()}
            free = {name: machine.free_energy(v.astype(machine.dtype)) for name, v in few.items()}
            log_partition = self.log_partition(machine, few[""], free[""])
            for prefix, (_, weight, _) in rows.items():
                few_weights = spread_rows(weight, MAX_LIKELIHOOD_ROWS)
                self.row_scores[prefix] = -free[prefix], few_weights
                mean = weighted_mean(*self.row_scores[prefix]) - log_partition.value
                notes[f"{prefix}log_likelihood"] = mean
                notes[f"{prefix}log_likelihood_std_error"] = log_partition.std_error
        return notes
