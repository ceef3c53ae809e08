"""How well do detectors tell rows of one class from rows of the others?

Areas under the ROC curve, averaged over the classes of each data set; of those with a rare class the
common one is learned alone. Every detector learns from 70 % of the rows of one class, at most 500; the
other rows of that class and the rows of all other classes are to be told apart. All are at their
defaults. Numbers are standardised and categories one-hot for the peers; ours gets the rows as they
are. Tables come from scikit-learn, or from packages that `benchmarks/tables.py` fetches. Run from the
repository, for some of the data sets if they are named:

    python -m benchmarks.quality.outliers
    python -m benchmarks.quality.outliers penguins iris
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

from benchmarks import machine as where
from benchmarks.tables import encoded_columns, table
from skrbm import RBMOutlierDetector

TRAIN_SHARE, MOST_ROWS = 0.7, 500
COMMON = {  # class that is learned, where the other is rare
    "biopsies": "benign",
    "mortgages": "no",
    "credit default": "No",
}
KINDS = {
    "digits, bits": "binary",
    "penguins": "mixed",
    "orange juice": "mixed",
    "mortgages": "mixed",
    "credit default": "mixed",
    "digits, grey": "grey",
    "breast cancer": "real",
    "iris": "real",
    "wine": "real",
    "biopsies": "real",
    "glass": "real",
}


def data(case: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows and classes of a data set."""
    if case.startswith("digits"):
        X, y = load_digits(return_X_y=True, as_frame=True)
        return (X > 8).astype(float) if KINDS[case] == "binary" else X / 16, y.to_numpy()
    return table(case)


def detectors(case: str) -> dict[str, Any]:
    """Unfitted detectors by name."""
    peers = {
        "IsolationForest": IsolationForest(random_state=0),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
        "OneClassSVM": OneClassSVM(),
    }
    if KINDS[case] in ("mixed", "real"):
        peers = {name: make_pipeline(encoded_columns(), peer) for name, peer in peers.items()}
    return {
        "skrbm": RBMOutlierDetector(),
        "skrbm, pseudo-likelihood": RBMOutlierDetector(criterion="pseudo_likelihood"),
        **peers,
    }


def areas(case: str) -> dict[str, float]:
    """Mean area of each detector over the classes that are learned."""
    X, y = data(case)
    found: dict[str, list[float]] = {}
    for own in [COMMON[case]] if case in COMMON else np.unique(y):
        rows = np.flatnonzero(y == own)
        size = min(int(TRAIN_SHARE * len(rows)), MOST_ROWS)
        train, rest = train_test_split(rows, train_size=size, random_state=0)
        test = np.concatenate([rest, np.flatnonzero(y != own)])
        for name, detector in detectors(case).items():
            scores = detector.fit(X.iloc[train]).score_samples(X.iloc[test])
            found.setdefault(name, []).append(roc_auc_score(y[test] == own, scores))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for case in (case for case in KINDS if case in (sys.argv[1:] or KINDS)):
        results[case] = areas(case)
        print(f"{case:15}", {name: round(area, 4) for name, area in results[case].items()})
    means = mean_areas(results)
    print("mean of binary and mixed", {name: round(area, 4) for name, area in means.items()})
    results["mean of binary and mixed"] = means
    path = where.write("outliers", question, results, train_share=TRAIN_SHARE)
    print(path.relative_to(where.ROOT))


def mean_areas(results: dict[str, dict[str, float]]) -> dict[str, float]:
    """Means over the binary and mixed data sets among the results."""
    found: dict[str, list[float]] = {}
    for case, own in results.items():
        if KINDS[case] in ("binary", "mixed"):
            for name, area in own.items():
                found.setdefault(name, []).append(area)
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    main()
