"""The log-likelihood of a model while it trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from skrbm.core.likelihood import exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, mean_of_rows, spread_rows

RECORDED_ROWS, N_ANCHORS = 1000, 100
N_CHAINS, CHAIN_ROWS = (100, 500), 100  # at least and at most; rows of a pass for each
FEWEST_STEPS = 20
PASS_SHARE = 16  # updates of a pass for one step of the chains: about 5 % of its time
MANY_STATES = N_CHAINS[0] * FEWEST_STEPS  # of the smaller layer, beyond which chains visit fewer


@final
@dataclass
class LikelihoodRecorder:
    """Keeper of what the log-likelihood of data is under each published model.

    Parameters
    ----------
    model : ArrayModel
        Of the estimator, whose random streams it leaves where they are.
    n_rows, n_updates : int
        Rows and updates of a pass, of whose cost this is a small part.
    dtype : dtype
        Precision of the states of chains.
    """

    model: Any
    n_rows: int
    n_updates: int
    dtype: Any
    tracker: PartitionTracker | None = None

    @property
    def correction(self) -> float:
        """By how much log-likelihoods of before were too high when compared with those of now."""
        return 0.0 if self.tracker is None else self.tracker.correction

    def log_partition(self, machine: Machine, v: Any) -> LogPartition:
        """Partition function of the next model: exact where that visits no more states.

        Chains may jump to rows of the data, as those of training do.
        """
        n_steps = max(FEWEST_STEPS, self.n_updates // PASS_SHARE)
        if exact.smaller_discrete(machine).visible.n_states <= MANY_STATES:
            return LogPartition(exact.log_partition(machine.astype(np.float64)), 0.0, "exact")
        if self.tracker is None:
            rbm = self.model.rbm
            # Streams of their own: those of training and inference stay where they are.
            rng = np.random.Generator(rbm._annealing_rng.bit_generator.jumped())
            base = self.model.base_layer(rbm._statistics)
            anchors = dense(spread_rows(v, N_ANCHORS))
            self.tracker = PartitionTracker(
                base,
                machine,
                rng,
                dtype=self.dtype,
                n_chains=int(np.clip(self.n_rows // CHAIN_ROWS, *N_CHAINS)),
                max_chains=N_CHAINS[1],
                anchors=anchors,
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
                few = spread_rows(v, RECORDED_ROWS).astype(machine.dtype, copy=False)
                own = None if weight is None else spread_rows(weight, RECORDED_ROWS)
                mean = mean_of_rows(machine.free_energy(few), own)
                notes[f"{prefix}log_likelihood"] = -mean - log_partition.value
                notes[f"{prefix}log_likelihood_std_error"] = log_partition.std_error
        return notes
