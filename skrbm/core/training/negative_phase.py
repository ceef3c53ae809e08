"""Data and the model's own states: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from scipy.sparse import issparse

from skrbm.core.likelihood.exact import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import Ladder, gibbs, parallel_tempering
from skrbm.core.tempering import TemperedPath
from skrbm.core.training.workspace import Workspace
from skrbm.core.units import Units


class Samples(NamedTuple):
    """Visible states to average over, and what is expected of the hidden ones.

    Attributes
    ----------
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Visible states.
    mean : ndarray of shape (n_samples, n_hidden)
        Expected hidden states given them.
    """

    v: Any
    mean: Array


class Phases(NamedTuple):
    """What an update knows of a mini-batch and of the model, until the next one begins.

    Attributes
    ----------
    positive : Samples
        Mini-batch.
    negative : Samples or None
        States of the model; None for the sum over all of them.
    particles : ndarray of shape (n_chains * n_particles, n_hidden)
        Where the persistent chains are now.
    """

    positive: Samples
    negative: Samples | None
    particles: Array

    def gradient(
        self, machine: Machine, work: Workspace, sample_weight: Array | None = None
    ) -> dict[str, Array]:
        """Gradient of the log-likelihood: the positive minus the negative phase.

        Parameters
        ----------
        machine : Machine
            The one that the phases are of, or one of other offsets and the same distribution.
        work : Workspace
            Of the run.
        sample_weight : ndarray of shape (n_samples,), default=None
            Shares of the rows of the mini-batch, which sum to one; None for equal ones.

        Returns
        -------
        gradient : dict of str to ndarray
            Same keys and shapes as the machine's parameters.
        """
        (v, mean), negative = self.positive, self.negative
        if negative is not None and not issparse(v):
            # One product over the rows of both phases: two take 6 to 17 % longer at 784 x 500.
            shares = work.signed_shares(len(v), len(negative.v), mean.dtype)
            if sample_weight is not None:
                shares = np.append(sample_weight, shares[len(v) :])
            v = work.stack("v", v, negative.v)
            return machine.gradient(
                v, mean=work.stack("mean", mean, negative.mean), sample_weight=shares
            )
        positive = machine.gradient(v, mean=mean, sample_weight=sample_weight)
        model = (
            expected_gradient(machine)
            if negative is None
            else machine.gradient(negative.v, mean=negative.mean)
        )
        return {name: array - model[name] for name, array in positive.items()}


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
            Hidden states of the persistent chains, those of the model itself first.
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
        mean, h = machine.hidden.mean_and_sample(machine.hidden_field(v), rng)
        model = _advance(machine, h, self.n_gibbs_steps, rng)
        return Phases(Samples(v, mean), Samples(model, machine.mean_hidden(model)), particles)


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
        model = _advance(machine, particles, self.n_gibbs_steps, rng)
        (v, field), (model, model_field) = _hidden_fields(machine, v, model, work)
        mean, particles = machine.hidden.mean_and_sample(model_field, rng)
        return Phases(Samples(v, machine.hidden.mean(field)), Samples(model, mean), particles)


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    is_exact = True
    is_persistent = False

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        return Phases(Samples(v, machine.mean_hidden(v)), None, particles)


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
        model, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        (v, field), (model, model_field) = _hidden_fields(machine, v, model[0], work)
        positive, negative = (
            Samples(rows, machine.hidden.mean(f)) for rows, f in ((v, field), (model, model_field))
        )
        return Phases(positive, negative, h.reshape(-1, n_hidden))


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


def _hidden_fields(
    machine: Machine, v: Any, model: Array, work: Workspace
) -> tuple[tuple[Any, Array], tuple[Array, Array]]:
    """Data and model with the fields that they exert, in one product where the data are dense."""
    if issparse(v):
        return (v, machine.hidden_field(v)), (model, machine.hidden_field(model))
    n_data, rows = len(v), work.stack("v", v, model)
    field = machine.hidden_field(rows)
    return (rows[:n_data], field[:n_data]), (rows[n_data:], field[n_data:])
