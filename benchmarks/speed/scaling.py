"""How does the time of a row grow with the size of the model and the number of rows?

Training by the defaults in batches of 100, per row and pass, from 64 x 64 to 10,000 x 2,000, dense and,
from 1000 features on, sparse with 1 % ones, float32; and of a 784 x 500 model on 1000 to 100,000 rows. Beside
it the three matrix products of an update, and a straight line through the largest. Draws the
picture benchmarks/results/scaling.png. Run from the repository:

    python -m benchmarks.speed.scaling
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp

from benchmarks import machine as where
from benchmarks.speed.training import bare_products, rows, seconds_a_pass
from skrbm import BernoulliRBM

SIZES = ((64, 64), (128, 128), (256, 256), (784, 500), (2000, 1000), (5000, 1000), (10_000, 2000))
ROWS = (1000, 3000, 10_000, 30_000, 100_000)
N_ROUNDS = 7


def microseconds_a_row(fit: Callable[[int], object], n_rows: int) -> float:
    return 1e6 * float(np.median([seconds_a_pass(fit) for _ in range(N_ROUNDS)])) / n_rows


def fitting(X: Any, n_hidden: int) -> Callable[[int], object]:
    return lambda n_iter: BernoulliRBM(n_hidden, n_iter=n_iter, batch_size=100, random_state=0).fit(
        X
    )


def measure(n_visible: int, n_hidden: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    n_rows = int(np.clip(4e9 / (n_visible * n_hidden), 1500, 5000)) // 100 * 100
    X = rows(n_rows, n_visible, np.float32)
    result = {
        "dense, us": microseconds_a_row(fitting(X, n_hidden), n_rows),
        "products, us": microseconds_a_row(bare_products(X, n_hidden, 100), n_rows),
    }
    if n_visible >= 1000:
        X = sp.random_array((n_rows, n_visible), density=0.01, format="csr", rng=rng)
        X.data[:] = 1
        result["sparse, us"] = microseconds_a_row(fitting(X.astype(np.float32), n_hidden), n_rows)
    return result


def draw(sizes: dict[str, dict[str, float]], lengths: dict[str, float]) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    products = np.array([int(a) * int(b) for a, b in (name.split(" x ") for name in sizes)])
    for label in ("dense, us", "sparse, us", "products, us"):
        y = np.array([result.get(label, np.nan) for result in sizes.values()])
        left.loglog(products, y, "o-", label=label.removesuffix(", us"))
    largest = list(sizes.values())[-1]["dense, us"]
    left.loglog(products, largest * products / products[-1], "k:", label="proportional")
    left.set(xlabel="features x components", ylabel="microseconds a row and pass")
    left.legend()
    right.semilogx([int(n) for n in lengths], list(lengths.values()), "o-")
    top = 1.1 * max(lengths.values())
    right.set(xlabel="rows (784 x 500)", ylabel="microseconds a row and pass", ylim=(0, top))
    where.RESULTS.mkdir(exist_ok=True)
    figure.savefig(where.RESULTS / "scaling.png", dpi=120)


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    sizes, lengths = {}, {}
    for n_visible, n_hidden in SIZES:
        name = f"{n_visible} x {n_hidden}"
        sizes[name] = measure(n_visible, n_hidden)
        print(name, {label: round(value, 1) for label, value in sizes[name].items()}, flush=True)
    for n_rows in ROWS:
        fit = fitting(rows(n_rows, 784, np.float32), 500)
        lengths[str(n_rows)] = microseconds_a_row(fit, n_rows)
        print(f"{n_rows} rows: {lengths[str(n_rows)]:.1f} us a row", flush=True)
    path = where.write("scaling", question, {"sizes": sizes, "rows": lengths}, rounds=N_ROUNDS)
    draw(sizes, lengths)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
