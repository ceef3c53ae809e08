"""Gibbs sampling of a machine, with free or partly clamped visible units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, like

MAX_INITIAL_FIELD = 8.0  # nats; fewer than one two-state unit in a thousand opposes this field


def sample_scattered(machine: Machine, n_samples: int, rng: np.random.Generator) -> Array:
    """Draw visible states that are overdispersed over the modes of a machine.

    Each visible state is drawn given a hidden state. The hidden states are drawn from a layer whose
    parameters are zero. Their field is the same for all units and rises from -8 to 8 nats over the
    samples. In the first samples, nearly all two-state hidden units are therefore in the lower
    state, and in the last samples in the higher state. The visible states may be in modes that are
    improbable and far from the data.

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
    field = np.linspace(-MAX_INITIAL_FIELD, MAX_INITIAL_FIELD, n_samples, dtype=machine.dtype)
    h = hidden.sample(hidden.zero_field(n_samples) + like(field, machine.weights)[:, None], rng)
    return machine.sample_visible(h, rng)


def gibbs(machine: Machine, v: Any, n_gibbs_steps: int, rng: np.random.Generator) -> Array:
    """Advance Gibbs chains of visible states; one step draws h, then v.

    Parameters
    ----------
    machine : Machine
        Machine to sample from.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Current visible states.
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
    machine: Machine, v: Array, is_observed: Array, n_gibbs_steps: int, rng: np.random.Generator
) -> Array:
    """Advance Gibbs chains over the unobserved visible units, with the observed units clamped.

    Parameters
    ----------
    machine : Machine
        Machine to sample from.
    v : ndarray of shape (n_samples, n_visible)
        Current visible states.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the visible units to clamp.
    n_gibbs_steps : int
        Number of steps.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    v : ndarray of shape (n_samples, n_visible)
        Visible states after the last step.
    """
    is_clamped = machine.visible.by_column(is_observed)
    for _ in range(n_gibbs_steps):
        v = np.where(is_clamped, v, gibbs(machine, v, 1, rng))
    return v


def clamped_mean(
    machine: Machine,
    v: Array,
    is_observed: Array,
    n_gibbs_steps: int,
    rng: np.random.Generator,
    *,
    values: Callable[[Array, Array, Array], Array] | None = None,
) -> Array:
    """Estimate the conditional mean of the unobserved visible units given the observed units.

    At each step of clamped Gibbs chains, the conditional means of the visible units given the
    hidden units are computed. The estimate is the average of these means over the steps. If
    `values` is given, the arrays that it returns are averaged instead.

    Parameters
    ----------
    machine : Machine
        Any unit types.
    v : ndarray of shape (n_samples, n_visible)
        Initial visible states, preferably drawn by `clamped_gibbs`.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the visible units to clamp.
    n_gibbs_steps : int
        Number of steps to average over, at least one.
    rng : numpy.random.Generator
        Source of random numbers.
    values : callable, default=None
        Function that is called at each step with the conditional means, the drawn states and the
        mask of the values that are averaged, all of shape (n_samples, n_visible). It returns an
        array of the same shape. If None, the conditional means are averaged.

    Returns
    -------
    mean : ndarray of shape (n_samples, n_visible)
        Averages in the unobserved units, and the given states in the observed units.
    """
    total: Array = np.zeros((), v.dtype, like=v)
    is_clamped = machine.visible.by_column(is_observed)
    for _ in range(n_gibbs_steps):
        field = machine.visible_field(machine.sample_hidden(v, rng))
        mean, draws = machine.visible.mean_and_sample(field, rng)
        total = total + (mean if values is None else values(mean, draws, ~is_clamped))
        v = np.where(is_clamped, v, draws)
    return np.where(is_clamped, v, total / n_gibbs_steps)
