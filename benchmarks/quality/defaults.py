"""Which batch size, learning rate and gradient serve small and large data alike at equal n_iter?

Exact pseudo-likelihood of held-out rows after 10 epochs of 256 hidden units, everything else at its
default: scikit-learn's 1797 digits, the same with four shifted copies, and 10,000 MNIST images if
the environment variable SKRBM_DATA names a folder with mnist.npz. Run from the repository:

    python -m benchmarks.quality.defaults
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from examples.digits_pipeline import with_shifted_copies
from skrbm import BernoulliRBM

GRID = [(10, 0.05), (10, 0.1), (20, 0.1), (20, 0.2), (50, 0.1), (50, 0.2), (100, 0.2)]
N_TRAIN = 1437


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows by name."""
    images = (load_digits().images / 16).astype(np.float32)
    images = images[np.random.default_rng(0).permutation(len(images))]
    train, test = images[:N_TRAIN], images[N_TRAIN:].reshape(-1, 64)
    found = {
        "digits": (train.reshape(-1, 64), test),
        "shifted": (with_shifted_copies(train).reshape(-1, 64), test),
    }
    folder = os.environ.get("SKRBM_DATA")
    if folder:
        mnist = np.load(Path(folder) / "mnist.npz")
        train, test = (
            (mnist[name].reshape(-1, 784) > 127).astype(np.float32)
            for name in ("x_train", "x_test")
        )
        found["mnist"] = (train[:10_000], test[:200])
    return found


def run(name: str, batch_size: int, learning_rate: float, centering: bool) -> dict[str, object]:
    """Held-out score and seconds of one fit."""
    train, test = data_sets()[name]
    rbm = BernoulliRBM(
        batch_size=batch_size, learning_rate=learning_rate, centering=centering, random_state=0
    )
    with threadpool_limits(1):
        begin = time.perf_counter()
        rbm.fit(train)
        seconds = time.perf_counter() - begin
        score = rbm.score(test)
    return {
        "data": name,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "centering": centering,
        "pseudo_likelihood": score,
        "seconds": seconds,
    }


def main() -> None:
    where.print_description()
    tasks = itertools.product(data_sets(), GRID, (True, False))
    results = Parallel(n_jobs=2)(delayed(run)(n, b, lr, c) for n, (b, lr), c in tasks)
    for row in results:
        print("  ".join(f"{v:.2f}" if isinstance(v, float) else f"{v!s:8}" for v in row.values()))
    path = where.write("defaults", __doc__.splitlines()[0], results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
