"""Does centered training reach the published log-likelihoods, and does plain training fall short?

Bars and stripes, 3x3: 16 rows, 4 hidden units, learning rate 0.1. Shifting bar: 9 pixels, one bar
of one pixel, flipped, 4 hidden units, learning rate 0.2. Every update sees all rows; weights start
with a standard deviation of 0.01. The exact log-likelihood, summed over the rows, is taken
every 50 updates; a trial counts with its best value.

Targets: Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal of
Machine Learning Research 17(99), 1-61, tables of the two data sets. Run from the repository:

    python -m benchmarks.quality.centering [--trials 25] [--updates 50000]
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks import machine as where
from skrbm.core.centering import recenter
from skrbm.core.chains.ladder import Ladder
from skrbm.core.likelihood.exact import log_partition
from skrbm.core.machine import Machine
from skrbm.core.training.negative_phase import ALGORITHMS, NegativePhase, ParallelTempering
from skrbm.core.training.start.initialization import initial_particles
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units import Bernoulli

N_HIDDEN = 4
WEIGHT_SCALE = 0.01  # as in the published experiments
EVALUATE_EVERY = 50  # updates
N_TEMPERATURES = 10  # of parallel tempering


@dataclass(frozen=True)
class Case:
    data: str
    algorithm: str
    centering: bool
    learning_rate: float
    zero_bias: bool
    target: float  # nats, summed over the rows


CASES = [
    Case("bars and stripes", "cd", True, 0.1, False, -60.6),
    Case("bars and stripes", "pcd", True, 0.1, False, -55.2),
    Case("bars and stripes", "cd", False, 0.1, False, -64.5),
    Case("bars and stripes", "pcd", False, 0.1, False, -57.5),
    Case("shifting bar, flipped", "cd", True, 0.2, False, -20.2),
    Case("shifting bar, flipped", "cd", False, 0.2, True, -27.9),
]


def bars_and_stripes() -> np.ndarray:
    """Every pattern of three rows and of three columns: all on and all off come twice."""
    patterns = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    columns = np.tile(patterns, 3)
    rows = np.repeat(patterns, 3, axis=1)
    return np.concatenate([columns, rows])


def flipped_shifting_bar() -> np.ndarray:
    """One pixel of nine off, in every place."""
    return 1 - np.eye(9)


DATA = {"bars and stripes": bars_and_stripes(), "shifting bar, flipped": flipped_shifting_bar()}


def negative_phase(case: Case, base: Bernoulli) -> NegativePhase:
    """Algorithm of a case, with a base of its own for tempered chains to begin at."""
    if case.algorithm == "pt":
        base = base.astype(np.float64, copy=True)  # training moves the layer itself
        return ParallelTempering(base=base, ladder=Ladder.of(N_TEMPERATURES))
    return ALGORITHMS[case.algorithm]()


def trial(case: Case, seed: int, n_updates: int) -> tuple[float, float]:
    """Best and last exact log-likelihood of one training run."""
    v = DATA[case.data]
    rng = np.random.default_rng(seed)
    if case.zero_bias:
        visible = Bernoulli(np.zeros(v.shape[1]))
    else:
        visible = Bernoulli.start(v.mean(axis=0), v.var(axis=0), len(v))
    weights = WEIGHT_SCALE * rng.standard_normal((v.shape[1], N_HIDDEN))
    machine = Machine(visible, Bernoulli(np.zeros(N_HIDDEN)), weights)
    phase = negative_phase(case, visible)
    state = TrainingState(
        initial_particles(machine, visible, phase.n_temperatures * len(v), rng),
        v.mean(axis=0),
        machine.mean_hidden(v).mean(axis=0),
    )
    trainer = Trainer(
        phase,
        case.learning_rate,
        batch_size=len(v),
        shuffle=False,
        centering=case.centering,
    )
    best = last = -np.inf
    moved = recenter(machine, *state.offsets(machine.dtype)) if case.centering else machine
    for update in range(1, n_updates + 1):
        trainer.update(moved, state, v, rng)
        if update % EVALUATE_EVERY == 0:
            phase.finish_epoch()
            plain = recenter(moved, None, None)
            last = -plain.free_energy(v).sum() - len(v) * log_partition(plain)
            best = max(best, last)
    return best, last


def parse(description: str) -> argparse.Namespace:
    """Size of a run from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    options = parse(__doc__.splitlines()[0])
    question = where.begin(__doc__)
    results = run(CASES, options)
    published_size = options.trials >= 25 and options.updates >= 50_000
    path = where.write(
        "centering" if published_size else "centering_quick",
        question,
        results,
        trials=options.trials,
        updates=options.updates,
        evaluate_every=EVALUATE_EVERY,
    )
    print(f"\n{path.relative_to(where.ROOT)}")


def run(cases: list[Case], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Results of all trials of some cases, printed as they come."""
    print(f"{options.trials} trials of {options.updates} updates; nats, summed over the rows\n")
    print(
        f"{'data':22} {'algorithm':12} {'best':>8} {'std':>6} {'last':>8} {'target':>8} {'diff':>6}"
    )
    results = []
    for case in cases:
        begin = time.perf_counter()
        values = Parallel(n_jobs=options.jobs)(
            delayed(trial)(case, seed, options.updates) for seed in range(options.trials)
        )
        seconds = time.perf_counter() - begin
        best, last = np.array(values).T
        result = {
            **asdict(case),
            "best_mean": best.mean(),
            "best_std": best.std(),
            "last_mean": last.mean(),
            "difference": best.mean() - case.target,
            "seconds": seconds,
        }
        results.append(result)
        name = f"{'centered' if case.centering else 'plain'} {case.algorithm}-1"
        print(
            f"{case.data:22} {name:12} {best.mean():8.2f} {best.std():6.2f} {last.mean():8.2f} "
            f"{case.target:8.2f} {result['difference']:6.2f}   ({seconds:.0f} s)",
            flush=True,
        )
    return results


if __name__ == "__main__":
    main()
