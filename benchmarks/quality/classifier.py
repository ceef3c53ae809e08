"""How well does the label as one more visible unit classify?

Accuracy and log-loss in nats, averaged over five folds of each data set, of RBMClassifier and of its
peers. Ours takes BernoulliRBM on digits and TabularRBM elsewhere, with the training parameters of
its own default; the peers are at their defaults behind a StandardScaler, but for digits, which are
divided by 16. "few labels" learns digits from 60 labels and the other rows without: ours, ours of the
60 alone, and scikit-learn's LabelSpreading. Run from the repository, for some of the data sets if they
are named:

    python -m benchmarks.quality.classifier
    python -m benchmarks.quality.classifier iris wine
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from benchmarks import machine as where
from skrbm import BernoulliRBM, RBMClassifier, TabularRBM

N_FOLDS = 5
N_LABELS, N_REPEATS = 60, 5
TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "n_iter": 30, "random_state": 0}

Data = dict[str, tuple[np.ndarray, np.ndarray]]


def data() -> Data:
    """Rows and labels of each data set."""
    X, y = load_digits(return_X_y=True)
    loaders = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
    tables = {name: load(return_X_y=True) for name, load in loaders.items()}
    return {"digits": (X / 16, y), **tables}


def classifiers(*, is_image: bool) -> dict[str, Any]:
    """Unfitted classifiers by name."""
    rbm = BernoulliRBM(**TRAINING) if is_image else TabularRBM(**TRAINING)
    features = (BernoulliRBM if is_image else TabularRBM)(random_state=0)
    peers = {
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "MLPClassifier": MLPClassifier(random_state=0),
        "SVC": SVC(),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }
    return {
        "skrbm": RBMClassifier(rbm),
        "skrbm, discriminative": RBMClassifier(rbm, generative_weight=0.0),
        "RBM features, logistic": make_pipeline(features, LogisticRegression(max_iter=1000)),
        **{
            name: make_pipeline(FunctionTransformer() if is_image else StandardScaler(), peer)
            for name, peer in peers.items()
        },
    }


def scores(classifier: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Means over folds."""
    accuracies, losses, begin = [], [], time.perf_counter()
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for train, test in folds.split(X, y):
        fitted = clone(classifier).fit(X[train], y[train])
        accuracies.append(fitted.score(X[test], y[test]))
        if hasattr(fitted, "predict_proba"):
            losses.append(log_loss(y[test], fitted.predict_proba(X[test])))
    seconds = (time.perf_counter() - begin) / N_FOLDS
    found = {"accuracy": float(np.mean(accuracies)), "seconds": seconds}
    return found | ({"log_loss": float(np.mean(losses))} if losses else {})


def few_labels(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Mean test accuracies of what is learned from few labels and many rows."""
    accuracies: dict[str, list[float]] = {}
    for seed in range(N_REPEATS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=537, random_state=seed, stratify=y
        )
        known, _ = train_test_split(
            np.arange(len(y_train)), train_size=N_LABELS, random_state=seed, stratify=y_train
        )
        partly = np.full(len(y_train), -1)
        partly[known] = y_train[known]
        rbm = BernoulliRBM(**TRAINING)
        for name, classifier, rows in (
            ("skrbm", RBMClassifier(rbm, generative_weight=1.0, unlabeled=-1), slice(None)),
            ("skrbm, labelled rows alone", RBMClassifier(rbm), known),
            ("LabelSpreading", LabelSpreading(), slice(None)),
        ):
            fitted = classifier.fit(X_train[rows], partly[rows])
            accuracies.setdefault(name, []).append(fitted.score(X_test, y_test))
    return {name: float(np.mean(values)) for name, values in accuracies.items()}


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    chosen = sys.argv[1:] or [*data(), "few labels"]
    for case, (X, y) in data().items():
        if case not in chosen:
            continue
        results[case] = {}
        for name, classifier in classifiers(is_image=case == "digits").items():
            results[case][name] = found = scores(classifier, X, y)
            print(f"{case:15} {name:25}", {k: round(v, 4) for k, v in found.items()}, flush=True)
    if "few labels" in chosen:
        results["few labels"] = few_labels(*data()["digits"])
        print("few labels", results["few labels"], flush=True)
    path = where.write("classifier", question, results, n_folds=N_FOLDS, training=TRAINING)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
