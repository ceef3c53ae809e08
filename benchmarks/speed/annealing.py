"""How much more than its matrix products does annealed importance sampling cost?

log_partition("ais") with 100 chains of a 784 x 500 model, n_jobs=2, for arrays of either precision; a
model of this size is annealed in single precision whatever that of its arrays. Beside it the bare
products of the same chains in the precision of the arrays, two for every temperature: as one block
with two BLAS threads, and as two blocks in two threads; the faster counts. Medians of seven runs of
1000 temperatures in turn, then one run of 10,000. Run from the repository:

    python -m benchmarks.speed.annealing
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from benchmarks.timing import seconds
from skrbm import BernoulliRBM
from skrbm.core.likelihood.annealing import N_BLOCK_CHAINS
from skrbm.core.parallel import map_blocks

N_VISIBLE, N_HIDDEN, N_CHAINS = 784, 500, 100
N_REPEATS, N_SHORT, N_LONG = 7, 1_000, 10_000


def products(v: np.ndarray, h: np.ndarray, weights: np.ndarray, n: int) -> None:
    """Do what a chain cannot do without."""
    transposed = np.ascontiguousarray(weights.T)
    for _ in range(n):
        np.matmul(v, weights)
        np.matmul(h, transposed)


def compare(dtype: type) -> dict[str, float]:
    """Seconds of both, and their ratio."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (N_VISIBLE, N_HIDDEN)).astype(dtype)
    rbm = BernoulliRBM(N_HIDDEN, n_jobs=2)
    rbm.components_ = weights.T
    rbm.intercept_visible_ = rng.normal(0, 1, N_VISIBLE).astype(dtype)
    rbm.intercept_hidden_ = rng.normal(0, 1, N_HIDDEN).astype(dtype)
    v = (rng.random((N_CHAINS, N_VISIBLE)) < 0.5).astype(dtype)
    h = (rng.random((N_CHAINS, N_HIDDEN)) < 0.5).astype(dtype)
    blocks = [
        (v[i : i + N_BLOCK_CHAINS], h[i : i + N_BLOCK_CHAINS], weights, N_SHORT)
        for i in range(0, N_CHAINS, N_BLOCK_CHAINS)
    ]

    def anneal(n: int) -> object:
        return rbm.log_partition("ais", n_temperatures=n, X=v, random_state=0)

    runs: dict[str, list[float]] = {"annealing": [], "one block": [], "two blocks": []}
    for _ in range(N_REPEATS):
        with threadpool_limits(2):
            runs["one block"].append(seconds(lambda: products(v, h, weights, N_SHORT)))
        runs["two blocks"].append(seconds(lambda: map_blocks(products, blocks, 2)))
        runs["annealing"].append(seconds(lambda: anneal(N_SHORT)))
    result = {f"{name}, us a temperature": 1e6 * np.median(t) / N_SHORT for name, t in runs.items()}
    bare = np.minimum(runs["one block"], runs["two blocks"])
    result["ratio"] = float(np.median(np.array(runs["annealing"]) / bare))
    result["seconds of 10,000 temperatures"] = seconds(lambda: anneal(N_LONG))
    return result


def main() -> None:
    question = where.begin(__doc__)
    results = {}
    for dtype in (np.float32, np.float64):
        results[dtype.__name__] = result = compare(dtype)
        print(f"\n{dtype.__name__}")
        for name, value in result.items():
            print(f"  {name:32} {value:8.2f}", flush=True)
    path = where.write("annealing", question, results, chains=N_CHAINS, repeats=N_REPEATS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
