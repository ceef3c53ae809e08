"""How well does the label as one more visible unit classify?

Accuracy and log-loss in nats, averaged over five folds of each data set, of RBMClassifier and of its
peers. Ours takes BernoulliRBM on digits and TabularRBM elsewhere, with the training parameters of
its own default; the peers are at their defaults, with numbers standardised and categories one-hot, but
for digits, which are divided by 16. "few labels" learns each data set from six labels of every class
and the other rows without: ours, ours of the labelled rows alone, and scikit-learn's LabelSpreading and
SelfTrainingClassifier. "weights" compares pairs of `discriminative_weight` and `generative_weight` at
equal passes on the six smallest tables, in two folds. Tables come from scikit-learn, or from packages that
`benchmarks/tables.py` fetches. Run from the repository:

    python -m benchmarks.quality.classifier
    python -m benchmarks.quality.classifier digits
    python -m benchmarks.quality.classifier tables
    python -m benchmarks.quality.classifier "few labels"
    python -m benchmarks.quality.classifier weights
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from benchmarks import machine as where
from benchmarks.tables import BUNDLED, encoded_columns, table
from skrbm import BernoulliRBM, RBMClassifier, TabularRBM

N_FOLDS = 5
N_REPEATS = {"digits": 3}  # of the folds
WEIGHTS = ((1.0, 0.0), (1.0, 0.001), (1.0, 0.01), (1.0, 0.1), (1.0, 1.0), (0.0, 1.0))
N_FOLDS_WEIGHTS, SMALL = 2, (*BUNDLED, "penguins", "glass", "biopsies")
N_LABELS, N_SPLITS, TEST_SHARE = 6, 2, 0.3  # of few labels: per class
TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "n_iter": 30, "random_state": 0}
CASES = ("digits", *BUNDLED, "penguins", "orange juice", "colleges", "glass", "biopsies")


def data(case: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows and numbers of their labels."""
    X, y = load_digits(return_X_y=True, as_frame=True) if case == "digits" else table(case)
    return X / 16 if case == "digits" else X, np.unique(y, return_inverse=True)[1]


def prepared(peer: Any, case: str) -> Any:
    """A peer behind what it needs of the columns."""
    if case == "digits":
        return peer
    if isinstance(peer, HistGradientBoostingClassifier):
        return clone(peer).set_params(categorical_features="from_dtype")
    return make_pipeline(encoded_columns(), peer)


def rbm_of(case: str, **params: Any) -> Any:
    """Machine for the kind of columns."""
    return (BernoulliRBM if case == "digits" else TabularRBM)(**params)


def classifiers(case: str) -> dict[str, Any]:
    """Unfitted classifiers by name."""
    rbm, logistic = rbm_of(case, **TRAINING), LogisticRegression(max_iter=1000)
    peers = {
        "LogisticRegression": logistic,
        "MLPClassifier": MLPClassifier(random_state=0),
        "SVC": SVC(),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }
    return {
        "skrbm": RBMClassifier(rbm),
        "skrbm, discriminative": RBMClassifier(rbm, generative_weight=0.0),
        "RBM features, logistic": make_pipeline(rbm_of(case, n_iter=10, random_state=0), logistic),
        **{name: prepared(peer, case) for name, peer in peers.items()},
    }


def scores(classifier: Any, case: str, n_folds: int, n_repeats: int = 1) -> dict[str, float]:
    """Means over folds."""
    X, y = data(case)
    accuracies, losses, begin = [], [], time.process_time()
    folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=0)
    for train, test in folds.split(X, y):
        fitted = clone(classifier).fit(X.iloc[train], y[train])
        accuracies.append(fitted.score(X.iloc[test], y[test]))
        if hasattr(fitted, "predict_proba"):
            losses.append(log_loss(y[test], fitted.predict_proba(X.iloc[test])))
    seconds = (time.process_time() - begin) / len(accuracies)
    found = {"accuracy": float(np.mean(accuracies)), "processor_seconds": seconds}
    return found | ({"log_loss": float(np.mean(losses))} if losses else {})


def few_labels(case: str) -> dict[str, float]:
    """Mean test accuracies of what is learned from few labels and many rows."""
    X, y = data(case)
    rbm, svc = RBMClassifier(rbm_of(case, **TRAINING), unlabeled=-1), SVC(probability=True)
    accuracies: dict[str, list[float]] = {}
    for seed in range(N_SPLITS):
        train, test = train_test_split(
            np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=y
        )
        known, _ = train_test_split(
            train, train_size=N_LABELS * len(np.unique(y)), random_state=seed, stratify=y[train]
        )
        partly = np.full(len(y), -1)
        partly[known] = y[known]
        for name, classifier, rows in (
            ("skrbm", rbm, train),
            ("skrbm, labelled rows alone", rbm, known),
            ("LabelSpreading", prepared(LabelSpreading(), case), train),
            ("SelfTraining of SVC", prepared(SelfTrainingClassifier(svc), case), train),
        ):
            fitted = clone(classifier).fit(X.iloc[rows], partly[rows])
            accuracies.setdefault(name, []).append(fitted.score(X.iloc[test], y[test]))
    return {name: float(np.mean(values)) for name, values in accuracies.items()}


def full_labels(cases: Sequence[str]) -> dict[str, Any]:
    """Scores of all classifiers on some data sets."""
    results: dict[str, Any] = {case: {} for case in cases}
    for case in cases:
        for name, classifier in classifiers(case).items():
            found = scores(classifier, case, N_FOLDS, N_REPEATS.get(case, 1))
            results[case][name] = found
            print(f"{case:15} {name:25}", {k: round(v, 4) for k, v in found.items()}, flush=True)
    return results


def means(tables: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Mean of every score over data sets."""
    return {
        name: {score: float(np.mean([table[name][score] for table in tables])) for score in found}
        for name, found in tables[0].items()
    }


def all_weights() -> dict[str, Any]:
    """Scores of the pairs of weights on small tables, and their means over these."""
    results: dict[str, Any] = {case: {} for case in SMALL}
    for case in SMALL:
        for discriminative, generative in WEIGHTS:
            name = f"discriminative {discriminative:g}, generative {generative:g}"
            classifier = RBMClassifier(
                rbm_of(case, **TRAINING),
                discriminative_weight=discriminative,
                generative_weight=generative,
            )
            results[case][name] = found = scores(classifier, case, N_FOLDS_WEIGHTS)
            print(f"{case:15} {name:35}", {k: round(v, 4) for k, v in found.items()}, flush=True)
    return results | {"mean": means(list(results.values()))}


def all_few_labels() -> dict[str, Any]:
    """Accuracies from few labels on all data sets."""
    results = {}
    for case in CASES:
        results[case] = found = few_labels(case)
        print(f"{case:15}", {k: round(v, 3) for k, v in found.items()}, flush=True)
    return results


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    experiments = {
        "digits": lambda: full_labels(CASES[:1]),
        "tables": lambda: full_labels(CASES[1:]),
        "few labels": all_few_labels,
        "weights": all_weights,
    }
    for name in sys.argv[1:] or experiments:
        file = f"classifier_{name.replace(' ', '_')}"
        path = where.write(file, question, experiments[name](), training=TRAINING)
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
