"""Where training starts: statistics of the data, small random weights, first particles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import sample_base
from skrbm.core.units import Units

WEIGHT_SCALE = 0.01
BLOCK_ROWS = 1024


def column_statistics(v: Any) -> tuple[Array, Array]:
    """Mean and variance of every column in double precision, without a copy of the data.

    Parameters
    ----------
    v : {ndarray, sparse matrix in canonical CSR format} of shape (n_samples, n_visible)
        Data of any numeric type.

    Returns
    -------
    mean : ndarray of shape (n_visible,)
        Average of each column.
    variance : ndarray of shape (n_visible,)
        Exactly zero for a constant column, and for no other.
    """
    n_samples, n_visible = v.shape
    if issparse(v):
        n_stored = np.bincount(v.indices, minlength=n_visible)
        mean = np.bincount(v.indices, v.data, n_visible) / n_samples
        square = np.bincount(v.indices, np.square(v.data - mean[v.indices]), n_visible)
        variance = (square + (n_samples - n_stored) * mean**2) / n_samples
        constant = (v.min(axis=0).toarray() == v.max(axis=0).toarray()).ravel()
    else:
        mean = np.asarray(v.mean(axis=0, dtype=np.float64))
        variance = np.zeros_like(mean)
        for begin in range(0, n_samples, BLOCK_ROWS):
            variance += np.square(v[begin : begin + BLOCK_ROWS] - mean).sum(axis=0) / n_samples
        constant = v.min(axis=0) == v.max(axis=0)
    return mean, np.where(constant, 0.0, np.maximum(variance, np.finfo(np.float64).tiny))


def initial_machine(visible: Units, hidden: Units, rng: np.random.Generator) -> Machine:
    """Machine of nearly uncoupled layers.

    The weights are drawn in double precision, so that single and double precision models
    start alike.

    Parameters
    ----------
    visible, hidden : Units
        The layers.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        With normal weights of standard deviation `WEIGHT_SCALE` [1]_.

    References
    ----------
    .. [1] Hinton (2012), "A practical guide to training restricted Boltzmann machines",
       section 8. :doi:`10.1007/978-3-642-35289-8_32`
    """
    weights = WEIGHT_SCALE * rng.standard_normal((visible.n_units, hidden.n_units))
    return Machine(visible, hidden, weights.astype(hidden.bias.dtype))


def balanced(machine: Machine, mean: Array) -> Machine:
    """Machine whose hidden units feel nothing but their old bias at the data's mean.

    Without it, data far from zero would hold the hidden units in one state.

    Parameters
    ----------
    machine : Machine
        Left as it is.
    mean : ndarray of shape (n_visible,)
        Average visible state.

    Returns
    -------
    machine : Machine
        Shares all but the hidden layer with the old one.
    """
    field = machine.hidden_field(mean[None])[0]
    return replace(machine, hidden=machine.hidden.recentered(machine.hidden.offset, -field))


def initial_particles(machine: Machine, n_particles: int, rng: np.random.Generator) -> Array:
    """Hidden states drawn as if the layers were not coupled.

    Parameters
    ----------
    machine : Machine
        Only its hidden layer matters.
    n_particles : int
        Number of chains.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    particles : ndarray of shape (n_particles, n_hidden)
        Hidden states.
    """
    return sample_base(machine.transposed, n_particles, rng)
