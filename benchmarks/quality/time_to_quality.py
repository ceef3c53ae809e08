"""How much sooner do our defaults reach the best model that scikit-learn's class learns?

Binarised MNIST, 784 x 500, float32, 10 epochs of scikit-learn's BernoulliRBM for every batch size
and learning rate of a grid, judged by annealing in reverse, which does not flatter; then a race: ours
with n_components and n_iter alone, seven fits of one epoch between those of the grid's winner. Test
log-likelihood from both sides. Run from the repository, one after the other or both:

    python -m benchmarks.quality.time_to_quality [grid] [race]
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from typing import Any

import numpy as np
from sklearn.neural_network import BernoulliRBM as TheirRBM

from benchmarks import machine as where
from benchmarks import timing
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import as_skrbm, bracket
from skrbm import BernoulliRBM

GRID = list(itertools.product((10, 100), (0.1, 0.05, 0.01, 0.001)))
N_REPEATS = 7
N_SCREENING = 1000  # temperatures that tell the grid's winner


def timed(rbm: Any, X: np.ndarray) -> float:
    """Seconds of a fit."""
    return timing.seconds(lambda: rbm.fit(X))


def ours() -> BernoulliRBM:
    """Nothing but the defaults."""
    return BernoulliRBM(n_components=500, n_iter=1, random_state=0)


def grid(train: np.ndarray, test: np.ndarray) -> list[dict[str, Any]]:
    """Seconds and likelihoods of scikit-learn's class for all settings."""
    rows = []
    for batch_size, learning_rate in GRID:
        settings = {"batch_size": batch_size, "learning_rate": learning_rate}
        theirs = TheirRBM(500, n_iter=10, random_state=0, **settings)
        seconds = timed(theirs, train)
        found = bracket(as_skrbm(theirs), test, train, N_SCREENING)
        rows.append({"settings": settings, "seconds": seconds, **found})
        print(f"scikit-learn {settings} {seconds:6.1f} s {found['reverse']:8.2f}", flush=True)
    return rows


def race(train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Seconds of pairs of fits, one after the other, and likelihoods of the last pair."""
    rows = json.loads((where.RESULTS / "time_to_quality_grid.json").read_text())["results"]
    best = max(rows, key=lambda row: row["reverse"])["settings"]
    timed(ours(), train[:1000])  # imports
    pairs = []
    for _ in range(N_REPEATS):
        theirs, rbm = TheirRBM(500, n_iter=10, random_state=0, **best), ours()
        pairs.append((timed(theirs, train), timed(rbm, train)))
        print("scikit-learn {:.2f} s, skrbm {:.2f} s".format(*pairs[-1]), flush=True)
    return {
        "scikit-learn's best": best,
        "seconds": pairs,
        "factor": statistics.median(a / b for a, b in pairs),
        "scikit-learn": bracket(as_skrbm(theirs), test, train),
        "skrbm": bracket(rbm, test, train),
    }


PARTS = {"grid": grid, "race": race}


def main() -> None:
    question = where.begin(__doc__)
    for name in sys.argv[1:] or PARTS:
        results = PARTS[name](*binarized_mnist())
        print(results)
        path = where.write(f"time_to_quality_{name}", question, results, n_iter=10)
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
