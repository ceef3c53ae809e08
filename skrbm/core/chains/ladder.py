"""Ladder of inverse temperatures for parallel tempering, adapted to equal exchange rates."""

from __future__ import annotations

from typing import Self, final

import numpy as np

from skrbm.core.numerics import Array

MIN_REJECTION = 1e-3  # neighbours on a ladder that always exchange keep some distance


def communication_barrier(acceptance: Array) -> Array:
    """Sum of the rejection rates from the first chain of a ladder to each of them.

    Parameters
    ----------
    acceptance : ndarray of shape (n_temperatures - 1,)
        Mean probability of an exchange of each pair of neighbours.

    Returns
    -------
    barrier : ndarray of shape (n_temperatures,)
        Ascending from zero.
    """
    rejection = np.maximum(1 - acceptance, MIN_REJECTION)
    return np.concatenate([[0.0], np.cumsum(rejection)])


def equal_acceptance_ladder(betas: Array, barrier: Array, n_temperatures: int) -> Array:
    """Inverse temperatures that share the communication barrier equally.

    Parameters
    ----------
    betas, barrier : ndarray of shape (n_now,)
        Present inverse temperatures, and the `communication_barrier` up to each.
    n_temperatures : int
        How many there should be.

    Returns
    -------
    betas : ndarray of shape (n_temperatures,)
        Between the same ends.
    """
    return np.interp(np.linspace(0, barrier[-1], n_temperatures), barrier, betas)


@final
class Ladder:
    """Inverse temperatures of chains that exchange their states, and how often they did.

    Parameters
    ----------
    betas : ndarray of shape (n_temperatures,)
        From 1 down to 0.
    """

    def __init__(self, betas: Array) -> None:
        self._move(betas)

    @classmethod
    def of(cls, n_temperatures: int) -> Self:
        """Evenly spaced ladder of at least two temperatures."""
        return cls(np.linspace(1.0, 0.0, n_temperatures))

    @property
    def acceptance(self) -> Array:
        """Mean probability of an exchange of each pair of neighbours since they last moved."""
        return self._accepted / max(self._n_steps, 1)

    def record(self, accepted: Array) -> None:
        """Take note of the probabilities, of shape (n_temperatures - 1,), of one step."""
        self._accepted += accepted
        self._n_steps += 1

    def adapt(self) -> float:
        """Move to where all neighbours should exchange equally often.

        The new inverse temperatures share the sum of the rejection rates equally [1]_.

        Returns
        -------
        acceptance : float
            Mean over all pairs since they last moved; NaN if there was no step.

        References
        ----------
        .. [1] Syed, Bouchard-Côté, Deligiannidis, Doucet (2022), "Non-reversible parallel
           tempering: a scalable highly parallel MCMC scheme", Journal of the Royal Statistical
           Society B 84(2), 321-350, section 5. :doi:`10.1111/rssb.12464`
        """
        if self._n_steps == 0:
            return float("nan")
        acceptance = self.acceptance
        barrier = communication_barrier(acceptance)
        self._move(equal_acceptance_ladder(self.betas, barrier, len(self.betas)))
        return float(acceptance.mean())

    def _move(self, betas: Array) -> None:
        self.betas = betas
        self._accepted = np.zeros(len(betas) - 1)
        self._n_steps = 0
