"""Damping of the gradient along directions of large curvature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, is_array, like, to_host
from skrbm.core.training.gradient import Samples
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS, ROW_WEIGHTS
from skrbm.core.training.part import Part, Step
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import pause, recent_success
from skrbm.core.units import Units

# Step lengths in multiples of Newton's step. Chains lag many updates behind, so that steps beyond
# the first bound overshoot; steps beyond the second diverge even if chains equilibrate at once.
MAX_NEWTON_STEPS, DIVERGENT_NEWTON_STEPS = 0.5, 2
# Smallest share of the total curvature that is damped, and share to which it is damped. If the
# latter is 3 %, further epochs lower the likelihood of gray photographs; if it is 1 %, binary
# photographs need more epochs. Results with these values: benchmarks/results/clusters.json.
MIN_LEADING_SHARE, KEPT_SHARE = 0.06, 0.015
MIN_ROW_SHARES = 2  # smallest damped curvature, in multiples of the contribution of one row
OWN_SHARE = 0.8  # share of a direction beyond which the direction is one row's own
N_LANCZOS_STEPS = 4  # largest number of directions that are damped
LANCZOS_TOLERANCE = 1e-6  # residual norm at which Lanczos stops, relative to the total curvature
# Largest number of rows of both phases: with more, the Gram matrix takes longer than the gradient.
MAX_DAMPED_ROWS = 256
# The number of updates from one check to the next is this number divided by the share of checks
# that find a divergent step, rounded. Checks therefore become rarer only below a share of about one
# in 15. The number is small because only few mini-batches contain rows of a rare mode, and their
# divergent steps must be found.
RARE_DIVERGENCE = 0.1
FIRST_DIVERGENCE = 0.2  # share assumed before the first check, so that every update is checked
MAX_CHECK_PAUSE = 16  # largest number of updates between two checks


def correction(rate: float, weights: Array, gram: Array) -> tuple[Array | None, bool]:
    """Compute the change of the row weights that damps the gradient.

    Parameters
    ----------
    rate : float
        Learning rate, multiplied by `Optimizer.momentum_gain`.
    weights : ndarray of shape (n_rows,)
        Weights of the rows in the gradient, with a sum of zero.
    gram : ndarray of shape (n_rows, n_rows)
        Gram matrix of the rows' gradients. Each entry of a gradient is first multiplied by the
        square root of its factor in the metric of the preconditioner. All entries of the Gram
        matrix may contain the same additive constant.

    Returns
    -------
    change : ndarray of shape (n_rows,) or None
        Change of the weights, or None if nothing is damped.
    diverges : bool
        Whether the undamped step would diverge. It is False if nothing is damped.
    """
    weight = 0.5 * np.abs(weights)
    largest = weight.max()
    size, mean = np.sqrt(weight), gram @ weight
    total = float(weight @ (gram.diagonal() - mean))
    # Squares of larger totals overflow. If a phase has one row, it would dominate every direction.
    if not 0 < total < np.sqrt(np.finfo(gram.dtype).max) or MIN_ROW_SHARES * largest >= 1:
        return None, False

    def covariance(x: Array) -> Array:
        # `x` needs no centering: `size @ x` is zero for `start`, since `weights` sum to zero, and
        # for all results of this function.
        image = gram @ (size * x)
        image -= weight @ image
        return size * image

    start = 2 * np.copysign(size, weights)  # weights / size
    values, vectors = _leading(covariance, start, total)
    # If more than `N_LANCZOS_STEPS` rows have large gradients of their own, the directions are
    # mixtures of these rows.
    contributions = weight * (gram.diagonal() - 2 * mean + weight @ mean)
    contributions.sort()
    contribution = max(total * largest, contributions[-N_LANCZOS_STEPS - 1 :][0])
    threshold = max(total * MIN_LEADING_SHARE, MIN_ROW_SHARES * contribution)
    max_curvature = max(MAX_NEWTON_STEPS / rate, total * max(KEPT_SHARE, largest))
    values[(vectors[weights > 0] ** 2).max(axis=0) > OWN_SHARE] = 0
    leading = max(values)
    if not leading > max(threshold, max_curvature):
        return None, False
    removed = 1 - max_curvature / np.maximum(values, max_curvature)
    change = -size * (vectors @ (removed * (start @ vectors)))
    return change, bool(rate * leading > DIVERGENT_NEWTON_STEPS)


@final
@dataclass(frozen=True)
class Damping(Part):
    r"""Damping of the gradient along directions of large curvature of the log-likelihood.

    If two modes are far apart, a single update can change their log-odds by tens of nats, because
    the effects of all hidden units add up. The next update then changes the log-odds in the
    opposite direction, and so on. Let the gradient with respect to the weights and biases be
    :math:`\sum_k s_k \phi_k`. The sum contains the rows of both phases; :math:`s_k` is the weight
    of row :math:`k`, and :math:`\phi_k` is the negative gradient of its free energy. With
    :math:`w_k = \frac12 |s_k|`, an estimate of the Fisher information is

    .. math:: \sum_k w_k (\phi_k - \bar\phi) (\phi_k - \bar\phi)^T, \qquad
        \bar\phi = \sum_k w_k \phi_k

    Its eigenvectors with positive eigenvalues are linear combinations of the rows' gradients. They
    can be computed from the Gram matrix of these gradients alone, as can the natural gradient [1]_.
    The component of the gradient along an eigenvector with eigenvalue :math:`\lambda` is multiplied
    by

    .. math:: \min\left(1, \frac{\lambda_0}{\lambda}\right), \qquad
        \lambda_0 = \max\left(\frac{1}{2 \eta}, \frac{3}{200} \sum_j \lambda_j\right)

    where :math:`\lambda_j` are all eigenvalues, and :math:`\eta` is the learning rate times
    `momentum_gain`. If the largest :math:`w_k` exceeds 3/200, it is used in place of 3/200. At most
    four eigenvalues and eigenvectors are computed, approximately. The gradient is damped only if
    the largest eigenvalue exceeds both 6 % of the sum of all eigenvalues and :math:`2 \max_k w_k`
    times this sum. Updates with more than 256 rows in both phases together are not damped.

    Each eigenvector is proportional to :math:`\sum_k x_k \sqrt{w_k} (\phi_k - \bar\phi)`, where
    :math:`\sum_k x_k^2 = 1`. If :math:`x_k^2 > 0.8` for one row k of the data, the eigenvector does
    not count, and the component along it is not damped. Such a row has a large gradient of its own,
    as rows in a heavy tail have. Damping each mini-batch that contains the row would have almost
    the effect of leaving the row out: learned variances would be too small. If many rows have large
    gradients of their own, the eigenvectors are mixtures of these rows. The largest eigenvalue must
    therefore also exceed twice the fifth largest :math:`w_k \|\phi_k - \bar\phi\|^2`.

    A step diverges if :math:`\eta` exceeds :math:`2 / \lambda` for the largest eigenvalue. A check
    does not count such a step if nothing is damped. Let r be the running share of checks that find
    a divergent step. The number of updates from one check to the next is 0.1 / r, rounded to an
    integer from 1 to 16. If r exceeds 1 / 15, every update is checked. Updates that are not checked
    are not damped.

    Parameters
    ----------
    preconditioner : Preconditioner
        Preconditioner of the trainer. In the formulas above, each entry of a gradient is multiplied
        by the square root of its factor in the metric of this preconditioner.
    momentum_gain : float, default=1.0
        The `momentum_gain` of the optimizer. If it is 0, as for Adam, nothing is damped.
    correction : callable, default=correction
        Function that computes the change of the row weights, with the signature of `correction` in
        this module.

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

    def weigh_rows(self, step: Step, machine: Machine, difference: Samples) -> Samples:
        """Change the row weights to damp the gradient, if a check is due."""
        n_updates, weights = step.state.n_updates, difference.weights
        rate = step.rate * self.momentum_gain
        is_due = n_updates >= step.state.parts.get(self.name, {}).get("next_check", 0)
        if not is_due or not rate > 0 or len(weights) > MAX_DAMPED_ROWS:
            return difference
        memory = self.memory(step.state)
        gram = to_host(self._gram_matrix(machine, difference))  # small; its entries are read often
        change, diverges = self.correction(rate, to_host(weights), gram)
        before = memory.get("divergent_share", FIRST_DIVERGENCE)
        memory["divergent_share"] = recent_success(before, diverges)
        memory["next_check"] = n_updates + pause(
            memory["divergent_share"], RARE_DIVERGENCE, 1, MAX_CHECK_PAUSE
        )
        if change is None:
            return difference
        return difference.weighted(weights + like(change, weights))

    def _gram_matrix(self, machine: Machine, difference: Samples) -> Array:
        """Gram matrix of the rows' gradients with respect to weights and biases.

        The gradients are multiplied by the square roots of the factors of the metric. All entries
        of the Gram matrix also contain the constant `preconditioner.unit`, which cancels when
        the gradients are centered.
        """
        metrics = self.preconditioner.metrics(machine)
        v, mean = zip(*difference.blocks, strict=True)
        visible = _layer_gram(machine.visible, metrics[0].signal, v)
        hidden = _layer_gram(machine.hidden, metrics[1].signal, mean)
        # phi = (v, h, v h^T), so phi.phi' + 1 = (v.v' + 1) (h.h' + 1).
        visible += 1
        hidden += 1
        visible *= hidden
        if self.preconditioner.unit != 1:
            visible *= self.preconditioner.unit
        return visible


def _layer_gram(layer: Units, multiple: Any, blocks: tuple[Any, ...]) -> Array:
    """Gram matrix of the signals of the rows of all blocks.

    Each signal is multiplied by the square root of its factor in the metric of the layer.
    """
    signal = np.concatenate([dense(layer.signal(block)) for block in blocks])
    if is_array(multiple) or multiple != 1:
        signal *= np.sqrt(multiple)
    return signal @ signal.T


def _leading(
    covariance: Callable[[Array], Array], start: Array, total: float
) -> tuple[Array, Array]:
    """Approximate at most `N_LANCZOS_STEPS` eigenvalues, in ascending order, and eigenvectors.

    The method is Lanczos iteration with the initial vector `start` and full reorthogonalization;
    it approximates the largest eigenvalues best.
    """
    basis = np.empty((N_LANCZOS_STEPS, len(start)), start.dtype)
    images = np.empty_like(basis)
    for step in range(N_LANCZOS_STEPS):
        basis[step] = start / math.sqrt(start @ start)
        images[step] = start = covariance(basis[step])
        rows = basis[: step + 1]
        for _ in range(2):  # the second time removes the rounding errors of the first
            start = start - (rows @ start) @ rows
        if not math.sqrt(start @ start) > LANCZOS_TOLERANCE * total:
            break
    values, vectors = np.linalg.eigh(rows @ images[: step + 1].T)
    return values, rows.T @ vectors
