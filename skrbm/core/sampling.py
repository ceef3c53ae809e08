"""Markov chains over the states of a machine, all of which leave its distribution as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.tempering import LADDER_JUMP_PAUSE, TemperedPath

SMALLEST_REJECTION = 1e-3  # neighbours on a ladder that always exchange keep some distance


def sample_base(machine: Machine, n_samples: int, rng: np.random.Generator) -> Array:
    """Visible states drawn as if the layers were not coupled: a start for chains.

    Parameters
    ----------
    machine : Machine
        Only its visible layer matters.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states.
    """
    return machine.visible.sample(machine.visible.zero_field(n_samples), rng)


def gibbs(machine: Machine, v: Any, n_gibbs_steps: int, rng: np.random.Generator) -> Array:
    """Advance chains of visible states; one step draws h, then v.

    Parameters
    ----------
    machine : Machine
        Whose distribution the chains leave invariant.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Present visible states.
    n_gibbs_steps : int
        Number of steps.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states after the last step.
    """
    for _ in range(n_gibbs_steps):
        v = machine.sample_visible(machine.sample_hidden(v, rng), rng)
    return dense(v)


def clamped_gibbs(
    machine: Machine, v: Array, is_known: Array, n_gibbs_steps: int, rng: np.random.Generator
) -> Array:
    """Advance chains over the unknown visible units of each row, the known ones held.

    Parameters
    ----------
    machine : Machine
        Whose distribution, given the known units, the chains leave invariant.
    v : ndarray of shape (n_samples, n_visible)
        Present visible states.
    is_known : ndarray of bool of shape (n_samples, n_units)
        Which visible units to hold.
    n_gibbs_steps : int
        Number of steps.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states after the last step.
    """
    is_held = machine.visible.by_column(is_known)
    for _ in range(n_gibbs_steps):
        v = np.where(is_held, v, gibbs(machine, v, 1, rng))
    return v


def clamped_mean(
    machine: Machine,
    v: Array,
    is_known: Array,
    n_gibbs_steps: int,
    rng: np.random.Generator,
    *,
    values: Callable[[Array], Array] | None = None,
) -> Array:
    """Expected unknown visible units of each row given the known ones, or what is made of them.

    Averages the conditional means along a chain of `clamped_gibbs`.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states that the chains start from, best drawn by `clamped_gibbs`.
    is_known : ndarray of bool of shape (n_samples, n_units)
        Which visible units to hold.
    n_gibbs_steps : int
        Number of steps to average over, at least one.
    rng : numpy.random.Generator
        Source of random numbers.
    values : callable, default=None
        From conditional means (n_samples, n_visible) to what is averaged in their place, of the same
        shape; None for themselves.

    Returns
    -------
    mean : ndarray of shape (n_samples, n_visible)
        Known units as they are.
    """
    total: Array = np.zeros((), v.dtype)
    is_held = machine.visible.by_column(is_known)
    for _ in range(n_gibbs_steps):
        field = machine.visible_field(machine.sample_hidden(v, rng))
        mean, draws = machine.visible.mean_and_sample(field, rng)
        total = total + (mean if values is None else values(mean))
        v = np.where(is_held, v, draws)
    return np.where(is_held, v, total / n_gibbs_steps)


def communication_barrier(acceptance: Array) -> Array:
    """Sum of the rejection rates from the first chain of a ladder to each of them.

    Parameters
    ----------
    acceptance : ndarray of shape (n_temperatures - 1,)
        Mean probability of an exchange of each pair of neighbours.

    Returns
    -------
    barrier : ndarray of shape (n_temperatures,)
        Ascending from zero.
    """
    rejection = np.maximum(1 - acceptance, SMALLEST_REJECTION)
    return np.concatenate([[0.0], np.cumsum(rejection)])


def evened_ladder(betas: Array, barrier: Array, n_temperatures: int) -> Array:
    """Inverse temperatures that share the communication barrier equally.

    Parameters
    ----------
    betas, barrier : ndarray of shape (n_now,)
        Present inverse temperatures, and the `communication_barrier` up to each.
    n_temperatures : int
        How many there should be.

    Returns
    -------
    betas : ndarray of shape (n_temperatures,)
        Between the same ends.
    """
    return np.interp(np.linspace(0, barrier[-1], n_temperatures), barrier, betas)


@final
class Ladder:
    """Inverse temperatures of chains that exchange their states, and how often they did.

    Parameters
    ----------
    betas : ndarray of shape (n_temperatures,)
        From 1 down to 0.
    """

    def __init__(self, betas: Array) -> None:
        self._move(betas)

    @classmethod
    def of(cls, n_temperatures: int) -> Self:
        """Evenly spaced ladder of at least two temperatures."""
        return cls(np.linspace(1.0, 0.0, n_temperatures))

    @property
    def acceptance(self) -> Array:
        """Mean probability of an exchange of each pair of neighbours since they last moved."""
        return self._accepted / max(self._n_steps, 1)

    def record(self, accepted: Array) -> None:
        """Take note of the probabilities, of shape (n_temperatures - 1,), of one step."""
        self._accepted += accepted
        self._n_steps += 1

    def settle(self) -> float:
        """Move to where all neighbours should exchange equally often.

        The new inverse temperatures share the sum of the rejection rates equally [1]_.

        Returns
        -------
        acceptance : float
            Mean over all pairs since they last moved; NaN if there was no step.

        References
        ----------
        .. [1] Syed, Bouchard-Côté, Deligiannidis, Doucet (2022), "Non-reversible parallel
           tempering: a scalable highly parallel MCMC scheme", Journal of the Royal Statistical
           Society B 84(2), 321-350, section 5. :doi:`10.1111/rssb.12464`
        """
        if self._n_steps == 0:
            return float("nan")
        acceptance = self.acceptance
        barrier = communication_barrier(acceptance)
        self._move(evened_ladder(self.betas, barrier, len(self.betas)))
        return float(acceptance.mean())

    def _move(self, betas: Array) -> None:
        self.betas = betas
        self._accepted = np.zeros(len(betas) - 1)
        self._n_steps = 0


def parallel_tempering(
    path: TemperedPath, h: Array, ladder: Ladder, n_gibbs_steps: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    r"""Advance ladders of chains; after each Gibbs step, neighbours on a ladder may exchange.

    With :math:`E_\beta` the energy of the tempered model that a chain samples, the states of two
    neighbours are exchanged with probability

    .. math::

        \min(1, e^{E_\beta(v, h) + E_{\beta'}(v', h') - E_\beta(v', h') - E_{\beta'}(v, h)})

    Parameters
    ----------
    path : TemperedPath
        Ends at the machine.
    h : ndarray of shape (n_temperatures, n_chains, n_hidden)
        Present hidden states.
    ladder : Ladder
        Inverse temperatures, which stay; takes note of the exchanges.
    n_gibbs_steps : int
        Number of steps, at least one; each draws v, then h, then exchanges.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_temperatures, n_chains, n_visible)
        Visible states after the last step.
    h : ndarray of shape (n_temperatures, n_chains, n_hidden)
        Hidden states after the last step: together with `v` from the model at each temperature.

    References
    ----------
    .. [1] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain Monte
       Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.
    """
    n_temperatures, n_chains, n_hidden = h.shape
    machine = path.at(np.repeat(ladder.betas, n_chains)[:, None].astype(h.dtype))
    h = h.reshape(-1, n_hidden)
    for _ in range(n_gibbs_steps):
        v = machine.sample_visible(h, rng)
        field = path.machine.hidden_field(v)
        h = machine.sample_hidden(v, rng, field=field)
        gap = path.energy_gap(v, h, field=field).reshape(n_temperatures, n_chains)
        order, accepted = _exchange(gap, ladder.betas, rng)
        v, h = v[order], h[order]
        ladder.record(accepted)
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
    """Draw visible states by parallel tempering, with one ladder for each of them.

    The ladder is evened out after 1, 2, 4... steps, and fixed for at least the second half. Now and
    then the chains of the machine itself may jump to the path's anchors.

    Parameters
    ----------
    path : TemperedPath
        Ends at the machine.
    v : ndarray of shape (n_samples, n_visible)
        Visible states that the chains of the machine itself start from; the others start from the
        base.
    n_temperatures : int
        Number of chains on a ladder, at least two.
    n_gibbs_steps : int
        Number of steps.
    rng : numpy.random.Generator
        Source of random numbers.
    n_warm_steps : int, default=0
        Steps before those of the other chains among themselves: as long as they do not have their
        laws, exchanges with them disturb states that come from the machine's.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states of the machine itself after the last step.
    """
    ladder, n_left, n_round = Ladder.of(n_temperatures), n_gibbs_steps, 1
    betas = np.repeat(ladder.betas, len(v))[:, None].astype(v.dtype)
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
        ladder.settle()
        v, n_left, n_round = states[0], n_left - n_steps, 2 * n_round
    return v


def _exchange(gap: Array, betas: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Order of the rows after exchanges of all even and then all odd pairs of neighbours.

    `gap`, of shape (n_temperatures, n_chains), is the derivative of the energy in the inverse
    temperature. With the order comes the mean acceptance of every pair.
    """
    gap = gap.astype(np.float64)
    order = np.arange(gap.size).reshape(gap.shape)
    acceptance = np.empty(len(betas) - 1)
    for first in (0, 1):
        one = np.arange(first, len(betas) - 1, 2)
        other = one + 1
        log_ratio = (betas[one] - betas[other])[:, None] * (gap[one] - gap[other])
        swaps = -rng.standard_exponential(log_ratio.shape) < log_ratio
        acceptance[one] = np.exp(np.minimum(log_ratio, 0)).mean(axis=1)
        for array in (gap, order):
            array[one], array[other] = (
                np.where(swaps, array[other], array[one]),
                np.where(swaps, array[one], array[other]),
            )
    return order.ravel(), acceptance
