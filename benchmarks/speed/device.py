"""Do fits, samples and annealing take less time on a GPU than on the host?

BernoulliRBM with 784 x 500 and 4,000 x 2,000 units and 2,000 chains, single precision: seconds of an
epoch of 10,000 rows in batches of 2,000 (a fit of six epochs minus a fit of one), of 100 Gibbs steps of
2,000 samples, and of 1,000 temperatures of annealing with 1,000 chains. Arrays of the library given, by
default CuPy's, in turn with NumPy's on the same machine; medians of seven rounds. Needs a GPU, CuPy, and
scikit-learn's array API support; run from the repository:

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

SIZES, SMALL_SIZES = ((784, 500), (4000, 2000)), ((30, 20),)
N_CHAINS, N_EPOCHS, N_STEPS, N_TEMPERATURES = 2_000, 5, 100, 1_000
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
    X = (rng.random((5 * n_chains, n_visible)) < 0.3).astype(np.float32)
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
    n_chains, n_repeats = (20, 1) if arguments.small else (N_CHAINS, N_REPEATS)
    results = {}
    with config_context(array_api_dispatch=True):
        for n_visible, n_hidden in SMALL_SIZES if arguments.small else SIZES:
            case = f"{n_visible} x {n_hidden}"
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
