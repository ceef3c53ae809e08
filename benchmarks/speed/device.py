"""Do fits, samples and annealing take less time on a GPU than on the host?

BernoulliRBM in single precision, with as many chains as rows in a batch: 64 x 64 units and 10 chains,
784 x 500 with 100 and with 2,000, 4,000 x 2,000 with 2,000. Seconds of an epoch of 10,000 rows, or of 100
batches if these are fewer rows (a fit of six epochs minus a fit of one), of 100 Gibbs steps of as many
samples as chains, and of annealing over 100 temperatures with half as many chains. Arrays of the library
given, by default CuPy's, in turn with NumPy's on the same machine; medians of seven rounds. Needs a GPU,
CuPy, and scikit-learn's array API support; run from the repository:

    SCIPY_ARRAY_API=1 python -m benchmarks.speed.device

`--library numpy` compares NumPy with itself, and `--small` takes small sizes and one round: together they
check the script on a machine without a GPU, and write nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import config_context

from benchmarks import machine as where
from benchmarks.timing import ratio, seconds, take_turns
from skrbm import BernoulliRBM

# Visible units, hidden units, chains.
SIZES = (64, 64, 10), (784, 500, 100), (784, 500, 2_000), (4_000, 2_000, 2_000)
SMALL_SIZES = ((30, 20, 20),)
N_ROWS, MAX_BATCHES, N_EPOCHS, N_STEPS, N_TEMPERATURES = 10_000, 100, 5, 100, 100
N_REPEATS = 7


def fit(X: Any, n_components: int, n_chains: int, n_iter: int) -> BernoulliRBM:
    """Fit without the search for clusters, which stays on the host."""
    rbm = BernoulliRBM(
        n_components, batch_size=n_chains, n_particles=n_chains, n_iter=n_iter, random_state=0
    )
    rbm._left_out = frozenset({"clusters"})
    return rbm.fit(X)


def epoch(X: Any, n_components: int, n_chains: int) -> float:
    """Seconds of an epoch, without the start and the end of a fit."""
    sizes = X, n_components, n_chains
    many, one = (seconds(partial(fit, *sizes, n_iter)) for n_iter in (1 + N_EPOCHS, 1))
    return (many - one) / N_EPOCHS


def compare(
    asarray: Callable[[Any], Any], n_visible: int, n_hidden: int, n_chains: int, n_repeats: int
) -> dict[str, dict[str, float]]:
    """Median seconds of every task with both libraries, and their ratio."""
    rng = np.random.default_rng(0)
    n_rows = min(N_ROWS, MAX_BATCHES * n_chains)
    X = (rng.random((n_rows, n_visible)) < 0.3).astype(np.float32)
    rows = {"numpy": X, "device": asarray(X)}
    fitted = {name: fit(each, n_hidden, n_chains, 1) for name, each in rows.items()}
    sizes = {"n_chains": n_chains // 2, "n_temperatures": N_TEMPERATURES}
    tasks: dict[str, dict[str, Callable[[], Any]]] = {
        "epoch": {name: partial(epoch, each, n_hidden, n_chains) for name, each in rows.items()},
        "samples": {
            name: partial(rbm.sample, n_chains, N_STEPS, random_state=0)
            for name, rbm in fitted.items()
        },
        "annealing": {
            name: partial(rbm.log_partition, "ais", random_state=0, **sizes)
            for name, rbm in fitted.items()
        },
    }
    results = {}
    for name, jobs in tasks.items():
        measure = (lambda job: job()) if name == "epoch" else seconds
        times = take_turns(jobs, n_repeats, measure)
        results[name] = {place: float(np.median(t)) for place, t in times.items()}
        results[name]["numpy / device"] = ratio(times, "numpy", "device")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="cupy")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    library = import_module(arguments.library)
    sizes, n_repeats = (SMALL_SIZES, 1) if arguments.small else (SIZES, N_REPEATS)
    results = {}
    with config_context(array_api_dispatch=True):
        for n_visible, n_hidden, n_chains in sizes:
            case = f"{n_visible} x {n_hidden}, {n_chains} chains"
            results[case] = compare(library.asarray, n_visible, n_hidden, n_chains, n_repeats)
            print(f"\n{case}")
            for name, found in results[case].items():
                numbers = ", ".join(f"{key} {value:.3g}" for key, value in found.items())
                print(f"  {name:10} {numbers}", flush=True)
    if arguments.library == "cupy" and not arguments.small:
        properties = library.cuda.runtime.getDeviceProperties(library.cuda.Device().id)
        gpu, version = properties["name"].decode(), library.__version__
        path = where.write("device", question, results, gpu=gpu, cupy=version, repeats=N_REPEATS)
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
