"""What a fit shows while it runs, and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skrbm.core.likelihood.pseudo import monitor
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.core.training.monitoring import free_energy_gap, record
from skrbm.core.training.watch import shortfall
from skrbm.estimators.history import History
from skrbm.estimators.settings import batch_rows
from skrbm.estimators.tracking import LikelihoodRecorder
from skrbm.estimators.validation import warn_user

MAX_RECORDED_ROWS = 1000
LEAST_LOSS = 1.0  # nats


@final
@dataclass
class Recorder:
    """What a fit notes of every pass.

    Parameters
    ----------
    history : History
        To write to.
    rows : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Training data, or evenly spaced rows of them.
    weight : ndarray of shape (n_rows,) or None
        Their weights; None weighs them alike.
    n_samples : int
        Number of rows of a pass, of whose cost recording is a small part.
    is_persistent : bool, default=True
        Whether there are chains that sample the machine.
    is_counted : ndarray of bool of shape (n_rows, n_units) or None, default=None
        Units of each row that are scored; None for all.
    held_out : tuple, default=None
        Rows whose score decides, their weights, and which of their units are scored; None for the
        training data's.
    likelihood : LikelihoodRecorder, default=None
        Keeper of log-likelihoods, which then decide; None for pseudo-likelihoods alone.
    log_units : callable, default=None
        From rows to by how much scores of the user's rows are below those of the machine's columns,
        in nats, of each unit (n_units,) or of each row and unit; None for nothing.
    """

    history: History
    rows: Any
    weight: Array | None
    n_samples: int
    is_persistent: bool = True
    is_counted: Array | None = None
    held_out: tuple[Any, Array | None, Array | None] | None = None
    likelihood: LikelihoodRecorder | None = None
    log_units: Callable[[Any], Array] | None = None

    def record(self, machine: Machine, particles: Array, notes: dict[str, float]) -> float:
        """Record a pass.

        Parameters
        ----------
        machine : Machine
            What would be published now.
        particles : ndarray of shape (n_particles, n_hidden)
            Hidden states of the chains.
        notes : dict of str to float
            What the algorithm says of the pass.

        Returns
        -------
        score : float
            What decides, in nats.
        """
        chains = particles if self.is_persistent else None
        notes = notes | record(
            machine, self.rows, chains, self.n_samples, self.weight, self.is_counted
        )
        notes["pseudo_likelihood"] -= self._log_unit(self.rows, self.weight, self.is_counted)
        if self.held_out is not None:
            rows, weight, is_counted = self.held_out
            score = monitor(machine, rows, self.n_samples, weight, is_counted)
            notes["validation_pseudo_likelihood"] = score - self._log_unit(*self.held_out)
            notes["free_energy_gap"] = free_energy_gap(
                machine,
                rows,
                self.rows,
                self.n_samples,
                sample_weight=weight,
                reference_weight=self.weight,
            )
        notes |= self._likelihoods(machine)
        self.history.add(notes, self._line(notes))
        return notes[self._deciding]

    @property
    def _deciding(self) -> str:
        """Name of what decides in the history."""
        prefix = "" if self.held_out is None else "validation_"
        return prefix + ("pseudo_likelihood" if self.likelihood is None else "log_likelihood")

    def score(self, machine: Machine) -> float:
        """What decides of a machine of before, in nats."""
        if self.likelihood is not None:
            return self._likelihoods(machine)[self._deciding]
        own = rows, weight, is_counted = self.held_out or (self.rows, self.weight, self.is_counted)
        return monitor(machine, rows, self.n_samples, weight, is_counted) - self._log_unit(*own)

    def _likelihoods(self, machine: Machine) -> dict[str, float]:
        """Log-likelihoods of the training data and of what is held out, where they are tracked."""
        if self.likelihood is None:
            return {}
        rows = {"": (self.rows, self.weight)}
        if self.held_out is not None:
            rows["validation_"] = self.held_out[:2]
        notes = self.likelihood.record(machine, rows)
        for prefix, (v, weight) in rows.items():
            notes[f"{prefix}log_likelihood"] -= self._log_unit(v, weight, None)
        return notes

    def _log_unit(self, rows: Any, weight: Array | None, is_counted: Array | None) -> float:
        """By how much the mean score of rows of the user is below that of the machine's, in nats."""
        if self.log_units is None:
            return 0.0
        some = (
            None if own is None else spread_rows(own, MAX_RECORDED_ROWS)
            for own in (weight, is_counted)
        )
        weight, is_counted = some
        log_units = self.log_units(spread_rows(rows, MAX_RECORDED_ROWS))
        counted = np.where(True if is_counted is None else is_counted, log_units, 0).sum(axis=-1)
        return mean_of_rows(np.atleast_1d(counted), weight if counted.ndim else None)

    def _line(self, notes: dict[str, float]) -> str:
        """Scores of a pass, in words."""
        own = "" if self.held_out is None else "validation_"
        line = f"pseudo-likelihood = {notes['pseudo_likelihood']:.2f}"
        if own:
            line += f", validation = {notes[own + 'pseudo_likelihood']:.2f}"
        if self.likelihood is not None:
            error = notes["log_likelihood_std_error"]
            line += f", log-likelihood = {notes['log_likelihood']:.2f}"
            if own:
                line += f", validation = {notes[own + 'log_likelihood']:.2f}"
            line += f" +- {error:.2f}"
        return line


def recorded_rows(run: Any) -> dict[str, Any]:
    """What a run's recorder looks at: rows, their weights, and which of their units are known."""
    is_known = None if run.completed is None else run.completed.known_units
    arrays = run.data, run.weight, is_known

    def some(numbers: Array) -> tuple[Any, ...]:
        return tuple(None if array is None else array[numbers] for array in arrays)

    own = arrays if run.rows is None else some(spread_rows(run.rows, MAX_RECORDED_ROWS))
    held_out = None if run.held_out is None else some(run.held_out)
    return dict(zip(("rows", "weight", "is_counted"), own, strict=True)) | {"held_out": held_out}


def recorder_of(run: Any) -> Recorder:
    """Recorder of a run.

    Parameters
    ----------
    run : Run
        About to train.

    Returns
    -------
    recorder : Recorder
        For this run alone.
    """
    rbm = run.rbm
    likelihood = None
    if rbm.track_likelihood:
        n_updates = -(-run.n_rows // batch_rows(rbm, run.n_rows))
        likelihood = LikelihoodRecorder(run.model, run.n_rows, n_updates, run.trainer.work.dtype)
    return Recorder(
        run.history,
        **recorded_rows(run),
        n_samples=run.n_rows,
        is_persistent=run.phase.is_persistent,
        log_units=partial(rbm._row_format.log_units, rbm),
        likelihood=likelihood,
    )


def warn_if_lost(run: Any) -> None:
    """Warn of a fit that leaves its rows less likely than if their features were independent.

    Parameters
    ----------
    run : Run
        That has published its arrays.
    """
    rbm, recorder = run.rbm, run.recorder
    if run.completed is not None:  # rows that the model itself has completed say little about it
        return
    base = run.model.base_layer(rbm._statistics)
    with np.errstate(all="ignore"):
        missing = shortfall(
            run.model.machine(), base, recorder.rows, run.state.particles, recorder.weight
        )
    if missing > LEAST_LOSS:
        warn_user(
            f"The fit is worse than none: the mean log-likelihood of X is at least {missing:.3g} nats "
            f"below that of independent features. Reduce learning_rate={rbm.learning_rate}, or set "
            f"algorithm='pt' with n_iter={rbm.n_iter} or more.",
            ConvergenceWarning,
        )
