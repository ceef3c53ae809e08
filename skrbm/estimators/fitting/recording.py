"""What a fit shows while it runs, and when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skrbm.core.likelihood.deficit import shortfall
from skrbm.core.likelihood.pseudo import monitor
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.core.training.monitoring import free_energy_gap, record
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS
from skrbm.estimators.fitting.history import History
from skrbm.estimators.fitting.settings import batch_rows
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.input.validation import warn_user

MAX_RECORDED_ROWS = 1000
LEAST_LOSS = 1.0  # nats
HELD_OUT_EFFORT = 2  # of the training data's: what decides is measured better


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
    dtype : dtype
        Floating-point type of states, in which pseudo-likelihoods and free energies are computed.
    is_persistent : bool, default=True
        Whether there are chains that sample the machine.
    is_counted : ndarray of bool of shape (n_rows, n_units) or None, default=None
        Units of each row that are scored; None for all.
    held_out : tuple, default=None
        Rows whose score decides, their weights, and which of their units are scored; None for the
        training data's.
    likelihood : LikelihoodRecorder, default=None
        Keeper of log-likelihoods, which then decide; None for pseudo-likelihoods alone.
    log_unit, validation_log_unit : float, default=0.0
        By how much the mean scores of the user's rows, learned and held out, are below those of the
        machine's columns, in nats.
    """

    history: History
    rows: Any
    weight: Array | None
    n_samples: int
    dtype: Any
    is_persistent: bool = True
    is_counted: Array | None = None
    held_out: tuple[Any, Array | None, Array | None] | None = None
    likelihood: LikelihoodRecorder | None = None
    log_unit: float = 0.0
    validation_log_unit: float = 0.0

    def record(
        self, machine: Machine, particles: Array, notes: dict[str, float]
    ) -> tuple[float, float]:
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
        score, std_error : float
            What decides, in nats, as compared with that of passes before.
        """
        chains = particles if self.is_persistent else None
        rounded = machine.astype(self.dtype)
        notes = notes | record(
            rounded, self.rows, chains, self.n_samples, self.weight, self.is_counted
        )
        notes["pseudo_likelihood"] -= self.log_unit
        if self.held_out is not None:
            rows, weight, _ = self.held_out
            notes["validation_pseudo_likelihood"] = self._held_out_score(rounded, *self.held_out)
            notes["free_energy_gap"] = free_energy_gap(
                rounded,
                rows,
                self.rows,
                self.n_samples,
                sample_weight=weight,
                reference_weight=self.weight,
            )
        notes |= self._likelihoods(machine)
        self.history.add(notes, self._line(notes))
        correction = 0.0 if self.likelihood is None else self.likelihood.correction
        std_error = notes.get(f"{self._deciding}_std_error", 0.0)
        return notes[self._deciding] + correction, std_error

    @property
    def _deciding(self) -> str:
        """Name of what decides in the history."""
        prefix = "" if self.held_out is None else "validation_"
        return prefix + ("pseudo_likelihood" if self.likelihood is None else "log_likelihood")

    def score(self, machine: Machine) -> float:
        """What decides of a machine of before, in nats."""
        if self.likelihood is not None:
            return self._likelihoods(machine)[self._deciding]
        rounded = machine.astype(self.dtype)
        if self.held_out is not None:
            return self._held_out_score(rounded, *self.held_out)
        score = monitor(rounded, self.rows, self.n_samples, self.weight, self.is_counted)
        return score - self.log_unit

    def _held_out_score(self, machine: Machine, *held_out: Any) -> float:
        """Pseudo-likelihood of rows, given with their weights and which of their units count."""
        rows, *others = held_out
        score = monitor(machine, rows, HELD_OUT_EFFORT * self.n_samples, *others)
        return score - self.validation_log_unit

    def _likelihoods(self, machine: Machine) -> dict[str, float]:
        """Log-likelihoods of the training data and of what is held out, where they are tracked."""
        if self.likelihood is None:
            return {}
        rows = {"": (self.rows, self.weight)}
        if self.held_out is not None:
            rows["validation_"] = self.held_out[:2]
        notes = self.likelihood.record(machine, rows)
        notes["log_likelihood"] -= self.log_unit
        if self.held_out is not None:
            notes["validation_log_likelihood"] -= self.validation_log_unit
        return notes

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


def _mean_log_unit(rbm: Any, *arrays: Any) -> float:
    """Mean over rows, given with their weights and which of their units are known, in nats."""
    some: list[Any] = [
        None if array is None else spread_rows(array, MAX_RECORDED_ROWS) for array in arrays
    ]
    rows, weight, is_counted = some
    own = rbm._row_format.log_unit(rbm, rows, is_counted)
    return mean_of_rows(np.broadcast_to(own, rows.shape[0]), weight)


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
    rbm, looked_at = run.rbm, recorded_rows(run)
    *own, held_out = looked_at.values()
    likelihood = None
    if rbm.track_likelihood:
        n_updates = -(-run.n_rows // batch_rows(rbm, run.n_rows))
        likelihood = LikelihoodRecorder(run.model, run.n_rows, n_updates, run.trainer.buffers.dtype)
    return Recorder(
        run.history,
        **looked_at,
        n_samples=run.n_rows,
        dtype=run.trainer.buffers.dtype,
        is_persistent=PERSISTENT_CHAINS in run.phase.offers,
        likelihood=likelihood,
        log_unit=_mean_log_unit(rbm, *own),
        validation_log_unit=0.0 if held_out is None else _mean_log_unit(rbm, *held_out),
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
