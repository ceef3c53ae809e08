"""How well do detectors tell rows of one class from rows of the others?

Areas under the ROC curve, averaged over the classes of each data set. Every detector learns from 70 %
of the rows of one class; the other rows of that class and the rows of all other classes are to be told
apart. All are at their defaults. Real-valued columns are standardised for the peers; ours gets the rows as
they are.
Run from the repository:

    python -m benchmarks.quality.outliers
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks import machine as where
from skrbm import RBMOutlierDetector

TRAIN_SHARE = 0.7

Case = tuple[np.ndarray, np.ndarray, Callable[[], Any]]


def cases() -> Iterator[tuple[str, Case]]:
    """Name, rows, classes and preparation for the peers of each data set."""
    X, y = load_digits(return_X_y=True)
    yield "digits, grey", (X / 16, y, FunctionTransformer)
    yield "digits, bits", ((X > 8).astype(float), y, FunctionTransformer)
    yield "breast cancer", (*load_breast_cancer(return_X_y=True), StandardScaler)
    yield "iris", (*load_iris(return_X_y=True), StandardScaler)
    yield "wine", (*load_wine(return_X_y=True), StandardScaler)


def detectors(prepare: Callable[[], Any]) -> dict[str, Any]:
    """Unfitted detectors by name."""
    peers = {
        "IsolationForest": IsolationForest(random_state=0),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
        "OneClassSVM": OneClassSVM(),
    }
    return {
        "skrbm": RBMOutlierDetector(),
        "skrbm, pseudo-likelihood": RBMOutlierDetector(criterion="pseudo_likelihood"),
        **{name: make_pipeline(prepare(), peer) for name, peer in peers.items()},
    }


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for case, (X, y, prepare) in cases():
        areas: dict[str, list[float]] = {}
        seconds: dict[str, float] = {}
        for own in np.unique(y):
            train, rest = train_test_split(
                np.flatnonzero(y == own), train_size=TRAIN_SHARE, random_state=0
            )
            test = np.concatenate([rest, np.flatnonzero(y != own)])
            for name, detector in detectors(prepare).items():
                begin = time.perf_counter()
                scores = detector.fit(X[train]).score_samples(X[test])
                seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin
                areas.setdefault(name, []).append(roc_auc_score(y[test] == own, scores))
        results[case] = {
            name: {"area": float(np.mean(a)), "seconds": seconds[name]} for name, a in areas.items()
        }
        print(f"{case:15}", {name: round(np.mean(a), 4) for name, a in areas.items()}, flush=True)
    path = where.write("outliers", question, results, train_share=TRAIN_SHARE)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
