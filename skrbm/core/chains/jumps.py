"""Metropolis moves of Markov chains to given rows, which leave the model invariant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skrbm.core.numerics import Array


def jump(machine: Any, h: Array, v: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    r"""Let every chain try to leave for the surroundings of one of some rows.

    Gibbs sampling does not cross from one mode of a distribution to another that is far away. A
    draw given a row that lies there does. It replaces the state of a chain by the Metropolis rule
    for independent proposals [1]_: with the rows :math:`v_1 \dots v_K`

    .. math::

        q(h) = \frac1K \sum_k p(h \mid v_k), \qquad
        \text{accept } h' \text{ with probability }
        \min\left(1, \frac{p(h')\, q(h)}{p(h)\, q(h')}\right)

    whatever the rows, the machine's distribution of :math:`h` stays as it is. Its ratio is known
    exactly: with the layers' log-partitions :math:`L` and the rows' fields :math:`f_k`,

    .. math::

        \log \frac{p(h)}{q(h)} = L_v(W \psi(h))
        - \log \sum_k e^{f_k^T \psi(h) - L_h(f_k)} + \text{const}

    Parameters
    ----------
    machine : Machine or TemperedMachine
        Whose distribution the chains leave invariant.
    h : ndarray of shape (n_chains, n_hidden)
        Present hidden states.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Visible states to jump to, chosen without regard to the chains; each costs a row of a
        product.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    h : ndarray of shape (n_chains, n_hidden)
        Hidden states after the jumps.
    has_jumped : ndarray of bool of shape (n_chains,)
        Which of them are new.

    References
    ----------
    .. [1] Tierney (1994), "Markov chains for exploring posterior distributions", The Annals of
       Statistics 22(4), 1701-1728, section 2.3.3. :doi:`10.1214/aos/1176325750`
    """
    n_chains = len(h)
    field = machine.hidden_field(v)
    states = np.concatenate([h, _draw(machine, field, n_chains, rng)])
    log_ratio = _log_ratio(machine, states, field)
    gain = log_ratio[n_chains:] - log_ratio[:n_chains]
    has_jumped = -rng.standard_exponential(n_chains) < gain
    return np.where(has_jumped[:, None], states[n_chains:], h), has_jumped


def propose(
    machine: Any, v: Array, n_samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    r"""Draw hidden states around given rows, with their importance weights.

    Parameters
    ----------
    machine : Machine or TemperedMachine
        Whose distribution the weighted states are a sample of.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Visible states in its modes.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    h : ndarray of shape (n_samples, n_hidden)
        Hidden states from :math:`q` of `jump`.
    log_weights : ndarray of shape (n_samples,)
        :math:`\log (Z p(h) / q(h))`: the mean weight has the partition function as its expectation.
    """
    field = machine.hidden_field(v)
    h = _draw(machine, field, n_samples, rng)
    return h, _log_ratio(machine, h, field)


def mixed_rows(machine: Any, v: Any, n_samples: int, rng: np.random.Generator) -> Array:
    """Draw visible states given hidden ones whose units are those of two rows, far from each other.

    Where a model has a mode without data, its hidden state is often made of those of the data's
    modes: all units are on, say, of which every row has some.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Visible states.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states.
    """
    h = machine.sample_hidden(v, rng)
    one = h[rng.integers(len(h), size=n_samples)]
    other = h[np.abs(one[:, None] - h).sum(axis=2).argmax(axis=1)]
    takes_other = machine.hidden.by_column(rng.random((n_samples, machine.hidden.n_units)) < 0.5)
    return np.asarray(machine.sample_visible(np.where(takes_other, other, one), rng))


def _draw(machine: Any, field: Array, n_samples: int, rng: np.random.Generator) -> Array:
    """Hidden states given rows that are chosen at random, of which the fields are given."""
    rows = (len(field) * rng.random(n_samples)).astype(np.intp)  # `integers` takes twice as long
    return np.asarray(machine.hidden.sample(field[rows], rng))


def _log_ratio(machine: Any, h: Array, field: Array) -> Array:
    """Logarithm of Z p(h) / q(h)."""
    log_shares = machine.hidden.signal(h) @ field.T - machine.hidden.log_partition(field)
    own = machine.visible.log_partition(machine.visible_field(h))
    return np.asarray(own - np.logaddexp.reduce(log_shares, axis=1) + math.log(len(field)))
