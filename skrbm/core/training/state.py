"""State of training besides the parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array
from skrbm.core.training.optimizer import Memory

OFFSET_RATE = 0.01  # weight of a mini-batch in the running means
SUCCESS_RATE = 0.1  # weight of the last try in the share of those that succeed


@final
@dataclass
class TrainingState:
    """State that training carries from one update to the next besides the parameters.

    Parameters
    ----------
    particles : ndarray of shape (n_chains * n_particles, n_hidden)
        Hidden states of the persistent chains, those of the model itself first.
    visible_offset : ndarray of shape (n_visible,), default=None
        Running mean of the data; None until the first centred pass.
    hidden_offset : ndarray of shape (n_hidden,), default=None
        Running mean of the hidden units under the data; None likewise.
    memory : dict
        Of the optimiser.
    n_updates : int, default=0
        Number of updates so far.
    slowdown : float, default=1.0
        Multiple of the learning rate that training itself has chosen.
    learning_rate : float, default=0.0
        Of the last update.
    n_rows : int, default=0
        Number of rows that were given to learn from.
    total_weight : float, default=0.0
        Sum of their weights.
    parts : dict of str to dict
        Numbers of each part of training, by its name.
    """

    particles: Array
    visible_offset: Array | None = None
    hidden_offset: Array | None = None
    memory: Memory = field(default_factory=dict)
    n_updates: int = 0
    slowdown: float = 1.0
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
    ) -> Array | None:
        """Weights of rows in multiples of the mean weight, and count the rows.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,) or None
            Positive weights; None for one each.
        n_samples : int
            Number of rows.
        rows : ndarray of shape (n_rows,), default=None
            Numbers of the rows that count; None for all.
        is_planned : bool
            Whether the mean is that of these rows alone, and not of all rows so far.

        Returns
        -------
        relative_weight : ndarray of shape (n_samples,) or None
            None where all weights have been one.
        """
        n_rows = n_samples if rows is None else len(rows)
        own = sample_weight if sample_weight is None or rows is None else sample_weight[rows]
        total = float(n_rows if own is None else own.sum())
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
            Mean of the data.
        mean_hidden : ndarray of shape (n_hidden,)
            Mean of the hidden units under the data.
        """
        visible, hidden = self._known_offsets()
        self.visible_offset = visible + OFFSET_RATE * (mean_visible - visible)
        self.hidden_offset = hidden + OFFSET_RATE * (mean_hidden - hidden)

    def offsets(self, dtype: Any) -> tuple[Array, Array]:
        """Running means in the precision of parameters, in arrays of their own."""
        visible, hidden = self._known_offsets()
        return visible.astype(dtype), hidden.astype(dtype)

    def _known_offsets(self) -> tuple[Array, Array]:
        if self.visible_offset is None or self.hidden_offset is None:
            raise ValueError(
                "Centred training expected running means of both layers, got none yet."
            )
        return self.visible_offset, self.hidden_offset


def recent_success(before: float, last: float) -> float:
    """Share of tries that succeed, as of late.

    Parameters
    ----------
    before : float
        That share before the last try.
    last : float
        Share of the last try itself that succeeded.

    Returns
    -------
    success : float
        Running mean.
    """
    return before + SUCCESS_RATE * (last - before)


def pause(success: float, least: float, shortest: int, longest: int) -> int:
    """Number of updates before the next try, more of them where tries rarely succeed.

    Parameters
    ----------
    success : float
        Share of tries that succeed.
    least : float
        Number of updates if all do; otherwise it is divided by their share.
    shortest, longest : int
        Bounds of the answer.

    Returns
    -------
    n_updates : int
        From this try to the next.
    """
    return round(min(max(least / max(success, 1e-9), shortest), longest))
