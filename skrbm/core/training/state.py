"""State of training besides the parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array
from skrbm.core.training.optimizer import Memory

OFFSET_RATE = 0.01  # weight of a mini-batch in the running means
SUCCESS_RATE = 0.1  # weight of the last attempt in the running success rate


@final
@dataclass
class TrainingState:
    """State of training that is kept between updates, besides the parameters.

    Parameters
    ----------
    particles : ndarray of shape (n_temperatures * n_particles, n_hidden)
        Hidden states of the persistent chains: `n_particles` chains at each temperature, those at
        temperature 1 first. Algorithms without persistent chains leave the array unchanged.
    visible_offset : ndarray of shape (n_visible,), default=None
        Running mean of the data. In centered training, the visible offset is set to it before every
        epoch and after every tenth update. It is None until the first centered epoch.
    hidden_offset : ndarray of shape (n_hidden,), default=None
        Running mean of the expected hidden states under the data, to which the hidden offset is set
        in the same way. It is None until the first centered epoch.
    memory : dict
        State of the optimizer.
    n_updates : int, default=0
        Number of updates so far.
    rate_factor : float, default=1.0
        Factor of the learning rate. With the schedule "adaptive", `EarlyStopping` lowers it when
        the scores reach a plateau.
    learning_rate : float, default=0.0
        Learning rate of the last update, before it is multiplied by the mean weight of the
        mini-batch and changed by parts.
    n_rows : int, default=0
        Number of training rows in all runs so far.
    total_weight : float, default=0.0
        Sum of the weights of these rows.
    parts : dict of str to dict
        State of each part of training, by the name of the part.
    """

    particles: Array
    visible_offset: Any = None
    hidden_offset: Any = None
    memory: Memory = field(default_factory=dict)
    n_updates: int = 0
    rate_factor: float = 1.0
    learning_rate: float = 0.0
    n_rows: int = 0
    total_weight: float = 0.0
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def relative_weight(
        self,
        sample_weight: Array | None,
        n_samples: int,
        rows: Array | None = None,
        *,
        is_planned: bool,
        is_counted: bool = False,
    ) -> Array | None:
        """Count the training rows, and divide the weights of all rows by the mean weight.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,) or None
            Positive weights of the rows. If None, all rows have a weight of one.
        n_samples : int
            Number of rows.
        rows : ndarray of shape (n_rows,), default=None
            Indices of the training rows; only these are counted. If None, all rows are counted.
        is_planned : bool
            If True, the mean weight is computed from the training rows of this run. If False, it is
            computed from the training rows of all runs so far.
        is_counted : bool, default=False
            Whether the rows are already counted, as in a run that is resumed.

        Returns
        -------
        relative_weight : ndarray of shape (n_samples,) or None
            Weights divided by the mean weight. None if `sample_weight` is None and the mean weight
            is 1.
        """
        n_rows = n_samples if rows is None else len(rows)
        weight = sample_weight if sample_weight is None or rows is None else sample_weight[rows]
        total = float(n_rows if weight is None else weight.sum())
        if not is_counted:
            self.n_rows += n_rows
            self.total_weight += total
        mean = total / n_rows if is_planned else self.total_weight / self.n_rows
        if sample_weight is None:
            return None if mean == 1 else np.full(n_samples, 1 / mean)
        return sample_weight / mean

    def follow(self, mean_visible: Array, mean_hidden: Array) -> None:
        """Move the running means towards the means of a mini-batch.

        Parameters
        ----------
        mean_visible : ndarray of shape (n_visible,)
            Mean of the visible states over the mini-batch.
        mean_hidden : ndarray of shape (n_hidden,)
            Mean of the expected hidden states over the mini-batch.
        """
        visible, hidden = self.visible_offset, self.hidden_offset
        self.visible_offset = visible + OFFSET_RATE * (mean_visible - visible)
        self.hidden_offset = hidden + OFFSET_RATE * (mean_hidden - hidden)

    def offsets(self, dtype: Any) -> tuple[Array, Array]:
        """Copies of the running means of both layers, converted to the given dtype."""
        return self.visible_offset.astype(dtype), self.hidden_offset.astype(dtype)


def mapped(record: Any, function: Callable[[Array], Array]) -> Any:
    """Apply a function to all arrays in nested dictionaries; keep scalars and other values."""
    if isinstance(record, dict):
        return {name: mapped(value, function) for name, value in record.items()}
    return function(record) if getattr(record, "ndim", 0) else record


def recent_success(before: float, last: float) -> float:
    """Update the running mean of the success rate after an attempt.

    Parameters
    ----------
    before : float
        Running mean before the attempt.
    last : float
        Success rate of the attempt.

    Returns
    -------
    success : float
        Running mean after the attempt.
    """
    return before + SUCCESS_RATE * (last - before)


def pause(success: float, at_success: float, shortest: int, longest: int) -> int:
    """Number of updates until the next attempt: `at_success` / `success`, within bounds.

    Parameters
    ----------
    success : float
        Success rate of the attempts.
    at_success : float
        Number of updates at a success rate of 1, before the bounds are applied.
    shortest, longest : int
        Bounds of the result. If `longest` is less than `shortest`, the result is `longest`.

    Returns
    -------
    n_updates : int
        Number of updates from this attempt to the next.
    """
    return round(min(max(at_success / max(success, 1e-9), shortest), longest))
