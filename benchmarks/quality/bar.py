"""Is Bennett's ratio along a ladder right, and better than annealing at equal time?

50 random models each of Bernoulli, spin, Gaussian and categorical units, as in partition.py: how many
exact values are within four standard errors of the estimate by 100 ladders of 2000 steps. Then both
methods by the names that users call, at equal seconds of the processor: BernoulliRBMs of 12 x 10 units,
weights of standard deviation 2 to 4, against exact values; and one of 784 x 500, fitted to binarised
MNIST by defaults, against the mean of annealing and of reverse annealing at five times the size. "spread"
is the standard deviation over repeats, "stated" the mean of the standard errors. Run from the repository,
all or by name:

    python -m benchmarks.quality.bar [random] [hard] [large]
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.quality.partition import base_of, exact_samples, random_machine
from skrbm import AnnealingWarning, BernoulliRBM
from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood import exact
from skrbm.core.likelihood.bar import bridged_log_partition

KINDS = ("bernoulli", "spin", "gaussian", "categorical")
N_MODELS, N_CHAINS, N_TEMPERATURES = 50, 100, 2000
N_HARD, HARD_REPEATS = 10, 20
LARGE_REPEATS, LARGE_SIZE, MUCH = 5, 1000, 5


def z_score(kind: str, index: int) -> float:
    """Error of one model's estimate, in standard errors."""
    rng = np.random.default_rng([index, len(kind)])
    machine = random_machine(kind, index, rng)
    path = TemperedPath.to(machine, base_of(machine, exact_samples(machine, 1000, rng)))
    result = bridged_log_partition(path, N_CHAINS, N_TEMPERATURES, rng)
    return (result.value - exact.log_partition(machine)) / result.std_error


def random_models() -> dict[str, dict[str, int]]:
    """Number of models whose exact value is within some standard errors."""
    rows = {}
    for kind in KINDS:
        z = np.abs([z_score(kind, index) for index in range(N_MODELS)])
        rows[kind] = {f"within_{k}": int((z < k).sum()) for k in (1, 2, 4)}
        print(f"{kind:12} {rows[kind]} of {N_MODELS}", flush=True)
    return rows


def hard_model(index: int) -> BernoulliRBM:
    """Model of 12 x 10 units with large weights, nothing but its arrays."""
    rng, rbm = np.random.default_rng(index), BernoulliRBM(10, random_state=0)
    scale = np.linspace(2, 4, N_HARD)[index]
    rbm.components_ = rng.normal(0, scale, (10, 12))
    rbm.intercept_visible_, rbm.intercept_hidden_ = (rng.normal(0, scale, n) for n in (12, 10))
    return rbm


def timed(rbm: BernoulliRBM, method: str, size: int, seed: int) -> tuple[Any, float]:
    """Estimate, and seconds of the processor, which others on the machine do not lengthen."""
    begin = time.process_time()
    result = rbm.log_partition(method, n_temperatures=size, n_chains=N_CHAINS, random_state=seed)
    return result, time.process_time() - begin


def compare(rbm: BernoulliRBM, size: int, n_repeats: int, truth: float | None) -> dict[str, Any]:
    """Bias, spread and stated error of both methods at equal time, in nats."""
    trials = {name: timed(rbm, name, size, 0)[1] for name in ("ais", "bar")}
    sizes = {"ais": size, "bar": max(100, round(size * trials["ais"] / trials["bar"]))}
    found = {n: [timed(rbm, n, s, k) for k in range(1, n_repeats + 1)] for n, s in sizes.items()}
    if truth is None:
        long = [timed(rbm, n, MUCH * size, 0)[0].value for n in ("ais", "reverse_ais")]
        truth = float(np.mean(long))
    row: dict[str, Any] = {"truth": truth}
    for name, results in found.items():
        errors = np.array([result.value - truth for result, _ in results])
        row[name] = {
            "n_temperatures": sizes[name],
            "seconds": float(np.mean([seconds for _, seconds in results])),
            "bias": float(errors.mean()),
            "spread": float(errors.std(ddof=1)),
            "rms": float(np.sqrt((errors**2).mean())),
            "stated": float(np.mean([result.std_error for result, _ in results])),
        }
    print_row(row)
    return row


def print_row(row: dict[str, Any]) -> None:
    """Print a line for each method."""
    for name in ("ais", "bar"):
        numbers = " ".join(f"{key} {x:.4g}" for key, x in row[name].items())
        print(f"    {name}: {numbers}", flush=True)


def hard_models() -> list[dict[str, Any]]:
    """Both methods for every hard model."""
    rows = []
    for index in range(N_HARD):
        rbm = hard_model(index)
        rows.append(compare(rbm, N_TEMPERATURES, HARD_REPEATS, rbm.log_partition("exact").value))
    for key in ("bias", "spread", "rms", "stated"):
        means = {n: float(np.median([abs(row[n][key]) for row in rows])) for n in ("ais", "bar")}
        print(f"median size of {key}: {means}", flush=True)
    return rows


def large_model() -> dict[str, Any]:
    """Both methods for a model of MNIST."""
    rbm = BernoulliRBM(500, random_state=0).fit(binarized_mnist()[0])
    return compare(rbm, LARGE_SIZE, LARGE_REPEATS, None)


def main() -> None:
    question = where.begin(__doc__)
    parts = {"random": random_models, "hard": hard_models, "large": large_model}
    warnings.simplefilter("ignore", AnnealingWarning)  # errors are what is measured
    for name in sys.argv[1:] or parts:
        print(name)
        path = where.write(f"bar_{name}", question, parts[name]())
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
