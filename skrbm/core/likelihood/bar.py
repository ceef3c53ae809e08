"""Partition functions by Bennett's acceptance ratio, with samples of parallel tempering."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from skrbm.core.chains.ladder import Ladder, communication_barrier, equal_acceptance_ladder
from skrbm.core.chains.path import LADDER_JUMP_PAUSE, TemperedPath
from skrbm.core.chains.tempering import parallel_tempering
from skrbm.core.likelihood.annealing import chains_at_base
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.numerics import Array, like, to_host
from skrbm.core.parallel import map_blocks

N_FIRST_BETAS = 8  # largest number of temperatures of the first ladder
TARGET_REJECTION = 0.3  # rejection rate of swaps; it sets the number of temperatures
MIN_LADDER_STEPS = 20  # Gibbs steps for each temperature; limits the number of temperatures
N_RATIO_BISECTIONS = 100  # the last interval is 1e-30 of the first
N_DRIFT_ERRORS = 2  # standard errors of the difference by which two halves of the steps may differ
ADAPTATION_SHARES = (1 / 16, 1 / 8, 1 / 4)  # of the steps, before each adaptation of the ladder


def bridged_log_partition(
    path: TemperedPath,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> LogPartition:
    r"""Estimate the partition function from its ratios between neighboring temperatures.

    The samples are drawn by parallel tempering at inverse temperatures from 1 to 0. Let :math:`F_0`
    and :math:`F_1` be the free energies at two neighboring temperatures, and :math:`D = F_1 - F_0`.
    The estimate of :math:`\Delta = \log Z_0 - \log Z_1` with the smallest variance for independent
    samples [1]_ solves

    .. math::

        \langle \sigma(\Delta - D) \rangle_0 = \langle \sigma(D - \Delta) \rangle_1, \qquad
        \sigma(x) = \frac{1}{1 + e^{-x}}

    where the averages are over the samples at the two temperatures. The number and spacing of the
    temperatures are adapted to the rejection rates of swaps [2]_. The standard error is computed
    from the variance between independent ladders. It therefore includes the effects of the
    autocorrelation of the chains and of the correlation between temperatures. If the estimates from
    the first and the second half of the steps differ by more than `N_DRIFT_ERRORS` standard errors
    of the difference, the chains have probably not equilibrated, and the standard error is
    increased.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    n_chains : int
        Number of independent ladders, at least two.
    n_temperatures : int
        Approximate number of Gibbs steps of a ladder, summed over its temperatures.
    rng : numpy.random.Generator
        Source of random numbers.
    n_jobs : int, default=None
        Number of threads that process the blocks of ladders, as in `map_blocks`; the result does
        not depend on it.

    Returns
    -------
    log_partition : LogPartition
        Estimate with its standard error. The attribute `n_temperatures` is the number of
        temperatures of the final ladder.

    References
    ----------
    .. [1] Bennett (1976), "Efficient estimation of free energy differences from Monte Carlo data",
       Journal of Computational Physics 22(2), 245-268, eq. 12.
       :doi:`10.1016/0021-9991(76)90078-4`
    .. [2] Syed, Bouchard-Côté, Deligiannidis, Doucet (2022), "Non-reversible parallel tempering: a
       scalable highly parallel MCMC scheme", Journal of the Royal Statistical Society B 84(2),
       321-350, section 5. :doi:`10.1111/rssb.12464`
    """
    max_betas = max(2, n_temperatures // MIN_LADDER_STEPS)
    betas = np.linspace(1.0, 0.0, min(N_FIRST_BETAS, max_betas))
    starts, streams = zip(*chains_at_base(path, n_chains, rng), strict=True)
    sizes, machine = [len(v) for v in starts], path.at(1.0)
    h = [machine.sample_hidden(v, stream) for v, stream in zip(starts, streams, strict=True)]
    h = [np.repeat(block[None], len(betas), axis=0) for block in h]  # equal for all temperatures
    for share in ADAPTATION_SHARES:
        n_steps = max(1, int(share * n_temperatures) // len(betas))
        blocks = [(path, *block, betas, n_steps) for block in zip(h, streams, strict=True)]
        states, acceptance = zip(*map_blocks(_advance, blocks, n_jobs), strict=True)
        adapted = _adapted(betas, np.average(acceptance, axis=0, weights=sizes), max_betas)
        nearest = np.abs(betas - adapted[:, None]).argmin(axis=1)
        h, betas = [block[like(nearest, block)] for block in states], adapted
    n_steps = max(2, int((1 - sum(ADAPTATION_SHARES)) * n_temperatures) // len(betas))
    blocks = [(path, *block, betas, n_steps) for block in zip(h, streams, strict=True)]
    differences = np.concatenate(map_blocks(_sample, blocks, n_jobs), axis=-1)
    return _bridge(differences, path.base_log_partition + path.energy_shift)


def _advance(
    path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array, n_steps: int
) -> tuple[Array, Array]:
    """Advance chains; return their hidden states and the mean acceptance probabilities of swaps."""
    ladder = Ladder(betas)
    for begin in range(0, n_steps, LADDER_JUMP_PAUSE):
        h = _jumped(path, h, rng, betas)
        n_now = min(LADDER_JUMP_PAUSE, n_steps - begin)
        _, h = parallel_tempering(path, h, ladder, n_now, rng)
    return h, ladder.acceptance


def _jumped(path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array) -> Array:
    """Propose jumps to the anchors, for the chains at all temperatures.

    With swaps alone, a mode found at one temperature reaches the other temperatures slowly.
    """
    return np.stack(
        [path.jump(states, rng, beta) for states, beta in zip(h, betas.tolist(), strict=True)]
    )


def _adapted(betas: Array, acceptance: Array, max_betas: int) -> Array:
    """Inverse temperatures with rejection rates of at most `TARGET_REJECTION` between neighbors.

    The rates are predicted from the current ladder. They may be higher if the number of
    temperatures is limited by `max_betas`.
    """
    barrier = communication_barrier(acceptance)
    n_betas = int(np.clip(1 + np.ceil(barrier[-1] / TARGET_REJECTION), 2, max_betas))
    return equal_acceptance_ladder(betas, barrier, n_betas)


def _sample(
    path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array, n_steps: int
) -> Array:
    """Draw samples by parallel tempering, and compute their free energy differences.

    The result has shape (2, n_betas - 1, n_steps, n_chains). It contains the free energy at
    ``betas[k + 1]`` minus the free energy at ``betas[k]``, first for states drawn at ``betas[k]``,
    then for states drawn at ``betas[k + 1]``.
    """
    n_betas, n_chains, _ = h.shape
    ladder, differences = Ladder(betas), np.empty((2, n_betas - 1, n_steps, n_chains))
    for step in range(n_steps):
        if step % LADDER_JUMP_PAUSE == 0:
            h = _jumped(path, h, rng, betas)
        v, h = parallel_tempering(path, h, ladder, 1, rng)
        flat = v.reshape(n_betas * n_chains, -1)
        field = path.machine.hidden_field(flat).reshape(n_betas, n_chains, -1)
        gap = path.machine.visible.energy(flat).astype(float) - path.visible_base.energy(flat)
        gap = gap.reshape(n_betas, n_chains)
        for k in range(n_betas - 1):
            ends = [path.at(beta).hidden for beta in betas[k : k + 2]]
            for side in (0, 1):
                upper, lower = (
                    beta * gap[k + side] - end.log_partition(beta * field[k + side])
                    for beta, end in zip(betas[k : k + 2], ends, strict=True)
                )
                differences[side, k, step] = to_host(lower - upper)
    return differences


def _bridge(differences: Array, base: float) -> LogPartition:
    """Compute the log-partition and its standard error from the differences of `_sample`.

    `base` is the log-partition of the base of the path plus its energy shift, in nats.
    """
    n_chains = differences.shape[-1]
    ratios = np.array([_solve(*pair) for pair in differences.swapaxes(0, 1)])
    at_upper = expit(ratios[:, None, None] - differences[0])
    at_lower = expit(differences[1] - ratios[:, None, None])
    slope = np.mean(at_upper * (1 - at_upper) + at_lower * (1 - at_lower), axis=(1, 2))
    # First-order contribution of every step and ladder to the sum of the log-ratios.
    influence = ((at_lower - at_upper) / slope[:, None, None]).sum(axis=0)
    variance = influence.mean(axis=0).var(ddof=1) / n_chains
    first, second = (half.mean() for half in np.array_split(influence, 2))
    # The difference of the two halves has four times the variance of their mean. A larger square is
    # due to a drift of the chains.
    variance += max(0.0, (second - first) ** 2 - 4 * N_DRIFT_ERRORS**2 * variance)
    n_effective = influence.var() / variance if variance > 0 else influence.size
    return LogPartition(
        float(base + ratios.sum()),
        float(np.sqrt(variance)),
        "bar",
        n_chains=n_chains,
        n_temperatures=len(ratios) + 1,
        effective_sample_size=float(n_effective),
    )


def _solve(at_upper: Array, at_lower: Array) -> float:
    """Solve Bennett's equation for the log-ratio of two partition functions by bisection.

    The arrays contain the free energy differences of `_sample`, for the states drawn at the higher
    and at the lower inverse temperature.
    """
    both = np.concatenate([at_upper, at_lower])
    low, high = both.min() - 1, both.max() + 1
    # Brent's method may stop early if the states do not overlap: the balance is then flat.
    for _ in range(N_RATIO_BISECTIONS):
        middle = (low + high) / 2
        balance = expit(middle - at_upper).mean() - expit(at_lower - middle).mean()
        low, high = (middle, high) if balance < 0 else (low, middle)
    return float((low + high) / 2)
