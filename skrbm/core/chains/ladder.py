"""Inverse temperatures of parallel tempering, adapted to similar swap rates of all neighbors."""

from __future__ import annotations

from typing import Self, final

import numpy as np

from skrbm.core.numerics import Array, like, to_host

MIN_REJECTION = 1e-3  # neighbors that are nearly always swapped keep some distance


def communication_barrier(acceptance: Array) -> Array:
    """Cumulative sum of the rejection rates of swaps along a ladder.

    Parameters
    ----------
    acceptance : ndarray of shape (n_temperatures - 1,)
        Mean acceptance probability of swaps for each pair of neighboring temperatures. Rejection
        rates below `MIN_REJECTION` are replaced by this number.

    Returns
    -------
    barrier : ndarray of shape (n_temperatures,)
        Sum of the rejection rates up to each temperature; zero for the first temperature.
    """
    rejection = np.maximum(1 - acceptance, MIN_REJECTION)
    return np.concatenate([[0.0], np.cumsum(rejection)])


def equal_acceptance_ladder(betas: Array, barrier: Array, n_temperatures: int) -> Array:
    """Inverse temperatures that divide the communication barrier into equal parts.

    Parameters
    ----------
    betas, barrier : ndarray of shape (n_current,)
        Current inverse temperatures, and the `communication_barrier` up to each of them.
    n_temperatures : int
        New number of temperatures.

    Returns
    -------
    betas : ndarray of shape (n_temperatures,)
        New inverse temperatures; the first and the last are unchanged.
    """
    return np.interp(np.linspace(0, barrier[-1], n_temperatures), barrier, betas)


@final
class Ladder:
    """Inverse temperatures of parallel tempering, with swap statistics.

    Parameters
    ----------
    betas : ndarray of shape (n_temperatures,)
        Inverse temperatures in descending order; a full ladder ranges from 1 to 0. The method
        `adapt` replaces the attribute `betas`.
    """

    def __init__(self, betas: Array) -> None:
        self._reset(betas)

    def _reset(self, betas: Array) -> None:
        self.betas = self._copy = betas
        self._accepted = np.zeros(len(betas) - 1)
        self._n_steps = 0

    @classmethod
    def of(cls, n_temperatures: int) -> Self:
        """Create a ladder of at least two evenly spaced inverse temperatures, from 1 to 0."""
        return cls(np.linspace(1.0, 0.0, n_temperatures))

    @property
    def acceptance(self) -> Array:
        """Mean acceptance probability of swaps for each pair of neighboring temperatures.

        The array has shape (n_temperatures - 1,). The means are over the steps since the last call
        of `adapt`. They are zero if no step was recorded.
        """
        return to_host(self._accepted) / max(self._n_steps, 1)

    def betas_like(self, array: Array) -> Array:
        """Inverse temperatures on the device of `array`, cached until the next call of `adapt`."""
        if not isinstance(self._copy, type(array)):
            self._copy = like(self.betas, array)
        return self._copy

    def record(self, accepted: Array) -> None:
        """Add the acceptance probabilities of one step, of shape (n_temperatures - 1,)."""
        self._accepted = accepted + like(self._accepted, accepted)
        self._n_steps += 1

    def adapt(self) -> float:
        """Change the inverse temperatures so that all neighbors have similar swap rates.

        The new inverse temperatures divide the sum of the rejection rates into equal parts [1]_.
        The swap statistics are reset. If no step was recorded, nothing is changed.

        Returns
        -------
        acceptance : float
            Mean acceptance probability of all swaps since the last call; NaN if no step was
            recorded.

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
        self._reset(equal_acceptance_ladder(self.betas, barrier, len(self.betas)))
        return float(acceptance.mean())
