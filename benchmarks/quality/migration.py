"""Does the pipeline of scikit-learn's RBM example keep its accuracy when the import is swapped?

Digits of 8 x 8 pixels and their copies shifted by one pixel, scaled to [0, 1]; 100 hidden units, ten
epochs, then logistic regression. Test accuracy on a fifth of the images, mean over five seeds of
the RBM. As in the example, copies of one image may be on both sides of the split. Its
classifier (newton-cg, C=6000) runs to convergence here, since at the example's tolerance it stops
too early in recent versions; C=100 is the second column. Run from the repository:

    python -m benchmarks.quality.migration
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.preprocessing import minmax_scale
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from skrbm import BernoulliRBM

N_SEEDS, WIDTH, N_EPOCHS = 5, 100, 10
PENALTIES = (6000, 100)
MODELS: dict[str, Callable[[int], Any]] = {
    "scikit-learn, learning_rate=0.06": lambda seed: TheirRBM(
        WIDTH, n_iter=N_EPOCHS, learning_rate=0.06, random_state=seed
    ),
    "skrbm, learning_rate=0.06": lambda seed: BernoulliRBM(
        WIDTH, n_iter=N_EPOCHS, learning_rate=0.06, random_state=seed
    ),
    "skrbm, default rate": lambda seed: BernoulliRBM(WIDTH, n_iter=N_EPOCHS, random_state=seed),
    "skrbm, default rate, draw_states=False": lambda seed: BernoulliRBM(
        WIDTH, n_iter=N_EPOCHS, draw_states=False, random_state=seed
    ),
    "skrbm, default rate, n_iter=100": lambda seed: BernoulliRBM(
        WIDTH, n_iter=100, random_state=seed
    ),
}


def images() -> list[np.ndarray]:
    """Training and test rows, and their labels."""
    digits = load_digits()
    framed = np.pad(digits.images.astype(np.float32), ((0, 0), (1, 1), (1, 1)))
    corners = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    copies = [framed[:, i : i + 8, j : j + 8].reshape(-1, 64) for i, j in corners]
    X = minmax_scale(np.concatenate(copies))
    return train_test_split(X, np.tile(digits.target, 5), test_size=0.2, random_state=0)


def accuracies(H: np.ndarray, new_H: np.ndarray, y: np.ndarray, new_y: np.ndarray) -> list[float]:
    """Test accuracy for each penalty of the classifier."""
    classifiers = [LogisticRegression(solver="newton-cg", C=C) for C in PENALTIES]
    return [float(classifier.fit(H, y).score(new_H, new_y)) for classifier in classifiers]


def main() -> None:
    question = where.begin(__doc__)
    threadpool_limits(1)
    X, new_X, y, new_y = images()
    results = {
        "pixels": dict(zip(map(str, PENALTIES), accuracies(X, new_X, y, new_y), strict=True))
    }
    for name, make in MODELS.items():
        found, seconds = [], []
        for seed in range(N_SEEDS):
            begin = time.process_time()
            rbm = make(seed).fit(X)
            seconds.append(time.process_time() - begin)
            found.append(accuracies(rbm.transform(X), rbm.transform(new_X), y, new_y))
        means = dict(zip(map(str, PENALTIES), np.mean(found, axis=0).tolist(), strict=True))
        results[name] = {**means, "processor seconds of a fit": float(np.median(seconds))}
        print(f"{name:40}", *(f"{value:8.3f}" for value in results[name].values()), flush=True)
    path = where.write(
        "migration", question, results, n_seeds=N_SEEDS, width=WIDTH, penalties=PENALTIES
    )
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
