"""Parallel tempering: Gibbs chains at several temperatures, which swap their states."""

from __future__ import annotations

import numpy as np

from skrbm.core.chains.ladder import Ladder
from skrbm.core.chains.path import LADDER_JUMP_PAUSE, TemperedPath
from skrbm.core.draws import draw_exponential
from skrbm.core.numerics import Array, like


def parallel_tempering(
    path: TemperedPath, h: Array, ladder: Ladder, n_gibbs_steps: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    r"""Advance ladders of chains by Gibbs steps, with swaps between neighboring temperatures.

    Let :math:`E_\beta` be the energy of the distribution at inverse temperature :math:`\beta`.
    After each Gibbs step, the states :math:`(v, h)` at :math:`\beta` and :math:`(v', h')` at the
    neighboring :math:`\beta'` are swapped with probability

    .. math::

        \min(1, e^{E_\beta(v, h) + E_{\beta'}(v', h') - E_\beta(v', h') - E_{\beta'}(v, h)})

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    h : ndarray of shape (n_temperatures, n_chains, n_hidden)
        Current hidden states.
    ladder : Ladder
        Ladder of inverse temperatures, in which the acceptance probabilities of the swaps are
        recorded.
    n_gibbs_steps : int
        Number of steps, at least one. In each step, v is drawn, h is drawn, and states are swapped.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_temperatures, n_chains, n_visible)
        Visible states after the last step.
    h : ndarray of shape (n_temperatures, n_chains, n_hidden)
        Hidden states after the last step, paired with `v`. The pairs at a temperature are samples
        of the path's distribution at this temperature, once the chains have equilibrated.

    References
    ----------
    .. [1] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain Monte
       Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.
    """
    n_temperatures, n_chains, n_hidden = h.shape
    n_visible, betas = len(path.machine.weights), ladder.betas_like(h)
    machine = path.at(np.repeat(betas, n_chains)[:, None].astype(h.dtype))
    h = h.reshape(-1, n_hidden)
    v, field, drawn = np.empty((len(h), n_visible), h.dtype, like=h), None, np.empty_like(h)
    for _ in range(n_gibbs_steps):
        machine.sample_visible(h, rng, out=v)
        field = path.machine.hidden_field(v, out=field)
        machine.sample_hidden(v, rng, field=field, out=drawn)
        gap = path.energy_gap(v, drawn, field=field).reshape(n_temperatures, n_chains)
        order, accepted = _swap(gap, betas, rng)
        h = drawn[order]
        ladder.record(accepted)
    v = v[order]
    return v.reshape(n_temperatures, n_chains, -1), h.reshape(n_temperatures, n_chains, -1)


def sample_tempered(
    path: TemperedPath,
    v: Array,
    n_temperatures: int,
    n_gibbs_steps: int,
    rng: np.random.Generator,
    *,
    n_warm_steps: int = 0,
) -> Array:
    """Draw visible states by parallel tempering, with a separate ladder of chains for each sample.

    The inverse temperatures, which are common to all samples, are adapted after rounds of 1, 2,
    4... steps. The last round takes at least half of the steps. Chains at inverse temperature 1 may
    jump to the anchors of the path, before the first step of each round and then every
    `LADDER_JUMP_PAUSE` steps.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    v : ndarray of shape (n_samples, n_visible)
        Initial visible states of the chains at inverse temperature 1; the other chains are
        initialized from the base.
    n_temperatures : int
        Number of temperatures in a ladder, at least two.
    n_gibbs_steps : int
        Number of steps.
    rng : numpy.random.Generator
        Source of random numbers.
    n_warm_steps : int, default=0
        Number of preliminary steps of the other chains. The chains at inverse temperature 1 stay
        unchanged in these steps, since swaps would replace their states by states of chains that
        have not equilibrated.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states at inverse temperature 1 after the last step.
    """
    ladder, n_left, n_round = Ladder.of(n_temperatures), n_gibbs_steps, 1
    betas = like(np.repeat(ladder.betas, len(v))[:, None].astype(v.dtype), v)
    start = np.concatenate([v, path.sample_base((n_temperatures - 1) * len(v), rng)])
    h = path.at(betas).sample_hidden(start, rng).reshape(n_temperatures, len(v), -1)
    if n_warm_steps:
        _, h[1:] = parallel_tempering(path, h[1:], Ladder(ladder.betas[1:]), n_warm_steps, rng)
    while n_left > 0:
        n_steps = n_left if 4 * n_round > n_left else n_round
        for begin in range(0, n_steps, LADDER_JUMP_PAUSE):
            h[0] = path.jump(h[0], rng)
            n_now = min(LADDER_JUMP_PAUSE, n_steps - begin)
            states, h = parallel_tempering(path, h, ladder, n_now, rng)
        ladder.adapt()
        v, n_left, n_round = states[0], n_left - n_steps, 2 * n_round
    return v


def _swap(gap: Array, betas: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw swaps between neighboring temperatures, first for even pairs and then for odd pairs.

    `gap`, of shape (n_temperatures, n_chains), is the derivative of the energy with respect to the
    inverse temperature. The first result, of shape (n_temperatures * n_chains,), contains for each
    chain the index of the chain whose state it takes. The second result, of shape (n_temperatures -
    1,), is the mean acceptance probability of each pair.
    """
    gap = gap.astype(np.float64)
    order = np.arange(gap.size, like=gap).reshape(gap.shape)
    acceptance = np.empty_like(betas[1:])
    for first in (0, 1):
        one, other = slice(first, len(betas) - 1, 2), slice(first + 1, None, 2)
        log_ratio = (betas[one] - betas[other])[:, None] * (gap[one] - gap[other])
        swaps = -draw_exponential(log_ratio.shape, rng, gap) < log_ratio
        acceptance[one] = np.exp(np.minimum(log_ratio, 0)).mean(axis=1)
        for array in (gap, order):
            array[one], array[other] = (
                np.where(swaps, array[other], array[one]),
                np.where(swaps, array[one], array[other]),
            )
    return order.ravel(), acceptance
