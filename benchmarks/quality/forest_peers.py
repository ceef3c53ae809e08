"""Peers built from trees: draws of rows, densities and filled holes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, logsumexp, ndtr
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401, importing enables
from sklearn.impute import IterativeImputer
from sklearn.utils.validation import validate_data

from benchmarks.quality.table_peers import categories_of

Draw = Callable[[int], pd.DataFrame]
Interval = tuple[float, float]
SMALLEST_DEVIATION = 1e-9  # of leaves of one value, in ranges of the column: a point mass
TWO_SIDED_95 = 1.96  # standard deviations


class Codes:
    """Categories as their place in the order of names, numbers as they are.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Table; missing values count for nothing.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        self.dtypes, self.categories = X.dtypes, categories_of(X)
        numbers = [name for name in X if name not in self.categories]
        self.decimals = {name: _decimals(X[name].dropna()) for name in numbers}

    def encode(self, X: pd.DataFrame) -> pd.DataFrame:
        """Table of numbers, with NaN for missing values and unknown categories."""
        encoded = {}
        for name in X:
            if name in self.categories:
                place = pd.Index(self.categories[name]).get_indexer(X[name]).astype(float)
                encoded[name] = np.where(place < 0, np.nan, place)
            else:
                encoded[name] = X[name].to_numpy(float)
        return pd.DataFrame(encoded)

    def decode(self, encoded: pd.DataFrame) -> pd.DataFrame:
        """Table of the nearest categories, and of numbers that are not rounded."""
        decoded = {}
        for name in encoded:
            values = encoded[name].to_numpy(float)
            if name in self.categories:
                categories = self.categories[name]
                values = categories[np.clip(np.rint(values), 0, len(categories) - 1).astype(int)]
            decoded[name] = values
        return pd.DataFrame(decoded)

    def rounded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Table whose numbers have as many decimals as those of the column."""
        rows = rows.copy()
        for name, decimals in self.decimals.items():
            values = rows[name].to_numpy(float).round(decimals)
            is_whole = pd.api.types.is_integer_dtype(self.dtypes[name])
            rows[name] = values.astype(int) if is_whole else values
        return rows


def _decimals(values: pd.Series, most: int = 6) -> int:
    """Number of decimals that the values have, or the most."""
    x = values.to_numpy(float)
    enough = (n for n in range(most) if np.allclose(x, x.round(n), rtol=0, atol=1e-9))
    return next(enough, most)


@dataclass(frozen=True)
class Leaves:
    """Density of an adversarial random forest: a mixture of its leaves.

    The columns are independent in a leaf. Numbers are normal, truncated at the bounds of the leaf.

    Parameters
    ----------
    log_weight : ndarray of shape (n_leaves,)
        Logarithm of the share of the rows, divided by the number of trees.
    low, high, mean, deviation : dict of ndarray of shape (n_leaves,)
        Bounds by column, and moments by column of numbers.
    counts : dict of ndarray of shape (n_leaves, n_categories)
        Rows by category, for each column of categories.
    """

    log_weight: np.ndarray
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    mean: dict[str, np.ndarray]
    deviation: dict[str, np.ndarray]
    counts: dict[str, np.ndarray]

    @classmethod
    def of(cls, forest: Any, names: list[str]) -> Leaves:
        """Leaves of a forest of arfpy after `forde`, whose columns are numbered."""
        leaf = ["tree", "nodeid"]
        share = forest.bnds.groupby(leaf)["cvg"].first()
        weight = np.log(share.to_numpy() / forest.num_trees)
        low, high, mean, deviation, counts = {}, {}, {}, {}, {}
        for j, name in enumerate(names):
            bounds = forest.bnds[forest.bnds["variable"] == j].set_index(leaf).loc[share.index]
            low[name], high[name] = bounds["min"].to_numpy(float), bounds["max"].to_numpy(float)
            if forest.factor_cols.iloc[j]:
                own = forest.class_probs[forest.class_probs["variable"] == j]
                wide = own.pivot_table(index=leaf, columns="value", values="prob", fill_value=0)
                wide = wide.reindex(columns=range(len(forest.levels[j])), fill_value=0)
                n_rows = share.to_numpy() * len(forest.x_real)
                counts[name] = wide.loc[share.index].to_numpy(float) * n_rows[:, None]
            else:
                own = forest.params[forest.params["variable"] == j].set_index(leaf)
                own = own.loc[share.index]
                mean[name], deviation[name] = own["mean"].to_numpy(float), own["sd"].to_numpy(float)
        return cls(weight, low, high, mean, deviation, counts)

    def log_likelihood(
        self,
        encoded: pd.DataFrame,
        cells: dict[str, dict[float, Interval]],
        ranges: dict[str, Interval],
        pseudocount: float,
    ) -> np.ndarray:
        """Log-likelihoods of encoded rows, in nats.

        Parameters
        ----------
        encoded : DataFrame of shape (n_samples, n_features)
            Complete rows of `Codes`.
        cells : dict of dict
            Ends of the interval whose probability is taken, by column and value. All other
            numbers have densities.
        ranges : dict of tuple of float
            Least and largest learned number of each column, the bounds of leaves without bounds.
        pseudocount : float
            Added to the count of each category within the bounds of a leaf.
        """
        total = np.tile(self.log_weight, (len(encoded), 1))
        for name in encoded:
            values = encoded[name].to_numpy(float)
            if name in self.counts:
                with np.errstate(divide="ignore"):
                    total += np.log(self._shares(name, pseudocount))[:, values.astype(int)].T
                continue
            ends = [cells[name].get(value, (np.nan, np.nan)) for value in values]
            low, high = np.array(ends).reshape(-1, 2).T
            is_cell = ~np.isnan(low)
            deviation = self._deviation(name, ranges[name], list(cells[name]))
            total[is_cell] += self._log_cells(name, low[is_cell], high[is_cell], deviation)
            total[~is_cell] += self._log_densities(name, values[~is_cell], deviation)
        return np.asarray(logsumexp(total, axis=1))

    def _shares(self, name: str, pseudocount: float) -> np.ndarray:
        counts = self.counts[name]
        codes = np.arange(counts.shape[1])
        is_inside = (codes > self.low[name][:, None]) & (codes <= self.high[name][:, None])
        counts = np.where(is_inside, counts + pseudocount, 0)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def _deviation(self, name: str, ends: Interval, with_cell: list[float]) -> np.ndarray:
        """Standard deviations of the leaves.

        A leaf of one value that has a cell is a point mass. Another leaf of one value has 95 % of
        the mass of its normal distribution within the bounds, as in the R package arf.
        """
        deviation, smallest = self.deviation[name], SMALLEST_DEVIATION * (ends[1] - ends[0])
        low, high = np.maximum(self.low[name], ends[0]), np.minimum(self.high[name], ends[1])
        wide = np.maximum((high - low) / (2 * TWO_SIDED_95), smallest)
        single = np.where(np.isin(self.mean[name], with_cell), smallest, wide)
        return np.where(deviation > 0, deviation, single)

    def _log_total(self, name: str, deviation: np.ndarray) -> np.ndarray:
        """Logarithm of the mass of the normal distributions within the bounds."""
        mean = self.mean[name]
        low, high = (self.low[name] - mean) / deviation, (self.high[name] - mean) / deviation
        return _log_mass(low, high)

    def _log_cells(
        self, name: str, low: np.ndarray, high: np.ndarray, deviation: np.ndarray
    ) -> np.ndarray:
        mean = self.mean[name]
        begin = (np.maximum(low[:, None], self.low[name]) - mean) / deviation
        end = (np.minimum(high[:, None], self.high[name]) - mean) / deviation
        return _log_mass(begin, end) - self._log_total(name, deviation)

    def _log_densities(self, name: str, values: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        x = values[:, None]
        z = (x - self.mean[name]) / deviation
        log_density = -(z**2) / 2 - np.log(np.sqrt(2 * np.pi) * deviation)
        is_inside = (self.low[name] < x) & (x <= self.high[name])
        return np.where(is_inside, log_density - self._log_total(name, deviation), -np.inf)


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Logarithm of the standard normal probability of intervals; -inf if they are empty."""
    flipped = low > 0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))
        log_mass = np.where((low < -5) | (high < -5), log_mass, np.log(ndtr(high) - ndtr(low)))
    return np.where(low < high, log_mass, -np.inf)


def adversarial_forest(X: pd.DataFrame, seed: int) -> tuple[Draw, Leaves]:
    """Draws and density of an adversarial random forest of arfpy by defaults."""
    from arfpy import arf

    codes = Codes(X)
    # arfpy 0.1.1 reads columns by their number, which pandas 3 takes for their name.
    numbered = pd.DataFrame(
        {j: pd.Categorical(X[n]) if n in codes.categories else X[n] for j, n in enumerate(X)}
    )
    np.random.seed(seed)  # noqa: NPY002, arfpy draws from NumPy's global stream

    # NumPy 2.4 has no in1d, which arfpy 0.1.1 calls.
    with patch.object(np, "in1d", np.isin, create=True):
        forest = arf.arf(numbered, verbose=False, random_state=seed)
    forest.forde()

    def draw(n_samples: int) -> pd.DataFrame:
        rows = forest.forge(n_samples).set_axis(list(X), axis=1)
        text = {name: rows[name].astype(object) for name in codes.categories}
        return codes.rounded(rows.assign(**text))

    return draw, Leaves.of(forest, list(X))


def unmasking_trees(X: pd.DataFrame, seed: int) -> Draw:
    """Draws of UnmaskingTrees of utrees by defaults."""
    from utrees import KDIQuantizer, UnmaskingTrees

    # utrees 0.3.0 calls a method that scikit-learn 1.6 made a function.
    KDIQuantizer._validate_data = lambda self, X, **options: validate_data(self, X, **options)
    codes = Codes(X)
    kinds = ["categorical" if name in codes.categories else "continuous" for name in X]
    model = UnmaskingTrees(random_state=seed, xgboost_kwargs={"n_jobs": 1})
    model.fit(codes.encode(X).to_numpy(), quantize_cols=kinds)

    def draw(n_samples: int) -> pd.DataFrame:
        with contextlib.redirect_stderr(io.StringIO()):
            rows = model.generate(n_samples)
        return codes.rounded(codes.decode(pd.DataFrame(rows, columns=list(X))))

    return draw


def random_forests(holes: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    """Table filled by IterativeImputer with a forest for each column."""
    codes = Codes(holes)
    forest = RandomForestRegressor(random_state=seed)
    filled = IterativeImputer(forest, random_state=seed).fit_transform(codes.encode(holes))
    return [codes.decode(pd.DataFrame(filled, columns=list(holes)))]


def miss_forest(holes: pd.DataFrame) -> list[pd.DataFrame]:
    """Table filled by MissForest by defaults, boosted trees of LightGBM, in one thread."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from missforest import MissForest

    codes = Codes(holes)
    options: dict[str, Any] = {"verbosity": -1, "linear_tree": True, "n_jobs": 1}
    models = LGBMClassifier(**options), LGBMRegressor(**options)
    imputer = MissForest(*models, categorical=list(codes.categories), verbose=0)
    return [codes.decode(imputer.fit_transform(codes.encode(holes)))]


def mice_forest(
    holes: pd.DataFrame, seed: int, n_imputations: int, n_iterations: int
) -> list[pd.DataFrame]:
    """Tables filled by miceforest by defaults.

    Where it predicts a share of zero, its matching of categories fails; they are then drawn by their
    shares, its strategy "fast".
    """
    import miceforest

    codes = Codes(holes)
    encoded = codes.encode(holes)
    for name, categories in codes.categories.items():
        places = encoded[name].astype("Int64")
        encoded[name] = places.astype(pd.CategoricalDtype(range(len(categories))))
    options: dict[str, Any] = {"num_datasets": n_imputations, "random_state": seed}
    try:
        kernel = miceforest.ImputationKernel(encoded, **options)
        kernel.mice(n_iterations, verbose=False, num_threads=1)
    except ValueError:
        strategy = {n: "fast" if n in codes.categories else "normal" for n in encoded}
        kernel = miceforest.ImputationKernel(encoded, mean_match_strategy=strategy, **options)
        kernel.mice(n_iterations, verbose=False, num_threads=1)
    return [codes.decode(kernel.complete_data(i).astype(float)) for i in range(n_imputations)]
