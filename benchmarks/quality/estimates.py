"""Are partition functions within four of their stated errors, or else warned of?

66 small models of structured data: clusters, rare far groups, one factor, scattered rows, documents, Ising
spins; bits, spins and numbers; 8 hidden units and 3 passes by defaults, 13 units and 30 passes, and 12 units
and 10 passes without jumps to the data and without clusters at the start, which may have modes that no row is
in. Their exact sums over the hidden states are compared with annealing, reverse annealing and Bennett's
ratio, all as users call them with 1,000 temperatures, and with the tracked value of the last pass, for four
random states. Estimates that are wrong or warned of are listed. Run from the repository:

    python -m benchmarks.quality.estimates [--temperatures 1000] [--seeds 4]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits

from benchmarks import machine as where
from benchmarks import structured
from benchmarks.quality.leave_one_out import without
from benchmarks.quality.tracking import noted
from skrbm import AnnealingWarning, BernoulliRBM, GaussianBernoulliRBM
from skrbm.core.likelihood import exact

METHODS = ("ais", "reverse_ais", "bar", "tracked")
N_ERRORS = 4  # stated ones, beyond which an estimate is wrong
ROUNDING = 1e-6  # relative
# Hidden units, passes, and what training leaves out.
FITS = {"short": (8, 3, ()), "long": (13, 30, ()), "bare": (12, 10, ("jumps", "clusters"))}


def data_sets() -> Iterator[tuple[str, type, np.ndarray]]:
    """Name, class and rows of every data set."""
    everything = chain(
        structured.clusters(),
        structured.rare_groups(),
        structured.lattices(),
    )
    for data in everything:
        is_other_size = any(f", {n} of " in data.name for n in (2, 20))
        if isinstance(data.X, np.ndarray) and not is_other_size and "one-hot" not in data.name:
            yield data.name, data.estimator, data.X
    yield "bits, digits", BernoulliRBM, (load_digits().data > 7).astype(float)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1)) * rng.normal(0, 2, 12) + rng.normal(size=(1000, 12))
    yield "numbers, one factor", GaussianBernoulliRBM, X
    odds = rng.normal(1.5, 0.5, 100) * rng.normal(size=(1000, 1))
    yield "bits, one factor", BernoulliRBM, (rng.random(odds.shape) < expit(odds)).astype(float)


def heard(call: Callable[[], Any]) -> tuple[Any, bool]:
    """Answer of a call, and whether it has warned of it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        answer = call()
    return answer, any(issubclass(w.category, AnnealingWarning) for w in found)


def trial(estimator: type, X: np.ndarray, fit: str, size: int, seed: int) -> dict[str, Any]:
    """Error of every estimate for one model, in nats, with its stated error."""
    width, n_iter, left_out = FITS[fit]
    rbm: Any = without(estimator, frozenset(left_out))(
        width, n_iter=n_iter, track_likelihood=True, random_state=seed
    )
    with noted(None) as notes:
        _, has_warned = heard(lambda: rbm.fit(X))
    machine, tracked = notes[-1]
    truth = exact.log_partition(machine.astype(np.float64))
    row = {"tracked": judged(tracked, truth, has_warned)}
    truth = rbm.log_partition("exact").value
    for name in METHODS[:3]:
        estimate, has_warned = heard(
            lambda name=name: rbm.log_partition(name, n_temperatures=size, random_state=seed)
        )
        row[name] = judged(estimate, truth, has_warned)
    return row


def judged(estimate: Any, truth: float, has_warned: bool) -> dict[str, Any]:
    """Error of an estimate in nats, its stated error, and what became of it."""
    error = estimate.value - truth
    is_wrong = not abs(error) <= N_ERRORS * estimate.std_error + ROUNDING * max(1, abs(truth))
    return {
        "error": float(error),
        "stated": float(estimate.std_error),
        "is_wrong": bool(is_wrong),
        "has_warned": has_warned,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--temperatures", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    question = where.begin(__doc__)
    found: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    listed: dict[str, Any] = {}
    for (name, estimator, X), fit, seed in product(data_sets(), FITS, range(args.seeds)):
        row = trial(estimator, X, fit, args.temperatures, seed)
        for method in METHODS:
            found[method].append(row[method])
            if row[method]["is_wrong"] or row[method]["has_warned"]:
                listed[f"{name}, {fit}, random_state={seed}, {method}"] = row[method]
                print(f"{name}, {fit}, {seed}, {method}: {row[method]}", flush=True)
    counts = {}
    for method, rows in found.items():
        counts[method] = {
            "models": len(rows),
            "wrong": sum(row["is_wrong"] for row in rows),
            "wrong_in_silence": sum(row["is_wrong"] and not row["has_warned"] for row in rows),
            "warned": sum(row["has_warned"] for row in rows),
            "warned_without_need": sum(row["has_warned"] and not row["is_wrong"] for row in rows),
            "median_stated": float(np.median([row["stated"] for row in rows])),
        }
        print(f"{method:12} {counts[method]}")
    results = {"counts": counts, "wrong or warned of": listed}
    path = where.write("estimates", question, results, **vars(args))
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
