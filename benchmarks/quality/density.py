"""Are unseen rows of public sets of bits likelier under an RBM than published models make them?

Mean log-likelihood of the test rows in nats. One recipe for all sets: a short grid of starts and
penalties, then more passes and more hidden units for the best, all chosen on the validation rows.
Likelihoods are exact where one layer can be summed over, and else the lowest of annealing forwards,
annealing in reverse and Bennett's ratio. Beside them a mixture of independent bits and scikit-learn's
BernoulliRBM, chosen on the same rows, the likeliest tree, and independent columns. The rows are read from
the folder ``datasets`` of github.com/arranger1044/DEBD, or packed from the folder SKRBM_DATA. A set is
written when it is done. What was written is not run again: a run with more seeds or a longer grid adds
what is missing. Run from the repository:

    python -m benchmarks.quality.density [SET ...] [--folder datasets] [--seeds 5]
    python -m benchmarks.quality.density --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neural_network import BernoulliRBM as TheirRBM

from benchmarks import machine as where
from benchmarks.bernoulli_mixture import choose_mixture
from benchmarks.binary_rows import binary_rows
from benchmarks.likelihood import as_skrbm
from benchmarks.trees import Tree, start_from_tree
from skrbm import AnnealingWarning, BernoulliRBM, DivergenceError

# Published test log-likelihoods in nats: the best of twenty columns of Rooshenas, Lowd 2014 (ICML),
# Peharz et al. 2019 (UAI) and Watson et al. 2023 (AISTATS), of which those of variational
# autoencoders are lower bounds; and ID-SPN's, of the first of them.
PUBLISHED = {
    "nltcs": {"best": -5.99, "ID-SPN": -6.02},
    "dna": {"best": -80.03, "ID-SPN": -81.21},
    "plants": {"best": -12.26, "ID-SPN": -12.54},
    "jester": {"best": -51.54, "ID-SPN": -52.86},
    "accidents": {"best": -26.32, "ID-SPN": -26.98},
    "movie": {"best": -47.43, "ID-SPN": -51.51},
    "msweb": {"best": -9.59, "ID-SPN": -9.73},
    "book": {"best": -33.19, "ID-SPN": -34.14},
    "reuters": {"best": -81.17, "ID-SPN": -83.35},
    "ad": {"best": -13.65, "ID-SPN": -19.00},
}
MAX_EXACT = 20  # units of the smaller layer whose states are summed over
N_CHAINS = 100
N_SEARCH_TEMPERATURES = 500  # of validation rows; of test rows by --n-temperatures
METHODS = "ais", "reverse_ais", "bar"
THEIR_RATES = 0.1, 0.01


@dataclass(frozen=True)
class Recipe:
    """Settings of a fit.

    Parameters
    ----------
    start : {"columns", "tree"}
        Model before the first pass: independent columns, the estimator's own, or the likeliest tree.
    n_free : int
        Hidden units, beyond those that are an edge of the tree.
    n_iter : int
        Number of passes.
    learning_rate, l1, l2 : float
        As of the estimator.
    algorithm : str, default="pcd"
        As of the estimator.
    """

    start: str
    learning_rate: float
    l1: float = 0.0
    l2: float = 0.0
    algorithm: str = "pcd"
    n_free: int = 150
    n_iter: int = 20

    def fit(self, X: np.ndarray, seed: int) -> tuple[BernoulliRBM, float]:
        """Fitted RBM, and the processor seconds of the fit."""
        begin = time.process_time()
        settings = asdict(self)
        n_free, is_tree = settings.pop("n_free"), settings.pop("start") == "tree"
        n_components = n_free + (X.shape[1] - 1 if is_tree else 0)
        rbm = BernoulliRBM(n_components, random_state=seed, **settings)
        if is_tree:
            start_from_tree(rbm, X, seed)
        return rbm.fit(X), time.process_time() - begin


STARTS = "columns", "tree"
FIRST = (
    Recipe("columns", 0.4, l2=1e-3),
    Recipe("columns", 0.4, l2=1e-4),
    Recipe("tree", 0.2, l1=2e-3),
    Recipe("tree", 0.4, l2=1e-4),
    Recipe("tree", 0.02, algorithm="cd"),
)
MORE_PASSES = 4  # times as many, for the best of each start
# Then factors of the settings of the best of all, tried in turn; one that helps is kept.
FACTORS: tuple[dict[str, float], ...] = (
    {"l1": 2.0, "l2": 3.0},
    {"n_free": 3},
    {"n_iter": 4},
    {"n_iter": 4},
)


def log_partitions(
    rbm: BernoulliRBM, X: np.ndarray, methods: tuple[str, ...], n_temperatures: int
) -> dict[str, tuple[float, float]]:
    """Log-partition function and its standard error, in nats, by method."""
    if min(rbm.components_.shape) <= MAX_EXACT:
        return {"exact": (float(rbm.log_partition("exact").value), 0.0)}
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnealingWarning)  # the errors are stated
        for method in methods:
            log_z = rbm.log_partition(
                method, n_chains=N_CHAINS, n_temperatures=n_temperatures, X=X, random_state=0
            )
            found[method] = float(log_z.value), float(log_z.std_error)
    return found


def measure(
    rbm: BernoulliRBM,
    train: np.ndarray,
    rows: np.ndarray,
    methods: tuple[str, ...],
    n_temperatures: int,
) -> dict[str, float]:
    """Mean log-likelihood of rows by each method and the lowest of them, with standard errors."""
    free_energy = rbm.free_energy(rows).astype(np.float64)
    found = {"error_over_rows": standard_error(free_energy)}
    values = log_partitions(rbm, train, methods, n_temperatures)
    for method, (log_z, error) in values.items():
        found[method] = float(-free_energy.mean() - log_z)
        found[f"{method}_error"] = error
    return {"mean": min(found[method] for method in values)} | found


def standard_error(values: np.ndarray) -> float:
    """Standard error of a mean over rows."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def search(
    rows: dict[str, np.ndarray], n_iter: int, max_seconds: float, before: list[dict[str, Any]]
) -> tuple[Recipe, list[dict[str, Any]]]:
    """Recipe that is likeliest on the validation rows, and all that were tried, now or before."""
    measured = "seconds", "valid"
    known = {
        Recipe(**{key: value for key, value in old.items() if key not in measured}): {
            key: old[key] for key in measured
        }
        for old in before
    }
    tried: dict[Recipe, dict[str, float]] = {}

    def attempt(recipe: Recipe) -> None:
        if recipe not in known:
            try:
                rbm, seconds = recipe.fit(rows["train"], seed=0)
            except DivergenceError:
                return
            size = METHODS[:2], N_SEARCH_TEMPERATURES
            valid = measure(rbm, rows["train"], rows["valid"], *size)["mean"]
            known[recipe] = {"seconds": round(seconds, 1), "valid": valid}
            print("  ", *asdict(recipe).values(), known[recipe], flush=True)
        tried[recipe] = known[recipe]

    def best_of(recipes: Iterable[Recipe]) -> Recipe:
        return max(recipes, key=lambda recipe: tried[recipe]["valid"])

    def attempt_changed(recipe: Recipe, **settings: Any) -> None:
        changed = replace(recipe, **settings)
        share = changed.n_iter * changed.n_free / (recipe.n_iter * recipe.n_free)
        if changed != recipe and tried[recipe]["seconds"] * share < max_seconds:
            attempt(changed)

    for recipe in FIRST:
        attempt(replace(recipe, n_iter=n_iter))
    for start in STARTS:
        best = best_of(recipe for recipe in list(tried) if recipe.start == start)
        attempt_changed(best, n_iter=MORE_PASSES * n_iter)
    for factors in FACTORS:
        best = best_of(tried)
        attempt_changed(best, **{name: getattr(best, name) * by for name, by in factors.items()})
    likeliest = max(known, key=lambda recipe: known[recipe]["valid"])
    return likeliest, [asdict(recipe) | found for recipe, found in known.items()]


def peers(rows: dict[str, np.ndarray]) -> dict[str, Any]:
    """Test values of what an RBM should beat."""
    train, valid, test = (rows[part] for part in ("train", "valid", "test"))
    frequency = ((train.sum(axis=0) + 0.5) / (len(train) + 1)).astype(np.float64)
    columns = test @ (np.log(frequency) - np.log1p(-frequency)) + np.log1p(-frequency).sum()
    mixture, settings = choose_mixture(train, valid, seed=0)
    theirs = []
    for rate in THEIR_RATES:
        fitted = as_skrbm(TheirRBM(learning_rate=rate, random_state=0).fit(train))
        size = METHODS[:2], N_SEARCH_TEMPERATURES
        valid_mean = measure(fitted, train, valid, *size)["mean"]
        theirs.append({"valid": valid_mean, "learning_rate": rate, "rbm": fitted})
    best = max(theirs, key=lambda own: own["valid"])
    test_values = measure(best.pop("rbm"), train, test, METHODS[:2], N_SEARCH_TEMPERATURES)
    return {
        "independent columns": {"mean": float(columns.mean())},
        "tree": {"mean": float(Tree.of(train).log_likelihood(test).mean())},
        "mixture": settings | {"mean": float(mixture.log_likelihood(test).mean())},
        "scikit-learn": best | test_values,
    }


def run(
    rows: dict[str, np.ndarray], settings: dict[str, Any], before: dict[str, Any]
) -> dict[str, Any]:
    """Search, fits and peers of a set, without what was found before."""
    found = before.get("peers") or peers(rows)
    print("  ", {name: round(own["mean"], 3) for name, own in found.items()}, flush=True)
    recipe, tried = search(
        rows, settings["n_iter"], settings["max_seconds"], before.get("tried", [])
    )
    fits = before["fits"] if before.get("recipe") == asdict(recipe) else []
    for seed in range(len(fits), settings["seeds"]):
        rbm, seconds = recipe.fit(rows["train"], seed)
        values = measure(rbm, rows["train"], rows["test"], METHODS, settings["n_temperatures"])
        fits.append({"seed": seed, "seconds": seconds} | values)
        print("  ", {name: round(value, 4) for name, value in fits[-1].items()}, flush=True)
    mean = float(np.mean([fit["mean"] for fit in fits]))
    return {"mean": mean, "recipe": asdict(recipe), "fits": fits, "tried": tried, "peers": found}


def tables(results: dict[str, Any]) -> str:
    """Values, and how they came about, as the guide has them in Markdown."""
    peers = "mixture", "tree", "scikit-learn", "independent columns"
    values = [["set", "RBM", "best published", "ID-SPN", *peers]]
    fits = [["set", "start", "free hidden units", "passes", "l1", "l2", "error over rows"]]
    fits[0] += ["forwards", "in reverse", "Bennett", "largest error of log Z", "seconds of a fit"]
    for name, own in ((name, results[name]) for name in PUBLISHED if name in results):
        numbers = [own["mean"], *PUBLISHED[name].values()]
        numbers += [own["peers"][peer]["mean"] for peer in peers]
        values.append([name, *(f"{number:.2f}" for number in numbers)])
        recipe = own["recipe"]
        names = "error_over_rows", *METHODS
        means = [np.mean([fit.get(key, fit["mean"]) for fit in own["fits"]]) for key in names]
        error = max(fit.get(f"{method}_error", 0) for fit in own["fits"] for method in METHODS)
        seconds = np.mean([fit["seconds"] for fit in own["fits"]])
        settings = [recipe[key] for key in ("n_free", "n_iter", "l1", "l2")]
        fits.append([name, recipe["start"], *(f"{value:g}" for value in settings)])
        fits[-1] += [f"{mean:.2f}" for mean in means]
        fits[-1] += [f"{error:.2f}", f"{seconds:.0f}"]
    return "\n\n".join(map(markdown, (values, fits)))


def markdown(rows: list[list[str]]) -> str:
    """Table in Markdown, of which the first row is the head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", choices=[*PUBLISHED, []], default=[])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-temperatures", type=int, default=10_000, help="for the test rows")
    parser.add_argument("--n-iter", type=int, default=20, help="passes of the first fits")
    parser.add_argument(
        "--max-seconds", type=float, default=1000, help="of the longest fit, expected"
    )
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(tables(where.written("density")))
        return
    question = where.begin(__doc__)
    names = "seeds", "n_temperatures", "n_iter", "max_seconds"
    settings = {name: getattr(arguments, name) for name in names}
    for name in arguments.sets or PUBLISHED:
        print(name, flush=True)
        found = run(
            binary_rows(name, arguments.folder), settings, where.written("density").get(name, {})
        )
        # Another process may have finished a set meanwhile.
        results = where.written("density") | {name: {"settings": settings} | found}
        ordered = {key: results[key] for key in PUBLISHED if key in results}
        path = where.write("density", question, ordered, published=PUBLISHED)
        print(path.relative_to(where.ROOT), flush=True)
    print(tables(where.written("density")))


if __name__ == "__main__":
    main()
