"""Damping of the gradient along directions of large curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, placed
from skrbm.core.training.gradient import Buffer, Samples
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS, ROW_WEIGHTS
from skrbm.core.training.part import Part, Step
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import pause, recent_success
from skrbm.core.units import Units

# Multiples of Newton's step: chains answer many updates late, and longer ones overshoot; from the
# second one on, steps diverge even if chains answer at once.
MAX_NEWTON_STEPS, DIVERGENT_NEWTON_STEPS = 0.5, 2
# Smallest share of the total curvature that is damped, and the share kept: with twice as much, more
# epochs make grey photographs less likely; with 1 %, black and white ones take longer
# (benchmarks/results/clusters.json).
MIN_LEADING_SHARE, KEPT_SHARE = 0.06, 0.015
MIN_ROW_SHARES = 2  # multiples of a single row's curvature, which looks like a direction
N_LANCZOS_STEPS = 4  # so many directions of large curvature are found
LANCZOS_TOLERANCE = 1e-6  # length of the next direction, relative to the total curvature
MAX_DAMPED_ROWS = 256  # rows of both phases: products of more take longer than the gradient
# Share of looks that find divergent steps, below which they become fewer: a rare mode, which must not
# be missed, has rows in few mini-batches.
RARE_DIVERGENCE = 0.1
MAX_LOOK_PAUSE = 16  # updates


def correction(rate: float, weights: Array, products: Array) -> tuple[Array | None, bool]:
    """Change of the row weights that damps the gradient.

    Parameters
    ----------
    rate : float
        Total step along the gradient.
    weights : ndarray of shape (n_rows,)
        Weights of the rows in the gradient, with a sum of zero.
    products : ndarray of shape (n_rows, n_rows)
        Gram matrix of the rows' gradients; all entries may be off by the same number.

    Returns
    -------
    change : ndarray of shape (n_rows,) or None
        None if nothing is damped.
    diverges : bool
        Whether the undamped step would diverge.
    """
    weight = 0.5 * np.abs(weights)
    largest = weight.max()
    size, mean = np.sqrt(weight), products @ weight
    total = float(weight @ (products.diagonal() - mean))
    # Squares of larger numbers are infinite; a row that is its whole phase is all directions.
    if not 0 < total < np.sqrt(np.finfo(products.dtype).max) or MIN_ROW_SHARES * largest >= 1:
        return None, False

    def covariance(x: Array) -> Array:
        # `x` needs no centring: its sum by size is zero, as that of the shares and of all images.
        image = products @ (size * x)
        image -= weight @ image
        return np.asarray(size * image)

    start = 2 * np.copysign(size, weights)  # weights by size
    values, vectors = _leading(covariance, start, total)
    least = total * max(MIN_LEADING_SHARE, MIN_ROW_SHARES * largest)
    bearable = max(MAX_NEWTON_STEPS / rate, total * max(KEPT_SHARE, largest))
    if not values[-1] > max(least, bearable):
        return None, False
    lost = 1 - bearable / np.maximum(values, bearable)
    change = -size * (vectors @ (lost * (start @ vectors)))
    return change, bool(rate * values[-1] > DIVERGENT_NEWTON_STEPS)


@final
@dataclass(frozen=True)
class _LayerBuffers:
    """Arrays for the signals of one layer's states and for their inner products."""

    signals: Buffer = field(default_factory=Buffer)
    products: Buffer = field(default_factory=Buffer)


@final
@dataclass(frozen=True)
class Damping(Part):
    r"""Shortening of the gradient along directions of large curvature.

    Where modes are far apart, the weights of all hidden units together move the modes' probabilities:
    one update changes their log-odds by tens of nats, with alternating sign. With :math:`\phi_k` the
    contribution of row :math:`k` to the gradient :math:`\sum_k s_k \phi_k`, and the weights
    :math:`w_k = \frac12 |s_k|`, the Fisher information has the estimate

    .. math:: \sum_k w_k (\phi_k - \bar\phi) (\phi_k - \bar\phi)^T, \qquad
        \bar\phi = \sum_k w_k \phi_k

    Its eigenvectors are sums over rows, too, and follow from the rows' inner products alone, as does
    the whole natural gradient [1]_. Of the gradient's component along one of eigenvalue
    :math:`\lambda` there remains

    .. math:: \min\left(1, \frac{\lambda_0}{\lambda}\right), \qquad
        \lambda_0 = \max\left(\frac{1}{2 \eta}, \frac{3}{200} \sum_k \lambda_k\right)

    at the learning rate :math:`\eta`; instead of 3/200 the largest :math:`w_k`, if that is more.
    Nothing is shortened unless an eigenvalue has 6 % of the sum and twice what a single row can have.
    Where steps beyond :math:`2 / \lambda`, which diverge, have been rare lately, the next look is some
    updates later. Phases of many rows together are left as they are.

    Parameters
    ----------
    preconditioner : Preconditioner
        Metric of the step.
    momentum_gain : float, default=1.0
        Total step along a direction in learning rates, from `Optimizer.momentum_gain`.
    correction : callable, default=correction
        Change of the row weights, with the signature of the function.

    References
    ----------
    .. [1] Desjardins, Pascanu, Courville, Bengio (2013), "Metric-free natural gradient for
       joint-training of Boltzmann machines", ICLR. :doi:`10.48550/arXiv.1301.3545`
    """

    name: ClassVar[str] = "damping"
    needs: ClassVar[frozenset[str]] = frozenset({PERSISTENT_CHAINS, ROW_WEIGHTS})

    preconditioner: Preconditioner
    momentum_gain: float = 1.0
    correction: Callable[..., tuple[Array | None, bool]] = correction
    _visible: _LayerBuffers = field(default_factory=_LayerBuffers, init=False)
    _hidden: _LayerBuffers = field(default_factory=_LayerBuffers, init=False)

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Weights of the rows in the shortened gradient; the very same where it stays as it is."""
        memory, n_updates, weights = (
            self.memory(step.state),
            step.state.n_updates,
            difference.weights,
        )
        rate = step.rate * self.momentum_gain
        is_due = rate > 0 and n_updates >= memory.get("next_look", 0)
        if not is_due or len(weights) > MAX_DAMPED_ROWS:
            return difference
        change, diverges = self.correction(rate, weights, self._inner_products(machine, difference))
        memory["divergent_share"] = recent_success(memory.get("divergent_share", 1.0), diverges)
        memory["next_look"] = n_updates + pause(
            memory["divergent_share"], RARE_DIVERGENCE, 1, MAX_LOOK_PAUSE
        )
        return difference if change is None else difference.weighted(weights + change)

    def _inner_products(self, machine: Machine, difference: Samples) -> Array:
        """Gram matrix of the rows' gradients of weights and biases, in the metric of the step.

        All its entries are larger by the metric's unit, which makes no difference to the covariance.
        """
        metrics = self.preconditioner.metrics(machine)
        v, mean = zip(*difference.blocks, strict=True)
        visible = _products(self._visible, machine.visible, metrics[0].signal, v)
        hidden = _products(self._hidden, machine.hidden, metrics[1].signal, mean)
        # phi = (v, h, v h^T): the last one's products are those of the others, multiplied.
        visible += 1
        hidden += 1
        visible *= hidden
        if self.preconditioner.unit != 1:
            visible *= self.preconditioner.unit
        return visible


def _products(
    buffers: _LayerBuffers, layer: Units, multiple: Any, blocks: tuple[Any, ...]
) -> Array:
    """Inner products of the signals of the rows of all blocks."""
    n_rows, dtype = sum(block.shape[0] for block in blocks), blocks[-1].dtype
    signal = buffers.signals.rows((n_rows, layer.n_columns), dtype)
    begin = 0
    for block in blocks:
        out = signal[begin : begin + block.shape[0]]
        placed(dense(layer.signal(block, out=out)), out)
        begin += block.shape[0]
    if np.any(multiple != 1):
        signal *= np.sqrt(multiple)
    return np.matmul(signal, signal.T, out=buffers.products.rows((n_rows, n_rows), dtype))


def _leading(
    covariance: Callable[[Array], Array], start: Array, total: float
) -> tuple[Array, Array]:
    """Greatest eigenvalues, ascending, and vectors, of the space that some products of a vector span.

    The Lanczos iteration, in which every vector is made orthogonal to all before it.
    """
    basis: list[Array] = []
    images: list[Array] = []
    while len(basis) < N_LANCZOS_STEPS:
        basis.append(start / np.linalg.norm(start))
        images.append(covariance(basis[-1]))
        known = np.array(basis)
        start = images[-1]
        for _ in range(2):  # the first time leaves rounding of its own, which is no direction
            start = start - (known @ start) @ known
        if not np.linalg.norm(start) > LANCZOS_TOLERANCE * total:
            break
    values, vectors = np.linalg.eigh(known @ np.transpose(images))
    return values, known.T @ vectors
