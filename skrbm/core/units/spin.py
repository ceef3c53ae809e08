"""Spin units: -1 or +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.numerics import Array
from skrbm.core.units.linear import TwoStateUnits
from skrbm.core.units.support import Support


@final
@dataclass(frozen=True, eq=False)
class Spin(TwoStateUnits):
    r"""Units that are -1 or +1, with :math:`p(s = +1 \mid f) = 1 / (1 + e^{-2(b + f)})`.

    The mean is :math:`\tanh(b + f)`; it is not the probability of +1.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Half the log-odds of being +1 without a field.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Ackley, Hinton, Sejnowski (1985), "A learning algorithm for Boltzmann machines",
       Cognitive Science 9(1), 147-169. :doi:`10.1207/s15516709cog0901_7`

    Examples
    --------
    Mean of a unit with a field of one:

    >>> import numpy as np
    >>> unit = Spin(bias=np.zeros(1))
    >>> round(float(unit.mean(np.ones((1, 1)))[0, 0]), 3)
    0.762
    """

    support = Support.of(-1.0, 1.0)

    def expectation(self, x: Array) -> Array:
        return np.tanh(x, out=x)

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        return self._draw_from(self.expectation(x), rng, x)
