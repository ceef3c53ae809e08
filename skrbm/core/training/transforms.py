"""What is done to a direction before the step, and to the parameters after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.training.optimizer import Arrays
from skrbm.core.units.support import Metric


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

    def of_weights(self, machine: Machine) -> float:
        r"""What is paid for the weights.

        Parameters
        ----------
        machine : Machine
            With the weights.

        Returns
        -------
        penalty : float
            In nats: :math:`\lambda_1 \sum |W_{ij}| + \frac{\lambda_2}{2} \sum W_{ij}^2`.
        """
        weights = _gauged(machine, machine.weights)
        return float(self.l1 * np.abs(weights).sum() + self.l2 / 2 * (weights**2).sum())

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


@final
@dataclass
class Preconditioner:
    """What makes a gradient the direction of a step: the layers' own metric, and a bound.

    Parameters
    ----------
    variance, kurtosis : ndarray of shape (n_visible,), default=None
        Of the data, in which steps are measured; None where that is not known.
    unit : float, default=1.0
        Multiple of the metric, so that a learning rate can mean the step of the weights of units
        whose metric is not one.
    max_norm : float or None, default=None
        Largest norm in that metric, all parameters together [1]_, so that it means the same for
        data in any units of measurement.

    References
    ----------
    .. [1] Pascanu, Mikolov, Bengio (2013), "On the difficulty of training recurrent neural
       networks", ICML, PMLR 28(3), 1310-1318, algorithm 1.
    """

    variance: Array | None = None
    kurtosis: Array | None = None
    unit: float = 1.0
    max_norm: float | None = None
    _fixed: dict[str, Any] | None = field(default=None, init=False)

    def direction(self, machine: Machine, gradient: Arrays) -> Arrays:
        """Direction of a step, not longer than allowed.

        Parameters
        ----------
        machine : Machine
            Asked for the metric of its layers: once, where no parameter changes it.
        gradient : dict of str to ndarray
            Same keys as the machine's parameters; used up.

        Returns
        -------
        direction : dict of str to ndarray
            Same keys and shapes.
        """
        multiples = self._fixed
        if multiples is None:
            multiples = self._multiples(machine, gradient)
            if machine.visible.is_signal_fixed and machine.hidden.is_signal_fixed:
                self._fixed = multiples
        if self.max_norm is not None:
            norm = math.sqrt(sum(_square(a, multiples.get(n, 1.0)) for n, a in gradient.items()))
            if norm > self.max_norm:
                for array in gradient.values():
                    array *= self.max_norm / norm
        for name, multiple in multiples.items():
            gradient[name] *= multiple
        return gradient

    def metrics(self, machine: Machine) -> tuple[Metric, Metric]:
        """Metric of the visible and of the hidden layer, without the unit."""
        return machine.visible.metric(self.variance, self.kurtosis), machine.hidden.metric(None)

    def _multiples(self, machine: Machine, gradient: Arrays) -> dict[str, Any]:
        """Multiples of those parts of the gradient that the metric changes."""
        visible, hidden = self.metrics(machine)
        signal: Any = visible.signal
        multiples: dict[str, Any] = {
            "weights": (signal[:, None] if np.ndim(signal) else signal) * hidden.signal,
            **{f"visible_{name}": multiple for name, multiple in visible.parameters.items()},
            **{f"hidden_{name}": multiple for name, multiple in hidden.parameters.items()},
        }
        multiples = {name: self.unit * multiples.get(name, 1.0) for name in gradient}
        return {name: m for name, m in multiples.items() if np.any(m != 1)}


def _square(array: Array, multiples: Any) -> float:
    """Weighted sum of squares."""
    weights = np.broadcast_to(multiples, array.shape)
    return float(sum((array[rows] ** 2 * weights[rows]).sum() for rows in row_blocks(array)))


def _gauged(machine: Machine, weights: Array) -> Array:
    """Weights, or what is shaped like them, in the gauge of both layers."""
    return machine.hidden.gauge(machine.visible.gauge(weights).T).T
