"""Fit of a classifier: rows with labels, objective and recorded scores."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array, hstack, issparse

from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, spread_rows, weighted_mean
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.monitoring import Score
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.estimators.fitting.problem import Problem, Start, format_attributes
from skrbm.estimators.fitting.recording import History, Notes, Recorder, empty_history
from skrbm.estimators.input.formats import RowFormat
from skrbm.estimators.input.validation import write_attributes
from skrbm.estimators.labels.label_model import LABEL_ARRAYS, LabelModel

NO_LABEL = -1  # replaces the index of a label in rows without a label
MAX_SCORED_ROWS = 1000  # labeled training rows: the standard error of an accuracy of 0.9 is 0.01


@final
@dataclass(frozen=True)
class LabelledRows:
    """Features and one-hot labels, which are joined for each mini-batch.

    Parameters
    ----------
    X : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
        Features returned by `RowFormat.read`.
    labels : ndarray of int of shape (n_samples,)
        Index of the label of each row, or `NO_LABEL` for a row without a label.
    n_labels : int
        Number of classes.
    """

    X: Any
    labels: Array
    n_labels: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of feature columns plus label columns."""
        return len(self.labels), self.X.shape[1] + self.n_labels

    def __getitem__(self, rows: Any) -> Any:
        """Selected rows with features and one-hot labels; sparse if the features are sparse.

        The label columns of a row without a label are zero.
        """
        X, labels = self.X[rows], self.labels[rows]
        labelled = np.flatnonzero(labels != NO_LABEL)
        if issparse(X):
            ones = np.ones(len(labelled), dtype=X.dtype)
            places = labelled, labels[labelled]
            columns = csr_array((ones, places), (len(labels), self.n_labels))
            return hstack([X, columns], "csr")
        joined = np.zeros((len(labels), self.shape[1]), dtype=X.dtype)
        joined[:, : X.shape[1]] = X
        joined[labelled, X.shape[1] + labels[labelled]] = 1
        return joined


@final
@dataclass(frozen=True)
class LabelProblem(Problem):
    """Problem of fitting a classifier to rows, each with or without a label.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Index of the label of each row, or `NO_LABEL` for a row without a label.
    """

    labels: Array = field(kw_only=True)

    scores = ("log_loss", "accuracy")

    @property
    def beside_rows(self) -> tuple[Array | None, ...]:
        return (*super().beside_rows, self.labels)

    @classmethod
    def of(
        cls,
        classifier: Any,
        X: Any,
        labels: Array,
        sample_weight: Array | None,
        *,
        is_planned: bool,
        resumes: bool,
    ) -> LabelProblem:
        """Create the problem from validated rows, and compute the total weight of each label.

        Parameters
        ----------
        classifier : RBMClassifier
            Copy of the classifier with `classes_`, `estimator_` and, if the classifier is fitted,
            the arrays of the label unit.
        X, labels, sample_weight, is_planned, resumes
            Fields of the class.

        Raises
        ------
        ValueError
            If the estimator has `track_likelihood=True`.
        """
        if classifier.estimator_.track_likelihood:
            raise ValueError(
                "track_likelihood expected to be False for the estimator of RBMClassifier, which "
                "records the log-loss of labels instead, got True. Set track_likelihood=False."
            )
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        is_labelled, n_labels = labels != NO_LABEL, len(classifier.classes_)
        label_weights = np.bincount(labels[is_labelled], weight[is_labelled], n_labels)
        counts: dict[str, Any] = {
            "label_weights": label_weights.astype(np.float64),  # integers without labeled rows
            "unlabeled_weight": float(weight[~is_labelled].sum()),
        }
        before = getattr(classifier.estimator_, "_data", {}) if resumes else {}
        if "label_weights" in before:
            is_counted = is_planned and "checkpoint" in getattr(classifier, "_training_state", {})
            counts = {name: before[name] + (0.0 if is_counted else counts[name]) for name in counts}
        model = LabelModel(classifier, counts["label_weights"])
        return cls(
            model,
            X,
            sample_weight,
            is_planned,
            resumes,
            candidates=np.flatnonzero(is_labelled),
            counts=counts,
            labels=labels,
        )

    def rows(self, start: Start, rng: np.random.Generator) -> LabelledRows:
        return LabelledRows(self.X, self.labels, len(self.model.owner.classes_))

    def objective(self, phase: NegativePhase) -> LabelObjective:
        """Weighted sum of the log-probability of the labels and the log-likelihood of the rows.

        Both weights are multiplied by the total weight of all rows so far, divided by the total
        weight of the labeled rows; the factor is one without labeled rows. The label term is
        therefore a mean over the labeled rows, and does not decrease when unlabeled rows are added.
        The generative weight is not increased beyond one, the weight of the likelihood in
        unsupervised training; a parameter `generative_weight` above one is used unchanged.
        """
        classifier, n_labelled = self.model.owner, self.counts["label_weights"].sum()
        n_rows = float(1 + self.counts["unlabeled_weight"] / n_labelled) if n_labelled else 1.0
        generative = classifier.generative_weight
        return LabelObjective(
            phase,
            n_rows * classifier.discriminative_weight,
            min(n_rows * generative, max(1, generative)),
        )

    def recorder(self, start: Start, rows: Any, history: History, dtype: Any) -> Recorder:
        labelled: Any = self.candidates
        _, held_out = self.split
        learned = labelled if held_out is None else np.setdiff1d(labelled, held_out)
        return LabelRecorder(history, rows, self.sample_weight, learned, held_out)

    def attributes(self, fitted: dict[str, Any]) -> dict[str, Any]:
        classifier, rbm = self.model.owner, copy(self.model.rbm)
        names = *LABEL_ARRAYS, "history_", "_training_state"  # of the classifier alone
        history = getattr(rbm, "history_", empty_history("pseudo_likelihood"))
        of_rbm = {name: value for name, value in fitted.items() if name not in names}
        write_attributes(rbm, {**format_attributes(rbm), **of_rbm, "history_": history})
        return {
            **{name: getattr(classifier, name, None) for name in RowFormat.learned},
            **{name: fitted[name] for name in (*names, "n_iter_")},
            "classes_": classifier.classes_,
            "estimator_": rbm,
        }


@final
@dataclass
class LabelRecorder(Recorder):
    """Recorder of the log-loss and the accuracy of the labels.

    Parameters
    ----------
    history : History
        History to which records are added.
    data : LabelledRows
        All rows, with and without labels.
    weight : ndarray of shape (n_samples,) or None
        Weights of the rows. If None, all rows have equal weights.
    learned : ndarray of int of shape (n_learned,)
        Indices of the labeled training rows.
    held_out : ndarray of int of shape (n_held_out,) or None
        Indices of the labeled validation rows. The score for early stopping is the negative
        log-loss of these rows. If None, it is the negative log-loss of at most `MAX_SCORED_ROWS`
        labeled training rows, or NaN without labeled training rows.
    """

    history: History
    data: LabelledRows
    weight: Array | None
    learned: Array
    held_out: Array | None

    def record(self, machine: Machine, particles: Array, notes: Notes, rng: Generator) -> Score:
        score, line = Score(float("nan")), "log-loss = nan, accuracy = nan"
        if len(self.learned):
            score, accuracy = self._scores(machine, spread_rows(self.learned, MAX_SCORED_ROWS))
            notes = notes | {"log_loss": -score.mean, "accuracy": accuracy}
            line = f"log-loss = {-score.mean:.4f}, accuracy = {accuracy:.4f}"
        score = Score(score.mean)
        if self.held_out is not None:
            score, share = self._scores(machine, self.held_out)
            notes = notes | {"validation_log_loss": -score.mean, "validation_accuracy": share}
            line += f", validation = {-score.mean:.4f}, {share:.4f}"
        self.history.add(notes, line)
        return score

    def score(self, machine: Machine) -> Score:
        return self._scores(machine, self.held_out)[0]

    def warn(self, machine: Machine, particles: Array, step_sum: Array | float) -> None:
        """Do nothing: training on the labels may reduce the likelihood without being a failure."""

    def _scores(self, machine: Machine, rows: Any) -> tuple[Score, float]:
        """Negative log-loss in nats, and accuracy, of the labeled rows with the indices `rows`."""
        v, labels = self.data[rows].astype(machine.dtype), self.data.labels[rows]
        distribution, indicators = Labels(machine), np.eye(self.data.n_labels, dtype=machine.dtype)
        field = distribution.without(indicators[labels], machine.hidden_field(v))
        log_proba = distribution.log_probabilities(field)
        weight = None if self.weight is None else self.weight[rows]
        of_labels = log_proba[np.arange(len(labels)), labels]
        is_right = (log_proba.argmax(axis=1) == labels).astype(np.float64)
        score = Score(weighted_mean(of_labels, weight), 0.0, of_labels, weight)
        return score, weighted_mean(is_right, weight)
