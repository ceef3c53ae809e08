"""Do joint states of the hidden units make the gradient of many labels faster?

Probabilities of the labels of a mini-batch, and the sums of its gradient over rows and labels, 256
binary hidden units, in double precision: every pair of a row and a label, and the joint states of
groups of hidden units, in turns. Medians of 21 rounds. Run from the repository:

    python -m benchmarks.speed.labels
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from benchmarks import machine as where
from benchmarks.timing import ratio, take_turns
from skrbm.core.units import Bernoulli, EveryPair, ShiftedUnits

N_ROWS, N_HIDDEN, N_ROUNDS = 50, 256, 21
LABELS = 10, 26, 200, 1000


def compare(n_labels: int) -> dict[str, float]:
    """Seconds of both, and their ratio."""
    rng = np.random.default_rng(0)
    field, shifts = (rng.normal(0, 1, (n, N_HIDDEN)) for n in (N_ROWS, n_labels))
    layer = Bernoulli(np.zeros(N_HIDDEN))

    def gradient(hidden: ShiftedUnits) -> None:
        probabilities = softmax(hidden.log_partitions(shifts), axis=0)
        hidden.sums(shifts, probabilities, layer)

    jobs = {
        "every pair": lambda: gradient(EveryPair(layer, field)),
        "joint states": lambda: gradient(layer.shifted(field)),
    }
    take_turns(jobs, 2)
    times = take_turns(jobs, N_ROUNDS)
    result = {f"{name}, ms": 1e3 * float(np.median(times[name])) for name in jobs}
    return result | {"ratio": ratio(times, "every pair", "joint states")}


def main() -> None:
    question = where.begin(__doc__)
    results = {}
    for n_labels in LABELS:
        results[f"{n_labels} labels"] = result = compare(n_labels)
        print(n_labels, "labels", {name: round(value, 2) for name, value in result.items()})
    path = where.write("labels", question, results, rows=N_ROWS, hidden=N_HIDDEN)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
