"""Do defaults learn from rows of which most values are missing?

Groups of bits, bits and numbers that follow a few factors, and independent bits. A share of the values
of the training rows is observed, at random. The results are mean log-likelihoods of 2,000 complete new
rows in nats, exact, with 16 hidden units, over eight seeds. "skrbm" has its defaults, after ten epochs
and after 40; "redrawn" is the same with missing values that are redrawn before the first updates, too.
Run from the repository:

    python -m benchmarks.quality.missing_values [--seeds 8]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks import machine as where
from benchmarks.quality.leave_one_out import without
from skrbm import BernoulliRBM, GaussianBernoulliRBM

N_BITS, N_NUMBERS, N_HIDDEN, N_NEW_ROWS = 60, 20, 16, 2000
N_GROUPS, NOISE, N_FACTORS = 6, 0.1, 4
N_EPOCHS = 10, 40
CELLS = (  # number of rows, and share of the values that are observed
    *((2000, share) for share in (1.0, 0.5, 0.2, 0.1)),
    *((200, share) for share in (1.0, 0.7, 0.4)),
)
KINDS = "groups of bits", "factors of bits", "factors of numbers", "independent bits"
LEFT_OUT = {  # of training, by method
    "skrbm": frozenset[str](),
    "redrawn": frozenset({"initial values"}),
    "independent": frozenset({"clusters", "factors"}),  # without any epoch
}


def rows(kind: str, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a distribution that depends on the kind alone."""
    fixed = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, N_FACTORS))
    if kind == "groups of bits":
        patterns = fixed.random((N_GROUPS, N_BITS)) < 0.5
        noise = rng.random((n_rows, N_BITS)) < NOISE
        return np.asarray(patterns[rng.integers(0, N_GROUPS, n_rows)] ^ noise, dtype=float)
    if kind == "factors of bits":
        p = expit(factors @ fixed.normal(0, 1.2, (N_FACTORS, N_BITS)))
        return (rng.random(p.shape) < p).astype(float)
    if kind == "factors of numbers":
        means = factors @ fixed.normal(0, 0.7, (N_FACTORS, N_NUMBERS))
        return means + 0.7 * rng.normal(size=means.shape)
    return (rng.random((n_rows, N_BITS)) < fixed.uniform(0.1, 0.9, N_BITS)).astype(float)


def fitted(kind: str, method: str, X: np.ndarray, n_iter: int, seed: int) -> Any:
    estimator: Any = GaussianBernoulliRBM if kind == "factors of numbers" else BernoulliRBM
    own: Any = without(estimator, LEFT_OUT[method])
    return own(N_HIDDEN, n_iter=n_iter, missing="marginalize", random_state=seed).fit(X)


def cell(kind: str, n_rows: int, share: float, n_seeds: int) -> dict[str, Any]:
    """Log-likelihoods of independent columns, and by method and number of epochs."""
    methods = ("skrbm",) if share == 1 else ("skrbm", "redrawn")
    values: dict[str, list[float]] = {}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X, new = rows(kind, n_rows, rng), rows(kind, N_NEW_ROWS, rng)
        X[rng.random(X.shape) >= share] = np.nan
        trials = [("independent", 0), *product(methods, N_EPOCHS)]
        for method, n_iter in trials:
            rbm = fitted(kind, method, X, n_iter, seed)
            name = f"{method}, {n_iter} epochs"
            values.setdefault(name, []).append(float(rbm.log_likelihood(new).mean()))
    return {
        name: {"mean": float(np.mean(own)), "error": float(np.std(own, ddof=1) / n_seeds**0.5)}
        for name, own in values.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    n_seeds = parser.parse_args().seeds
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results = {}
    for kind in KINDS:
        for n_rows, share in CELLS:
            found = cell(kind, n_rows, share, n_seeds)
            name = f"{kind}, {n_rows} rows, {share:.0%} observed"
            results[name] = found
            print(
                name, {method: round(own["mean"], 2) for method, own in found.items()}, flush=True
            )
            path = where.write("missing_values", question, results, seeds=n_seeds)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
