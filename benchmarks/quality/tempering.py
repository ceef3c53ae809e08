"""Does parallel tempering go on improving where persistent chains fall back?

Bars and stripes, 3x3, as in centering.py: 16 rows, 4 hidden units, centered, learning rate 0.1, every
update sees all rows. The exact log-likelihood, summed over the rows, at its best and in the end.

Targets: Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal of
Machine Learning Research 17(99), 1-61; the optimum is -41.59. Run from the repository:

    python -m benchmarks.quality.tempering [--trials 25] [--updates 50000]
"""

from __future__ import annotations

from benchmarks import machine as where
from benchmarks.quality.centering import EVALUATE_EVERY, N_TEMPERATURES, Case, parse, run

CASES = [
    Case("bars and stripes", "pt", True, 0.1, False, -51.3),
    Case("bars and stripes", "pcd", True, 0.1, False, -55.2),
]


def main() -> None:
    options = parse(__doc__.splitlines()[0])
    question = where.begin(__doc__)
    results = run(CASES, options)
    published_size = options.trials >= 25 and options.updates >= 50_000
    path = where.write(
        "tempering" if published_size else "tempering_quick",
        question,
        results,
        trials=options.trials,
        updates=options.updates,
        evaluate_every=EVALUATE_EVERY,
        n_temperatures=N_TEMPERATURES,
    )
    print(f"\n{path.relative_to(where.ROOT)}")


if __name__ == "__main__":
    main()
