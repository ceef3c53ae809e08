"""Penalties on the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step


@final
@dataclass(frozen=True)
class Penalties(Part):
    r"""Penalties on the weights, which are subtracted from the objective of training.

    The objective is the mean log-likelihood or, with labels, the mean of the objective of
    `LabelObjective`. Without labels, training maximizes

    .. math::

        \frac{1}{n} \sum_v \log p(v) - \lambda_1 \sum_{ij} |W_{ij}|
        - \frac{\lambda_{1 \times 1}}{2 m} \sum_j \left( \sum_i |W_{ij}| \right)^2
        - \frac{\lambda_2}{2} \sum_{ij} W_{ij}^2

    where :math:`n` is the number of rows, :math:`m` the number of visible columns, and :math:`W`
    the weights after the method `gauge` of both layers. The magnitude of the derivative of the
    second penalty with respect to a nonzero weight is proportional to the sum of the absolute
    weights of its hidden column. Units with large weights therefore become as sparse as other units
    [1]_.

    Parameters
    ----------
    l1 : float, default=0.0
        Coefficient :math:`\lambda_1` of the absolute weights.
    l1_squared : float, default=0.0
        Coefficient :math:`\lambda_{1 \times 1}` of the squared sums of absolute weights.
    l2 : float, default=0.0
        Coefficient :math:`\lambda_2` of the squared weights.

    References
    ----------
    .. [1] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence
       data", eLife 8, e39397, methods. :doi:`10.7554/eLife.39397`
    """

    name: ClassVar[str] = "penalties"

    l1: float = 0.0
    l1_squared: float = 0.0
    l2: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.l1 or self.l1_squared or self.l2)

    def of_weights(self, machine: Machine) -> float:
        r"""Compute the sum of the three penalties for the weights of a machine.

        Parameters
        ----------
        machine : Machine
            Machine whose weights are penalized.

        Returns
        -------
        penalty : float
            Sum of the penalties, in nats.
        """
        weights = _gauged(machine, machine.weights)
        sums = np.abs(weights).sum(axis=0)
        squares = self.l1_squared / len(weights) * (sums**2).sum() + self.l2 * (weights**2).sum()
        return float(self.l1 * sums.sum() + squares / 2)

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Subtract the gradients of the penalties from the gradient of the weights."""
        if self.l2:
            gradient["weights"] -= self.l2 * _gauged(machine, machine.weights)
        if self.l1 or self.l1_squared:
            weights = _gauged(machine, machine.weights)
            slopes: float | Array = self.l1
            if self.l1_squared:
                slopes += self.l1_squared / len(weights) * np.abs(weights).sum(axis=0)
            gradient["weights"] -= _gauged(machine, slopes * np.sign(weights))


def _gauged(machine: Machine, weights: Array) -> Array:
    """Apply the method `gauge` of both layers to the weights, or to an array of their shape."""
    return machine.hidden.gauge(machine.visible.gauge(weights).T).T
