"""What a fit of labelled rows notes of every pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.estimators.fitting.history import History
from skrbm.estimators.labels.labelled_rows import LabelledRows

RECORDED_ROWS = 1000


@final
@dataclass
class LabelRecorder:
    """What a fit of labelled rows notes of every pass.

    Parameters
    ----------
    history : History
        To write to.
    data : LabelledRows
        All rows.
    weight : ndarray of shape (n_samples,) or None
        Their weights; None weighs them alike.
    learned : ndarray of int of shape (n_learned,)
        Numbers of the labelled rows that are learned from.
    held_out : ndarray of int of shape (n_held_out,) or None
        Numbers of the labelled rows whose log-loss decides; None for those that are learned from.
    """

    history: History
    data: LabelledRows
    weight: Array | None
    learned: Array
    held_out: Array | None

    def record(self, machine: Machine, notes: dict[str, float]) -> float:
        """Record a pass.

        Parameters
        ----------
        machine : Machine
            What would be published now.
        notes : dict of str to float
            What the algorithm says of the pass.

        Returns
        -------
        score : float
            Mean log-probability of the labels that decide, in nats; NaN if there are none.
        """
        loss = accuracy = float("nan")
        if len(self.learned):
            loss, accuracy = self._scores(machine, spread_rows(self.learned, RECORDED_ROWS))
            notes = notes | {"log_loss": loss, "accuracy": accuracy}
        deciding, line = loss, f"log-loss = {loss:.4f}, accuracy = {accuracy:.4f}"
        if self.held_out is not None:
            deciding, share = self._scores(machine, self.held_out)
            notes = notes | {"validation_log_loss": deciding, "validation_accuracy": share}
            line += f", validation = {deciding:.4f}, {share:.4f}"
        self.history.add(notes, line)
        return -deciding

    def score(self, machine: Machine) -> float:
        """Mean log-probability of the labels that decide, in nats."""
        return -self._scores(machine, self.learned if self.held_out is None else self.held_out)[0]

    def _scores(self, machine: Machine, rows: Array) -> tuple[float, float]:
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
        return -mean_of_rows(own, weight), mean_of_rows(is_right, weight)
