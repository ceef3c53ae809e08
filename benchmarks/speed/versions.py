"""Is this checkout slower than another one? `python -m benchmarks.speed.versions OTHER_CHECKOUT`.

A process for each, started once, makes passes of the same training in turn: medians of the ratio of
the times, this one's to the other's. Updates of 64 x 64 and 784 x 500, batches of 10, 100 and 500,
by the defaults ("all") and without centring, averages and schedule ("plain"), and transform.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

SIZES, BATCHES = ((64, 6000), (784, 3000)), (10, 100, 500)
HIDDEN = {64: 64, 784: 500}
MODES: dict[str, dict[str, Any]] = {
    "all": {},
    "plain": {"centering": False, "average": False, "learning_rate_schedule": "constant"},
}


def jobs() -> dict[str, Callable[[], object]]:
    """What to time, by name: calls without arguments."""
    from skrbm import BernoulliRBM

    rng, calls = np.random.default_rng(0), {}
    for n_visible, n_rows in SIZES:
        for dtype in ("float32", "float64"):
            X = (rng.random((n_rows, n_visible)) < 0.2).astype(dtype)
            for batch_size in BATCHES:
                rows = X[: batch_size * (400 if n_visible == 64 else 40)]
                for mode, options in MODES.items():
                    rbm = BernoulliRBM(HIDDEN[n_visible], batch_size=batch_size, random_state=0)
                    rbm.set_params(learning_rate=0.01, **options).partial_fit(rows)
                    name = f"{n_visible} x {HIDDEN[n_visible]} {dtype} {batch_size} {mode}"
                    calls[name] = lambda rbm=rbm, rows=rows: rbm.partial_fit(rows)
            calls[f"{n_visible} x {HIDDEN[n_visible]} {dtype} transform"] = lambda rbm=rbm, X=X: (
                rbm.transform(X)
            )
    return calls


def work(checkout: str) -> None:
    """Answer names of jobs on standard input by seconds, after the names of all."""
    sys.path.insert(0, checkout)
    calls = jobs()
    print("|".join(calls), flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        calls[line.strip()]()
        print(time.perf_counter() - begin, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="part of the names of the jobs")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.other)
        return
    # Not in the workers, which import a package of their own.
    from benchmarks import machine as where
    from benchmarks.timing import ratio, take_turns

    where.begin(__doc__)
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, checkout, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout in (str(where.ROOT), arguments.other)
    ]
    names, _ = (worker.stdout.readline().strip().split("|") for worker in workers)
    for name in filter(lambda name: arguments.only in name, names):
        this, other = (partial(ask, worker, name) for worker in workers)
        times = take_turns({"this": this, "other": other}, arguments.rounds, lambda job: job())
        slower = ratio(times, "this", "other")
        print(f"{name:30} {1e3 * np.median(times['this']):8.1f} ms, ratio {slower:.3f}", flush=True)


def ask(worker: Any, name: str) -> float:
    """Seconds that a job takes in a worker."""
    worker.stdin.write(name + "\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


if __name__ == "__main__":
    main()
