"""Running variance of unbounded hidden states, which scales the metric of the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.numerics import every_kth_row
from skrbm.core.training.part import Part, Step
from skrbm.core.training.preconditioner import Preconditioner

N_SCALE_ROWS = 16  # largest number of rows of a mini-batch; their hidden means are computed again
SCALE_RATE = 0.02  # weight of a mini-batch in the running variance, which averages about 800 rows


@final
@dataclass(frozen=True)
class HiddenScale(Part):
    """Running variance of the hidden states under the data, which scales the metric of the step.

    The variance is estimated from at most `N_SCALE_ROWS` rows of each mini-batch. For unbounded
    states, it grows with the weights, and so does the curvature of the log-likelihood. The
    metric uses the larger of two values: this variance, and the current mean squared deviation of
    the chains from the mean of the mini-batch. With the variance alone, steps that should return
    distant chains to the data would overshoot.

    Parameters
    ----------
    preconditioner : Preconditioner
        Preconditioner of the trainer, which receives the variances.
    """

    name: ClassVar[str] = "hidden scale"

    preconditioner: Preconditioner

    def observe(self, step: Step) -> None:
        """Update the running variance and the scale of the metric."""
        memory, hidden = self.memory(step.state), step.machine.hidden
        _, center = step.positive.averages()
        mean = step.machine.mean_hidden(every_kth_row(step.v, N_SCALE_ROWS))
        variance = np.square(mean - center).mean(axis=0) + 1 / hidden.tail_curvature
        before = memory.get("variance", variance)
        memory["variance"] = variance = before + SCALE_RATE * (variance - before)
        of_chains = np.square(step.state.particles - center).mean(axis=0)
        self.preconditioner.scale_hidden(np.maximum(variance, of_chains))
