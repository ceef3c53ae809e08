"""Data and the model's own states: one class for each training algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from skrbm.core.likelihood.exact import expected_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, is_sparse
from skrbm.core.sampling import Ladder, parallel_tempering
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
        product = work.array("gradient", machine.weights.shape, mean.dtype)
        if negative is not None and not is_sparse(v):
            # One product over the rows of both phases: two take 6 to 17 % longer at 784 x 500.
            shares = work.signed_shares(len(v), len(negative.v), mean.dtype)
            if sample_weight is not None:
                shares = np.append(sample_weight, shares[len(v) :])
            return machine.gradient(
                work.stack("v", v, negative.v),
                mean=work.stack("mean", mean, negative.mean),
                sample_weight=shares,
                out=product,
            )
        gradient = machine.gradient(v, mean=mean, sample_weight=sample_weight, out=product)
        if negative is None:
            model = expected_gradient(machine)
        else:
            other = work.array("model gradient", product.shape, product.dtype)
            model = machine.gradient(negative.v, mean=negative.mean, out=other)
        for name, array in model.items():
            gradient[name] -= array
        return gradient


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
        v, model = _with_room(v, v.shape[0], machine, work)
        mean, model_mean = np.split(
            work.array("mean", (2 * len(model), machine.hidden.n_columns), machine.dtype), 2
        )
        h = work.array("h", mean.shape, mean.dtype)
        machine.hidden.mean_and_sample(machine.hidden_field(v, out=mean), rng, out=(mean, h))
        _advance(machine, h, self.n_gibbs_steps, rng, model)
        machine.mean_hidden(model, out=model_mean)
        return Phases(Samples(v, mean), Samples(model, model_mean), particles)


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
        v, model = _with_room(v, len(particles), machine, work)
        _advance(machine, particles, self.n_gibbs_steps, rng, model)
        mean = _hidden_fields(machine, v, model, work)
        machine.hidden.mean_and_sample(mean, rng, out=(mean, particles))
        return _phases(v, model, mean, particles)


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Sum over all states of the smaller discrete layer; persistent chains rest."""

    is_exact = True
    is_persistent = False

    def __call__(
        self, machine: Machine, v: Any, particles: Array, rng: np.random.Generator, work: Workspace
    ) -> Phases:
        v, _ = _with_room(v, 0, machine, work)
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
        states, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        v, model = _with_room(v, len(states[0]), machine, work)
        model[...] = states[0]
        mean = _hidden_fields(machine, v, model, work)
        machine.hidden.mean(mean, out=mean)
        return _phases(v, model, mean, h.reshape(-1, n_hidden))


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "pt": ParallelTempering,
    "exact": Exact,
}


def _with_room(v: Any, n_model: int, machine: Machine, work: Workspace) -> tuple[Any, Array]:
    """Mini-batch, and room for the model's states: below it if it is dense, to share products."""
    if is_sparse(v):
        return v, work.array("v", (n_model, v.shape[1]), machine.dtype)
    rows = work.extended("v", v, n_model)
    return rows[: len(v)], rows[len(v) :]


def _advance(
    machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator, out: Array
) -> None:
    """Write visible states after some Gibbs steps from hidden ones, which are used up."""
    machine.sample_visible(h, rng, out=out)
    for _ in range(n_gibbs_steps - 1):
        machine.sample_hidden(out, rng, out=h)
        machine.sample_visible(h, rng, out=out)


def _phases(v: Any, model: Array, mean: Array, particles: Array) -> Phases:
    """Phases whose hidden means lie in one array, those of the data first."""
    n_data = v.shape[0]
    return Phases(Samples(v, mean[:n_data]), Samples(model, mean[n_data:]), particles)


def _hidden_fields(machine: Machine, v: Any, model: Array, work: Workspace) -> Array:
    """Fields that data and, below them, model exert: in one product where the data are dense."""
    n_data, shape = v.shape[0], (v.shape[0] + len(model), machine.hidden.n_columns)
    field = work.array("mean", shape, machine.dtype)
    if is_sparse(v):
        machine.hidden_field(v, out=field[:n_data])
        machine.hidden_field(model, out=field[n_data:])
    else:
        machine.hidden_field(work.stack("v", v, model), out=field)
    return field
