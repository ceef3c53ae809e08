"""Metropolis-Hastings jumps of Markov chains to the modes around given rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skrbm.core.draws import draw_exponential, draw_uniform
from skrbm.core.numerics import Array, like, log_sum_exp

# A proposal is distant if the current state's probability given the row of the proposal is below
# this multiple of the average over all rows.
DISTANT_SHARE = 0.01
# Factors of the distance between two rows. With 2 or 5 alone, one in ten fits of irises with 256
# hidden units keeps a mode without data; with 2 and 3, one in sixty.
EXTRAPOLATIONS = 2.0, 3.0


def jump(machine: Any, h: Array, v: Any, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    r"""Advance chains by a Metropolis-Hastings step with proposals drawn given random rows.

    Gibbs sampling rarely moves chains between distant modes of a distribution. Proposals that are
    independent of the current state can do so [1]_. For the rows :math:`v_1 \dots v_K`, the
    proposal distribution and the acceptance probability are

    .. math::

        q(h) = \frac1K \sum_k p(h \mid v_k), \qquad
        \text{accept } h' \text{ with probability }
        \min\left(1, \frac{p(h')\, q(h)}{p(h)\, q(h')}\right)

    The step leaves the machine's distribution of :math:`h` invariant for any rows that are
    independent of the chains. The ratio can be computed exactly. Let :math:`L_v` and :math:`L_h` be
    the log-partitions of the layers, :math:`W` the weights, :math:`\psi(h)` the signal of the
    hidden units, and :math:`f_k` the field of row k on the hidden units. Then

    .. math::

        \log \frac{p(h)}{q(h)} = L_v(W \psi(h))
        - \log \sum_k e^{f_k^T \psi(h) - L_h(f_k)} + \text{const}

    Parameters
    ----------
    machine : Machine or TemperedMachine
        Machine to sample from. A `TemperedMachine` must have a single inverse temperature.
    h : ndarray of shape (n_chains, n_hidden)
        Current hidden states.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Rows :math:`v_k`, which must be chosen independently of the chains. The cost of a jump
        increases linearly with the number of rows.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    h : ndarray of shape (n_chains, n_hidden)
        Hidden states after the jumps.
    has_jumped : ndarray of bool of shape (n_chains,)
        Mask of the accepted proposals.
    is_distant : ndarray of bool of shape (n_chains,)
        Mask of the proposals from rows that hardly explain the current state: for the row
        :math:`v_k` of the proposal, :math:`p(h | v_k) < q(h) / 100`. Gibbs steps would hardly make
        such a move.

    References
    ----------
    .. [1] Tierney (1994), "Markov chains for exploring posterior distributions", The Annals of
       Statistics 22(4), 1701-1728, section 2.3.3. :doi:`10.1214/aos/1176325750`
    """
    n_chains = len(h)
    field = machine.hidden_field(v)
    proposed, rows = _draw(machine, field, n_chains, rng)
    states = np.concatenate([h, proposed])
    log_shares, log_mean = _log_shares(machine, states, field)
    log_ratio = _log_ratio(machine, states, log_mean)
    gain = log_ratio[n_chains:] - log_ratio[:n_chains]
    has_jumped = -draw_exponential(n_chains, rng, gain) < gain
    of_rows = log_shares[like(np.arange(n_chains), rows), rows]
    is_distant = of_rows - log_mean[:n_chains] < math.log(DISTANT_SHARE)
    return np.where(has_jumped[:, None], proposed, h), has_jumped, is_distant


def propose(
    machine: Any, v: Array, n_samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    r"""Draw hidden states given random rows, and compute their importance weights.

    Parameters
    ----------
    machine : Machine
        Machine that defines the target distribution of the weighted states.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Rows, preferably from all modes of the machine. Each hidden state is drawn given a random
        row.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    h : ndarray of shape (n_samples, n_hidden)
        Hidden states drawn from the proposal distribution :math:`q` of `jump`.
    log_weights : ndarray of shape (n_samples,)
        Log-weights :math:`\log (Z p(h) / q(h))`, in nats. The expected weight is the partition
        function.
    """
    field = machine.hidden_field(v)
    h, _ = _draw(machine, field, n_samples, rng)
    return h, _log_ratio(machine, h, _log_shares(machine, h, field)[1])


def mixed_rows(machine: Any, v: Any, n_samples: int, rng: np.random.Generator) -> Array:
    """Draw visible states given mixtures of the hidden states of two distant rows.

    A mode without data often has a hidden state that combines the hidden states of modes with data.
    For instance, all hidden units may be active in this mode, while only a few of them are active
    in each mode with data. Each mixture combines the hidden states of a random row and of the row
    farthest from it. The distance between two rows is the sum of the absolute differences of their
    hidden states, which are drawn once for each row. The state of every hidden unit is taken from
    one of the two rows with equal probability.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Rows whose hidden states are drawn and mixed.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states, one drawn given each mixture.
    """
    h = machine.sample_hidden(v, rng)
    one, other = _distant_pairs(h, n_samples, rng)
    coins = draw_uniform((n_samples, machine.hidden.n_units), rng, h)
    takes_other = machine.hidden.by_column(coins < 0.5)
    return machine.sample_visible(np.where(takes_other, h[other], h[one]), rng)


def extrapolated_rows(machine: Any, v: Any, n_samples: int, rng: np.random.Generator) -> Array:
    r"""Draw visible states beyond the rows, on the lines through two distant rows.

    Many hidden units that represent a factor of the data can all be active far beyond the data, at
    a mode without data. Each line leads from a random row to the row farthest from it, as for
    `mixed_rows`. The hidden states are drawn given the extrapolated field

    .. math:: f' + t (f - f')

    where :math:`f` is the field of the random row on the hidden units, and :math:`f'` that of the
    other row. The factor :math:`t` takes the values of `EXTRAPOLATIONS` in turn.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Rows whose hidden fields are extrapolated.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states, one drawn given each hidden state.
    """
    field = machine.hidden_field(v)
    one, other = _distant_pairs(machine.hidden.sample(field, rng), n_samples, rng)
    factors = like(np.resize(EXTRAPOLATIONS, n_samples).astype(field.dtype)[:, None], field)
    beyond = field[other] + factors * (field[one] - field[other])
    return machine.sample_visible(machine.hidden.sample(beyond, rng), rng)


def _distant_pairs(h: Array, n_pairs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Indices of random rows, and of the rows that are farthest from them."""
    one = like(rng.integers(len(h), size=n_pairs), h)
    # Pair by pair: an array of all differences would be many times as large as the weights.
    other = [np.abs(h - h[i]).sum(axis=1).argmax() for i in one]
    return one, np.stack(other) if n_pairs else one


def _draw(
    machine: Any, field: Array, n_samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw hidden states given randomly chosen rows of `field`; return states and row indices."""
    # rng.integers takes twice as long
    rows = (len(field) * draw_uniform((n_samples,), rng, field)).astype(np.intp)
    return machine.hidden.sample(field[rows], rng), rows


def _log_shares(machine: Any, h: Array, field: Array) -> tuple[Array, Array]:
    """Logarithms of p(h | row) and of q(h), as in `jump`, without the term B(h) that both contain.

    The shapes are (n_samples, n_rows) and (n_samples,). B(h) is the energy of the hidden units.
    """
    log_shares = machine.hidden.signal(h) @ field.T - machine.hidden.log_partition(field)
    return log_shares, log_sum_exp(log_shares, axis=1) - math.log(len(field))


def _log_ratio(machine: Any, h: Array, log_mean: Array) -> Array:
    """Logarithm of Z p(h) / q(h), from the second result of `_log_shares`.

    For a `TemperedMachine`, a constant may be added if its visible units are not tempered exactly.
    """
    return machine.visible.log_partition(machine.visible_field(h)) - log_mean
