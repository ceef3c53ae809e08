"""Can the log-likelihood that a fit tracks be believed, and what does it cost?

Bars and stripes 4 x 4, digits in black and white, a Gaussian and a categorical model are tracked by chains
through all passes, whose partition functions are then summed exactly: the share of passes within four
standard errors, and the error after the last pass. BernoulliRBM with 500 hidden units on binarised MNIST:
the tracked value beside annealed importance sampling after some passes, and the time of passes with and
without it: two fits in one process, which take turns after every pass. Run from the repository, both or by
name:

    python -m benchmarks.quality.tracking [small] [large] [--passes 50] [--temperatures 10000]
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from skrbm import BernoulliRBM, GaussianBernoulliRBM, TabularRBM
from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood import exact
from skrbm.core.likelihood.annealing import annealed_log_partition
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.machine import Machine
from skrbm.estimators.fitting import tracked_likelihood as tracking
from skrbm.estimators.fitting.recording import RowRecorder

SMALL_PASSES = 200
COMPARED = (1, 5, 20, 50)


@contextmanager
def noted(passes: set[int] | None) -> Iterator[list[tuple[Machine, Any]]]:
    """Context in which chains are never replaced by exact sums; models with their results."""
    follow, notes, n_calls = PartitionTracker.follow, [], 0

    def noting(self: Any, machine: Machine, *arguments: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        result = follow(self, machine, *arguments)
        if passes is None or n_calls in passes:
            notes.append((machine.astype(machine.dtype, copy=True), result))
        return result

    with (
        patch.object(tracking.LikelihoodRecorder, "max_states", 0),
        patch.object(PartitionTracker, "follow", noting),
    ):
        yield notes


def bars_and_stripes(side: int) -> np.ndarray:
    """All images of bars or of stripes, (n_images, side ** 2)."""
    lines = np.array(np.unravel_index(np.arange(2**side), (2,) * side)).T
    bars = np.repeat(lines[:, None], side, axis=1).reshape(len(lines), -1)
    stripes = np.repeat(lines, side, axis=1)
    return np.unique(np.concatenate([bars, stripes]), axis=0).astype(float)


def small_models() -> Iterator[tuple[str, Any, Any]]:
    """Name, estimator and data of models whose partition functions can be summed."""
    rng = np.random.default_rng(0)
    digits = load_digits().data
    settings = {"n_iter": SMALL_PASSES, "random_state": 0, "track_likelihood": True}
    yield "bars and stripes", BernoulliRBM(12, **settings), np.tile(bars_and_stripes(4), (10, 1))
    yield "digits", BernoulliRBM(16, **settings), (digits > 7).astype(float)
    group = rng.integers(4, size=(1000, 1))
    kinds = dict.fromkeys(range(6), "categorical")
    table = np.where(rng.random((1000, 6)) < 0.7, group, rng.integers(4, size=(1000, 6)))
    yield "categorical", TabularRBM(12, kinds=kinds, **settings), table.astype(float)
    centres = rng.normal(0, 2, (4, 8))[group[:, 0]]
    yield "gaussian", GaussianBernoulliRBM(12, **settings), centres + rng.normal(size=(1000, 8))


def small_trial(rbm: Any, X: Any) -> dict[str, float]:
    """How far the tracked partition functions of all passes are from the exact ones."""
    with noted(None) as notes:
        rbm.fit(X)
    errors = [r.value - exact.log_partition(m.astype(np.float64)) for m, r in notes]
    stated = [r.std_error for _, r in notes]
    return {
        "within_4": float(np.mean(np.abs(errors) < 4 * np.array(stated))),
        "last_error": errors[-1],
        "last_std_error": stated[-1],
        "largest_error": float(np.abs(errors).max()),
    }


def small() -> dict[str, dict[str, float]]:
    """All models whose partition functions can be summed."""
    results = {}
    for name, rbm, X in small_models():
        row = results[name] = small_trial(rbm, X)
        print(
            f"{name:17} within 4 standard errors {row['within_4']:.1%}, last error "
            f"{row['last_error']:+.3f} (stated {row['last_std_error']:.3f}), largest "
            f"{row['largest_error']:.3f} nats",
            flush=True,
        )
    return results


def fit_in_turn(rbms: list[BernoulliRBM], X: np.ndarray) -> np.ndarray:
    """Fit estimators in one process, of which each makes a pass in turn; seconds of their passes."""
    turns = [threading.Semaphore(int(k == 0)) for k in range(len(rbms))]
    begin, seconds = [0.0] * len(rbms), [[] for _ in rbms]
    record, own = RowRecorder.record, threading.local()

    def recording(recorder: RowRecorder, *args: Any) -> float:
        score, k = record(recorder, *args), own.number
        seconds[k].append(time.perf_counter() - begin[k])
        turns[(k + 1) % len(rbms)].release()
        turns[k].acquire()
        begin[k] = time.perf_counter()
        return score

    def fit(k: int) -> None:
        own.number = k
        turns[k].acquire()
        begin[k] = time.perf_counter()
        rbms[k].fit(X)
        turns[(k + 1) % len(rbms)].release()

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(len(rbms))]
    with patch.object(RowRecorder, "record", recording):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return np.array(seconds)


def large(n_iter: int, n_temperatures: int) -> dict[str, Any]:
    """Tracked and annealed likelihoods of MNIST, and seconds of a pass with and without tracking."""
    train, test = binarized_mnist()
    options = {"n_components": 500, "n_iter": n_iter, "random_state": 0}
    plain, rbm = (BernoulliRBM(**options, track_likelihood=on) for on in (False, True))
    with noted(set(COMPARED)) as notes:
        seconds = fit_in_turn([plain, rbm], train)
    rows = {}
    for n_passes, (machine, tracked) in zip(COMPARED, notes, strict=False):
        base = rbm._model.base_layer(rbm._data["all"])
        path = TemperedPath.to(machine.astype(np.float32), base)
        annealed = annealed_log_partition(path, 100, n_temperatures, np.random.default_rng(0))
        likelihood = -machine.free_energy(test.astype(machine.dtype)).mean(dtype=np.float64)
        row = rows[n_passes] = {
            "tracked": likelihood - tracked.value,
            "tracked_std_error": tracked.std_error,
            "annealed": likelihood - annealed.value,
            "annealed_std_error": annealed.std_error,
        }
        print(
            f"784 x 500, pass {n_passes:3}: tracked {row['tracked']:.2f} +- "
            f"{row['tracked_std_error']:.2f}, annealed {row['annealed']:.2f} +- "
            f"{row['annealed_std_error']:.2f}",
            flush=True,
        )
    later = seconds[:, 1:]  # the first pass comes from independent features
    plain_pass, ratio = np.median(later[0]), np.median(later[1] / later[0])
    print(f"a pass takes {plain_pass:.2f} s, {ratio:.3f} times as long if tracked")
    return {
        "passes": rows,
        "seconds_plain": float(plain_pass),
        "ratio_of_seconds": float(ratio),
        "ratio_of_first_pass": float(seconds[1, 0] / seconds[0, 0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["small", "large"])
    parser.add_argument("--passes", type=int, default=50)
    parser.add_argument("--temperatures", type=int, default=10_000)
    options = parser.parse_args()
    question = where.begin(__doc__)
    if "small" in options.parts:
        path = where.write("tracking_small", question, small(), passes=SMALL_PASSES)
        print(path.relative_to(where.ROOT), flush=True)
    if "large" in options.parts:
        size = {"passes": options.passes, "temperatures": options.temperatures}
        path = where.write("tracking_large", question, large(*size.values()), **size)
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
