"""The passes of a fit, whatever it learns from: how they are made, judged, ended and published."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skrbm.core.centering import gauged
from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.parts.average import averaged
from skrbm.core.training.parts.constraints import Constraints
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.parts.missing import CompletedRows
from skrbm.core.training.state import TrainingState
from skrbm.estimators.fitting.callbacks import FitTask
from skrbm.estimators.fitting.history import History
from skrbm.estimators.fitting.resume import Plan, plan_of, put_back
from skrbm.estimators.fitting.settings import (
    algorithm_of,
    batch_rows,
    judge_of,
    trainer_of,
    working_copy,
)
from skrbm.estimators.fitting.start_fit import Beginning, Carried, first_particles
from skrbm.estimators.inference.model import Model, fingerprint
from skrbm.estimators.input.validation import InterruptWarned, advised, check_parameter

RECORDED_UPDATES = 75  # a record of few rows costs about as much as four of them


class Passes(ABC):
    """One call of `fit` or `partial_fit`.

    It trains a copy of the machine that an estimator is; whatever ends the passes, `publish` writes
    it back.

    Parameters
    ----------
    model : Model
        To be trained.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Checked rows.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights.
    resumes : bool
        Whether to go on from the arrays, chains and streams of a fitted estimator.
    n_iter : int
        Largest number of passes.
    is_planned : bool
        Whether training is over after them: rows may be held out, and the rate may fall to zero.
    candidates : ndarray of shape (n_candidates,), default=None
        Numbers of the rows that may be held out; None for all.
    """

    scores: ClassVar[tuple[str, ...]]  # columns that every history has
    recorder: Any  # of the rows that a subclass knows; scores the machine that was published before

    def __init__(
        self,
        model: Model,
        X: Any,
        sample_weight: Array | None,
        *,
        resumes: bool,
        n_iter: int,
        is_planned: bool,
        candidates: Array | None = None,
    ) -> None:
        self.model, self.owner, self.rbm = model, model.owner, model.rbm
        self.data, self.weight = X, sample_weight
        self.n_iter, self.is_planned = n_iter, is_planned
        plan = vars(self.owner).pop("_plan", None)
        self.plan: Plan | None = plan if resumes and is_planned else None
        self.n_done: int = 0 if self.plan is None else self.plan["n_done"]
        begin = Beginning(
            model,
            X,
            sample_weight,
            self.scores,
            resumes=resumes,
            plan=self.plan,
            holds_out=is_planned and self.rbm.early_stopping,
            candidates=candidates,
        )
        self.statistics = begin.statistics
        self._before = [(self.rbm, begin.before)]
        rbm, carried = self.rbm, begin.carried
        if is_planned:
            carried["slowdown"] = 1.0
        self.rng = rbm._rng = deepcopy(rbm._rng)
        self.rows, self.held_out = begin.split
        self.n_rows = int(X.shape[0] if self.rows is None else len(self.rows))
        n_batch = batch_rows(rbm, self.n_rows)
        self.dtype = check_parameter(rbm, "components_", 2).dtype
        self.ladder, self.phase = algorithm_of(rbm, model.base_layer(rbm._first_statistics))
        particles = first_particles(model, begin.machine, self.phase, n_batch, begin.rows_of_modes)
        self.machine = working_copy(begin.machine, self.dtype)
        _, variance = model.moments(rbm._statistics)
        n_labels = len(variance) - len(rbm._kurtosis)  # whose tails do not matter
        kurtosis = np.append(rbm._kurtosis, np.zeros(n_labels))
        self.trainer = trainer_of(
            rbm,
            self.machine,
            self.objective(),
            n_batch,
            len(particles),
            self.dtype,
            variance,
            kurtosis,
        )
        self.state = TrainingState(particles.astype(self.trainer.buffers.dtype), **carried)
        self.completed: CompletedRows | None = None
        self.judge = judge_of(rbm, is_planned=is_planned)
        n_updates = -(-self.n_rows // n_batch)
        total = n_iter - self.n_done if is_planned else None
        self.history = History(self.owner, bool(rbm.verbose), n_updates, total)
        is_followed = self.judge is not None or rbm.track_likelihood
        self._spacing = 1 if is_followed else -(-RECORDED_UPDATES // n_updates)  # of records

    @abstractmethod
    def objective(self) -> NegativePhase | LabelObjective:
        """Estimator of both phases of an update."""

    @abstractmethod
    def _record(self, machine: Machine, notes: dict[str, float]) -> tuple[float, float]:
        """Write a pass to the history; what judges it and its standard error, in nats."""

    @abstractmethod
    def _warn(self) -> None:
        """Say what is wrong with a fit that is over."""

    @abstractmethod
    def outcome(self) -> dict[str, Any]:
        """Attributes of the estimator: public arrays, chains, streams and what is carried on."""

    def _keep_present(self) -> None:
        """Let only a better machine replace the one that was published before."""
        if self.plan is None and self.judge is not None and self.judge.keeps_best:
            machine = self.model.machine()
            self.judge.resume(self.recorder.score(machine), machine)

    def train(self, task: FitTask) -> None:
        """Make the passes, and publish what they lead to whatever stops them."""
        with deferred_interrupts(stops_for_sigterm=True) as interrupts:

            def after_update() -> None:
                self.history.tick()
                interrupts.check()

            if self.plan is not None:
                put_back(self.plan, self, self._moving())
            passes = run_epochs(
                self.trainer,
                self.machine,
                self.state,
                self.data,
                self.n_iter,
                self.rng,
                rows=self.rows,
                sample_weight=self.weight,
                is_planned=self.is_planned,
                n_done=self.n_done,
                after_update=after_update,
            )
            n_iter = self.owner.n_iter_
            try:
                with InterruptWarned(), advised():
                    for _ in range(self.n_done, self.n_iter):
                        task.begin_pass()
                        next(passes)
                        self.n_done += 1
                        is_over = self._end_pass()
                        if task.end_pass(partial(self.checkpoint, is_over=is_over)) or is_over:
                            break
            except DivergenceError:
                if self.owner.n_iter_ == n_iter:
                    self._forget_rows()
                raise
            finally:
                self.publish()
            task.end(self.snapshot)
            if self.is_planned:
                self._warn()
            with InterruptWarned():
                interrupts.check()

    def _end_pass(self) -> bool:
        """Record a pass if its time has come; whether training should end."""
        self.owner.n_iter_ += 1
        notes = {"learning_rate": self.state.learning_rate} | self.phase.finish_epoch()
        is_due = self.n_done in (1, self.n_iter) or self.n_done % self._spacing == 0
        if not (self.rbm.verbose or (self.is_planned and is_due)):
            return False
        machine = self._averaged()
        score, std_error = self._record(machine, notes)
        return self.judge is not None and self.judge.add(score, machine, self.state, std_error)

    def _forget_rows(self) -> None:
        """Go back to the statistics of the rows before these."""
        for estimator, attributes in self._before:
            vars(estimator).update(attributes)

    def _averaged(self) -> Machine:
        """What would be published now."""
        machine = averaged(self.machine, self.state)
        if machine is not self.machine:  # an average of what was allowed before may not be now
            Constraints(self.rbm.max_norm).enforce(machine.parameters)
        return machine

    def publish(self) -> None:
        """Write what training has arrived at, or the best of it, to the estimator."""
        if self.judge is not None and self.judge.best is not None:
            self.machine, self.state.memory = self.judge.best, {}
            self.state.parts.pop("average", None)
        vars(self.owner).update(self.outcome())

    def snapshot(self) -> dict[str, Any]:
        """The estimator's attributes as of now, in arrays of their own."""
        return deepcopy(self.outcome())

    def checkpoint(self, *, is_over: bool) -> dict[str, Any]:
        """The same, with the plan of the passes that are left."""
        plan = plan_of(self, self._moving(), is_over=is_over)
        return deepcopy(self.outcome() | {"_plan": plan})

    def _moving(self) -> list[tuple[Any, Sequence[str]]]:
        """What passes change beside the machine: objects, and names of their attributes."""
        moving: list[tuple[Any, Sequence[str]]] = [(self.state, list(vars(self.state)))]
        return moving if self.judge is None else [*moving, (self.judge, ("plateau", "best"))]

    def _published(self) -> Machine:
        """What would be published now, in the precision of the public arrays."""
        return gauged(self._averaged()).astype(self.dtype)

    def _chains(self) -> dict[str, Array]:
        """Chains and temperatures as attributes of an estimator."""
        chains = self.state.particles.astype(self.dtype)
        n_particles = len(chains) // self.phase.n_chains
        return {
            "h_samples_": chains[:n_particles],
            "_replicas": chains[n_particles:],
            "_betas": self.ladder.betas,
        }

    def _carried(self, public: dict[str, Array]) -> Carried:
        """What training carries on beside public arrays and chains."""
        carried = vars(self.state) | {
            "raw": self.machine.parameters if "average" in self.state.parts else None,
            "published": fingerprint(public),
        }
        del carried["particles"]
        return carried
