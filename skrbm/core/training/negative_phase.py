"""Data against the model's own states: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from scipy.sparse import issparse

from skrbm.core.likelihood.exact import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import Ladder, gibbs, parallel_tempering
from skrbm.core.tempering import TemperedPath
from skrbm.core.units import Units


class Contrast(NamedTuple):
    """What an update knows of a mini-batch and of the model.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_hidden)
        Expected hidden states given the mini-batch.
    gradient : callable
        Of the log-likelihood, in the parameters of the machine that it is handed: the present one,
        or one of other offsets and the same distribution. Same keys and shapes as its
        parameters.
    particles : ndarray of shape (n_chains * n_particles, n_hidden)
        Where the persistent chains are now.
    """

    mean: Array
    gradient: Callable[[Machine], dict[str, Array]]
    particles: Array


@dataclass(frozen=True)
class NegativePhase(ABC):
    """Where the model's states come from that data are compared with.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Steps of the Markov chains for every update; one step draws v, then h.

    Attributes
    ----------
    is_exact : bool
        Whether there is no noise beside which rounding does not matter.
    """

    n_gibbs_steps: int = 1

    is_exact: ClassVar[bool] = False

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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator
    ) -> Contrast:
        """Compare a mini-batch with the model.

        Parameters
        ----------
        machine : Machine
            Present model.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch.
        particles : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains, those of the model itself first.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        contrast : Contrast
            Means, gradient and the chains' new states.
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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator
    ) -> Contrast:
        mean = machine.mean_hidden(v)
        model = _advance(machine, machine.hidden.draw(mean, rng), self.n_gibbs_steps, rng)
        means = np.concatenate([mean, machine.mean_hidden(model)])
        return _Rows(v, model).contrast(means, particles)


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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator
    ) -> Contrast:
        rows = _Rows(v, _advance(machine, particles, self.n_gibbs_steps, rng))
        means = rows.mean_hidden(machine)
        return rows.contrast(means, machine.hidden.draw(means[v.shape[0] :], rng))


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    is_exact = True

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator
    ) -> Contrast:
        mean = machine.mean_hidden(v)

        def gradient(machine: Machine) -> dict[str, Array]:
            positive, negative = machine.gradient(v, mean=mean), expected_gradient(machine)
            return {name: array - negative[name] for name, array in positive.items()}

        return Contrast(mean, gradient, particles)


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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator
    ) -> Contrast:
        path = TemperedPath.to(machine, self.base)
        n_hidden = machine.hidden.n_units
        h = particles.reshape(self.n_chains, -1, n_hidden)
        model, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        rows = _Rows(v, model[0])
        return rows.contrast(rows.mean_hidden(machine), h.reshape(-1, n_hidden))


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "pt": ParallelTempering,
    "exact": Exact,
}


def _advance(machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator) -> Array:
    """Visible states after some Gibbs steps from hidden ones."""
    v = machine.sample_visible(h, rng)
    return gibbs(machine, v, n_gibbs_steps - 1, rng)


class _Rows:
    """Visible states of data and of the model, in one array where the data are dense.

    The two phases are then one product of weighted rows, the model's weights being negative.
    """

    def __init__(self, v: Any, model: Array) -> None:
        self._n_data = n_data = v.shape[0]
        n_model = len(model)
        self._parts = (
            [(v, slice(n_data)), (model, slice(n_data, None))]
            if issparse(v)
            else [(np.concatenate([v, model]), slice(None))]
        )
        self._sample_weight = np.full(n_data + n_model, 1 / n_data, dtype=model.dtype)
        self._sample_weight[n_data:] = -1 / n_model

    def mean_hidden(self, machine: Machine) -> Array:
        """Expected hidden states of all rows."""
        means = [machine.mean_hidden(part) for part, _ in self._parts]
        return means[0] if len(means) == 1 else np.concatenate(means)

    def contrast(self, means: Array, particles: Array) -> Contrast:
        """What an update needs, given the hidden means of all rows."""
        return Contrast(means[: self._n_data], partial(self._gradient, means), particles)

    def _gradient(self, means: Array, machine: Machine) -> dict[str, Array]:
        """Difference of the phases."""
        total, *others = (
            machine.gradient(part, mean=means[rows], sample_weight=self._sample_weight[rows])
            for part, rows in self._parts
        )
        for other in others:
            for name, array in total.items():
                array += other[name]
        return total
