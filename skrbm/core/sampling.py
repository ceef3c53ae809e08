"""Markov chains over the states of a machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array


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
    still = np.zeros((n_samples, machine.visible.n_units), dtype=machine.weights.dtype)
    return machine.visible.sample(still, rng)


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
    return np.asarray(v.toarray() if issparse(v) else v)
