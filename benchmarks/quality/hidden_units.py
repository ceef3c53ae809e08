"""Does a type of hidden units make new rows more likely than binary ones do, at equal time?

Held-out log-likelihood in nats per row, a third of the rows held out:

- digits: 8 x 8 images of scikit-learn in black and white, BernoulliRBM
- Ising: spins of a periodic 6 x 6 lattice at temperature 2.4, SpinRBM
- tumours: 30 standardised numbers of scikit-learn's breast cancer data, GaussianBernoulliRBM
- diabetes: nine numbers and the sex of each patient, TabularRBM
- sequences: 30 sites with 21 letters of which 20 pairs act on each other, TabularRBM

Each fit has 20 hidden units and as many epochs as one thread makes in the given processor time; all else is the
default. The partition function is estimated by Bennett's ratio, and its standard error is stated. A fit
whose forward annealing disagrees with it by more than four errors and by more than a nat is marked. Run
from the repository:

    OMP_NUM_THREADS=1 python -m benchmarks.quality.hidden_units [--seeds 3] [--seconds 10]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import machine as where
from benchmarks.quality.contacts import KINDS, family
from benchmarks.structured import ising
from skrbm import BernoulliRBM, DivergenceError, GaussianBernoulliRBM, SpinRBM, TabularRBM

HIDDEN_UNITS = "binary", "gaussian", "relu", "drelu"
N_COMPONENTS = 20
TRIAL_EPOCHS = 3
N_TEMPERATURES = 3000


def digits() -> tuple[Any, Any]:
    return BernoulliRBM(), load_digits().data > 7


def lattice() -> tuple[Any, Any]:
    return SpinRBM(), ising(2.4)


def tumours() -> tuple[Any, Any]:
    return GaussianBernoulliRBM(), StandardScaler().fit_transform(load_breast_cancer().data)


def diabetes() -> tuple[Any, Any]:
    frame = load_diabetes(as_frame=True, scaled=False).data
    return TabularRBM(), frame.astype({"sex": str})


def sequences() -> tuple[Any, Any]:
    return TabularRBM(kinds=KINDS), family(1500, np.random.default_rng(0))[0]


CASES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "digits": digits,
    "Ising": lattice,
    "tumours": tumours,
    "diabetes": diabetes,
    "sequences": sequences,
}


def run(case: str, hidden_units: str, seed: int, seconds: float) -> dict[str, Any]:
    """Held-out log-likelihood that a type of hidden units reaches in the given time."""
    rbm, X = CASES[case]()
    train, test = train_test_split(X, test_size=1 / 3, random_state=seed)
    rbm.set_params(n_components=N_COMPONENTS, hidden_units=hidden_units, random_state=seed)
    begin = time.process_time()
    rbm.set_params(n_iter=TRIAL_EPOCHS).fit(train)
    n_iter = max(1, round(seconds * TRIAL_EPOCHS / (time.process_time() - begin)))
    begin = time.process_time()
    try:
        rbm.set_params(n_iter=n_iter).fit(train)
    except DivergenceError as error:
        return {"error": str(error), "n_iter": n_iter}
    row: dict[str, Any] = {"seconds": time.process_time() - begin, "n_iter": n_iter}
    log_z = rbm.log_partition("bar", n_temperatures=N_TEMPERATURES, X=train, random_state=0)
    forward = rbm.log_partition("ais", n_temperatures=N_TEMPERATURES, X=train, random_state=0)
    row["test"] = float(rbm.log_likelihood(test, log_z).mean())
    row["train"] = float(rbm.log_likelihood(train, log_z).mean())
    row["std_error"] = float(log_z.std_error)
    gap = abs(forward.value - log_z.value)
    row["is_sure"] = bool(gap < max(1.0, 4 * np.hypot(log_z.std_error, forward.std_error)))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for case in CASES:
        for kind in HIDDEN_UNITS:
            rows = [run(case, kind, seed, arguments.seconds) for seed in range(arguments.seeds)]
            results.setdefault(case, {})[kind] = rows
            scores = [
                f"{row['test']:8.2f}{'' if row['is_sure'] else '?'}"
                if "test" in row
                else "diverged"
                for row in rows
            ]
            print(f"{case:10} {kind:9}", *scores, flush=True)
    path = where.write("hidden_units", question, results, **vars(arguments))
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
