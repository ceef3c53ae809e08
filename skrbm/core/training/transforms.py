"""What is done to a direction before the step, and to the parameters after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.training.optimizer import Arrays


@final
@dataclass(frozen=True)
class Penalties:
    r"""What training pays for besides the likelihood.

    .. math::

        \frac{1}{n} \sum_v \log p(v) - \lambda_1 \sum |W_{ij}|
        - \frac{\lambda_2}{2} \sum W_{ij}^2

    Parameters
    ----------
    l1 : float, default=0.0
        :math:`\lambda_1`, of the plain machine's weights.
    l2 : float, default=0.0
        :math:`\lambda_2`, likewise.
    sparsity_target : float, default=0.0
        Mean that every hidden unit should have over the data.
    sparsity_cost : float, default=0.0
        Pull on the bias of a hidden unit whose mean is one above the target [1]_, section 2.3.

    References
    ----------
    .. [1] Lee, Ekanadham, Ng (2008), "Sparse deep belief net model for visual area V2", NIPS 20,
       873-880.
    """

    l1: float = 0.0
    l2: float = 0.0
    sparsity_target: float = 0.0
    sparsity_cost: float = 0.0

    def add_to(self, direction: Arrays, machine: Machine, mean_hidden: Array) -> None:
        """Bend a direction, in place; weights are penalised in the gauge of their layers.

        Parameters
        ----------
        direction : dict of str to ndarray
            Gradient of the log-likelihood in plain or centred parameters, which have the same
            weights.
        machine : Machine
            With the present weights.
        mean_hidden : ndarray of shape (n_hidden,)
            Mean of the hidden units over the mini-batch.
        """
        if self.l2:
            weights = _gauged(machine, machine.weights)
            for rows in row_blocks(weights):
                direction["weights"][rows] -= self.l2 * weights[rows]
        if self.l1:
            signs = np.sign(_gauged(machine, machine.weights))
            direction["weights"] -= self.l1 * _gauged(machine, signs)
        if self.sparsity_cost:
            if "hidden_bias" not in direction:
                kind = type(machine.hidden).__name__
                raise ValueError(
                    f"Sparsity needs hidden units with one bias each, got {kind} units."
                )
            direction["hidden_bias"] += self.sparsity_cost * (self.sparsity_target - mean_hidden)


@final
@dataclass(frozen=True)
class Constraints:
    """What parameters may not exceed.

    Parameters
    ----------
    max_norm : float or None, default=None
        Largest Euclidean norm of a hidden unit's weights [1]_.
    bounds : mapping of str to (ndarray, ndarray)
        Lowest and highest values of parameters.

    References
    ----------
    .. [1] Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov (2014), "Dropout: a simple
       way to prevent neural networks from overfitting", Journal of Machine Learning Research
       15(56), 1929-1958, section 5.1.
    """

    max_norm: float | None = None
    bounds: Mapping[str, tuple[Array, Array]] | None = None

    def enforce(self, parameters: Arrays) -> None:
        """Move parameters to the nearest allowed ones, in place.

        Parameters
        ----------
        parameters : dict of str to ndarray
            From `Machine.parameters`.
        """
        if self.max_norm is not None:
            weights = parameters["weights"]
            norms = np.sqrt(np.einsum("ij,ij->j", weights, weights))
            if norms.max() > self.max_norm:
                weights *= self.max_norm / np.maximum(norms, self.max_norm)
        for name, (lowest, highest) in (self.bounds or {}).items():
            np.clip(parameters[name], lowest, highest, out=parameters[name])


def preconditioned_direction(
    machine: Machine,
    gradient: Arrays,
    variance: Array | None,
    max_norm: float | None,
    metric_unit: float = 1.0,
) -> Arrays:
    """Direction of a step: the gradient in the layers' own metric, not longer than allowed.

    Parameters
    ----------
    machine : Machine
        Asked for the metric of its layers.
    gradient : dict of str to ndarray
        Same keys as the machine's parameters; used up.
    variance : ndarray of shape (n_visible,) or None
        Of the data; None where that is not known.
    max_norm : float or None
        Largest norm in that metric, all parameters together [1]_, so that it means the same for
        data in any units of measurement.
    metric_unit : float, default=1.0
        Multiple of the metric.

    Returns
    -------
    direction : dict of str to ndarray
        Same keys and shapes.

    References
    ----------
    .. [1] Pascanu, Mikolov, Bengio (2013), "On the difficulty of training recurrent neural
       networks", ICML, PMLR 28(3), 1310-1318, algorithm 1.
    """
    multiples = _metric(machine, variance)
    if metric_unit != 1:
        multiples = {name: metric_unit * multiples.get(name, 1.0) for name in gradient}
    if max_norm is not None:
        norm = math.sqrt(sum(_square(a, multiples.get(n, 1.0)) for n, a in gradient.items()))
        if norm > max_norm:
            for array in gradient.values():
                array *= max_norm / norm
    for name in multiples.keys() & gradient.keys():
        if np.ndim(multiples[name]) or multiples[name] != 1:
            gradient[name] *= multiples[name]
    return gradient


def _square(array: Array, multiples: Any) -> float:
    """Weighted sum of squares."""
    weights = np.broadcast_to(multiples, array.shape)
    return float(sum((array[rows] ** 2 * weights[rows]).sum() for rows in row_blocks(array)))


def _gauged(machine: Machine, weights: Array) -> Array:
    """Weights, or what is shaped like them, in the gauge of both layers."""
    return machine.hidden.gauge(machine.visible.gauge(weights).T).T


def _metric(machine: Machine, variance: Array | None) -> dict[str, Any]:
    """Multiples of the gradient by the machine's names of parameters; what is missing is one."""
    visible, hidden = machine.visible.metric(variance), machine.hidden.metric(None)
    multiples: dict[str, Any] = {f"visible_{n}": array for n, array in visible.parameters.items()}
    multiples |= {f"hidden_{n}": array for n, array in hidden.parameters.items()}
    signal: Any = visible.signal
    multiples["weights"] = (signal[:, None] if np.ndim(signal) else signal) * hidden.signal
    return multiples
