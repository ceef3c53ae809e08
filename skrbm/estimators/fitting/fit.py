"""Training of an estimator, from the initialization to the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skrbm.core.centering import in_zero_sum_gauge
from skrbm.core.interrupts import Interrupts, deferred_interrupts
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, like, to_host
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.monitoring import EarlyStopping, Plateau, Score
from skrbm.core.training.part import without_data
from skrbm.core.training.parts.average import averaged
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.parts.missing import ImputedRows
from skrbm.core.training.parts.normalization import hold_normalizable
from skrbm.core.training.state import TrainingState, mapped
from skrbm.core.training.update import Trainer
from skrbm.estimators.fitting.callbacks import FitTask
from skrbm.estimators.fitting.checkpoint import fixed_settings
from skrbm.estimators.fitting.problem import Problem, Start
from skrbm.estimators.fitting.recording import History, Recorder, empty_history
from skrbm.estimators.fitting.settings import MAX_DOUBLE_WEIGHTS, trainer_of
from skrbm.estimators.fitting.start_fit import start_fit
from skrbm.estimators.inference.model import fingerprint, meanings
from skrbm.estimators.input.validation import explain_core_errors, warn_user, write_attributes

INTERRUPTED = "Training interrupted by user."
RECORDED_UPDATES = 75  # smallest number of updates between two records, but see `_is_due`


def fit_estimator(estimator: Any, problem: Problem, task: FitTask | None = None) -> None:
    """Train a model, and write the result to the estimator even after an interrupt or divergence.

    Parameters
    ----------
    estimator : BaseRBM or RBMClassifier
        Estimator to which the result is written. An error other than `DivergenceError` in the
        initialization or in training leaves it unchanged.
    problem : Problem
        Training data and model. The model contains a copy of the estimator.
    task : FitTask, default=None
        Task for callbacks. If None, no callbacks are called.

    Raises
    ------
    ValueError
        If the rows or the parameters are invalid, as for `start_fit` and `trainer_of`, or if an
        exact sum has too many states.
    DivergenceError
        If training diverges. The parameters before the diverged epoch are written to the estimator
        or, with `early_stopping`, those of the preferred epoch (see `Plateau.add`), if any. If the
        fit resumes and its first epoch diverges, the estimator is unchanged.
    """
    task, start = task or FitTask(), start_fit(problem)
    with deferred_interrupts(stops_for_sigterm=True) as interrupts:
        fit = Fit.of(problem, start)
        attributes = fit.run(task, interrupts)
        if fit.error is None or fit.n_done or not problem.resumes:
            write_attributes(estimator, attributes)
        if fit.error is not None:
            raise fit.error
        task.end(fit.attributes)
        if problem.is_planned:
            fit.warn()
        is_interrupted = fit.is_interrupted
        try:
            interrupts.check()
        except KeyboardInterrupt:
            is_interrupted = True
        if is_interrupted:
            warn_user(INTERRUPTED, UserWarning)


@final
@dataclass
class Fit:
    """Fit in progress.

    Parameters
    ----------
    problem : Problem
        Training data and the model.
    start : Start
        Copy of the initialization, parts of which the fit changes in place.
    machine : Machine
        Plain machine that is trained in place.
    state : TrainingState
        State of training.
    rows : object of shape (n_samples, n_visible)
        Visible states of all rows, including held-out rows: `Problem.device_rows` or, if it is
        None, the result of `Problem.rows`.
    trainer : Trainer
        Training algorithm.
    recorder : Recorder
        Recorder of the scores after an epoch.
    stopping : EarlyStopping or None
        Rule by which scores end training or lower the learning rate, or None without such a rule.
    n_done : int
        Number of completed epochs of the fit, including those before an interruption.
    latest : tuple of int and Machine, default=None
        Cached result of `_averaged`: the number of updates when it was computed, and the machine.
    notes : dict of str to float, default=None
        Values of the last epoch for the history, or None if they are recorded.
    error : DivergenceError, default=None
        Error that ended the fit, or None if training has not diverged.
    is_interrupted : bool, default=False
        Whether the user has interrupted the fit.
    """

    problem: Problem
    start: Start
    machine: Machine
    state: TrainingState
    rows: Any
    trainer: Trainer
    recorder: Recorder
    stopping: EarlyStopping | None
    n_done: int
    latest: tuple[int, Machine] | None = None
    notes: dict[str, float] | None = None
    error: DivergenceError | None = None
    is_interrupted: bool = False

    @classmethod
    def of(cls, problem: Problem, start: Start) -> Fit:
        """Prepare a fit with the current parameters of the estimator."""
        checkpoint, start = problem.checkpoint, deepcopy(start)
        is_small = start.machine.weights.size <= MAX_DOUBLE_WEIGHTS
        machine = start.machine.astype(np.float64 if is_small else start.dtype)
        rows = problem.rows(start, start.rng if checkpoint is None else deepcopy(start.rng))
        recorded = rows
        if problem.device_rows is not None:
            rows = problem.device_rows
            machine, start = _moved(start, machine, partial(like, array=rows))
        if checkpoint is not None and checkpoint["draws"] is not None:
            rows.imputed, rows.is_initial, rows.n_first_steps = deepcopy(checkpoint["draws"])
        n_done = 0 if checkpoint is None else checkpoint["n_done"]
        trainer, state = trainer_of(problem, start, machine, rows), start.state
        state.particles = state.particles.astype(trainer.buffers.dtype)
        history = _history(problem, n_done)
        recorder = problem.recorder(start, recorded, history, trainer.buffers.dtype)
        stopping = _stopping(problem, start, recorder)
        return cls(problem, start, machine, state, rows, trainer, recorder, stopping, n_done)

    def run(self, task: FitTask, interrupts: Interrupts) -> dict[str, Any]:
        """Run the remaining epochs.

        Parameters
        ----------
        task : FitTask
            Task for callbacks. A callback may end the fit.
        interrupts : Interrupts
            Deferred interrupts, which are checked after every update.

        Returns
        -------
        attributes : dict
            Result of `attributes` for the last machine or, in `fit` with `early_stopping`, for the
            preferred one (see `Plateau.add`). If training diverged, the last machine is the one
            before the diverged epoch.
        """
        problem = self.problem

        def count_and_check() -> None:
            self.recorder.history.count_update()
            interrupts.check()

        epochs = run_epochs(
            self.trainer,
            self.machine,
            self.state,
            self.rows,
            problem.n_iter,
            self.start.rng,
            rows=problem.split[0],
            sample_weight=problem.sample_weight,
            is_planned=problem.is_planned,
            n_done=self.n_done,
            after_update=count_and_check if problem.model.rbm.verbose else interrupts.check,
        )
        try:
            with explain_core_errors():
                for _ in range(self.n_done, problem.n_iter):
                    task.begin_epoch()
                    next(epochs)
                    self.n_done += 1
                    is_over = self._end_epoch()
                    if task.end_epoch(partial(self.checkpoint, is_over=is_over)) or is_over:
                        if self.notes is not None:  # no record was due
                            self._record()
                        break
        except KeyboardInterrupt:
            self.is_interrupted = True
        except DivergenceError as divergence:
            self.error = divergence
        if self.stopping is not None and self.stopping.best is not None:
            best = self.stopping.best.map_arrays(partial(like, array=self.machine.weights))
            self.machine, self.state.memory, self.latest = best, {}, None
            self.state.parts.pop("average", None)
        return self.attributes()

    def _end_epoch(self) -> bool:
        """Finish an epoch, and return True if its score ends training.

        The epoch is recorded if `verbose` is nonzero or, in `fit`, if a record is due. If a
        callback ends the fit after this epoch, `run` records it.
        """
        self.recorder.history.n_iter += 1
        self.notes = {"learning_rate": self.state.learning_rate} | self.start.phase.finish_epoch()
        if not (self.problem.model.rbm.verbose or (self.problem.is_planned and self._is_due)):
            return False
        score, stopping = self._record(), self.stopping
        if stopping is None:
            return False
        if np.isnan(score.mean) and self.n_done == 1:
            warn_user(
                "The score for early_stopping and the schedule 'adaptive' is NaN, so it cannot show "
                "an improvement. Set track_likelihood=True, or train without them.",
                ConvergenceWarning,
            )
        return stopping.add(score, self._averaged(), self.state)

    def _record(self) -> Score:
        """Record the scores of the last epoch."""
        notes, self.notes = self.notes or {}, None
        return self.recorder.record(self._averaged(), self._particles, notes, self.start.rng)

    @property
    def _is_due(self) -> bool:
        """True if a record of this epoch is due.

        Records are due after the first epoch, after epoch `n_iter` and after every kth epoch, where
        k is the smallest number of epochs with at least `RECORDED_UPDATES` updates. They are due
        after all epochs if the fit has a stopping rule or tracks the likelihood.
        """
        is_followed = self.stopping is not None or self.problem.model.rbm.track_likelihood
        spacing = 1 if is_followed else -(-RECORDED_UPDATES // self.problem.n_updates)
        return self.n_done in (1, self.problem.n_iter) or self.n_done % spacing == 0

    def _averaged(self) -> Machine:
        """Machine for the public arrays, in the zero-sum gauge.

        Its parameters are averages over the updates if the state of training contains an average.
        """
        if self.latest is None or self.latest[0] != self.state.n_updates:
            machine = averaged(self.machine, self.state)
            is_average = machine is not self.machine
            if self.problem.device_rows is not None:
                machine = machine.map_arrays(to_host)
            if is_average:  # an average may violate constraints
                Constraints(self.problem.model.rbm.max_norm).enforce(machine.parameters)
                hold_normalizable(machine)
            self.latest = self.state.n_updates, in_zero_sum_gauge(machine)
        return self.latest[1]

    @property
    def _particles(self) -> Array:
        """Hidden states of the persistent chains at temperature 1, which come first."""
        n_particles = len(self.state.particles) // self.start.phase.n_temperatures
        return to_host(self.state.particles[:n_particles])

    def warn(self) -> None:
        """Warn if the machine is a poor model, in the precision of the public arrays."""
        dtype = self.start.dtype
        self.recorder.warn(
            self._averaged().astype(dtype), self._particles.astype(dtype), self._step_sum
        )

    @property
    def _step_sum(self) -> Array | float:
        """Total step of the weights of each visible column in this fit, per unit of gradient.

        The result is approximate. The metric of the visible layer is that of the current machine;
        the metric of the hidden layer, and reductions of the learning rate by the schedule
        "adaptive", are ignored. The result is 0 if the steps do not scale with the gradient, as for
        Adam.
        """
        trainer, n_updates = self.trainer, self.n_done * self.problem.n_updates
        rate = trainer.learning_rate * trainer.schedule(0.5)  # mean of a schedule that is linear
        signal = trainer.preconditioner.metrics(self.machine)[0].signal
        metric = to_host(signal) if np.ndim(signal) else signal
        gain = trainer.optimizer.momentum_gain * trainer.preconditioner.unit
        return rate * n_updates * gain * np.asarray(metric, np.float64)

    @property
    def _fixed(self) -> dict[str, dict[str, Array]]:
        """Public arrays that training does not change, by layer, in the precision of training."""
        fixed: dict[str, dict[str, Array]] = {"visible": {}, "hidden": {}}
        for layer, attribute, *_ in self.problem.model.rbm._array_places.values():
            if f"{layer}_{attribute}" not in self.machine.parameters:
                fixed[layer][attribute] = getattr(self.machine, layer).arrays[attribute]
        return fixed

    def attributes(self, checkpoint: dict[str, Any] | None = None) -> dict[str, Any]:
        """Attributes of the estimator after the epochs so far; arrays may be shared with the fit.

        Parameters
        ----------
        checkpoint : dict, default=None
            Information that another process needs to resume the fit. If None, the fit cannot be
            resumed from the attributes.

        Returns
        -------
        attributes : dict
            Attributes by name, for the current machine. None marks an attribute to delete.
        """
        start, model, state = self.start, self.problem.model, self.state
        arrays = model.arrays(self._averaged().astype(start.dtype))
        n_particles = len(self._particles)
        particles = to_host(state.particles).astype(start.dtype)
        is_hidden = "average" in state.parts or checkpoint is not None
        parts = without_data(self.trainer.parts, state) if checkpoint is None else state.parts
        training_state = mapped(vars(state) | {"parts": parts}, to_host) | {
            "parameters": mapped(self.machine.parameters, to_host) if is_hidden else None,
            "fixed": mapped(self._fixed, to_host) if is_hidden else {},
            "fingerprint": fingerprint(arrays),
            "n_components": model.rbm.n_components,
            **meanings(model.rbm),
        }
        del training_state["particles"]
        if checkpoint is not None:
            training_state["checkpoint"] = checkpoint
        fitted = arrays | {
            "h_samples_": particles[:n_particles],
            "n_iter_": self.recorder.history.n_iter,
            "history_": self.recorder.history.columns,
            "_streams": self.problem.streams | {"training": start.rng},
            "_data": start.data,
            "_chains": {"replicas": particles[n_particles:], "betas": start.ladder.betas},
            "_training_state": training_state,
        }
        return self.problem.attributes(fitted)

    def checkpoint(self, *, is_over: bool) -> dict[str, Any]:
        """Attributes from which the fit can be resumed; arrays may be shared with the fit.

        If `is_over` is True, a resumed fit runs no further epochs.
        """
        n_iter, rows, likelihood = self.problem.n_iter, self.rows, self.recorder.likelihood
        draws = None
        if isinstance(rows, ImputedRows):
            draws = rows.imputed, rows.is_initial, rows.n_first_steps
        checkpoint = {
            "n_done": n_iter if is_over else self.n_done,
            "n_iter": n_iter,
            "settings": fixed_settings(self.problem.model.owner),
            "rows": self.problem.digest,
            "particles": to_host(self.state.particles),  # without rounding to the public dtype
            "stopping": self.stopping,
            "tracker": None if likelihood is None else likelihood.tracker,
            "draws": draws,
        }
        return self.attributes(checkpoint)


def _moved(start: Start, machine: Machine, move: Callable[[Array], Array]) -> tuple[Machine, Start]:
    """Move the machine, the state of training and the base of the chains to a device."""
    state = TrainingState(**mapped(vars(start.state), move))
    phase, base = type(start.phase), getattr(start.phase, "base", start.base)
    moved = phase.create(start.phase.n_gibbs_steps, base.map_arrays(move), start.ladder)
    return machine.map_arrays(move), replace(start, state=state, phase=moved)


def _history(problem: Problem, n_done: int) -> History:
    """Continue the history of the estimator; without earlier training, create an empty history."""
    owner, is_new = problem.model.owner, not problem.training_state
    return History(
        empty_history(*problem.scores) if is_new else owner.history_,
        0 if is_new else owner.n_iter_,
        type(owner).__name__,
        bool(problem.model.rbm.verbose),
        problem.n_updates,
        problem.n_iter - n_done if problem.is_planned else None,
    )


def _stopping(problem: Problem, start: Start, recorder: Recorder) -> EarlyStopping | None:
    """Rule by which scores end a fit or lower its learning rate, or None without such a rule.

    It is None in `partial_fit`, and if neither `early_stopping` nor the schedule "adaptive" is set.
    """
    rbm = problem.model.rbm
    slows_down = rbm.learning_rate_schedule == "adaptive"
    if not problem.is_planned or not (slows_down or rbm.early_stopping):
        return None
    if problem.checkpoint is not None:
        return deepcopy(problem.checkpoint["stopping"])
    plateau = Plateau(rbm.tol, rbm.n_iter_no_change)
    stopping = EarlyStopping(plateau, slows_down, restores_best=rbm.early_stopping)
    if rbm.early_stopping and start.published is not None:
        stopping.resume(recorder.score(start.published), start.published)
    return stopping
