"""Annealed partition functions of an estimator, and when not to believe them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood.annealing import (
    annealed_log_partition,
    attained_log_partition,
    reversed_log_partition,
    tempered_states,
)
from skrbm.core.likelihood.bar import bridged_log_partition
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.validation import AnnealingWarning, DomainWarning, warn_user

MAX_SINGLE_WEIGHT = 1e3  # nats: of larger weights, single precision rounds too much
MIN_EFFECTIVE_CHAINS = 10  # of many: the error of an average over fewer cannot be known
MAX_KNOWN_ERROR = MIN_EFFECTIVE_CHAINS**-0.5  # nats, of an average over so few
MAX_BOUND_ROWS = 10_000  # rows of the data that an estimate is compared with
N_BOUND_ERRORS = 5  # standard errors below a bound that are no chance: test_far_modes.py
FORWARD_PART = 4  # times fewer temperatures of annealing that another estimate is compared with
BOUND_ROUNDING = 1e-6  # relative, of single precision
AUTO_TEMPERATURES = 150, 600, 2400, 10_000  # numbers that "auto" tries in turn: test_likelihood.py
MAX_AUTO_ERROR = 0.05  # nats: of a hundred chains, 80 then make the estimate
N_AGREEMENT_ERRORS = 3  # standard errors of a difference


def anneal(
    model: ArrayModel,
    machine: Machine,
    method: str,
    n_chains: int,
    n_temperatures: int | str,
    X: Any,
    init: Any,
    rng: np.random.Generator,
) -> LogPartition:
    """Partition function by annealed importance sampling.

    Parameters
    ----------
    model : ArrayModel
        Of the estimator.
    machine : Machine
        That model's.
    method : {"ais", "reverse_ais", "bar"}
        From independent features to the model, back from it, or by ratios on the way.
    n_chains : int
        Number of chains.
    n_temperatures : int or "auto"
        Number of temperatures; "auto" for fourfold ones until two runs are settled.
    X, init : {array-like, sparse matrix} or None
        As for `log_partition`.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    log_partition : LogPartition
        With its standard error.

    Raises
    ------
    ValueError
        If `init` has a single row.
    """
    if _anneals_in_single(machine, model.min_single_weights):
        machine = machine.astype(np.float32)
    path = TemperedPath.to(machine, *model.base_and_anchors(machine, rng, X))
    previous = None
    for size in AUTO_TEMPERATURES if n_temperatures == "auto" else (n_temperatures,):
        result = _estimate(model, path, method, n_chains, int(size), init, rng)
        bound = attained_log_partition(path, rng)
        if previous is not None and _is_settled(result, previous, bound):
            break
        previous = result
    if is_below(result, bound):
        warn_user(
            f"The estimate {result} is too low: rows that the model was fitted to, or that its chains "
            f"have found, alone make it {bound:.6g} nats. Increase "
            f"n_temperatures={result.n_temperatures}, or use method='exact'.",
            AnnealingWarning,
        )
    if method != "bar":
        _warn_if_few(result)
    if method != "ais":  # what starts in known modes does not know of others
        n_steps = max(2, int(size) // FORWARD_PART)
        warn_if_ends_differ(
            result, annealed_log_partition(path, n_chains, n_steps, rng, model.rbm.n_jobs)
        )
    return result


def _estimate(
    model: ArrayModel,
    path: TemperedPath,
    method: str,
    n_chains: int,
    n_temperatures: int,
    init: Any,
    rng: np.random.Generator,
) -> LogPartition:
    n_jobs = model.rbm.n_jobs
    size = n_temperatures, rng, n_jobs
    if method == "ais":
        return annealed_log_partition(path, n_chains, *size)
    if method == "bar":
        return bridged_log_partition(path, n_chains, *size)
    if init is None:
        ladder: int = model.rbm.n_temperatures
        n_steps = max(1, n_temperatures // ladder)
        v = tempered_states(path, n_chains, ladder, n_steps, rng, n_jobs)
    else:
        v = dense(model.check_X(init)).astype(path.machine.dtype)
        if len(v) < 2:
            raise ValueError(
                f"init expected to have at least 2 rows, whose differences make the standard error, "
                f"got shape {v.shape}."
            )
    return reversed_log_partition(path, v, *size)


def _is_settled(result: LogPartition, previous: LogPartition, bound: float) -> bool:
    """True if a run, and one with a quarter of its temperatures, can be believed and agree.

    An error that is small is no proof: chains that are cooled too fast may all miss the same modes.
    """
    error, coarse_error = result.std_error, previous.std_error
    agree = abs(result.value - previous.value) < N_AGREEMENT_ERRORS * np.hypot(error, coarse_error)
    is_small = error <= MAX_AUTO_ERROR and coarse_error <= 4 * MAX_AUTO_ERROR
    return bool(agree and is_small) and not is_below(result, bound)


def is_below(result: float | LogPartition, bound: float) -> bool:
    """True if an estimate is surely less than what some states alone add to the partition function."""
    std_error = getattr(result, "std_error", 0.0)
    slack = N_BOUND_ERRORS * std_error + BOUND_ROUNDING * max(1.0, abs(bound))
    return float(result) < bound - slack


def _warn_if_few(result: LogPartition) -> None:
    """Warn of an annealed estimate that rests on a few of its chains."""
    n_effective, n_chains = result.effective_sample_size, result.n_chains
    if n_effective is None or n_chains is None:
        return
    if n_effective < min(MIN_EFFECTIVE_CHAINS, n_chains / 2):
        warn_user(
            f"Only {n_effective:.1f} of {n_chains} annealed chains make the estimate {result}: neither "
            f"it nor its error can be believed. Increase n_temperatures={result.n_temperatures}.",
            AnnealingWarning,
        )


def warn_if_ends_differ(result: LogPartition, forward: LogPartition) -> None:
    """Warn of an estimate from samples of the model that annealing to the model contradicts."""
    errors = np.minimum([result.std_error, forward.std_error], MAX_KNOWN_ERROR)
    sure = N_BOUND_ERRORS * np.hypot(*errors)
    if abs(result.value - forward.value) > sure + BOUND_ROUNDING * max(1.0, abs(result.value)):
        warn_user(
            f"The two ends of the path disagree: {result}, but annealing from independent features says "
            f"{forward}. Increase n_temperatures; until both agree, believe neither.",
            AnnealingWarning,
        )


def warn_if_too_likely(
    X: Any, free_energy: Array, log_partition: float | LogPartition, values: tuple[float, ...]
) -> None:
    """Warn of a partition function that is less than what some rows alone add to it.

    No effective sample size sees a mode that no chain has visited; rows of the data do. Rows with
    other values than the units' have no probability.
    """
    bound = attained_by_rows(X, free_energy, values)
    if is_below(log_partition, bound):
        warn_user(
            f"The rows of X are together more likely than one: log_partition is {log_partition}, but "
            f"they alone make it {bound:.6g} nats. Its chains have missed modes of the model: use "
            f"method='exact', or method='reverse_ais' with init= rows that include these modes.",
            AnnealingWarning,
        )


def attained_by_rows(X: Any, free_energy: Array, values: tuple[float, ...]) -> float:
    """Lower bound of the partition function: what some rows, each counted once, add to it.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Rows.
    free_energy : ndarray of shape (n_samples,)
        Of the rows, in nats.
    values : tuple of float
        States of the units; rows with other values do not count.

    Returns
    -------
    log_partition : float
        In nats; minus infinity where no row counts.
    """
    v, free_energy = dense(spread_rows(X, MAX_BOUND_ROWS)), spread_rows(free_energy, MAX_BOUND_ROWS)
    is_state = np.isin(v, values).all(axis=1)
    if not is_state.any():
        return -np.inf
    rows = np.unique(v[is_state], axis=0, return_index=True)[1]
    return float(logsumexp(-free_energy[is_state][rows].astype(np.float64)))


def warn_if_grey(X: Any, values: tuple[float, ...]) -> None:
    """Warn of rows with values between the units' states, which have an energy but no probability."""
    if values and not np.isin(dense(spread_rows(X, MAX_BOUND_ROWS)), values).all():
        low, high = values[0], values[-1]
        warn_user(
            f"X has other values than {low:g} and {high:g}, so that its scores are no log-probabilities "
            f"and favour sharp models. Pass np.where(X > {(low + high) / 2:g}, {high:g}, {low:g}).",
            DomainWarning,
        )


def _anneals_in_single(machine: Machine, min_weights: int) -> bool:
    """True if the rounding of single precision stays far below the error of the weights.

    It does for many weights of ordinary size between discrete states, which are exact, and the
    products take half the time.
    """
    is_discrete = machine.visible.is_discrete and machine.hidden.is_discrete
    largest = max(np.abs(array).max() for array in machine.parameters.values())
    return bool(is_discrete and machine.weights.size >= min_weights and largest < MAX_SINGLE_WEIGHT)
