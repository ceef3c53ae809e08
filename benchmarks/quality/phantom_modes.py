"""Does a fit keep modes without data?

With many hidden units, the units of a factor can all be active far beyond the data, and their mode
can have most of the model's weight. How many fits of four standardized tables keep more than a nat
there, with and without the extrapolated rows of the jumps, and the mean log-likelihood of the rows.
Far modes are looked for by mean-field iterations from scattered starts, and log Z is estimated by
importance sampling from rows of the data and from these modes. Run from the repository:

    python -m benchmarks.quality.phantom_modes
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from benchmarks import machine as where
from benchmarks.quality.leave_one_out import without
from skrbm import GaussianBernoulliRBM
from skrbm.core.chains.jumps import propose
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array

N_SEEDS, WIDTHS, EPOCHS = 16, (64, 256), (30,)
N_STARTS, N_STEPS, N_DRAWS, N_MODES = 1200, 200, 8_000, 60
VARIANTS = {"all parts": frozenset(), "without": frozenset({"extrapolated rows"})}


def far_modes(machine: Machine, X: Array, rng: np.random.Generator) -> Array:
    """Fixed points of mean-field iterations, the likeliest ones, from starts beyond the rows."""
    one, other = (X[rng.integers(len(X), size=N_STARTS // 2)] for _ in range(2))
    lines = one + rng.uniform(1, 3, size=(len(one), 1)) * (one - other)
    scattered = X.mean(axis=0) + 4 * X.std(axis=0) * rng.normal(size=lines.shape)
    v = np.concatenate([lines, scattered])
    for _ in range(N_STEPS):
        v = machine.mean_visible(machine.mean_hidden(v))
    order = np.argsort(machine.free_energy(v))
    _, first = np.unique(v[order].round(1), axis=0, return_index=True)
    return np.asarray(v[order[np.sort(first)[:N_MODES]]])


def measure(rbm: GaussianBernoulliRBM, X: Array) -> tuple[float, float]:
    """Excess of log Z due to far modes, and mean log-likelihood of the rows, in nats."""
    machine, rng = rbm._model.machine().astype(np.float64), np.random.default_rng(0)
    modes = far_modes(machine, X, rng)
    copies = np.repeat(modes, -(-len(X) // len(modes)), axis=0)
    near, both = (
        logsumexp(propose(machine, v, N_DRAWS, rng)[1]) - np.log(N_DRAWS)
        for v in (X, np.concatenate([X, copies]))
    )
    return float(both - near), float(-machine.free_energy(X).mean() - max(near, both))


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    rows = []
    loads = load_iris, load_wine, load_diabetes, load_breast_cancer
    for load, width, n_iter in itertools.product(loads, WIDTHS, EPOCHS):
        X = StandardScaler().fit_transform(load().data)
        row = {"table": load.__name__[5:], "units": width, "epochs": n_iter}
        for name, parts in VARIANTS.items():
            estimator = without(GaussianBernoulliRBM, parts)
            found = np.array(
                [
                    measure(estimator(width, n_iter=n_iter, random_state=seed).fit(X), X)
                    for seed in range(N_SEEDS)
                ]
            )
            row[name] = {
                "fits with more than a nat": int((found[:, 0] > 1).sum()),
                "largest excess": float(found[:, 0].max()),
                "log-likelihood": float(found[:, 1].mean()),
                "std_error": float(found[:, 1].std(ddof=1) / N_SEEDS**0.5),
            }
        rows.append(row)
        print(row, flush=True)
    where.write("phantom_modes", question, rows, seeds=N_SEEDS)


if __name__ == "__main__":
    main()
