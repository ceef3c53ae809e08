"""Where the model's own average comes from: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.likelihood import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import gibbs


@dataclass(frozen=True)
class NegativePhase(ABC):
    """Estimate of the model's average of minus the free energy's gradient.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Steps of the Markov chains for every update; one step draws v, then h.
    """

    n_gibbs_steps: int = 1

    @abstractmethod
    def __call__(
        self, machine: Machine, particles: Array, field: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        """Estimate the negative phase.

        Parameters
        ----------
        machine : Machine
            Present model.
        particles : ndarray of shape (n_particles, n_hidden)
            Hidden states of the persistent chains.
        field : ndarray of shape (n_samples, n_hidden)
            Field of the hidden units under the mini-batch.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        gradient : dict of str to ndarray
            As from `Machine.gradient`.
        particles : ndarray of shape (n_particles, n_hidden)
            Where the persistent chains are now.
        """


@final
@dataclass(frozen=True)
class ContrastiveDivergence(NegativePhase):
    """CD-k: chains start at the mini-batch and are forgotten; persistent ones rest.

    References
    ----------
    .. [1] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    """

    def __call__(
        self, machine: Machine, particles: Array, field: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        h = machine.hidden.sample(field, rng)
        v, field = _advance(machine, h, self.n_gibbs_steps, rng)
        return machine.gradient(v, field=field), particles


@final
@dataclass(frozen=True)
class PersistentContrastiveDivergence(NegativePhase):
    """PCD-k, stochastic maximum likelihood: chains go on from update to update.

    References
    ----------
    .. [1] Tieleman (2008), "Training restricted Boltzmann machines using approximations to the
       likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    """

    def __call__(
        self, machine: Machine, particles: Array, field: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        v, field = _advance(machine, particles, self.n_gibbs_steps, rng)
        return machine.gradient(v, field=field), machine.hidden.sample(field, rng)


@final
@dataclass(frozen=True)
class Exact(NegativePhase):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    def __call__(
        self, machine: Machine, particles: Array, field: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        return expected_gradient(machine), particles


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "exact": Exact,
}


def _advance(
    machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Visible states after some Gibbs steps from hidden ones, and the field that they cause."""
    v = machine.sample_visible(h, rng)
    v = gibbs(machine, v, n_gibbs_steps - 1, rng)
    return v, machine.hidden_field(v)
