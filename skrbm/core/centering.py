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
    origin = np.zeros((1, machine.hidden.n_units), dtype=machine.dtype)
    still = np.zeros_like(machine.hidden.bias)
    moved = machine.hidden.recentered(hidden_offset, still)
    pull = (machine.hidden.signal(origin) - moved.signal(origin))[0]
    visible = machine.visible.recentered(visible_offset, machine.weights @ pull)

    origin = np.zeros((1, machine.visible.n_units), dtype=machine.dtype)
    pull = (machine.visible.signal(origin) - visible.signal(origin))[0]
    hidden = machine.hidden.recentered(hidden_offset, pull @ machine.weights)
    return Machine(visible, hidden, machine.weights)
