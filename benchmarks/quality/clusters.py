"""Do fits by defaults learn modes that lie far apart, and say so where they do not?

Mean log-likelihood of the training rows in nats, exactly for few hidden units and else by annealing
forwards with jumps to rows of all groups, beside the truth where that is known, independent features,
and scikit-learn's BernoulliRBM by its defaults (which sees spins as 0 and 1). For rare far groups
also the area under the ROC curve of `RBMOutlierDetector` over these fits. Counts fits that are
below independent features, with and without a warning, rows of likelihood above one, and annealed partition
functions that are off by more than five of their standard errors. Sizes "rare" and "rare, quick" are
the rare groups alone; "shapes" are two rings and clusters within clusters, beside a mixture of 16
normals. Run from the repository:

    python -m benchmarks.quality.clusters [--size {quick,wide,full,rare,rare-quick,shapes}] [--n-jobs 1]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import BernoulliRBM as TheirRBM

from benchmarks import machine as where
from benchmarks import structured
from benchmarks.likelihood import as_skrbm
from benchmarks.structured import DataSet
from skrbm import AnnealingWarning, BernoulliRBM, DivergenceError, SpinRBM

SIZES: dict[str, dict[str, Any]] = {
    "quick": {"n_components": (18,), "n_iter": (10,), "n_seeds": 2, "sides": ()},
    "wide": {"n_components": (5, 18, 256), "n_iter": (10, 50), "n_seeds": 2, "sides": (16,)},
    "full": {
        "n_components": (5, 18, 256),
        "n_iter": (10, 50, 200),
        "n_seeds": 4,
        "sides": (16, 32),
    },
    "rare": {"n_components": (5, 18, 64, 256, 1024), "n_iter": (10, 50), "n_seeds": 8},
    "rare-quick": {"n_components": (18, 256), "n_iter": (10,), "n_seeds": 8},
    "shapes": {"n_components": (16, 64), "n_iter": (10, 50), "n_seeds": 4, "n_normals": 16},
}
WIDE, N_SEEDS_WIDE = 1024, 4  # hidden units; seeds of a fit of so many, which takes long
N_EXACT = 25  # hidden units whose states are summed over
N_TEMPERATURES = 10_000  # by 2,000, two clusters of numbers are up to 1.3 nats off
N_CHECKED = 2  # seeds whose annealed partition functions are compared with exact ones
N_ANCHORS, N_CHAIN_ENDS = 100, 10  # rows to jump to; of these, from each kind of hidden states
N_STEPS = 20  # Gibbs steps from such states to the model's own
MANY_ERRORS = 5  # standard errors


def data_sets(size: str) -> Iterator[DataSet]:
    """Kinds of data of a size of this benchmark."""
    if size.startswith("rare"):
        return structured.rare_groups()
    if size == "shapes":
        return structured.shapes()
    return chain(
        structured.clusters(),
        structured.lattices(),
        structured.one_factor(),
        structured.photographs(SIZES[size]["sides"]),
    )


def log_likelihoods(rbm: Any, data: DataSet, n_temperatures: int = N_TEMPERATURES) -> np.ndarray:
    """Log-likelihood of each row in nats, exact where that is possible."""
    if len(rbm.components_) <= N_EXACT:
        return rbm.log_likelihood(data.X, rbm.log_partition("exact"))
    log_z = rbm.log_partition("ais", n_temperatures=n_temperatures, X=anchors(rbm, data))
    return rbm.log_likelihood(data.X, log_z)


def anchors(rbm: Any, data: DataSet) -> Any:
    """Rows in all modes that are known: rare rows first, other rows, and states of the model.

    The latter are where Gibbs steps lead from the persistent chains and from hidden units that are
    all on or all off, so that a mode without data is found as well.
    """
    n_hidden, off = len(rbm.components_), -1.0 if data.estimator is SpinRBM else 0.0
    chains = rbm.h_samples_[:N_CHAIN_ENDS]
    H = np.concatenate([chains, *(np.full((N_CHAIN_ENDS, n_hidden), s) for s in (off, 1.0))])
    states = rbm.inverse_transform(H)
    for _ in range(N_STEPS):
        states = rbm.gibbs(states)
    is_rare = np.zeros(len(data.X), dtype=bool) if data.is_rare is None else data.is_rare
    order = np.argsort(~is_rare, kind="stable")
    n_rare, n_rows = np.count_nonzero(is_rare), N_ANCHORS - len(H)
    others = np.linspace(n_rare, len(order) - 1, n_rows - n_rare).astype(int)
    numbers = order[np.concatenate([np.arange(n_rare), others])]
    if isinstance(data.X, pd.DataFrame):
        return pd.concat([data.X.iloc[numbers], states], ignore_index=True)
    return np.concatenate([data.X[numbers], states])


def fit(rbm: Any, data: DataSet, n_temperatures: int = N_TEMPERATURES) -> dict[str, Any]:
    """Likelihood of a fit, how it ranks rare rows, and what it said."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            likelihoods = log_likelihoods(rbm.fit(data.X), data, n_temperatures)
        except DivergenceError:
            return {"mean": None, "greatest": None, "is_warned": True}
    is_warned = any(issubclass(w.category, ConvergenceWarning | AnnealingWarning) for w in heard)
    found = {
        "mean": float(likelihoods.mean()),
        "greatest": float(likelihoods.max()),
        "is_warned": is_warned,
    }
    if data.is_rare is not None:
        # The scores of RBMOutlierDetector are minus the free energies.
        found["area"] = float(roc_auc_score(data.is_rare, rbm.free_energy(data.X)))
    return found


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


def one_fit(data: DataSet, n_components: int, n_iter: int, seed: int) -> dict[str, Any]:
    """One fit, and what annealing says of it."""
    rbm = data.estimator(n_components, n_iter=n_iter, random_state=seed, **data.options)
    found = fit(rbm, data)
    if found["mean"] is not None and seed < N_CHECKED:
        found |= annealed(rbm)
    return {"n_components": n_components, "n_iter": n_iter, "seed": seed} | found


def run(data: DataSet, size: dict[str, Any], n_jobs: int) -> dict[str, Any]:
    """All fits to one kind of data."""
    row: dict[str, Any] = {"truth": data.truth, "independent": data.independent}
    if data.true_area is not None:
        row["true area"] = data.true_area
    if data.estimator in (BernoulliRBM, SpinRBM):
        bits = data.X if data.estimator is BernoulliRBM else (data.X + 1) / 2
        theirs = as_skrbm(TheirRBM(min(size["n_components"]), random_state=0).fit(bits))
        row["scikit-learn"] = float(theirs.log_likelihood(bits, theirs.log_partition()).mean())
    if "n_normals" in size:
        mixture = GaussianMixture(size["n_normals"], random_state=0).fit(data.X)
        row["mixture"] = float(mixture.score(data.X))
    settings = [
        (n_components, n_iter, seed)
        for n_components, n_iter in product(size["n_components"], size["n_iter"])
        for seed in range(N_SEEDS_WIDE if n_components >= WIDE else size["n_seeds"])
    ]
    row["fits"] = Parallel(n_jobs=n_jobs)(delayed(one_fit)(data, *s) for s in settings)
    return row


def show(name: str, row: dict[str, Any]) -> None:
    """Print one line for a kind of data."""
    means = [f["mean"] for f in row["fits"] if f["mean"] is not None]
    low = [f for f in row["fits"] if f["mean"] is None or f["mean"] < row["independent"]]
    n_silent = sum(not f["is_warned"] for f in low)
    n_warned = sum(f["is_warned"] for f in row["fits"])
    truth = "-" if row["truth"] is None else f"{row['truth']:.2f}"
    areas = [f["area"] for f in row["fits"] if "area" in f]
    print(
        f"{name:36} truth {truth:>7}  independent {row['independent']:8.2f}  scikit-learn "
        f"{row.get('scikit-learn', np.nan):8.2f}  skrbm {min(means):8.2f} to {max(means):8.2f}  "
        f"below independent {len(low)}, {n_silent} in silence, of {len(row['fits'])}"
        + (f"  mixture {row['mixture']:.2f}, warned {n_warned}" if "mixture" in row else "")
        + (
            f"  area {min(areas):.3f} to {max(areas):.3f}, true {row.get('true area', np.nan):.3f}"
            if areas
            else ""
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--n-jobs", type=int, default=1)
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    results: dict[str, Any] = {}
    is_discrete = {}
    for data in data_sets(arguments.size):
        results[data.name] = run(data, SIZES[arguments.size], arguments.n_jobs)
        is_discrete[data.name] = data.is_discrete
        show(data.name, results[data.name])
    discrete = [f for name, row in results.items() if is_discrete[name] for f in row["fits"]]
    n_above = sum(f["greatest"] is not None and f["greatest"] > 0 for f in discrete)
    print(f"rows of likelihood above one in {n_above} of {len(discrete)} fits of discrete rows")
    off = [f for row in results.values() for f in row["fits"] if f.get("is_annealed_off")]
    n_silent = sum(not f["is_annealed_warned"] for f in off)
    print(
        f"annealed values off by {MANY_ERRORS} standard errors: {len(off)}, {n_silent} in silence"
    )
    names = {"rare": "clusters_rare", "rare-quick": "clusters_rare", "shapes": "clusters_shapes"}
    name = names.get(arguments.size, "clusters")
    path = where.write(name, question, results, size=arguments.size)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
