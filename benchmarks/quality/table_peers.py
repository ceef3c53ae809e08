"""Tables as arrays, for what knows no categories, and simple laws to draw synthetic tables from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.mixture import GaussianMixture

SMALLEST_PROBABILITY = 0.01  # of shares that are no probabilities
MIXTURES = (1, 2, 3, 5, 8, 12, 20)


def categories_of(X: pd.DataFrame) -> dict[str, np.ndarray]:
    """Categories of each column of text in the order of names; missing values count for nothing."""
    is_text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return {name: np.sort(X[name].dropna().unique()) for name in is_text}


class Encoding:
    """One-hot columns of categories, and numbers in standard deviations.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Table; missing values count for nothing.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        self.names, self.dtypes = list(X), X.dtypes
        self.categories = categories_of(X)
        self.numbers = [name for name in X if name not in self.categories]
        self.mean, self.scale = X[self.numbers].mean(), X[self.numbers].std(ddof=0)
        ends = np.cumsum([len(self.categories.get(name, [0])) for name in X])
        begins = np.concatenate([[0], ends[:-1]])
        self.columns = {n: slice(*own) for n, *own in zip(X, begins, ends, strict=True)}
        self.n_columns = int(ends[-1])

    @property
    def is_free(self) -> np.ndarray:
        """Columns that do not follow from the others: all but the last one of each category."""
        is_free = np.ones(self.n_columns, dtype=bool)
        is_free[[self.columns[name].stop - 1 for name in self.categories]] = False
        return is_free

    def complete(self, free: np.ndarray) -> np.ndarray:
        """All columns, from those that are free."""
        encoded = np.zeros((len(free), self.n_columns))
        encoded[:, self.is_free] = free
        for name in self.categories:
            own = self.columns[name]
            encoded[:, own.stop - 1] = 1 - encoded[:, own].sum(axis=1)
        return encoded

    def encode(self, X: pd.DataFrame) -> np.ndarray:
        """Columns in double precision, NaN where a value is missing."""
        encoded = np.empty((len(X), self.n_columns))
        for name, own in self.columns.items():
            if name in self.categories:
                values = X[name].to_numpy(dtype=object)[:, None]
                encoded[:, own] = np.where(
                    X[[name]].isna(), np.nan, values == self.categories[name]
                )
            else:
                values = X[name].to_numpy(dtype=float)
                encoded[:, own.start] = (values - self.mean[name]) / self.scale[name]
        return encoded

    def decode(self, encoded: np.ndarray) -> pd.DataFrame:
        """Table of the largest column of each category, and of numbers rounded as they were."""
        table = {}
        for name, own in self.columns.items():
            if name in self.categories:
                table[name] = self.categories[name][encoded[:, own].argmax(axis=1)]
            else:
                values = self.mean[name] + self.scale[name] * encoded[:, own.start]
                is_whole = pd.api.types.is_integer_dtype(self.dtypes[name])
                table[name] = np.rint(values).astype(int) if is_whole else values
        return pd.DataFrame(table)

    def shares(self, encoded: np.ndarray, name: str) -> np.ndarray:
        """Columns of a category as probabilities."""
        shares = np.clip(encoded[:, self.columns[name]], SMALLEST_PROBABILITY, None)
        return shares / shares.sum(axis=1, keepdims=True)


class Marginals:
    """Distribution of each column, in an order that makes it a distribution of numbers.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Table; categories are ordered by their frequency.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        self.values, self.ends = {}, {}
        for name in X:
            counts = X[name].value_counts()
            if pd.api.types.is_numeric_dtype(X[name]):
                counts = counts.sort_index()
            self.values[name] = counts.index.to_numpy()
            self.ends[name] = np.cumsum(counts.to_numpy()) / counts.sum()

    def ranks(self, name: str, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the interval of ranks that each value has in its column."""
        values, ends = self.values[name], np.append(self.ends[name], np.nan)
        if pd.api.types.is_numeric_dtype(column):
            place = np.searchsorted(values, column.to_numpy(dtype=float))  # the next one above
            place = np.where(column.isna(), -1, np.minimum(place, len(values) - 1))
        else:
            place = pd.Index(values).get_indexer(column)
        return np.where(place == 0, 0, ends[place - 1]), ends[place]

    def quantiles(self, name: str, ranks: np.ndarray) -> np.ndarray:
        """Values of these ranks."""
        place = np.searchsorted(self.ends[name], ranks)
        return self.values[name][np.minimum(place, len(self.values[name]) - 1)]


def independent(X: pd.DataFrame, n_samples: int, seed: int) -> pd.DataFrame:
    """Every column drawn from its own values."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(X[name].to_numpy(), n_samples) for name in X})


def gaussian_copula(X: pd.DataFrame, n_samples: int, seed: int) -> pd.DataFrame:
    """Normal scores that are correlated, with every column's own distribution.

    Categories are ranked by their frequency; values that are equal share an interval of ranks.
    """
    rng, marginals = np.random.default_rng(seed), Marginals(X)
    ranks = np.array([rng.uniform(*marginals.ranks(name, X[name])) for name in X])
    scores = stats.norm.ppf(np.clip(ranks, 1e-6, 1 - 1e-6))
    drawn = rng.multivariate_normal(np.zeros(len(scores)), np.corrcoef(scores), n_samples)
    own = zip(X, stats.norm.cdf(drawn).T, strict=True)
    return pd.DataFrame({name: marginals.quantiles(name, ranks) for name, ranks in own})


def gaussian_mixture(X: pd.DataFrame, n_samples: int, seed: int) -> pd.DataFrame:
    """Mixture of normal laws of encoded columns, as many as Schwarz's criterion wants."""
    encoding = Encoding(X)
    encoded = encoding.encode(X)
    options: dict[str, Any] = {"reg_covar": 1e-3, "random_state": seed}
    sizes = [size for size in MIXTURES if size <= len(X) // 10]
    models = [GaussianMixture(size, **options).fit(encoded) for size in sizes]
    best = min(models, key=lambda model: model.bic(encoded))
    return encoding.decode(best.sample(n_samples)[0])
