"""Conversion between equivalent machines with states 0 and 1 and with states -1 and +1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from skrbm.core.numerics import Array
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.bernoulli_rbm import BernoulliRBM
from skrbm.estimators.input.array_libraries import place_of, to_numpy
from skrbm.estimators.spin_rbm import SpinRBM

RBM = TypeVar("RBM", bound=BaseRBM)


def to_bernoulli(rbm: SpinRBM) -> BernoulliRBM:
    r"""Convert a machine with units -1 and +1 to the equivalent machine with units 0 and 1.

    The states are :math:`v = 2 u - 1` and :math:`h = 2 g - 1`, where :math:`u` and :math:`g` are 0
    or 1. The parameters of the converted machine are

    .. math:: W' = 4 W, \qquad a' = 2 (a - W 1), \qquad b' = 2 (b - W^T 1)

    where :math:`W` is the transpose of `components_`, :math:`a` is `intercept_visible_`, :math:`b`
    is `intercept_hidden_`, and :math:`1` is a vector of ones.

    Parameters
    ----------
    rbm : SpinRBM
        Estimator that is fitted or whose public arrays were assigned by hand. It is not changed.

    Returns
    -------
    twin : BernoulliRBM
        Machine with the same distribution, converted chains and equivalent constructor parameters
        (see Notes). Its public arrays are of the same library as those of `rbm`.

    Raises
    ------
    TypeError
        If `rbm` is of another class.
    ValueError
        If the hidden units of `rbm` are not "binary", or if its public arrays are missing or
        invalid.

    Notes
    -----
    Constructor parameters are scaled so that both machines have the same distribution after a step
    of centered training. `learning_rate` is multiplied by 16 (by 4 for Adam), `max_norm` by 4, `l1`
    and `max_gradient_norm` by 1/4, and `l1_squared` and `l2` by 1/16. All other parameters are
    copied. `n_iter_`, `history_`, the chains at other temperatures, the statistics of the training
    data, the state of the optimizer and the random streams are not copied. With Adam, only the
    steps of the weights are equivalent. The steps of the biases are twice as long in
    `BernoulliRBM`.

    Examples
    --------
    >>> import numpy as np
    >>> from skrbm import SpinRBM, to_bernoulli
    >>> X = np.repeat([[-1, -1], [1, 1]], 50, axis=0)
    >>> rbm = SpinRBM(2, learning_rate=0.025, random_state=0).fit(X)
    >>> twin = to_bernoulli(rbm)
    >>> round(twin.learning_rate, 3)
    0.4
    """
    W, a, b = _plain(rbm, SpinRBM)
    arrays = 4 * W, 2 * (a - W.sum(0)), 2 * (b - W.sum(1))
    return _assign(BernoulliRBM(), rbm, arrays, 4, lambda h: (h + 1) / 2)


def to_spin(rbm: BernoulliRBM) -> SpinRBM:
    r"""Convert a machine with units 0 and 1 to the equivalent machine with units -1 and +1.

    Inverse of `to_bernoulli`, with the same symbols:

    .. math:: W' = \tfrac14 W, \qquad a' = \tfrac12 a + \tfrac14 W 1, \qquad
        b' = \tfrac12 b + \tfrac14 W^T 1

    Parameters
    ----------
    rbm : BernoulliRBM
        Estimator that is fitted or whose public arrays were assigned by hand. It is not changed.

    Returns
    -------
    twin : SpinRBM
        Machine with the same distribution, converted chains and equivalent constructor parameters,
        as for `to_bernoulli`.

    Raises
    ------
    TypeError
        If `rbm` is of another class.
    ValueError
        If the hidden units of `rbm` are not "binary", or if its public arrays are missing or
        invalid.
    """
    W, a, b = _plain(rbm, BernoulliRBM)
    arrays = W / 4, a / 2 + W.sum(0) / 4, b / 2 + W.sum(1) / 4
    return _assign(SpinRBM(), rbm, arrays, 1 / 4, lambda h: 2 * h - 1)


def _plain(rbm: BaseRBM, expected: type[BaseRBM]) -> tuple[Array, Array, Array]:
    if not isinstance(rbm, expected):
        raise TypeError(
            f"Expected a {expected.__name__} of skrbm, whose states can be mapped, got a "
            f"{type(rbm).__name__} of {type(rbm).__module__.partition('.')[0]}."
        )
    if rbm.hidden_units != "binary":
        raise ValueError(
            f"Expected hidden_units='binary', whose states can be mapped, got {rbm.hidden_units!r}."
        )
    machine = rbm._model.machine()
    return machine.weights.T, machine.visible.bias, machine.hidden.bias


def _assign(
    twin: RBM,
    rbm: BaseRBM,
    arrays: tuple[Array, Array, Array],
    scale: float,
    map_hidden: Callable[[Any], Any],
) -> RBM:
    """Set the parameters and arrays of `twin`, the machine that is equivalent to `rbm`.

    `scale` is the ratio of the weights of `twin` to the weights of `rbm`.
    """
    # The gradient of the weights is divided by `scale`; the length of Adam's step does not change.
    factors = {
        "learning_rate": scale if rbm.optimizer == "adam" else scale**2,
        "l1": 1 / scale,
        "l1_squared": 1 / scale**2,
        "l2": 1 / scale**2,
        "max_norm": scale,
        "max_gradient_norm": 1 / scale,
    }
    params = rbm.get_params(deep=False)
    params |= {name: params[name] * by for name, by in factors.items() if params[name] is not None}
    twin.set_params(**{name: params[name] for name in twin.get_params(deep=False)})
    place = place_of(rbm.components_)
    back = place.back if place is not None else np.asarray
    twin.components_, twin.intercept_visible_, twin.intercept_hidden_ = map(back, arrays)
    if hasattr(rbm, "h_samples_"):
        twin.h_samples_ = back(map_hidden(to_numpy(rbm.h_samples_)))
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(rbm, name):
            setattr(twin, name, getattr(rbm, name))
    return twin
