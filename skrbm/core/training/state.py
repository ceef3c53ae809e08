"""What training carries on besides the parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import IN_PLACE_BYTES, Array, row_blocks
from skrbm.core.training.optimizer import Memory

OFFSET_RATE = 0.01
RECENCY = 3.0  # the average is that of the last quarter or so of all updates, at any time
# After so many updates the parameters of every tenth stand for those of ten, which hardly differ.
MANY, STRIDE = 100, 10
SUCCESS_RATE = 0.1  # weight of the last try in the share of those that succeed


@final
@dataclass
class TrainingState:
    """What training carries from one update to the next besides the parameters.

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
    average : dict of str to ndarray, default=None
        Averaged parameters and offsets; None where none are kept.
    n_averaged : int, default=0
        Number of updates since the average began.
    n_pending : int, default=0
        Number of the last of them that it does not know.
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
    jump_acceptance : float, default=1.0
        Share of the chains' jumps to the data that were accepted lately.
    next_jump : int, default=0
        Number of updates before they try again.
    divergent_share : float, default=1.0
        Share of the gradients lately looked at that would have diverged without damping.
    next_look : int, default=0
        Number of updates before the next look.
    modes : ndarray of shape (n_modes, n_visible), default=None
        Visible states in modes that lie far apart, to which chains may always jump.

    References
    ----------
    .. [1] Polyak, Juditsky (1992), "Acceleration of stochastic approximation by averaging", SIAM
       Journal on Control and Optimization 30(4), 838-855. :doi:`10.1137/0330046`
    .. [2] Shamir, Zhang (2013), "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML, PMLR 28(1), 71-79, section 4.
    """

    particles: Array
    visible_offset: Array | None = None
    hidden_offset: Array | None = None
    memory: Memory = field(default_factory=dict)
    average: dict[str, Array] | None = None
    n_averaged: int = 0
    n_pending: int = 0
    n_updates: int = 0
    slowdown: float = 1.0
    learning_rate: float = 0.0
    n_rows: int = 0
    total_weight: float = 0.0
    jump_acceptance: float = 1.0
    next_jump: int = 0
    divergent_share: float = 1.0
    next_look: int = 0
    modes: Array | None = None

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

    def follow(self, mean_visible: Array, mean_hidden: Array) -> tuple[Array, Array]:
        """Move the offsets towards the means of a mini-batch.

        Parameters
        ----------
        mean_visible : ndarray of shape (n_visible,)
            Mean of the data.
        mean_hidden : ndarray of shape (n_hidden,)
            Mean of the hidden units under the data.

        Returns
        -------
        visible_offset, hidden_offset : ndarray
            The new offsets.
        """
        self.visible_offset = _moved(self.visible_offset, mean_visible)
        self.hidden_offset = _moved(self.hidden_offset, mean_hidden)
        return self.visible_offset, self.hidden_offset

    def add_to_average(self, machine: Machine) -> None:
        """Move the average towards the present parameters.

        Late updates weigh more than early ones, by the third power of their number, so that the
        average [1]_ forgets the start and needs no horizon [2]_.

        Parameters
        ----------
        machine : Machine
            In the coordinates of the step, centred or plain: averages of plain parameters would
            depend on the origin of the data.
        """
        present = machine.parameters | machine.offsets
        if self.average is None or self.average.keys() != present.keys():
            self.average = {name: array.copy() for name, array in present.items()}
            self.n_averaged = self.n_pending = 0
        self.n_averaged += 1
        self.n_pending += 1
        if self.n_averaged <= MANY or self.n_pending == STRIDE:
            _blend(self.average, present, self._pending_share)
            self.n_pending = 0

    @property
    def _pending_share(self) -> float:
        """Weight in the average of the updates that it does not know yet."""
        return min(1.0, self.n_pending * (1 + RECENCY) / (self.n_averaged + RECENCY))

    def averaged(self, machine: Machine) -> Machine:
        """Plain machine that training has arrived at.

        Parameters
        ----------
        machine : Machine
            Plain, as of the last update.

        Returns
        -------
        machine : Machine
            Of the averaged parameters if there are any, else the same.
        """
        if self.average is None:
            return machine
        offsets = self.average.get("visible_offset"), self.average.get("hidden_offset")
        moved = recenter(machine.astype(machine.dtype, copy=True), *offsets)
        average = self.average
        if self.n_pending:
            average = {name: array.copy() for name, array in average.items()}
            _blend(average, moved.parameters, self._pending_share)
        moved.assign(average)
        return recenter(moved, None, None)


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


def _blend(average: dict[str, Array], present: dict[str, Array], share: float) -> None:
    """Move an average towards present arrays, in place."""
    for name, array in present.items():
        for rows in row_blocks(array, IN_PLACE_BYTES):
            own, other = average[name][rows], array[rows]
            own -= other  # three steps in place are faster than one with a copy
            own *= 1 - share
            own += other


def _moved(offset: Array | None, mean: Array) -> Array:
    return mean if offset is None else offset + OFFSET_RATE * (mean - offset)
