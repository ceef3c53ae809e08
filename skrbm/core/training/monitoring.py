"""Scores that are recorded after an epoch, and early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from scipy.special import stdtrit

from skrbm.core.likelihood.pseudo import monitored_rows
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, every_kth_row, spread_rows, weighted_mean
from skrbm.core.training.state import TrainingState

# Largest number of rows, and of chains, from which `epoch_scores` computes other scores than the
# pseudo-likelihood.
N_ACTIVATION_ROWS = 100
# Bounds of the largest number of compared rows, and number of rows in an epoch per compared row.
GAP_ROWS, ROWS_PER_GAP_ROW = (100, 1000), 50
RATE_DIVISOR = 5.0  # as in scikit-learn's SGDClassifier and MLPClassifier
# Confidence with which a paired t-test must exclude an improvement for an epoch to be counted in
# `Plateau.n_stale`. Losses with and without this test: benchmarks/results/early_stopping_rows.json.
CONFIDENCE = 0.95
MIN_PAIRED_ROWS = 1.5  # effective number of rows above which a standard error is computed
# Number of updates from which on epochs are counted for early stopping. Before, hidden units are
# still alike, and the likelihood of new rows can fall for a while: of eight fits to 100 digits, two
# ended after 11 epochs, 3 nats below the last one.
MIN_STOPPING_UPDATES = 75
MIN_RATE = 1e-6  # learning rate at which "adaptive" stops, as in scikit-learn


def epoch_scores(
    machine: Machine,
    v: Any,
    particles: Array | None,
    n_samples: int | None = None,
    sample_weight: Array | None = None,
    is_scored: Array | None = None,
) -> dict[str, float]:
    """Compute the scores of an epoch for the history from some of the rows.

    Parameters
    ----------
    machine : Machine
        Machine after the epoch.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Training data, or an evenly spread subset of the rows.
    particles : ndarray of shape (n_particles, n_hidden) or None
        Hidden states of the chains that sample the machine, or None if there are no such chains.
    n_samples : int, default=None
        Number of rows in an epoch, which limits the cost of the pseudo-likelihood (see
        `monitored_rows`). If None, it is the number of rows of `v`.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows. If None, all rows have equal weights.
    is_scored : ndarray of bool of shape (n_rows, n_units), default=None
        Mask of the units whose terms are included in the pseudo-likelihood. If None, all units are
        included.

    Returns
    -------
    history : dict of str to float
        "pseudo_likelihood" is an estimate of the mean log pseudo-likelihood per row, in nats; it is
        NaN in the cases that `monitored_rows` names. "mean_activation" is the expected hidden
        state, averaged over the hidden columns and over at most `N_ACTIVATION_ROWS` of the rows.
        "chain_gap" is the mean free energy of the chains minus that of the rows used for
        "mean_activation", in nats. It is present only if there are chains. The states of the chains
        are visible states drawn given at most `N_ACTIVATION_ROWS` of `particles`. For "chain_gap",
        data that are means of states are replaced by random states with these means.
    """
    rows = spread_rows(v, N_ACTIVATION_ROWS).astype(machine.dtype, copy=False)
    weight = spread_rows(sample_weight, N_ACTIVATION_ROWS)
    scores = monitored_rows(machine, v, n_samples, sample_weight, is_scored)
    notes = {
        "pseudo_likelihood": weighted_mean(*scores),
        "mean_activation": weighted_mean(machine.mean_hidden(rows).mean(axis=1), weight),
    }
    if particles is not None:
        h = every_kth_row(particles, N_ACTIVATION_ROWS).astype(machine.dtype, copy=False)
        rng = np.random.default_rng(0)
        chains = machine.sample_visible(h, rng)
        # The free energy is concave: at a mean, it is larger than the average over the states.
        states = machine.visible.draw_states_of_means(rows.copy(), rng)
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
    """Compute the mean free energy of rows minus the mean free energy of reference rows.

    Overfitting widens the gap between held-out and training rows [1]_, section 6.

    Parameters
    ----------
    machine : Machine
        Model that defines the free energy.
    v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
        Rows, such as held-out rows.
    reference : {ndarray, sparse matrix} of shape (n_reference, n_visible)
        Reference rows, such as training rows.
    n_samples : int, default=None
        Number of rows in an epoch. If None, the number of reference rows is used. The largest
        number of compared rows of each array is `n_samples` // 50, but at least 100 and at most
        1000. If an array has more rows, evenly spread rows are compared.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows `v`. If None, all rows have equal weights.
    reference_weight : ndarray of shape (n_reference,), default=None
        Weights of the reference rows. If None, all rows have equal weights.

    Returns
    -------
    gap : float
        Difference between the mean free energies, in nats. It equals the mean log-likelihood of the
        compared reference rows minus that of the compared rows of `v`.

    References
    ----------
    .. [1] Hinton (2012), "A practical guide to training restricted Boltzmann machines".
       :doi:`10.1007/978-3-642-35289-8_32`
    """
    n_rows = int(np.clip((n_samples or reference.shape[0]) // ROWS_PER_GAP_ROW, *GAP_ROWS))
    means = [
        weighted_mean(
            machine.free_energy(spread_rows(rows, n_rows).astype(machine.dtype)),
            spread_rows(weight, n_rows),
        )
        for rows, weight in ((v, sample_weight), (reference, reference_weight))
    ]
    return means[0] - means[1]


class Score(NamedTuple):
    """Score of a machine for early stopping, in nats.

    Parameters
    ----------
    mean : float
        Mean score of the rows.
    std_error : float, default=0.0
        Standard error of a term that all rows share, such as an estimated log-partition function.
    rows : ndarray of shape (n_rows,), default=None
        Scores of validation rows up to a shared term. If None, the sampling error of the rows is
        ignored.
    weight : ndarray of shape (n_rows,), default=None
        Weights of the rows. If None, all rows have equal weights.
    """

    mean: float
    std_error: float = 0.0
    rows: Array | None = None
    weight: Array | None = None

    def error_of_gain(self, other: Score) -> tuple[float, float]:
        """Standard error of the gain over another score, and the quantile of a t-test.

        The sampling error is computed from the difference between the two scores of each row. From
        one epoch to the next, these differences vary much less between rows than the scores do.

        Parameters
        ----------
        other : Score
            Score of another machine for the same rows.

        Returns
        -------
        std_error : float
            Standard error of the difference between the means, in nats. It includes `std_error` of
            this score, but not that of the other score.
        quantile : float
            Quantile of Student's t-distribution at the level `CONFIDENCE`. The effective number of
            rows is the squared sum of their weights divided by the sum of the squared weights. The
            number of degrees of freedom is one less. The quantile is 1.0, and the sampling error is
            ignored, if a score has no `rows` or if the effective number of rows is at most
            `MIN_PAIRED_ROWS`.
        """
        if self.rows is None or other.rows is None:
            return self.std_error, 1.0
        differences = np.subtract(self.rows, other.rows, dtype=np.float64)
        weight = np.ones(len(differences)) if self.weight is None else self.weight
        n_rows = weight.sum() ** 2 / np.square(weight).sum()
        if not n_rows > MIN_PAIRED_ROWS:
            return self.std_error, 1.0
        residuals = differences - np.average(differences, weights=weight)
        variance = np.average(np.square(residuals), weights=weight) / (n_rows - 1)
        quantile = float(stdtrit(n_rows - 1, CONFIDENCE))
        return float(np.hypot(np.sqrt(variance), self.std_error)), quantile


NO_SCORE = Score(-np.inf)  # below every score


@final
@dataclass
class Plateau:
    """Detector of a plateau in a sequence of scores.

    Parameters
    ----------
    tol : float
        Increase over the best score, in nats, that an improvement must exceed.
    patience : int
        Value of `n_stale` at which the plateau is reached.
    best : Score, default=Score(-inf)
        Best score so far.
    n_stale : int, default=0
        Number of scores without an improvement since the last improvement or the last reduction of
        the learning rate. Scores that may be improvements, given their standard errors, are not
        counted.
    is_resumed : bool, default=False
        Whether the best score is that of an earlier fit.
    """

    tol: float
    patience: int
    best: Score = NO_SCORE
    n_stale: int = 0
    is_resumed: bool = False

    # Largest distance below the best score, in standard errors, at which a later machine is kept.
    kept_errors: ClassVar[float] = 0.5

    def add(self, score: Score) -> bool:
        """Add a score.

        An improvement, which is a gain of more than `tol` over the best score, sets `n_stale` to 0.
        Otherwise, `n_stale` is increased by 1, unless the gain plus `quantile` times `std_error`
        from `Score.error_of_gain` exceeds `tol`.

        Parameters
        ----------
        score : Score
            New score. A mean of NaN does not count as an improvement.

        Returns
        -------
        is_kept : bool
            Whether the machine with this score is preferred to earlier machines. It is preferred if
            its score exceeds the best so far or, for scores with `rows`, is lower by at most
            `kept_errors` standard errors. Training raises the likelihood on average, so the latest
            of about equal machines is preferred. A machine of an earlier fit is replaced only by a
            machine with a higher score.
        """
        gain = score.mean - self.best.mean
        std_error, quantile = score.error_of_gain(self.best)
        if gain > self.tol:
            self.n_stale = 0
        elif not gain + quantile * std_error > self.tol:
            self.n_stale += 1
        if gain > 0:
            self.best, self.is_resumed = score, False
        is_about_equal = score.rows is not None and gain + self.kept_errors * std_error >= 0
        return bool(gain > 0 or (is_about_equal and not self.is_resumed))

    @property
    def is_reached(self) -> bool:
        """True if `n_stale` is at least `patience`."""
        return self.n_stale >= self.patience


@final
@dataclass
class EarlyStopping:
    """Rule that ends training when the scores reach a plateau, and can keep the best machine.

    Parameters
    ----------
    plateau : Plateau
        Detector of a plateau of the scores.
    slows_down : bool
        If True, the learning rate is divided by `RATE_DIVISOR` on a plateau while it exceeds
        `MIN_RATE`, and training continues.
    restores_best : bool
        Whether to keep a copy of the preferred machine (see `Plateau.add`).
    best : Machine, default=None
        Copy of the preferred machine so far, or None if no machine has been kept.
    """

    plateau: Plateau
    slows_down: bool
    restores_best: bool
    best: Machine | None = None

    def resume(self, score: Score, machine: Machine) -> None:
        """Set the best score and the kept machine to those of an earlier fit.

        Parameters
        ----------
        score : Score
            Score of the machine.
        machine : Machine
            Machine to keep until an epoch has a higher score. It is copied.
        """
        self.plateau.best, self.plateau.is_resumed = score, True
        self.best = machine.astype(machine.dtype, copy=True)

    def add(self, score: Score, machine: Machine, state: TrainingState) -> bool:
        """Add the score of an epoch.

        Parameters
        ----------
        score : Score
            Score of the machine. A mean of NaN does not count as an improvement.
        machine : Machine
            Plain machine after the epoch, which is copied if it is kept.
        state : TrainingState
            State of training. On a plateau, `rate_factor` is divided by `RATE_DIVISOR` if
            `slows_down` is True and the learning rate exceeds `MIN_RATE`.

        Returns
        -------
        is_over : bool
            Whether training should end.
        """
        if self.plateau.add(score) and self.restores_best:
            self.best = machine.astype(machine.dtype, copy=True)
        if not self.slows_down and state.n_updates < MIN_STOPPING_UPDATES:
            self.plateau.n_stale = 0
        if not self.plateau.is_reached:
            return False
        if self.slows_down and state.learning_rate > MIN_RATE:
            state.rate_factor /= RATE_DIVISOR
            self.plateau.n_stale = 0
            return False
        return True
