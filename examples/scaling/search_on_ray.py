"""Search parameters in one process and on ray, and compare the results.

The script starts two worker processes on this machine. `--address` is the address of another
cluster, on whose workers skrbm must be installed. The script prints the best parameters, and the
time of the search in this process and on ray.

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

# Otherwise, ray writes a token to the home directory.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
import ray
from ray.util.joblib import register_ray

# Loopback address; ray replaces 127.0.0.1 by the address that is visible to other machines.
HERE = {"num_cpus": 2, "include_dashboard": False, "_node_ip_address": "127.0.0.2"}


@contextmanager
def cluster(address=None):
    """Context manager in which ray is a backend of joblib."""
    options = HERE if address is None else {"address": address}
    ray.init(**options, log_to_driver=False, logging_level="error")
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


def timed_search(search, X, backend=None):
    """Fit a search, and return it and the elapsed time in seconds."""
    begin = time.perf_counter()
    # Without n_jobs, joblib's ray backend runs in this process.
    with nullcontext() if backend is None else parallel_config(backend=backend, n_jobs=-1):
        search.fit(X)
    return search, time.perf_counter() - begin


def run(search, X):
    """Fit a search in this process and on ray; return both with their times in seconds."""
    return timed_search(clone(search), X), timed_search(clone(search), X, "ray")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", help="address of a ray cluster")
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
