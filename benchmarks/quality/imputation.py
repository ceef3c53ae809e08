"""How good are imputed values beside those of scikit-learn's imputers?

Three tables bundled with scikit-learn, with 20 % of the values gone at random: 8x8 digits (pixels in
[0, 1], BernoulliRBM), breast cancer and wine (standardised by the known values, TabularRBM by defaults).
Imputers are fitted to the incomplete table and fill it in; the error is the root mean square over the
values that are gone, in units of the features, over five patterns of holes. Run from the repository:

    python -m benchmarks.quality.imputation [--patterns 5]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401, importing enables
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

from benchmarks import machine as where
from skrbm import BernoulliRBM, RBMImputer, TabularRBM

MISSING = 0.2
TABLES = {
    "digits": load_digits().data / 16,
    "breast cancer": load_breast_cancer().data,
    "wine": load_wine().data,
}


def imputers(table: str, seed: int) -> dict[str, Any]:
    """Peers at their defaults, and the model for the kind of table."""
    if table == "digits":
        rbm = BernoulliRBM(256, n_iter=100, random_state=seed)
    else:
        rbm = TabularRBM(random_state=seed)
    return {
        "SimpleImputer": SimpleImputer(),
        "KNNImputer": KNNImputer(),
        "IterativeImputer": IterativeImputer(random_state=seed),
        "RBMImputer": RBMImputer(rbm, random_state=seed),
    }


def trial(table: str, seed: int) -> dict[str, tuple[float, float]]:
    """Error and seconds of every imputer for one pattern of holes."""
    X = TABLES[table]
    holes = np.random.default_rng(seed).random(X.shape) < MISSING
    incomplete = np.where(holes, np.nan, X)
    if table != "digits":
        scaler = StandardScaler().fit(incomplete)
        X, incomplete = scaler.transform(X), scaler.transform(incomplete)
    found = {}
    for name, imputer in imputers(table, seed).items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            filled = imputer.fit_transform(incomplete)
        seconds = time.perf_counter() - begin
        found[name] = (float(np.sqrt(np.mean((filled - X)[holes] ** 2))), seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patterns", type=int, default=5)
    n_patterns = parser.parse_args().patterns
    question = where.begin(__doc__)
    print(f"\n{'table':14} {'imputer':18} {'error':>7} {'std':>7} {'seconds':>8}")
    results: dict[str, dict[str, dict[str, float]]] = {}
    for table in TABLES:
        trials = [trial(table, seed) for seed in range(n_patterns)]
        results[table] = {}
        for name in trials[0]:
            errors, seconds = np.array([t[name] for t in trials]).T
            row = {"error": errors.mean(), "std": errors.std(), "seconds": np.median(seconds)}
            results[table][name] = row
            print(
                f"{table:14} {name:18} {row['error']:7.4f} {row['std']:7.4f} {row['seconds']:8.1f}",
                flush=True,
            )
    path = where.write("imputation", question, results, missing=MISSING, patterns=n_patterns)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
