"""Penalties on the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.training.gradient import Gradient
from skrbm.core.training.part import Part, Step


@final
@dataclass(frozen=True)
class Penalties(Part):
    r"""Penalties that are subtracted from the log-likelihood.

    .. math::

        \frac{1}{n} \sum_v \log p(v) - \lambda_1 \sum |W_{ij}|
        - \frac{\lambda_2}{2} \sum W_{ij}^2

    Parameters
    ----------
    l1 : float, default=0.0
        :math:`\lambda_1`, of the plain machine's weights.
    l2 : float, default=0.0
        :math:`\lambda_2`, likewise.
    """

    name: ClassVar[str] = "penalties"

    l1: float = 0.0
    l2: float = 0.0

    def of_weights(self, machine: Machine) -> float:
        r"""Penalty on the weights.

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

    def transform(self, step: Step, machine: Machine, gradient: Gradient) -> None:
        """Subtract the slopes of the penalties, which act on weights in the gauge of their layers."""
        if self.l2:
            weights = _gauged(machine, machine.weights)
            for rows in row_blocks(weights):
                gradient["weights"][rows] -= self.l2 * weights[rows]
        if self.l1:
            signs = np.sign(_gauged(machine, machine.weights))
            gradient["weights"] -= self.l1 * _gauged(machine, signs)


def _gauged(machine: Machine, weights: Array) -> Array:
    """Weights, or what is shaped like them, in the gauge of both layers."""
    return machine.hidden.gauge(machine.visible.gauge(weights).T).T
