"""Mixing diagnostics of Markov chains: traces, autocorrelation times and R-hat."""

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

WINDOW = 5.0  # smallest window of a sum of autocorrelations, in autocorrelation times
MAX_MIXED_R_HAT, MIN_UNMIXED_R_HAT = 1.01, 1.1  # mixed below the first, not mixed above the second
LAG = 25  # steps; autocorrelations at longer lags are extrapolated from the lags LAG and 2 LAG
MIN_EFFECTIVE_SAMPLES = 400  # with fewer, R-hat is unreliable


@final
@dataclass(frozen=True, eq=False)
class ChainDiagnostics:
    """Traces of Gibbs chains and mixing diagnostics.

    Each diagnostic is computed for all three traces, and the worst value is reported. Diagnostics
    depend only on the states that the chains have visited: they cannot reveal a mode that no chain
    has found.

    Parameters
    ----------
    free_energy : ndarray of shape (n_chains, n_steps)
        Free energy of the visible states, in nats.
    mean_activation : ndarray of shape (n_chains, n_steps)
        Expected hidden states, averaged over the hidden units.
    principal_component : ndarray of shape (n_chains, n_steps)
        First principal component of the expected hidden states at all steps of all chains. It can
        separate modes in which the other two traces have equal values.

    Notes
    -----
    ArviZ reads the traces: ``arviz.convert_to_dataset(diagnostics.traces)``.
    """

    free_energy: Array
    mean_activation: Array
    principal_component: Array

    @property
    def traces(self) -> dict[str, Array]:
        """Traces by name, each of shape (n_chains, n_steps)."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def autocorrelation_time(self) -> float:
        """Largest autocorrelation time of the traces, in steps.

        This number of steps of a chain is equivalent to one independent sample. It is at least 1,
        since the chain of the visible states has no negative eigenvalues.
        """
        return float(np.max([1.0, *map(autocorrelation_time, self.traces.values())]))

    @cached_property
    def effective_sample_size(self) -> float:
        """Number of independent samples to which all chains together are equivalent."""
        return self.free_energy.size / self.autocorrelation_time

    @cached_property
    def r_hat(self) -> float:
        """Largest rank-normalized split R-hat of the traces, close to one if the chains agree."""
        return float(np.max([*map(split_r_hat, self.traces.values())]))

    @property
    def verdict(self) -> str:
        """Summary of the diagnostics, with advice if the chains mix slowly or not at all."""
        if not np.isfinite([*self.traces.values()]).all():
            return (
                "The chains cannot be judged: free energies or activations are not finite. The "
                "parameters of the model are too large."
            )
        n_chains, n_steps = self.free_energy.shape
        numbers = (
            f"R-hat is {self.r_hat:.3f}, the autocorrelation time {self.autocorrelation_time:.1f} "
            f"of {n_steps} steps, the effective sample size {self.effective_sample_size:.0f} of "
            f"{n_chains} chains"
        )
        if self.r_hat > MIN_UNMIXED_R_HAT or WINDOW * self.autocorrelation_time > n_steps:
            return f"The chains do not mix: {numbers}. Sample by parallel tempering."
        if self.r_hat > MAX_MIXED_R_HAT or self.effective_sample_size < MIN_EFFECTIVE_SAMPLES:
            return f"The chains mix slowly: {numbers}. Averages need more steps."
        return f"The chains mix: {numbers}."

    def __str__(self) -> str:
        return self.verdict


def trace_chains(
    machine: Machine, v: Array, n_steps: int, rng: np.random.Generator
) -> ChainDiagnostics:
    """Run Gibbs chains and record their traces.

    Parameters
    ----------
    machine : Machine
        Machine to sample from.
    v : ndarray of shape (n_chains, n_visible)
        Initial visible states.
    n_steps : int
        Number of steps; each trace has one value per step.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    diagnostics : ChainDiagnostics
        Traces, as arrays of dtype float64.
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
    r"""Lower bound on the autocorrelation of Gibbs chains, extrapolated from short chains.

    The Markov chain of visible states is reversible and has no negative eigenvalues. For any
    function of these states, the autocorrelation :math:`\rho(n)` at a lag of n steps is therefore a
    weighted mean of powers :math:`\lambda^n` with :math:`0 \le \lambda \le 1`. Its logarithm is
    convex in n, so that

    .. math::

        \rho(n) \ge \rho(t) \left( \frac{\rho(2 t)}{\rho(t)} \right)^{(n - t) / t}, \quad n \ge 2 t

    The autocorrelations at the lags t = `LAG` and 2 t are measured for the first principal
    component of the expected hidden states. Due to their sampling errors, the result is an estimate
    of the bound.

    Parameters
    ----------
    machine : Machine
        Machine to sample from.
    v : ndarray of shape (n_chains, n_visible)
        Initial visible states, distributed over the modes in proportion to their probabilities.
    n_steps : int
        Lag of the autocorrelation in steps, at least `2 * LAG`.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    memory : float
        Lower bound, between 0 and 1, on the autocorrelation at a lag of `n_steps`. It is 0 if a
        measured autocorrelation is not positive.
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
    """First principal component of all hidden activations, cast to double precision.

    The result has shape (n, m) for activations of shape (n, m, n_hidden).
    """
    flat = activations.reshape(-1, activations.shape[-1])
    flat = flat - flat[0]  # makes constant columns exactly zero
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

    The autocorrelation :math:`\rho(t)` is the ratio of two averages over the chains: of the
    autocovariance at lag t and of the variance. Both are computed about the mean of all chains, so
    the autocorrelation time is long if chains stay in different modes. The window M is chosen
    self-consistently [1]_. If no window satisfies the condition, the longest one is used.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_steps)
        Trace of a quantity.

    Returns
    -------
    time : float
        Autocorrelation time in steps, at least 0.01. It is one for a constant quantity, and NaN if
        a value of the trace is not finite.

    References
    ----------
    .. [1] Sokal (1997), "Monte Carlo methods in statistical mechanics: foundations and new
       algorithms", in Functional Integration, 131-192, section 3.
       :doi:`10.1007/978-1-4899-0319-8_6`
    """
    if not np.isfinite(trace).all():
        return np.nan
    n_steps = trace.shape[1]
    deviation = trace - trace.mean()
    length = next_fast_len(2 * n_steps, real=True)
    power = np.abs(rfft(deviation, length, axis=1)) ** 2
    covariance = irfft(power.mean(axis=0), length)[:n_steps]
    if covariance[0] <= np.finfo(float).eps * np.square(trace).sum() / len(trace):
        return 1.0
    covariance /= n_steps - np.arange(n_steps)
    times = 2 * np.cumsum(covariance / covariance[0]) - 1
    is_wide = np.arange(n_steps) >= WINDOW * times
    window = int(np.argmax(is_wide)) if is_wide.any() else n_steps - 1
    return float(max(times[window], 0.01))


def split_r_hat(trace: Array) -> float:
    """Rank-normalized split R-hat.

    The result is the larger of two R-hats, one for the values and one for their distances from the
    median.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_steps)
        Trace of a quantity, with at least one chain and four steps.

    Returns
    -------
    r_hat : float
        Split R-hat. It is NaN if a value is not finite, and one for a constant quantity. If the
        quantity is constant within each half of each chain but not equal in all halves, it is
        infinite or, due to rounding, very large.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), "Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2),
       667-718, sections 3.1, 4.1 and 4.2. :doi:`10.1214/20-BA1221`
    """
    if not np.isfinite(trace).all():
        return np.nan
    half = trace.shape[1] // 2
    halves = np.concatenate([trace[:, :half], trace[:, -half:]])
    return max(_r_hat(_normal_ranks(x)) for x in (halves, np.abs(halves - np.median(halves))))


def _normal_ranks(chains: Array) -> Array:
    """Normal scores: normal quantiles of the ranks of the values of all chains."""
    ranks = rankdata(chains).reshape(chains.shape)
    return norm.ppf((ranks - 3 / 8) / (chains.size + 1 / 4))


def _r_hat(chains: Array) -> float:
    """R-hat: square root of the ratio of the estimated total variance to that within chains."""
    n_steps = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt((n_steps - 1) / n_steps + between / within))
