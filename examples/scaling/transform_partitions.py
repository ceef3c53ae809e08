"""Apply a fitted model to the blocks of a dask array, on all workers of a cluster.

The script starts two processes on this machine. `--scheduler` is the address of another cluster, on
whose workers skrbm must be installed. Features and scores are lazy arrays, which are computed block
by block. The script prints the time in this process and on the cluster.

    python examples/scaling/transform_partitions.py [--scheduler tcp://...:8786]
"""

import argparse
import time

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

HERE = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}


def features(rbm, X):
    """Means of the hidden units for all rows, as a lazy array with the same blocks of rows."""
    chunks = X.chunks[0], (len(rbm.components_),)
    return X.map_blocks(rbm.transform, chunks=chunks, dtype=rbm.components_.dtype)


def scores(rbm, X):
    """Log pseudo-likelihoods of all rows in nats, as a lazy array."""
    return X.map_blocks(rbm.score_samples, drop_axis=1, dtype=rbm.components_.dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scheduler", help="address of a dask scheduler")
    options = parser.parse_args()
    digits = load_digits().data > 7
    rbm = BernoulliRBM(200, n_iter=5, random_state=0).fit(digits)
    X = da.random.default_rng(0).random((40_000, 64), chunks=(2000, -1)) < digits.mean(axis=0)
    rows = X.compute()
    begin = time.perf_counter()
    expected = rbm.score_samples(rows)
    here = time.perf_counter() - begin
    with Client(**(HERE if options.scheduler is None else {"address": options.scheduler})):
        X = X.persist()  # load the rows into the memory of the workers
        X[:2].compute()
        begin = time.perf_counter()
        found = scores(rbm, X).compute()
        there = time.perf_counter() - begin
        print(f"mean features: {features(rbm, X).mean(axis=0)[:3].compute().round(3)} ...")
    print(f"scores of {len(rows)} rows: largest difference {np.abs(found - expected).max():.1e}")
    print(f"in this process {here:.2f} s, on the cluster {there:.2f} s: {here / there:.2f} times")


if __name__ == "__main__":
    main()
