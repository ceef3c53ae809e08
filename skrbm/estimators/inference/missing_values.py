"""Draws of missing values given the observed values, and averages over such draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from skrbm.core.chains.gibbs import clamped_gibbs, clamped_mean, posterior_draws
from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood.annealing import clamped_log_partitions
from skrbm.core.likelihood.exact import clamped_log_partition, n_completions
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.units import Units
from skrbm.estimators.inference.log_partition import warn_if_few
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.validation import check_domain

# Draws and Gibbs steps per draw in transform and scores. On digits and wines with half of the
# values missing, more steps change the features by less than the Monte Carlo error of ten draws.
N_IMPUTED_DRAWS, N_IMPUTATION_STEPS = 10, 20
MAX_COMPLETIONS = 2**12  # joint states of a row's missing values; a sum takes milliseconds


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
        means, n_warm = np.zeros(()), n_gibbs_steps // 2
        values = self.model.rbm._row_format.expected_values(self.model.rbm)
        step = partial(clamped_mean, values=values)
        for _ in range(n_chains):
            v = self.draw(X, n_warm)
            means = means + self._advanced(v, n_gibbs_steps - n_warm, step) / n_chains
        return np.where(self._is_held, v, means).astype(v.dtype, copy=False)

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
        result[complete] = answer(X[complete], complete)
    return result


def observed_free_energy(
    model: ArrayModel,
    X: Any,
    is_observed: Array,
    n_chains: int,
    n_temperatures: int,
    random_state: Any,
) -> tuple[Array, Array]:
    """Free energy of the observed values of each row: minus the log-sum over the missing values.

    The sum is exact if the missing values have at most `MAX_COMPLETIONS` joint states; otherwise,
    it is estimated by annealing.

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

    Warns
    -----
    AnnealingWarning
        If the effective sample size of the chains of some row is too small.
    """
    is_complete = is_observed.all(axis=1)
    free_energy, error = np.empty(len(is_observed)), np.zeros(len(is_observed))
    if is_complete.any():
        free_energy[is_complete] = model.map_rows(Machine.free_energy, X[is_complete])
    machine = model.machine().astype(np.float64)
    n_states = n_completions(machine.visible, is_observed)
    few = np.flatnonzero(~is_complete & (n_states <= MAX_COMPLETIONS))
    for index, row in zip(few, dense(X[few]).astype(np.float64), strict=True):
        free_energy[index] = -clamped_log_partition(machine, row, is_observed[index])
    many = np.flatnonzero(n_states > MAX_COMPLETIONS)
    if len(many):
        rng = model.annealing_rng(random_state)
        path = TemperedPath.to(machine, model.base(machine, rng))
        estimates = clamped_log_partitions(
            path, dense(X[many]), is_observed[many], n_chains, n_temperatures, rng, model.rbm.n_jobs
        )
        free_energy[many] = [-estimate.value for estimate in estimates]
        error[many] = [estimate.std_error for estimate in estimates]
        warn_if_few(min(estimates, key=lambda estimate: estimate.effective_sample_size or np.inf))
    return free_energy, error
