"""Shorter steps along the few directions in which the log-likelihood is curved too much for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, placed
from skrbm.core.training.phases import Samples
from skrbm.core.training.state import TrainingState, pause, recent_success
from skrbm.core.training.transforms import Preconditioner
from skrbm.core.training.workspace import Workspace
from skrbm.core.units import Units

# Multiples of Newton's step: chains answer many updates late, and longer ones overshoot; from the
# second one on, steps diverge even if chains answer at once.
LONGEST_STEP, UNSTABLE_STEP = 0.5, 2
# Of the whole curvature: what a direction that leads has at least, and what is left to each. Where twice
# as much is left, more passes make grey photographs less likely; at 1 % black and white ones take longer.
LEADING_SHARE, COMMON_SHARE = 0.06, 0.015
OWN_SHARES = 2  # multiples of what a single row has, which seems to be a direction of its own
N_DIRECTIONS = 4  # whose eigenvalues are found
ROUNDING = 1e-6  # of their products, relative
MANY_ROWS = 256  # of both phases: their inner products would take longer than the gradient
# Share of looks that find steps which diverge, below which they become fewer. A rare mode, which must
# not be missed, has rows in few mini-batches.
RARE = 0.1
LONGEST_PAUSE = 16  # updates


@final
@dataclass(frozen=True)
class Damping:
    r"""What shortens a gradient along directions of great curvature.

    Where modes are far apart, the weights of all hidden units together move the modes' probabilities:
    an update of the usual length changes their log-odds by tens of nats, this way and that. With
    :math:`\phi_k` what row :math:`k` adds to the gradient :math:`\sum_k s_k \phi_k`, and the weights
    :math:`w_k = \frac12 |s_k|`, the Fisher information has the estimate

    .. math:: \sum_k w_k (\phi_k - \bar\phi) (\phi_k - \bar\phi)^T, \qquad
        \bar\phi = \sum_k w_k \phi_k

    Its eigenvectors are sums over rows, too, and follow from the rows' inner products alone, as does
    the whole natural gradient [1]_. Of the gradient's part along one of eigenvalue :math:`\lambda`
    there remains

    .. math:: \min\left(1, \frac{\lambda_0}{\lambda}\right), \qquad
        \lambda_0 = \max\left(\frac{1}{2 \eta}, \frac{3}{200} \sum_k \lambda_k\right)

    at the learning rate :math:`\eta`; instead of 3/200 the largest :math:`w_k`, if that is more.
    Nothing is shortened unless an eigenvalue has 6 % of the sum and twice what a single row can have.
    Where steps beyond :math:`2 / \lambda`, which diverge, have been rare lately, the next look is some
    updates later. Phases of many rows together are left as they are.

    Parameters
    ----------
    preconditioner : Preconditioner
        Has the metric of the step.
    rate : float
        How far an update takes the parameters along a direction in the end, in multiples of it.
    state : TrainingState
        Asked whether it is time to look, and told when it will be.
    work : Workspace
        Of the run.

    References
    ----------
    .. [1] Desjardins, Pascanu, Courville, Bengio (2013), "Metric-free natural gradient for
       joint-training of Boltzmann machines", ICLR. :doi:`10.48550/arXiv.1301.3545`
    """

    preconditioner: Preconditioner
    rate: float
    state: TrainingState
    work: Workspace

    def __call__(
        self, machine: Machine, positive: Samples, negative: Samples, shares: Array
    ) -> Array:
        """Shares of the rows in the shortened gradient.

        Parameters
        ----------
        machine : Machine
            Whose gradient.
        positive, negative : Samples
            Rows of data and of the model.
        shares : ndarray of shape (n_positive + n_negative,)
            What the rows are multiplied by in the gradient: those of data, which have the sum one,
            then those of the model, which have minus one.

        Returns
        -------
        shares : ndarray of shape (n_positive + n_negative,)
            The very same where the gradient stays as it is.
        """
        state = self.state
        is_due = self.rate > 0 and state.n_updates >= state.next_look
        if not is_due or len(shares) > MANY_ROWS:
            return shares
        products = self._inner_products(machine, positive, negative)
        change, diverges = self._change(shares, products)
        state.divergent_share = recent_success(state.divergent_share, diverges)
        state.next_look = state.n_updates + pause(state.divergent_share, RARE, 1, LONGEST_PAUSE)
        return shares if change is None else shares + change

    def _change(self, shares: Array, products: Array) -> tuple[Array | None, bool]:
        """What is added to the shares, None where no direction leads; and whether steps would diverge.

        The rows' inner products may all be off by the same number.
        """
        weight = 0.5 * np.abs(shares)
        largest = weight.max()
        size, mean = np.sqrt(weight), products @ weight
        total = float(weight @ (products.diagonal() - mean))
        # Squares of larger numbers are infinite; a row that is its whole phase is all directions.
        if not 0 < total < np.sqrt(np.finfo(products.dtype).max) or OWN_SHARES * largest >= 1:
            return None, False

        def covariance(x: Array) -> Array:
            # `x` needs no centring: its sum by size is zero, as that of the shares and of all images.
            image = products @ (size * x)
            image -= weight @ image
            return np.asarray(size * image)

        start = 2 * np.copysign(size, shares)  # shares by size
        values, vectors = _leading(covariance, start, total)
        least = total * max(LEADING_SHARE, OWN_SHARES * largest)
        bearable = max(LONGEST_STEP / self.rate, total * max(COMMON_SHARE, largest))
        if not values[-1] > max(least, bearable):
            return None, False
        lost = 1 - bearable / np.maximum(values, bearable)
        change = -size * (vectors @ (lost * (start @ vectors)))
        return change, bool(self.rate * values[-1] > UNSTABLE_STEP)

    def _inner_products(self, machine: Machine, positive: Samples, negative: Samples) -> Array:
        """Those of what rows add to the gradient of weights and biases, in the step's metric.

        All are more by the metric's unit, which makes no difference to the covariance.
        """
        metrics = self.preconditioner.metrics(machine)
        rows = (positive.v, negative.v), (positive.mean, negative.mean)
        visible, hidden = (
            self._products(name, layer, metric.signal, own)
            for name, layer, metric, own in zip(
                ("visible", "hidden"), (machine.visible, machine.hidden), metrics, rows, strict=True
            )
        )
        # phi = (v, h, v h^T): the last one's products are those of the others, multiplied.
        visible += 1
        hidden += 1
        visible *= hidden
        if self.preconditioner.unit != 1:
            visible *= self.preconditioner.unit
        return visible

    def _products(self, name: str, layer: Units, multiple: Any, rows: tuple[Any, Any]) -> Array:
        """Inner products of the signals of the rows of both phases."""
        data, model = rows
        n_data, n_rows, dtype = data.shape[0], data.shape[0] + len(model), model.dtype
        signal = self.work.array(f"{name} signals", (n_rows, model.shape[1]), dtype)
        for own, out in ((data, signal[:n_data]), (model, signal[n_data:])):
            placed(dense(layer.signal(own, out=out)), out)
        if np.any(multiple != 1):
            signal *= np.sqrt(multiple)
        out = self.work.array(f"{name} products", (n_rows, n_rows), dtype)
        return np.matmul(signal, signal.T, out=out)


def _leading(
    covariance: Callable[[Array], Array], start: Array, total: float
) -> tuple[Array, Array]:
    """Greatest eigenvalues, ascending, and vectors, of the space that some products of a vector span.

    The Lanczos iteration, in which every vector is made orthogonal to all before it.
    """
    basis: list[Array] = []
    images: list[Array] = []
    while len(basis) < N_DIRECTIONS:
        basis.append(start / np.linalg.norm(start))
        images.append(covariance(basis[-1]))
        known = np.array(basis)
        start = images[-1]
        for _ in range(2):  # the first time leaves rounding of its own, which is no direction
            start = start - (known @ start) @ known
        if not np.linalg.norm(start) > ROUNDING * total:
            break
    values, vectors = np.linalg.eigh(known @ np.transpose(images))
    return values, known.T @ vectors
