"""How much more than its matrix products does annealed importance sampling cost?

log_partition("ais") with 100 chains of models of 784 x 500 and 64 x 64, n_jobs=2, for arrays of either
precision; a large model is annealed in single precision whatever that of its arrays. Beside it the bare
products of the same chains in the precision of the arrays, two for every temperature: as one block with
two BLAS threads, and as two blocks in two threads; the faster counts. Medians of seven runs of 1000
temperatures in turn, then one run of 10,000. Run from the repository:

    python -m benchmarks.speed.annealing
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from benchmarks.timing import seconds
from skrbm import BernoulliRBM
from skrbm.core.parallel import map_blocks

SIZES = ((784, 500), (64, 64))
N_CHAINS = 100
N_REPEATS, N_SHORT, N_LONG = 7, 1_000, 10_000


def products(v: np.ndarray, h: np.ndarray, weights: np.ndarray, n: int) -> None:
    """Do what a chain cannot do without."""
    transposed = np.ascontiguousarray(weights.T)
    for _ in range(n):
        np.matmul(v, weights)
        np.matmul(h, transposed)


def compare(n_visible: int, n_hidden: int, dtype: type) -> dict[str, float]:
    """Seconds of both, and their ratio."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (n_visible, n_hidden)).astype(dtype)
    rbm = BernoulliRBM(n_hidden, n_jobs=2)
    rbm.components_ = weights.T
    rbm.intercept_visible_ = rng.normal(0, 1, n_visible).astype(dtype)
    rbm.intercept_hidden_ = rng.normal(0, 1, n_hidden).astype(dtype)
    v = (rng.random((N_CHAINS, n_visible)) < 0.5).astype(dtype)
    h = (rng.random((N_CHAINS, n_hidden)) < 0.5).astype(dtype)
    half = N_CHAINS // 2
    blocks = [(v[:half], h[:half], weights, N_SHORT), (v[half:], h[half:], weights, N_SHORT)]

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
    for n_visible, n_hidden in SIZES:
        for dtype in (np.float32, np.float64):
            case = f"{n_visible} x {n_hidden}, {dtype.__name__}"
            results[case] = result = compare(n_visible, n_hidden, dtype)
            print(f"\n{case}")
            for name, value in result.items():
                print(f"  {name:32} {value:8.2f}", flush=True)
    path = where.write("annealing", question, results, chains=N_CHAINS, repeats=N_REPEATS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
