"""What is lost when a part of training is left out?

Parts are what acts on an update or an epoch besides the gradient step, and what prepares the start.
Each row is one kind of data and one width: mean log-likelihood of the training rows after 10 passes (100
for one far number, 30 for tables), as in clusters.py, with all parts and with one of them, or all, left out, eight
seeds. Printed are the nats lost without the part, the seeds taken in pairs: mean, standard error of the
mean, and the largest loss. A fit that diverged counts as independent features.

"features" are accuracies in percent of a logistic regression on 100 features of digits, as in features.py.
"update" is the processor time of an update in milliseconds, "start" that of a fit of one pass, 64 x 64
with mini-batches of 20 and 784 x 500 with 100; what is lost there is time saved. "options" compares
options that are off by default, on digits.
Results are merged into those of earlier runs. Run from the repository:

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.quality.leave_one_out [--only ROW ...] [--parts PART ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from benchmarks import machine as where
from benchmarks import structured
from benchmarks.data import binarized_mnist
from benchmarks.quality import features
from benchmarks.quality.clusters import fit
from benchmarks.speed.training import rows as random_rows
from benchmarks.structured import DataSet
from benchmarks.timing import take_turns
from skrbm import BernoulliRBM, GaussianBernoulliRBM

PARTS = (
    *("jumps", "mixed rows", "extrapolated rows", "anchors", "damping"),
    *("clusters", "factors", "sources", "step scale", "kurtosis", "redundancy", "average"),
)
ALL, NONE = "all parts", "no parts"
FOR_NUMBERS = {"factors", "sources", "kurtosis", "redundancy"}  # parts that need learned variances
N_SEEDS, N_ITER, N_ROUNDS = 8, 10, 7
N_TEMPERATURES = 600  # errors of 0.02 to 0.5 nats a fit, which the mean over seeds divides by 2.8
WIDTHS = {
    "bits, two": (18,),
    "bits, two, 5 %": (18, 256),
    "bits, five": (18,),
    "one-hot, five": (18,),
    "spins, two, 5 %": (18,),
    "numbers, two": (18,),
    "numbers, two, 5 %": (18,),
    "numbers, five": (18,),
    "tables, three": (10,),
    "Ising spins, T = 1.8": (18,),
    "Ising spins, T = 2.3": (18,),
    "one factor, 300 columns": (18, 256),
    "one factor, 1000 columns": (16,),
    "patches, 16, grey": (256,),
    "patches, 16, thresholded": (256,),
    "bits, opposite, 2 of 2000": (256,),
    "bits, opposite, 6 of 2000": (18, 256),
    "bits, opposite, 20 of 2000": (256,),
    "bits, all ones, 6 of 2000": (256,),
    "bits, all ones, 20 of 2000": (256,),
    "bits, document lengths": (256,),
    "bits, topics": (18, 256),
    "numbers, far cluster, 6 of 2000": (18,),
    "numbers, one far number, 3 of 1000": (18,),
    "numbers, scattered, 6 of 1000": (18,),
    "MNIST, 5,000 rows": (100,),
    "numbers, five factors": (16, 100),
    "numbers, one factor": (16, 100),
    "numbers, clusters of factors": (16, 100),
    "numbers, heavy tails": (16, 100),
    "numbers, rotated sources": (16,),
    "numbers, bursts": (16, 100),
    "numbers, breast cancer": (16,),
    "numbers, diabetes": (16, 100),
    "numbers, waves": (256,),
    "numbers, five measurements": (256,),
    "numbers, four factors, 200 columns": (256,),
    "numbers, random walks": (256,),
    "numbers, patches, 14": (256,),
    "numbers, two-state sources": (16, 64),
    "numbers, whitened digits": (16, 64),
}
N_PASSES = {"numbers, one far number, 3 of 1000": 100, "tables, three": 30}
N_PASSES_TIMED = 5
FEATURES, OPTIONS = "digits' features", "options"
N_FEATURES, N_ITER_FEATURES = 100, 30
TIMED = {"64 x 64": (64, 64, 20, 200), "784 x 500": (784, 500, 100, 20)}
SPEED = {
    f"{measure}, {size}": (measure, *shape)
    for measure in ("update", "start")
    for size, shape in TIMED.items()
}
DEPARTURES: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "momentum": {"momentum": 0.9, "learning_rate": 0.04},
}


def data_sets() -> Iterator[DataSet]:
    """Kinds of data of the trial."""
    yield from (
        data
        for data in chain(
            structured.clusters(),
            structured.tables_in_clusters(),
            structured.lattices(),
            structured.one_factor(),
            structured.photographs((16,)),
            structured.topics(),
            structured.rare_groups(),
            structured.factors(),
            structured.sources(),
            structured.heavy_tails(),
            structured.redundant_columns(),
        )
        if data.name in WIDTHS
    )
    yield DataSet("MNIST, 5,000 rows", BernoulliRBM, binarized_mnist()[0][::10])


def without(estimator: type, parts: frozenset[str]) -> type:
    """Subclass of an estimator that trains without some parts."""
    return type(estimator.__name__, (estimator,), {"_left_out": parts})


def left_out(variant: str) -> frozenset[str]:
    """Parts that a variant trains without."""
    return frozenset({ALL: (), NONE: PARTS}.get(variant, (variant,)))


def nats(data: DataSet, n_components: int, variant: str, seed: int) -> dict[str, Any]:
    """Likelihood of a fit with or without some parts."""
    n_iter = N_PASSES.get(data.name, N_ITER)
    estimator = without(data.estimator, left_out(variant))
    rbm = estimator(n_components, n_iter=n_iter, random_state=seed, **data.options)
    found = fit(rbm, data, N_TEMPERATURES)
    return {"value": data.independent if found["mean"] is None else found["mean"]} | found


def accuracy(variant: str, seed: int) -> dict[str, float]:
    """Accuracy in percent that features of digits lead to."""
    return _features_of(without(BernoulliRBM, left_out(variant)), seed)


def _features_of(estimator: type, seed: int, **options: Any) -> dict[str, float]:
    rbm = estimator(N_FEATURES, n_iter=N_ITER_FEATURES, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = features.accuracy(rbm, features.parts("digits", seed))
    return {"value": 100 * found["accuracy"]}


def option(name: str, seed: int) -> dict[str, float]:
    """Likelihood of digits in black and white in nats, and accuracy of the features of grey ones."""
    bits = (load_digits().data > 8).astype(float)
    learned, others = features.divided(np.arange(len(bits)), np.arange(len(bits)), 0.5, seed)
    rbm = BernoulliRBM(N_FEATURES, n_iter=N_ITER_FEATURES, random_state=seed, **DEPARTURES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rbm.fit(bits[learned])
        log_z = rbm.log_partition("ais", n_temperatures=2000, X=bits[learned])
    accuracy = _features_of(BernoulliRBM, seed, **DEPARTURES[name])["value"]
    return {"value": float(rbm.log_likelihood(bits[others], log_z).mean()), "accuracy": accuracy}


def processor_seconds(run: Any) -> float:
    """Processor time of a job, which other jobs on the machine hardly change."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def speed(measure: str, n_visible: int, n_hidden: int, n_batch: int, n_updates: int) -> Any:
    """Milliseconds of an update or of a fit of one pass, of all variants in turn."""
    X = random_rows(n_updates * n_batch, n_visible, np.float32)

    def job(variant: str) -> Any:
        estimator = without(BernoulliRBM, left_out(variant))
        options = {"batch_size": n_batch, "random_state": 0}
        return lambda n_iter=1: estimator(n_hidden, n_iter=n_iter, **options).fit(X)

    def of_update(run: Any) -> float:
        later = processor_seconds(lambda: run(N_PASSES_TIMED)) - processor_seconds(run)
        return later / (N_PASSES_TIMED - 1) / n_updates

    measures = {"update": of_update, "start": processor_seconds}
    variants = ALL, *(part for part in PARTS if part not in FOR_NUMBERS), NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = take_turns({v: job(v) for v in variants}, N_ROUNDS, measures[measure])
    return {v: [{"value": 1e3 * t} for t in found] for v, found in times.items()}


def variants_of(data: DataSet) -> tuple[str, ...]:
    """Variants that may differ for some data."""
    has_numbers = issubclass(data.estimator, GaussianBernoulliRBM)
    parts = (part for part in PARTS if has_numbers or part not in FOR_NUMBERS)
    return ALL, *parts, NONE


def show(name: str, row: dict[str, list[dict[str, Any]]]) -> None:
    """Print the values of one row's reference and what is lost in each of its variants."""
    reference, *others = row
    base = np.array([run["value"] for run in row[reference]])
    print(f"{name}: {reference} {base.mean():.3f} +- {_error(base):.3f}, worst {base.min():.3f}")
    for variant in others:
        values = np.array([run["value"] for run in row[variant]])
        lost = base - values
        n_warned = sum(run.get("is_warned", False) for run in row[variant])
        print(
            f"    {variant:22} lost {lost.mean():8.3f} +- {_error(lost):.3f}, at most "
            f"{lost.max():8.3f}; worst {values.min():9.3f}; warned {n_warned} of {len(values)}"
        )


def _error(values: np.ndarray) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    names = [f"{name}, {n} units" for name, widths in WIDTHS.items() for n in widths]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[*names, FEATURES, *SPEED, OPTIONS])
    parser.add_argument("--parts", nargs="+", default=[ALL, *PARTS, NONE])
    parser.add_argument("--n-jobs", type=int, default=1)
    arguments = parser.parse_args()
    where.begin(__doc__)
    results: dict[str, Any] = where.written("leave_one_out")
    pool = Parallel(n_jobs=arguments.n_jobs)

    def keep(name: str, row: dict[str, list[dict[str, Any]]]) -> None:
        results[name] = results.get(name, {}) | row
        show(name, results[name])
        where.write("leave_one_out", __doc__.splitlines()[0], results, n_seeds=N_SEEDS)

    def over_seeds(function: Any, variants: Any, *fixed: Any) -> dict[str, list[dict[str, Any]]]:
        tasks = [(variant, seed) for variant in variants for seed in range(N_SEEDS)]
        found = iter(pool(delayed(function)(*fixed, *task) for task in tasks))
        return {variant: [next(found) for _ in range(N_SEEDS)] for variant in variants}

    for data in data_sets():
        for n_components in WIDTHS[data.name]:
            name = f"{data.name}, {n_components} units"
            if name in arguments.only:
                variants = [v for v in variants_of(data) if v in arguments.parts]
                keep(name, over_seeds(nats, variants, data, n_components))
    if FEATURES in arguments.only:
        keep(FEATURES, over_seeds(accuracy, [p for p in arguments.parts if p not in FOR_NUMBERS]))
    if OPTIONS in arguments.only:
        keep(OPTIONS, over_seeds(option, DEPARTURES))
    for name, measure in SPEED.items():
        if name in arguments.only:
            keep(name, speed(*measure))
    print((where.RESULTS / "leave_one_out.json").relative_to(where.ROOT))


if __name__ == "__main__":
    main()
