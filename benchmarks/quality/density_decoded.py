"""Are unseen rows of the set dna likelier as a table of sites than as bits?

Each site of a gene is three bits in the public set: at most one of them is 1, and which of the four cases
it is names the base. `TabularRBM` learns the sites as categories. A row has the same probability as
its bits, so that the values are comparable with those of `benchmarks.quality.density`. Penalty and width
are chosen on the validation rows; likelihoods are the lowest of annealing forwards, in reverse, and
Bennett's ratio. Run from the repository:

    python -m benchmarks.quality.density_decoded [--folder datasets] [--seeds 5]
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import machine as where
from benchmarks.binary_rows import binary_rows
from skrbm import AnnealingWarning, TabularRBM

N_BITS = 3  # of a site
PENALTIES, WIDTHS, N_ITER = (3e-3, 1e-2), (64, 150), 30
METHODS = "ais", "reverse_ais", "bar"
N_SEARCH_TEMPERATURES, N_TEMPERATURES = 500, 2000


def sites(X: np.ndarray) -> pd.DataFrame:
    """Rows as categories of four bases, one column for each site.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        Bits; of those of a site at most one is 1.
    """
    groups = X.reshape(len(X), -1, N_BITS)
    assert (groups.sum(axis=2) <= 1).all()
    codes = (groups @ np.arange(1, N_BITS + 1)).astype(int)
    return (
        pd.DataFrame(codes)
        .rename(columns="site {}".format)
        .astype(pd.CategoricalDtype(range(N_BITS + 1)))
    )


def measure(
    rbm: TabularRBM, rows: pd.DataFrame, methods: tuple[str, ...], n_temperatures: int
) -> dict[str, float]:
    """Mean log-likelihood of rows by each method and the lowest of them, with standard errors."""
    found: dict[str, float] = {}
    for method in methods:
        log_z = rbm.log_partition(method, n_temperatures=n_temperatures, random_state=0)
        likelihoods = rbm.log_likelihood(rows, log_z)
        found[method], found[f"{method}_error"] = float(likelihoods.mean()), float(log_z.std_error)
    error = float(likelihoods.std(ddof=1) / np.sqrt(len(rows)))
    return {"mean": min(found[method] for method in methods), "error_over_rows": error} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    warnings.simplefilter("ignore", AnnealingWarning)  # the errors are stated
    rows = {part: sites(X) for part, X in binary_rows("dna", arguments.folder).items()}
    tried: dict[tuple[float, int], float] = {}
    for l2, width in product(PENALTIES, WIDTHS):
        rbm = TabularRBM(width, n_iter=N_ITER, l2=l2, random_state=0).fit(rows["train"])
        size = METHODS[:2], N_SEARCH_TEMPERATURES
        tried[l2, width] = measure(rbm, rows["valid"], *size)["mean"]
        print(f"l2 {l2}, {width} hidden units: {tried[l2, width]:.3f}", flush=True)
    l2, width = max(tried, key=lambda own: tried[own])
    fits: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        begin = time.process_time()
        rbm = TabularRBM(width, n_iter=N_ITER, l2=l2, random_state=seed).fit(rows["train"])
        seconds = time.process_time() - begin
        values = measure(rbm, rows["test"], METHODS, N_TEMPERATURES)
        fits.append({"seed": seed, "seconds": seconds} | values)
        print(fits[-1], flush=True)
    results = {
        "mean": float(np.mean([fit["mean"] for fit in fits])),
        "l2": l2,
        "n_components": width,
        "fits": fits,
        "tried": [{"l2": p, "n_components": n, "valid": v} for (p, n), v in tried.items()],
    }
    path = where.write("density_decoded", question, results, n_iter=N_ITER)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
