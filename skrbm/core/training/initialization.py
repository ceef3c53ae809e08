"""Where training starts: statistics of the data, small random weights, first particles."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, average_rows
from skrbm.core.units import Units

# Rare hidden units of some effect become detectors; undecided ones of no effect have to find out
# what to part over, and leave a continuous layer that has the data's variance as it is.
START_FIELD = 0.5  # nats
START_ACTIVITY = 0.1
MANY = 10**6  # rows, behind a mean that is chosen
BLOCK_ELEMENTS = 2**19  # of the data, in double precision at a time


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
        blocks = [slice(i, i + BLOCK_ELEMENTS) for i in range(0, max(v.nnz, 1), BLOCK_ELEMENTS)]
        n_stored = sum(np.bincount(v.indices[b], minlength=n_visible) for b in blocks)
        mean = sum(np.bincount(v.indices[b], v.data[b], n_visible) for b in blocks) / n_samples
        square = sum(
            np.bincount(v.indices[b], np.square(v.data[b] - mean[v.indices[b]]), n_visible)
            for b in blocks
        )
        variance = (square + (n_samples - n_stored) * mean**2) / n_samples
        constant = (v.min(axis=0).toarray() == v.max(axis=0).toarray()).ravel()
    else:
        n_rows = max(1, BLOCK_ELEMENTS // n_visible)
        statistics = (_block_statistics(v[i : i + n_rows]) for i in range(0, n_samples, n_rows))
        _, mean, variance = reduce(merged_statistics, statistics)
        constant = v.min(axis=0) == v.max(axis=0)
    return mean, np.where(constant, 0.0, np.maximum(variance, np.finfo(np.float64).tiny))


def _block_statistics(v: Array) -> tuple[int, Array, Array]:
    """Number of rows, mean and variance of some rows."""
    deviation = v.astype(np.float64)
    mean = average_rows(deviation)
    deviation -= mean
    return len(v), mean, np.einsum("ij,ij->j", deviation, deviation) / len(v)


def merged_statistics(
    one: tuple[int, Array, Array], other: tuple[int, Array, Array]
) -> tuple[int, Array, Array]:
    """Statistics of two sets of rows together.

    Parameters
    ----------
    one, other : tuple of int, ndarray and ndarray of shape (n_visible,)
        Number of rows, mean and variance of each.

    Returns
    -------
    merged : tuple of int, ndarray and ndarray of shape (n_visible,)
        Of all rows [1]_.

    References
    ----------
    .. [1] Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance: analysis
       and recommendations", The American Statistician 37(3), 242-247, eq. 2.1.
       :doi:`10.2307/2683386`
    """
    (n_one, mean_one, variance_one), (n_other, mean_other, variance_other) = one, other
    n_samples = n_one + n_other
    share, rest = n_other / n_samples, n_one / n_samples
    difference = mean_other - mean_one
    variance = rest * variance_one + share * variance_other + rest * share * difference**2
    return n_samples, mean_one + share * difference, variance


def initial_machine(
    visible: Units,
    hidden_type: type[Units],
    n_hidden: int,
    mean: Array,
    variance: Array,
    rng: np.random.Generator,
) -> Machine:
    """Machine of layers that are hardly coupled.

    The weights are normal, and alike in the visible layer's metric. They are drawn in double
    precision, so that single and double precision models start alike. At the data's mean the
    hidden units feel their own bias alone, and on average they leave the visible layer as it is.

    Parameters
    ----------
    visible : Units
        Double precision layer that resembles the data without a field.
    hidden_type : type
        Of the hidden layer, with two states.
    n_hidden : int
        Number of hidden units.
    mean, variance : ndarray of shape (n_visible,)
        Of the data.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        Plain. Under data of independent columns the hidden units' fields have standard deviation
        `START_FIELD`, or a smaller one where the data hardly vary; at their mean, the units are in
        the second of their states with probability `START_ACTIVITY`.

    References
    ----------
    .. [1] LeCun, Bottou, Orr, Müller (2012), "Efficient backprop", Neural Networks: Tricks of the
       Trade, 9-48, section 4.6. :doi:`10.1007/978-3-642-35289-8_3`
    """
    signal = visible.metric(variance).signal
    metric = np.ones(visible.n_units) if signal is None else signal
    _, slope = visible.affine_signal
    spread = np.sum(slope**2 * metric * variance)
    scale = START_FIELD * np.sqrt(metric / max(spread, 1.0))
    weights = scale[:, None] * rng.standard_normal((visible.n_units, n_hidden))
    assert hidden_type.domain is not None
    low, high = hidden_type.domain
    activity = np.full(n_hidden, low + START_ACTIVITY * (high - low))
    hidden = hidden_type.start(activity, np.zeros(n_hidden), MANY)
    centred = Machine(
        visible.recentered(mean, np.zeros(visible.n_units)),
        hidden.recentered(activity, np.zeros(n_hidden)),
        weights,
    )
    return recenter(centred, None, None)


def initial_particles(
    machine: Machine, base: Units, n_particles: int, rng: np.random.Generator
) -> Array:
    """Hidden states under visible ones that have the data's statistics and nothing else of them.

    Parameters
    ----------
    machine : Machine
        Whose hidden units.
    base : Units
        Visible layer that resembles the data without a field.
    n_particles : int
        Number of chains.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    particles : ndarray of shape (n_particles, n_hidden)
        Hidden states.
    """
    v = base.sample(base.still(n_particles), rng)
    return machine.sample_hidden(v.astype(machine.dtype), rng)
