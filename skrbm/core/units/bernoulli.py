"""Bernoulli units: 0 or 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.draws import draw_bernoulli
from skrbm.core.numerics import Array, logistic
from skrbm.core.units.linear import TwoStateUnits
from skrbm.core.units.support import Support


@final
@dataclass(frozen=True, eq=False)
class Bernoulli(TwoStateUnits):
    r"""Units that are 0 or 1, with :math:`p(s = 1 \mid f) = 1 / (1 + e^{-(b + f)})`.

    Parameters
    ----------
    bias : ndarray of shape (n_columns,)
        Log-odds of being 1 without a field.
    offset : ndarray of shape (n_columns,), default=None
        Constant that is subtracted from the states in the signal and in the linear term of the
        energy. If None, nothing is subtracted.

    References
    ----------
    .. [1] Smolensky (1986), "Information processing in dynamical systems: foundations of
       harmony theory", in Parallel Distributed Processing, vol. 1, MIT Press, 194-281.

    Examples
    --------
    An unbiased unit without field has two equally likely states:

    >>> import numpy as np
    >>> unit = Bernoulli(bias=np.zeros(1))
    >>> float(unit.log_partition(np.zeros((1, 1)))[0] / np.log(2))
    1.0
    """

    support = Support.of(0.0, 1.0)
    expectation = staticmethod(logistic)

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        return draw_bernoulli(logistic(x), rng, out=x)
