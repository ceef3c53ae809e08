"""Estimation of partition functions, and warnings about unreliable estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood.annealing import (
    annealed_log_partition,
    reversed_log_partition,
    tempered_states,
)
from skrbm.core.likelihood.bar import bridged_log_partition
from skrbm.core.likelihood.partition import LogPartition, attained_log_partition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, is_sparse, like, row_blocks, spread_rows
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.array_libraries import on_current_device
from skrbm.estimators.input.validation import AnnealingWarning, DomainWarning, warn_user

MAX_SINGLE_WEIGHT = 1e3  # nats: with larger parameters, rounding in single precision is too large
MIN_EFFECTIVE_CHAINS = 10  # effective sample size below which the standard error is unreliable
MAX_KNOWN_ERROR = MIN_EFFECTIVE_CHAINS**-0.5  # nats: standard error at this sample size
MAX_BOUND_ROWS = 10_000  # largest number of rows for a lower bound of the partition function
N_BOUND_ERRORS = 5  # standard errors of a significant difference: test_far_modes.py
FORWARD_PART = 4  # divisor of the number of temperatures of AIS runs for comparison
BOUND_ROUNDING = 1e-6  # relative rounding error of a log-partition in single precision
AUTO_TEMPERATURES = 150, 600, 2400, 10_000  # numbers that "auto" tries in turn: test_likelihood.py
MAX_AUTO_ERROR = 0.05  # nats: the effective sample size of 100 chains is then about 80
N_AGREEMENT_ERRORS = 3  # standard errors of the difference, below which two runs agree


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
    """Estimate the partition function by annealing or, for "bar", by parallel tempering.

    Parameters
    ----------
    model : ArrayModel
        Model of the estimator.
    machine : Machine
        Machine of the model.
    method : {"ais", "reverse_ais", "bar"}
        Annealed importance sampling, reverse annealing, or Bennett's acceptance ratio.
    n_chains : int
        Number of annealed chains or, for "bar", of sets of tempered chains. With `init`, it is the
        number of chains of the comparison with "ais".
    n_temperatures : int or "auto"
        Number of temperatures or, for "bar", the approximate total number of steps of all chains in
        a set. "auto" tries the numbers in `AUTO_TEMPERATURES` in turn, until two successive runs
        agree (see `_is_converged`) or the last number is reached.
    X, init : {array-like, sparse matrix} or None
        As for the method `log_partition` of the estimators.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    log_partition : LogPartition
        Estimate with its standard error, including the constant that `RowFormat.log_jacobian`
        returns for tables.

    Raises
    ------
    ValueError
        If `X` or `init` is invalid, or if `init` has a single row.

    Warns
    -----
    AnnealingWarning
        If the estimate is not reliable, as for the method `log_partition` of the estimators.
    """
    is_single = _anneals_in_single(machine, model.min_single_weights)
    machine = machine.astype(np.float32 if is_single else np.float64)
    ends = model.base_and_anchors(machine, rng, X)
    path = TemperedPath.to(on_current_device(machine), *ends)
    constant = float(model.rbm._row_format.log_jacobian(model.rbm))
    path = replace(path, energy_shift=path.energy_shift + constant)
    anchors: Any = path.anchors
    previous = None
    for size in AUTO_TEMPERATURES if n_temperatures == "auto" else (n_temperatures,):
        result = _estimate(model, path, method, n_chains, int(size), init, rng)
        attained = attained_log_partition(path.machine.astype(np.float64), anchors, rng)
        bound = attained + path.energy_shift
        if previous is not None and _is_converged(result, previous, bound):
            break
        previous = result
    if is_below(result, bound):
        warn_user(
            f"The estimate {result} is too low: training rows or states of the chains give a lower "
            f"bound of {bound:.6g} nats. Increase n_temperatures={result.n_temperatures}, or use "
            f"method='exact'.",
            AnnealingWarning,
        )
    _warn_if_few(result)
    if method != "ais":  # chains that start in known modes may miss others
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
    if method == "ais":
        return annealed_log_partition(path, n_chains, n_temperatures, rng, n_jobs)
    if method == "bar":
        return bridged_log_partition(path, n_chains, n_temperatures, rng, n_jobs)
    if init is None:
        ladder: int = model.rbm.n_temperatures
        n_steps = max(1, n_temperatures // ladder)
        v = tempered_states(path, n_chains, ladder, n_steps, rng, n_jobs)
    else:
        v = dense(model.check_X(init)).astype(path.machine.dtype)
        if len(v) < 2:
            raise ValueError(
                f"init expected to have at least 2 rows for a standard error, got shape {v.shape}."
            )
    return reversed_log_partition(path, like(v, path.machine.weights), n_temperatures, rng, n_jobs)


def _is_converged(result: LogPartition, previous: LogPartition, bound: float) -> bool:
    """True if the estimates of two successive runs are reliable and agree.

    The previous run had fewer temperatures. A small standard error alone is not sufficient: with
    too few temperatures, all chains may miss the same modes.
    """
    error, coarse_error = result.std_error, previous.std_error
    agree = abs(result.value - previous.value) < N_AGREEMENT_ERRORS * np.hypot(error, coarse_error)
    is_small = error <= MAX_AUTO_ERROR and coarse_error <= 4 * MAX_AUTO_ERROR
    return bool(agree and is_small) and not is_below(result, bound)


def is_below(result: float | LogPartition, bound: float) -> bool:
    """True if an estimate of log Z is below a bound by more than `N_BOUND_ERRORS` standard errors.

    The standard error of a float is zero. Differences within the rounding error are ignored.
    """
    std_error = getattr(result, "std_error", 0.0)
    slack = N_BOUND_ERRORS * std_error + BOUND_ROUNDING * max(1.0, abs(bound))
    return float(result) < bound - slack


def _warn_if_few(result: LogPartition) -> None:
    """Warn if few annealed chains contribute to an estimate.

    There are fewer than `MIN_EFFECTIVE_CHAINS` chains, or the effective sample size is below this
    number and below half the number of chains.
    """
    n_effective, n_chains = result.effective_sample_size, result.n_chains
    if n_chains is None or not np.isfinite(result.value):  # refused later
        return
    if n_chains < MIN_EFFECTIVE_CHAINS:
        warn_user(
            f"The estimate {result} is a mean over {n_chains} chains: its standard error is not "
            f"reliable. Use {MIN_EFFECTIVE_CHAINS} chains or more, by n_chains or by rows of init.",
            AnnealingWarning,
        )
    elif n_effective is not None and n_effective < min(MIN_EFFECTIVE_CHAINS, n_chains / 2):
        warn_user(
            f"The effective sample size of the estimate {result} is only {n_effective:.1f} of "
            f"{n_chains} annealed chains: neither it nor its standard error is reliable. Increase "
            f"n_temperatures={result.n_temperatures}.",
            AnnealingWarning,
        )


def warn_if_ends_differ(result: LogPartition, forward: LogPartition) -> None:
    """Warn if an estimate differs significantly from one by annealed importance sampling.

    The difference is significant if it exceeds `N_BOUND_ERRORS` standard errors of the difference
    by more than rounding. Standard errors above `MAX_KNOWN_ERROR` nats are unreliable and replaced
    by `MAX_KNOWN_ERROR`.
    """
    errors = np.minimum([result.std_error, forward.std_error], MAX_KNOWN_ERROR)
    tolerance = N_BOUND_ERRORS * np.hypot(*errors)
    if abs(result.value - forward.value) > tolerance + BOUND_ROUNDING * max(1.0, abs(result.value)):
        warn_user(
            f"Two estimates disagree: {result}, and {forward} by annealing from independent "
            f"features. Increase n_temperatures; until both agree, neither is reliable.",
            AnnealingWarning,
        )


def warn_if_too_likely(
    X: Any, free_energy: Array, log_partition: float | LogPartition, values: tuple[float, ...]
) -> None:
    """Warn if a log-partition is below the lower bound computed from rows (see `is_below`).

    The effective sample size does not reveal modes that no chain has visited, but the free energies
    of rows in these modes do. Rows with missing values, and rows with values other than the states
    of the units, which have no probability, are ignored.
    """
    bound = attained_by_rows(X, free_energy, values)
    if is_below(log_partition, bound):
        advice = "Pass the log-partition of this model."
        if isinstance(log_partition, LogPartition):
            advice = (
                "Its chains have missed modes of the model: use method='exact', or "
                "method='reverse_ais' with init= rows that include these modes."
            )
        warn_user(
            f"The probabilities of the rows of X sum to more than one: log_partition is "
            f"{log_partition}, but these rows give a lower bound of {bound:.6g} nats. {advice}",
            AnnealingWarning,
        )


def attained_by_rows(X: Any, free_energy: Array, values: tuple[float, ...]) -> float:
    """Lower bound of log Z: the logarithm of the sum of exp(-F) over distinct rows.

    Parameters
    ----------
    X : {ndarray, sparse matrix in canonical CSR format} of shape (n_samples, n_features)
        Rows, of which at most `MAX_BOUND_ROWS`, evenly spread, are used.
    free_energy : ndarray of shape (n_samples,)
        Free energies of the rows, in nats.
    values : tuple of float
        States of the units. Rows with other values are ignored.

    Returns
    -------
    log_partition : float
        Lower bound of log Z in nats; minus infinity if all rows are ignored.
    """
    X, free_energy = (spread_rows(rows, MAX_BOUND_ROWS) for rows in (X, free_energy))
    rows = np.flatnonzero(are_states(X, values, allow_nan=False)).tolist()
    first: dict[int, int] = {}  # two distinct rows of one hash, which are improbable, count once
    for row, row_hash in zip(rows, _row_hashes(X, rows), strict=True):
        first.setdefault(row_hash, row)
    if not first:
        return -np.inf
    return float(logsumexp(-free_energy[list(first.values())].astype(np.float64)))


def _row_hashes(X: Any, rows: list[int]) -> Iterator[int]:
    """Hashes of some rows of `X`, which are equal if the rows are equal."""
    if is_sparse(X):
        X = X.copy()
        X.eliminate_zeros()
        for row in rows:
            stored = slice(X.indptr[row], X.indptr[row + 1])
            yield hash(X.indices[stored].tobytes() + X.data[stored].tobytes())
    else:
        v = dense(X)
        for row in rows:
            yield hash((v[row] + 0.0).tobytes())  # the sum is 0.0 for -0.0


def are_states(X: Any, values: tuple[float, ...], *, allow_nan: bool) -> Array:
    """Mask of the rows whose values are states of the units or, with `allow_nan`, missing.

    Sparse matrices are not converted to arrays, and arrays are tested in blocks of rows.
    """

    def test(v: Array) -> Array:
        return np.isin(v, values) | np.isnan(v) if allow_nan else np.isin(v, values)

    if is_sparse(X):
        n_columns = X.shape[1]
        n_states = csr_array((test(X.data), X.indices, X.indptr), X.shape).sum(axis=1)
        n_zeros = n_columns - np.diff(X.indptr)  # without the stored ones
        return n_states + (0 in values) * n_zeros == n_columns
    v = dense(X)
    return np.concatenate([test(v[rows]).all(axis=1) for rows in row_blocks(v)])


def warn_if_gray(X: Any, values: tuple[float, ...]) -> None:
    """Warn if rows have values other than the states of the units, and thus no probability.

    At most `MAX_BOUND_ROWS` rows are checked. Missing values, which are NaN, are ignored. Nothing
    is checked if `values` is empty.
    """
    if not values:
        return
    if not are_states(spread_rows(X, MAX_BOUND_ROWS), values, allow_nan=True).all():
        low, high = values[0], values[-1]
        warn_user(
            f"X has values other than {low:g} and {high:g}: its scores are then no "
            f"log-probabilities, and favor sharp models. Pass np.where(X > {(low + high) / 2:g}, "
            f"{high:g}, {low:g}).",
            DomainWarning,
        )


def _anneals_in_single(machine: Machine, min_weights: int) -> bool:
    """True if annealing in single precision is accurate and faster than in double precision.

    If a machine with discrete states has no parameter of magnitude `MAX_SINGLE_WEIGHT` or more, the
    rounding error is far below the Monte Carlo error. If it has at least `min_weights` weights,
    most of the time is spent on matrix products, which are about twice as fast in single precision.
    """
    is_discrete = machine.visible.is_discrete and machine.hidden.is_discrete
    largest = max(np.abs(array).max() for array in machine.parameters.values())
    return bool(is_discrete and machine.weights.size >= min_weights and largest < MAX_SINGLE_WEIGHT)
