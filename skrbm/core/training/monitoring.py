"""Record of an epoch, and early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from skrbm.core.likelihood.pseudo import monitor
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows, spread_rows
from skrbm.core.training.state import TrainingState

N_RECORD_ROWS = 100  # rows, and chains, whose free energies are recorded
GAP_ROWS, ROWS_PER_GAP_ROW = (100, 1000), 50  # rows compared: bounds, and rows of an epoch for each
RATE_DIVISOR = 5.0  # as in scikit-learn's SGDClassifier and MLPClassifier
MIN_RATE = 1e-6  # learning rate at which "adaptive" ends, as there


def record(
    machine: Machine,
    v: Any,
    particles: Array | None,
    n_samples: int | None = None,
    sample_weight: Array | None = None,
    is_counted: Array | None = None,
) -> dict[str, float]:
    """Numbers of a pass for the history, from some rows that are always the same.

    Parameters
    ----------
    machine : Machine
        As learned so far.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Training data, or evenly spaced rows of them.
    particles : ndarray of shape (n_particles, n_hidden) or None
        Hidden states of the chains that sample the machine; None where none do.
    n_samples : int, default=None
        Number of rows of a pass, of whose cost this is a small part; None for those of `v`.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the data; None weighs them alike.
    is_counted : ndarray of bool of shape (n_rows, n_units), default=None
        Units of each row whose conditional distributions are scored; None for all.

    Returns
    -------
    history : dict of str to float
        "pseudo_likelihood" in nats per row; "mean_activation" of the hidden units under the data;
        "chain_gap", by how many nats the chains' mean free energy is above the data's, if there are
        chains; where values of the data are means of states, above that of such states.
    """
    rows = spread_rows(v, N_RECORD_ROWS).astype(machine.dtype, copy=False)
    weight = None if sample_weight is None else spread_rows(sample_weight, N_RECORD_ROWS)
    notes = {
        "pseudo_likelihood": monitor(machine, v, n_samples, sample_weight, is_counted),
        "mean_activation": mean_of_rows(machine.mean_hidden(rows).mean(axis=1), weight),
    }
    if particles is not None:
        h = spread_rows(particles, N_RECORD_ROWS).astype(machine.dtype, copy=False)
        rng = np.random.default_rng(0)
        chains = machine.sample_visible(h, rng)
        # Means of states are likelier than the states: the free energy is concave.
        states = machine.visible.drawn(rows.copy(), rng)
        notes["chain_gap"] = free_energy_gap(machine, chains, states, reference_weight=weight)
    return notes


def free_energy_gap(
    machine: Machine,
    v: Any,
    reference: Any,
    n_samples: int | None = None,
    *,
    sample_weight: Array | None = None,
    reference_weight: Array | None = None,
) -> float:
    """Mean free energy of some rows above that of others.

    Over-fitting widens the gap between held-out and training rows [1]_, section 6.

    Parameters
    ----------
    machine : Machine
        Whose free energy.
    v, reference : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Rows, of which at most a thousand are compared.
    n_samples : int, default=None
        Number of rows of a pass: beyond a hundred, a fiftieth of them is compared. None for those
        of the reference.
    sample_weight, reference_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    gap : float
        In nats; the partition function does not matter to it.

    References
    ----------
    .. [1] Hinton (2012), "A practical guide to training restricted Boltzmann machines".
       :doi:`10.1007/978-3-642-35289-8_32`
    """
    n_rows = int(np.clip((n_samples or reference.shape[0]) // ROWS_PER_GAP_ROW, *GAP_ROWS))
    means = [
        mean_of_rows(
            machine.free_energy(spread_rows(rows, n_rows).astype(machine.dtype)),
            None if weight is None else spread_rows(weight, n_rows),
        )
        for rows, weight in ((v, sample_weight), (reference, reference_weight))
    ]
    return means[0] - means[1]


@final
@dataclass
class Plateau:
    """Plateau of a sequence of scores.

    Parameters
    ----------
    tol : float
        Rise over the best score so far that counts.
    patience : int
        Number of scores without such a rise that make a plateau.
    best : float, default=-inf
        Best score so far.
    n_stale : int, default=0
        Number of scores since the last rise.
    """

    tol: float
    patience: int
    best: float = -np.inf
    n_stale: int = 0

    def add(self, score: float, std_error: float = 0.0) -> bool:
        """Take note of a score.

        Parameters
        ----------
        score : float
            NaN is no rise.
        std_error : float, default=0.0
            Its standard error: where this leaves room for a rise, patience is not used up.

        Returns
        -------
        is_best : bool
            Whether it is the best so far.
        """
        least = self.best + self.tol
        if score > least:
            self.n_stale = 0
        elif not score + std_error > least:
            self.n_stale += 1
        is_best = score > self.best
        if is_best:
            self.best = score
        return is_best

    @property
    def is_reached(self) -> bool:
        """True if patience is at its end."""
        return self.n_stale >= self.patience


@final
@dataclass
class EarlyStopping:
    """End of training where scores no longer rise, and the machine of the best score.

    Parameters
    ----------
    plateau : Plateau
        Tells whether the scores still rise.
    slows_down : bool
        Whether a plateau is answered by a smaller learning rate as long as that is possible.
    restores_best : bool
        Whether to keep the machine of the best score.
    best : Machine, default=None
        That machine.
    """

    plateau: Plateau
    slows_down: bool
    restores_best: bool
    best: Machine | None = None

    def resume(self, score: float, machine: Machine) -> None:
        """Start from a machine that only a better one replaces.

        Parameters
        ----------
        score : float
            Of the machine.
        machine : Machine
            Published before.
        """
        self.plateau.best = score
        self.best = machine.astype(machine.dtype, copy=True)

    def add(
        self, score: float, machine: Machine, state: TrainingState, std_error: float = 0.0
    ) -> bool:
        """Take note of a pass.

        Parameters
        ----------
        score : float
            Of the machine; NaN is no rise.
        machine : Machine
            What would be published now.
        state : TrainingState
            Whose learning rate may be lowered.
        std_error : float, default=0.0
            Of the score.

        Returns
        -------
        is_over : bool
            Whether training should end.
        """
        if self.plateau.add(score, std_error) and self.restores_best:
            self.best = machine.astype(machine.dtype, copy=True)
        if not self.plateau.is_reached:
            return False
        if self.slows_down and state.learning_rate > MIN_RATE:
            state.slowdown /= RATE_DIVISOR
            self.plateau.n_stale = 0
            return False
        return True
