"""Does early stopping on few rows end near the best that the run had to offer?

500 images of MNIST in black and white: the same run with and without a stop, judged by log-likelihood,
nats. The stop goes by the pseudo-likelihood of the rows held out or, tracked, by their likelihood.

- 500 hidden units, 200 planned passes at a low rate: judged after every twentieth pass on the rows held
  out and on 10,000 others, by the mean of annealing from both sides, weighted by their errors
- small: 16 hidden units by defaults, 100 planned passes, four seeds, tracked: judged after every pass on
  the rows held out, exactly

Run from the repository:

    python -m benchmarks.quality.early_stopping [--tracked | --small]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import bracket
from skrbm import BernoulliRBM
from skrbm.estimators.fitting.problem import split_rows
from skrbm.estimators.fitting.recording import RowRecorder
from skrbm.estimators.input.validation import write_attributes

N_ITER = 200
EVERY = 20
N_TEMPERATURES = 5000  # by a thousand, forwards and in reverse differ by four nats
SETTINGS = {"learning_rate": 0.1, "batch_size": 50, "early_stopping": True, "random_state": 0}
SMALL = {"n_components": 16, "n_iter": 100, "early_stopping": True, "track_likelihood": True}
N_SEEDS = 4


def followed(rbm: BernoulliRBM, rows: np.ndarray, judge: Callable, every: int = 1) -> list[dict]:
    """What a judge says of the models of a run that does not stop, one in `every`."""
    path: list[dict[str, Any]] = []
    record = RowRecorder.record

    def recording(recorder: RowRecorder, machine: Any, *args: Any) -> tuple[float, float]:
        n_iter = recorder.history.n_iter
        if n_iter % every == 0:
            snapshot = BernoulliRBM(rbm.n_components, random_state=0)
            write_attributes(snapshot, snapshot._model.arrays(machine))
            path.append({"n_iter": n_iter, **judge(snapshot)})
        return record(recorder, machine, *args)

    with mock.patch.object(RowRecorder, "record", recording):
        rbm.set_params(n_iter_no_change=rbm.n_iter, track_likelihood=False).fit(rows)
    return path


def large(rows: np.ndarray, test: np.ndarray, is_tracked: bool) -> None:
    """500 hidden units."""
    settings = SETTINGS | {"track_likelihood": is_tracked}
    stopped = BernoulliRBM(500, n_iter=N_ITER, **settings).fit(rows)
    held_out = rows[
        split_rows(len(rows), stopped.validation_fraction, stopped._streams["validation_seed"])[1]
    ]
    print(f"stopped after {stopped.n_iter_} of {N_ITER} passes", flush=True)

    def judge(rbm: BernoulliRBM) -> dict[str, float]:
        found = bracket(rbm, test, rows, N_TEMPERATURES)
        shift = rbm.free_energy(test).mean() - rbm.free_energy(held_out).mean()
        sides = [found[side] for side in ("forward", "reverse")]
        errors = [found[f"{side}_error"] for side in ("forward", "reverse")]
        both = float(np.average(sides, weights=1 / np.square(errors)))
        return {"test": both, "validation": float(both + shift), "sides": sides, "errors": errors}

    path = followed(BernoulliRBM(500, n_iter=N_ITER, **settings), rows, judge, EVERY)
    results = {"n_iter": stopped.n_iter_, "kept": judge(stopped), "path": path}
    print(f"kept {results['kept']}, best {max(path, key=lambda at: at['validation'])}")
    name = "early_stopping_tracked" if is_tracked else "early_stopping"
    write(name, results, n_iter=N_ITER, **settings)


def at_stop(values: list[float], n_iter_no_change: int) -> float:
    """What a stop by these values themselves would keep."""
    best_at = [int(np.argmax(values[: at + 1])) for at in range(len(values))]
    stops = (best for at, best in enumerate(best_at) if at - best == n_iter_no_change)
    return values[next(stops, best_at[-1])]


def small(rows: np.ndarray) -> None:
    """16 hidden units, whose partition function is a sum over 65,536 states."""
    results = []
    for seed in range(N_SEEDS):
        rbm = BernoulliRBM(random_state=seed, **SMALL).fit(rows)
        held_out = rows[split_rows(rbm, len(rows))[1]]

        def judge(rbm: BernoulliRBM, held_out: np.ndarray = held_out) -> dict[str, float]:
            log_partition = rbm.log_partition("exact")
            return {"validation": float(rbm.log_likelihood(held_out, log_partition).mean())}

        path = followed(BernoulliRBM(random_state=seed, **SMALL), rows, judge)
        kept, exact = judge(rbm)["validation"], [at["validation"] for at in path]
        tracked = rbm.history_["validation_log_likelihood"]
        largest_error = float(np.abs(np.subtract(tracked, exact[: len(tracked)])).max())
        results.append(
            {
                "seed": seed,
                "n_iter": rbm.n_iter_,
                "kept": kept,
                "best": max(exact),
                "kept_by_exact": at_stop(exact, rbm.n_iter_no_change),
                "largest_error_of_tracked": largest_error,
                "path": path,
            }
        )
        print(f"seed {seed}: stopped after {rbm.n_iter_} of {rbm.n_iter}, ", end="")
        print(
            f"kept {kept:.2f}, best {max(exact):.2f}, tracked within {largest_error:.2f}",
            flush=True,
        )
    for kept in ("kept", "kept_by_exact"):
        print(f"{kept}: {np.mean([run['best'] - run[kept] for run in results]):.2f} below the best")
    made = [run["path"][: run["n_iter"]] for run in results]
    best = [max(at["validation"] for at in path) for path in made]
    worst = max(best_made - run["kept"] for best_made, run in zip(best, results, strict=True))
    print(f"kept: at most {worst:.2f} below the best of the passes before the stop")
    write("early_stopping_small", results, **SMALL)


def write(name: str, results: Any, **settings: Any) -> None:
    """Keep what came out."""
    print(where.write(name, __doc__.splitlines()[0], results, **settings).relative_to(where.ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tracked", action="store_true")
    kinds.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    where.print_description()
    X, test = binarized_mnist()
    if chosen.small:
        small(X[:500])
    else:
        large(X[:500], test, chosen.tracked)


if __name__ == "__main__":
    main()
