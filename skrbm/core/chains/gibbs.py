"""Gibbs sampling: chains over the states of a machine, free or with some units held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense

MAX_PULL = 8.0  # nats: fewer than one hidden unit in a thousand is then in its other state


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


def sample_scattered(machine: Machine, n_samples: int, rng: np.random.Generator) -> Array:
    """Starts that are spread wider than the model: from no hidden unit on to all of them.

    Nothing but the weights and the visible layer matter, so that modes of any weight are reached,
    also those far from all data.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    n_samples : int
        Number of states.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states.
    """
    hidden = machine.hidden.map_arrays(np.zeros_like)
    pull = np.linspace(-MAX_PULL, MAX_PULL, n_samples, dtype=machine.dtype)
    h = hidden.sample(hidden.zero_field(n_samples) + pull[:, None], rng)
    return machine.sample_visible(h, rng)


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


def posterior_draws(
    machine: Machine, v: Array, is_known: Array, h: Array, rng: np.random.Generator
) -> Array:
    r"""Draw a hidden state for each row given its known units, from some states of the machine.

    State k is drawn with probability proportional to :math:`p(v_\text{known} \mid h_k)`: the
    distribution of h given the known units, as far as the states are a sample of the machine [1]_.
    So a chain starts in a mode that the known units allow, which Gibbs steps would not lead to.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Visible states, finite where they are unknown too.
    is_known : ndarray of bool of shape (n_samples, n_units)
        Which visible units are known.
    h : ndarray of shape (n_states, n_hidden)
        Hidden states of the machine, as persistent chains have.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    chosen : ndarray of shape (n_samples, n_hidden)
        Rows of `h`.

    References
    ----------
    .. [1] Rubin (1988), "Using the SIR algorithm to simulate posterior distributions", Bayesian
       Statistics 3, 395-402.
    """
    visible, field = machine.visible, machine.visible_field(h)
    log_normalisers = np.empty((visible.n_units, len(h)), field.dtype)
    for group in visible.unit_groups:
        columns = visible.unit_columns(group)
        pairs = field.T[columns].transpose(0, 2, 1).reshape(-1, columns.shape[1])
        units = visible.take(np.repeat(group, len(h)))
        log_normalisers[group] = units.log_partition(pairs).reshape(len(group), -1)
    signal = np.where(visible.by_column(is_known), visible.signal(v), 0)
    log_weights = signal @ field.T - is_known @ log_normalisers
    chosen: Array = h[np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)]
    return chosen


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
    values: Callable[[Array, Array], Array] | None = None,
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
        From conditional means and draws (n_samples, n_visible) to what is averaged in place of the
        means, of the same shape; None for themselves.

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
        total = total + (mean if values is None else values(mean, draws))
        v = np.where(is_held, v, draws)
    return np.where(is_held, v, total / n_gibbs_steps)
