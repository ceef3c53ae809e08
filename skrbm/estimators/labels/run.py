"""A fit of labelled rows: it starts or resumes, makes its passes, and publishes the outcome."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, final

import numpy as np

from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.core.sampling import Ladder
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.initialization import (
    initial_machine,
    initial_particles,
    merged_statistics,
    resting_layer,
)
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.state import TrainingState
from skrbm.core.training.transforms import Constraints
from skrbm.estimators.callbacks import FitTask
from skrbm.estimators.history import History, empty_history
from skrbm.estimators.labels.rows import (
    UNKNOWN,
    LabelledRows,
    joint_arrays,
    joint_layer,
    joint_machine,
    started_labels,
)
from skrbm.estimators.model import Carried, fingerprint, raw_machine
from skrbm.estimators.rows import row_statistics, split_rows
from skrbm.estimators.settings import batch_rows, judge_of, trainer_of, working_copy
from skrbm.estimators.validation import InterruptWarned, advised, check_width, floating_type

RECORDED_ROWS = 1000


@final
class LabelRun:
    """One call of a classifier's `fit` or `partial_fit`.

    Parameters
    ----------
    classifier : RBMClassifier
        Has the weights of the two objectives, `classes_` and, if fitted, the label's arrays.
    rbm : BaseRBM
        Its estimator, whose attributes are set.
    rows : LabelledRows
        Checked features, and labels.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights.
    resumes : bool
        Whether to go on from the public arrays.
    n_iter : int
        Largest number of passes.
    is_planned : bool
        Whether training is over after them.
    """

    def __init__(
        self,
        classifier: Any,
        rbm: Any,
        rows: LabelledRows,
        sample_weight: Array | None,
        *,
        resumes: bool,
        n_iter: int,
        is_planned: bool,
    ) -> None:
        self.classifier, self.rbm, self.data, self.weight = classifier, rbm, rows, sample_weight
        self.n_iter, self.is_planned = n_iter, is_planned
        self.dtype = floating_type(rows.X, np.float64)
        carried: Carried = {}
        if resumes:
            machine, carried = self._resume()
            self.dtype = rbm.components_.dtype
        else:
            machine = self._start()
        if is_planned:
            carried["slowdown"] = 1.0
        self.rng = rbm._rng = deepcopy(rbm._rng)
        self.rows: Array | None = None
        self.held_out: Array | None = None
        if is_planned and rbm.early_stopping:
            known = np.flatnonzero(rows.labels != UNKNOWN)
            self.rows, self.held_out = split_rows(rbm, rows.shape[0], known)
        n_rows = rows.shape[0] if self.rows is None else len(self.rows)
        n_batch = batch_rows(rbm, n_rows)
        ladder = Ladder.of(rbm.n_temperatures)
        base = self._layer(rbm._statistics)
        self.phase = ALGORITHMS[rbm.algorithm].create(rbm.n_gibbs_steps, base, ladder)
        particles = self._particles(machine, carried.pop("particles", None), n_batch)
        self.machine = working_copy(machine, self.dtype)
        variance = np.concatenate([rbm._statistics[2], self._frequencies * (1 - self._frequencies)])
        trainer = trainer_of(rbm, self.machine, self.phase, n_batch, self.dtype, variance)
        weights = classifier.discriminative_weight, classifier.generative_weight
        self.trainer = replace(trainer, negative_phase=LabelObjective(self.phase, *weights))
        self.state = TrainingState(particles.astype(trainer.work.dtype), **carried)
        self.judge = judge_of(rbm, is_planned=is_planned)
        self.history = History(classifier, bool(rbm.verbose))

    def train(self, task: FitTask) -> None:
        """Make the passes, and publish what they lead to whatever stops them."""
        with deferred_interrupts() as interrupts:
            passes = self.trainer.run(
                self.machine,
                self.state,
                self.data,
                self.n_iter,
                self.rng,
                rows=self.rows,
                sample_weight=self.weight,
                is_planned=self.is_planned,
                after_update=interrupts.check,
            )
            try:
                with InterruptWarned(), advised():
                    for _ in range(self.n_iter):
                        task.begin_pass()
                        next(passes)
                        is_over = self._end_pass()
                        if task.end_pass(self.snapshot) or is_over:
                            break
            finally:
                self._publish()
            task.end(self.snapshot)
            with InterruptWarned():
                interrupts.check()

    def snapshot(self) -> dict[str, Any]:
        """The classifier's attributes as of now, in arrays of their own."""
        own, outcome = self._outcome()
        rbm = deepcopy(self.rbm)
        vars(rbm).update(deepcopy(own))
        history = deepcopy(self.classifier.history_)
        return deepcopy(outcome) | {"estimator_": rbm, "history_": history}

    def _start(self) -> Machine:
        """Machine that resembles the rows' statistics, and new streams."""
        rbm = self.rbm
        rbm._model.open_streams()
        rbm.n_iter_ = self.classifier.n_iter_ = 0
        rbm.history_ = empty_history("pseudo_likelihood")
        self.classifier.history_ = empty_history("log_loss", "accuracy")
        rbm._statistics = rbm._first_statistics = row_statistics(self.data.X, self.weight)
        n_samples, mean, variance = rbm._statistics
        rbm._varying = (variance > 0) | (n_samples == 1)
        rbm._n_components = rbm.n_components
        self.classifier._label_counts = self._counts()
        hidden = resting_layer(rbm._hidden_type, rbm.n_components)
        frequencies = self._frequencies
        return initial_machine(
            self._layer(rbm._statistics),
            hidden,
            np.concatenate([mean, frequencies]),
            np.concatenate([variance, frequencies * (1 - frequencies)]),
            rbm._rng,
        )

    def _resume(self) -> tuple[Machine, Carried]:
        """Machine behind the public arrays, and what its training carries on."""
        rbm, classifier = self.rbm, self.classifier
        own = row_statistics(self.data.X, self.weight)
        rbm._statistics = merged_statistics(rbm._statistics, own)
        rbm._varying = rbm._varying | (own[2] > 0)
        machine = joint_machine(classifier, rbm, varying=rbm._varying)
        check_width(self.data.X, machine.visible.n_columns - self.data.n_labels, rbm)
        classifier._label_counts = classifier._label_counts + self._counts()
        public = {name: getattr(rbm, name) for name in rbm._public_names}
        for name in ("label_components_", "intercept_label_"):
            public[name] = getattr(classifier, name)
        carried = classifier._carried
        is_published = carried["published"] == fingerprint(public)
        return raw_machine(machine, carried, is_published=is_published, averages=rbm.average)

    def _counts(self) -> Array:
        """Weight of the rows of every label."""
        known = self.data.labels != UNKNOWN
        weight = None if self.weight is None else self.weight[known]
        counts = np.bincount(self.data.labels[known], weight, self.data.n_labels)
        return np.asarray(counts, dtype=np.float64)

    @property
    def _frequencies(self) -> Array:
        counts: Array = self.classifier._label_counts
        return np.asarray(counts / max(counts.sum(), 1))

    def _layer(self, statistics: tuple[float, Array, Array]) -> Any:
        """Visible layer without a field that has the statistics of some rows."""
        n_samples, mean, variance = statistics
        rbm = self.rbm
        options = rbm._unit_options(rbm._varying)
        features = rbm._visible_type.start(mean, variance, n_samples, **options)
        return joint_layer(features, started_labels(self._frequencies, n_samples))

    def _particles(self, machine: Machine, old: Any, n_batch: int) -> Array:
        """Chains as they are; new ones where another number is asked for."""
        n_particles = self.phase.n_chains * (self.rbm.n_particles or n_batch)
        shape = n_particles, machine.hidden.n_columns
        if np.shape(old) == shape:
            return np.asarray(old)
        base = self._layer(self.rbm._statistics)
        return initial_particles(machine, base, n_particles, self.rng)

    def _end_pass(self) -> bool:
        """Record a pass; whether training should end."""
        self.classifier.n_iter_ += 1
        notes = {"learning_rate": self.state.learning_rate, **self.phase.finish_pass()}
        if not (self.is_planned or self.rbm.verbose):
            return False
        machine = self._averaged()
        rows = np.arange(self.data.shape[0]) if self.rows is None else self.rows
        known = rows[self.data.labels[rows] != UNKNOWN]
        if len(known):
            notes |= self._scores(machine, spread_rows(known, RECORDED_ROWS), "")
        loss, accuracy = (notes.get(name, float("nan")) for name in ("log_loss", "accuracy"))
        score = -loss
        if self.held_out is not None:
            notes |= self._scores(machine, self.held_out, "validation_")
            score = -notes["validation_log_loss"]
        self.history.add(notes, f"log-loss = {loss:.4f}, accuracy = {accuracy:.4f}")
        return self.judge is not None and self.judge.add(score, machine, self.state)

    def _scores(self, machine: Machine, rows: Array, prefix: str) -> dict[str, float]:
        """Log-loss in nats and accuracy of some labelled rows."""
        v, labels = self.data[rows].astype(machine.dtype), self.data.labels[rows]
        law = Labels(machine)
        field = law.without(
            np.eye(self.data.n_labels, dtype=machine.dtype)[labels], machine.hidden_field(v)
        )
        log_proba = law.log_probabilities(field)
        weight = None if self.weight is None else self.weight[rows]
        own = log_proba[np.arange(len(labels)), labels]
        is_right = (log_proba.argmax(axis=1) == labels).astype(np.float64)
        return {
            f"{prefix}log_loss": -mean_of_rows(own, weight),
            f"{prefix}accuracy": mean_of_rows(is_right, weight),
        }

    def _averaged(self) -> Machine:
        """What would be published now."""
        machine = self.state.averaged(self.machine)
        if machine is not self.machine:
            Constraints(self.rbm.max_norm).enforce(machine.parameters)
        return machine

    def _outcome(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Attributes of the estimator and of the classifier."""
        machine, state = self._averaged(), self.state
        own, arrays = joint_arrays(self.rbm, machine, self.dtype)
        raw = None if state.average is None else self.machine.parameters
        carried = vars(state) | {"raw": raw, "published": fingerprint(own | arrays)}
        n_particles = len(state.particles) // self.phase.n_chains
        own |= {"h_samples_": state.particles[:n_particles].astype(self.dtype)}
        own |= {"n_iter_": self.classifier.n_iter_}
        return own, arrays | {"_carried": carried, "n_iter_": self.classifier.n_iter_}

    def _publish(self) -> None:
        """Write what training has arrived at, or the best of it, to estimator and classifier."""
        judge = self.judge
        if judge is not None and judge.best is not None:
            self.machine, self.state.average, self.state.memory = judge.best, None, {}
        own, outcome = self._outcome()
        vars(self.rbm).update(own)
        vars(self.classifier).update(outcome)
