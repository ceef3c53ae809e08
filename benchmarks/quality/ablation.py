"""Which of the defaults earns its place, at equal time?

Binarised MNIST, 784 x 500, float32: the defaults and each departure from them, as many passes as one
thread makes in thirty seconds. Test log-likelihood by annealing forwards, 2000 inverse temperatures.
Run from the repository:

    python -m benchmarks.quality.ablation
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from skrbm import BernoulliRBM, DivergenceError

SECONDS = 30
N_TEMPERATURES = 2000
SEEDS = (0,)
DEPARTURES: tuple[dict[str, Any], ...] = (
    {},
    {"centering": False},
    {"centering": False, "learning_rate": 0.05},
    {"average": False},
    {"learning_rate_schedule": "constant"},
    {"learning_rate_schedule": "constant", "average": False},
    {"momentum": 0.9, "learning_rate": 0.04},
    {"optimizer": "adam", "momentum": 0.5, "learning_rate": 0.01},
    {"learning_rate": 0.2},
    {"learning_rate": 0.8},
    {"batch_size": 50},
    {"batch_size": 200},
    {"n_particles": 50},
    {"n_particles": 200},
    {"n_particles": 500},
    {"n_gibbs_steps": 2},
    {"n_gibbs_steps": 5},
    {"algorithm": "cd"},
)


def run(departure: dict[str, Any], seed: int) -> dict[str, Any]:
    """Likelihood that a setting reaches in the given time."""
    train, test = binarized_mnist()
    rbm = BernoulliRBM(500, random_state=seed, **departure)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        rbm.set_params(n_iter=1).fit(train)
        n_iter = max(1, round(SECONDS / (time.perf_counter() - begin)))
        begin = time.perf_counter()
        row = {"departure": departure, "seed": seed, "n_iter": n_iter}
        try:
            rbm.set_params(n_iter=n_iter).fit(train)
        except DivergenceError as error:
            return row | {"error": str(error)}
        row["seconds"] = time.perf_counter() - begin
        log_z = rbm.log_partition(n_temperatures=N_TEMPERATURES, X=train, random_state=0)
        row["test"] = float(rbm.log_likelihood(test, log_z).mean())
        row["std_error"] = log_z.std_error
    print(departure, seed, n_iter, f"{row['seconds']:.1f} s", f"{row['test']:.2f}", flush=True)
    return row


def main() -> None:
    question = where.begin(__doc__)
    tasks = [(departure, seed) for seed in SEEDS for departure in DEPARTURES]
    rows = Parallel(n_jobs=-1)(delayed(run)(*task) for task in tasks)
    rows.sort(key=lambda row: DEPARTURES.index(row["departure"]))
    for departure in DEPARTURES:
        likelihoods = [
            row.get("test", float("-inf")) for row in rows if row["departure"] == departure
        ]
        print(f"{departure or 'the defaults'!s:70}", *(f"{ll:8.2f}" for ll in likelihoods))
    path = where.write("ablation", question, rows, seconds=SECONDS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
