"""Numbers as normal scores: a monotone map of a column, its slope and its inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np
from scipy.special import ndtri, roots_hermitenorm

from skrbm.core.numerics import Array

MIN_COPIES = 5  # of a value on average, for a column to be taken to have no other values
CELL_COUNTS = 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96  # candidates, each half as many again
HERMITE_RULE = roots_hermitenorm(8)[0], roots_hermitenorm(8)[1] / np.sqrt(2 * np.pi)
MAX_SCORE = 1e150  # so that its square is finite
MAX_VALUE = 1e307  # so that differences of two are finite


@final
@dataclass(frozen=True, eq=False)
class NormalScores:
    r"""Monotone map of the numbers of a column to scores that are about standard normal.

    The values are cut into cells with about as many values in each; a value that fills a cell alone
    has its own. Between cells, where a share :math:`F` of the values is below, the score is the
    normal quantile of :math:`F` [1]_; in a cell it is linear, and in the first and the last one,
    which are open, such that the mean of the values has the mean of the scores. The density of a
    number is then that of its score times the slope of its cell. The number of cells, at most the
    square root of that of values, is the best by Akaike's criterion [2]_, and one linear map serves
    all values where no number of cells is better.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,)
        Numbers between neighbouring cells, ascending.
    scores : ndarray of shape (n_cells - 1,)
        Their scores.
    tails : ndarray of shape (2,)
        Slopes of the first and the last cell.
    singles : ndarray of shape (n_cells,)
        The value of each cell that has a single one, NaN for the others.
    limits : ndarray of shape (2,)
        Least and greatest value.
    known : ndarray of shape (n_known,)
        All values, ascending, of a column in which each comes five times on average; empty for
        others.

    References
    ----------
    .. [1] Liu, Lafferty, Wasserman (2009), "The nonparanormal: semiparametric estimation of high
       dimensional undirected graphs", Journal of Machine Learning Research 10, 2295-2328.
    .. [2] Akaike (1974), "A new look at the statistical model identification", IEEE Transactions on
       Automatic Control 19, 716-723. :doi:`10.1109/TAC.1974.1100705`
    """

    is_mixture: ClassVar[bool] = False  # of normals and atoms, in place of one normal

    edges: Array
    scores: Array
    tails: Array
    singles: Array
    limits: Array
    known: Array

    @classmethod
    def of(cls, values: Array, counts: Array) -> Self | None:
        """Map learned from finite values (n_values,) that come so many times each (n_values,).

        None if there are none, or they are too far apart.
        """
        x, numbers = np.unique(values.astype(np.float64), return_inverse=True)
        counts = np.bincount(numbers, counts, len(x))
        if not len(x) or max(-x[0], x[-1]) > MAX_VALUE:
            return None
        if len(x) == 1:  # other values have scores of this unit, but none is drawn
            return cls(x, np.zeros(1), np.ones(2), np.full(2, np.nan), x[[0, 0]], x[:0])
        n_parameters = {cls._linear(x, counts): 2}
        for n_cells in CELL_COUNTS:
            if n_cells <= np.sqrt(counts.sum()):
                scores = cls._of_cells(x, counts, _cells(counts, n_cells))
                n_parameters[scores] = len(scores.singles) + 1  # slopes, and where they begin

        def criterion(scores: Self) -> float:
            return scores._log_likelihood(x, counts) - n_parameters[scores]

        return max(n_parameters, key=criterion)

    @classmethod
    def _linear(cls, x: Array, counts: Array) -> Self:
        """Map to standard deviations from the mean."""
        scale = x[-1] - x[0]
        mean = x[0] + scale * np.average((x - x[0]) / scale, weights=counts)
        deviation = scale * np.sqrt(np.average(((x - mean) / scale) ** 2, weights=counts))
        slopes, singles = np.full(2, 1 / deviation), np.full(2, np.nan)
        return cls(
            np.array([mean]), np.zeros(1), slopes, singles, x[[0, -1]], _only_values(x, counts)
        )

    @classmethod
    def _of_cells(cls, x: Array, counts: Array, cells: Array) -> Self:
        """Map of ascending values that come so many times and are in these cells."""
        firsts = np.flatnonzero(np.diff(cells, prepend=-1))
        lasts = np.append(firsts[1:], len(x)) - 1
        edges = x[lasts[:-1]] / 2 + x[firsts[1:]] / 2
        shares = np.cumsum(counts)[lasts[:-1]] / counts.sum()
        scores = ndtri(shares)
        density = np.exp(-(scores**2) / 2) / np.sqrt(2 * np.pi)
        low, high = slice(None, firsts[1]), slice(firsts[-1], None)
        means = np.array([np.average(x[end], weights=counts[end]) for end in (low, high)])
        mean_scores = np.array([-density[0] / shares[0], density[-1] / (1 - shares[-1])])
        ends = edges[[0, -1]]
        gaps = np.maximum(np.abs(means - ends), np.spacing(np.abs(ends)))
        return cls(
            edges,
            scores,
            np.abs(mean_scores - scores[[0, -1]]) / gaps,
            np.where(firsts == lasts, x[firsts], np.nan),
            x[[0, -1]],
            _only_values(x, counts),
        )

    def forward(self, x: Array) -> Array:
        """Scores of numbers, NaN where one is missing."""
        scores = _piecewise(x, self.edges, self.scores, self.tails)
        return np.clip(scores, -MAX_SCORE, MAX_SCORE)

    def inverse(self, z: Array) -> Array:
        """Numbers that have these scores."""
        return _piecewise(z, self.scores, self.edges, 1 / self.tails)

    def values(self, z: Array) -> Array:
        """Numbers as the column has them: in its range, and values that come often as they are."""
        single, x = self.singles[np.searchsorted(self.scores, z)], self.inverse(z)
        if len(self.known):
            x = self.known[np.searchsorted(self.known[1:] / 2 + self.known[:-1] / 2, x)]
        return np.where(np.isnan(single), np.clip(x, *self.limits), single)

    def expected_values(self, mean: Array, draws: Array, deviation: float) -> Array:
        """Expected `values` of scores that are normal, by a rule of eight nodes."""
        nodes = zip(*HERMITE_RULE, strict=True)
        expected = sum(w * self.values(mean + deviation * node) for node, w in nodes)
        return np.asarray(
            np.clip(expected, *self.limits)
        )  # the weights sum to one but for rounding

    def log_slope(self, z: Array) -> Array:
        """Logarithm of the change of the score for a unit of the number, at these scores."""
        return np.asarray(self._log_slopes[np.searchsorted(self.scores, z)])

    def _log_likelihood(self, x: Array, counts: Array) -> float:
        z = self.forward(x)
        return float(counts @ (self.log_slope(z) - (z**2 + np.log(2 * np.pi)) / 2))

    @cached_property
    def _log_slopes(self) -> Array:
        inner = np.log(np.diff(self.scores)) - np.log(np.diff(self.edges))
        return np.concatenate([np.log(self.tails[:1]), inner, np.log(self.tails[1:])])


def _cells(counts: Array, n_cells: int) -> Array:
    """Number of the cell of each of some ascending values that come so many times."""
    size = counts.sum() / n_cells
    is_alone = counts >= size
    begins_run = is_alone | np.append(True, is_alone[:-1])
    cells, n_before = np.empty(len(counts), dtype=np.intp), 0
    firsts = np.flatnonzero(begins_run)
    for begin, end in zip(firsts, np.append(firsts[1:], len(counts)), strict=True):
        run = counts[begin:end]
        n_run_cells = max(round(run.sum() / size), 1) if end - begin > 1 else 1
        middles = (np.cumsum(run) - run / 2) / run.sum()
        _, cell = np.unique((middles * n_run_cells).astype(np.intp), return_inverse=True)
        cells[begin:end] = n_before + cell
        n_before = cells[end - 1] + 1
    return cells


def _only_values(x: Array, counts: Array) -> Array:
    """Ascending values if each comes often enough for a column not to have others, else none."""
    return x if counts.sum() >= MIN_COPIES * len(x) else x[:0]


def _piecewise(x: Array, knots: Array, values: Array, tails: Array) -> Array:
    """Piecewise linear function with slopes of its own beyond the outer knots."""
    with np.errstate(over="ignore"):
        below, above = np.minimum(x - knots[0], 0), np.maximum(x - knots[-1], 0)
        return np.asarray(np.interp(x, knots, values) + tails[0] * below + tails[1] * above)
