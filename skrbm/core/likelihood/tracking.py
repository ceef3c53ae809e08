"""Partition functions of the models that training passes through, from chains that go along."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.tempering import TemperedPath, natural_machine
from skrbm.core.units import Units

N_CHAINS = 100
SPREAD = 0.07  # nats: standard deviation of log-weights that a step may add
FEW = 0.5  # share of the chains that are worth all of them, below which they are drawn anew
FEW_FAMILIES = 0.25  # share of the chains: fewer ancestors do not tell a variance


@final
class PartitionTracker:
    r"""Chains with weights that follow a model from one state of its training to the next.

    Whenever the model moves from :math:`\theta` to :math:`\theta'`, chains take on weights, and
    then a Gibbs step:

    .. math::

        \log w \mathrel{+}= F_\theta(v) - F_{\theta'}(v), \qquad
        \log \hat Z_{\theta'} = \log \hat Z_\theta + \log \langle w \rangle

    :math:`\hat Z` is unbiased however far the model moves [1]_. Models between the two, linear in
    the natural parameters, keep the weights alike, and chains are drawn anew in proportion to their
    weights when these differ too much [2]_. The variance is that between the descendants of
    different chains [3]_, which counts what chains that do not mix add to it.

    Parameters
    ----------
    base : Units
        Visible layer without a field, of the type of the machine's, from which the chains start.
    machine : Machine
        First model to follow, whose hidden units are discrete.
    rng : numpy.random.Generator
        Source of random numbers.
    dtype : dtype, default=numpy.float64
        Precision of states and fields.
    n_chains : int, default=N_CHAINS
        Number of chains.

    References
    ----------
    .. [1] Neal (2001), "Annealed importance sampling", Statistics and Computing 11, 125-139.
       :doi:`10.1023/A:1008923215028`
    .. [2] Del Moral, Doucet, Jasra (2006), "Sequential Monte Carlo samplers", Journal of the Royal
       Statistical Society B 68(3), 411-436. :doi:`10.1111/j.1467-9868.2006.00553.x`
    .. [3] Lee, Whiteley (2018), "Variance estimation in the particle filter", Biometrika 105(3),
       609-625, section 3. :doi:`10.1093/biomet/asy028`
    """

    def __init__(
        self,
        base: Units,
        machine: Machine,
        rng: np.random.Generator,
        *,
        dtype: Any = np.float64,
        n_chains: int = N_CHAINS,
    ) -> None:
        path = TemperedPath.to(machine.astype(dtype), base)
        uncoupled = np.zeros_like(path.machine.weights)
        self._here = Machine(path.visible_base, path.hidden_base, uncoupled)
        self._rng, self._dtype = rng, dtype
        # What the chains know up to the last time that they were drawn anew.
        self._log_partition, self._variance = path.base_log_partition, 0.0
        self._v = path.sample_base(n_chains, rng)
        self._log_weights = np.zeros(n_chains)
        self._families = np.arange(n_chains)

    def follow(self, machine: Machine, max_steps: int) -> LogPartition:
        """Go over to the next model.

        Parameters
        ----------
        machine : Machine
            Of the same types as the first; copied.
        max_steps : int
            Largest number of Gibbs steps on the way, at least one: fewer where the weights stay
            alike with fewer.

        Returns
        -------
        log_partition : LogPartition
            Of the machine, with its standard error.
        """
        there, energy_shift = natural_machine(machine.astype(self._dtype, copy=True))
        leg, beta, n_steps = _Leg(self._here, there), 0.0, 0
        while beta < 1:
            fields = leg.fields(self._v)
            least = beta + (1 - beta) / (max_steps - n_steps)
            beta_next, log_ratio = self._next(leg, fields, beta, least)
            self._log_weights += log_ratio
            if self._effective_sample_size < FEW * len(self._v):
                chosen = self._draw_anew()
                fields = fields[0][chosen], fields[1][chosen]
            self._v = leg.gibbs_step(fields, beta_next, self._rng)
            beta, n_steps = beta_next, n_steps + 1
        self._here = there
        return LogPartition(
            self._log_partition + self._log_mean + energy_shift,
            float(np.sqrt(self._variance + self._family_variance)),
            "tracked",
            n_chains=len(self._v),
            n_temperatures=n_steps,
            effective_sample_size=self._effective_sample_size,
        )

    def _next(
        self, leg: _Leg, fields: tuple[Array, Array], beta: float, least: float
    ) -> tuple[float, Array]:
        """Model to go to, about as far as the weights may spread, and its log-weights."""
        here = leg.free_energy(self._v, fields, beta)
        log_ratio = here - leg.free_energy(self._v, fields, 1.0)
        mean = self._shares @ log_ratio
        spread = float(np.sqrt(self._shares @ (log_ratio - mean) ** 2))
        if not spread > SPREAD:
            return 1.0, log_ratio
        beta = min(max(least, beta + (1 - beta) * SPREAD / spread), 1.0)
        return beta, here - leg.free_energy(self._v, fields, beta)

    @property
    def _log_mean(self) -> float:
        return float(logsumexp(self._log_weights) - np.log(len(self._log_weights)))

    @property
    def _shares(self) -> Array:
        """Weights, of sum one."""
        return np.asarray(np.exp(self._log_weights - logsumexp(self._log_weights)))

    @property
    def _effective_sample_size(self) -> float:
        return float(1 / np.sum(self._shares**2))

    @property
    def _family_variance(self) -> float:
        """Relative variance of the mean weight, from the shares of the first chains' families."""
        n = len(self._families)
        shares = np.bincount(self._families, self._shares, minlength=n)
        return float(np.sum((shares - 1 / n) ** 2) * n / (n - 1))

    def _draw_anew(self) -> Array:
        """Draw the chains in proportion to their weights, evenly; their numbers."""
        n = len(self._log_weights)
        targets = (np.arange(n) + self._rng.random()) / n
        chosen = np.minimum(np.searchsorted(np.cumsum(self._shares), targets), n - 1)
        variance = self._family_variance
        self._families = self._families[chosen]
        if len(np.unique(self._families)) < FEW_FAMILIES * n:
            self._variance += variance
            self._families = np.arange(n)
        self._log_partition += self._log_mean
        self._log_weights = np.zeros(n)
        self._v = self._v[chosen]
        return chosen


@final
class _Leg:
    """Models between two natural ones, linear in their parameters."""

    def __init__(self, first: Machine, last: Machine) -> None:
        self._first, self._last = first, last
        self._change = last.weights - first.weights

    def fields(self, v: Array) -> tuple[Array, Array]:
        """Fields of the hidden units at the first model, and what they change by to the last."""
        return v @ self._first.weights, v @ self._change

    def free_energy(self, v: Array, fields: tuple[Array, Array], beta: float) -> Array:
        """Free energy in a model between, in double precision."""
        first, last = self._first.visible, self._last.visible
        own = (1 - beta) * first.energy(v).astype(float) + beta * last.energy(v).astype(float)
        hidden = self._last.hidden.tempered(self._first.hidden, beta)
        return np.asarray(own - hidden.log_partition(fields[0] + beta * fields[1]))

    def gibbs_step(
        self, fields: tuple[Array, Array], beta: float, rng: np.random.Generator
    ) -> Array:
        """Visible states after a step in a model between, given the fields of those before."""
        hidden = self._last.hidden.tempered(self._first.hidden, beta)
        visible = self._last.visible.tempered(self._first.visible, beta)
        h = hidden.sample(fields[0] + beta * fields[1], rng)
        weights = self._first.weights + beta * self._change
        return visible.sample(h @ weights.T, rng)
