"""Search parameters on ray: the same search, side by side.

Starts two worker processes on this machine; `--address` takes that of another cluster, whose workers
must have skrbm. Prints the best parameters, and the time of the search in this process and on ray.

    python examples/scaling/search_on_ray.py [--address ray://...:10001]
"""

import argparse
import os
import time
from contextlib import contextmanager, nullcontext

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from skrbm import BernoulliRBM

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else a token is written to the home directory
import ray
from ray.util.joblib import register_ray

# An address of this machine alone; ray takes 127.0.0.1 for the one that others see.
HERE = {"num_cpus": 2, "include_dashboard": False, "_node_ip_address": "127.0.0.2"}


@contextmanager
def cluster(address=None):
    """Ray as a backend of joblib."""
    options = HERE if address is None else {"address": address}
    ray.init(**options, log_to_driver=False, logging_level="error")
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


def timed_search(search, X, backend=None):
    """The search after its fit, and seconds."""
    begin = time.perf_counter()
    # Without n_jobs ray's backend works in this process.
    with nullcontext() if backend is None else parallel_config(backend=backend, n_jobs=-1):
        search.fit(X)
    return search, time.perf_counter() - begin


def run(search, X):
    """The search made in this process and on ray, each with its seconds."""
    return timed_search(clone(search), X), timed_search(clone(search), X, "ray")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", help="of a ray cluster")
    options = parser.parse_args()
    grid = {"n_components": [32, 64], "learning_rate": [0.2, 0.4, 0.8]}
    search = GridSearchCV(BernoulliRBM(n_iter=20, random_state=0), grid, cv=2, refit=False)
    begin = time.perf_counter()
    with cluster(options.address):
        (alone, here), (found, there) = run(search, load_digits().data > 7)
    rest = time.perf_counter() - begin - here - there
    scores = [result.cv_results_["mean_test_score"] for result in (alone, found)]
    print(f"best: {found.best_params_}, {found.best_score_:.2f} nats")
    print(f"the same scores: {np.array_equal(*scores)}")
    print(f"in this process {here:.1f} s, on ray {there:.1f} s: {here / there:.2f} times")
    print(f"start and end of ray: {rest:.1f} s")


if __name__ == "__main__":
    main()
