"""Jumps of Markov chains to the modes around given rows, and starts in these modes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skrbm.core.draws import draw_exponential, draw_permutation, draw_uniform
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, like, log_sum_exp, row_blocks
from skrbm.core.units import Units
from skrbm.core.units.linear import row_dots

# A proposal is distant if the current state's probability given the row of the proposal is below
# this multiple of the average over all rows.
DISTANT_SHARE = 0.01
# Factors of the distance between two rows. With 2 or 5 alone, one in ten fits of irises with 256
# hidden units keeps a mode without data; with 2 and 3, one in sixty.
EXTRAPOLATIONS = 2.0, 3.0
N_MODE_STEPS = 3  # mean-field iterations from a row to a mode near it
# Smallest numbers of anchors and of proposals of importance resampling. With 16 anchors, draws are in
# a group of probability .053 at a rate of .038, with 64 of .048, also with 64 proposals.
MIN_ANCHORS, MIN_PROPOSALS = 64, 16
PROPOSALS_BYTES = 2**21  # of the states or fields of the anchors in a block of rows
# Smallest effective numbers of anchors and of proposals. Given the upper quarters of MNIST images,
# the squared error of means over ten chains is 57.7 pixels; without the first number 64.8, without
# the second 68.2, without both 69.8. Means of up to eight groups are equal with all of these.
MIN_DISTINCT_ANCHORS, MIN_DISTINCT_PROPOSALS = 8.0, 4.0
# Numbers of proposals without observed units, and the smallest share of them that may be effective.
MIN_JOINT_PROPOSALS, MAX_JOINT_PROPOSALS, MIN_EFFECTIVE_SHARE = 2**10, 2**14, 0.05
TEMPERING_FACTOR, MAX_TEMPERINGS = 0.7, 64  # of log-weights with a smaller effective number


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
    of_rows = log_shares[np.arange(n_chains, like=rows), rows]
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
    farthest from it. The distance between two rows is the Euclidean distance of their hidden
    states, which are drawn once for each row. The state of every hidden unit is taken from one of
    the two rows with equal probability.

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


def rows_near_modes(machine: Any, v: Array) -> Array:
    """Visible means after mean-field iterations, which lead from given rows towards modes.

    The result has the shape (n_rows, n_visible) of `v`.
    """
    for _ in range(N_MODE_STEPS):
        v = machine.mean_visible(machine.mean_hidden(v))
    return v


def draws_from_modes(
    machine: Machine, anchors: Array, n_draws: int, rng: np.random.Generator
) -> Callable[[int], Array] | None:
    """Prepare draws of visible states by sampling importance resampling.

    Gibbs chains that start from these draws are in each mode about as often as it is probable. A
    visible state is drawn given each hidden state that is chosen among the proposals of `propose`
    with a probability proportional to its weight, as for `draw_given_observed`. In models of many
    units, nearly all the weight is on a few proposals.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    anchors : ndarray of shape (n_anchors, n_visible)
        Visible states in the modes of the machine.
    n_draws : int
        Number of all draws, which determines the number of proposals.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    draw : callable or None
        Function that draws a given number of visible states, in random order. The result is None if
        the effective number of proposals is below a share of `MIN_EFFECTIVE_SHARE`.
    """
    n_proposals = min(max(MIN_JOINT_PROPOSALS, n_draws), MAX_JOINT_PROPOSALS)
    h, log_weights = propose(machine, anchors, n_proposals, rng)
    effective = _effective_number(np.exp(log_weights - log_weights.max()))
    if not effective >= MIN_EFFECTIVE_SHARE * n_proposals:  # also if energies overflow
        return None

    def draw(n_draws: int) -> Array:
        (chosen,) = _resample(log_weights[None], 0, n_draws, rng)
        return machine.sample_visible(h[chosen[draw_permutation(n_draws, rng, chosen)]], rng)

    return draw


def draw_given_observed(
    machine: Machine,
    v: Array,
    is_observed: Array,
    anchors: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    r"""Draw visible states given the observed units, by sampling importance resampling.

    Clamped Gibbs chains hardly leave the mode in which they start. Chains that start from these
    draws are in each mode about as often as it is probable given the observed units. The proposals
    for a row are drawn from a mixture over :math:`K` anchors, in which the observed states
    :math:`v_o` of the row replace those of the anchor:

    .. math::

        q(h) = \frac1K \sum_k p(h \mid v_o, a_k), \qquad w(h) = \frac{p(v_o, h)}{q(h)}

    The draws are made given proposals that are chosen with a probability proportional to their
    weight :math:`w(h)`, so that they approach draws from :math:`p(v \mid v_o)` as the number of
    proposals increases [1]_. The anchors of a row are chosen with weights proportional to the
    probability of its observed states given their mean hidden states. In models of many units, one
    anchor and one proposal would have nearly all the weight. The log-weights of such rows are scaled
    down until the effective number of anchors is `MIN_DISTINCT_ANCHORS` and that of proposals
    `MIN_DISTINCT_PROPOSALS`, so that the draws remain different from each other. Both are chosen
    by systematic resampling.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states. The values of unobserved units are ignored and may be NaN.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the observed visible units.
    anchors : ndarray of shape (n_anchors, n_visible)
        Visible states in the modes of the machine.
    n_draws : int
        Number of draws for each row, which share the proposals.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    drawn : ndarray of shape (n_samples * n_draws, n_visible)
        Visible states, with the draws for a row next to each other, but not in random order. Those
        of the observed units are unchanged.

    References
    ----------
    .. [1] Rubin (1988), "Using the SIR algorithm to simulate posterior distributions", Bayesian
       Statistics 3, 395-402.
    """
    known = np.where(machine.visible.by_column(is_observed), v, 0)
    field = machine.visible_field(machine.mean_hidden(anchors))
    drawn = np.empty((len(v), n_draws, v.shape[1]), machine.dtype, like=known)
    n_anchors = min(max(MIN_ANCHORS, n_draws), len(anchors))
    share = v.shape[1] / (max(machine.weights.shape) * max(n_anchors, MIN_PROPOSALS, n_draws))
    for rows in row_blocks(known, int(share * PROPOSALS_BYTES)):
        log_weights = _log_observed(machine, known[rows], is_observed[rows], field)
        chosen = _resample(log_weights, MIN_DISTINCT_ANCHORS, n_anchors, rng)
        h = _hidden_given_observed(
            machine, known[rows], is_observed[rows], anchors[chosen], n_draws, rng
        )
        drawn[rows] = machine.sample_visible(_joined(h), rng).reshape(-1, *drawn.shape[1:])
    copies = np.repeat(known, n_draws, axis=0)
    is_held = machine.visible.by_column(np.repeat(is_observed, n_draws, axis=0))
    return np.where(is_held, copies, drawn.reshape(copies.shape))


def log_partition_given_observed(layer: Units, field: Array, is_observed: Array, v: Array) -> Array:
    """Log-partitions of a layer whose observed units are clamped, without the energies of these.

    Parameters
    ----------
    layer : Units
        Visible layer.
    field : ndarray of shape (n_samples, n_columns)
        Fields of the hidden units.
    is_observed : ndarray of bool of shape (n_samples or 1, n_units)
        Mask of the clamped units.
    v : ndarray of shape (n_samples or 1, n_columns)
        Visible states, of which those of unobserved units are ignored.

    Returns
    -------
    log_partition : ndarray of shape (n_samples,)
        In nats. The energies that do not depend on the field are omitted.
    """
    of_missing = np.where(is_observed, 0, layer.unit_log_partitions(field))
    of_held = np.where(layer.by_column(is_observed), layer.signal(v), 0)
    return of_missing.sum(axis=1) + row_dots(field, of_held)


def _hidden_given_observed(
    machine: Machine,
    v: Array,
    is_observed: Array,
    anchors: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Hidden states for `draw_given_observed`, of shape (n_samples, n_draws, n_hidden).

    The anchors of each row have the shape (n_samples, n_anchors, n_visible).
    """
    n_rows, n_anchors, _ = anchors.shape
    n_proposals = max(MIN_PROPOSALS, n_draws)
    is_held = machine.visible.by_column(is_observed)[:, None]
    field = machine.hidden_field(_joined(np.where(is_held, v[:, None], anchors)))
    log_partition = machine.hidden.log_partition(field).reshape(n_rows, 1, n_anchors)
    field = field.reshape(n_rows, n_anchors, -1)
    chosen = _resample(np.zeros_like(log_partition[:, 0]), 0, n_proposals, rng)
    row = np.arange(n_rows, like=v)[:, None]
    proposed = machine.hidden.sample(_joined(field[row, chosen]), rng)
    signal = machine.hidden.signal(proposed).reshape(n_rows, n_proposals, -1)
    log_q = log_sum_exp(signal @ np.swapaxes(field, 1, 2) - log_partition, axis=2)
    log_held = log_partition_given_observed(
        machine.visible,
        machine.visible_field(proposed),
        np.repeat(is_observed, n_proposals, axis=0),
        np.repeat(v, n_proposals, axis=0),
    ).reshape(n_rows, n_proposals)
    index = _resample(log_held - log_q, MIN_DISTINCT_PROPOSALS, n_draws, rng)
    return proposed.reshape(n_rows, n_proposals, -1)[row, index]


def _resample(
    log_weights: Array, min_effective: float, n_draws: int, rng: np.random.Generator
) -> Array:
    """Column indices drawn in proportion to weights by systematic resampling, in each row.

    The shapes are (n_samples, n_states) and (n_samples, n_draws). Log-weights are scaled down in
    the rows where the effective number of states is below `min_effective`.
    """
    log_weights = np.nan_to_num(log_weights)  # energies may overflow
    log_weights -= log_weights.max(axis=1, keepdims=True)
    for _ in range(MAX_TEMPERINGS):
        weights = np.exp(log_weights)
        few = _effective_number(weights) < min_effective
        if not few.any():
            break
        log_weights[few] *= TEMPERING_FACTOR
    cumulated = np.cumsum(weights, axis=1, dtype=np.float64)
    n_rows, n_states = weights.shape
    row = np.arange(n_rows, like=weights)[:, None]
    targets = np.arange(n_draws, like=weights) + draw_uniform((n_rows, 1), rng, weights)
    ends = row + cumulated / cumulated[:, -1:]
    found = np.searchsorted(ends.ravel(), (row + targets / n_draws).ravel(), side="right")
    return np.minimum(found.reshape(n_rows, n_draws) - row * n_states, n_states - 1)


def _effective_number(weights: Array) -> Array:
    """Number of equal weights that is equivalent to the weights along the last axis."""
    return weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1)


def _log_observed(machine: Machine, v: Array, is_observed: Array, field: Array) -> Array:
    """Log-probabilities of observed states given fields, without the energies of the states.

    The shape is (n_samples, n_fields).
    """
    visible = machine.visible
    signal = np.where(visible.by_column(is_observed), visible.signal(v), 0)
    log_partitions = visible.unit_log_partitions(field)
    log_observed = signal @ field.T
    log_observed -= is_observed.astype(log_partitions.dtype) @ log_partitions.T
    return log_observed


def _joined(states: Array) -> Array:
    """States of shape (n_samples, n_states, n_columns) as rows of one matrix."""
    return states.reshape(-1, states.shape[2])


def _distant_pairs(h: Array, n_pairs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Indices of random rows, and of the rows that are farthest from them."""
    one = like(rng.integers(len(h), size=n_pairs), h)
    distances = (h**2).sum(axis=1) - 2 * h[one] @ h.T  # squared, up to a constant for each pair
    return one, distances.argmax(axis=1)


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
