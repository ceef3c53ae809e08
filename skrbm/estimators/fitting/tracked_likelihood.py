"""The log-likelihood of a model while it trains."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.likelihood import exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, mean_of_rows, spread_rows
from skrbm.core.units import Units
from skrbm.estimators.inference.log_partition import attained_by_rows, is_below
from skrbm.estimators.input.validation import AnnealingWarning, warn_user

MAX_LIKELIHOOD_ROWS = 1000  # rows whose free energies are averaged in an epoch
N_TRACKING_ANCHORS, N_LIKELIEST = 100, 8  # rows that chains may jump to, of all kinds and others
# Errors and cost with these: benchmarks/results/tracking_small.json and tracking_large.json.
N_TRACKING_CHAINS = 100, 500  # at least and at most
ROWS_PER_CHAIN = 100  # rows of an epoch for each chain
MIN_TRACKING_STEPS = 20  # steps of each chain in an epoch
UPDATES_PER_STEP = 16  # updates of an epoch for one step of the chains: about 5 % of its time


@final
@dataclass
class LikelihoodRecorder:
    """Recorder of the log-likelihood of data under each published model.

    Parameters
    ----------
    base : Units
        Visible layer without a field that has the statistics of the data.
    rng : numpy.random.Generator
        Stream of annealing, which stays where it is.
    n_rows, n_updates : int
        Rows and updates of an epoch, of whose cost this is a small part.
    dtype : dtype
        Precision of the states of chains.
    tracker : PartitionTracker, default=None
        Chains to go on with; None for new ones.

    Attributes
    ----------
    raised : float
        Nats by which the last value was raised to what the rows alone add to it.
    has_warned : bool
        Whether the user knows of such a value.
    """

    base: Units
    rng: np.random.Generator
    n_rows: int
    n_updates: int
    dtype: Any
    tracker: PartitionTracker | None = None
    raised: float = field(default=0.0, init=False)
    has_warned: bool = field(default=False, init=False)

    # States of the smaller layer beyond which chains visit fewer.
    max_states: ClassVar[int] = N_TRACKING_CHAINS[0] * MIN_TRACKING_STEPS

    @property
    def correction(self) -> float:
        """By how much log-likelihoods of before were too high when compared with those of now."""
        return self.raised + (0.0 if self.tracker is None else self.tracker.correction)

    def log_partition(self, machine: Machine, v: Any, free_energy: Array) -> LogPartition:
        """Partition function of the next model: exact where that visits no more states.

        Chains may jump to rows of the data, as those of training do: to some of all kinds, and to
        the likeliest. A value that is less than what the rows alone add to it is raised to that.
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
                f"The tracked {result} is too low: the rows alone make it {bound:.6g} nats. This log-"
                f"likelihood, and perhaps others, is an upper bound: take that of log_partition.",
                AnnealingWarning,
            )
        self.raised = max(0.0, bound - result.value) if np.isfinite(bound) else 0.0
        std_error = max(result.std_error, self.raised)
        return replace(result, value=result.value + self.raised, std_error=std_error)

    def record(
        self, machine: Machine, rows: dict[str, tuple[Any, Array | None]]
    ) -> dict[str, float]:
        """Mean log-likelihoods, in nats, with the standard error of the partition function.

        Parameters
        ----------
        machine : Machine
            What would be published now.
        rows : dict of str to tuple
            Rows with their weights or None, by the prefix of what is recorded of them.

        Returns
        -------
        notes : dict of str to float
            For each prefix, "log_likelihood" and "log_likelihood_std_error"; NaN where the model
            is beyond the range of numbers.
        """
        notes = {}
        with np.errstate(all="ignore"):
            few = {name: spread_rows(v, MAX_LIKELIHOOD_ROWS) for name, (v, _) in rows.items()}
            free = {name: machine.free_energy(v.astype(machine.dtype)) for name, v in few.items()}
            log_partition = self.log_partition(machine, few[""], free[""])
            for prefix, (_, weight) in rows.items():
                own = None if weight is None else spread_rows(weight, MAX_LIKELIHOOD_ROWS)
                notes[f"{prefix}log_likelihood"] = (
                    -mean_of_rows(free[prefix], own) - log_partition.value
                )
                notes[f"{prefix}log_likelihood_std_error"] = log_partition.std_error
        return notes
