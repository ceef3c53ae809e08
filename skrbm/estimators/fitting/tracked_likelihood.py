"""The log-likelihood of a model while it trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.likelihood import exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, mean_of_rows, spread_rows
from skrbm.core.units import Units

MAX_LIKELIHOOD_ROWS = 1000  # rows whose free energies are averaged in an epoch
N_TRACKING_ANCHORS = 100  # rows that chains may jump to
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
    """

    base: Units
    rng: np.random.Generator
    n_rows: int
    n_updates: int
    dtype: Any
    tracker: PartitionTracker | None = None

    # States of the smaller layer beyond which chains visit fewer.
    max_states: ClassVar[int] = N_TRACKING_CHAINS[0] * MIN_TRACKING_STEPS

    @property
    def correction(self) -> float:
        """By how much log-likelihoods of before were too high when compared with those of now."""
        return 0.0 if self.tracker is None else self.tracker.correction

    def log_partition(self, machine: Machine, v: Any) -> LogPartition:
        """Partition function of the next model: exact where that visits no more states.

        Chains may jump to rows of the data, as those of training do.
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
                anchors=dense(spread_rows(v, N_TRACKING_ANCHORS)),
            )
        return self.tracker.follow(machine, n_steps)

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
            log_partition = self.log_partition(machine, rows[""][0])
            for prefix, (v, weight) in rows.items():
                few = spread_rows(v, MAX_LIKELIHOOD_ROWS).astype(machine.dtype, copy=False)
                own = None if weight is None else spread_rows(weight, MAX_LIKELIHOOD_ROWS)
                mean = mean_of_rows(machine.free_energy(few), own)
                notes[f"{prefix}log_likelihood"] = -mean - log_partition.value
                notes[f"{prefix}log_likelihood_std_error"] = log_partition.std_error
        return notes
