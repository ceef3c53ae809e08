"""Bound on the singular values of the weights, which keeps unbounded layers normalizable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step

# Largest share of the layers' curvature that the weights may cancel. Chains decorrelate in about
# 1 / (1 - share) steps; with a larger share the negative phase would be unreliable.
MAX_LOST_CURVATURE = 0.95
MAX_EXACT_COLUMNS = 32  # columns of the smaller layer up to which an exact decomposition is cheap
MAX_POWER_STEPS, POWER_TOLERANCE = 30, 1e-3  # of the power iteration, for larger layers


@final
@dataclass(frozen=True)
class Normalization(Part):
    """Bound on the singular values of the weights that keeps the distribution normalizable.

    The singular values are those of the scaled weights of `Machine.lost_curvature`. The leading
    singular vector hardly changes in an update, so that for large layers a power iteration tracks
    that vector alone.
    """

    name: ClassVar[str] = "normalization"

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Divide the gradient by the relaxation time of the chains.

        Close to the bound, it is about one Gibbs step divided by the remaining share of the
        curvature.
        """
        kept = 1 - min(self.memory(step.state).get("lost", 0.0), MAX_LOST_CURVATURE)
        for array in gradient.values():
            array *= kept

    def after_step(self, step: Step, machine: Machine) -> None:
        memory = self.memory(step.state)
        if min(machine.weights.shape) <= MAX_EXACT_COLUMNS:
            memory["lost"] = hold_normalizable(machine)
            return
        left, right = machine.curvature_scales
        lost, direction = _leading(machine.weights, left, right, memory.get("direction"))
        memory["lost"], memory["direction"] = lost, direction
        if lost > MAX_LOST_CURVATURE:
            share = 1 - np.sqrt(MAX_LOST_CURVATURE / lost)
            image = machine.weights @ (right * direction)
            machine.weights[...] -= share * np.outer(image, _inverse(right) * direction)


def hold_normalizable(machine: Machine) -> float:
    """Clip, in place, the singular values that cancel more than `MAX_LOST_CURVATURE`.

    Parameters
    ----------
    machine : Machine
        Machine of any unit types.

    Returns
    -------
    lost_curvature : float
        Value before clipping.
    """
    lost = machine.lost_curvature
    if not lost > MAX_LOST_CURVATURE:
        return lost
    left, right = machine.curvature_scales
    rows, columns = np.flatnonzero(left), np.flatnonzero(right)
    scales = left[rows, None] * right[columns]
    block = np.ix_(rows, columns)
    U, values, V = np.linalg.svd(machine.weights[block] * scales, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    machine.weights[block] -= (U * excess) @ V / scales
    return lost


def _leading(
    weights: Array, left: Array, right: Array, direction: Array | None
) -> tuple[float, Array]:
    """Lost curvature and leading right singular vector by power iteration from `direction`."""
    lost, before = 0.0, -1.0
    if direction is None:
        direction = np.random.default_rng(0).standard_normal(len(right)).astype(weights.dtype)
    for _ in range(MAX_POWER_STEPS):
        image = right * ((left**2 * (weights @ (right * direction))) @ weights)
        before, lost = lost, float(np.linalg.norm(image))
        if lost == 0:  # all weights are zero
            break
        direction = image / lost
        if abs(lost - before) < POWER_TOLERANCE * lost:
            break
    return lost, direction


def _inverse(scales: Array) -> Array:
    """Reciprocal of the scales; zero where a scale is zero."""
    return np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
