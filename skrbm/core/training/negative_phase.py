"""Training algorithms, which differ in the negative phase; one class for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import numpy as np

from skrbm.core.chains.ladder import Ladder
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import parallel_tempering
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.gradient import AllStates, DataExpectation, Expectation, UpdateBuffers
from skrbm.core.units import Units

PERSISTENT_CHAINS, ROW_WEIGHTS = "persistent chains", "row weights"  # for `Part.needs`

Phases = tuple[DataExpectation, Expectation, Array]  # positive, negative, states of the chains


@dataclass(frozen=True)
class NegativePhase(ABC):
    """Training algorithm, which defines the negative phase of the gradient.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Number of Gibbs steps of the chains per update. One step draws v, then h. The last step of
        `ContrastiveDivergence` draws only v. `Exact` has no chains and does not use this number.

    Attributes
    ----------
    is_exact : bool
        Whether the gradient is exact. If True, estimators keep states in the precision of the
        machine, because without sampling noise the rounding errors of a lower precision matter.
    starts_at_data : bool
        Whether each row of the mini-batch is the initial state of a chain. If True, the states of
        the chains have the weights of these rows.
    offers : frozenset of str
        Capabilities of the algorithm that the parts of training may need (see `Part.needs`).
    """

    n_gibbs_steps: int = 1

    is_exact: ClassVar[bool] = False
    starts_at_data: ClassVar[bool] = False
    offers: ClassVar[frozenset[str]] = frozenset({PERSISTENT_CHAINS, ROW_WEIGHTS})

    @classmethod
    @abstractmethod
    def create(cls, n_gibbs_steps: int, base: Units, ladder: Ladder) -> Self:
        """Create the algorithm; each class uses only the arguments that it needs.

        `base` and `ladder` are the parameters of `ParallelTempering`.
        """

    @property
    @abstractmethod
    def n_temperatures(self) -> int:
        """Number of temperatures of the chains; 1 for all algorithms but `ParallelTempering`."""

    @abstractmethod
    def finish_epoch(self) -> dict[str, float]:
        """Adapt the temperatures, if there are several, and return statistics of the chains.

        Returns
        -------
        history : dict of str to float
            Statistics for the history, by column name. It is empty without several temperatures.
        """

    @abstractmethod
    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> Phases:
        """Compute the positive phase of a mini-batch and the negative phase of the model.

        Parameters
        ----------
        machine : Machine
            Plain machine before the update, in the precision of states.
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch.
        h : ndarray of shape (n_temperatures * n_particles, n_hidden)
            Hidden states of the persistent chains. The chains at temperature 1 come first. The
            array may be overwritten.
        buffers : UpdateBuffers
            Buffers for the arrays of the update.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        positive, negative : DataExpectation, Expectation
            Expectations under the data and under the model.
        h : ndarray of shape (n_temperatures * n_particles, n_hidden)
            Hidden states of the persistent chains after the update's Gibbs steps. They are
            unchanged if the algorithm has no persistent chains.

        Raises
        ------
        ValueError
            If the algorithm is `ParallelTempering`, and `is_tempered_exactly` of the hidden units
            is False.
        """


class OneTemperature(NegativePhase):
    """Base class of algorithms whose chains, if any, are all at temperature 1."""

    @classmethod
    def create(cls, n_gibbs_steps: int, base: Units, ladder: Ladder) -> Self:
        return cls(n_gibbs_steps)

    @property
    def n_temperatures(self) -> int:
        return 1

    def finish_epoch(self) -> dict[str, float]:
        return {}


@final
@dataclass(frozen=True)
class ContrastiveDivergence(OneTemperature):
    """CD-k, contrastive divergence: in every update, chains are initialized with the mini-batch.

    References
    ----------
    .. [1] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    """

    starts_at_data = True
    offers = frozenset({ROW_WEIGHTS})

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> Phases:
        states = buffers.phases(v, v.shape[0], machine)
        mean = states.data_mean
        start = np.empty_like(mean)
        field = machine.hidden_field(states.v, out=mean)
        machine.hidden.mean_and_sample(field, rng, out=(mean, start))
        _advance(machine, start, self.n_gibbs_steps, rng, states.model)
        machine.mean_hidden(states.model, out=states.model_mean)
        return states.positive, states.negative, h


@final
@dataclass(frozen=True)
class PersistentContrastiveDivergence(OneTemperature):
    """PCD-k, or stochastic maximum likelihood: the chains persist between updates.

    References
    ----------
    .. [1] Tieleman (2008), "Training restricted Boltzmann machines using approximations to the
       likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    """

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> Phases:
        states = buffers.phases(v, len(h), machine)
        _advance(machine, h, self.n_gibbs_steps, rng, states.model)
        states.write_fields(machine)
        machine.hidden.mean_and_sample(states.mean, rng, out=(states.mean, h))
        return states.positive, states.negative, h


@final
@dataclass(frozen=True)
class Exact(OneTemperature):
    """Exact negative phase: a sum over all states of the layer with fewer states."""

    is_exact = True
    offers = frozenset()

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> Phases:
        states = buffers.phases(v, 0, machine)
        machine.mean_hidden(states.v, out=states.mean)
        return states.positive, AllStates(), h


@final
@dataclass(frozen=True)
class ParallelTempering(NegativePhase):
    """PT-k, parallel tempering: persistent chains at several temperatures swap states.

    The temperatures are adapted after every epoch, so that swaps are accepted about equally often
    between all pairs of neighboring temperatures.

    Parameters
    ----------
    n_gibbs_steps : int, default=1
        Number of steps of the chains per update. One step draws v, then draws h, then proposes
        swaps of states between neighboring temperatures.
    base : Units
        Visible layer at inverse temperature 0. Its distribution without a field should resemble the
        data. It must not share memory with the machine, because training changes the machine in
        place.
    ladder : Ladder
        Inverse temperatures, which are adapted in place after every epoch.

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
    def n_temperatures(self) -> int:
        return len(self.ladder.betas)

    def finish_epoch(self) -> dict[str, float]:
        return {"swap_acceptance": self.ladder.adapt()}

    def __call__(
        self, machine: Machine, v: Any, h: Array, buffers: UpdateBuffers, rng: np.random.Generator
    ) -> Phases:
        path = TemperedPath.to(machine, self.base)
        n_hidden = machine.hidden.n_columns
        h = h.reshape(self.n_temperatures, -1, n_hidden)
        states, h = parallel_tempering(path, h, self.ladder, self.n_gibbs_steps, rng)
        phases = buffers.phases(v, len(states[0]), machine)
        phases.model[...] = states[0]
        phases.write_fields(machine)
        machine.hidden.mean(phases.mean, out=phases.mean)
        return phases.positive, phases.negative, h.reshape(-1, n_hidden)


ALGORITHMS: dict[str, type[NegativePhase]] = {
    "cd": ContrastiveDivergence,
    "pcd": PersistentContrastiveDivergence,
    "pt": ParallelTempering,
    "exact": Exact,
}


def _advance(
    machine: Machine, h: Array, n_gibbs_steps: int, rng: np.random.Generator, out: Array
) -> None:
    """Run Gibbs steps without the last draw of `h`; write the last visible states to `out`.

    `h` contains the initial hidden states, and is overwritten if there are several steps.
    """
    turned = machine.transposed
    turned.sample_hidden(h, rng, out=out)
    for _ in range(n_gibbs_steps - 1):
        machine.sample_hidden(out, rng, out=h)
        turned.sample_hidden(h, rng, out=out)
