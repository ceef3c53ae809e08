r"""Offsets: the same distribution in other coordinates.

A centred machine subtracts offsets :math:`\alpha, \beta` from the states in its energy. Its
distribution need not change when they move, if the biases absorb what the offsets added.
Following the gradient of the centred machine, in its own parameters, makes learning independent
of which state of a unit is called zero [1]_ [2]_.

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

    The signal of the hidden units has to be their state minus the offset, as it is of every discrete
    unit.

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
    layer, hidden_layer, weights = machine.visible, machine.hidden, machine.weights
    lost = _offset_change(hidden_layer, hidden_offset)
    visible = layer.recentered(visible_offset, weights @ lost)
    hidden = hidden_layer.recentered(hidden_offset, layer.lost_signal(visible) @ weights)
    return Machine(visible, hidden, weights)


def _offset_change(layer: Units, offset: Array | None) -> Array:
    """New offset minus the old one: signal that units lose whose signal is state minus offset."""
    old = layer.offset
    if old is None:
        return layer.zero_field(1)[0] if offset is None else offset
    return -old if offset is None else offset - old


def gauged(machine: Machine) -> Machine:
    """Machine of the same distribution in the gauge of its layers.

    Units of several columns leave a part of the weights and biases open, which no probability
    depends on: it is moved from their columns to the other layer's biases.

    Parameters
    ----------
    machine : Machine
        With or without offsets.

    Returns
    -------
    machine : Machine
        The very same where nothing is open.
    """
    half = _gauged_visible(machine)
    whole = _gauged_visible(half.transposed)
    return half if whole is half.transposed else whole.transposed


def _gauged_visible(machine: Machine) -> Machine:
    layer, hidden = machine.visible, machine.hidden
    weights = layer.gauge(machine.weights)
    if weights is machine.weights:
        return machine
    # What was taken out is alike in all columns of a unit, hence in all of its states.
    state = layer.signal(layer.mean(layer.zero_field(1)))[0]
    absorbed = hidden.recentered(hidden.offset, state @ (machine.weights - weights))
    # The other layer's signal may go by its bias, which has just moved.
    lost = weights @ hidden.lost_signal(absorbed)
    return Machine(layer.gauged().recentered(layer.offset, lost), absorbed, weights)
