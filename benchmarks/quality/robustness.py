"""Do the defaults learn every kind of data, without a parameter set?

Pseudo-likelihood of held-out rows in nats, of features taken for independent, of our estimators and
of scikit-learn's BernoulliRBM, each at its defaults but for the random state. scikit-learn's
class sees spins as 0 and 1 and cannot see real values at all. Run from the repository:

    python -m benchmarks.quality.robustness
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.preprocessing import StandardScaler

from benchmarks import machine as where
from benchmarks.data import mnist
from benchmarks.likelihood import as_skrbm
from skrbm import BernoulliRBM, GaussianBernoulliRBM, SpinRBM

N_TEST = 200


def data_sets() -> dict[str, tuple[Any, type]]:
    """Rows and the estimator for them, by name."""
    images = (mnist()[0][:10_000] > 127).astype(np.float32)
    found: dict[str, tuple[Any, type]] = {
        "digits": (load_digits().data / 16, BernoulliRBM),
        "mnist": (images, BernoulliRBM),
        "mnist, negative": (1 - images, BernoulliRBM),
        "words": (words(), BernoulliRBM),
        "mnist, spins": (2 * images - 1, SpinRBM),
    }
    for load in (load_digits, load_wine, load_breast_cancer, load_diabetes):
        X = load().data
        varying = X[:, X.std(axis=0) > 0.1 * X.std(axis=0).mean()]
        found[f"{load.__name__[5:]}, real"] = varying, GaussianBernoulliRBM
    return found


def words() -> csr_array:
    """Which of 2000 words are in each of 5000 documents, about 60 of them, from 20 topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(2000, 0.05), size=20)
    mixtures = rng.dirichlet(np.full(20, 0.1), size=5000)
    counts = np.stack([rng.multinomial(100, share @ topics) for share in mixtures])
    return csr_array((counts > 0).astype(np.float32))


def independent(train: Any, test: Any, estimator: type) -> float:
    """Mean log-likelihood of rows if features were independent."""
    mean = np.asarray(train.mean(axis=0)).ravel()
    if estimator is GaussianBernoulliRBM:
        return float(stats.norm(mean, train.std(axis=0)).logpdf(test).sum(axis=1).mean())
    low = -1 if estimator is SpinRBM else 0
    p = np.clip((mean - low) / (1 - low), 0.5 / train.shape[0], 1 - 0.5 / train.shape[0])
    share = (np.asarray(test.mean(axis=0)).ravel() - low) / (1 - low)
    return float(share @ np.log(p) + (1 - share) @ np.log1p(-p))


def run(X: Any, estimator: type) -> dict[str, Any]:
    """Scores of one kind of data."""
    train, test = train_test_split(
        X, test_size=N_TEST if X.shape[0] > 1000 else 0.3, random_state=0
    )
    is_real = estimator is GaussianBernoulliRBM
    if is_real:
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    row = {
        "rows": train.shape[0],
        "features": train.shape[1],
        "independent": independent(train, test, estimator),
        "skrbm": estimator(random_state=0).fit(train).score(test),
        "scikit-learn": None,
    }
    if not is_real:
        train, test = ((A + 1) / 2 if estimator is SpinRBM else A for A in (train, test))
        theirs = as_skrbm(TheirRBM(random_state=0).fit(train))
        row["scikit-learn"] = theirs.score(test.toarray() if issparse(test) else test)
    return row


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results = {}
    for name, (X, estimator) in data_sets().items():
        results[name] = row = run(X, estimator)
        theirs = row["scikit-learn"]
        print(
            f"{name:20} {row['rows']:6} x {row['features']:4}  independent {row['independent']:9.2f}  "
            f"skrbm {row['skrbm']:9.2f}  scikit-learn {'-' if theirs is None else f'{theirs:.2f}'}",
            flush=True,
        )
    path = where.write("robustness", question, results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
