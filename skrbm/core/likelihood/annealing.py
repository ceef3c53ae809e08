"""Partition functions by annealed importance sampling, forward and reverse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.jumps import jump, log_partition_given_observed
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.draws import new_streams
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.numerics import Array, is_on_host, to_host
from skrbm.core.parallel import map_blocks
from skrbm.core.units import Units

Starts = list[tuple[Array, np.random.Generator]]

N_BLOCK_CHAINS = 50  # chains of a block; equal for all n_jobs, so that results are equal, too
N_DEVICE_CHAINS = 2**14  # chains of a block on a device, where each library call takes long
SMALL_LAYER = 128  # columns; up to this size, NumPy's overhead dominates, and blocks are doubled
SCHEDULE_POWER = 2.0  # exponent of the distance to the model; steps get smaller towards it


def inverse_temperatures(n_temperatures: int) -> Array:
    r"""Inverse temperatures from 0 to 1, with smaller differences near 1.

    .. math:: \beta_k = 1 - (1 - k / (n - 1))^2, \qquad 0 \le k < n

    where :math:`n` is the number of temperatures.

    Parameters
    ----------
    n_temperatures : int
        Number of temperatures, at least two.

    Returns
    -------
    betas : ndarray of shape (n_temperatures,)
        Inverse temperatures, ascending.
    """
    return 1 - np.linspace(1, 0, n_temperatures) ** SCHEDULE_POWER


def n_block_chains(path: TemperedPath) -> int:
    """Largest number of chains in a block; all chains of a block are advanced together.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.

    Returns
    -------
    n_chains : int
        `N_DEVICE_CHAINS` on a device. On the host, it is `N_BLOCK_CHAINS`, or twice this number if
        no layer has more than `SMALL_LAYER` columns.
    """
    if not is_on_host(path.machine.weights):
        return N_DEVICE_CHAINS
    is_small = max(path.machine.weights.shape) <= SMALL_LAYER
    return 2 * N_BLOCK_CHAINS if is_small else N_BLOCK_CHAINS


def chains_at_base(path: TemperedPath, n_chains: int, rng: np.random.Generator) -> Starts:
    """Draw independent states from the base of a path, in blocks with separate random streams.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    n_chains : int
        Number of chains.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    blocks : list of tuple of ndarray of shape (n_block, n_visible) and Generator
        Visible states and random stream of each block.
    """
    blocks = _with_streams(path, np.arange(n_chains), rng)
    return [(path.sample_base(len(block), stream), stream) for block, stream in blocks]


def annealed_log_partition(
    path: TemperedPath,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> LogPartition:
    r"""Estimate the partition function by annealing chains from the base to the model.

    .. math::

        \log \hat Z = \log Z_0 + \log \frac1M \sum_m w_m, \qquad
        \log w = \sum_k F_{\beta_k}(v_k) - F_{\beta_{k + 1}}(v_k)

    where :math:`Z_0` is the partition function of the base, :math:`w_m` is the weight of chain m,
    and :math:`\beta_k` are the `inverse_temperatures`. The free energy of visible states at the
    inverse temperature :math:`\beta` is

    .. math:: F_\beta(v) = -\log \sum_h e^{-(1 - \beta) E_0(v, h) - \beta E_1(v, h)}

    with the energies of `TemperedPath`. The states :math:`v_0` are drawn from the base, and
    :math:`v_k` is drawn from :math:`v_{k - 1}` by one Gibbs step at :math:`\beta_k`. If the path
    has anchors, a second Gibbs step, with proposed jumps to the anchors, follows at every
    ``path.annealing_jump_pause``-th temperature. The result is :math:`\log \hat Z + c`, where
    :math:`c` is the `energy_shift` of the path. Since :math:`\hat Z` is unbiased,
    :math:`\log \hat Z` tends to be too low, and likelihoods computed from it tend to be too high.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    n_chains : int
        Number :math:`M` of independent chains.
    n_temperatures : int
        Number of inverse temperatures, both ends included, at least two.
    rng : numpy.random.Generator
        Source of random numbers.
    n_jobs : int, default=None
        Number of threads that process the blocks of chains, as in `map_blocks`; the result does not
        depend on it.

    Returns
    -------
    log_partition : LogPartition
        Estimate with its standard error.

    References
    ----------
    .. [1] Neal (2001), "Annealed importance sampling", Statistics and Computing 11, 125-139,
       eq. 11. :doi:`10.1023/A:1008923215028`
    .. [2] Salakhutdinov, Murray (2008), "On the quantitative analysis of deep belief networks",
       ICML, 872-879. :doi:`10.1145/1390156.1390266`
    """
    betas = inverse_temperatures(n_temperatures).tolist()
    return _estimate("ais", path, chains_at_base(path, n_chains, rng), betas, n_jobs)


def reversed_log_partition(
    path: TemperedPath,
    v: Array,
    n_temperatures: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> LogPartition:
    r"""Estimate the partition function by annealing chains from the model to the base.

    .. math:: \log \hat Z = \log Z_0 - \log \frac1M \sum_m w_m

    where :math:`Z_0` and :math:`w_m` are defined as in `annealed_log_partition`, but with the
    inverse temperatures in descending order and :math:`v_0` drawn from the model. As there, the
    `energy_shift` of the path is added to :math:`\log \hat Z`. Since :math:`1 / \hat Z` is
    unbiased, :math:`\log \hat Z` tends to be too high. The true value therefore tends to be between
    the estimates of `annealed_log_partition` and of this function.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    v : ndarray of shape (n_chains, n_visible)
        Visible states drawn from the model. If they have another distribution,
        :math:`1 / \hat Z` is biased. The standard error is valid for independent states only.
    n_temperatures : int
        Number of inverse temperatures, both ends included, at least two.
    rng : numpy.random.Generator
        Source of random numbers.
    n_jobs : int, default=None
        Number of threads that process the blocks of chains, as in `map_blocks`; the result does not
        depend on it.

    Returns
    -------
    log_partition : LogPartition
        Estimate with its standard error.

    References
    ----------
    .. [1] Burda, Grosse, Salakhutdinov (2015), "Accurate and conservative estimates of MRF
       log-likelihood using reverse annealing", AISTATS, PMLR 38, 102-110.
    """
    betas = inverse_temperatures(n_temperatures)[::-1].tolist()
    return _estimate("reverse_ais", path, _with_streams(path, v, rng), betas, n_jobs)


def clamped_log_partition(
    path: TemperedPath,
    v: Array,
    is_observed: Array,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
) -> LogPartition:
    r"""Estimate the partition function of a machine with clamped visible units.

    .. math:: Z(v_o) = \sum_{v_m} e^{-F(v_o, v_m)}, \qquad p(v_o) = Z(v_o) / Z

    where :math:`v_o` are the states of the observed units, which are clamped, and :math:`v_m` those
    of the missing units. The chains are annealed as by `annealed_log_partition`, but the clamped
    states are restored after every step, and jumps lead to the anchors of the path with the clamped
    states in place of theirs. The estimate tends to be too low.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    v : ndarray of shape (n_visible,)
        Visible state. The values of the missing units are ignored.
    is_observed : ndarray of bool of shape (n_units,)
        Mask of the observed units.
    n_chains : int
        Number of independent chains.
    n_temperatures : int
        Number of inverse temperatures, both ends included, at least two.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    log_partition : LogPartition
        Estimate of :math:`\log Z(v_o)` with its standard error.
    """
    is_held, dtype = path.visible_base.by_column(is_observed), path.machine.dtype
    if path.anchors is not None:
        path = replace(path, anchors=np.where(is_held, v, path.anchors).astype(dtype))
    start = np.where(is_held, v, path.sample_base(n_chains, rng)).astype(dtype)
    betas = inverse_temperatures(n_temperatures).tolist()
    log_weights = _anneal(path, start, betas, rng, is_observed)
    base = _clamped_base(path, v, is_observed)
    return _average("ais", base, log_weights, n_temperatures, 1)


def tempered_states(
    path: TemperedPath,
    n_chains: int,
    n_temperatures: int,
    n_gibbs_steps: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> Array:
    """Draw visible states of the model by parallel tempering, to initialize reverse annealing.

    Parameters
    ----------
    path : TemperedPath
        Path to the machine.
    n_chains : int
        Number of states. Each state is drawn with a separate ladder.
    n_temperatures : int
        Number of temperatures in a ladder, at least two.
    n_gibbs_steps : int
        Number of Gibbs steps of every chain.
    rng : numpy.random.Generator
        Source of random numbers.
    n_jobs : int, default=None
        Number of threads that process the blocks of chains, as in `map_blocks`; the result does not
        depend on it.

    Returns
    -------
    v : ndarray of shape (n_chains, n_visible)
        Visible states.
    """
    starts = chains_at_base(path, n_chains, rng)
    blocks = ((path, v, n_temperatures, n_gibbs_steps, stream) for v, stream in starts)
    n_products = n_block_chains(path) * n_temperatures * path.machine.weights.size
    return np.concatenate(map_blocks(sample_tempered, blocks, n_jobs, n_products=n_products))


def _estimate(
    method: str, path: TemperedPath, starts: Starts, betas: list[float], n_jobs: int | None
) -> LogPartition:
    """Estimate the partition function by annealing along ascending or descending `betas`."""
    blocks = ((path, v, betas, stream) for v, stream in starts)
    n_products = n_block_chains(path) * path.machine.weights.size
    log_weights = np.concatenate(map_blocks(_anneal, blocks, n_jobs, n_products=n_products))
    base, direction = path.base_log_partition + path.energy_shift, betas[-1] - betas[0]
    return _average(method, base, log_weights, len(betas), direction)


def _anneal(
    path: TemperedPath,
    v: Array,
    betas: list[float],
    rng: np.random.Generator,
    is_observed: Array | None = None,
) -> Array:
    """Anneal chains and return their log-weights in double precision.

    The states of the units in the mask `is_observed`, of shape (n_units,), are kept; they are equal
    in all chains.
    """
    machine, given = path.machine, v
    v = v.astype(machine.dtype)  # a copy, which each step overwrites
    shape = len(v), machine.hidden.n_columns
    field, target_field, means, draws = (np.empty(shape, v.dtype, like=v) for _ in range(4))
    log_weights = np.zeros(len(v), like=v)
    is_held = None if is_observed is None else path.visible_base.by_column(is_observed)
    for number, (current, target) in enumerate(pairwise(map(path.at, betas)), 1):
        if path.anchors is not None and number % path.annealing_jump_pause == 0:
            clamped: Any = current
            if is_observed is not None:
                layer: Any = _ClampedLayer(current.visible, is_observed, given[0])
                clamped = replace(current, visible=layer)
            jumped, *_ = jump(clamped, current.sample_hidden(v, rng), path.anchors, rng)
            current.sample_visible(jumped, rng, out=v)
            if is_held is not None:
                v[:, is_held] = given[:, is_held]
        machine.hidden_field(v, out=field)
        np.multiply(field, target.beta, out=target_field)
        field *= current.beta
        mean, h = target.hidden.mean_and_sample(target_field, rng, out=(means, draws))
        # Free energy at the next temperature minus that at the current one.
        change = -current.hidden.log_partition_change(target.hidden, field, target_field, mean)
        gap = machine.visible.energy(v) - path.visible_base.energy(v)
        change += (target.beta - current.beta) * gap
        log_weights -= change
        target.sample_visible(h, rng, out=v)
        if is_held is not None:
            v[:, is_held] = given[:, is_held]
    return to_host(log_weights)


@final
@dataclass(frozen=True)
class _ClampedLayer:
    """Visible layer for `jump`, some of whose units are clamped.

    Parameters
    ----------
    layer : Units
        Visible layer in natural form.
    is_observed : ndarray of bool of shape (n_units,)
        Mask of the clamped units.
    v : ndarray of shape (n_visible,)
        Visible state with the states of these units.
    """

    layer: Units
    is_observed: Array
    v: Array

    def log_partition(self, field: Array) -> Array:
        """Sum over the states of the other units, up to a constant, of shape (n_samples,)."""
        return log_partition_given_observed(self.layer, field, self.is_observed[None], self.v[None])


def _clamped_base(path: TemperedPath, v: Array, is_observed: Array) -> float:
    """Log-partition of the base of a path if the observed units of a visible state are clamped.

    The energy shift of the path is added.
    """
    base, hidden = path.visible_base.astype(np.float64), path.hidden_base
    (energies,) = base.unit_energies(v[None].astype(np.float64))
    (log_partitions,) = base.unit_log_partitions(base.zero_field(1))
    visible = np.where(is_observed, -energies, log_partitions).sum()
    return float(visible + hidden.log_partition(hidden.zero_field(1))[0]) + path.energy_shift


def _average(
    method: str, base: float, log_weights: Array, n_temperatures: int, direction: float
) -> LogPartition:
    """Compute the log-partition and its standard error from the log-weights of the chains.

    `base` is the log-partition of the base of the path plus its energy shift, in nats. `direction`
    is 1 for chains annealed from the base, and -1 for chains annealed to the base.
    """
    n_chains = len(log_weights)
    log_mean = logsumexp(log_weights) - np.log(n_chains)
    relative = np.exp(log_weights - log_mean)  # weights with a mean of one
    return LogPartition(
        float(base + direction * log_mean),
        float(relative.std(ddof=1) / np.sqrt(n_chains)) if n_chains > 1 else np.inf,
        method,
        n_chains=n_chains,
        n_temperatures=n_temperatures,
        effective_sample_size=float(n_chains**2 / np.sum(relative**2)),
    )


def _with_streams(path: TemperedPath, rows: Array, rng: np.random.Generator) -> Starts:
    """Split rows into blocks, and create a random stream for each block."""
    blocks = np.array_split(rows, -(-len(rows) // n_block_chains(path)))
    return list(zip(blocks, new_streams(rng, len(blocks)), strict=True))
