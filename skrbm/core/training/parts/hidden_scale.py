"""Scale of the steps for unbounded hidden states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import every_kth_row
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step
from skrbm.core.training.preconditioner import Preconditioner

# Largest number of rows of a mini-batch from which the variance is estimated; their hidden means
# are computed again.
N_SCALE_ROWS = 16
SCALE_RATE = 0.02  # weight of a mini-batch in the running variance, which averages about 800 rows
# Factor of the steps of thresholds and asymmetries if the visible states are bounded. These
# parameters act on |h|, which is not centered, so the steps of all units add up: with a factor of 1,
# clusters of bits lose 1 nat in 10 epochs and 1.5 in 30, with 0.1 they lose 0.05 and 0.12
# (test_clusters_of_bits_are_learned_by_default). If the visible states are unbounded,
# `Normalization` bounds the weights, and a factor below 1 would only delay the learning of strong
# correlations.
SHAPE_RATE = 0.1


@final
@dataclass(frozen=True)
class HiddenScale(Part):
    """Running variance of the hidden states under the data, which scales the metric of the step.

    The variance is estimated from at most `N_SCALE_ROWS` rows of each mini-batch. For unbounded
    states, it grows with the weights, and so does the curvature of the log-likelihood. The metric
    uses the larger of two values: this variance, and the current mean squared deviation of the
    chains from the mean hidden state of the mini-batch. With the variance alone, steps that should
    return distant chains to the data would overshoot.

    The gradients of hidden parameters other than the bias, such as thresholds, are also multiplied
    by a constant factor.

    Parameters
    ----------
    preconditioner : Preconditioner
        Preconditioner of the trainer, which receives the variances.
    shape_rate : float, default=SHAPE_RATE
        Factor of the gradient of the hidden parameters other than the bias.
    """

    name: ClassVar[str] = "hidden scale"

    preconditioner: Preconditioner
    shape_rate: float = SHAPE_RATE

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

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Multiply the gradient of the hidden parameters other than the bias by `shape_rate`."""
        for name in machine.hidden.parameters.keys() - {"bias"}:
            gradient[f"hidden_{name}"] *= self.shape_rate
