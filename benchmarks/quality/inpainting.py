"""Does the model know what belongs below the upper half of a digit?

MNIST thresholded at 127, 784 x 500, 20 passes of the defaults; of 1000 test images the lower half is
hidden and filled in with each pixel's conditional probability, rounded, by clamped Gibbs sampling.
Beside it the lower half of the training image whose upper half is nearest in Hamming distance, the
mean of its 10 nearest and the mean of all images. A picture goes to benchmarks/results/inpainting.png.
Run from the repository:

    python -m benchmarks.quality.inpainting [--images 1000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks import machine as where
from benchmarks.data import mnist
from skrbm import BernoulliRBM, SamplesDisplay

N_ITER = 20
N_DRAWN = 12


def neighbours(X: np.ndarray, test: np.ndarray, known: np.ndarray, n: int) -> np.ndarray:
    """Mean hidden half of the nearest training images."""
    search = NearestNeighbors(n_neighbors=n, algorithm="brute").fit(X[:, known])
    nearest = search.kneighbors(test[:, known], return_distance=False)
    return X[nearest].mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1000)
    options = parser.parse_args()
    question = where.begin(__doc__)
    X, test = ((images > 127).astype(np.float32) for images in mnist()[::2])
    test = test[: options.images]
    known = np.arange(784) < 392

    begin = time.perf_counter()
    rbm = BernoulliRBM(500, n_iter=N_ITER, random_state=0).fit(X)
    print(f"\ntrained in {time.perf_counter() - begin:.0f} s")
    begin = time.perf_counter()
    mean = rbm.inpaint(test, known, method="mean", random_state=0)
    print(f"filled in in {time.perf_counter() - begin:.0f} s")
    sample = rbm.inpaint(test, known, random_state=0)
    fills = {
        "conditional mean of the RBM": mean,
        "sample of the RBM": sample,
        "nearest neighbour": neighbours(X, test, known, 1),
        "mean of 10 neighbours": neighbours(X, test, known, 10),
        "mean image": np.broadcast_to(X.mean(axis=0), test.shape),
    }
    results = {}
    print("\nwrong of 392 hidden pixels")
    for name, fill in fills.items():
        wrong = ((fill > 0.5) != test)[:, ~known].sum(axis=1)
        results[name] = {"wrong": wrong.mean(), "std_error": wrong.std() / np.sqrt(len(wrong))}
        print(f"  {name:28} {wrong.mean():6.2f} +- {results[name]['std_error']:.2f}")
    path = where.write("inpainting", question, results, images=len(test), n_iter=N_ITER)
    print(path.relative_to(where.ROOT))
    rows = {"test": test, "known": np.where(known, test, np.nan), **dict(list(fills.items())[:3])}
    images = {name: v[:N_DRAWN].reshape(-1, 28, 28) for name, v in rows.items()}
    figure = SamplesDisplay(images).plot().figure_
    figure.savefig(where.RESULTS / "inpainting.png", dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
