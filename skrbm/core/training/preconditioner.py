"""Metric of the step: a gradient becomes the direction of steepest ascent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks
from skrbm.core.training.gradient import Gradient
from skrbm.core.units.support import Metric


@final
@dataclass
class Preconditioner:
    """Metric of the layers, in which a gradient becomes a direction, and a bound on its norm.

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
    _hidden_variance: Array | None = field(default=None, init=False)

    def scale_hidden(self, variance: Array) -> None:
        """Measure steps from now on in a variance of the hidden states, of shape (n_hidden,)."""
        self._hidden_variance, self._fixed = variance, None

    def direction(self, machine: Machine, gradient: Gradient) -> Gradient:
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
        visible = machine.visible.metric(self.variance, self.kurtosis)
        return visible, machine.hidden.metric(self._hidden_variance)

    def _multiples(self, machine: Machine, gradient: Gradient) -> dict[str, Any]:
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
