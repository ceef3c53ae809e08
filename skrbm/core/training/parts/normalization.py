"""Weights of two layers without bounds, held where their states have a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step

# Share of the layers' curvature that learned weights may take away: chains take some 1 / (1 - share)
# steps to forget, and the gradient of longer ones is not known.
MAX_LOST_CURVATURE = 0.95
MAX_EXACT_COLUMNS = 32  # of the smaller layer, whose eigenvalues take no time
MAX_POWER_STEPS, POWER_TOLERANCE = 30, 1e-3  # of the iteration where both are larger


@final
@dataclass(frozen=True)
class Normalization(Part):
    """Singular values of the weights held where the layers' energies keep some of their curvature.

    In the coordinates of `Machine.lost_curvature`. The leading singular vectors hardly move in an
    update: of large layers, the power iteration follows the first alone.
    """

    name: ClassVar[str] = "normalization"

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Shorten the gradient by the number of steps in which chains answer it.

        Near the end of all distributions they take one over the curvature that is left.
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
    """Lower the singular values, in place, that take away more than `MAX_LOST_CURVATURE`.

    Parameters
    ----------
    machine : Machine
        Any unit types.

    Returns
    -------
    lost_curvature : float
        Before.
    """
    lost = machine.lost_curvature
    if not lost > MAX_LOST_CURVATURE:
        return lost
    left, right = machine.curvature_scales
    rows, columns = np.flatnonzero(left), np.flatnonzero(right)
    scales = left[rows, None] * right[columns]
    own = np.ix_(rows, columns)
    U, values, V = np.linalg.svd(machine.weights[own] * scales, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    machine.weights[own] -= (U * excess) @ V / scales
    return lost


def _leading(
    weights: Array, left: Array, right: Array, direction: Array | None
) -> tuple[float, Array]:
    """Lost curvature by power iteration from a direction, and the direction that it ends in."""
    lost, before = 0.0, -1.0
    if direction is None:
        direction = np.random.default_rng(0).standard_normal(len(right)).astype(weights.dtype)
    for _ in range(MAX_POWER_STEPS):
        image = right * ((left**2 * (weights @ (right * direction))) @ weights)
        before, lost = lost, float(np.linalg.norm(image))
        if lost == 0:  # weights that are zero
            break
        direction = image / lost
        if abs(lost - before) < POWER_TOLERANCE * lost:
            break
    return lost, direction


def _inverse(scales: Array) -> Array:
    """One over the scales, zero where they are."""
    return np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
