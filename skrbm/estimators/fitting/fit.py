"""The epochs of a fit, from its start to the result that is written to the estimator."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from skrbm.core.centering import gauged
from skrbm.core.chains.ladder import Ladder
from skrbm.core.interrupts import Interrupts, deferred_interrupts
from skrbm.core.machine import Machine
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.monitoring import Judge
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.parts.average import averaged
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.parts.missing import CompletedRows, MissingValues
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.estimators.fitting.callbacks import FitTask
from skrbm.estimators.fitting.checkpoint import fixed_settings
from skrbm.estimators.fitting.problem import FitResult, Problem, Start
from skrbm.estimators.fitting.recording import History, Recorder, empty_history
from skrbm.estimators.fitting.settings import judge_of, trainer_of, working_copy
from skrbm.estimators.fitting.start_fit import start_fit
from skrbm.estimators.inference.model import fingerprint
from skrbm.estimators.input.validation import advised, warn_user, write_attributes

INTERRUPTED = "Training interrupted by user."
RECORDED_UPDATES = 75  # a record of few rows costs about as much as four of them


def fit_estimator(estimator: Any, problem: Problem, task: FitTask | None = None) -> None:
    """Train, and write the result to the estimator whatever ends the training.

    Parameters
    ----------
    estimator : BaseRBM or RBMClassifier
        Of which the problem's model has a copy. A fit that fails leaves it as it is.
    problem : Problem
        Rows to learn, and the model that they train.
    task : FitTask, default=None
        Shown to callbacks; None for a fit that nobody watches.

    Raises
    ------
    ValueError
        If the rows do not go with the model.
    DivergenceError
        If the parameters do not stay finite, or explode; the last good ones are written before.
    """
    task, start = task or FitTask(), start_fit(problem)
    with deferred_interrupts(stops_for_sigterm=True) as interrupts:
        fit = Fit.of(problem, start)
        result = fit.run(task, interrupts)
        write_attributes(estimator, problem.attributes(result))
        if result.error is not None:
            raise result.error
        task.end(fit.snapshot)
        if problem.is_planned:
            fit.recorder.warn(result.machine, fit.state.particles)
        try:
            interrupts.check()
        except KeyboardInterrupt:
            warn_user(INTERRUPTED, UserWarning)


@final
@dataclass
class Fit:
    """Training from a start.

    Parameters
    ----------
    problem : Problem
        Rows to learn, and the model that they train.
    start : Start
        Left as it is.
    machine : Machine
        Trained in place.
    state : TrainingState
        Carried from update to update.
    rng : numpy.random.Generator
        Stream of training.
    rows : {ndarray, sparse matrix, CompletedRows, LabelledRows} of shape (n_samples, n_visible)
        Data.
    ladder : Ladder
        Temperatures of the chains, which may move.
    phase : NegativePhase
        Source of the model's states.
    trainer : Trainer
        Algorithm.
    history : History
        To write to.
    recorder : Recorder
        Judge of each epoch.
    stopping : Judge or None
        Judge of when training is over; None where it goes on whatever the scores are.
    n_done : int
        Number of the epochs made.
    reached : tuple of int and Machine, default=None
        Number of updates, and the machine that would be published after them, averaged once.
    """

    problem: Problem
    start: Start
    machine: Machine
    state: TrainingState
    rng: np.random.Generator
    rows: Any
    ladder: Ladder
    phase: NegativePhase
    trainer: Trainer
    history: History
    recorder: Recorder
    stopping: Judge | None
    n_done: int
    reached: tuple[int, Machine] | None = None

    @classmethod
    def of(cls, problem: Problem, start: Start) -> Fit:
        """Prepare training by an estimator's present parameters."""
        model, rbm, checkpoint = problem.model, problem.model.rbm, problem.checkpoint
        n_done = 0 if checkpoint is None else checkpoint["n_done"]
        mutable = start.state, start.rng, start.ladder, start.phase
        state, rng, ladder, phase = deepcopy(mutable)  # together: a phase may hold the ladder
        machine = working_copy(start.machine, start.dtype)
        rows = _rows(problem, start, rng)
        _, variance = model.moments(start.data["all"])
        trainer = trainer_of(
            rbm,
            machine,
            problem.objective(phase),
            problem.n_batch,
            len(state.particles),
            start.dtype,
            variance,
            model.kurtosis(start.data["kurtosis"]),
        )
        if isinstance(rows, CompletedRows):
            missing = MissingValues(rows, trainer.buffers)
            trainer = replace(trainer, parts=(*trainer.parts, missing))
        dtype = trainer.buffers.dtype
        state.particles = state.particles.astype(dtype)
        has_history = bool(problem.training_state)
        history = History(
            model.owner.history_ if has_history else empty_history(*problem.scores),
            model.owner.n_iter_ if has_history else 0,
            name=type(model.owner).__name__,
            is_verbose=bool(rbm.verbose),
            n_updates=problem.n_updates,
            n_left=problem.n_iter - n_done if problem.is_planned else None,
        )
        recorder = problem.recorder(start, rows, history, dtype)
        stopping = judge_of(rbm, is_planned=problem.is_planned)
        if checkpoint is not None:
            stopping = deepcopy(checkpoint["stopping"])
        elif stopping is not None and stopping.keeps_best and start.published is not None:
            stopping.resume(recorder.score(start.published), start.published)
        return cls(
            problem,
            start,
            machine,
            state,
            rng,
            rows,
            ladder,
            phase,
            trainer,
            history,
            recorder,
            stopping,
            n_done,
        )

    def run(self, task: FitTask, interrupts: Interrupts) -> FitResult:
        """Make the epochs that are left.

        Parameters
        ----------
        task : FitTask
            Shown to callbacks, which may end the fit.
        interrupts : Interrupts
            Asked between updates.

        Returns
        -------
        result : FitResult
            Last good machine, or the best one; with the error if training diverged.
        """
        problem, error = self.problem, None

        def after_update() -> None:
            self.history.count_update()
            interrupts.check()

        epochs = run_epochs(
            self.trainer,
            self.machine,
            self.state,
            self.rows,
            problem.n_iter,
            self.rng,
            rows=problem.split[0],
            sample_weight=problem.sample_weight,
            is_planned=problem.is_planned,
            n_done=self.n_done,
            after_update=after_update,
        )
        try:
            with advised():
                for _ in range(self.n_done, problem.n_iter):
                    task.begin_epoch()
                    next(epochs)
                    self.n_done += 1
                    is_over = self._end_epoch()
                    if task.end_epoch(partial(self.checkpoint, is_over=is_over)) or is_over:
                        break
        except KeyboardInterrupt:
            warn_user(INTERRUPTED, UserWarning)
        except DivergenceError as divergence:
            error = divergence
        if self.stopping is not None and self.stopping.best is not None:
            self.machine, self.state.memory, self.reached = self.stopping.best, {}, None
            self.state.parts.pop("average", None)
        return self.result(error=error)

    def _end_epoch(self) -> bool:
        """Record an epoch if its time has come; True if training should end."""
        self.history.n_iter += 1
        notes = {"learning_rate": self.state.learning_rate} | self.phase.finish_epoch()
        if not (self.problem.model.rbm.verbose or (self.problem.is_planned and self._is_due)):
            return False
        machine = self._averaged()
        score, std_error = self.recorder.record(machine, self.state.particles, notes, self.rng)
        stopping = self.stopping
        return stopping is not None and stopping.add(score, machine, self.state, std_error)

    @property
    def _is_due(self) -> bool:
        """True for the first epoch and the last, and for those between that a record is worth."""
        is_followed = self.stopping is not None or self.problem.model.rbm.track_likelihood
        spacing = 1 if is_followed else -(-RECORDED_UPDATES // self.problem.n_updates)
        return self.n_done in (1, self.problem.n_iter) or self.n_done % spacing == 0

    def _averaged(self) -> Machine:
        """Machine that would be published now."""
        if self.reached is None or self.reached[0] != self.state.n_updates:
            machine = averaged(self.machine, self.state)
            if machine is not self.machine:  # an average of what was allowed before may not be now
                Constraints(self.problem.model.rbm.max_norm).enforce(machine.parameters)
            self.reached = self.state.n_updates, machine
        return self.reached[1]

    def result(
        self, *, error: DivergenceError | None = None, checkpoint: dict[str, Any] | None = None
    ) -> FitResult:
        """Result as of now, in the arrays of training.

        Parameters
        ----------
        error : DivergenceError, default=None
            Reason why training ends here, if it diverged.
        checkpoint : dict, default=None
            Kept for another process to go on from.
        """
        start, model, state = self.start, self.problem.model, self.state
        machine = gauged(self._averaged()).astype(start.dtype)
        arrays, particles = model.arrays(machine), state.particles.astype(start.dtype)
        n_particles = len(particles) // self.phase.n_chains
        is_hidden = "average" in state.parts or checkpoint is not None
        training_state = vars(state) | {
            "parameters": self.machine.parameters if is_hidden else None,
            "fingerprint": fingerprint(arrays),
            "n_components": model.rbm.n_components,
        }
        del training_state["particles"]
        if checkpoint is not None:
            training_state["checkpoint"] = checkpoint
        is_lost = error is not None and self.n_done == 0  # with its rows
        return FitResult(
            machine,
            arrays,
            particles[:n_particles],
            self.history.n_iter,
            self.history.columns,
            self.problem.streams | {"training": self.rng},
            start.data | self.problem.data_before if is_lost else start.data,
            {"replicas": particles[n_particles:], "betas": self.ladder.betas},
            training_state,
            error,
        )

    def snapshot(self) -> dict[str, Any]:
        """Attributes of the estimator as of now, in arrays of their own."""
        return deepcopy(self.problem.attributes(self.result()))

    def checkpoint(self, *, is_over: bool) -> dict[str, Any]:
        """Snapshot that a fit of the same rows goes on from; without epochs left if it is over."""
        n_iter, rows = self.problem.n_iter, self.rows
        checkpoint = {
            "n_done": n_iter if is_over else self.n_done,
            "n_iter": n_iter,
            "settings": fixed_settings(self.problem.model.owner),
            "statistics": self.problem.statistics,
            "stopping": self.stopping,
            "tracker": self.recorder.tracker,
            "draws": (rows.drawn, rows.is_fresh) if isinstance(rows, CompletedRows) else None,
        }
        return deepcopy(self.problem.attributes(self.result(checkpoint=checkpoint)))


def _rows(problem: Problem, start: Start, rng: np.random.Generator) -> Any:
    """Rows to learn from; draws of what is missing in them are those of a checkpoint, if any."""
    if problem.checkpoint is None:
        return problem.rows(start, rng)
    rows = problem.rows(start, deepcopy(rng))
    if problem.checkpoint["draws"] is not None:
        rows.drawn, rows.is_fresh = deepcopy(problem.checkpoint["draws"])
    return rows
