"""Scale of the steps for unbounded hidden states."""

from __future__ import annotations

import math
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
# If the visible states are bounded, number of updates after which steps decrease as 1 / sqrt(t).
# Without this, the noise of the steps moves the weights along directions in which the likelihood is
# flat, such as rotations of the hidden states, and their average is not a good machine: four
# clusters of bits lose 0.2 to 0.8 nats in 100 epochs (test_clusters_of_bits_are_learned_by_default).
N_FULL_UPDATES = 300
# Factor of the steps of thresholds and asymmetries if the visible states are bounded. These
# parameters act on |h|, which is not centered, so the steps of all units add up: with a factor of 1,
# the clusters lose 0.4 nats in 30 epochs. If the visible states are unbounded, `Normalization`
# bounds the weights, and shorter steps would only delay the learning of strong correlations.
SHAPE_RATE = 0.1


@final
@dataclass(frozen=True)
class HiddenScale(Part):
    """Running variance of the hidden states under the data, which scales the metric of the step.

    The variance is estimated from at most `N_SCALE_ROWS` weighted rows of each mini-batch. For
    unbounded states, it grows with the weights of the machine, and so does the curvature of the
    log-likelihood. The metric uses the larger of two values: this variance, and the current mean
    squared deviation of the chains from the mean hidden state of the mini-batch. With the variance
    alone, steps that should return distant chains to the data would overshoot.

    If the visible states are bounded, both values are multiplied by the square root of the number
    of updates divided by `N_FULL_UPDATES` after as many updates, and the gradients of hidden
    parameters other than the bias, such as thresholds, are multiplied by `SHAPE_RATE`.

    Parameters
    ----------
    preconditioner : Preconditioner
        Preconditioner of the trainer, which receives the variances.
    is_visible_bounded : bool, default=True
        Whether all visible states are bounded.
    has_chains : bool, default=True
        Whether there are persistent chains. If False, the variance under the data is used alone.
    """

    name: ClassVar[str] = "hidden scale"

    preconditioner: Preconditioner
    is_visible_bounded: bool = True
    has_chains: bool = True

    def observe(self, step: Step) -> None:
        """Update the running variance and the scale of the metric."""
        memory, hidden = self.memory(step.state), step.machine.hidden
        _, center = step.positive.averages()
        mean = step.machine.mean_hidden(every_kth_row(step.v, N_SCALE_ROWS))
        weights = every_kth_row(step.positive.weights, N_SCALE_ROWS).astype(mean.dtype, copy=False)
        shares = weights / np.maximum(weights.sum(), np.finfo(mean.dtype).tiny)
        variance = shares @ np.square(mean - center) + 1 / hidden.tail_curvature
        before = memory.get("variance", variance)
        memory["variance"] = variance = before + SCALE_RATE * (variance - before)
        if self.has_chains:
            variance = np.maximum(variance, np.square(step.state.particles - center).mean(axis=0))
        if self.is_visible_bounded:
            variance = variance * math.sqrt(max(1.0, step.state.n_updates / N_FULL_UPDATES))
        self.preconditioner.scale_hidden(variance)

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Shorten the steps of the hidden parameters other than the bias, see the class."""
        if self.is_visible_bounded:
            for name in machine.hidden.parameters.keys() - {"bias"}:
                gradient[f"hidden_{name}"] *= SHAPE_RATE
