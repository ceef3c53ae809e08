"""Where the model's own average comes from: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from skrbm.core.likelihood.exact import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import Ladder, gibbs, parallel_tempering
from skrbm.core.tempering import TemperedPath
from skrbm.core.units import Units


@dataclass(frozen=True)
class NegativePhase(ABC):
    """Estimate of the model's average of minus the free energy's gradient.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Steps of the Markov chains for every update; one step draws v, then h.
    """

    n_gibbs_steps: int = 1

    @property
    @abstractmethod
    def n_chains(self) -> int:
        """Number of Markov chains that belong to one particle."""

    @abstractmethod
    def finish_pass(self) -> dict[str, float]:
        """Conclude a pass over the data.

        Returns
        -------
        history : dict of str to float
            What the chains did in the pass.
        """

    @abstractmethod
    def __call__(
        self, machine: Machine, particles: Array, mean: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        """Estimate the negative phase.

        Parameters
        ----------
        machine : Machine
            Present model.
        particles : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains, those of the model itself first.
        mean : ndarray of shape (n_samples, n_hidden)
            Expected hidden states given the mini-batch.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        gradient : dict of str to ndarray
            As from `Machine.gradient`.
        particles : ndarray of shape (n_chains * n_particles, n_hidden)
            Where the persistent chains are now.
        """


class OneTemperature(NegativePhase):
    """Negative phase of chains that all sample the model itself."""

    @property
    def n_chains(self) -> int:
        return 1

    def finish_pass(self) -> dict[str, float]:
        return {}


@final
@dataclass(frozen=True)
class ContrastiveDivergence(OneTemperature):
    """CD-k: chains start at the mini-batch and are forgotten; persistent ones rest.

    References
    ----------
    .. [1] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    """

    def __call__(
        self, machine: Machine, particles: Array, mean: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        h = machine.hidden.draw(mean, rng)
        v, field = _advance(machine, h, self.n_gibbs_steps, rng)
        return machine.gradient(v, field=field), particles


@final
@dataclass(frozen=True)
class PersistentContrastiveDivergence(OneTemperature):
    """PCD-k, stochastic maximum likelihood: chains go on from update to update.

    References
    ----------
    .. [1] Tieleman (2008), "Training restricted Boltzmann machines using approximations to the
       likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    """

    def __call__(
        self, machine: Machine, particles: Array, mean: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        v, field = _advance(machine, particles, self.n_gibbs_steps, rng)
        mean = machine.hidden.mean(field)
        return machine.gradient(v, field=field, mean=mean), machine.hidden.draw(mean, rng)


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    def __call__(
        self, machine: Machine, particles: Array, mean: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        return expected_gradient(machine), particles


@final
@dataclass(frozen=True)
class ParallelTempering(NegativePhase):
    """PT-k: persistent chains at several temperatures exchange their states.

    The temperatures move after every pass, to where neighbours should exchange equally often.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Steps of the Markov chains for every update; one step draws v, then h, then exchanges.
    base : Units
        Visible layer of the highest temperature; without a field, it should resemble the data. It
        must not share memory with the machine, which training moves.
    ladder : Ladder
        Temperatures, moved in place.

    References
    ----------
    .. [1] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain Monte
       Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.
    """

    base: Units = field(kw_only=True)
    ladder: Ladder = field(kw_only=True)

    @property
    def n_chains(self) -> int:
        return len(self.ladder.betas)

    def finish_pass(self) -> dict[str, float]:
        return {"swap_acceptance": self.ladder.settle()}

    def __call__(
        self, machine: Machine, particles: Array, mean: Array, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        path = TemperedPath.to(machine, self.base)
        n_hidden = machine.hidden.n_units
        h = particles.reshape(self.n_chains, -1, n_hidden)
        v, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        return machine.gradient(v[0]), h.reshape(-1, n_hidden)


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "pt": ParallelTempering,
    "exact": Exact,
}


def _advance(
    machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Visible states after some Gibbs steps from hidden ones, and the field that they cause."""
    v = machine.sample_visible(h, rng)
    v = gibbs(machine, v, n_gibbs_steps - 1, rng)
    return v, machine.hidden_field(v)
