"""Do fits by defaults learn modes that lie far apart, and say so where they do not?

Mean log-likelihood of the training rows in nats, exactly for few hidden units and else by annealing,
beside the truth where that is known, independent features, and scikit-learn's BernoulliRBM by its
defaults (which sees spins as 0 and 1). Counts fits that are below independent features without a
warning, rows of likelihood above one, and annealed partition functions that are off by more than
five of their standard errors. Run from the repository:

    python -m benchmarks.quality.clusters [--size {quick,wide,full}]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.neural_network import BernoulliRBM as TheirRBM

from benchmarks import machine as where
from benchmarks.likelihood import as_skrbm
from skrbm import AnnealingWarning, BernoulliRBM, DivergenceError, GaussianBernoulliRBM, SpinRBM

NOISE = 0.02
SHARES = {"two": (0.5, 0.5), "two, 5 %": (0.95, 0.05), "five": (0.2,) * 5}
SIZES: dict[str, dict[str, Any]] = {
    "quick": {"n_components": (18,), "n_iter": (10,), "n_seeds": 2, "sides": ()},
    "wide": {"n_components": (5, 18, 256), "n_iter": (10, 50), "n_seeds": 2, "sides": (16,)},
    "full": {
        "n_components": (5, 18, 256),
        "n_iter": (10, 50, 200),
        "n_seeds": 4,
        "sides": (16, 32),
    },
}
N_ROWS, N_EXACT = 1000, 25
N_SWEEPS = 400
MANY_ERRORS = 5  # standard errors

Data = tuple[str, type, np.ndarray, float | None]


def data_sets(sides: tuple[int, ...]) -> Iterator[Data]:
    """Name, estimator and rows, with their mean log-likelihood under the law that they are from."""
    for name, shares in SHARES.items():
        rng = np.random.default_rng(0)
        patterns, of_row = (
            rng.random((len(shares), 50)) < 0.5,
            rng.choice(len(shares), N_ROWS, p=shares),
        )
        patterns[1] = ~patterns[0]
        bits = patterns[of_row] ^ (rng.random((N_ROWS, 50)) < NOISE)
        n_wrong = (bits[:, None] != patterns).sum(axis=2)
        truth = n_wrong * np.log(NOISE) + (50 - n_wrong) * np.log1p(-NOISE) + np.log(shares)
        mean = float(logsumexp(truth, axis=1).mean())
        yield f"bits, {name}", BernoulliRBM, bits.astype(float), mean
        yield f"spins, {name}", SpinRBM, 2.0 * bits - 1, mean
        one_hot = np.stack([bits, ~bits], axis=2).reshape(N_ROWS, -1)
        yield f"one-hot, {name}", BernoulliRBM, one_hot.astype(float), mean
        centres = 40.0 * patterns[:, :10]
        numbers = centres[of_row] + rng.normal(size=(N_ROWS, 10))
        squares = ((numbers[:, None] - centres) ** 2).sum(axis=2) / 2
        density = np.log(shares) - squares - 5 * np.log(2 * np.pi)
        yield f"numbers, {name}", GaussianBernoulliRBM, numbers, float(logsumexp(density, 1).mean())
    for temperature in (1.8, 2.3, 3.5):
        yield f"Ising spins, T = {temperature}", SpinRBM, ising(temperature), None
    rng = np.random.default_rng(0)
    for n_columns in (300, 1000):
        odds = rng.normal(1.5, 0.5, n_columns) * rng.normal(size=(N_ROWS, 1))
        X = (rng.random((N_ROWS, n_columns)) < expit(odds)).astype(float)
        yield f"one factor, {n_columns} columns", BernoulliRBM, X, None
    for side in sides:
        for kind in ("grey", "thresholded"):
            X = patches(side)
            yield (
                f"patches, {side}, {kind}",
                BernoulliRBM,
                X if kind == "grey" else 1.0 * (X > 0.5),
                None,
            )


def ising(temperature: float, length: int = 6) -> np.ndarray:
    """Spins of a periodic square lattice: heat-bath sweeps, and flips of all spins."""
    rng = np.random.default_rng(0)
    s = rng.choice([-1.0, 1.0], (N_ROWS, 1, 1)) * np.ones((N_ROWS, length, length))
    is_even = np.indices((length, length)).sum(axis=0) % 2 == 0
    for _ in range(N_SWEEPS):
        for own in (is_even, ~is_even):
            field = sum(np.roll(s, step, axis) for step in (1, -1) for axis in (1, 2))
            s = np.where(
                own, np.where(rng.random(s.shape) < expit(2 * field / temperature), 1, -1), s
            )
        s = s * rng.choice([-1.0, 1.0], (N_ROWS, 1, 1))
    return s.reshape(N_ROWS, -1)


def patches(side: int) -> np.ndarray:
    """Grey patches of scikit-learn's two photographs, 7000 rows."""
    grey = [image.mean(axis=2) / 255 for image in load_sample_images().images]
    found = [extract_patches_2d(g, (side, side), max_patches=3500, random_state=0) for g in grey]
    return np.concatenate(found).reshape(7000, -1)


def independent(X: np.ndarray, estimator: type) -> float:
    """Mean log-likelihood if features were independent."""
    if estimator is GaussianBernoulliRBM:
        return float(stats.norm(X.mean(axis=0), X.std(axis=0)).logpdf(X).sum(axis=1).mean())
    share = X.mean(axis=0) if estimator is BernoulliRBM else (X.mean(axis=0) + 1) / 2
    return float(-stats.entropy([share, 1 - share]).sum())


def log_likelihoods(rbm: Any, X: np.ndarray) -> np.ndarray:
    """Of every row, exactly where that is possible."""
    method = "exact" if len(rbm.components_) <= N_EXACT else "ais"
    return rbm.log_likelihood(X, rbm.log_partition(method))


def fit(rbm: Any, X: np.ndarray) -> dict[str, Any]:
    """Likelihood of a fit, and what it said."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            likelihoods = log_likelihoods(rbm.fit(X), X)
        except DivergenceError:
            return {"mean": None, "greatest": None, "is_warned": True}
    is_warned = any(issubclass(w.category, ConvergenceWarning | AnnealingWarning) for w in heard)
    return {
        "mean": float(likelihoods.mean()),
        "greatest": float(likelihoods.max()),
        "is_warned": is_warned,
    } | annealed(rbm)


def annealed(rbm: Any) -> dict[str, bool]:
    """Whether an annealed partition function is wrong by its own measure, and says so."""
    if len(rbm.components_) > N_EXACT:
        return {}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        estimate = rbm.log_partition("ais")
    error = abs(estimate.value - rbm.log_partition("exact").value)
    return {
        "is_annealed_off": error > MANY_ERRORS * estimate.std_error,
        "is_annealed_warned": any(issubclass(w.category, AnnealingWarning) for w in heard),
    }


def run(data: Data, size: dict[str, Any]) -> dict[str, Any]:
    """All fits to one kind of data."""
    _, estimator, X, truth = data
    row: dict[str, Any] = {"truth": truth, "independent": independent(X, estimator), "fits": []}
    if estimator is not GaussianBernoulliRBM:
        bits = X if estimator is BernoulliRBM else (X + 1) / 2
        theirs = as_skrbm(TheirRBM(size["n_components"][0], random_state=0).fit(bits))
        row["scikit-learn"] = float(log_likelihoods(theirs, bits).mean())
    for n_components in size["n_components"]:
        for n_iter in size["n_iter"]:
            for seed in range(size["n_seeds"]):
                rbm = estimator(n_components, n_iter=n_iter, random_state=seed)
                options = {"n_components": n_components, "n_iter": n_iter, "seed": seed}
                row["fits"].append(options | fit(rbm, X))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="quick")
    size = SIZES[parser.parse_args().size]
    where.print_description()
    results: dict[str, Any] = {}
    for data in data_sets(size["sides"]):
        row = results[data[0]] = run(data, size)
        means = [f["mean"] for f in row["fits"] if f["mean"] is not None]
        silent = [f for f in row["fits"] if not f["is_warned"] and f["mean"] < row["independent"]]
        truth = "-" if row["truth"] is None else f"{row['truth']:.2f}"
        print(
            f"{data[0]:26} truth {truth:>8}  independent {row['independent']:9.2f}  scikit-learn "
            f"{row.get('scikit-learn', np.nan):9.2f}  skrbm {min(means):9.2f} to {max(means):9.2f}  "
            f"silent failures {len(silent)} of {len(row['fits'])}",
            flush=True,
        )
    discrete = [f for name, row in results.items() if "numbers" not in name for f in row["fits"]]
    n_above = sum(f["greatest"] is not None and f["greatest"] > 0 for f in discrete)
    print(f"rows of likelihood above one in {n_above} of {len(discrete)} fits of discrete rows")
    off = [f for row in results.values() for f in row["fits"] if f.get("is_annealed_off")]
    n_silent = sum(not f["is_annealed_warned"] for f in off)
    print(
        f"annealed values off by {MANY_ERRORS} standard errors: {len(off)}, {n_silent} in silence"
    )
    path = where.write("clusters", __doc__.splitlines()[0], results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
