"""Transformations of numeric columns whose base distribution is a mixture with atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Self, final, get_args

import numpy as np
from scipy.special import expit, logit

from skrbm.core.numerics import Array
from skrbm.estimators.tables.scores import (
    MAX_SCORE,
    MAX_VALUE,
    MIN_COPIES,
    NormalScores,
    distinct,
    moments,
)

MIN_ATOM_SHARE = 0.05  # smallest fraction of the rows with the value of an atom
MIN_ATOM_RATIO = 4.0  # smallest ratio of an atom's count to the counts of the neighboring values
MAX_ATOMS = 20  # largest number of distinct values of a column of atoms alone
# Largest number of values that "normal" takes for atoms. A classifier tells samples of 15 dependent
# columns of two values from the rows with an area of .52 (normal scores .90), of five values of
# .55 (.56), of ten values of .58 (.53).
MAX_NORMAL_ATOMS = 5
# Smallest fraction of the rows for which "normal" takes a value for an atom; it must also occur
# `MIN_ATOM_RATIO` times as often as any rarer value. With the atoms of "mixture", the distribution
# of a column of credits differs by up to .09 between samples and unseen rows (Kolmogorov and
# Smirnov) instead of .06 to .07, and 8 % of the irises are taken for another species instead of 4 %.
MIN_NORMAL_SHARE = 0.2
MAX_COMPONENTS = 5  # normal components of a column
MIN_COMPONENT_ROWS = 10  # rows per normal component
MAX_FITTED_VALUES = 2000  # with more distinct values, neighboring values are averaged
N_EM_STEPS, MIN_EM_GAIN = 200, 1e-6  # steps, nats per row
SMALLEST_DEVIATION = 0.03  # of a component, in standard deviations of the column
# Largest distance of an atom from the mean, in standard deviations: those of the other values or,
# if the column consists of atoms alone, those of all values.
LARGEST_ATOM = 3.0
BETWEEN_ATOMS = 0.01  # standard deviations: smallest distance of two atoms
OUTSIDE = 10.0  # standard deviations: distance from the mean of numbers that are not expected
RARE = 30.0  # nats: negative log-probability of other values in a column with a single value


class Map(NamedTuple):
    """Increasing function, its inverse and the logarithm of its derivative."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


MAPS = {  # Johnson's four families
    "linear": Map(lambda u: u, lambda y: y, np.zeros_like),
    "log": Map(np.log, np.exp, lambda u: -np.log(u)),
    "logit": Map(logit, expit, lambda u: -np.log(u) - np.log1p(-u)),
    "asinh": Map(
        np.arcsinh, np.sinh, lambda u: -np.log1p(np.clip(u, -MAX_SCORE, MAX_SCORE) ** 2) / 2
    ),
}
RANGES = {"log": (0.0, np.inf), "logit": (0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class ScaleWithAtoms(ABC):
    """Transformation of a numeric column whose scaled numbers are a mixture with atoms.

    An atom is a value with a positive probability, such as a debt of zero. All other values are
    transformed. A result y is scaled to ``(y - origin) / scale``.

    Parameters
    ----------
    origin, scale : float
        Mean and standard deviation of the results of the transformation under the base
        distribution, in which each atom counts with the place that `center` gives it. In a column
        of atoms alone, `scale` is at least a third of the largest distance of an atom from the
        mean. For a column with one value, it is 1.
    log_weight, center, spread : ndarray of shape (n_atoms + n_components,)
        Log-weights, means and variances of the components of the base distribution of the scaled
        numbers, as in :class:`skrbm.core.units.Mixture`. The atoms come first; the mean of an atom
        is its place among the scaled numbers.
    atoms : ndarray of shape (n_atoms,)
        Values of the atoms, ascending.
    """

    is_mixture: ClassVar[bool] = True

    origin: float
    scale: float
    log_weight: Array
    center: Array
    spread: Array
    atoms: Array

    @abstractmethod
    def forward(self, x: Array) -> Array:
        """Scaled numbers, with NaN for missing values; atoms become their entries in `center`."""

    @abstractmethod
    def values(self, z: Array) -> Array:
        """Numbers that correspond to scaled numbers, in the unit of measurement of the column."""

    def expected_values(self, mean: Array, draws: Array, deviation: float) -> Array:
        """Numbers that correspond to `draws`, since there is no formula for the expected number."""
        return self.values(draws)

    @abstractmethod
    def log_slope(self, z: Array) -> Array:
        """Logarithm of the derivative of `forward` at given scaled numbers; zero for atoms."""

    def _with_atoms(self, atoms: Array, shares: Array) -> Self:
        """Transformation without atoms, with atoms that have given shares of the rows added.

        The base distribution is scaled to mean zero and variance one.
        """
        places = np.clip(self.forward(atoms), -LARGEST_ATOM, LARGEST_ATOM)
        places += BETWEEN_ATOMS * np.arange(len(atoms))  # clipped atoms would coincide
        log_weight = np.append(np.log(shares), self.log_weight + np.log1p(-shares.sum()))
        center, spread = np.append(places, self.center), np.append(0 * places, self.spread)
        weights = np.exp(log_weight)
        mean = weights @ center
        deviation = np.sqrt(weights @ (center**2 + spread) - mean**2)
        return replace(
            self,
            origin=float(self.origin + self.scale * mean),
            scale=float(self.scale * deviation),
            log_weight=log_weight,
            center=(center - mean) / deviation,
            spread=spread / deviation**2,
            atoms=atoms,
        )

    def _places(self, dtype: Any) -> Array:
        """Scaled numbers of the atoms, in the data type of the states."""
        return self.center[: len(self.atoms)].astype(dtype)


@final
@dataclass(frozen=True, eq=False)
class MixtureScale(ScaleWithAtoms):
    """Smooth transformation of a numeric column, and the distribution of the transformed numbers.

    A value is frequent if at least a twentieth of the rows and at least five rows have it. A
    frequent value is an atom if it has at least four times as many rows as each of the two
    neighboring values. In a run of neighboring frequent values, all are atoms if both ends stand
    out: the first has at least four times as many rows as the value before the run, and the last as
    the value after it. A column consists of atoms alone if it has at most 20 distinct values, which
    occur at least five times on average. It also consists of atoms alone if fewer than ten rows
    have values other than atoms.

    All other values are transformed by one of Johnson's transformations [1]_ and then have the
    density of a mixture of normal distributions. The transformation and the number of components
    are chosen by the Bayesian information criterion (BIC) [2]_.

    Parameters
    ----------
    origin, scale, log_weight, center, spread, atoms
        As in `ScaleWithAtoms`.
    kind : {"linear", "log", "logit", "asinh"}
        Name of the transformation.
    place, unit : float
        Numbers that shift and scale the column: the transformation is applied to
        ``(x - place) / unit``. They are 0 and 1, except for "asinh".

    References
    ----------
    .. [1] Johnson (1949), "Systems of frequency curves generated by methods of translation",
       Biometrika 36, 149-176. :doi:`10.1093/biomet/36.1-2.149`
    .. [2] Schwarz (1978), "Estimating the dimension of a model", Annals of Statistics 6, 461-464.
       :doi:`10.1214/aos/1176344136`
    """

    is_smooth: ClassVar[bool] = True

    kind: str
    place: float
    unit: float

    @classmethod
    def of(cls, values: Array, counts: Array) -> MixtureScale | None:
        """Learn a scale from finite values and their counts, both of shape (n_values,).

        The result is None if there are no values.
        """
        x, counts = distinct(values, counts)
        if not len(x):
            return None
        is_atom = _are_atoms(counts)
        rest, weight = _grouped(x[~is_atom], counts[~is_atom])
        fits = list(_fits(rest, weight)) if weight.sum() >= MIN_COMPONENT_ROWS else []
        if not fits:
            return cls._of_atoms(x, counts)
        _, fit = min(fits, key=itemgetter(0))
        return fit._with_atoms(x[is_atom], counts[is_atom] / counts.sum())

    @classmethod
    def _of_atoms(cls, x: Array, counts: Array) -> Self:
        """Scale of a column that consists of atoms alone.

        All other values together have a probability of at most 1 / (n_rows + 1).
        """
        mean, deviation = moments(x, counts)
        # A weight changes the log-odds of an atom by its place times the weight: the probability of
        # a rare value far from the others would be that of chance.
        deviation = max(deviation, float(np.abs(x - mean).max()) / LARGEST_ATOM) or 1.0
        other = np.exp(-RARE) if len(x) == 1 else 1 / (counts.sum() + 1)
        share = np.append((1 - other) * counts / counts.sum(), other)
        places = (x - mean) / deviation
        if (np.diff(places.astype(np.float32)) == 0).any():  # equal atoms could not be told apart
            places += BETWEEN_ATOMS * np.arange(len(x))
        center, spread = np.append(places, 0), np.append(0 * x, 1)
        return cls(mean, deviation, np.log(share), center, spread, x, "linear", 0.0, 1.0)

    def forward(self, x: Array) -> Array:
        """Scaled numbers, with NaN for missing values.

        Atoms become their entries in `center`; in a column of atoms alone, also numbers that equal
        an atom in single precision. Numbers whose scaled number would equal that of an atom in a
        column of atoms alone become -`OUTSIDE` or `OUTSIDE`.
        """
        with np.errstate(over="ignore"):
            y = self._transformed((x.astype(np.float64) - self.place) / self.unit)
            z = np.clip((y - self.origin) / self.scale, -MAX_SCORE, MAX_SCORE)
        z = np.where(np.isnan(x), np.nan, z).astype(x.dtype)
        places, precisions = self._places(x.dtype), [x.dtype]
        if self._has_atoms_alone:
            z = np.where(np.isin(z, places), np.copysign(OUTSIDE, y), z)
            # Atoms may have been learned in single precision.
            precisions = [np.dtype(np.float32), x.dtype]
        for precision in precisions:  # exact matches replace those in single precision
            with np.errstate(over="ignore"):
                rounded, atoms = x.astype(precision), self.atoms.astype(precision)
            z = _replaced(z, rounded, atoms, places)
        return z.astype(x.dtype)

    def values(self, z: Array) -> Array:
        """Numbers that correspond to scaled numbers, in the unit of measurement of the column.

        In a column of atoms alone, they are rounded to the nearest atom.
        """
        x = self.place + self.unit * self._argument(z)
        if self._has_atoms_alone:
            x = self.atoms[np.searchsorted(self.atoms[1:] / 2 + self.atoms[:-1] / 2, x)]
        return _replaced(x, z, self._places(z.dtype), self.atoms)

    def log_slope(self, z: Array) -> Array:
        """Logarithm of the derivative of `forward` at given scaled numbers; zero for atoms."""
        inside, beyond = z.astype(np.float64), np.zeros(len(z))
        if self.kind in RANGES:
            ends = (MAPS[self.kind].forward(np.array(self._edges)) - self.origin) / self.scale
            inside = np.clip(inside, *ends)
            beyond = self.scale * np.abs(z - inside)
        slope = MAPS[self.kind].log_slope(self._argument(inside)) - beyond
        return np.where(
            np.isin(z, self._places(z.dtype)), 0, slope - np.log(self.unit * self.scale)
        )

    def _transformed(self, u: Array) -> Array:
        """Transformed arguments, which may be outside the domain of the transformation.

        Beyond an edge with the slope m, the transformation is continued: at a distance d from the
        edge, it differs from its value at the edge by log(1 + m d). The slope is then m / (1 + m d).
        """
        mapping = MAPS[self.kind]
        if self.kind not in RANGES:
            return mapping.forward(np.nan_to_num(u, nan=np.nan))  # arguments may overflow
        inside = np.clip(u, *self._edges)
        with np.errstate(divide="ignore", invalid="ignore"):  # no distance, missing values
            log_ratio = np.log(np.abs(u - inside)) + mapping.log_slope(inside)
            beyond = np.logaddexp(0, log_ratio)
        return mapping.forward(inside) + np.copysign(beyond, u - inside)

    @cached_property
    def _edges(self) -> tuple[float, float]:
        """Arguments close to the bounds of the domain, or a bound that is infinite.

        They are at least `OUTSIDE` standard deviations beyond the mean and all components of the
        base distribution. At a bound of the domain, the density is zero or infinite.
        """
        normal = slice(len(self.atoms), None)
        center, reach = self.center[normal], OUTSIDE * np.sqrt(self.spread[normal])
        low, high = min(-OUTSIDE, *(center - reach)), max(OUTSIDE, *(center + reach))
        edges = self._argument(np.array([low, high]))
        low, high = np.where(np.isfinite(RANGES[self.kind]), edges, RANGES[self.kind])
        return float(low), float(high)

    @property
    def _has_atoms_alone(self) -> bool:
        """True for scales from `_of_atoms`, with a standard normal component for other numbers."""
        is_single = len(self.center) == len(self.atoms) + 1 > 1
        return bool(is_single and self.center[-1] == 0 and self.spread[-1] == 1)

    def _argument(self, z: Array) -> Array:
        """Argument of the transformation for given scaled numbers, in double precision."""
        with np.errstate(over="ignore"):
            u = MAPS[self.kind].inverse(self.origin + self.scale * z.astype(np.float64))
        low, high = RANGES.get(self.kind, (-np.inf, np.inf))
        largest = MAX_VALUE / self.unit
        return np.clip(u, max(np.nextafter(low, 1), -largest), min(np.nextafter(high, 0), largest))


@final
@dataclass(frozen=True, eq=False)
class ScoresWithAtoms(ScaleWithAtoms):
    """Atoms of a numeric column, and normal scores of its other values.

    Parameters
    ----------
    origin, scale, log_weight, center, spread, atoms
        As in `ScaleWithAtoms`. The scores of the other values are the only other component.
    rest : dict
        Fields of the `NormalScores` object that transforms the values other than atoms.
    """

    is_smooth: ClassVar[bool] = False

    rest: dict[str, Array]

    @classmethod
    def of(cls, x: Array, counts: Array, is_atom: Array) -> Self | None:
        """Learn a transformation from ascending values, their counts and the mask of the atoms.

        The result is None if `NormalScores.of` returns None for the other values.
        """
        scores = NormalScores.of(x[~is_atom], counts[~is_atom])
        if scores is None:
            return None
        fit = cls(0.0, 1.0, np.zeros(1), np.zeros(1), np.ones(1), x[:0], asdict(scores))
        return fit._with_atoms(x[is_atom], counts[is_atom] / counts.sum())

    def forward(self, x: Array) -> Array:
        """Scaled numbers, with NaN for missing values; atoms become their entries in `center`."""
        z = (self._scores.forward(x.astype(np.float64)) - self.origin) / self.scale
        with np.errstate(over="ignore"):  # in single precision
            z, atoms = z.astype(x.dtype), self.atoms.astype(x.dtype)
        return _replaced(z, x, atoms, self._places(x.dtype))

    def values(self, z: Array) -> Array:
        """Numbers that correspond to scaled numbers, limited as in `NormalScores.values`."""
        x = self._scores.values(self._unscaled(z))
        return _replaced(x, z, self._places(z.dtype), self.atoms)

    def log_slope(self, z: Array) -> Array:
        """Logarithm of the derivative of `forward` at given scaled numbers; zero for atoms."""
        slope = self._scores.log_slope(self._unscaled(z)) - np.log(self.scale)
        return np.where(np.isin(z, self._places(z.dtype)), 0, slope)

    @cached_property
    def _scores(self) -> NormalScores:
        return NormalScores(**self.rest)

    def _unscaled(self, z: Array) -> Array:
        """Normal scores that correspond to scaled numbers, in double precision."""
        return self.origin + self.scale * z.astype(np.float64)


NumericScale = NormalScores | ScoresWithAtoms | MixtureScale


def scale_from(arrays: dict[str, Any]) -> NumericScale:
    """Transformation with the given fields."""
    names = {kind: {field.name for field in fields(kind)} for kind in get_args(NumericScale)}
    return next(kind for kind, own in names.items() if own == set(arrays))(**arrays)


def normal_scale(values: Array, counts: Array) -> NumericScale | None:
    """Normal scores of a column, with atoms if it has few values or a very frequent one.

    Normally distributed units are wrong for few values: their variances collapse onto the values,
    since the likelihood is unbounded there. Samples of two values, one of them in 30 % of the rows,
    then had the other one in all rows. They are also wrong for a column of debts, of which 53 %
    are zero: the 99 % quantile of samples was then 20 to 33 % lower than that of unseen rows. With
    an atom at zero, it is 8 to 13 % higher. The result is None if `NormalScores.of` returns None.
    """
    x, counts = distinct(values, counts)
    if _has_few_values(counts):
        return (MixtureScale if 1 < len(x) <= MAX_NORMAL_ATOMS else NormalScores).of(x, counts)
    is_atom = counts >= MIN_NORMAL_SHARE * counts.sum()
    others, limit = counts[~is_atom], counts.min(initial=np.inf, where=is_atom) / MIN_ATOM_RATIO
    if is_atom.any() and others.sum() >= MIN_COMPONENT_ROWS and others.max() <= limit:
        return ScoresWithAtoms.of(x, counts, is_atom)
    return NormalScores.of(x, counts)


def stacked_bases(scales: Sequence[MixtureScale]) -> dict[str, Array]:
    """Base distributions of several columns, as arguments of :class:`skrbm.core.units.Mixture`."""
    shape = len(scales), max((len(scale.center) for scale in scales), default=0)
    bases = {"log_weight": np.full(shape, -np.inf), "center": np.zeros(shape)}
    bases["spread"] = np.zeros(shape)
    for name, base in bases.items():
        for row, scale in zip(base, scales, strict=True):
            values = getattr(scale, name)
            row[: len(values)] = values
    return bases


def _replaced(result: Array, given: Array, keys: Array, values: Array) -> Array:
    """`result`, except where `given` equals a key: there, the value of the key."""
    for key, value in zip(keys, values, strict=True):
        result = np.where(given == key, value, result)
    return result


def _fits(x: Array, weight: Array) -> Iterator[tuple[float, MixtureScale]]:
    """Fit scales without atoms to ascending values with weights.

    For each scale, half its BIC in nats and the scale are yielded.
    """
    total, no_atoms = weight.sum(), x[:0]
    for kind, mapping in MAPS.items():
        place, unit = _argument_scale(kind, x, weight)
        with np.errstate(over="ignore"):  # infinity is outside every domain
            u = (x - place) / unit
        low, high = RANGES.get(kind, (-np.inf, np.inf))
        if not (low < u[0] <= u[-1] < high):
            continue
        y = mapping.forward(u)
        origin, scale = moments(y, weight)
        if not scale > np.spacing(np.abs(y).max()) * len(y):
            continue
        z = (y - origin) / scale
        log_slopes = weight @ mapping.log_slope(u) - total * np.log(unit * scale)
        least = np.inf
        for n_components in range(1, MAX_COMPONENTS + 1):
            if n_components * MIN_COMPONENT_ROWS > total:
                break
            log_weight, mean, variance, log_likelihood = _normal_mixture(z, weight, n_components)
            n_parameters = 3 * n_components - 1 + (kind != "linear")
            criterion = n_parameters * np.log(total) / 2 - log_likelihood - log_slopes
            if criterion >= least:
                break
            least = criterion
            base = log_weight, mean, variance
            yield criterion, MixtureScale(origin, scale, *base, no_atoms, kind, place, unit)


def _argument_scale(kind: str, x: Array, weight: Array) -> tuple[float, float]:
    """Shift and scale of a column before its transformation.

    For "asinh", they are the median and the median absolute deviation or, if this is zero, the
    range. For the other transformations, they are 0 and 1.
    """
    if kind != "asinh":
        return 0.0, 1.0
    median = _median(x, weight)
    distance = np.abs(x - median)
    order = np.argsort(distance)
    return median, _median(distance[order], weight[order]) or float(np.ptp(x)) or 1.0


def _median(x: Array, weight: Array) -> float:
    return float(x[np.searchsorted(np.cumsum(weight), weight.sum() / 2)])


def _has_few_values(counts: Array) -> bool:
    """True if a column with the given counts of its distinct values consists of atoms alone."""
    return len(counts) <= MAX_ATOMS and bool(counts.sum() >= MIN_COPIES * len(counts))


def _are_atoms(counts: Array) -> Array:
    """Mask of the atoms among ascending values, given the counts of the values."""
    total = counts.sum()
    if len(counts) == 1 or _has_few_values(counts):
        return np.ones(len(counts), dtype=bool)
    is_frequent = counts >= max(MIN_ATOM_SHARE * total, MIN_COPIES)
    before, after = np.append(0, counts[:-1]), np.append(counts[1:], 0)
    is_atom = is_frequent & (counts >= MIN_ATOM_RATIO * np.maximum(before, after))
    # Neighboring frequent values, such as two codes, are atoms if both ends of the run stand out.
    ends = np.diff(is_frequent.astype(np.int8), prepend=0, append=0)
    for first, last in zip(np.flatnonzero(ends > 0), np.flatnonzero(ends < 0) - 1, strict=True):
        stands_out = counts[[first, last]] >= MIN_ATOM_RATIO * np.array(
            [before[first], after[last]]
        )
        is_atom[first : last + 1] |= stands_out.all()
    return is_atom


def _grouped(x: Array, counts: Array) -> tuple[Array, Array]:
    """Average neighboring values and add their counts if there are too many distinct values.

    The result is at most `MAX_FITTED_VALUES` values and their counts.
    """
    if len(x) <= MAX_FITTED_VALUES:
        return x, counts
    begins = np.unique(np.linspace(0, len(x), MAX_FITTED_VALUES, endpoint=False, dtype=np.intp))
    weight = np.add.reduceat(counts, begins)
    return np.add.reduceat(
        x * (counts / np.repeat(weight, np.diff(begins, append=len(x)))), begins
    ), weight


def _normal_mixture(
    z: Array, weight: Array, n_components: int
) -> tuple[Array, Array, Array, float]:
    """Fit a mixture of normal distributions by expectation maximization.

    Initially, the ascending values are divided into one block per component, with about equal
    counts. The results are the log-weights, means and variances of the components, and the
    log-likelihood of all values in nats.
    """
    total, before = weight.sum(), -np.inf
    ranks = (np.cumsum(weight) - weight / 2) / total
    share = np.eye(n_components)[np.minimum(ranks * n_components, n_components - 1).astype(np.intp)]
    for _ in range(N_EM_STEPS):
        counts = share * weight[:, None]
        rows = counts.sum(axis=0) + np.finfo(np.float64).tiny
        mean = z @ counts / rows
        square = (z[:, None] - mean) ** 2
        variance = (square * counts).sum(axis=0) / rows + SMALLEST_DEVIATION**2
        log_weight = np.log(rows / rows.sum())
        exponent = log_weight - (square / variance + np.log(2 * np.pi * variance)) / 2
        top = exponent.max(axis=1)
        share = np.exp(exponent - top[:, None])
        sums = share.sum(axis=1)
        share /= sums[:, None]
        log_likelihood = float(weight @ (top + np.log(sums)))
        if log_likelihood - before < MIN_EM_GAIN * total:
            break
        before = log_likelihood
    return log_weight, mean, variance, log_likelihood
