"""How much sooner do our defaults reach the best model that scikit-learn's class learns?

Binarised MNIST, 784 x 500, float32, 10 epochs of scikit-learn's BernoulliRBM for every batch size
and learning rate of a grid; ours with n_components and n_iter alone, seven fits of one epoch
between those of the winner. Test log-likelihood from both sides. Run from the repository:

    python -m benchmarks.quality.time_to_quality
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import numpy as np
from sklearn.neural_network import BernoulliRBM as TheirRBM

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import as_skrbm, bracket
from skrbm import BernoulliRBM

GRID = list(itertools.product((10, 100), (0.1, 0.05, 0.01, 0.001)))
N_REPEATS = 7
N_SCREENING = 1000  # temperatures that tell the grid's winner


def timed(rbm: Any, X: np.ndarray) -> float:
    """Seconds of a fit."""
    begin = time.perf_counter()
    rbm.fit(X)
    return time.perf_counter() - begin


def ours() -> BernoulliRBM:
    """Nothing but the defaults."""
    return BernoulliRBM(n_components=500, n_iter=1, random_state=0)


def main() -> None:
    where.print_description()
    train, test = binarized_mnist()
    timed(ours(), train[:1000])  # imports
    rows = []
    for batch_size, learning_rate in GRID:
        settings = {"batch_size": batch_size, "learning_rate": learning_rate}
        theirs = TheirRBM(500, n_iter=10, random_state=0, **settings)
        seconds = timed(theirs, train)
        found = bracket(as_skrbm(theirs), test, train, N_SCREENING)
        rows.append({**settings, "seconds": seconds, **found})
        print(f"scikit-learn {settings} {seconds:6.1f} s {found['forward']:8.2f}", flush=True)
    best = max(rows, key=lambda row: row["forward"])
    pairs = []
    for _ in range(N_REPEATS):
        theirs = TheirRBM(
            500,
            n_iter=10,
            random_state=0,
            batch_size=best["batch_size"],
            learning_rate=best["learning_rate"],
        )
        rbm = ours()
        pairs.append((timed(theirs, train), timed(rbm, train)))
        print("scikit-learn {:.2f} s, skrbm {:.2f} s".format(*pairs[-1]), flush=True)
    results = {
        "grid": rows,
        "seconds": pairs,
        "factor": statistics.median(a / b for a, b in pairs),
        "scikit-learn": bracket(as_skrbm(theirs), test, train),
        "skrbm": bracket(rbm, test, train),
    }
    for name in ("scikit-learn", "skrbm", "factor"):
        print(name, results[name])
    path = where.write("time_to_quality", __doc__.splitlines()[0], results, n_iter=10)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
