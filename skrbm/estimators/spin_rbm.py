"""Restricted Boltzmann machine with units that are -1 or +1."""

from __future__ import annotations

from typing import Any, ClassVar

from skrbm.core.units import Spin
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.docstrings import inherit_docstring
from skrbm.estimators.parameters import with_constructor


@inherit_docstring(BaseRBM)
@with_constructor
class SpinRBM(BaseRBM):
    r"""Restricted Boltzmann machine with units that are -1 or +1.

    .. math::

        p(v, h) \propto e^{-E(v, h)}, \qquad
        E(v, h) = -v^T a - v^T W h - h^T b, \qquad v, h \in \{-1, +1\}

    for binary hidden units, where :math:`W` is the transpose of `components_`, :math:`a` is
    `intercept_visible_` and :math:`b` is `intercept_hidden_` [6]_. For binary hidden units,
    `transform` returns the means :math:`\tanh(b + W^T v)`.

    Parameters
    ----------
    learning_rate : float
        Initial learning rate. With "sgd" and binary hidden units, it is the learning rate of the
        weights, and the learning rate of the biases is four times as large. Steps of centered
        training are then equivalent to those of `BernoulliRBM` with a learning rate 16 times as
        large, because the two states of a spin differ by two. With "adam", all parameters have the
        same learning rate. With "adam" and binary hidden units, steps of the weights in centered
        training are equivalent to those of `BernoulliRBM` with a learning rate four times as large.
    max_gradient_norm : float or None
        Threshold of gradient clipping: a gradient with a larger Euclidean norm over all parameters
        is scaled down to this norm. With binary hidden units, the norm is computed with the
        gradients of the biases multiplied by two. With other hidden units, it is computed with
        hidden states measured in units of their standard deviations. The gradients of the weights
        and of the visible biases are then multiplied by two, and those of the hidden biases by
        four. If None, gradients are not clipped.
    check_input : {"warn", "raise", "ignore"}
        Treatment of values outside [-1, 1], of `X` that contains 0 and 1 but no other value, and of
        hidden states that the units cannot take: a warning, a ValueError, or no check.

    See Also
    --------
    BernoulliRBM : Units that are 0 or 1.
    to_bernoulli : Equivalent machine with units that are 0 or 1.

    References
    ----------
    .. [6] Ackley, Hinton, Sejnowski (1985), "A learning algorithm for Boltzmann machines",
       Cognitive Science 9(1), 147-169. :doi:`10.1207/s15516709cog0901_7`

    Examples
    --------
    The equivalent machine with units that are 0 or 1 has the same scores:

    >>> import numpy as np
    >>> from skrbm import SpinRBM, to_bernoulli
    >>> X = np.array([[-1, -1, -1], [-1, -1, 1], [1, 1, -1], [1, 1, 1]])
    >>> rbm = SpinRBM(2, n_iter=100, algorithm="exact", random_state=0).fit(X)
    >>> twin = to_bernoulli(rbm)
    >>> bool(np.allclose(rbm.score_samples(X), twin.score_samples((X + 1) / 2)))
    True
    """

    learning_rate: float = 0.025
    draw_states: bool = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "draw_states": ["boolean"],
    }
    _visible_type = Spin
    _hidden_type = Spin
    _metric_unit = 16.0
