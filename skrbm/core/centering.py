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
    moved = machine.hidden.recentered(hidden_offset, machine.hidden.zero_field(1)[0])
    visible = machine.visible.recentered(
        visible_offset, machine.weights @ machine.hidden.lost_signal(moved)
    )
    lost = machine.visible.lost_signal(visible)
    hidden = machine.hidden.recentered(hidden_offset, lost @ machine.weights)
    return Machine(visible, hidden, machine.weights)


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
