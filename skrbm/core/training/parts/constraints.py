"""Constraints on parameters, enforced after every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.part import Part, Step


@final
@dataclass(frozen=True)
class Constraints(Part):
    """Bounds on the norms of the weights and on single parameters.

    Parameters
    ----------
    max_norm : float or None, default=None
        Largest Euclidean norm of the weights of each hidden column [1]_. If None, norms are not
        bounded.
    bounds : mapping of str to (ndarray, ndarray), default=None
        Lower and upper bounds of parameters, by their names in `Machine.parameters`. Both have the
        shape of the parameter. If None, no parameter is bounded.

    References
    ----------
    .. [1] Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov (2014), "Dropout: a simple
       way to prevent neural networks from overfitting", Journal of Machine Learning Research
       15(56), 1929-1958, section 5.1.
    """

    name: ClassVar[str] = "constraints"

    max_norm: float | None = None
    bounds: Mapping[str, tuple[Array, Array]] | None = None

    def after_step(self, step: Step, machine: Machine) -> None:
        self.enforce(machine.parameters)

    def enforce(self, parameters: dict[str, Array]) -> None:
        """Rescale weights and clip parameters that violate a bound, in place.

        Parameters
        ----------
        parameters : dict of str to ndarray
            Parameters from `Machine.parameters`, with "weights" and all keys of `bounds`.
        """
        if self.max_norm is not None:
            weights = parameters["weights"]
            norms = np.sqrt(np.einsum("ij,ij->j", weights, weights))
            if norms.max() > self.max_norm:
                weights *= self.max_norm / np.maximum(norms, self.max_norm)
        for name, (lowest, highest) in (self.bounds or {}).items():
            np.clip(parameters[name], lowest, highest, out=parameters[name])
