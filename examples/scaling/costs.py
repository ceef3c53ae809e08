"""Measure the overhead of scaling out, for the table of docs/guide/scaling.md.

The costs are CPU times, which depend little on other programs on the machine. They are summed over
this process and the processes of the cluster. The start and the imports of the cluster are measured
separately and subtracted.

    python examples/scaling/costs.py
"""

import pickle
import resource
import tempfile
import time
from pathlib import Path

import dask.array as da
import joblib
import numpy as np
from distributed import Client
from joblib import parallel_config
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from skrbm import BernoulliRBM, Checkpoint

HERE = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}
X = load_digits().data > 7


def processor_time():
    """CPU time in seconds of this process and of its child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cost(work):
    """CPU time of a function in seconds."""
    begin = processor_time()
    work()
    return processor_time() - begin


def on_cluster(work):
    """CPU time in seconds of a function that runs on a cluster of two processes.

    The start, the imports and the end of the cluster are included.
    """

    def whole():
        with Client(**HERE) as client, parallel_config(backend="dask"):
            client.wait_for_workers(2)
            client.run(__import__, "skrbm")
            work()

    return cost(whole)


def main():
    start = min(on_cluster(lambda: None) for _ in range(2))
    print(f"start of a cluster of two processes: {start:.1f} s")
    grid = {"learning_rate": [0.1, 0.2, 0.4, 0.8]}
    search = GridSearchCV(BernoulliRBM(128, n_iter=60, random_state=0), grid, cv=2, refit=False)
    with parallel_config(backend="sequential"):
        alone = cost(lambda: search.fit(X))
    print(f"search of 8 fits: {(on_cluster(lambda: search.fit(X)) - start) / alone:.2f}")

    rbm = BernoulliRBM(200, n_iter=5, random_state=0).fit(X)
    rows = np.tile(X, (30, 1))
    blocks = da.from_array(rows, chunks=(4000, -1))
    alone = cost(lambda: rbm.score_samples(rows))
    scores = blocks.map_blocks(rbm.score_samples, drop_axis=1, dtype=float)
    print(f"scores of {len(rows)} rows: {(on_cluster(scores.compute) - start) / alone:.2f}")

    stream = BernoulliRBM(200, random_state=0).partial_fit(X)
    size = len(pickle.dumps(stream)) / stream.components_.nbytes
    print(f"size of a pickle in multiples of components_: {size:.1f}")
    passes = [rows[i : i + 4000] for i in range(0, len(rows), 4000)]
    alone = cost(lambda: [stream.partial_fit(chunk) for chunk in passes])
    lazy = cost(lambda: [stream.partial_fit(block.compute()) for block in blocks.blocks])
    print(f"stream of blocks: {lazy / alone:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        saved = cost(lambda: [joblib.dump(stream, Path(folder) / "rbm") for _ in passes])
        print(f"a checkpoint after every block: {1 + saved / alone:.2f}")
        plain = BernoulliRBM(200, n_iter=10, random_state=0)
        watched = BernoulliRBM(200, n_iter=10, random_state=0)
        watched.set_callbacks(Checkpoint(Path(folder) / "fit"))
        fits = [lambda: plain.fit(rows[:9000]), lambda: watched.fit(rows[:9000])]
        times = [[cost(fit) for fit in fits] for _ in range(3)]
        print(f"Checkpoint after every epoch: {np.median([b / a for a, b in times]):.2f}")


if __name__ == "__main__":
    main()
