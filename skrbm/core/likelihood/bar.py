"""Partition functions by Bennett's acceptance ratio along a ladder of parallel tempering."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from skrbm.core.chains.ladder import Ladder, communication_barrier, equal_acceptance_ladder
from skrbm.core.chains.path import LADDER_JUMP_PAUSE, TemperedPath
from skrbm.core.chains.tempering import parallel_tempering
from skrbm.core.likelihood.annealing import chains_at_base
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.numerics import Array
from skrbm.core.parallel import map_blocks

N_FIRST_RUNGS = 8  # of the ladder whose acceptance sets the next
TARGET_REJECTION = 0.3  # share of exchanges between neighbours, which the number of rungs aims at
MIN_LADDER_STEPS = 20  # on a ladder: no more rungs than leave so many
N_RATIO_BISECTIONS = 100  # leave an interval of 1e-30 of the first
N_DRIFT_ERRORS = 2  # standard errors by which two halves of the steps may differ
ADAPTATION_SHARES = (1 / 16, 1 / 8, 1 / 4)  # of all steps, after each of which the ladder adapts


def bridged_log_partition(
    path: TemperedPath,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> LogPartition:
    r"""Estimate the partition function by ratios between neighbours on a ladder.

    The chains of a ladder run at inverse temperatures from 1 to 0 and exchange their states, so that
    all of them are samples at all times. Between two neighbours of free energies :math:`F_0` and
    :math:`F_1`, with :math:`D = F_1 - F_0`, the difference :math:`\Delta = \log Z_0 - \log Z_1` of
    least variance [1]_ solves

    .. math::

        \langle \sigma(\Delta - D) \rangle_0 = \langle \sigma(D - \Delta) \rangle_1, \qquad
        \sigma(x) = \frac{1}{1 + e^{-x}}

    The number of rungs and their places follow the rejections of exchanges [2]_. The standard
    error is that of the mean over ladders, which are independent: it counts how long the chains
    remember, and that neighbours share samples. Where both halves of the steps differ by more than
    that, chains remember their start, and the difference is the error.

    Parameters
    ----------
    path : TemperedPath
        Ends at the machine.
    n_chains : int
        Number of independent ladders, at least two.
    n_temperatures : int
        Number of steps of all chains of a ladder together.
    rng : numpy.random.Generator
        Source of random numbers.
    n_jobs : int, default=None
        Number of threads over blocks of ladders; the result does not depend on it.

    Returns
    -------
    log_partition : LogPartition
        With its standard error; the number of temperatures is that of the rungs.

    References
    ----------
    .. [1] Bennett (1976), "Efficient estimation of free energy differences from Monte Carlo data",
       Journal of Computational Physics 22(2), 245-268, eq. 12.
       :doi:`10.1016/0021-9991(76)90078-4`
    .. [2] Syed, Bouchard-Côté, Deligiannidis, Doucet (2022), "Non-reversible parallel tempering: a
       scalable highly parallel MCMC scheme", Journal of the Royal Statistical Society B 84(2),
       321-350, section 5. :doi:`10.1111/rssb.12464`
    """
    max_rungs = max(2, n_temperatures // MIN_LADDER_STEPS)
    betas = np.linspace(1.0, 0.0, min(N_FIRST_RUNGS, max_rungs))
    starts, streams = zip(*chains_at_base(path, n_chains, rng), strict=True)
    sizes, machine = [len(v) for v in starts], path.at(1.0)
    h = [machine.sample_hidden(v, stream) for v, stream in zip(starts, streams, strict=True)]
    h = [np.repeat(block[None], len(betas), axis=0) for block in h]  # the same on all rungs
    for share in ADAPTATION_SHARES:
        n_steps = max(1, int(share * n_temperatures) // len(betas))
        blocks = [(path, *block, betas, n_steps) for block in zip(h, streams, strict=True)]
        states, acceptance = zip(*map_blocks(_advance, blocks, n_jobs), strict=True)
        adapted = _adapted(betas, np.average(acceptance, axis=0, weights=sizes), max_rungs)
        nearest = np.abs(betas - adapted[:, None]).argmin(axis=1)
        h, betas = [block[nearest] for block in states], adapted
    n_steps = max(2, int((1 - sum(ADAPTATION_SHARES)) * n_temperatures) // len(betas))
    blocks = [(path, *block, betas, n_steps) for block in zip(h, streams, strict=True)]
    differences = np.concatenate(map_blocks(_sample, blocks, n_jobs), axis=-1)
    return _bridge(differences, path.base_log_partition + path.energy_shift)


def _advance(
    path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array, n_steps: int
) -> tuple[Array, Array]:
    """Hidden states after some steps, and the acceptance of exchanges."""
    ladder = Ladder(betas)
    for begin in range(0, n_steps, LADDER_JUMP_PAUSE):
        h = _jumped(path, h, rng, betas)
        n_now = min(LADDER_JUMP_PAUSE, n_steps - begin)
        _, h = parallel_tempering(path, h, ladder, n_now, rng)
    return h, ladder.acceptance


def _jumped(path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array) -> Array:
    """Hidden states after jumps on all rungs: exchanges alone bring no mode down in so few steps."""
    return np.stack(
        [path.jump(own, rng, beta) for own, beta in zip(h, betas.tolist(), strict=True)]
    )


def _adapted(betas: Array, acceptance: Array, max_rungs: int) -> Array:
    """Ladder on which neighbours should reject as many exchanges as is aimed at, all alike."""
    barrier = communication_barrier(acceptance)
    n_rungs = int(np.clip(1 + np.ceil(barrier[-1] / TARGET_REJECTION), 2, max_rungs))
    return equal_acceptance_ladder(betas, barrier, n_rungs)


def _sample(
    path: TemperedPath, h: Array, rng: np.random.Generator, betas: Array, n_steps: int
) -> Array:
    """Free energies on a rung minus those on the one above it, at the states of both.

    Of shape (2, n_rungs - 1, n_steps, n_chains): first at states of the upper rung, at which they
    are of the rung below minus the upper one.
    """
    n_rungs, n_chains, _ = h.shape
    ladder, differences = Ladder(betas), np.empty((2, n_rungs - 1, n_steps, n_chains))
    for step in range(n_steps):
        if step % LADDER_JUMP_PAUSE == 0:
            h = _jumped(path, h, rng, betas)
        v, h = parallel_tempering(path, h, ladder, 1, rng)
        flat = v.reshape(n_rungs * n_chains, -1)
        field = path.machine.hidden_field(flat).reshape(n_rungs, n_chains, -1)
        gap = path.machine.visible.energy(flat).astype(float) - path.visible_base.energy(flat)
        gap = gap.reshape(n_rungs, n_chains)
        for k in range(n_rungs - 1):
            ends = [path.at(beta).hidden for beta in betas[k : k + 2]]
            for side in (0, 1):
                upper, lower = (
                    beta * gap[k + side] - end.log_partition(beta * field[k + side])
                    for beta, end in zip(betas[k : k + 2], ends, strict=True)
                )
                differences[side, k, step] = lower - upper
    return differences


def _bridge(differences: Array, base: float) -> LogPartition:
    """Solve for the ratios of all neighbours, and sum them up."""
    n_chains = differences.shape[-1]
    ratios = np.array([_solve(*pair) for pair in differences.swapaxes(0, 1)])
    at_upper = expit(ratios[:, None, None] - differences[0])
    at_lower = expit(differences[1] - ratios[:, None, None])
    slope = np.mean(at_upper * (1 - at_upper) + at_lower * (1 - at_lower), axis=(1, 2))
    # What every ladder adds to the sum of the ratios, to first order.
    influence = ((at_lower - at_upper) / slope[:, None, None]).sum(axis=0)
    variance = influence.mean(axis=0).var(ddof=1) / n_chains
    first, second = (half.mean() for half in np.array_split(influence, 2))
    # The variance of their difference is four times that of the whole; more is what chains remember.
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
    """Log-ratio of two partition functions, by bisection: the balance grows with it."""
    both = np.concatenate([at_upper, at_lower])
    low, high = both.min() - 1, both.max() + 1
    # Brent's method may stop amid states that do not overlap, where the balance is zero and flat.
    for _ in range(N_RATIO_BISECTIONS):
        middle = (low + high) / 2
        balance = expit(middle - at_upper).mean() - expit(at_lower - middle).mean()
        low, high = (middle, high) if balance < 0 else (low, middle)
    return float((low + high) / 2)
