"""Are Bernoulli draws as frequent as they should be?

A thousand million draws at each of five probabilities, in single and in double precision. The
deviation from the expected number of ones is given in its standard errors. Run from the repository:

    python -m benchmarks.speed.draws
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks import machine as where
from skrbm.core.draws import draw_bernoulli

N_DRAWS, N_BLOCK = 10**9, 10**6
PROBABILITIES = (1e-6, 1e-3, 0.1, 0.5, 0.9)


def deviation(probability: float, dtype: type, rng: np.random.Generator) -> tuple[float, float]:
    """Deviation in standard errors, and nanoseconds a draw."""
    p = np.full(N_BLOCK, probability, dtype=dtype)
    begin, ones = time.perf_counter(), 0
    for _ in range(N_DRAWS // N_BLOCK):
        ones += int(np.count_nonzero(draw_bernoulli(p, rng)))
    taken = time.perf_counter() - begin
    exact = float(p[0])  # as the precision has it
    error = np.sqrt(N_DRAWS * exact * (1 - exact))
    return float((ones - N_DRAWS * exact) / error), 1e9 * taken / N_DRAWS


def main() -> None:
    question = where.begin(__doc__)
    rng = np.random.default_rng(0)
    results = {}
    for dtype in (np.float32, np.float64):
        for probability in PROBABILITIES:
            errors, nanoseconds = deviation(probability, dtype, rng)
            name = f"{dtype.__name__}, p = {probability:g}"
            results[name] = {"deviation, standard errors": errors, "ns a draw": nanoseconds}
            print(f"{name:20} {errors:6.2f} standard errors, {nanoseconds:.2f} ns", flush=True)
    path = where.write("draws", question, results, draws=N_DRAWS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
