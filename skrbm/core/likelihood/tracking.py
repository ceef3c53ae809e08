"""Partition functions of successive models during training, from weighted chains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from skrbm.core.chains.jumps import extrapolated_rows, jump, mixed_rows, propose
from skrbm.core.chains.path import TemperedPath, natural_machine
from skrbm.core.likelihood.partition import BOUND_MARGIN, LogPartition
from skrbm.core.likelihood.weighted_chains import Population
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Units

MAX_STEP_SPREAD = 0.07  # nats; target of the standard deviation of a step's log-weight changes
MAX_DISAGREEMENT = 3.0  # standard errors beyond which two estimates disagree
CHAINS_FACTOR = 4  # growth of the number of chains when they are replaced, up to `max_chains`


@final
class PartitionTracker:
    r"""Sequential Monte Carlo estimate of the partition function during training.

    When the parameters change from :math:`\theta` to :math:`\theta'`, the weights of the chains and
    the estimate are updated as follows, and the chains are advanced by a Gibbs step:

    .. math::

        \log w \mathrel{+}= F_\theta(v) - F_{\theta'}(v), \qquad
        \log \hat Z_{\theta'} = \log \hat Z_0 + \log \langle w \rangle

    where :math:`F` is the free energy of the visible states, :math:`w` are the weights of the
    chains, which are one after each resampling, and :math:`\hat Z_0` is the estimate at the last
    resampling. Before the first resampling, :math:`\hat Z_0` is the partition function of the
    uncoupled layers. Without the replacements described below, and with steps that do not depend on
    the chains, :math:`\hat Z` is unbiased for changes of any size [1]_. Large changes are divided
    into steps, to keep the variance of the weights small. The energies of the intermediate models
    are linear interpolations. Chains are resampled if their effective sample size is less than
    `min_ess_share` of their number [2]_.

    The probabilities of distant modes change during training, but Gibbs steps rarely move chains
    between them. Chains may therefore jump to given rows, which are called anchors, and to mixtures
    and extrapolations of anchors (see `mixed_rows` and `extrapolated_rows`), which are called
    further rows. If there are anchors, the partition function of each model is also estimated by
    importance sampling, from states drawn given random anchors and further rows. If the effective
    sample size of these states is more than `min_ess_share` of their number, they replace the
    chains in two cases. In the first case, the estimate from the states is larger by more than
    `MAX_DISAGREEMENT` standard errors of the difference: chains that miss a mode underestimate Z.
    In the second case, the two estimates differ by less than that, and the estimate from the states
    has the smaller standard error. If the estimate from the states is larger by more than
    `BOUND_MARGIN`, the states replace the chains at any effective sample size: the chains have most
    probably missed a mode.

    In the first epochs the parameters may change faster than the chains equilibrate. If the
    standard error exceeds `max_std_error`, new chains are annealed from the base to the model, and
    replace the current chains if their estimate is larger. This is repeated only after the number
    of models has doubled.

    Parameters
    ----------
    base : Units
        Visible layer of the same type as the visible layer of the machine. The chains are
        initialized with states of `base` drawn without a field.
    machine : Machine
        Machine with the unit types and the shape of the models; its parameters are not used. The
        attribute `is_tempered_exactly` of its hidden units must be True.
    rng : numpy.random.Generator
        Source of random numbers.
    dtype : dtype, default=numpy.float64
        Floating-point dtype of states and fields.
    n_chains : int
        Number of chains, at least two.
    max_chains : int, default=None
        Largest number of chains. Each time that new chains are annealed from the base, their number
        is `CHAINS_FACTOR` times the previous number, up to this limit. If None, the limit is
        `n_chains`.

    Attributes
    ----------
    correction : float
        Sum of the changes of the estimated log-partition when chains were replaced, in nats.
        Estimates before the first replacement were too low by about this amount, or too high if it
        is negative.
    min_ess_share : float
        Fraction of the number of chains. Chains are resampled if their effective sample size is
        below this fraction. States drawn given the anchors replace the chains only if their
        effective sample size is above it, or if their estimate is much larger (`BOUND_MARGIN`).
    max_std_error : float
        Standard error, in nats, above which new chains are annealed from the base, if the number of
        models has doubled since the last time.
    jump_pause : int
        Number of steps from one jump to the next.
    n_further_rows : int
        Number of mixtures, and number of extrapolations.
    base_step_factor : int
        Largest number of steps from the base to a model, divided by the largest number of steps
        between two models.

    Raises
    ------
    ValueError
        If the attribute `is_tempered_exactly` of the hidden units is False.

    References
    ----------
    .. [1] Neal (2001), "Annealed importance sampling", Statistics and Computing 11, 125-139.
       :doi:`10.1023/A:1008923215028`
    .. [2] Del Moral, Doucet, Jasra (2006), "Sequential Monte Carlo samplers", Journal of the Royal
       Statistical Society B 68(3), 411-436. :doi:`10.1111/j.1467-9868.2006.00553.x`
    """

    min_ess_share = 0.5
    max_std_error = 0.5
    jump_pause = 5
    n_further_rows = 16
    base_step_factor = 10

    def __init__(
        self,
        base: Units,
        machine: Machine,
        rng: np.random.Generator,
        *,
        dtype: Any = np.float64,
        n_chains: int,
        max_chains: int | None = None,
    ) -> None:
        path = TemperedPath.to(machine.astype(dtype), base)
        uncoupled = np.zeros_like(path.machine.weights)
        self._base = replace(path, machine=Machine(path.visible_base, path.hidden_base, uncoupled))
        self._rng, self._dtype = rng, dtype
        self._n_chains, self._max_chains = n_chains, max_chains or n_chains
        self._current, self._chains = self._base.machine, self._at_base()
        self._n_steps, self._n_models, self._n_at_renewal = 0, 0, 1
        self.correction = 0.0

    def follow(
        self, machine: Machine, max_steps: int, anchors: Array | None = None
    ) -> LogPartition:
        """Advance the chains to the next model.

        Parameters
        ----------
        machine : Machine
            Next model, with the unit types and shape of the constructor's `machine`. It is copied.
        max_steps : int
            Largest number of Gibbs steps between two models, at least one. From the base to a
            model, `base_step_factor` times as many steps are allowed. Fewer steps are taken if they
            keep the standard deviation of the log-weight changes in each step at or below about
            `MAX_STEP_SPREAD`.
        anchors : ndarray of shape (n_rows, n_visible), default=None
            Visible states that chains may jump to, such as rows of the data. If None, they do not
            jump, and are not replaced by states drawn given anchors.

        Returns
        -------
        log_partition : LogPartition
            Estimate with its standard error. The squared standard error includes a term of
            1 / n_chains ** 2, since all chains may miss a mode whose probability is below
            1 / n_chains.
        """
        anchors = None if anchors is None else anchors.astype(self._dtype, copy=False)
        natural, energy_shift = natural_machine(machine.astype(self._dtype, copy=True))
        n_before, max_base_steps = self._n_steps, max_steps * self.base_step_factor
        max_steps = max_steps if self._n_models else max_base_steps
        self._go(self._current, self._chains, natural, max_steps, anchors)
        self._current, self._n_models = natural, self._n_models + 1
        is_unsure = self._chains.std_error > self.max_std_error
        if is_unsure and self._n_models >= 2 * self._n_at_renewal:
            self._n_at_renewal = self._n_models
            self._n_chains = min(CHAINS_FACTOR * self._n_chains, self._max_chains)
            others = self._at_base()
            self._go(self._base.machine, others, natural, max_base_steps, anchors)
            self._replace_chains(max(self._chains, others, key=lambda chains: chains.value))
        if anchors is not None:
            self._replace_chains(self._better(self._chains, anchors))
        chains = self._chains
        return LogPartition(
            chains.value + energy_shift,
            float(np.hypot(chains.std_error, 1 / len(chains.v))),
            "tracked",
            n_chains=len(chains.v),
            n_temperatures=self._n_steps - n_before,
            effective_sample_size=chains.effective_sample_size,
        )

    def _at_base(self) -> Population:
        """Create chains with independent states drawn from the base."""
        v = self._base.sample_base(self._n_chains, self._rng)
        return Population(v, np.zeros(len(v)), self._base.base_log_partition)

    def _replace_chains(self, chains: Population) -> None:
        """Replace the current chains, and add a finite change of the estimate to `correction`."""
        gap = chains.value - self._chains.value
        if np.isfinite(gap):  # not finite if energies overflow
            self.correction += gap
        self._chains = chains

    def _better(self, chains: Population, anchors: Array) -> Population:
        """Return the chains, or states drawn given the anchors if these give a better estimate."""
        rows = self._offered(self._current, anchors)
        h, log_weights = propose(self._current, rows, self._n_chains, self._rng)
        draws = Population(self._current.sample_visible(h, self._rng), log_weights.astype(float))
        gap = draws.value - chains.value
        if gap > BOUND_MARGIN:
            return draws
        if not draws.effective_sample_size > self.min_ess_share * len(h):
            return chains
        tolerance = MAX_DISAGREEMENT * np.hypot(draws.std_error, chains.std_error)
        is_better = gap > tolerance or (gap > -tolerance and draws.std_error < chains.std_error)
        return draws if is_better else chains

    def _offered(self, machine: Machine, anchors: Array) -> Array:
        """Anchors and further rows."""
        options = machine, anchors, self.n_further_rows, self._rng
        return np.concatenate([anchors, mixed_rows(*options), extrapolated_rows(*options)])

    def _go(
        self, first: Machine, chains: Population, last: Machine, max_steps: int, anchors: Any
    ) -> None:
        """Anneal chains, in place, from one machine in natural form to another."""
        segment, beta, end = _Segment(first, last), 0.0, self._n_steps + max_steps
        while beta < 1:
            fields = segment.fields(chains.v)
            least = beta + (1 - beta) / (end - self._n_steps)
            beta, log_ratio = segment.next(chains, fields, beta, least)
            chains.log_weights = chains.log_weights + log_ratio
            if chains.effective_sample_size < self.min_ess_share * len(chains.v):
                chosen = chains.resample(self._rng)
                fields = fields[0][chosen], fields[1][chosen]
            between = segment.at(beta)
            h = between.hidden.sample(fields[0] + beta * fields[1], self._rng)
            if anchors is not None and self._n_steps % self.jump_pause == 0:
                h, *_ = jump(between, h, self._offered(between, anchors), self._rng)
            chains.v = between.sample_visible(h, self._rng)
            self._n_steps += 1


@final
class _Segment:
    """Path between two results of `natural_machine`, along which the energy changes linearly.

    The number `beta` increases from 0 at the first machine to 1 at the last machine.
    """

    def __init__(self, first: Machine, last: Machine) -> None:
        self._first, self._last = first, last
        self._change = last.weights - first.weights

    def fields(self, v: Array) -> tuple[Array, Array]:
        """Hidden fields in the first machine, and their changes from the first to the last one."""
        return v @ self._first.weights, v @ self._change

    def free_energy(self, v: Array, fields: tuple[Array, Array], beta: float) -> Array:
        """Free energy in the intermediate machine at `beta`, in nats.

        The visible energies are added in double precision. The hidden log-partition has the dtype
        of `fields`.
        """
        first, last = self._first.visible, self._last.visible
        energy = (1 - beta) * first.energy(v).astype(float) + beta * last.energy(v).astype(float)
        hidden = self._last.hidden.tempered(self._first.hidden, beta)
        return energy - hidden.log_partition(fields[0] + beta * fields[1])

    def next(
        self, chains: Population, fields: tuple[Array, Array], beta: float, least: float
    ) -> tuple[float, Array]:
        """Return the next `beta` and the changes of the log-weights up to it.

        The next `beta` is 1 if the standard deviation of the changes is then at most
        `MAX_STEP_SPREAD`. Otherwise, it is chosen so that the standard deviation is about
        `MAX_STEP_SPREAD`, but it is at least `least`.
        """
        shares = chains.shares
        current = self.free_energy(chains.v, fields, beta)
        log_ratio = current - self.free_energy(chains.v, fields, 1.0)
        spread = float(np.sqrt(shares @ (log_ratio - shares @ log_ratio) ** 2))
        if not spread > MAX_STEP_SPREAD:
            return 1.0, log_ratio
        beta = min(max(least, beta + (1 - beta) * MAX_STEP_SPREAD / spread), 1.0)
        return beta, current - self.free_energy(chains.v, fields, beta)

    def at(self, beta: float) -> Machine:
        """Intermediate machine at `beta`."""
        return Machine(
            self._last.visible.tempered(self._first.visible, beta),
            self._last.hidden.tempered(self._first.hidden, beta),
            self._first.weights + beta * self._change,
        )
