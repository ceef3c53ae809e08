"""How much slower is training while another process keeps both cores busy?

A pass of batches of 10 rows, 784 x 500, with two BLAS threads allowed: alone, and beside two processes
that never wait. With ten chains, as many as scikit-learn's class has, products are too small to be
shared among threads; with a hundred, the default, they are not. Medians over rounds in turn. Run
from the repository:

    python -m benchmarks.speed.busy
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.neural_network import BernoulliRBM as Peer

from benchmarks import machine as where
from benchmarks.timing import take_turns
from skrbm import BernoulliRBM

N_ROUNDS, N_ROWS = 7, 3000


def spin() -> None:
    while True:
        pass


@contextmanager
def two_busy_processes() -> Iterator[None]:
    processes = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    X = (np.random.default_rng(0).random((N_ROWS, 784)) < 0.2).astype(np.float32)
    options = {"batch_size": 10, "n_iter": 1, "random_state": 0}
    jobs = {
        "10 chains": lambda: BernoulliRBM(500, n_particles=10, **options).fit(X),
        "100 chains": lambda: BernoulliRBM(500, **options).fit(X),
        "scikit-learn": lambda: Peer(500, **options).fit(X),
    }
    alone = take_turns(jobs, N_ROUNDS)
    with two_busy_processes():
        beside = take_turns(jobs, N_ROUNDS)
    results = {}
    for name in jobs:
        seconds = float(np.median(alone[name])), float(np.median(beside[name]))
        results[name] = dict(
            zip(
                ("alone, s", "beside, s", "ratio"), (*seconds, seconds[1] / seconds[0]), strict=True
            )
        )
        print(f"{name:14} " + ", ".join(f"{k} {v:.2f}" for k, v in results[name].items()))
    path = where.write("busy", question, results, rows=N_ROWS, rounds=N_ROUNDS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
