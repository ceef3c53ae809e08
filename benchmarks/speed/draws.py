"""Are draws as frequent as they should be, and what do those of categories cost beside products?

A thousand million Bernoulli draws at each of five probabilities, and as many of categories of six
values, in single and in double precision. The deviation from the expected number is given in its
standard errors, of categories the largest. Then a Gibbs step of 3,000 rows of 31 categories of 21
values, as of a protein family, and 100 hidden units, in turns with its two products by one thread,
the median of 21 rounds. Run from the repository:

    python -m benchmarks.speed.draws
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import machine as where
from benchmarks.timing import ratio, take_turns
from skrbm.core.chains.gibbs import gibbs
from skrbm.core.draws import draw_bernoulli
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, Categorical

N_DRAWS, N_BLOCK = 10**9, 10**6
PROBABILITIES = (1e-6, 1e-3, 0.1, 0.5, 0.9)
SHARES = (0.2, 0.298999, 0.5, 1e-3, 0.0, 1e-6)  # of six values, the rarest behind all others
N_UNITS = 50
N_ROWS, N_COLUMNS, N_VALUES, N_HIDDEN, N_ROUNDS = 3000, 31, 21, 100, 21


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


def category_deviation(dtype: type, rng: np.random.Generator) -> tuple[float, float]:
    """Largest deviation of a value in standard errors, and nanoseconds a draw."""
    with np.errstate(divide="ignore"):
        log_shares = np.maximum(np.log(SHARES), -1e4).astype(dtype)
    units = Categorical(np.tile(log_shares, N_UNITS), (len(SHARES),) * N_UNITS)
    field = units.zero_field(N_BLOCK // N_UNITS)
    begin, counts = time.perf_counter(), np.zeros(len(SHARES))
    for _ in range(N_DRAWS // N_BLOCK):
        counts += units.sample(field, rng).sum(axis=0).reshape(N_UNITS, -1).sum(axis=0)
    taken = time.perf_counter() - begin
    exact = np.exp(log_shares.astype(np.float64))
    exact /= exact.sum()
    is_possible = exact > 0
    if counts[~is_possible].any():
        return np.inf, 1e9 * taken / N_DRAWS
    error = np.sqrt(N_DRAWS * exact * (1 - exact))[is_possible]
    errors = (counts - N_DRAWS * exact)[is_possible] / error
    return float(errors[np.abs(errors).argmax()]), 1e9 * taken / N_DRAWS


def gibbs_step(dtype: type, rng: np.random.Generator) -> dict[str, float]:
    """Milliseconds of a Gibbs step and of its products, and their ratio."""
    n_visible = N_COLUMNS * N_VALUES
    weights = rng.normal(0, 0.3, (n_visible, N_HIDDEN)).astype(dtype)
    bias = rng.normal(0, 1, n_visible).astype(dtype)
    visible = Categorical(bias, (N_VALUES,) * N_COLUMNS)
    machine = Machine(visible, Bernoulli(np.zeros(N_HIDDEN, dtype)), weights)
    v = visible.sample(visible.zero_field(N_ROWS), rng)
    h = machine.sample_hidden(v, rng)
    jobs = {
        "Gibbs step": lambda: gibbs(machine, v, 1, rng),
        "its products": lambda: (v @ weights, h @ weights.T),
    }
    with threadpool_limits(1):
        times = take_turns(jobs, N_ROUNDS)
    result = {f"{name}, ms": 1e3 * float(np.median(times[name])) for name in jobs}
    return result | {"ratio": ratio(times, *jobs)}


def main() -> None:
    question = where.begin(__doc__)
    rng = np.random.default_rng(0)
    results = {}
    for dtype in (np.float32, np.float64):
        results[f"{dtype.__name__}, step"] = step = gibbs_step(dtype, rng)
        for name, value in step.items():
            print(f"{dtype.__name__}, {name:12} {value:6.2f}", flush=True)
        found = {f"p = {p:g}": deviation(p, dtype, rng) for p in PROBABILITIES}
        found["categories"] = category_deviation(dtype, rng)
        for name, (errors, nanoseconds) in found.items():
            name = f"{dtype.__name__}, {name}"
            results[name] = {"deviation, standard errors": errors, "ns a draw": nanoseconds}
            print(f"{name:20} {errors:6.2f} standard errors, {nanoseconds:.2f} ns", flush=True)
    path = where.write("draws", question, results, draws=N_DRAWS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
