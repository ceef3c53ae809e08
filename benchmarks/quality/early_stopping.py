"""Does early stopping on few rows end near the best that the run had to offer?

500 images of MNIST in black and white, 500 hidden units, 200 planned passes at a low rate: the same run
with and without a stop, judged on the rows held out and on 10,000 others by log-likelihood, nats, after
every twentieth pass: the mean of annealing from both sides. The stop goes by the pseudo-likelihood of
the rows held out or, tracked, by their likelihood. Run from the repository:

    python -m benchmarks.quality.early_stopping [--tracked]
"""

from __future__ import annotations

import argparse
from typing import Any
from unittest import mock

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import bracket
from skrbm import BernoulliRBM
from skrbm.estimators.recording import Recorder
from skrbm.estimators.rows import split_rows

N_ITER = 200
EVERY = 20
N_TEMPERATURES = 5000  # by a thousand, forwards and in reverse differ by four nats
SETTINGS = {"learning_rate": 0.1, "batch_size": 50, "early_stopping": True, "random_state": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tracked", action="store_true")
    is_tracked = parser.parse_args().tracked
    settings = SETTINGS | {"track_likelihood": is_tracked}
    where.print_description()
    X, test = binarized_mnist()
    rows = X[:500]
    stopped = BernoulliRBM(500, n_iter=N_ITER, **settings).fit(rows)
    held_out = rows[split_rows(stopped, len(rows))[1]]
    print(f"stopped after {stopped.n_iter_} of {N_ITER} passes", flush=True)

    def judged(rbm: BernoulliRBM) -> dict[str, float]:
        found = bracket(rbm, test, rows, N_TEMPERATURES)
        shift = rbm.free_energy(test).mean() - rbm.free_energy(held_out).mean()
        both = (found["forward"] + found["reverse"]) / 2
        gap = found["reverse"] - found["forward"]
        return {"test": both, "validation": float(both + shift), "gap": gap}

    path: list[dict[str, Any]] = []
    record = Recorder.record

    def recording(recorder: Recorder, machine: Any, particles: Any, notes: Any) -> float:
        n_iter = patient.n_iter_
        if n_iter % EVERY == 0:
            snapshot = BernoulliRBM(500, random_state=0)
            snapshot._model.publish(machine)
            path.append({"n_iter": n_iter, **judged(snapshot)})
            print(path[-1], flush=True)
        return record(recorder, machine, particles, notes)

    patient = BernoulliRBM(500, n_iter=N_ITER, **settings)
    with mock.patch.object(Recorder, "record", recording):
        patient.set_params(n_iter_no_change=N_ITER).fit(rows)
    results = {"n_iter": stopped.n_iter_, "kept": judged(stopped), "path": path}
    best = max(path, key=lambda at: at["validation"])
    print(f"kept {results['kept']}, best {best}")
    name = "early_stopping_tracked" if is_tracked else "early_stopping"
    written = where.write(name, __doc__.splitlines()[0], results, n_iter=N_ITER, **settings)
    print(written.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
