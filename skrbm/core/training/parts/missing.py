"""Missing values in training: draws given the observed values, moved on in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.chains.gibbs import gibbs
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, spread_rows
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.part import Part
from skrbm.core.training.start.nearest_rows import with_nearest_values
from skrbm.core.units import Units

BLOCK_ROWS, N_DONORS = 2048, 1024  # rows that are completed together, and from which
STEPS_AFTER_MOVES = 10  # of chains whose known values are not what they were


@final
class CompletedRows:
    r"""Data read like an array, in which missing values are draws given the known ones.

    The gradient of the likelihood of what is known is the usual one, with its positive phase taken
    at such draws,

    .. math:: \left\langle -\frac{\partial E}{\partial \theta}
        \right\rangle_{p(v_\text{mis}, h \mid v_\text{obs})}

    so that redrawing them before every update by a clamped Gibbs step, from where the last pass left
    them, is stochastic expectation maximisation [1]_. Where the known values are drawn anew as well,
    more steps take the draws to them. The first values are those of the nearest rows: draws in
    another mode than the known values would never leave it.

    Parameters
    ----------
    v : {ndarray, EncodedTable} of shape (n_samples, n_visible)
        Floating-point data with NaN for what is missing, of a unit all columns at once.
    base : Units
        Visible layer without a field that resembles the data.
    n_first_steps : int
        Steps of a row's chain the first time that it is redrawn; later, one.
    rng : numpy.random.Generator
        Source of random numbers.

    Attributes
    ----------
    known_units : ndarray of bool of shape (n_samples, n_units)
        What is not missing.
    drawn : ndarray of shape (n_missing,)
        Present draws of what is, row by row.
    is_fresh : ndarray of bool of shape (n_samples,)
        Rows that were not redrawn yet.

    References
    ----------
    .. [1] Celeux, Diebolt (1985), "The SEM algorithm: a probabilistic teacher algorithm derived
       from the EM algorithm for the mixture problem", Computational Statistics Quarterly 2, 73-82.
    """

    def __init__(self, v: Any, base: Units, n_first_steps: int, rng: np.random.Generator) -> None:
        self._v, self._n_first_steps = v, n_first_steps
        self.shape, self.dtype = v.shape, v.dtype
        firsts = np.array([base.unit_columns(i)[0] for i in range(base.n_units)])
        blocks = [slice(i, i + BLOCK_ROWS) for i in range(0, v.shape[0], BLOCK_ROWS)]
        self.known_units = np.concatenate([~np.isnan(v[block][:, firsts]) for block in blocks])
        widths = base.by_column(np.arange(base.n_units))
        n_missing = ~self.known_units @ np.bincount(widths, minlength=base.n_units)
        self._ends = np.cumsum(n_missing)
        self.drawn = np.empty(self._ends[-1], dtype=v.dtype)
        self.is_fresh = np.ones(v.shape[0], dtype=bool)
        donors = np.asarray(spread_rows(v, N_DONORS))
        for block in blocks:
            own = np.asarray(v[block])
            draws = base.sample(base.zero_field(len(own)), rng)
            values = with_nearest_values(own, donors, draws)[np.isnan(own)]
            self.drawn[self._places(np.arange(v.shape[0])[block])] = values

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> Array:
        return self._completed(np.arange(len(self))[rows])

    def redraw(
        self, machine: Machine, rows: Any, rng: np.random.Generator, v: Array | None = None
    ) -> Array:
        """Move the draws of some rows by Gibbs steps over what is missing.

        Parameters
        ----------
        machine : Machine
            Present model.
        rows : ndarray of int or slice
            Numbers of rows, none of them twice.
        rng : numpy.random.Generator
            Source of random numbers; rows without a missing value draw nothing.
        v : ndarray of shape (n_rows, n_visible), default=None
            These rows as they are now, with the known values that the draws are to be given, such
            as states drawn from grey values; overwritten. None for the values of the data.

        Returns
        -------
        v : ndarray of shape (n_rows, n_visible)
            The rows with their new draws.
        """
        numbers, v = np.arange(len(self))[rows], self[rows] if v is None else v
        incomplete = np.flatnonzero(~self.known_units[numbers].all(axis=1))
        numbers, known = numbers[incomplete], self._v[numbers[incomplete]]
        states, is_missing = v[incomplete].astype(machine.dtype, copy=False), np.isnan(known)
        has_moved = ((states != known.astype(states.dtype)) & ~is_missing).any(axis=1)
        n_steps = np.where(self.is_fresh[numbers], self._n_first_steps, 1)
        n_steps[has_moved] = STEPS_AFTER_MOVES
        for number in np.unique(n_steps):
            own = np.flatnonzero(n_steps == number)
            moved = states[own]
            for _ in range(number):
                moved = np.where(is_missing[own], gibbs(machine, moved, 1, rng), moved)
            states[own] = moved
            self.drawn[self._places(numbers[own])] = moved[is_missing[own]]
        v[incomplete], self.is_fresh[numbers] = states, False
        return v

    def _completed(self, numbers: Array) -> Array:
        """Rows in memory of their own."""
        v = np.array(self._v[numbers])
        v[np.isnan(v)] = self.drawn[self._places(numbers)]
        return v

    def _places(self, numbers: Array) -> Array:
        """Places of the draws of some rows, one row after the other."""
        n_own = np.diff(self._ends, prepend=0)[numbers]
        before = np.cumsum(n_own) - n_own
        return np.repeat(self._ends[numbers] - n_own - before, n_own) + np.arange(n_own.sum())


@final
@dataclass(frozen=True)
class MissingValues(Part):
    """New draws of the missing values of a mini-batch before every update.

    Parameters
    ----------
    completed : CompletedRows
        Data that training reads.
    buffers : UpdateBuffers
        Precision of states.
    """

    name: ClassVar[str] = "missing values"

    completed: CompletedRows
    buffers: UpdateBuffers

    def draw_rows(
        self, machine: Machine, rows: Array | slice, v: Any, rng: np.random.Generator
    ) -> Array:
        """Mini-batch with new draws given the observed values."""
        return self.completed.redraw(self.buffers.rounded(machine), rows, rng, v)
