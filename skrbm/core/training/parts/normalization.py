"""Bound on the singular values of the weights that keeps the distribution normalizable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine, by_layer
from skrbm.core.numerics import Array, like, spread_rows
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step

# Largest share of the layers' curvature that the weights may cancel. Chains decorrelate in about
# 1 / (1 - share) steps; with a larger share the negative phase would be unreliable.
MAX_LOST_CURVATURE = 0.95
NEAR_BOUND = 0.93  # share above which the bound is active; averaged parameters are below the bound
N_VARIANCE_ROWS = 1000  # largest number of rows whose variance is compared with that of the chains
MAX_EXACT_COLUMNS = 32  # columns of the smaller layer up to which an exact decomposition is cheap
N_DIRECTIONS = 4  # number of singular vectors that are tracked at first, for larger layers
# Share of `MAX_LOST_CURVATURE`; if the squares of all tracked singular values exceed it, more are
# tracked.
MIN_DECAY = 0.5
# Subspace iterations per update; each multiplies the error of vectors at the bound by at most
# `MIN_DECAY`.
N_ITERATIONS = 3


@final
@dataclass(frozen=True)
class Normalization(Part):
    """Bound on the singular values of the weights that keeps the distribution normalizable.

    The bound applies to the scaled weights that are defined in `Machine.lost_curvature`. If both
    layers have more than `MAX_EXACT_COLUMNS` columns, only the leading singular vectors are
    computed, unless all their singular values exceed the bound. A step hardly changes the
    vectors, so a few subspace iterations after every step are sufficient.

    The scales of the weights can depend on parameters of the layers, such as variances. When a step
    changes these parameters, the weights are rescaled, so that this change alone does not change
    the scaled weights. Otherwise, it could violate the bound, and clipping the weights afterwards
    would lead training away from the maximum of the likelihood within the bound.
    """

    name: ClassVar[str] = "normalization"

    def observe(self, step: Step) -> None:
        """Divide the learning rate by an estimate of the relaxation time of the chains.

        The estimate, in Gibbs steps, is the reciprocal of the share of the curvature that the
        weights do not cancel. It is accurate close to the bound.
        """
        step.rate *= 1 - min(self.memory(step.state).get("lost", 0.0), MAX_LOST_CURVATURE)

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Convert layer gradients at constant weights to gradients at constant scaled weights."""
        work = machine.weights * gradient["weights"]
        visible = machine.visible.scale_gradient(work.sum(axis=1))
        changes = by_layer(visible, machine.hidden.scale_gradient(work.sum(axis=0)))
        for parameter, change in changes.items():
            gradient[parameter] -= change
        if changes:
            self.memory(step.state)["scales"] = machine.curvature_scales

    def after_step(self, step: Step, machine: Machine) -> None:
        memory = self.memory(step.state)
        before = memory.pop("scales", None)  # None if the scales do not depend on parameters
        if before is not None:
            left, right = map(_ratio, before, machine.curvature_scales)
            machine.weights[...] *= left[:, None] * right
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
    """Clip the singular values of the scaled weights to the square root of `MAX_LOST_CURVATURE`.

    Parameters
    ----------
    machine : Machine
        Machine whose weights are changed in place. If all units of a layer have two bounds, or if
        `Machine.lost_curvature` is infinite, nothing is clipped.

    Returns
    -------
    lost_curvature : float
        The `Machine.lost_curvature` before clipping.
    """
    lost = machine.lost_curvature
    if not MAX_LOST_CURVATURE < lost < np.inf:  # weights that overflow are left to `Guard`
        return lost
    left, right = machine.curvature_scales
    rows, columns = np.flatnonzero(left), np.flatnonzero(right)
    scales = left[rows, None] * right[columns]
    block = np.ix_(rows, columns)
    U, values, V = np.linalg.svd(machine.weights[block] * scales, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    machine.weights[block] -= (U * excess) @ V / scales
    return lost


def variance_beyond_bound(machine: Machine, v: Any, h: Array) -> float:
    """Estimate the variance of hidden states under the data, relative to that under the model.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training rows, of which at most `N_VARIANCE_ROWS` evenly spread ones are used.
    h : ndarray of shape (n_chains, n_hidden)
        Hidden states of chains that sample the machine.

    Returns
    -------
    ratio : float
        Estimated variance of hidden states that are drawn given the rows, divided by the variance
        of `h`. Both are variances of the projection on the leading right singular vector of the
        scaled weights (see `Machine.lost_curvature`). Before the projection, each hidden state is
        multiplied by the square root of its curvature. The ratio is 0 if the lost curvature is at
        most `NEAR_BOUND`.
    """
    if not machine.lost_curvature > NEAR_BOUND:
        return 0.0
    left, right = machine.curvature_scales
    _, _, V = np.linalg.svd(left[:, None] * machine.weights * right, full_matrices=False)
    direction = V[0] * np.sqrt(machine.hidden.tail_curvature)
    some = spread_rows(v, N_VARIANCE_ROWS).astype(machine.dtype, copy=False)
    of_means = np.var(machine.mean_hidden(some) @ direction)
    # Given a row, the variance of the combination is one if the states are normal.
    return float((of_means + 1) / max(np.var(h @ direction), np.finfo(h.dtype).tiny))


def _random_directions(machine: Machine, n_directions: int) -> Array:
    """Random normal matrix that depends only on its shape, (n_hidden, n_directions)."""
    shape = len(machine.hidden.bias), n_directions
    directions = np.random.default_rng(shape).standard_normal(shape)
    return like(directions.astype(machine.weights.dtype), machine.weights)


def _iterated(machine: Machine, directions: Array) -> Array:
    """Move directions towards the leading right singular vectors of the scaled weights.

    The method is subspace iteration. The directions have the shape (n_hidden, n_directions), and
    the columns of the result are orthonormal.
    """
    left, right = machine.curvature_scales
    for _ in range(N_ITERATIONS):
        image = machine.weights @ (right[:, None] * directions)
        image = right[:, None] * (machine.weights.T @ (left[:, None] ** 2 * image))
        directions = np.linalg.qr(image)[0]
    return directions


def _hold_within(machine: Machine, directions: Array) -> Array:
    """Clip the singular values of the scaled weights in the span of the directions.

    The result contains the singular values before clipping, in descending order. If all of these
    exceed the bound, singular values outside the span may exceed it as well. In this case, all
    singular values of the scaled weights are clipped.
    """
    left, right = machine.curvature_scales
    image = left[:, None] * (machine.weights @ (right[:, None] * directions))
    if not np.isfinite(image).all():  # left to `Guard`
        return np.full(len(directions.T), np.inf)
    U, values, V = np.linalg.svd(image, full_matrices=False)
    excess = np.maximum(values - np.sqrt(MAX_LOST_CURVATURE), 0)
    n_beyond = int(np.count_nonzero(excess))
    if n_beyond == len(values):
        hold_normalizable(machine)
    elif n_beyond:
        lowered = (U[:, :n_beyond] * excess[:n_beyond]) @ (V[:n_beyond] @ directions.T)
        machine.weights[...] -= _ratio(1, left, 0)[:, None] * lowered * _ratio(1, right, 0)
    return values


def _ratio(numerator: Any, scales: Array, at_zero: float = 1) -> Array:
    """Numerator divided by the scales; `at_zero` where a scale is zero."""
    is_positive = scales > 0
    return np.where(is_positive, numerator / np.where(is_positive, scales, 1), at_zero)
