"""What does a pass over a mixed table cost, beside one over as many numbers?

60,000 rows of 20 categories of 5 to 30 values, 20 numbers and 10 flags, which depend on each other,
200 hidden units. The peer is GaussianBernoulliRBM on as many columns as the table has one-hot, at the
same batch size. Time is that of one pass, the median of rounds in turn; memory is the most that a
fit of one pass allocates beside the frame. Run from the repository:

    python -m benchmarks.speed.tables
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pandas as pd

from benchmarks import machine as where
from skrbm import GaussianBernoulliRBM, TabularRBM

N_ROWS, N_HIDDEN, N_ROUNDS = 60_000, 200, 7
N_CATEGORIES = np.linspace(5, 30, 20).astype(int)
MEGABYTE = 2**20


def frame(n_rows: int = N_ROWS) -> pd.DataFrame:
    """Columns of three kinds that follow a common state."""
    rng = np.random.default_rng(0)
    state = rng.random(n_rows)
    columns: dict[str, object] = {}
    for j, n_categories in enumerate(N_CATEGORIES):
        codes = ((state + 0.3 * rng.random(n_rows)) / 1.3 * n_categories).astype(int)
        names = [f"value {k}" for k in range(n_categories)]
        columns[f"category {j}"] = pd.Categorical.from_codes(codes, names)
    for j in range(20):
        columns[f"number {j}"] = j * state + rng.standard_normal(n_rows)
    for j in range(10):
        columns[f"flag {j}"] = rng.random(n_rows) < state
    return pd.DataFrame(columns)


def seconds(rbm: TabularRBM | GaussianBernoulliRBM, X: object) -> float:
    """Of a pass beside those that were made before."""
    begin = time.perf_counter()
    rbm.partial_fit(X)
    return time.perf_counter() - begin


def added_bytes(X: pd.DataFrame) -> int:
    """Most that a fit allocates beside the frame, its own results included."""
    tracemalloc.start()
    TabularRBM(N_HIDDEN, n_iter=1, random_state=0).fit(X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def main() -> None:
    question = where.begin(__doc__)
    X = frame()
    n_columns = int(N_CATEGORIES.sum()) + 30
    numbers = np.random.default_rng(1).standard_normal((N_ROWS, n_columns))
    table = TabularRBM(N_HIDDEN, n_iter=1, random_state=0).fit(X)
    peer = GaussianBernoulliRBM(N_HIDDEN, n_iter=1, random_state=0).fit(numbers)
    rounds = [(seconds(table, X), seconds(peer, numbers)) for _ in range(N_ROUNDS)]
    own, other = np.median(rounds, axis=0)
    ratio = float(np.median([one / two for one, two in rounds]))
    of_frame, added = int(X.memory_usage(deep=True).sum()), added_bytes(X)
    results = {
        "columns": n_columns,
        "seconds": float(own),
        "seconds of GaussianBernoulliRBM": float(other),
        "ratio": ratio,
        "megabytes of the frame": of_frame / MEGABYTE,
        "megabytes of a fit": added / MEGABYTE,
        "frames": added / of_frame,
    }
    for name, value in results.items():
        print(f"{name:32} {value:8.2f}")
    path = where.write("tables_speed", question, results, n_rows=N_ROWS, n_hidden=N_HIDDEN)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
