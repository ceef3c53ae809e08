"""Scale of hidden states without bounds, in which steps are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.numerics import spread_rows
from skrbm.core.training.part import Part, Step
from skrbm.core.training.preconditioner import Preconditioner

N_SCALE_ROWS = 16  # of a mini-batch, so that the fields of no other rows are asked for twice
SCALE_RATE = 0.02  # weight of a mini-batch in the running variance: 800 rows


@final
@dataclass(frozen=True)
class HiddenScale(Part):
    """Running variance of the hidden states under the data, told to the metric of the step.

    States of two values vary as much from the first update to the last. States without bounds do
    not: their variance grows with the weights, and with it the curvature that a step meets. Chains
    that are farther away than the data count at once: else the steps that should bring them back
    would throw them to the other side.

    Parameters
    ----------
    preconditioner : Preconditioner
        Metric of the step.
    """

    name: ClassVar[str] = "hidden scale"

    preconditioner: Preconditioner

    def move_chains(self, step: Step) -> None:
        """Take note of some rows; the chains stay."""
        memory, hidden = self.memory(step.state), step.machine.hidden
        mean = step.machine.mean_hidden(spread_rows(step.v, N_SCALE_ROWS))
        variance = np.square(mean - step.mean_hidden).mean(axis=0) + 1 / hidden.tail_curvature
        before = memory.get("variance", variance)
        memory["variance"] = variance = before + SCALE_RATE * (variance - before)
        of_chains = np.square(step.state.particles - step.mean_hidden).mean(axis=0)
        self.preconditioner.scale_hidden(np.maximum(variance, of_chains))
