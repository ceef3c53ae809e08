r"""Centering: offsets that change the parameters but not the distribution.

In its signals, a centered machine subtracts an offset from the visible states and another offset
from the hidden states [1]_. A machine without offsets is called plain. If the offsets change, the
biases can compensate for the change, so that the distribution stays the same. If the offsets are
means of the states, gradient ascent in the parameters of the centered machine is invariant to an
exchange of the states 0 and 1 of a unit [2]_.

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
from skrbm.core.units.linear import offset_change


def recenter(
    machine: Machine, visible_offset: Array | None, hidden_offset: Array | None
) -> Machine:
    """Change the offsets of a machine, keeping its distribution.

    The signal of the hidden units must equal their states minus the offset, as for the types that
    are derived from `LinearUnits`.

    Parameters
    ----------
    machine : Machine
        Machine with or without offsets.
    visible_offset : ndarray of shape (n_visible,) or None
        New offset of the visible layer. If None, the new layer has no offset.
    hidden_offset : ndarray of shape (n_hidden,) or None
        New offset of the hidden layer. If None, the new layer has no offset.

    Returns
    -------
    machine : Machine
        New machine, which shares the array of the weights with `machine`.
    """
    layer, hidden_layer, weights = machine.visible, machine.hidden, machine.weights
    change = offset_change(hidden_layer, hidden_offset)
    visible = layer.recentered(visible_offset, weights @ change)
    hidden = hidden_layer.recentered(hidden_offset, layer.signal_shift(visible) @ weights)
    return Machine(visible, hidden, weights)


def in_zero_sum_gauge(machine: Machine) -> Machine:
    """Remove the gauge freedom of the weights, keeping the distribution.

    In a layer whose units have several columns, some components of the weights cause a field on the
    other layer that is the same for all states of the units. An example is a constant that is added
    to the weights of all columns of a categorical unit. These components are removed from the
    weights and absorbed into the biases of the other layer. In the layer itself, components of the
    biases that do not affect the distribution are set to zero.

    Parameters
    ----------
    machine : Machine
        Machine with or without offsets.

    Returns
    -------
    machine : Machine
        Machine in the zero-sum gauge. If no layer has a gauge freedom, it is `machine` itself.
    """
    half = _gauged_visible(machine)
    whole = _gauged_visible(half.transposed)
    return half if whole is half.transposed else whole.transposed


def _gauged_visible(machine: Machine) -> Machine:
    layer, hidden = machine.visible, machine.hidden
    weights = layer.gauge(machine.weights)
    if weights is machine.weights:
        return machine
    # The removed component is the same in all columns of a unit, so its field is the same for all
    # states.
    state = layer.signal(layer.mean(layer.zero_field(1)))[0]
    absorbed = hidden.recentered(hidden.offset, state @ (machine.weights - weights))
    # The signal of the other layer may depend on its bias, which has changed.
    change = weights @ hidden.signal_shift(absorbed)
    return Machine(layer.in_zero_sum_gauge().recentered(layer.offset, change), absorbed, weights)
