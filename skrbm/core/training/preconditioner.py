"""Gradient clipping and diagonal preconditioning, which define the direction of a step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine, by_layer
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.training.gradient import Gradient
from skrbm.core.units.support import UNKNOWN, ColumnStatistics, Metric


@final
@dataclass
class Preconditioner:
    """Conversion of a gradient to the direction of a step: clipping and preconditioning.

    The preconditioner is diagonal: each entry of the gradient is multiplied by a factor. These
    factors are the metric, which is defined by the `Metric` of each layer.

    Parameters
    ----------
    statistics : ColumnStatistics, default=UNKNOWN
        Statistics of the columns of the data, on which the metric of the visible layer may depend.
    unit : float, default=1.0
        Factor by which the metric of all parameters is multiplied. For example, the metric of
        weights between spin units is 1/16. With a factor of 16, their direction is the gradient.
    max_norm : float or None, default=None
        Largest norm of the gradient of all parameters together; longer gradients are scaled down to
        this norm [1]_. In the norm, each squared entry is multiplied by its factor in the metric.
        The norm therefore does not depend on the units of measurement of the data. If None,
        gradients are not clipped.

    References
    ----------
    .. [1] Pascanu, Mikolov, Bengio (2013), "On the difficulty of training recurrent neural
       networks", ICML, PMLR 28(3), 1310-1318, algorithm 1.
    """

    statistics: ColumnStatistics = UNKNOWN
    unit: float = 1.0
    max_norm: float | None = None
    _fixed: dict[str, Any] | None = field(default=None, init=False)
    _hidden_statistics: ColumnStatistics = field(default=UNKNOWN, init=False)

    def scale_hidden(self, variance: Array) -> None:
        """Set the variances, of shape (n_hidden,), that define the metric of the hidden layer.

        The factors in the metric of `RealUnits` decrease with these variances; variances below 1
        count as 1.
        """
        self._hidden_statistics, self._fixed = ColumnStatistics(variance), None

    def direction(self, machine: Machine, gradient: Gradient) -> Gradient:
        """Compute the direction of the step: clip the gradient, then precondition it.

        Parameters
        ----------
        machine : Machine
            Machine in training. If `is_signal_fixed` is True for both layers, the metric is cached
            until the next call of `scale_hidden`.
        gradient : dict of str to ndarray
            Gradient, with the same keys as the machine's parameters. It is overwritten.

        Returns
        -------
        direction : dict of str to ndarray
            Direction, with the same keys and shapes as the gradient.
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
        """Metrics of the visible and the hidden layer, without the factor `unit`."""
        visible = machine.visible.metric(self.statistics)
        return visible, machine.hidden.metric(self._hidden_statistics)

    def _multiples(self, machine: Machine, gradient: Gradient) -> dict[str, Any]:
        """Factors of the metric times `unit`, by parameter; scalar factors of 1 are omitted."""
        visible, hidden = self.metrics(machine)
        signal: Any = visible.signal
        multiples = by_layer(visible.parameters, hidden.parameters)
        multiples["weights"] = (signal[:, None] if np.ndim(signal) else signal) * hidden.signal
        multiples = {name: self.unit * multiples.get(name, 1.0) for name in gradient}
        return {name: m for name, m in multiples.items() if np.ndim(m) or m != 1}


def _square(array: Array, multiples: Any) -> float:
    """Sum of the squared entries of an array, each multiplied by its factor in `multiples`."""
    if not np.ndim(multiples):
        multiples = np.full_like(array, multiples, np.float64, shape=())
    weights, total = np.broadcast_to(multiples, array.shape), 0.0
    for rows in row_blocks(array):
        block = array[rows].astype(np.float64, copy=False)  # squares overflow single precision
        total += float(np.vdot(block * weights[rows], block))
    return total
