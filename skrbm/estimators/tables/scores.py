"""Normal scores of numeric columns by a monotone piecewise linear map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np
from scipy.special import ndtr, ndtri

from skrbm.core.numerics import Array

MIN_COPIES = 5  # mean count per distinct value from which a column is treated as discrete
CANDIDATE_BINS = 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96  # numbers of bins, spaced geometrically
MIN_PLACE = 1e-9  # smallest distance from the ends of a range, relative to its probability
N_STRATA = 8  # equally probable ranges of a score; numbers are averaged over twice as many scores
ROUNDING = 4  # multiple of the spacing of floats; smaller differences are due to rounding
MAX_SCORE = 1e150  # so that its square is finite
MAX_VALUE = 1e307  # of learned numbers, so that differences and samples are finite


@final
@dataclass(frozen=True, eq=False)
class NormalScores:
    r"""Monotone piecewise linear map of a numeric column to approximately normal scores.

    The values are divided into bins. A value that is frequent enough to fill a bin has a separate
    bin. Each run of values between such values is divided into bins with about equal counts. The
    score of an edge between two bins is the standard normal
    quantile of :math:`F`, where :math:`F` is the fraction of the values below the edge [1]_. The
    map is linear within each bin. The first and the last bin have no outer edge. The slope of each
    is chosen so that the mean of the values in the bin is mapped to the mean of a standard normal
    distribution truncated to the bin. The density of a number is the density of its score times the
    slope of the map. The intended number of bins is one of `CANDIDATE_BINS`, and at most the square
    root of the number of values. It is chosen by the Akaike information criterion (AIC) [2]_; a
    single linear map is also a candidate.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Edges between neighboring bins, ascending.
    scores : ndarray of shape (n_bins - 1,)
        Scores of the edges.
    tails : ndarray of shape (2,)
        Slopes of the map in the first and the last bin.
    singles : ndarray of shape (n_bins,)
        Value of each bin that has only one distinct value, and NaN for other bins. A single linear
        map has one edge, and NaN on both sides of it.
    limits : ndarray of shape (2,)
        Smallest and largest value of the column.
    known : ndarray of shape (n_known,)
        Distinct values of a discrete column, ascending; empty for other columns. A column is
        discrete if it has several distinct values, which occur at least five times on average.

    References
    ----------
    .. [1] Liu, Lafferty, Wasserman (2009), "The nonparanormal: semiparametric estimation of high
       dimensional undirected graphs", Journal of Machine Learning Research 10, 2295-2328.
    .. [2] Akaike (1974), "A new look at the statistical model identification", IEEE Transactions on
       Automatic Control 19, 716-723. :doi:`10.1109/TAC.1974.1100705`
    """

    is_mixture: ClassVar[bool] = False  # the base distribution of scores is one normal distribution
    is_smooth: ClassVar[bool] = False  # the map from scores to numbers may have jumps

    edges: Array
    scores: Array
    tails: Array
    singles: Array
    limits: Array
    known: Array

    @classmethod
    def of(cls, values: Array, counts: Array) -> Self | None:
        """Learn a map from finite values and their counts, both of shape (n_values,).

        Maps with bins between values that differ by rounding are left out. The result is None if
        there are no values, or if no map has finite slopes.
        """
        x, counts = distinct(values, counts)
        if not len(x):
            return None
        if len(x) == 1:  # the scale is arbitrary, and samples are this value
            return cls(x, np.zeros(1), np.ones(2), np.full(2, np.nan), x[[0, 0]], x[:0])
        with np.errstate(all="ignore"):
            n_parameters = {cls._linear(x, counts): 2}
            for n_bins in CANDIDATE_BINS:
                if n_bins <= np.sqrt(counts.sum()):
                    scores = cls._of_bins(x, counts, _bins(counts, n_bins))
                    n_parameters[scores] = len(scores.singles) + 1  # slopes and an origin
            finite = [scores for scores in n_parameters if scores._has_widths]

        def criterion(scores: Self) -> float:
            return scores._log_likelihood(x, counts) - n_parameters[scores]

        return max(finite, key=criterion, default=None)

    @classmethod
    def _linear(cls, x: Array, counts: Array) -> Self:
        """Linear map of at least two distinct values to scores of mean zero and variance one."""
        scale = x[-1] - x[0]
        mean = x[0] + scale * np.average((x - x[0]) / scale, weights=counts)
        deviation = scale * np.sqrt(np.average(((x - mean) / scale) ** 2, weights=counts))
        slopes, singles = np.full(2, 1 / deviation), np.full(2, np.nan)
        return cls(
            np.array([mean]), np.zeros(1), slopes, singles, x[[0, -1]], _only_values(x, counts)
        )

    @classmethod
    def _of_bins(cls, x: Array, counts: Array, bins: Array) -> Self:
        """Piecewise linear map for ascending distinct values with given counts and bin numbers."""
        firsts = np.flatnonzero(np.diff(bins, prepend=-1))
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
        """Scores of numbers, with NaN for missing values; magnitudes are at most `MAX_SCORE`."""
        scores = _piecewise(x, self.edges, self.scores, self.tails)
        return np.clip(scores, -MAX_SCORE, MAX_SCORE)

    def inverse(self, z: Array) -> Array:
        """Numbers that correspond to scores."""
        return _piecewise(z, self.scores, self.edges, 1 / self.tails)

    def values(self, z: Array) -> Array:
        """Numbers that correspond to scores, limited to values that the column can have.

        The numbers are clipped to the range of the column. In a bin with only one distinct value,
        the number is this value. In a discrete column, numbers are rounded to the nearest value.
        """
        single, x = self.singles[np.searchsorted(self.scores, z)], self.inverse(z)
        if len(self.known):
            x = self.known[np.searchsorted(self.known[1:] / 2 + self.known[:-1] / 2, x)]
        return np.where(np.isnan(single), np.clip(x, *self.limits), single)

    def expected_values(self, mean: Array, draws: Array, deviation: float) -> Array:
        """Unbiased estimates of the expected numbers of normally distributed scores.

        `mean` is an array of means, `draws` has a draw for each of them, and `deviation` is the
        standard deviation. The numbers are averaged over scores in `N_STRATA` equally probable
        ranges, at the place that the draw has in its range, and over their mirror images.
        """
        place = N_STRATA * ndtr((draws.astype(np.float64) - mean) / deviation) % 1
        place = np.clip(place, MIN_PLACE, 1 - MIN_PLACE)  # a quantile of 0 or 1 is infinite
        z = ndtri((np.arange(N_STRATA)[:, None] + place) / N_STRATA)
        numbers = self.values(mean + deviation * np.concatenate([z, -z]))
        return numbers.mean(axis=0)

    def log_slope(self, z: Array) -> Array:
        """Logarithm of the slope of the map from numbers to scores, at given scores."""
        return self._log_slopes[np.searchsorted(self.scores, z)]

    def _log_likelihood(self, x: Array, counts: Array) -> float:
        z = self.forward(x)
        return float(counts @ (self.log_slope(z) - (z**2 + np.log(2 * np.pi)) / 2))

    @property
    def _has_widths(self) -> bool:
        """True if all slopes are finite, and no bin is as narrow as rounding errors."""
        least = ROUNDING * np.spacing(np.abs(self.edges[1:]))
        return bool(np.isfinite(self._log_slopes).all() and (np.diff(self.edges) > least).all())

    @cached_property
    def _log_slopes(self) -> Array:
        inner = np.log(np.diff(self.scores)) - np.log(np.diff(self.edges))
        return np.concatenate([np.log(self.tails[:1]), inner, np.log(self.tails[1:])])


def distinct(values: Array, counts: Array) -> tuple[Array, Array]:
    """Distinct values of a column in double precision, ascending, and their total counts."""
    x = values.astype(np.float64)
    if (x[1:] > x[:-1]).all():  # distinct already
        return x, counts.astype(np.float64)
    x, numbers = np.unique(x, return_inverse=True)
    return x, np.bincount(numbers, counts, len(x))


def moments(x: Array, weights: Array) -> tuple[float, float]:
    """Weighted mean and standard deviation of finite values, computed without overflow."""
    unit = np.abs(x).max() or 1.0
    mean = np.average(x / unit, weights=weights)
    variance = np.average((x / unit - mean) ** 2, weights=weights)
    return float(unit * mean), float(unit * np.sqrt(variance))


def _bins(counts: Array, n_bins: int) -> Array:
    """Divide ascending values with the given counts into about `n_bins` bins.

    A value with at least the mean count of a bin has a separate bin. Each run of values between
    such values is divided into bins with about equal counts. The result is the bin number of each
    value, of shape (n_values,).
    """
    size = counts.sum() / n_bins
    is_alone = counts >= size
    begins_run = is_alone | np.append(True, is_alone[:-1])
    bins, n_before = np.empty(len(counts), dtype=np.intp), 0
    firsts = np.flatnonzero(begins_run)
    for begin, end in zip(firsts, np.append(firsts[1:], len(counts)), strict=True):
        run = counts[begin:end]
        n_run_bins = max(round(run.sum() / size), 1) if end - begin > 1 else 1
        middles = (np.cumsum(run) - run / 2) / run.sum()
        _, bin_number = np.unique((middles * n_run_bins).astype(np.intp), return_inverse=True)
        bins[begin:end] = n_before + bin_number
        n_before = bins[end - 1] + 1
    return bins


def _only_values(x: Array, counts: Array) -> Array:
    """Distinct values `x` of a discrete column, and an empty array for any other column."""
    return x if counts.sum() >= MIN_COPIES * len(x) else x[:0]


def _piecewise(x: Array, knots: Array, values: Array, tails: Array) -> Array:
    """Piecewise linear function with `values` at the knots and slopes `tails` outside of them."""
    with np.errstate(over="ignore"):
        below, above = np.minimum(x - knots[0], 0), np.maximum(x - knots[-1], 0)
        return np.interp(x, knots, values) + tails[0] * below + tails[1] * above
