r"""Centering: offsets that change the parameters but not the distribution.

A centered machine subtracts offsets :math:`\alpha, \beta` from the states in its energy. Changes
of the offsets leave the distribution unchanged if the biases compensate for them. Gradient ascent
in the parameters of the centered machine makes learning invariant to the value of a unit's states:
flipping 0 and 1 gives the same result [1]_ [2]_.

References
----------
.. [1] Montavon, Müller (2012), "Deep Boltzmann machines and the centering trick", Neural
   Networks: Tricks of the Trade, 621-637. :doi:`10.1007/978-3-642-35289-8_33`
.. [2] Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal of
   Machine Learning Research 17(99), 1-61.
"""

from __future__ import annotations

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Units


def recenter(
    machine: Machine, visible_offset: Array | None, hidden_offset: Array | None
) -> Machine:
    """Machine of the same distribution with other offsets.

    The signal of the hidden units must be their states minus the offset, as for all discrete units.

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
        Shares its weights with the given machine.
    """
    layer, hidden_layer, weights = machine.visible, machine.hidden, machine.weights
    change = _offset_change(hidden_layer, hidden_offset)
    visible = layer.recentered(visible_offset, weights @ change)
    hidden = hidden_layer.recentered(hidden_offset, layer.signal_shift(visible) @ weights)
    return Machine(visible, hidden, weights)


def _offset_change(layer: Units, offset: Array | None) -> Array:
    """New offset minus the old one, (n_columns,); None counts as zero."""
    old = layer.offset
    if old is None:
        return layer.zero_field(1)[0] if offset is None else offset
    return -old if offset is None else offset - old


def in_zero_sum_gauge(machine: Machine) -> Machine:
    """Machine of the same distribution in the gauge of its layers.

    For units of several columns a part of the weights and biases has no effect on the distribution
    (a constant added to all columns of a categorical unit). It is removed from the weights and
    absorbed into the biases of the other layer.

    Parameters
    ----------
    machine : Machine
        With or without offsets.

    Returns
    -------
    machine : Machine
        The given machine itself if no layer has a gauge freedom.
    """
    half = _gauged_visible(machine)
    whole = _gauged_visible(half.transposed)
    return half if whole is half.transposed else whole.transposed


def _gauged_visible(machine: Machine) -> Machine:
    layer, hidden = machine.visible, machine.hidden
    weights = layer.gauge(machine.weights)
    if weights is machine.weights:
        return machine
    # The removed part is equal in all columns of a unit, so its field is the same in all states.
    state = layer.signal(layer.mean(layer.zero_field(1)))[0]
    absorbed = hidden.recentered(hidden.offset, state @ (machine.weights - weights))
    # The signal of the other layer may depend on its bias, which has changed.
    change = weights @ hidden.signal_shift(absorbed)
    return Machine(layer.in_zero_sum_gauge().recentered(layer.offset, change), absorbed, weights)
