"""A fit of labelled rows."""

from __future__ import annotations

from copy import copy
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.discriminative import LabelObjective
from skrbm.estimators.fitting.fit import Passes
from skrbm.estimators.fitting.history import empty_history
from skrbm.estimators.labels.label_model import LabelModel
from skrbm.estimators.labels.label_recording import LabelRecorder
from skrbm.estimators.labels.labelled_rows import UNKNOWN, LabelledRows


@final
class LabelRun(Passes):
    """One call of a classifier's `fit` or `partial_fit`.

    Parameters
    ----------
    classifier : RBMClassifier
        Has the weights of the two objectives, `classes_`, `estimator_`, whose attributes are set,
        and, if fitted, the label's arrays.
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

    scores = ("log_loss", "accuracy")
    recorder: LabelRecorder

    def __init__(
        self,
        classifier: Any,
        rows: LabelledRows,
        sample_weight: Array | None,
        *,
        resumes: bool,
        n_iter: int,
        is_planned: bool,
    ) -> None:
        known, before = np.flatnonzero(rows.labels != UNKNOWN), {}
        counts = _label_counts(rows, sample_weight)
        if hasattr(classifier, "_plan") and resumes and is_planned:  # which has counted them
            counts = {name: getattr(classifier, name) for name in counts}
        elif resumes and hasattr(classifier, "_label_counts"):
            before = {name: getattr(classifier, name) for name in counts}
            counts = {name: counts[name] + before[name] for name in counts}
        vars(classifier).update(counts)
        super().__init__(
            LabelModel(classifier),
            rows.X,
            sample_weight,
            resumes=resumes,
            n_iter=n_iter,
            is_planned=is_planned,
            candidates=known,
        )
        self._before.append((classifier, before))
        self.data = rows
        learned = known if self.rows is None else np.intersect1d(known, self.rows)
        self.recorder = LabelRecorder(self.history, rows, sample_weight, learned, self.held_out)
        if resumes:
            self._keep_present()

    def objective(self) -> LabelObjective:
        return LabelObjective(self.phase, *_weights(self.owner))

    def _record(self, machine: Machine, notes: dict[str, float]) -> tuple[float, float]:
        return self.recorder.record(machine, notes), 0.0

    def _warn(self) -> None:
        """Nothing: labels may be learned at the expense of the rows' likelihood."""

    def outcome(self) -> dict[str, Any]:
        """Attributes of the classifier, its estimator among them."""
        model: Any = self.model
        features, label = model.arrays(self._published())
        rbm = copy(self.rbm)
        vars(rbm).update(features | self._chains() | {"n_iter_": self.owner.n_iter_})
        vars(rbm).setdefault("history_", empty_history("pseudo_likelihood"))
        return {
            **label,
            "estimator_": rbm,
            "history_": self.owner.history_,
            "_carried": self._carried(features | label),
        }


def _label_counts(rows: LabelledRows, sample_weight: Array | None) -> dict[str, Any]:
    """Total weights of the rows of each label, and of those without one, as a classifier has them."""
    weight = np.ones(len(rows.labels)) if sample_weight is None else sample_weight
    is_known = rows.labels != UNKNOWN
    counts = np.bincount(rows.labels[is_known], weight[is_known], rows.n_labels)
    return {
        "_label_counts": counts.astype(np.float64),
        "_unlabeled_count": float(weight[~is_known].sum()),
    }


def _weights(classifier: Any) -> tuple[float, float]:
    """Weights of the two objectives for a row, on average over all rows.

    Labels count by their mean over the rows that have one: rows without would otherwise shorten
    the steps of the labels. The likelihood follows, up to the step of a machine without labels.
    """
    n_labelled, n_unlabeled = classifier._label_counts.sum(), classifier._unlabeled_count
    n_rows = float(1 + n_unlabeled / n_labelled) if n_labelled else 1.0  # for each label
    generative = classifier.generative_weight
    return n_rows * classifier.discriminative_weight, min(n_rows * generative, max(1, generative))
