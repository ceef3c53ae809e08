"""Do the times of a fit and of the scores grow in proportion to rows and columns?

Processor time of one thread, by defaults (256 hidden units), for BernoulliRBM on bits, for
GaussianBernoulliRBM on numbers and for TabularRBM on a frame, half of whose columns are numbers and half
categories with five values. An epoch is the difference of fits of four epochs and one; the rest of the
shorter fit is the time before and after. transform and score_samples are of all rows, or of 10,000
scaled up. Single runs: read them to one digit. Run from the repository:

    python -m benchmarks.speed.cost
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from skrbm import BernoulliRBM, GaussianBernoulliRBM, TabularRBM

SIZES = [(1_000, 10), (1_000, 100), (1_000, 784), (10_000, 10), (10_000, 100), (10_000, 784)]
SIZES += [(100_000, 10), (100_000, 100), (100_000, 784)]
MAX_COLUMNS_OF_NUMBERS, N_SCORED, N_FACTORS = 100, 10_000, 5


def bits(n_rows: int, n_columns: int) -> np.ndarray:
    """Rows of bits that follow a few hidden factors."""
    rng = np.random.default_rng(0)
    factors = rng.random((n_rows, N_FACTORS)) < 0.5
    fields = factors @ rng.normal(0, 2, (N_FACTORS, n_columns)) - 1
    return rng.random((n_rows, n_columns)) < 1 / (1 + np.exp(-fields))


def numbers(n_rows: int, n_columns: int) -> np.ndarray:
    """Rows of numbers that follow a few hidden factors."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, N_FACTORS))
    noise = rng.normal(size=(n_rows, n_columns))
    return factors @ rng.normal(size=(N_FACTORS, n_columns)) + noise


def frame(n_rows: int, n_columns: int) -> pd.DataFrame:
    """Half numbers, half categories, all of which follow a few hidden factors."""
    table = pd.DataFrame(numbers(n_rows, n_columns)).add_prefix("column")
    for name in table.columns[: n_columns // 2]:
        table[name] = pd.cut(table[name], 5, labels=list("abcde"))
    return table


def seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(model: Any, X: Any) -> dict[str, float]:
    """Seconds of an epoch, of the rest of a fit, and of two kinds of inference."""
    one = seconds(lambda: model.set_params(n_iter=1).fit(X))
    four = seconds(lambda: model.set_params(n_iter=4).fit(X))
    scored = X[:N_SCORED]
    scale = len(X) / len(scored)
    epoch = (four - one) / 3
    return {
        "epoch, s": epoch,
        "rest of a fit, s": one - epoch,
        "transform, s": scale * seconds(lambda: model.transform(scored)),
        "score_samples, s": scale * seconds(lambda: model.score_samples(scored)),
    }


def main() -> None:
    question = where.begin(__doc__)
    threadpool_limits(1)
    warnings.simplefilter("ignore")  # four epochs need not be a good fit
    results: dict[str, dict[str, float]] = {}
    for n_rows, n_columns in SIZES:
        cases = [("BernoulliRBM", BernoulliRBM(random_state=0), bits)]
        if n_columns <= MAX_COLUMNS_OF_NUMBERS:
            cases.append(("GaussianBernoulliRBM", GaussianBernoulliRBM(random_state=0), numbers))
            cases.append(("TabularRBM", TabularRBM(random_state=0), frame))
        for name, model, make in cases:
            found = measure(model, make(n_rows, n_columns))
            results[f"{name}, {n_rows} x {n_columns}"] = found
            print(f"{name:21} {n_rows:7} x {n_columns:<4}", *(f"{t:9.3f}" for t in found.values()))
    path = where.write("cost", question, results, n_components=256, threads=1)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
