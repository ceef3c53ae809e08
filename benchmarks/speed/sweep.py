"""How long does each operation take, from small models to large, in either precision?

An update as in training.py, in batches of 10, 100 and 500, beside scikit-learn's, that of the PyTorch package
`rbms` and the bare matrix products; transform and a step of 100 Gibbs chains beside scikit-learn's
and their products; exact score_samples, where no peer does the same; a temperature of annealing 100
chains beside its products. Medians over rounds in turn. Run from the repository:

    python -m benchmarks.speed.sweep [--sizes 64x64 256x256 784x500]

Results are merged into those of earlier runs.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks import machine as where
from benchmarks.speed.annealing import products
from benchmarks.speed.inference import twins
from benchmarks.speed.training import compare, rows, show
from benchmarks.timing import ratio, take_turns

SIZES = ((64, 64), (256, 256), (784, 500))
BATCHES = (10, 100, 500)
N_ROUNDS, N_CHAINS, N_STEPS = 7, 100, 50
N_ROWS, N_UPDATES = 20_000, (4, 60)
WORK = 5e8  # multiplications in a pass, where these numbers of updates allow it


def inference(n_visible: int, n_hidden: int, dtype: type) -> dict[str, dict[str, float]]:
    """Microseconds of a row, or of a step of all chains, beside those of peers and products."""
    X = rows(N_ROWS, n_visible, dtype)
    ours, peer = twins(X[:1000], n_hidden)
    weights = np.ascontiguousarray(ours.components_.T)
    v = X[:N_CHAINS]
    h = ours.transform(v)
    scored = X[: N_ROWS // n_visible]

    def their_chains() -> None:
        states = v
        for _ in range(N_STEPS):
            states = peer.gibbs(states)

    def annealing() -> object:
        return ours.log_partition(
            "ais", n_chains=N_CHAINS, n_temperatures=N_STEPS, X=v, random_state=0
        )

    operations: dict[str, tuple[int, dict[str, Callable[[], object]]]] = {
        "transform, row": (
            N_ROWS,
            {
                "skrbm": lambda: ours.transform(X),
                "scikit-learn": lambda: peer.transform(X),
                "products": lambda: X @ weights,
            },
        ),
        "score_samples, row": (
            len(scored),
            {"skrbm": lambda: ours.score_samples(scored)},
        ),
        "sample, step": (
            N_STEPS,
            {
                "skrbm": lambda: ours.sample(N_CHAINS, N_STEPS, init=v),
                "scikit-learn": their_chains,
                "products": lambda: products(v, h, weights, N_STEPS),
            },
        ),
        "annealing, temperature": (
            N_STEPS,
            {
                "skrbm": annealing,
                "products": lambda: products(v, h, weights, N_STEPS),
            },
        ),
    }
    results = {}
    for name, (n_units, jobs) in operations.items():
        times = take_turns(jobs, N_ROUNDS)
        results[name] = {
            f"{job}, us": 1e6 * float(np.median(t)) / n_units for job, t in times.items()
        }
        for slower, faster in (("scikit-learn", "skrbm"), ("skrbm", "products")):
            if slower in times and faster in times:
                results[name][f"{slower} / {faster}"] = ratio(times, slower, faster)
    return results


def main() -> None:
    names = [f"{n_visible}x{n_hidden}" for n_visible, n_hidden in SIZES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=names, default=names)
    chosen = parser.parse_args().sizes
    sizes = [size for name, size in zip(names, SIZES, strict=True) if name in chosen]
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results = where.written("sweep")
    for (n_visible, n_hidden), dtype in itertools.product(sizes, (np.float32, np.float64)):
        found = inference(n_visible, n_hidden, dtype)
        for batch_size in BATCHES:
            n_updates = int(np.clip(WORK / (n_visible * n_hidden * batch_size), *N_UPDATES))
            found[f"update, batch {batch_size}"] = compare(
                n_visible, n_hidden, batch_size, n_updates, dtype
            )
        for name, result in found.items():
            key = f"{n_visible} x {n_hidden}, {dtype.__name__}, {name}"
            results[key] = result
            show(key, result)
    path = where.write("sweep", question, results, rounds=N_ROUNDS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
