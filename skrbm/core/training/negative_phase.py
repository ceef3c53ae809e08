"""Where the model's own states come from: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from skrbm.core.chains.ladder import Ladder
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import parallel_tempering
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, is_sparse
from skrbm.core.training.phases import Phases, Samples
from skrbm.core.training.workspace import Workspace
from skrbm.core.units import Units


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
    is_persistent : bool
        Whether the particles sample the model, and do not rest.
    """

    n_gibbs_steps: int = 1

    is_exact: ClassVar[bool] = False
    is_persistent: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def create(cls, n_gibbs_steps: int, base: Units, ladder: Ladder) -> Self:
        """Algorithm with those of all settings that it needs."""

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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        """Set a mini-batch against states of the model.

        Parameters
        ----------
        machine : Machine
            Present model.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch.
        particles : ndarray of shape (n_chains * n_particles, n_hidden)
            Hidden states of the persistent chains, those of the model itself first; their array may
            be the one that holds the new states.
        rng : numpy.random.Generator
            Source of random numbers.
        work : Workspace
            Of the run.

        Returns
        -------
        phases : Phases
            Of data and model, and the chains' new states.
        """


class OneTemperature(NegativePhase):
    """Negative phase of chains that all sample the model itself."""

    @classmethod
    def create(cls, n_gibbs_steps: int, base: Units, ladder: Ladder) -> Self:
        return cls(n_gibbs_steps)

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

    is_persistent = False

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        room = _Room.of(v, v.shape[0], machine, work)
        mean, model_mean = room.split(room.mean)
        h = work.array("h", mean.shape, mean.dtype)
        machine.hidden.mean_and_sample(machine.hidden_field(room.v, out=mean), rng, out=(mean, h))
        _advance(machine, h, self.n_gibbs_steps, rng, room.model)
        machine.mean_hidden(room.model, out=model_mean)
        return room.phases(particles)


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
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        room = _Room.of(v, len(particles), machine, work)
        _advance(machine, particles, self.n_gibbs_steps, rng, room.model)
        room.write_fields(machine)
        machine.hidden.mean_and_sample(room.mean, rng, out=(room.mean, particles))
        return room.phases(particles)


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    is_exact = True
    is_persistent = False

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        rows = v if is_sparse(v) else work.extended("v", v, 0)  # the gradient uses them up
        return Phases(Samples(rows, machine.mean_hidden(rows)), None, particles)


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

    @classmethod
    def create(cls, n_gibbs_steps: int, base: Units, ladder: Ladder) -> Self:
        return cls(n_gibbs_steps, base=base, ladder=ladder)

    @property
    def n_chains(self) -> int:
        return len(self.ladder.betas)

    def finish_pass(self) -> dict[str, float]:
        return {"swap_acceptance": self.ladder.settle()}

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        path = TemperedPath.to(machine, self.base)
        n_hidden = machine.hidden.n_columns
        h = particles.reshape(self.n_chains, -1, n_hidden)
        states, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        room = _Room.of(v, len(states[0]), machine, work)
        room.model[...] = states[0]
        room.write_fields(machine)
        machine.hidden.mean(room.mean, out=room.mean)
        return room.phases(h.reshape(-1, n_hidden))


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "pt": ParallelTempering,
    "exact": Exact,
}


class _Room(NamedTuple):
    """Room for the states of both phases in an update, data first: `rows` and hidden `mean`.

    `rows` is None for a sparse mini-batch; else `v` and `model` are its parts, to share products.
    """

    v: Any
    model: Array
    rows: Array | None
    mean: Array

    @classmethod
    def of(cls, v: Any, n_model: int, machine: Machine, work: Workspace) -> Self:
        """Room for a mini-batch and some states of the model."""
        n_data, dtype = v.shape[0], machine.dtype
        mean = work.array("mean", (n_data + n_model, machine.hidden.n_columns), dtype)
        if is_sparse(v):
            return cls(v, work.array("v", (n_model, v.shape[1]), dtype), None, mean)
        rows = work.extended("v", v, n_model)
        return cls(rows[:n_data], rows[n_data:], rows, mean)

    def split(self, array: Array) -> tuple[Array, Array]:
        """Rows of the mini-batch and of the model's states."""
        n_data = self.v.shape[0]
        return array[:n_data], array[n_data:]

    def write_fields(self, machine: Machine) -> None:
        """Write the hidden fields into the room for means, in one product if that can be."""
        if self.rows is not None:
            machine.hidden_field(self.rows, out=self.mean)
        else:
            for rows, field in zip((self.v, self.model), self.split(self.mean), strict=True):
                machine.hidden_field(rows, out=field)

    def phases(self, particles: Array) -> Phases:
        """What the room holds now, with where the persistent chains are."""
        mean, model_mean = self.split(self.mean)
        both = None if self.rows is None else Samples(self.rows, self.mean)
        return Phases(Samples(self.v, mean), Samples(self.model, model_mean), particles, both)


def _advance(
    machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator, out: Array
) -> None:
    """Write visible states after some Gibbs steps from hidden ones, which are used up."""
    machine.sample_visible(h, rng, out=out)
    for _ in range(n_gibbs_steps - 1):
        machine.sample_hidden(out, rng, out=h)
        machine.sample_visible(h, rng, out=out)
