"""Where training starts: statistics of the data, small random weights, first particles."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Units

WEIGHT_SCALE = 0.01
BLOCK_ROWS = 1024


def column_statistics(v: Any) -> tuple[Array, Array]:
    """Mean and variance of every column in double precision, without a copy of the data.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Data of any numeric type.

    Returns
    -------
    mean : ndarray of shape (n_visible,)
        Average of each column.
    variance : ndarray of shape (n_visible,)
        Exactly zero for a constant column.
    """
    n_samples, n_visible = v.shape
    if issparse(v):
        v = v.tocsc()
        n_stored = np.diff(v.indptr)
        columns = np.repeat(np.arange(n_visible), n_stored)
        mean = np.bincount(columns, v.data, n_visible) / n_samples
        square = np.bincount(columns, np.square(v.data - mean[columns]), n_visible)
        variance = (square + (n_samples - n_stored) * mean**2) / n_samples
    else:
        mean = np.asarray(v.mean(axis=0, dtype=np.float64))
        variance = np.zeros_like(mean)
        for begin in range(0, n_samples, BLOCK_ROWS):
            variance += np.square(v[begin : begin + BLOCK_ROWS] - mean).sum(axis=0) / n_samples
    rounding = (n_samples * np.finfo(np.float64).eps * mean) ** 2
    return mean, np.where(variance > rounding, variance, 0.0)


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
    still = np.zeros((n_particles, machine.hidden.n_units), dtype=machine.weights.dtype)
    return machine.hidden.sample(still, rng)
