r"""Offsets: the same distribution in other coordinates, and the gradient in those.

A centred machine subtracts offsets :math:`\alpha, \beta` from the states in its energy. Its
distribution need not change when they move, if the biases absorb what the offsets added.
Following the gradient in centred coordinates makes learning independent of which state of a
unit is called zero [1]_ [2]_.

References
----------
.. [1] Montavon, Müller (2012), "Deep Boltzmann machines and the centering trick", Neural
   Networks: Tricks of the Trade, 621-637. :doi:`10.1007/978-3-642-35289-8_33`
.. [2] Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal of
   Machine Learning Research 17(99), 1-61.
"""

from __future__ import annotations

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array


def recenter(
    machine: Machine, visible_offset: Array | None, hidden_offset: Array | None
) -> Machine:
    """Machine of the same distribution with other offsets.

    The hidden signal must not depend on the hidden bias, as it does not for any discrete unit.

    Parameters
    ----------
    machine : Machine
        With or without offsets.
    visible_offset : ndarray of shape (n_visible,) or None
        New offset; None for none.
    hidden_offset : ndarray of shape (n_hidden,) or None
        New offset; None for none.

    Returns
    -------
    machine : Machine
        Shares the weights with the old one.
    """
    origin = np.zeros((1, machine.hidden.n_units), dtype=machine.weights.dtype)
    still = np.zeros_like(machine.hidden.bias)
    moved = machine.hidden.recentered(hidden_offset, still)
    pull = (machine.hidden.signal(origin) - moved.signal(origin))[0]
    visible = machine.visible.recentered(visible_offset, machine.weights @ pull)

    origin = np.zeros((1, machine.visible.n_units), dtype=machine.weights.dtype)
    pull = (machine.visible.signal(origin) - visible.signal(origin))[0]
    hidden = machine.hidden.recentered(hidden_offset, pull @ machine.weights)
    return Machine(visible, hidden, machine.weights)


def centered_gradient(
    machine: Machine,
    gradient: dict[str, Array],
    visible_offset: Array,
    hidden_offset: Array,
) -> dict[str, Array]:
    r"""Gradient in the parameters of the centred machine, from that in the plain ones.

    With :math:`\theta = U(\vartheta)` the plain parameters of the machine of centred ones
    :math:`\vartheta`, it is :math:`J^T G` with :math:`J` the Jacobian of :math:`U`, the map of
    `recenter`: with :math:`f = -W \beta` the field that the visible layer absorbs and
    :math:`c` the constant by which its signal shifts,

    .. math:: a = a(\vartheta, f), \qquad b = b_\vartheta - W^T c(\vartheta, f).

    For Bernoulli and spin units only the weights' part differs from the plain one:
    :math:`G_W - \alpha G_b^T - G_a \beta^T`.

    Parameters
    ----------
    machine : Machine
        Plain machine, its hidden units discrete.
    gradient : dict of str to ndarray
        Gradient in the machine's plain parameters.
    visible_offset : ndarray of shape (n_visible,)
        Offset of the visible units.
    hidden_offset : ndarray of shape (n_hidden,)
        Offset of the hidden units.

    Returns
    -------
    gradient : dict of str to ndarray
        Same keys and shapes, for ``recenter(machine, visible_offset, hidden_offset)``.
    """
    layer = machine.visible.uncentering(visible_offset, -(machine.weights @ hidden_offset))
    bias, hidden_bias = gradient["visible_bias"], gradient["hidden_bias"]
    along_shift = -(machine.weights @ hidden_bias)
    along_field = layer.bias_by_field * bias + layer.shift_by_field * along_shift
    pulled = np.column_stack([along_field, layer.shift]) @ np.stack([hidden_offset, hidden_bias])
    centred = dict(gradient)
    centred["weights"] = np.subtract(gradient["weights"], pulled, out=pulled)
    for name, (bias_by, shift_by) in layer.by_parameter.items():
        key = f"visible_{name}"
        if key in gradient:
            centred[key] = gradient[key] + bias_by * bias + shift_by * along_shift
    return centred
