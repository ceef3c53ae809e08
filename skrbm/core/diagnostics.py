"""Diagnosis of how Markov chains mix, by traces of a few quantities."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import final

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import norm, rankdata

from skrbm.core.chains.gibbs import gibbs
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array

WINDOW = 5.0  # autocorrelation times that a sum over autocorrelations extends
MAX_MIXED_R_HAT, MIN_UNMIXED_R_HAT = 1.01, 1.1  # of chains that can be believed, and that cannot
LAG = 25  # steps, from which and from twice as many the memory of more is inferred
MIN_EFFECTIVE_SAMPLES = 400  # fewer, and R-hat itself is not to be believed


@final
@dataclass(frozen=True, eq=False)
class ChainDiagnostics:
    """Traces of Gibbs chains, and how well these chains mix.

    The numbers are those of the trace that is worst. They know only what the chains have visited:
    a mode that none of them has found does not show.

    Parameters
    ----------
    free_energy : ndarray of shape (n_chains, n_steps)
        Free energy of the visible states, in nats.
    mean_activation : ndarray of shape (n_chains, n_steps)
        Mean of the expected hidden states over the hidden units.
    principal_component : ndarray of shape (n_chains, n_steps)
        Coordinate of the expected hidden states along the direction in which those of all chains
        vary most; it tells modes apart that look alike to the other two.

    Notes
    -----
    The traces of several quantities are what ArviZ reads:
    ``arviz.convert_to_dataset(diagnostics.traces)``.
    """

    free_energy: Array
    mean_activation: Array
    principal_component: Array

    @property
    def traces(self) -> dict[str, Array]:
        """The three traces by name, of shape (n_chains, n_steps) each."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def autocorrelation_time(self) -> float:
        """Number of steps that are worth one independent sample, at least about one."""
        return max(map(autocorrelation_time, self.traces.values()))

    @cached_property
    def effective_sample_size(self) -> float:
        """Number of independent samples that all chains together are worth."""
        return self.free_energy.size / self.autocorrelation_time

    @cached_property
    def r_hat(self) -> float:
        """Rank-normalised split R-hat; one for chains that agree."""
        return max(map(split_r_hat, self.traces.values()))

    @property
    def verdict(self) -> str:
        """Meaning of the numbers, in words."""
        n_chains, n_steps = self.free_energy.shape
        numbers = (
            f"R-hat is {self.r_hat:.3f}, the autocorrelation time {self.autocorrelation_time:.1f} of "
            f"{n_steps} steps, the effective sample size {self.effective_sample_size:.0f} of "
            f"{n_chains} chains"
        )
        if self.r_hat > MIN_UNMIXED_R_HAT or WINDOW * self.autocorrelation_time > n_steps:
            return f"The chains do not mix: {numbers}. Sample by parallel tempering."
        if self.r_hat > MAX_MIXED_R_HAT or self.effective_sample_size < MIN_EFFECTIVE_SAMPLES:
            return f"The chains mix slowly: {numbers}. Take more steps before believing averages."
        return f"The chains mix: {numbers}."

    def __str__(self) -> str:
        return self.verdict


def trace_chains(
    machine: Machine, v: Array, n_steps: int, rng: np.random.Generator
) -> ChainDiagnostics:
    """Advance Gibbs chains and keep what tells how they mix.

    Parameters
    ----------
    machine : Machine
        Whose distribution the chains leave invariant.
    v : ndarray of shape (n_chains, n_visible)
        Visible states to start from.
    n_steps : int
        Number of steps, after each of which the traces have a value.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    diagnostics : ChainDiagnostics
        In double precision.
    """
    n_chains = len(v)
    free_energy, mean_activation = np.empty((2, n_chains, n_steps))
    activations = np.empty((n_chains, n_steps, machine.hidden.n_columns), dtype=np.float32)
    h = machine.sample_hidden(v, rng)
    for step in range(n_steps):
        v = machine.sample_visible(h, rng)
        field = machine.hidden_field(v)
        free_energy[:, step] = machine.visible.energy(v) - machine.hidden.log_partition(field)
        mean, h = machine.hidden.mean_and_sample(field, rng)
        mean_activation[:, step] = mean.mean(axis=1, dtype=np.float64)
        activations[:, step] = mean
    return ChainDiagnostics(free_energy, mean_activation, _first_coordinate(activations))


def chain_memory(machine: Machine, v: Array, n_steps: int, rng: np.random.Generator) -> float:
    r"""Tell from a few steps how much Gibbs chains remember after many.

    The visible states make a reversible chain without negative eigenvalues: an autocorrelation
    :math:`\rho` of it is a mixture of powers of numbers between 0 and 1, its logarithm is convex, and

    .. math:: \rho(n) \ge \rho(t) \left( \frac{\rho(2 t)}{\rho(t)} \right)^{(n - t) / t}, \quad n \ge 2 t

    Here it is that of the expected hidden states, along the direction in which they vary most.

    Parameters
    ----------
    machine : Machine
        Whose distribution the chains leave invariant.
    v : ndarray of shape (n_chains, n_visible)
        Visible states in all modes of the distribution, as many in each as it weighs.
    n_steps : int
        Number of steps, at least `2 * LAG`.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    memory : float
        What the correlation between states `n_steps` apart is at least, from 0 to 1.
    """
    states = [v]
    for _ in range(2):
        states.append(gibbs(machine, states[-1], LAG, rng))
    first, middle, last = _first_coordinate(np.stack([machine.mean_hidden(v) for v in states]))
    variance = (first @ first + middle @ middle + last @ last) / 3
    near, far = (first @ middle + middle @ last) / 2, first @ last
    if not (near > 0 and far > 0):
        return 0.0
    return float(min(near / variance, 1.0) * min(far / near, 1.0) ** (n_steps / LAG - 1))


def _first_coordinate(activations: Array) -> Array:
    """Coordinate along the direction of largest variance, in double precision.

    Of shape (n, m) for activations of shape (n, m, n_hidden).
    """
    flat = activations.reshape(-1, activations.shape[-1])
    flat = flat - flat[0]  # exactly zero where nothing varies
    flat -= flat.mean(axis=0)
    if len(flat) < flat.shape[1]:
        values, vectors = np.linalg.eigh(flat @ flat.T)
        coordinate = np.sqrt(max(values[-1], 0)) * vectors[:, -1]
    else:
        coordinate = flat @ np.linalg.eigh(flat.T @ flat)[1][:, -1]
    return np.asarray(coordinate.reshape(activations.shape[:-1]), dtype=np.float64)


def autocorrelation_time(trace: Array) -> float:
    r"""Integrated autocorrelation time of stationary chains.

    .. math:: \tau = 1 + 2 \sum_{t = 1}^{M} \rho(t), \qquad M = \min \{M : M \ge 5 \tau(M)\}

    with the autocorrelations about the mean of all chains, averaged over chains: so chains that
    stay in different places have a long one. The window is chosen self-consistently [1]_.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_steps)
        A quantity along the chains.

    Returns
    -------
    time : float
        In steps, at least a hundredth; one for a quantity that does not vary.

    References
    ----------
    .. [1] Sokal (1997), "Monte Carlo methods in statistical mechanics: foundations and new
       algorithms", in Functional Integration, 131-192, section 3.
       :doi:`10.1007/978-1-4899-0319-8_6`
    """
    n_steps = trace.shape[1]
    deviation = trace - trace.mean()
    length = next_fast_len(2 * n_steps, real=True)
    power = np.abs(rfft(deviation, length, axis=1)) ** 2
    covariance = irfft(power.mean(axis=0), length)[:n_steps]
    if not covariance[0] > np.finfo(float).eps * np.square(trace).sum() / len(trace):
        return 1.0
    covariance /= n_steps - np.arange(n_steps)
    times = 2 * np.cumsum(covariance / covariance[0]) - 1
    is_wide = np.arange(n_steps) >= WINDOW * times
    window = int(np.argmax(is_wide)) if is_wide.any() else n_steps - 1
    return float(max(times[window], 0.01))


def split_r_hat(trace: Array) -> float:
    """Rank-normalised split R-hat, of values and of their distances from the median.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_steps)
        A quantity along at least one chain of at least four steps.

    Returns
    -------
    r_hat : float
        The larger of both; one for a quantity that does not vary.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), "Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2),
       667-718, sections 3.1, 4.1 and 4.2. :doi:`10.1214/20-BA1221`
    """
    half = trace.shape[1] // 2
    halves = np.concatenate([trace[:, :half], trace[:, -half:]])
    return max(_r_hat(_normal_ranks(x)) for x in (halves, np.abs(halves - np.median(halves))))


def _normal_ranks(chains: Array) -> Array:
    """Normal quantiles of the ranks of all values together."""
    ranks = rankdata(chains).reshape(chains.shape)
    return np.asarray(norm.ppf((ranks - 3 / 8) / (chains.size + 1 / 4)))


def _r_hat(chains: Array) -> float:
    """Square root of the variance of all chains over that within a chain."""
    n_steps = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt((n_steps - 1) / n_steps + between / within))
