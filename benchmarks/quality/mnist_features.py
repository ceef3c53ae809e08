"""How well does a linear classifier read MNIST through learned features?

Test errors in percent of logistic regression and of a linear support vector machine on 784 grey
pixels, on 500 features of scikit-learn's BernoulliRBM and of ours, each with the defaults but for
the width and the number of passes. The regularisation is chosen on the last 10,000 training rows. Run
from the repository:

    python -m benchmarks.quality.mnist_features
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.svm import LinearSVC

from benchmarks import machine as where
from benchmarks.data import mnist
from skrbm import BernoulliRBM

N_ITER = 30
N_TRAIN = 50_000
STRENGTHS = (0.1, 1.0)
CLASSIFIERS: dict[str, Any] = {
    "logistic": lambda C: LogisticRegression(C=C, max_iter=300),
    "svm": lambda C: LinearSVC(C=C, dual=False, tol=1e-2),
}


def errors(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> dict[str, Any]:
    """Test error of each classifier with the strength that suits held-out training rows."""
    found = {}
    for name, classifier in CLASSIFIERS.items():
        held_out = {
            C: classifier(C).fit(X[:N_TRAIN], y[:N_TRAIN]).score(X[N_TRAIN:], y[N_TRAIN:])
            for C in STRENGTHS
        }
        C = max(held_out, key=held_out.__getitem__)
        score = classifier(C).fit(X, y).score(X_test, y_test)
        found[name] = {"C": C, "error": 100 * (1 - score)}
    return found


def main() -> None:
    question = where.begin(__doc__)
    images, y, images_test, y_test = mnist()
    X, X_test = ((A / 255).astype(np.float32) for A in (images, images_test))
    results = {"pixels": errors(X, y, X_test, y_test)}
    print("pixels", results["pixels"], flush=True)
    for name, rbm in (
        ("scikit-learn", TheirRBM(500, n_iter=N_ITER, batch_size=100, random_state=0)),
        ("skrbm", BernoulliRBM(500, n_iter=N_ITER, random_state=0)),
    ):
        begin = time.perf_counter()
        rbm.fit(X)
        seconds = time.perf_counter() - begin
        found = errors(rbm.transform(X), y, rbm.transform(X_test), y_test)
        results[name] = {"seconds": seconds, **found}
        print(name, results[name], flush=True)
    path = where.write("mnist_features", question, results, n_iter=N_ITER)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
