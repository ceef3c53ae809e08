"""Draws of missing values given the observed values, and averages over such draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from skrbm.core.chains.gibbs import clamped_gibbs, clamped_mean
from skrbm.core.chains.jumps import draw_given_observed
from skrbm.core.chains.path import TemperedPath
from skrbm.core.draws import new_streams
from skrbm.core.likelihood import annealing, conditional, exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, like
from skrbm.core.parallel import map_blocks
from skrbm.core.units import QuadratureError, UnknownRangeError
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.validation import (
    AnnealingWarning,
    finite_results,
    warn_user,
)

# Draws and Gibbs steps per draw in transform and scores. On digits and wines with half of the
# values missing, more steps change the features by less than the Monte Carlo error of ten draws.
N_IMPUTED_DRAWS, N_IMPUTATION_STEPS = 10, 20
# Largest number of states that are summed over for a row with missing values: of its missing values,
# or of the hidden units. For 784 x 500 units, the sum takes a hundredth of a second, annealing
# seconds.
MAX_SUMMED_STATES = 2**12
MIN_SHARE_OF_CHAINS = 0.1  # smallest effective share of a row's annealed chains without a warning


@final
class ConditionalDraws:
    """Sampler of the missing values of some rows given their observed values.

    Parameters
    ----------
    model : ArrayModel
        Model to draw from.
    X : ndarray of shape (n_samples, n_columns)
        Rows. The missing values are ignored.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the observed units, whose values are kept.
    rng : numpy.random.Generator
        Source of random numbers.
    anchors : ndarray of shape (n_anchors, n_columns), default=None
        Visible states in the modes of the model, or None for those of `base_and_anchors`.

    Attributes
    ----------
    is_held : ndarray of bool of shape (n_samples, n_columns)
        Mask of the columns of observed units.

    Raises
    ------
    ValueError
        If an observed value is not finite.
    """

    def __init__(
        self,
        model: ArrayModel,
        X: Array,
        is_observed: Array,
        rng: np.random.Generator,
        anchors: Array | None = None,
    ) -> None:
        self.model, self.rng = model, rng
        machine = model.machine(X)
        self._X, self.is_held = X.astype(machine.dtype), machine.visible.by_column(is_observed)
        if not np.isfinite(self._X[self.is_held]).all():
            raise ValueError(
                "Observed values of X expected to be finite, got NaN, infinity or an unknown "
                "category. Mark missing values by mask in inpaint, or by NaN in impute."
            )
        self._rows = np.flatnonzero(~is_observed.all(axis=1))
        self._is_observed = is_observed[self._rows]
        if anchors is None and len(self._rows):
            _, anchors = model.base_and_anchors(machine, rng)
        self._anchors: Any = anchors

    def copies(self, n_gibbs_steps: int, n_copies: int) -> Iterator[Array]:
        """Copies of the rows, with missing values drawn by `n_gibbs_steps` steps of Gibbs chains.

        The copies are independent: each has its own proposals in `draw_given_observed`.
        """

        def drawn(machine: Machine, v: Array, is_observed: Array) -> Array:
            v, is_observed = (np.repeat(array, len(block), axis=0) for array in (v, is_observed))
            chains = self._chains(machine, v, is_observed, 1, n_gibbs_steps)[0]
            return chains.reshape(-1, len(block), chains.shape[1])

        for block in _row_blocks(self.model, np.arange(n_copies), max(1, len(self._rows))):
            draws = self._map(drawn, len(block)) if len(self._rows) else None
            for number in range(len(block)):
                result = self._X.copy()
                if draws is not None:
                    result[self._rows] = draws[:, number]
                yield result

    def draws(self, n_gibbs_steps: int, n_draws: int) -> Array:
        """Draws for the rows with missing values, of shape (n_rows, n_draws, n_columns).

        The draws for a row share the proposals in `draw_given_observed`.
        """

        def drawn(machine: Machine, v: Array, is_observed: Array) -> Array:
            chains = self._chains(machine, v, is_observed, n_draws, n_gibbs_steps)[0]
            return chains.reshape(len(v), n_draws, -1)

        return self._map(drawn, n_draws)

    def average(self, n_gibbs_steps: int, n_chains: int) -> Array:
        """Copy of the rows, with missing values replaced by conditional means.

        The means are averaged over the second half of the steps of `n_chains` Gibbs chains of
        `n_gibbs_steps` steps each. For a transformed column of a table (see `Table.maps`), they are
        means of the numbers in the table.
        """
        n_warm, rbm = n_gibbs_steps // 2, self.model.rbm
        values = rbm._row_format.expected_values(rbm)

        def averaged(machine: Machine, v: Array, is_observed: Array) -> Array:
            total: Any = 0.0
            for block in _row_blocks(self.model, np.arange(n_chains)):
                chains = self._chains(machine, v, is_observed, len(block), n_warm)
                n_averaged = n_gibbs_steps - n_warm
                means = clamped_mean(machine, *chains, n_averaged, self.rng, values=values)
                total = total + means.reshape(len(v), len(block), -1).sum(axis=1)
            is_held = machine.visible.by_column(is_observed.astype(bool))
            # A sum of quotients could exceed the largest state.
            return np.where(is_held, v, total / n_chains).astype(v.dtype, copy=False)

        result = self._X.copy()
        if len(self._rows):
            result[self._rows] = self._map(averaged, n_chains)
        return result

    def _map(self, function: Callable[..., Array], n_chains: int) -> Array:
        """Apply a function of machine, rows and mask to the rows with missing values."""
        options: Any = {"is_random": True, "n_copies": n_chains}
        return self.model.map_rows(function, self._X[self._rows], self._is_observed, **options)

    def _chains(
        self, machine: Machine, v: Array, is_observed: Array, n_chains: int, n_gibbs_steps: int
    ) -> tuple[Array, Array]:
        """States of `n_chains` clamped Gibbs chains for each row, and masks of observed units.

        The chains of a row are next to each other.
        """
        is_observed, anchors = is_observed.astype(bool), like(self._anchors, machine.weights)
        start = draw_given_observed(machine, v, is_observed, anchors, n_chains, self.rng)
        is_observed = np.repeat(is_observed, n_chains, axis=0)
        return clamped_gibbs(machine, start, is_observed, n_gibbs_steps, self.rng), is_observed


def average_over_draws(
    model: ArrayModel,
    X: Any,
    is_observed: Array | None,
    answer: Callable[[Any, Any], Array],
    *,
    n_draws: int = N_IMPUTED_DRAWS,
    n_gibbs_steps: int = N_IMPUTATION_STEPS,
    rng: np.random.Generator | None = None,
) -> Array:
    """Average a function of rows over draws of their missing values.

    The rows with missing values are processed block by block. Rows without missing values need no
    random numbers.

    Parameters
    ----------
    model : ArrayModel
        Model to draw from.
    X : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
        Checked rows.
    is_observed : ndarray of bool of shape (n_samples, n_units) or None
        Mask from `observed_units`, or None if all rows are complete.
    answer : callable
        Function that is called with rows without missing values, of shape (n_rows, n_columns), and
        with their indices, an array or a slice. It returns an array of shape (n_rows, ...).
    n_draws : int, default=N_IMPUTED_DRAWS
        Number of draws of the missing values.
    n_gibbs_steps : int, default=N_IMPUTATION_STEPS
        Number of Gibbs steps of each draw.
    rng : numpy.random.Generator, default=None
        Source of random numbers. If None, calls with the same model use the same random numbers.

    Returns
    -------
    average : ndarray of shape (n_samples, ...)
        Mean over the draws. For a row without missing values, it is the value of the function.
    """
    if is_observed is None:
        return answer(X, slice(None))
    is_complete = is_observed.all(axis=1)
    complete, incomplete = np.flatnonzero(is_complete), np.flatnonzero(~is_complete)
    parts: list[Any] = []
    if len(complete):
        parts.append((complete, answer(_selected(X, complete), complete)))
    if len(incomplete):
        rng = rng or model.annealing_rng()
        _, anchors = model.base_and_anchors(model.machine(X), rng)
        for rows in _row_blocks(model, incomplete, n_draws):
            missing = ConditionalDraws(model, dense(X[rows]), is_observed[rows], rng, anchors)
            draws = missing.draws(n_gibbs_steps, n_draws)
            v, drawn_rows = draws.reshape(-1, draws.shape[2]), np.repeat(rows, n_draws)
            answers = answer(v, drawn_rows)
            answers = answers.reshape(len(rows), n_draws, *answers.shape[1:])
            parts.append((rows, answers.mean(axis=1)))
    result = np.empty(
        (X.shape[0], *np.shape(parts[0][1])[1:]), np.result_type(*(p for _, p in parts))
    )
    for rows, part in parts:
        result[rows] = part
    return result


def _row_blocks(model: ArrayModel, rows: Array, n_copies: int = 1) -> list[Array]:
    """Split the indices of rows or chains, so that only the copies of few are dense at a time."""
    n_rows = max(1, model.block_rows // n_copies)
    return np.array_split(rows, max(1, -(-len(rows) // n_rows)))


def _selected(X: Any, rows: Any) -> Any:
    """Some of the rows; those of a table stay encoded."""
    return X.select(rows) if hasattr(X, "select") else X[rows]


def observed_free_energy(
    model: ArrayModel,
    X: Any,
    is_observed: Array,
    n_chains: int,
    n_temperatures: int,
    random_state: Any,
) -> tuple[Array, Array]:
    """Free energy of the observed values of each row: minus the log-sum over the missing values.

    The sum is exact if the hidden units, or the missing values of the row, have at most
    `MAX_SUMMED_STATES` joint states. The integral over a single missing number is computed by
    quadrature. Otherwise, the sum is estimated by annealing. A row without observed values is not
    annealed, because its likelihood is one: its result is then 0.

    Parameters
    ----------
    model : ArrayModel
        Model of the estimator.
    X : {ndarray, EncodedTable} of shape (n_samples, n_columns)
        Checked rows.
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask from `observed_units`.
    n_chains, n_temperatures : int
        Number of annealed chains for each row, and number of temperatures.
    random_state : int, RandomState instance, Generator or None
        Seed of the chains. If None, calls with the same model use the same random numbers.

    Returns
    -------
    free_energy, std_error : ndarray of shape (n_samples,)
        Free energies and their standard errors, in nats.

    Raises
    ------
    ValueError
        If a result is not finite.

    Warns
    -----
    AnnealingWarning
        If the effective number of chains of some row is too small.
    """
    is_complete = is_observed.all(axis=1)
    free_energy, error = np.zeros((2, len(is_observed)))
    if is_complete.any():
        complete = _selected(X, is_complete)
        free_energy[is_complete] = model.map_rows(Machine.free_energy, complete, is_precise=True)
    with finite_results() as check:
        given = model.machine(X)
        machine, n_jobs = given.astype(np.float64), model.rbm.n_jobs
        if machine.hidden.n_states <= MAX_SUMMED_STATES:
            for rows in _row_blocks(model, np.flatnonzero(~is_complete)):
                log_sums = exact.log_sum_over_hidden(machine, dense(X[rows]), is_observed[rows])
                free_energy[rows] = -log_sums
        else:
            is_few = exact.n_missing_states(machine.visible, is_observed) <= MAX_SUMMED_STATES
            for rows in _row_blocks(model, np.flatnonzero(is_few & ~is_complete)):
                v = dense(X[rows]).astype(np.float64)
                tasks = zip([machine] * len(rows), v, is_observed[rows], strict=True)
                free_energy[rows] = -np.array(map_blocks(exact.log_sum_over_missing, tasks, n_jobs))
            is_single = ~is_few & (is_observed.sum(axis=1) == machine.visible.n_units - 1)
            is_single &= _integrate(model, machine, X, is_observed, is_single, free_energy)
            annealed = np.flatnonzero(~(is_few | is_single) & is_observed.any(axis=1))
            if len(annealed):
                v, rng = dense(X[annealed]), model.annealing_rng(random_state)
                estimates = _annealed(
                    model, machine, v, is_observed[annealed], n_chains, n_temperatures, rng
                )
                free_energy[annealed] = [-estimate.value for estimate in estimates]
                error[annealed] = [estimate.std_error for estimate in estimates]
                _warn_of_few_chains(annealed, estimates)
        free_energy, error = free_energy.astype(given.dtype), error.astype(given.dtype)
        check(free_energy)
    return free_energy, error


def _integrate(
    model: ArrayModel,
    machine: Machine,
    X: Any,
    is_observed: Array,
    is_single: Array,
    free_energy: Array,
) -> bool:
    """Write the free energies of the rows in the mask `is_single`, with one missing number each.

    Return False if the integrals over the number have no known range.
    """
    for number in np.flatnonzero((is_single[:, None] & ~is_observed).any(axis=0)).tolist():
        for rows in _row_blocks(model, np.flatnonzero(is_single & ~is_observed[:, number])):
            v = dense(X[rows]).astype(np.float64)
            v[:, machine.visible.unit_columns(number)] = 0  # any value, since it is not used
            try:
                free_energy[rows] = -conditional.log_sum_over_unit(machine, v, number)
            except (QuadratureError, UnknownRangeError):
                return False
    return True


def _annealed(
    model: ArrayModel,
    machine: Machine,
    v: Array,
    is_observed: Array,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
) -> list[LogPartition]:
    """Estimates of the sums over the missing values of rows, with a random stream for each row."""
    path = TemperedPath.to(machine, *model.base_and_anchors(machine, rng))
    streams = new_streams(rng, len(v))
    rows = zip(v, is_observed, streams, strict=True)
    tasks = (
        (path, row, observed, n_chains, n_temperatures, stream) for row, observed, stream in rows
    )
    return map_blocks(annealing.clamped_log_partition, tasks, model.rbm.n_jobs)


def _warn_of_few_chains(rows: Array, estimates: list[LogPartition]) -> None:
    """Warn of rows for which few annealed chains contribute to the sum over missing values."""
    shares = np.array([(e.effective_sample_size or 0) / (e.n_chains or 1) for e in estimates])
    few = rows[shares < MIN_SHARE_OF_CHAINS]
    if len(few):
        warn_user(
            f"The sum over the missing values of {len(few)} of {len(rows)} annealed rows is not "
            f"reliable, the first of which is row {few[0]}: less than {MIN_SHARE_OF_CHAINS:.0%} of "
            f"the chains contribute to it. Increase n_temperatures of log_likelihood.",
            AnnealingWarning,
        )
