"""Restricted Boltzmann machine with units that are 0 or 1."""

from __future__ import annotations

from typing import Any, ClassVar

from skrbm.core.units import Bernoulli
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.docstrings import inherit_docstring
from skrbm.estimators.parameters import with_constructor


@inherit_docstring(BaseRBM)
@with_constructor
class BernoulliRBM(BaseRBM):
    r"""Restricted Boltzmann machine with units that are 0 or 1.

    .. math::

        p(v, h) \propto e^{-E(v, h)}, \qquad
        E(v, h) = -v^T a - v^T W h - h^T b, \qquad v, h \in \{0, 1\}

    for binary hidden units, where :math:`W` is the transpose of `components_`, :math:`a` is
    `intercept_visible_` and :math:`b` is `intercept_hidden_` [6]_. By default, training interprets
    values between 0 and 1, such as gray pixels, as probabilities of the state 1 (see
    `draw_states`). The class replaces ``sklearn.neural_network.BernoulliRBM``: parameters, methods
    and fitted attributes have the same names, but some defaults and the training differ.

    Parameters
    ----------
    check_input : {"warn", "raise", "ignore"}
        Treatment of values outside [0, 1], and of hidden states that the units cannot take: a
        warning, a ValueError, or no check.

    See Also
    --------
    SpinRBM : Units that are -1 or +1.
    GaussianBernoulliRBM : Real-valued visible units.

    References
    ----------
    .. [6] Smolensky (1986), "Information processing in dynamical systems: foundations of
       harmony theory", in Parallel Distributed Processing, vol. 1, MIT Press, 194-281.

    Examples
    --------
    The first two features are always equal, and a row in which they differ has a lower score:

    >>> import numpy as np
    >>> from skrbm import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> rbm = BernoulliRBM(2, learning_rate=1, n_iter=300, algorithm="exact", random_state=0)
    >>> broken = np.array([[0, 1, 0]])
    >>> bool(rbm.fit(X).score(X) > rbm.score(broken) + 2)
    True
    """

    draw_states: bool = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "draw_states": ["boolean"],
    }
    _visible_type = Bernoulli
    _state_dtype = bool
