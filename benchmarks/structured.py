"""Rows of known structure: clusters, rare far groups, spins of a lattice, one factor, photographs.

Most of them are draws from a distribution whose log-likelihood is known, and all have independent
features to be compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.signal import lfilter
from scipy.special import expit, logsumexp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_sample_images
from sklearn.decomposition import PCA
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from skrbm import BernoulliRBM, GaussianBernoulliRBM, SpinRBM, TabularRBM

NOISE = 0.02  # probability that a bit differs from its group's pattern
SHARES = {"two": (0.5, 0.5), "two, 5 %": (0.95, 0.05), "five": (0.2,) * 5}
N_ROWS = 1000
N_SWEEPS = 400

# Rare far groups
N_BITS, N_NUMBERS, N_MANY_ROWS = 60, 12, 2000
GROUP_SIZES = 2, 6, 20  # of 2,000 rows
SPARSITY = 0.05  # probability of a one in ordinary rows
DISTANCE = 40.0  # deviations, in every column
FAR, N_FAR = 100.0, 3  # deviations, of one number; rows of 1,000
NEAREST, FARTHEST, N_SCATTERED = 30.0, 60.0, 6  # deviations, in every column; rows of 1,000
MEDIAN_LENGTH, LOG_SPREAD = 5.0, 1.2  # words of a document, and deviation of their logarithm
RADII, RING_NOISE = (1.0, 3.0), 0.1  # of two rings, and deviation from them
N_TIMES, NARROW = 100, 0.05  # times of a wave or a walk; deviation of numbers given the others
N_WIDE, SPACING = 50, 25  # columns; times from one window of a series to the next
CHANGES, BURST = (0.005, 0.05), 6.0  # probabilities that a quiet time and a burst end; their size
N_TOPICS, N_WORDS = 5, 500  # words of the dictionary, an equal number of each topic
FREQUENT, RARE = 0.05, 0.002  # probabilities of the words of a document's topic, and of others
LENGTHS = np.linspace(-6, 6, 1001)  # deviations of the log-length, where its density is summed


@dataclass(frozen=True)
class DataSet:
    """Rows to learn, and what is known of them.

    Parameters
    ----------
    name : str
        For the table of results.
    estimator : type
        Class of this package that models such rows.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Rows.
    log_density : ndarray of shape (n_samples,) or None
        Log-likelihood of each row under the distribution that they are from, in nats.
    is_rare : ndarray of bool of shape (n_samples,) or None
        Rows of a rare far group.
    options : dict
        Parameters of the estimator that depart from its defaults.
    """

    name: str
    estimator: type
    X: Any
    log_density: np.ndarray | None = None
    is_rare: np.ndarray | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def truth(self) -> float | None:
        """Mean log-likelihood of the rows under the distribution that they are from, in nats."""
        return None if self.log_density is None else float(self.log_density.mean())

    @property
    def true_area(self) -> float | None:
        """Area under the ROC curve of that distribution's own densities as scores of rare rows."""
        if self.is_rare is None or self.log_density is None:
            return None
        return float(roc_auc_score(self.is_rare, -self.log_density))

    @property
    def is_discrete(self) -> bool:
        """True for rows that have probabilities, which are at most one."""
        if isinstance(self.X, pd.DataFrame):
            return not any(dtype.kind == "f" for dtype in self.X.dtypes)
        return self.estimator is not GaussianBernoulliRBM

    @property
    def independent(self) -> float:
        """Mean log-likelihood if features were independent, in nats."""
        X = np.asarray(self.X, dtype=float)
        if not self.is_discrete:
            return float(stats.norm(X.mean(axis=0), X.std(axis=0)).logpdf(X).sum(axis=1).mean())
        share = (X.mean(axis=0) + 1) / 2 if self.estimator is SpinRBM else X.mean(axis=0)
        return float(-stats.entropy([share, 1 - share]).sum())


def clusters() -> Iterator[DataSet]:
    """Groups of rows around random patterns, the second being the opposite of the first."""
    for name, shares in SHARES.items():
        rng = np.random.default_rng(0)
        patterns, group = (
            rng.random((len(shares), 50)) < 0.5,
            rng.choice(len(shares), N_ROWS, p=shares),
        )
        patterns[1] = ~patterns[0]
        bits = patterns[group] ^ (rng.random((N_ROWS, 50)) < NOISE)
        density = mixture_of_bits(bits, np.abs(patterns - NOISE), shares)
        yield DataSet(f"bits, {name}", BernoulliRBM, bits.astype(float), density)
        yield DataSet(f"spins, {name}", SpinRBM, 2.0 * bits - 1, density)
        one_hot = np.stack([bits, ~bits], axis=2).reshape(N_ROWS, -1)
        yield DataSet(f"one-hot, {name}", BernoulliRBM, one_hot.astype(float), density)
        centres = 40.0 * patterns[:, :10]
        numbers = centres[group] + rng.normal(size=(N_ROWS, 10))
        density = mixture_of_numbers(numbers, centres, shares)
        yield DataSet(f"numbers, {name}", GaussianBernoulliRBM, numbers, density)


def tables_in_clusters() -> Iterator[DataSet]:
    """Tables of bits, in which no clusters are looked for before training."""
    rng, shares = np.random.default_rng([0, 1]), (0.4, 0.3, 0.3)
    patterns = rng.random((3, 50)) < 0.5
    patterns[1] = ~patterns[0]
    group = rng.choice(3, N_ROWS, p=shares)
    bits = patterns[group] ^ (rng.random((N_ROWS, 50)) < NOISE)
    density = mixture_of_bits(bits, np.abs(patterns - NOISE), shares)
    options = {"kinds": dict.fromkeys(range(50), "binary")}
    yield DataSet("tables, three", TabularRBM, bits.astype(float), density, options=options)


def lattices() -> Iterator[DataSet]:
    """Ising spins below, about and above the temperature at which they order."""
    for temperature in (1.8, 2.3, 3.5):
        yield DataSet(f"Ising spins, T = {temperature}", SpinRBM, ising(temperature))


def one_factor() -> Iterator[DataSet]:
    """Bits whose log-odds one hidden number moves together."""
    rng = np.random.default_rng(0)
    for n_columns in (300, 1000):
        odds = rng.normal(1.5, 0.5, n_columns) * rng.normal(size=(N_ROWS, 1))
        X = (rng.random((N_ROWS, n_columns)) < expit(odds)).astype(float)
        yield DataSet(f"one factor, {n_columns} columns", BernoulliRBM, X)


def factors() -> Iterator[DataSet]:
    """Numbers that have common factors, with clusters or heavy tails beside them or without."""
    rng = np.random.default_rng(0)
    loadings, noise = rng.normal(size=(5, 30)), rng.normal(size=(N_MANY_ROWS, 30)) / 2
    X = rng.normal(size=(N_MANY_ROWS, 5)) @ loadings + noise
    density = stats.multivariate_normal(cov=loadings.T @ loadings + np.eye(30) / 4).logpdf(X)
    yield DataSet("numbers, five factors", GaussianBernoulliRBM, X, density)
    X = rng.normal(size=(N_MANY_ROWS, 1)) + 0.3 * rng.normal(size=(N_MANY_ROWS, 20))
    density = stats.multivariate_normal(cov=1 + 0.09 * np.eye(20)).logpdf(X)
    yield DataSet("numbers, one factor", GaussianBernoulliRBM, X, density)
    centres, loadings = 2 * rng.normal(size=(5, 30)), 0.7 * rng.normal(size=(5, 3, 30))
    group, noise = rng.integers(5, size=N_MANY_ROWS), rng.normal(size=(N_MANY_ROWS, 30)) / 2
    latent = rng.normal(size=(N_MANY_ROWS, 3))
    X = centres[group] + np.einsum("nk,nkj->nj", latent, loadings[group]) + noise
    laws = [
        stats.multivariate_normal(c, w.T @ w + np.eye(30) / 4)
        for c, w in zip(centres, loadings, strict=True)
    ]
    density = logsumexp([law.logpdf(X) for law in laws], axis=0) - np.log(5)
    yield DataSet("numbers, clusters of factors", GaussianBernoulliRBM, X, density)
    loadings = rng.normal(size=(3, 20))
    law = stats.multivariate_t(shape=loadings.T @ loadings + np.eye(20) / 4, df=3)
    X = law.rvs(N_MANY_ROWS, random_state=rng)
    yield DataSet("numbers, heavy tails", GaussianBernoulliRBM, X, law.logpdf(X))
    for name, rows in ("breast cancer", load_breast_cancer()), ("diabetes", load_diabetes()):
        X = StandardScaler().fit_transform(rows.data)
        yield DataSet(f"numbers, {name}", GaussianBernoulliRBM, X)


def redundant_columns() -> Iterator[DataSet]:
    """Numbers that a few others nearly determine.

    Waves have random sizes and phases, and measurements are five of one quantity.
    """
    rng = np.random.default_rng(0)
    times = np.linspace(0, 1, N_TIMES)
    size, phase = rng.normal(size=(600, 1)), rng.uniform(size=(600, 1))
    waves = size * np.sin(2 * np.pi * (times + phase))
    quantity, factors = rng.normal(size=(N_ROWS, 1)), rng.normal(size=(3000, 4))
    exact = {
        "waves": waves,
        "five measurements": np.repeat(quantity, 5, axis=1),
        "four factors, 200 columns": factors @ rng.normal(size=(4, 200)),
    }
    for name, X in exact.items():
        X = X + NARROW * rng.normal(size=X.shape)
        yield DataSet(f"numbers, {name}", GaussianBernoulliRBM, X)
    walks = rng.normal(size=(N_ROWS, N_TIMES)).cumsum(axis=1)
    yield DataSet("numbers, random walks", GaussianBernoulliRBM, walks)
    yield DataSet("numbers, patches, 14", GaussianBernoulliRBM, patches(14)[::2])


def sources() -> Iterator[DataSet]:
    """Uncorrelated numbers that are not independent: rotated two-state sources, and digits."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    states = 2.0 * rng.integers(2, size=(N_MANY_ROWS, 8)) - 1
    X = states + 0.5 * rng.normal(size=(N_MANY_ROWS, 8))
    low, high = (stats.norm(state, 0.5).logpdf(X) for state in (-1, 1))
    density = (np.logaddexp(low, high) - np.log(2)).sum(axis=1)
    yield DataSet("numbers, two-state sources", GaussianBernoulliRBM, X @ rotation, density)
    X = PCA(20, whiten=True, random_state=0).fit_transform(load_digits().data)
    yield DataSet("numbers, whitened digits", GaussianBernoulliRBM, X)


def heavy_tails() -> Iterator[DataSet]:
    """Numbers of which some rows are much larger than others.

    Sources are cubes of Laplace variables. Bursts are windows of an autoregressive series whose
    noise is larger for a while.
    """
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(N_WIDE, N_WIDE)))[0]
    X = rng.laplace(size=(N_MANY_ROWS, N_WIDE)) ** 3 @ rotation
    yield DataSet(
        "numbers, rotated sources", GaussianBernoulliRBM, StandardScaler().fit_transform(X)
    )
    n_times = SPACING * (N_MANY_ROWS - 1) + N_WIDE
    lengths = rng.geometric(np.tile(CHANGES, n_times // 2))  # of quiet times and bursts in turn
    sizes = np.repeat(np.tile([1, BURST], n_times // 2), lengths)[:n_times]
    series = lfilter([1], [1, -1.6, 0.8], sizes * rng.normal(size=n_times))
    X = np.lib.stride_tricks.sliding_window_view(series, N_WIDE)[::SPACING]
    yield DataSet("numbers, bursts", GaussianBernoulliRBM, StandardScaler().fit_transform(X))


def photographs(sides: tuple[int, ...]) -> Iterator[DataSet]:
    """Square patches of photographs, grey or black and white."""
    for side in sides:
        grey = patches(side)
        yield DataSet(f"patches, {side}, grey", BernoulliRBM, grey)
        yield DataSet(f"patches, {side}, thresholded", BernoulliRBM, 1.0 * (grey > 0.5))


def topics() -> Iterator[DataSet]:
    """Words that occur in documents, each of which has one topic."""
    rng = np.random.default_rng(0)
    topic_of_word = np.arange(N_WORDS) * N_TOPICS // N_WORDS
    means = np.where(topic_of_word == np.arange(N_TOPICS)[:, None], FREQUENT, RARE)
    bits = rng.random((N_MANY_ROWS, N_WORDS)) < means[rng.integers(N_TOPICS, size=N_MANY_ROWS)]
    density = mixture_of_bits(bits, means, np.full(N_TOPICS, 1 / N_TOPICS))
    yield DataSet("bits, topics", BernoulliRBM, 1.0 * bits, density)


def rare_groups() -> Iterator[DataSet]:
    """Rows of which a few are far from all others."""
    for size in GROUP_SIZES:
        rows = f"{size} of {N_MANY_ROWS}"
        bits, density, is_rare = opposite_bits(size)
        yield DataSet(f"bits, opposite, {rows}", BernoulliRBM, 1.0 * bits, density, is_rare)
        yield DataSet(f"spins, opposite, {rows}", SpinRBM, 2.0 * bits - 1, density, is_rare)
        table = pd.DataFrame(bits, columns=[f"bit {i}" for i in range(N_BITS)])
        yield DataSet(f"table, opposite, {rows}", TabularRBM, table, density, is_rare)
        bits, density, is_rare = ones_in_sparse_rows(size)
        yield DataSet(f"bits, all ones, {rows}", BernoulliRBM, 1.0 * bits, density, is_rare)
        numbers, density, is_rare = far_cluster(size)
        yield from _of_numbers(f"far cluster, {rows}", numbers, density, is_rare)
    bits, density = documents()
    yield DataSet("bits, document lengths", BernoulliRBM, 1.0 * bits, density)
    numbers, density, is_rare = one_far_number()
    yield from _of_numbers(f"one far number, {N_FAR} of {N_ROWS}", numbers, density, is_rare)
    numbers, is_rare = scattered_rows()
    yield from _of_numbers(f"scattered, {N_SCATTERED} of {N_ROWS}", numbers, None, is_rare)


def shapes() -> Iterator[DataSet]:
    """Numbers on two rings, and in clusters within clusters."""
    rng = np.random.default_rng(0)
    angle, radius = 2 * np.pi * rng.random(N_MANY_ROWS), rng.choice(RADII, N_MANY_ROWS)
    rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    yield from _of_numbers("rings", rings + RING_NOISE * rng.normal(size=rings.shape), None, None)
    outer, inner = 30 * rng.normal(size=(3, 10)), 3 * rng.normal(size=(3, 3, 10))
    centers = (outer[:, None] + inner).reshape(-1, 10)
    X = centers[rng.integers(9, size=N_MANY_ROWS)] + 0.5 * rng.normal(size=(N_MANY_ROWS, 10))
    density = logsumexp(stats.norm.logpdf(X[:, None], centers, 0.5).sum(axis=2), axis=1) - np.log(9)
    yield from _of_numbers("clusters within clusters", X, density, None)


def _of_numbers(
    name: str, X: np.ndarray, density: np.ndarray | None, is_rare: np.ndarray | None
) -> Iterator[DataSet]:
    """Numbers for the Gaussian class, and for tables in the scale that outlier detection takes."""
    yield DataSet(f"numbers, {name}", GaussianBernoulliRBM, X, density, is_rare)
    options = {"numeric_scale": "standard"}
    table = pd.DataFrame(X, columns=[f"number {i}" for i in range(X.shape[1])])
    yield DataSet(f"table, {name}", TabularRBM, table, density, is_rare, options)


def opposite_bits(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits around a random pattern, a few around its opposite."""
    rng = np.random.default_rng(0)
    pattern = rng.random(N_BITS) < 0.5
    is_rare = _some_rows(size, N_MANY_ROWS, rng)
    noise = rng.random((N_MANY_ROWS, N_BITS)) < NOISE
    bits = (pattern ^ is_rare[:, None]) ^ noise
    means = np.abs(np.array([~pattern, pattern]) - NOISE)
    return bits, mixture_of_bits(bits, means, _shares(is_rare)), is_rare


def ones_in_sparse_rows(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits that are rarely one, a few rows nearly all ones."""
    rng = np.random.default_rng(0)
    is_rare = _some_rows(size, N_MANY_ROWS, rng)
    means = np.full((2, N_BITS), [[1 - NOISE], [SPARSITY]])
    bits = rng.random((N_MANY_ROWS, N_BITS)) < np.where(is_rare[:, None], *means)
    return bits, mixture_of_bits(bits, means, _shares(is_rare)), is_rare


def far_cluster(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal numbers, a few of them around another mean."""
    rng = np.random.default_rng(0)
    is_rare = _some_rows(size, N_MANY_ROWS, rng)
    centres = np.zeros((2, N_NUMBERS))
    centres[0] = DISTANCE * rng.choice([-1, 1], N_NUMBERS)
    X = np.where(is_rare[:, None], *centres) + rng.normal(size=(N_MANY_ROWS, N_NUMBERS))
    return X, mixture_of_numbers(X, centres, _shares(is_rare)), is_rare


def one_far_number() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal numbers, of which a few in the first column are far away."""
    rng = np.random.default_rng(0)
    is_rare = _some_rows(N_FAR, N_ROWS, rng)
    centres = np.zeros((2, N_NUMBERS))
    centres[0, 0] = FAR
    X = np.where(is_rare[:, None], *centres) + rng.normal(size=(N_ROWS, N_NUMBERS))
    return X, mixture_of_numbers(X, centres, _shares(is_rare)), is_rare


def scattered_rows() -> tuple[np.ndarray, np.ndarray]:
    """Normal numbers, and a few rows far away, each somewhere else."""
    rng = np.random.default_rng(0)
    is_rare = _some_rows(N_SCATTERED, N_ROWS, rng)
    X = rng.normal(size=(N_ROWS, N_NUMBERS))
    distance = rng.uniform(NEAREST, FARTHEST, (N_SCATTERED, N_NUMBERS))
    X[is_rare] += distance * rng.choice([-1, 1], distance.shape)
    return X, is_rare


def documents() -> tuple[np.ndarray, np.ndarray]:
    """Words that occur in documents of log-normal length, a few of which are very long.

    A word of frequency f occurs with the probability 1 - exp(-f * length).
    """
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, N_BITS + 1)
    frequency /= frequency.sum()

    def log_absence(deviations: np.ndarray) -> np.ndarray:
        lengths = MEDIAN_LENGTH * np.exp(LOG_SPREAD * deviations)
        return -lengths[:, None] * frequency

    X = rng.random((N_MANY_ROWS, N_BITS)) < -np.expm1(log_absence(rng.normal(size=N_MANY_ROWS)))
    weights = stats.norm.pdf(LENGTHS)
    means = -np.expm1(log_absence(LENGTHS))
    return X, mixture_of_bits(X, means, weights / weights.sum())


def mixture_of_bits(bits: np.ndarray, means: np.ndarray, shares: Any) -> np.ndarray:
    """Log-likelihood of each row under groups of independent bits."""
    means = np.clip(means, 1e-300, 1 - 1e-16)
    by_group = bits @ np.log(means).T + ~bits @ np.log1p(-means).T
    return np.asarray(logsumexp(by_group + np.log(shares), axis=1))


def mixture_of_numbers(X: np.ndarray, centres: np.ndarray, shares: Any) -> np.ndarray:
    """Log-density of each row under groups of normal numbers of variance one."""
    squares = ((X[:, None] - centres) ** 2).sum(axis=2)
    by_group = np.log(shares) - squares / 2 - X.shape[1] / 2 * np.log(2 * np.pi)
    return np.asarray(logsumexp(by_group, axis=1))


def ising(temperature: float, length: int = 6) -> np.ndarray:
    """Spins of a periodic square lattice: heat-bath sweeps, and flips of all spins."""
    rng = np.random.default_rng(0)
    s = rng.choice([-1.0, 1.0], (N_ROWS, 1, 1)) * np.ones((N_ROWS, length, length))
    is_even = np.indices((length, length)).sum(axis=0) % 2 == 0
    for _ in range(N_SWEEPS):
        for sites in (is_even, ~is_even):
            neighbours = sum(np.roll(s, step, axis) for step in (1, -1) for axis in (1, 2))
            is_up = rng.random(s.shape) < expit(2 * neighbours / temperature)
            s = np.where(sites, np.where(is_up, 1, -1), s)
        s = s * rng.choice([-1.0, 1.0], (N_ROWS, 1, 1))
    return s.reshape(N_ROWS, -1)


def patches(side: int) -> np.ndarray:
    """Grey patches of scikit-learn's two photographs, 7,000 rows."""
    grey = [image.mean(axis=2) / 255 for image in load_sample_images().images]
    found = [extract_patches_2d(g, (side, side), max_patches=3500, random_state=0) for g in grey]
    return np.concatenate(found).reshape(7000, -1)


def _some_rows(size: int, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Mask of so many rows."""
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[rng.choice(n_rows, size, replace=False)] = True
    return is_rare


def _shares(is_rare: np.ndarray) -> tuple[float, float]:
    return is_rare.mean(), 1 - is_rare.mean()
