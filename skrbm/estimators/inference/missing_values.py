"""Draws of missing values given the observed values, and averages over such draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from skrbm.core.chains.gibbs import clamped_gibbs, clamped_mean, posterior_draws
from skrbm.core.chains.path import TemperedPath
from skrbm.core.draws import new_streams
from skrbm.core.likelihood import annealing, exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.parallel import map_blocks
from skrbm.core.units import Units
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.validation import (
    AnnealingWarning,
    check_domain,
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
    is_observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the observed units, whose values are kept.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, model: ArrayModel, is_observed: Array, rng: np.random.Generator) -> None:
        self.model, self.is_observed, self.rng = model, is_observed, rng
        self._is_held = model.machine().visible.by_column(is_observed)
        self._rows = np.flatnonzero(~is_observed.all(axis=1))
        self._base: Units | None = None
        self._is_compared = False

    def draw(self, X: Array, n_gibbs_steps: int) -> Array:
        """Copy of the rows, with missing values drawn by `n_gibbs_steps` steps of a Gibbs chain."""
        return self._advanced(self._start(X), n_gibbs_steps)

    def average(self, X: Array, n_gibbs_steps: int, n_chains: int) -> Array:
        """Copy of the rows, with missing values replaced by conditional means.

        The means are averaged over the second half of the steps of `n_chains` Gibbs chains of
        `n_gibbs_steps` steps each. For a transformed column of a table (see `Table.maps`), they are
        means of the numbers in the table.
        """
        total, n_warm = np.zeros(()), n_gibbs_steps // 2
        values = self.model.rbm._row_format.expected_values(self.model.rbm)
        step = partial(clamped_mean, values=values)
        for _ in range(n_chains):
            v = self.draw(X, n_warm)
            total = total + self._advanced(v, n_gibbs_steps - n_warm, step)
        # A sum of quotients could exceed the largest state.
        return np.where(self._is_held, v, total / n_chains).astype(v.dtype, copy=False)

    def _advanced(
        self, X: Array, n_gibbs_steps: int, step: Callable[..., Array] = clamped_gibbs
    ) -> Array:
        """Copy of the rows, with missing values replaced by the result of `n_gibbs_steps` steps.

        The steps are taken by the function `step`.
        """
        result, rows = X.copy(), self._rows
        is_observed = self.is_observed[rows]

        def run(machine: Machine, v: Array, is_observed: Array) -> Array:
            return step(machine, v, is_observed.astype(bool), n_gibbs_steps, self.rng)

        if len(rows) and n_gibbs_steps:
            result[rows] = self.model.map_rows(run, X[rows], is_observed, is_random=True)
        return result

    def _start(self, X: Array) -> Array:
        """Copy of the rows with initial draws of the missing values.

        The values are drawn given the hidden state of a persistent chain. The chain is chosen with
        a probability proportional to the probability of the observed values given its hidden state.
        Without persistent chains, the missing values are drawn independently of each other and of
        the observed values.

        Raises
        ------
        ValueError
            If an observed value is not finite, or if a value is outside the domain of its unit and
            `check_input` is "raise".
        """
        machine = self.model.machine(X)
        result = X.astype(machine.dtype)
        if not np.isfinite(result[self._is_held]).all():
            raise ValueError(
                "Observed values of X expected to be finite, got NaN or infinity. Mark missing "
                "values by mask in inpaint, or by NaN in impute."
            )
        rows = self._rows
        if len(rows):
            result[rows] = np.where(self._is_held[rows], result[rows], self._drawn(result, machine))
        if not self._is_compared:  # warn only once
            check_domain(result, self.model.rbm._visible_type, self.model.rbm)
            self._is_compared = True
        return result

    def _drawn(self, X: Array, machine: Machine) -> Array:
        """Initial visible states, of shape (n_rows, n_columns), of the rows with missing values."""
        rows, h = self._rows, self.model.chain_hidden(machine)
        if h is not None:
            known = np.where(self._is_held[rows], X[rows], 0)
            h = posterior_draws(machine, known, self.is_observed[rows], h, self.rng)
            return machine.sample_visible(h, self.rng)
        if self._base is None:
            self._base = self.model.base(machine, self.rng).astype(machine.dtype)
        return self._base.sample(self._base.zero_field(len(rows)), self.rng)


def average_over_draws(
    model: ArrayModel, X: Any, is_observed: Array | None, answer: Callable[[Any, Any], Array]
) -> Array:
    """Average a function of rows over draws of their missing values.

    Calls with the same model use the same random numbers. Rows without missing values need none.

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

    Returns
    -------
    average : ndarray of shape (n_samples, ...)
        Mean over `N_IMPUTED_DRAWS` independent draws, each after `N_IMPUTATION_STEPS` Gibbs steps.
        For a row without missing values, it is the value of the function.
    """
    if is_observed is None:
        return answer(X, slice(None))
    is_complete = is_observed.all(axis=1)
    complete, rows = np.flatnonzero(is_complete), np.flatnonzero(~is_complete)
    missing = ConditionalDraws(model, is_observed[rows], model.annealing_rng())
    v = dense(X[rows])
    draws = (answer(missing.draw(v, N_IMPUTATION_STEPS), rows) for _ in range(N_IMPUTED_DRAWS))
    mean = sum(draws) / N_IMPUTED_DRAWS
    result = np.empty((X.shape[0], *np.shape(mean)[1:]), np.asarray(mean).dtype)
    result[rows] = mean
    if len(complete):
        result[complete] = answer(_selected(X, complete), complete)
    return result


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
    `MAX_SUMMED_STATES` joint states; otherwise, it is estimated by annealing. A row without observed
    values is not annealed, because its likelihood is one: its result is then 0.

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
            rows = np.flatnonzero(~is_complete)
            log_sums = exact.log_sum_over_hidden(machine, dense(X[rows]), is_observed[rows])
            free_energy[rows] = -log_sums
        else:
            is_few = exact.n_missing_states(machine.visible, is_observed) <= MAX_SUMMED_STATES
            rows = np.flatnonzero(is_few & ~is_complete)
            annealed = np.flatnonzero(~is_few & is_observed.any(axis=1))
            v = dense(X[rows]).astype(np.float64)
            blocks = zip([machine] * len(rows), v, is_observed[rows], strict=True)
            free_energy[rows] = -np.array(map_blocks(exact.log_sum_over_missing, blocks, n_jobs))
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
