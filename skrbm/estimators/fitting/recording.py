"""Recording of epochs in `history_`, verbose output, and warnings after a fit."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.random import Generator
from sklearn.exceptions import ConvergenceWarning

from skrbm.core.likelihood.deficit import likelihood_deficit
from skrbm.core.likelihood.optimism import effective_parameters
from skrbm.core.likelihood.pseudo import monitored_rows
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, spread_rows, weighted_mean
from skrbm.core.training.monitoring import Score, epoch_scores, free_energy_gap
from skrbm.core.training.parts.missing import ImputedRows
from skrbm.core.training.parts.normalization import variance_beyond_bound
from skrbm.core.units import Units
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.input.validation import (
    OverfittingWarning,
    number_of_rows,
    warn_user,
    weight_sums,
)

MAX_RECORDED_ROWS = 1000  # largest number of training rows that are scored if rows are held out
# A fit warns if the log-likelihood of a model of independent features, or of a kernel density
# estimate, is larger by this number of nats.
MIN_DEFICIT = 0.2
MIN_SHAPE_EPOCHS = 10  # shorter fits are compared with independent features alone
# A fit warns if the expected loss of log-likelihood on new rows is at least this number of nats and
# at least this share of the gain of the pseudo-likelihood.
# Losses on new rows: benchmarks/results/overfitting.json.
MIN_OPTIMISM, MAX_OPTIMISM_SHARE = 1.0, 0.4
# Ratio of the variances of data and model along a factor above which a fit warns. The standard
# error of a variance computed from a hundred chains is about 15 %.
MAX_VARIANCE_RATIO = 1.5
MIN_COVARIANCE_ROWS = 20  # smallest number of rows from which covariances are estimated
L2_OF_ROWS = 10.0  # l2 that a warning recommends, times the number of rows
# Costs of the pseudo-likelihood of held-out rows and of that in `_warn_if_overfitted`, relative to
# the cost of the pseudo-likelihood of training rows after an epoch.
HELD_OUT_EFFORT, OPTIMISM_EFFORT = 2, 20

Columns = dict[str, list[float]]
Notes = dict[str, float]
RowScores = tuple[Array, Array | None]  # scores in nats and weights of rows


def empty_history(*scores: str) -> Columns:
    """Create an empty history with the columns "n_iter", the given scores and "time"."""
    return {name: [] for name in ("n_iter", *scores, "time")}


@final
@dataclass
class History:
    """Writer of `history_` and of verbose output.

    Parameters
    ----------
    columns : dict of str to list of float
        History so far, which is copied.
    n_iter : int
        Number of epochs so far.
    name : str
        Name of the estimator's class, for verbose output.
    is_verbose : bool
        Whether to print the scores of every epoch, and the progress of long epochs.
    n_updates : int
        Number of updates per epoch.
    n_left : int or None
        Maximum number of remaining epochs, or None if it is unknown, as in `partial_fit`.
    """

    columns: Columns
    n_iter: int
    name: str
    is_verbose: bool
    n_updates: int
    n_left: int | None

    line_pause: ClassVar[float] = 10.0  # least number of seconds before a line within an epoch

    def __post_init__(self) -> None:
        self.columns = {name: list(column) for name, column in self.columns.items()}
        self._end = None if self.n_left is None else self.n_iter + self.n_left
        self._begin = self._last_line = time.perf_counter()
        self._n_done = 0

    def count_update(self) -> None:
        """Count an update, and print the progress of a long epoch; called if `is_verbose` is True.

        The progress is printed only if the last line was printed at least `line_pause` seconds ago.
        """
        self._n_done += 1
        now, share = time.perf_counter(), self._n_done % self.n_updates / self.n_updates
        if share and now - self._last_line >= self.line_pause:
            text = f"{share:.0%} of the rows, time = {now - self._begin:.2f}s"
            self._print(self.n_iter + 1, text)

    def add(self, notes: Notes, scores: str) -> None:
        """Add the current epoch to the history, and print its scores if `is_verbose` is True.

        Parameters
        ----------
        notes : dict of str to float
            Values by column name. Columns without a value get NaN, except "n_iter" and "time". A
            new column gets NaN for all earlier records.
        scores : str
            Scores as text for the verbose output.
        """
        end = time.perf_counter()
        seconds, self._begin = end - self._begin, end
        notes = {"n_iter": self.n_iter} | notes | {"time": seconds}
        n_epochs = len(self.columns["time"])
        for name in {**self.columns, **notes}:
            column = self.columns.setdefault(name, [float("nan")] * n_epochs)
            column.append(notes.get(name, float("nan")))
        if self.is_verbose:
            self._print(self.n_iter, f"{scores}, time = {seconds:.2f}s")

    def _print(self, number: int, text: str) -> None:
        self._last_line = time.perf_counter()
        rest = "" if self._end is None else f", {self._end - number} to go"
        print(f"[{self.name}] Iteration {number}, {text}{rest}", flush=True)


class Recorder(ABC):
    """Recorder of the scores of a fit after an epoch.

    Attributes
    ----------
    history : History
        History to write to.
    likelihood : LikelihoodRecorder or None
        Recorder of log-likelihoods, or None if they are not tracked.
    """

    history: History
    likelihood: LikelihoodRecorder | None = None

    @abstractmethod
    def record(self, machine: Machine, particles: Array, notes: Notes, rng: Generator) -> Score:
        """Compute the scores of an epoch, and write them to the history.

        Parameters
        ----------
        machine : Machine
            Plain machine after the epoch.
        particles : ndarray of shape (n_particles, n_hidden)
            Hidden states of the particles at temperature 1.
        notes : dict of str to float
            Values of further columns of the history.
        rng : numpy.random.Generator
            Random stream of training.

        Returns
        -------
        score : Score
            Score for early stopping. If the partition function is tracked, the mean includes
            `LikelihoodRecorder.correction`, so that it can be compared with earlier scores.
        """

    @abstractmethod
    def score(self, machine: Machine) -> Score:
        """Score of a machine on the held-out rows, for early stopping."""

    @abstractmethod
    def warn(self, machine: Machine, particles: Array, step_sum: Array | float) -> None:
        """Warn if the final machine of a fit is a poor model.

        Parameters
        ----------
        machine : Machine
            Final machine.
        particles : ndarray of shape (n_particles, n_hidden)
            Hidden states of the particles at temperature 1.
        step_sum : float or ndarray of shape (n_columns,)
            Value of `Fit._step_sum`: total step of the weights of each visible column, per unit of
            gradient, or 0 if it is unknown.
        """


class ScoredRows(NamedTuple):
    """Rows, their weights, and a mask of the units to score.

    Parameters
    ----------
    v : {ndarray, sparse matrix, EncodedTable, ImputedRows} of shape (n_rows, n_columns)
        Visible states.
    weight : ndarray of shape (n_rows,), default=None
        Weights of the rows. If None, all rows have equal weights.
    is_scored : ndarray of bool of shape (n_rows, n_units), default=None
        Mask of the units to score. If None, all units are scored.
    """

    v: Any
    weight: Array | None = None
    is_scored: Array | None = None

    def take(self, numbers: Array) -> ScoredRows:
        """Rows with the given indices."""
        return ScoredRows(*(None if array is None else array[numbers] for array in self))


@final
@dataclass
class RowRecorder(Recorder):
    """Recorder of pseudo-likelihoods, mean activations, free-energy gaps and log-likelihoods.

    Parameters
    ----------
    history : History
        History to write to.
    rbm : BaseRBM
        Estimator with the parameters and the format of the rows.
    rows : ScoredRows
        All rows of the fit.
    learned, held_out : ndarray of int or None
        Indices of the training rows and of the held-out rows. Both are None if all rows are
        training rows. Early stopping uses the score of the held-out rows if there are any.
    base : Units
        Visible layer of independent units with the means and variances of all rows so far.
    dtype : dtype
        Floating-point type of the states. Pseudo-likelihoods, mean activations and free-energy gaps
        are computed in this type.
    is_persistent : bool
        Whether the training algorithm has persistent chains.
    likelihood : LikelihoodRecorder, default=None
        Recorder of log-likelihoods. If it is passed, early stopping uses log-likelihoods instead of
        pseudo-likelihoods. If None, log-likelihoods are not recorded.
    """

    history: History
    rbm: Any
    rows: ScoredRows
    learned: Array | None
    held_out: Array | None
    base: Units
    dtype: Any
    is_persistent: bool
    likelihood: LikelihoodRecorder | None = None

    def __post_init__(self) -> None:
        self.n_samples = self.rows.v.shape[0] if self.learned is None else len(self.learned)
        self._scored = self._taken()

    def record(self, machine: Machine, particles: Array, notes: Notes, rng: Generator) -> Score:
        if isinstance(self.rows.v, ImputedRows):
            if self.held_out is not None:  # training redraws only the training rows
                self.rows.v.redraw(machine, self.held_out, rng)
            self._scored = self._taken()
        rounded = machine.astype(self.dtype)
        held_out = None if self.held_out is None else self._held_out_scores(rounded)
        notes = notes | self._measure(rounded, particles, held_out)
        notes |= self._likelihoods(machine)
        self.history.add(notes, self._line(notes))
        return self._deciding_score(notes, held_out)

    def score(self, machine: Machine) -> Score:
        if self.likelihood is not None:
            return self._deciding_score(self._likelihoods(machine), None)
        held_out = self._held_out_scores(machine.astype(self.dtype))
        return Score(self._held_out_mean(held_out), 0.0, *held_out)

    def warn(self, machine: Machine, particles: Array, step_sum: Array | float) -> None:
        rows, rbm = self._scored[""], self.rbm
        deficit = self._deficit(machine, self.base, particles)
        if deficit > MIN_DEFICIT:
            warn_user(
                f"The fit is worse than a model of independent features: its mean log-likelihood of X "
                f"is at least {deficit:.3g} nats lower. Reduce learning_rate={rbm.learning_rate}, or "
                f"set algorithm='pt' with n_iter={rbm.n_iter} or more.",
                ConvergenceWarning,
            )
        else:
            self._warn_if_shapeless(machine, particles)
            if self.held_out is None:
                self._warn_if_overfitted(machine, step_sum)
        ratio = variance_beyond_bound(machine, rows.v, particles) if self.is_persistent else 0.0
        if ratio > MAX_VARIANCE_RATIO:
            others = "'binary'" if rbm.hidden_units == "drelu" else "'drelu' or 'binary'"
            warn_user(
                f"The model does not represent a strong factor of X: along this factor, the variance "
                f"of X is {ratio:.2g} times that of the model. Samples vary less and are less "
                f"correlated than X. With hidden_units={rbm.hidden_units!r}, weights are bounded so "
                f"that the distribution exists and the chains mix. Set hidden_units={others}.",
                ConvergenceWarning,
            )

    def _deficit(self, machine: Machine, base: Units | None, particles: Array) -> float:
        """Certain deficit of the training rows' log-likelihood, see `likelihood_deficit`."""
        rows = self._scored[""]
        with np.errstate(all="ignore"):
            return likelihood_deficit(machine, base, rows.v, particles, rows.weight)

    def _warn_if_shapeless(self, machine: Machine, particles: Array) -> None:
        """Warn if real-valued rows are likelier under a kernel density estimate.

        Nothing is checked after fewer than `MIN_SHAPE_EPOCHS` epochs.
        """
        is_real = np.isinf(machine.visible.column_bounds).all()
        if self.history.n_iter < MIN_SHAPE_EPOCHS or not is_real:
            return
        deficit, rbm = self._deficit(machine, None, particles), self.rbm
        if deficit > MIN_DEFICIT:
            warn_user(
                f"The fit is worse than a kernel density estimate: its mean log-likelihood of X is at "
                f"least {deficit:.3g} nats lower. It misses clusters or curved dependencies of X. "
                f"Increase n_components={rbm.n_components} or n_iter={rbm.n_iter}, or use a mixture, "
                f"for example sklearn.mixture.GaussianMixture.",
                ConvergenceWarning,
            )

    def _warn_if_overfitted(self, machine: Machine, step_sum: Array | float) -> None:
        """Warn if most of the gain over independent columns is expected to be lost on new rows.

        The expected loss must also be at least `MIN_OPTIMISM` nats per row. Nothing is checked
        after a single epoch, with fewer than `MIN_COVARIANCE_ROWS` rows, or if `step_sum` is 0. In
        a single epoch, the rows of each update are new to the model.

        The pseudo-likelihood counts a weak dependency of two columns twice, once for each column.
        The gain of the likelihood is therefore about half the gain of the pseudo-likelihood.
        """
        rbm, (v, weight, _) = self.rbm, self.rows  # missing values are imputed, and all units count
        n_rows = self.n_samples if weight is None else number_of_rows(weight_sums(weight))
        least = MIN_OPTIMISM * n_rows  # in effective parameters
        is_known = self.history.n_iter > 1 and n_rows >= MIN_COVARIANCE_ROWS and np.any(step_sum)
        if not is_known or machine.weights.size < least:
            return
        independent = Machine(self.base, machine.hidden, np.zeros_like(machine.weights))
        effort: Any = OPTIMISM_EFFORT * n_rows  # a sum of weights need not be an integer
        with np.errstate(all="ignore"):
            fitted, alone = (  # of the same rows and units
                weighted_mean(*monitored_rows(of.astype(self.dtype), v, effort, weight))
                for of in (machine, independent)
            )
            gain = fitted - alone
            least = float(np.maximum(least, MAX_OPTIMISM_SHARE * gain * n_rows))  # may be NaN
            if not machine.weights.size >= least:  # upper bound of `n_parameters`
                return
            n_parameters = effective_parameters(machine, v, step_sum, rbm.l2)
        if n_parameters >= least:
            warn_user(
                f"The model is probably overfitted: {n_rows:.0f} rows are few for about "
                f"{n_parameters:.0f} effective weights. On new rows, its mean log-likelihood is "
                f"expected to be about {n_parameters / n_rows:.2g} nats lower, which is most of its "
                f"gain over independent features. Set early_stopping=True or "
                f"l2={L2_OF_ROWS / n_rows:.1g}, or reduce "
                f"n_components={rbm.n_components} or n_iter={rbm.n_iter}.",
                OverfittingWarning,
            )

    def _taken(self) -> dict[str, ScoredRows]:
        """Training rows to score and, if rows are held out, the held-out rows.

        The keys are prefixes of columns of the history: "" and "validation_". If rows are held out,
        at most `MAX_RECORDED_ROWS` training rows are scored.
        """
        if self.held_out is None:
            return {"": self.rows}
        learned = spread_rows(self.learned, MAX_RECORDED_ROWS)
        return {"": self.rows.take(learned), "validation_": self.rows.take(self.held_out)}

    @cached_property
    def _log_jacobians(self) -> dict[str, float]:
        """Mean log-Jacobians of the training rows and, if rows are held out, of the held-out rows.

        The Jacobian is that of the map from the machine's columns to the user's values. Each mean
        is in nats, over at most `MAX_RECORDED_ROWS` rows. It is zero if the rows are not a table.
        """
        if not self.rbm._row_format.has_tables:
            return dict.fromkeys(self._scored, 0.0)
        means, rbm = {}, self.rbm
        for prefix, rows in self._scored.items():
            v, weight, is_scored = (spread_rows(array, MAX_RECORDED_ROWS) for array in rows)
            log_jacobian = rbm._row_format.log_jacobian(rbm, v, is_scored)
            means[prefix] = weighted_mean(np.broadcast_to(log_jacobian, len(v)), weight)
        return means

    def _deciding_score(self, notes: Notes, held_out: RowScores | None) -> Score:
        """Score for early stopping.

        Parameters
        ----------
        notes : dict of str to float
            Values of the history. They include the pseudo-likelihood or, if the log-likelihood is
            tracked, the log-likelihood and its standard error.
        held_out : tuple or None
            Pseudo-likelihoods and weights of the held-out rows, or None if there are no such rows.
            They are not used if the log-likelihood is tracked.
        """
        prefix = "" if self.held_out is None else "validation_"
        if self.likelihood is None:
            return Score(notes[f"{prefix}pseudo_likelihood"], 0.0, *(held_out or ()))
        mean = notes[f"{prefix}log_likelihood"] + self.likelihood.correction
        std_error = notes[f"{prefix}log_likelihood_std_error"]
        return Score(mean, std_error, *self.likelihood.row_scores.get("validation_", ()))

    def _measure(
        self, machine: Machine, particles: Array, held_out_scores: RowScores | None
    ) -> Notes:
        """Pseudo-likelihoods, mean activation and free-energy gaps of a machine, by column name."""
        learned = self._scored[""]
        chains = particles if self.is_persistent else None
        notes = epoch_scores(
            machine, learned.v, chains, self.n_samples, learned.weight, learned.is_scored
        )
        notes["pseudo_likelihood"] -= self._log_jacobians[""]
        if self.held_out is not None:
            rows = self._scored["validation_"]
            notes["validation_pseudo_likelihood"] = self._held_out_mean(held_out_scores)
            notes["free_energy_gap"] = free_energy_gap(
                machine,
                rows.v,
                learned.v,
                self.n_samples,
                sample_weight=rows.weight,
                reference_weight=learned.weight,
            )
        return notes

    def _held_out_scores(self, machine: Machine) -> RowScores:
        """Log pseudo-likelihoods of some held-out rows in nats, and weights of these rows.

        Densities are those of the machine's columns, not of the user's values.
        """
        v, weight, is_scored = self._scored["validation_"]
        return monitored_rows(machine, v, HELD_OUT_EFFORT * self.n_samples, weight, is_scored)

    def _held_out_mean(self, scores: Any) -> float:
        """Mean log pseudo-likelihood of the held-out rows in nats, for the user's values."""
        return weighted_mean(*scores) - self._log_jacobians["validation_"]

    def _likelihoods(self, machine: Machine) -> Notes:
        """Result of `LikelihoodRecorder.record` for the user's values; empty without tracking."""
        if self.likelihood is None:
            return {}
        notes = self.likelihood.record(machine, self._scored)
        for prefix, log_jacobian in self._log_jacobians.items():
            notes[f"{prefix}log_likelihood"] -= log_jacobian
        return notes

    def _line(self, notes: Notes) -> str:
        """Scores of an epoch as text for the verbose output."""
        words = []
        for name in ("pseudo_likelihood", "log_likelihood"):
            if name in notes:
                words.append(f"{name.replace('_', '-')} = {notes[name]:.2f}")
                if self.held_out is not None:
                    words.append(f"validation = {notes[f'validation_{name}']:.2f}")
        if self.likelihood is not None:
            words[-1] += f" +- {notes['log_likelihood_std_error']:.2f}"
        return ", ".join(words)
