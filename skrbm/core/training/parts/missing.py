"""Imputation of missing values during training by Gibbs sampling given the observed values."""

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
from skrbm.core.training.state import TrainingState
from skrbm.core.units import Units

BLOCK_ROWS, N_DONORS = 2048, 1024  # largest numbers of rows imputed at a time and of donors
STEPS_AFTER_CHANGE = 10  # Gibbs steps of a row whose observed gray values were drawn again
# Updates of a new model that learn from the initial values (benchmarks/quality/missing_values.py).
# With 300, independent columns are overfitted. With 30, clusters are learned worse.
N_INITIAL_UPDATES = 100


@final
class ImputedRows:
    r"""Rows of data whose missing values are imputed by draws given the observed values.

    The gradient of the log-likelihood of the observed values has the positive phase

    .. math:: \left\langle -\frac{\partial E}{\partial \theta}
        \right\rangle_{p(v_\text{mis}, h \mid v_\text{obs})}

    Before an update, `MissingValues` redraws the missing values of the mini-batch by Gibbs steps,
    which start from their last draws and keep the observed values fixed. This is stochastic
    expectation maximization [1]_. The number of steps of a row is `STEPS_AFTER_CHANGE` if new
    states are drawn for its observed gray values. Otherwise, it is `n_first_steps` the first time
    and one after that.

    Missing values are initialized with values of the nearest rows, because Gibbs sampling hardly
    leaves a mode that does not match the observed values.

    Parameters
    ----------
    v : {ndarray, EncodedTable} of shape (n_samples, n_visible)
        Floating-point data in which NaN is a missing value. A unit is missing in all of its columns
        or in none.
    base : Units
        Visible layer whose distribution, without a field, resembles the data. Missing values are
        initialized from at most `N_DONORS` evenly spread rows. If none of these rows has an
        observed value in a column, the missing values of the column are drawn from this layer.
    n_first_steps : int
        Number of Gibbs steps when the missing values of a row are redrawn for the first time,
        unless new states are drawn for its observed values.
    rng : numpy.random.Generator
        Source of random numbers for the initialization.

    Attributes
    ----------
    observed : ndarray of bool of shape (n_samples, n_units)
        Mask of the units that are not missing.
    imputed : ndarray of shape (n_missing,)
        Current draws of the missing values, row by row.
    is_initial : ndarray of bool of shape (n_samples,)
        Mask of the rows whose missing values have not been redrawn yet. It stays True for complete
        rows.
    n_first_steps : int
        As passed; resumed fits restore it.

    References
    ----------
    .. [1] Celeux, Diebolt (1985), "The SEM algorithm: a probabilistic teacher algorithm derived
       from the EM algorithm for the mixture problem", Computational Statistics Quarterly 2, 73-82.
    """

    def __init__(self, v: Any, base: Units, n_first_steps: int, rng: np.random.Generator) -> None:
        self._v, self.n_first_steps = v, n_first_steps
        self.shape = v.shape
        firsts = np.array([base.unit_columns(i)[0] for i in range(base.n_units)])
        donors = np.asarray(spread_rows(v, N_DONORS))
        observed, n_missing, values = [], [0], []
        for begin in range(0, v.shape[0], BLOCK_ROWS):
            rows = np.asarray(v[begin : begin + BLOCK_ROWS])
            is_missing = np.isnan(rows)
            observed.append(~is_missing[:, firsts])
            n_missing += is_missing.sum(axis=1).tolist()
            draws = base.sample(base.zero_field(len(rows)), rng)
            values.append(with_nearest_values(rows, donors, draws)[is_missing])
        self.observed, self.imputed = np.concatenate(observed), np.concatenate(values)
        self._edges = np.cumsum(n_missing)
        self.is_initial = np.ones(v.shape[0], dtype=bool)

    def __getitem__(self, rows: Array | slice) -> Array:
        numbers = self._numbers(rows)
        v = np.array(self._v[numbers])
        v[np.isnan(v)] = self.imputed[self._places(numbers)]
        return v

    def redraw(
        self,
        machine: Machine,
        rows: Array | slice,
        rng: np.random.Generator,
        v: Array | None = None,
    ) -> Array:
        """Redraw the missing values of rows by Gibbs steps with the observed values clamped.

        Parameters
        ----------
        machine : Machine
            Machine to sample from.
        rows : ndarray of int or slice
            Indices of the rows, without duplicates.
        rng : numpy.random.Generator
            Source of random numbers. Rows without missing values do not use it.
        v : ndarray of shape (n_rows, n_visible), default=None
            Rows with their last draws. Their observed values are clamped; these may differ from the
            data if random states replace gray values. The array is overwritten. If None, the
            observed values of the data are clamped.

        Returns
        -------
        v : ndarray of shape (n_rows, n_visible)
            Rows with redrawn missing values.
        """
        numbers, v = self._numbers(rows), self[rows] if v is None else v
        incomplete = np.flatnonzero(~self.observed[numbers].all(axis=1))
        numbers, values = numbers[incomplete], self._v[numbers[incomplete]]
        states, is_missing = v[incomplete].astype(machine.dtype, copy=False), np.isnan(values)
        has_changed = ((states != values.astype(states.dtype)) & ~is_missing).any(axis=1)
        n_steps = np.where(self.is_initial[numbers], self.n_first_steps, 1)
        n_steps[has_changed] = STEPS_AFTER_CHANGE
        for number in np.unique(n_steps):
            chosen = np.flatnonzero(n_steps == number)
            moved = states[chosen]
            for _ in range(number):
                moved = np.where(is_missing[chosen], gibbs(machine, moved, 1, rng), moved)
            states[chosen] = moved
            self.imputed[self._places(numbers[chosen])] = moved[is_missing[chosen]]
        v[incomplete], self.is_initial[numbers] = states, False
        return v

    def _numbers(self, rows: Array | slice) -> Array:
        """Indices of the given rows; the cost does not depend on the number of other rows."""
        return np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else rows

    def _places(self, numbers: Array) -> Array:
        """Indices into `imputed` of the missing values of the given rows, row by row."""
        first = self._edges[numbers]
        n_missing = self._edges[numbers + 1] - first
        before = np.cumsum(n_missing) - n_missing
        return np.repeat(first - before, n_missing) + np.arange(n_missing.sum())


@final
@dataclass(frozen=True)
class MissingValues(Part):
    """Part that redraws the missing values of a mini-batch before an update.

    In the first updates of a model, the missing values keep the values of the nearest rows. The
    draws of an untrained model do not depend on the observed values: if a share s of the values is
    observed, the weights would grow at a rate proportional to the square of s.

    Parameters
    ----------
    imputed_rows : ImputedRows
        Training data, from which the mini-batches are taken.
    buffers : UpdateBuffers
        Buffers of the updates, which define the precision of states.
    n_initial_updates : int
        Number of updates of a model before which no missing values are redrawn.
    """

    name: ClassVar[str] = "missing values"

    imputed_rows: ImputedRows
    buffers: UpdateBuffers
    n_initial_updates: int

    def draw_rows(
        self,
        machine: Machine,
        state: TrainingState,
        rows: Array | slice,
        v: Array,
        rng: np.random.Generator,
    ) -> Array:
        """Redraw the missing values of the mini-batch `v`, which is overwritten."""
        if state.n_updates < self.n_initial_updates:
            return v
        return self.imputed_rows.redraw(self.buffers.rounded(machine), rows, rng, v)
