"""Search parameters in one process and on a dask cluster, and compare the results.

The script starts a cluster of two processes on this machine. `--scheduler` is the address of
another cluster, on whose workers skrbm must be installed. The script prints the best parameters,
and the time of the search in this process and on the cluster.

    python examples/scaling/search_on_dask.py [--scheduler tcp://...:8786]
"""

import argparse
import time
from contextlib import nullcontext

import numpy as np
from distributed import Client
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from skrbm import BernoulliRBM

HERE = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}


def timed_search(search, X, backend=None):
    """Fit a search, and return it and the elapsed time in seconds."""
    begin = time.perf_counter()
    with nullcontext() if backend is None else parallel_config(backend=backend):
        search.fit(X)
    return search, time.perf_counter() - begin


def run(search, X, scheduler=None):
    """Fit a search in this process and on a cluster; return both with their times in seconds."""
    alone = timed_search(clone(search), X)
    options = HERE if scheduler is None else {"address": scheduler}
    with Client(**options):
        return alone, timed_search(clone(search), X, "dask")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scheduler", help="address of a dask scheduler")
    options = parser.parse_args()
    grid = {"n_components": [32, 64], "learning_rate": [0.2, 0.4, 0.8]}
    search = GridSearchCV(BernoulliRBM(n_iter=20, random_state=0), grid, cv=2, refit=False)
    (alone, here), (found, there) = run(search, load_digits().data > 7, options.scheduler)
    scores = [result.cv_results_["mean_test_score"] for result in (alone, found)]
    print(f"best: {found.best_params_}, {found.best_score_:.2f} nats")
    print(f"the same scores: {np.array_equal(*scores)}")
    print(f"in this process {here:.1f} s, on the cluster {there:.1f} s: {here / there:.2f} times")


if __name__ == "__main__":
    main()
