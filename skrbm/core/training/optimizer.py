"""Update rules: the one place where parameters change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.numerics import Array


@final
@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient ascent.

    Parameters
    ----------
    learning_rate : float
        Multiple of the direction that is added to the parameters.
    """

    learning_rate: float

    def step(self, parameters: dict[str, Array], direction: dict[str, Array]) -> None:
        """Move the parameters in place; the direction's arrays are used up.

        Parameters
        ----------
        parameters : dict of str to ndarray
            From `Machine.parameters`.
        direction : dict of str to ndarray
            Ascent direction, same keys and shapes.
        """
        for name, array in parameters.items():
            np.multiply(direction[name], self.learning_rate, out=direction[name])
            array += direction[name]
