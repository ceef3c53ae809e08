"""Epochs of a fit in `history_`, the lines that they print, and what a fit is warned of."""

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
from skrbm.core.likelihood.pseudo import monitor
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.core.training.monitoring import free_energy_gap, record
from skrbm.core.training.parts.missing import ImputedRows
from skrbm.core.units import Units
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.input.validation import warn_user

MAX_RECORDED_ROWS = 1000  # training rows that an epoch is recorded from
MIN_DEFICIT = 1.0  # nats below independent features, from which a fit is warned of
HELD_OUT_EFFORT = 2  # times the cost of a training score: scores that decide are measured better

Columns = dict[str, list[float]]
Notes = dict[str, float]
Score = tuple[float, float]  # with its standard error, in nats


def empty_history(*scores: str) -> Columns:
    """Columns of a history before the first epoch."""
    return {name: [] for name in ("n_iter", *scores, "time")}


@final
@dataclass
class History:
    """Writer of `history_`: a copy of the columns so far, and the number of the present epoch.

    Parameters
    ----------
    columns : dict of str to list of float
        History so far.
    n_iter : int
        Number of epochs so far.
    name : str
        Name of the estimator's class, for the lines.
    is_verbose : bool
        Whether to print a line for every epoch.
    n_updates : int
        Number of updates of an epoch.
    n_left : int or None
        Largest number of epochs that are to come; None where nobody knows.
    """

    columns: Columns
    n_iter: int
    name: str
    is_verbose: bool
    n_updates: int
    n_left: int | None

    line_pause: ClassVar[float] = 10.0  # seconds between two lines within an epoch

    def __post_init__(self) -> None:
        self.columns = {name: list(column) for name, column in self.columns.items()}
        self._end = None if self.n_left is None else self.n_iter + self.n_left
        self._begin = self._last_line = time.perf_counter()
        self._n_done = 0

    def count_update(self) -> None:
        """Count an update, and print now and then how far a long epoch has come."""
        self._n_done += 1
        now, share = time.perf_counter(), self._n_done % self.n_updates / self.n_updates
        if self.is_verbose and share and now - self._last_line >= self.line_pause:
            text = f"{share:.0%} of the rows, time = {now - self._begin:.2f}s"
            self._print(self.n_iter + 1, text)

    def add(self, notes: Notes, scores: str) -> None:
        """Add the present epoch.

        Parameters
        ----------
        notes : dict of str to float
            One number for each column; a column without one gets NaN.
        scores : str
            Part of the line between the number of the epoch and the time.
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
    """Scores of the machines of a fit, one after each epoch.

    Attributes
    ----------
    history : History
        To write to.
    """

    history: History

    @property
    @abstractmethod
    def tracker(self) -> PartitionTracker | None:
        """Chains that the partition function is followed with, if it is."""

    @abstractmethod
    def record(self, machine: Machine, particles: Array, notes: Notes, rng: Generator) -> Score:
        """Write an epoch to the history.

        Parameters
        ----------
        machine : Machine
            Plain machine that would be published now.
        particles : ndarray of shape (n_particles, n_hidden)
            Hidden states of the chains.
        notes : dict of str to float
            Further columns.
        rng : numpy.random.Generator
            Stream of training.

        Returns
        -------
        score, std_error : float
            Score that decides, in nats, comparable with those of epochs before; its error.
        """

    @abstractmethod
    def score(self, machine: Machine) -> float:
        """Score that decides, of a given machine, in nats."""

    @abstractmethod
    def warn(self, machine: Machine, particles: Array) -> None:
        """Warn of what is wrong with the machine that a fit has ended with."""


class ScoredRows(NamedTuple):
    """Rows with their weights, and the mask of their units (n_rows, n_units) that are scored."""

    v: Any
    weight: Array | None = None
    is_scored: Array | None = None

    def take(self, numbers: Array) -> ScoredRows:
        """Some of the rows, by their numbers."""
        return ScoredRows(*(None if array is None else array[numbers] for array in self))


@final
@dataclass
class RowRecorder(Recorder):
    """Recorder of pseudo-likelihoods, free energies and, if they are tracked, log-likelihoods.

    Parameters
    ----------
    history : History
        To write to.
    rbm : BaseRBM
        Has the parameters, and the format of the rows.
    rows : ScoredRows
        All rows of the fit.
    learned, held_out : ndarray of int or None
        Numbers of the rows that are learned from, None for all, and of those whose score decides,
        None for the same.
    base : Units
        Visible layer without a field that has the statistics of the rows.
    dtype : dtype
        Floating-point type of states, in which pseudo-likelihoods and free energies are computed.
    is_persistent : bool
        Whether there are chains that sample the machine.
    likelihood : LikelihoodRecorder, default=None
        Recorder of log-likelihoods, which then decide; None for pseudo-likelihoods alone.
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

    @property
    def tracker(self) -> PartitionTracker | None:
        return None if self.likelihood is None else self.likelihood.tracker

    def record(self, machine: Machine, particles: Array, notes: Notes, rng: Generator) -> Score:
        if isinstance(self.rows.v, ImputedRows):  # whose draws have moved
            if self.held_out is not None:  # training draws for its own rows
                self.rows.v.redraw(machine, self.held_out, rng)
            self._scored = self._taken()
        notes = notes | self._measure(machine.astype(self.dtype), particles)
        notes |= self._likelihoods(machine)
        self.history.add(notes, self._line(notes))
        correction = 0.0 if self.likelihood is None else self.likelihood.correction
        std_error = notes.get(f"{self._deciding}_std_error", 0.0)
        return notes[self._deciding] + correction, std_error

    def score(self, machine: Machine) -> float:
        if self.likelihood is not None:
            return self._likelihoods(machine)[self._deciding]
        rounded = machine.astype(self.dtype)
        if self.held_out is not None:
            return self._held_out_score(rounded)
        score = self._pseudo_likelihood(rounded, self._scored[0], self.n_samples)
        return score - self._log_jacobians[0]

    def warn(self, machine: Machine, particles: Array) -> None:
        rows, rbm = self._scored[0], self.rbm
        with np.errstate(all="ignore"):
            missing = likelihood_deficit(machine, self.base, rows.v, particles, rows.weight)
        if missing > MIN_DEFICIT:
            warn_user(
                f"The fit is worse than none: the mean log-likelihood of X is at least {missing:.3g} "
                f"nats below that of independent features. Reduce learning_rate={rbm.learning_rate}, "
                f"or set algorithm='pt' with n_iter={rbm.n_iter} or more.",
                ConvergenceWarning,
            )

    @cached_property
    def _scored(self) -> list[ScoredRows]:
        return self._taken()

    def _taken(self) -> list[ScoredRows]:
        """Some of the rows that are learned and, if there are any, all that are held out."""
        learned = self.rows
        if self.learned is not None:
            learned = learned.take(spread_rows(self.learned, MAX_RECORDED_ROWS))
        return [learned] if self.held_out is None else [learned, self.rows.take(self.held_out)]

    @cached_property
    def _log_jacobians(self) -> list[float]:
        """Mean scores of the machine's columns above those of the rows as given, in nats."""
        if not self.rbm._row_format.has_tables:
            return [0.0] * len(self._scored)
        means, rbm = [], self.rbm
        for rows in self._scored:
            numbers = spread_rows(np.arange(rows.v.shape[0]), MAX_RECORDED_ROWS)
            v, weight, is_scored = rows.take(numbers)
            log_jacobian = rbm._row_format.log_jacobian(rbm, v, is_scored)
            means.append(mean_of_rows(np.broadcast_to(log_jacobian, len(numbers)), weight))
        return means

    @property
    def _deciding(self) -> str:
        """Name of the score that decides in the history."""
        prefix = "" if self.held_out is None else "validation_"
        return prefix + ("pseudo_likelihood" if self.likelihood is None else "log_likelihood")

    def _measure(self, machine: Machine, particles: Array) -> Notes:
        """Pseudo-likelihoods and free energies of a machine in the precision of states."""
        own, *held_out = self._scored
        chains = particles if self.is_persistent else None
        notes = record(machine, own.v, chains, self.n_samples, own.weight, own.is_scored)
        notes["pseudo_likelihood"] -= self._log_jacobians[0]
        for rows in held_out:
            notes["validation_pseudo_likelihood"] = self._held_out_score(machine)
            notes["free_energy_gap"] = free_energy_gap(
                machine,
                rows.v,
                own.v,
                self.n_samples,
                sample_weight=rows.weight,
                reference_weight=own.weight,
            )
        return notes

    def _held_out_score(self, machine: Machine) -> float:
        """Pseudo-likelihood of the rows that are held out, in nats."""
        n_samples = HELD_OUT_EFFORT * self.n_samples
        score = self._pseudo_likelihood(machine, self._scored[1], n_samples)
        return score - self._log_jacobians[1]

    def _pseudo_likelihood(self, machine: Machine, rows: ScoredRows, n_samples: int) -> float:
        """Pseudo-likelihood in nats, at a small part of the cost of an epoch of so many rows."""
        return monitor(machine, rows.v, n_samples, rows.weight, rows.is_scored)

    def _likelihoods(self, machine: Machine) -> Notes:
        """Log-likelihoods of learned and held-out rows in nats, where they are tracked."""
        if self.likelihood is None:
            return {}
        rows = {
            name: (scored.v, scored.weight)
            for name, scored in zip(("", "validation_"), self._scored, strict=False)
        }
        notes = self.likelihood.record(machine, rows)
        for prefix, log_jacobian in zip(rows, self._log_jacobians, strict=True):
            notes[f"{prefix}log_likelihood"] -= log_jacobian
        return notes

    def _line(self, notes: Notes) -> str:
        """Scores of an epoch, in words."""
        words = []
        for name in ("pseudo_likelihood", "log_likelihood"):
            if name in notes:
                words.append(f"{name.replace('_', '-')} = {notes[name]:.2f}")
                if self.held_out is not None:
                    words.append(f"validation = {notes[f'validation_{name}']:.2f}")
        if self.likelihood is not None:
            words[-1] += f" +- {notes['log_likelihood_std_error']:.2f}"
        return ", ".join(words)
