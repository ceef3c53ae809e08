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
N_DIRECTIONS = 4  # followed at first where both layers are larger
MIN_DECAY = 0.5  # of the limit: the least of the values followed, or more directions are needed
N_ITERATIONS = 3  # an update, each of which leaves a share `MIN_DECAY` of what is not followed


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
        directions = memory.get("directions")
        if directions is None:
            directions = _random_directions(machine, N_DIRECTIONS)
        directions = _iterated(machine, directions)
        values = _hold_within(machine, directions)
        if values[-1] ** 2 > MIN_DECAY * MAX_LOST_CURVATURE:
            more = min(2 * len(values), len(directions)) - len(values)
            directions = np.hstack([directions, _random_directions(machine, more)])
        memory["lost"], memory["directions"] = float(values[0] ** 2), directions


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


def _random_directions(machine: Machine, n_directions: int) -> Array:
    """Hidden directions (n_hidden, n_directions) that are the same in every run."""
    shape = len(machine.hidden.bias), n_directions
    return np.random.default_rng(shape).standard_normal(shape).astype(machine.weights.dtype)


def _iterated(machine: Machine, directions: Array) -> Array:
    """Orthonormal directions, nearer to the leading right singular vectors: subspace iteration."""
    left, right = machine.curvature_scales
    for _ in range(N_ITERATIONS):
        image = machine.weights @ (right[:, None] * directions)
        image = right[:, None] * (machine.weights.T @ (left[:, None] ** 2 * image))
        directions = np.linalg.qr(image)[0]
    return directions


def _hold_within(machine: Machine, directions: Array) -> Array:
    """Lower the singular values within a span of hidden directions, and return what they were.

    If all of them are beyond the limit, others may be: then all of the machine's are lowered.
    """
    left, right = machine.curvature_scales
    image = left[:, None] * (machine.weights @ (right[:, None] * directions))
    U, values, V = np.linalg.svd(image, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    n_beyond = np.count_nonzero(excess)
    if n_beyond == len(values):
        hold_normalizable(machine)
    elif n_beyond:
        lowered = (U[:, :n_beyond] * excess[:n_beyond]) @ (V[:n_beyond] @ directions.T)
        machine.weights[...] -= _inverse(left)[:, None] * lowered * _inverse(right)
    return values


def _inverse(scales: Array) -> Array:
    """One over the scales, zero where they are."""
    return np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
