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
MAX_EXACT_COLUMNS = 32  # of the smaller layer, whose singular values take no time
N_DIRECTIONS = 4  # followed where both layers are larger: so many values may pass the limit at once
MAX_ITERATIONS, TOLERANCE = 10, 1e-2  # of the leading value, in an update


@final
@dataclass(frozen=True)
class Normalization(Part):
    """Singular values of the weights held where the layers' energies keep some of their curvature.

    In the coordinates of `Machine.lost_curvature`. The singular vectors hardly move in an update: of
    large layers, a subspace iteration follows the leading ones from update to update.
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
        memory["directions"] = directions = _leading_directions(machine, memory.get("directions"))
        memory["lost"] = _hold_within(machine, directions)


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


def _leading_directions(machine: Machine, directions: Array | None) -> Array:
    """Orthonormal hidden directions (n_hidden, n_directions) that span the leading singular vectors.

    By subspace iteration from the directions of the update before, or from random ones.
    """
    left, right = machine.curvature_scales
    if directions is None:
        directions = np.random.default_rng(0).standard_normal((len(right), N_DIRECTIONS))
        directions = directions.astype(machine.weights.dtype)
    before = 0.0
    for _ in range(MAX_ITERATIONS):
        image = machine.weights @ (right[:, None] * directions)
        image = right[:, None] * (machine.weights.T @ (left[:, None] ** 2 * image))
        directions, triangle = np.linalg.qr(image)
        lost = np.abs(triangle[0, 0])
        if abs(lost - before) <= TOLERANCE * lost:
            break
        before = lost
    return directions


def _hold_within(machine: Machine, directions: Array) -> float:
    """Lower the singular values within a span of hidden directions; all of them if none is left."""
    left, right = machine.curvature_scales
    image = left[:, None] * (machine.weights @ (right[:, None] * directions))
    U, values, V = np.linalg.svd(image, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    if excess[-1] > 0:
        return hold_normalizable(machine)
    if excess[0] > 0:
        k = np.count_nonzero(excess)
        lowered = (U[:, :k] * excess[:k]) @ (V[:k] @ directions.T)
        machine.weights[...] -= _inverse(left)[:, None] * lowered * _inverse(right)
    return float(values[0] ** 2)


def _inverse(scales: Array) -> Array:
    """One over the scales, zero where they are."""
    return np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
