"""Are the best contact scores of a fit the contacts of a family of sequences?

Families of 30 sites with 21 letters are drawn from a Potts model in which 20 pairs of sites act on each
other: fields and couplings are normal, chains of Gibbs sampling start from independent letters. TabularRBM by
its defaults and in a twelfth of its updates, and a Potts model fitted by pseudo-likelihood (a multinomial
logistic regression of each site on the others, l2 = 0.01), are scored alike: Frobenius norm in the zero-sum
gauge, average-product correction. How many of the 20 best are contacts, and seconds of one core's time. Run
from the repository:

    OMP_NUM_THREADS=1 python -m benchmarks.quality.contacts [--families 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks import machine as where
from skrbm import EffectiveCouplings, TabularRBM, effective_couplings
from skrbm.sequences import contact_scores

N_SITES, N_LETTERS, N_CONTACTS = 30, 21, 20
N_STEPS = 50  # of the chains that draw a family
PENALTY = 0.01  # of the pseudo-likelihood, for a mean over rows
ROWS = (300, 500, 1000)
KINDS = {site: ("categorical", list(range(N_LETTERS))) for site in range(N_SITES)}
SHORT = {"n_iter": 40, "batch_size": 100, "learning_rate": 2.0}


def family(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """Sequences (n_rows, N_SITES) and the pairs of sites that act on each other."""
    pairs = np.transpose(np.triu_indices(N_SITES, 2))
    contacts = rng.choice(pairs, N_CONTACTS, replace=False)
    neighbours: dict[int, list[tuple[int, np.ndarray]]] = {i: [] for i in range(N_SITES)}
    for i, j in contacts.tolist():
        coupling = rng.normal(size=(N_LETTERS, N_LETTERS))
        neighbours[i].append((j, coupling.T))
        neighbours[j].append((i, coupling))
    fields = rng.normal(size=(N_SITES, N_LETTERS))
    X = rng.integers(N_LETTERS, size=(n_rows, N_SITES))
    for _ in range(N_STEPS):
        for i in range(N_SITES):
            log_weights = fields[i] + sum(coupling[X[:, j]] for j, coupling in neighbours[i])
            X[:, i] = np.argmax(log_weights + rng.gumbel(size=(n_rows, N_LETTERS)), axis=1)
    return X, set(map(tuple, contacts.tolist()))


def pseudo_likelihood_couplings(X: np.ndarray) -> EffectiveCouplings:
    """Couplings of the Potts model of largest penalised pseudo-likelihood, in the zero-sum gauge."""
    one_hot = csr_array(OneHotEncoder(categories=[range(N_LETTERS)] * N_SITES).fit_transform(X))
    site = np.repeat(np.arange(N_SITES), N_LETTERS)
    matrix = np.zeros((len(site), len(site)))
    for i in range(N_SITES):
        regression = LogisticRegression(C=1 / (PENALTY * len(X)), max_iter=200)
        regression.fit(one_hot[:, np.flatnonzero(site != i)], X[:, i])
        rows = np.flatnonzero(site == i)[regression.classes_]
        matrix[np.ix_(rows, np.flatnonzero(site != i))] = regression.coef_
    blocks = (matrix + matrix.T).reshape(N_SITES, N_LETTERS, N_SITES, N_LETTERS) / 2
    blocks -= blocks.mean(axis=1, keepdims=True)
    blocks -= blocks.mean(axis=3, keepdims=True)
    pairs, columns = blocks.reshape(matrix.shape), np.arange(len(site))
    return EffectiveCouplings(columns * 0.0, pairs, None, "", site, np.arange(N_SITES), columns)


def rbm_couplings(**options: Any) -> Callable[[np.ndarray], EffectiveCouplings]:
    """Function of sequences that fits a model and sums its hidden units out."""
    rbm = TabularRBM(60, kinds=KINDS, random_state=0, **options)
    return lambda X: effective_couplings(rbm.fit(X))


def n_found(couplings: EffectiveCouplings, contacts: set[tuple[int, int]]) -> int:
    """Number of contacts among as many best scores."""
    scores = contact_scores(couplings)
    first, second = np.triu_indices(N_SITES, 1)
    best = np.argsort(-scores[first, second])[:N_CONTACTS]
    return len(contacts & set(zip(first[best].tolist(), second[best].tolist(), strict=True)))


METHODS: dict[str, Callable[[np.ndarray], EffectiveCouplings]] = {
    "TabularRBM": rbm_couplings(),
    "TabularRBM, short": rbm_couplings(**SHORT),
    "pseudo-likelihood": pseudo_likelihood_couplings,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", type=int, default=3)
    n_families = parser.parse_args().families
    question = where.begin(__doc__)
    results: dict[str, Any] = {}
    for n_rows in ROWS:
        found: dict[str, list[int]] = {name: [] for name in METHODS}
        seconds: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in range(n_families):
            X, contacts = family(n_rows, np.random.default_rng(seed))
            for name, couplings_of in METHODS.items():
                begin = time.process_time()
                couplings = couplings_of(X)
                seconds[name].append(time.process_time() - begin)
                found[name].append(n_found(couplings, contacts))
        for name in METHODS:
            row = {"found": found[name], "seconds": float(np.median(seconds[name]))}
            results.setdefault(str(n_rows), {})[name] = row
            print(f"{n_rows} rows, {name:17}: {row['found']}, {row['seconds']:.1f} s", flush=True)
    path = where.write("contacts", question, results, families=n_families, short=SHORT)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
