"""Are the best contact scores of a fit the contacts of a family of sequences?

Families of 30 sites with 21 letters are drawn from a Potts model in which 20 pairs of sites act on each
other: fields and couplings are normal, chains of Gibbs sampling start from independent letters. TabularRBM in
100 passes and in a twelfth of their updates, and a Potts model fitted by pseudo-likelihood (a multinomial
logistic regression of each site on the others, l2 = 0.01), are scored alike: Frobenius norm in the zero-sum
gauge, average-product correction. How many of the 20 best are contacts, and seconds of one core's time.

If the PyTorch package rbms is installed (`pip install rbms`), its `PBRBM` and TabularRBM then learn families of
1,000 sequences in turn with one thread: 60 binary hidden units, 400 updates of 100 rows, 100 persistent chains
of one Gibbs step. rbms runs its own update in its own single precision, without its files; TabularRBM has the
parameters in `SHORT`, and the defaults of all others, and runs in double precision. The times of both include
the initialization. The parameters of rbms are assigned to a TabularRBM to compute couplings. rbms scales each
gradient to a length of one; its learning rate is the best of 0.01, 0.03, 0.1, 0.3, 1, 2, 3, 5 and 10 by the
contacts of other families. Run from the repository:

    OMP_NUM_THREADS=1 python -m benchmarks.quality.contacts [--families 3] [--rounds 7]

`--families 0` measures rbms alone, `--rounds 0` leaves it out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks import machine as where
from benchmarks.timing import ratio
from skrbm import EffectiveCouplings, TabularRBM, effective_couplings
from skrbm.sequences import contact_scores

N_SITES, N_LETTERS, N_CONTACTS = 30, 21, 20
N_STEPS = 50  # of the chains that draw a family
PENALTY = 0.01  # of the pseudo-likelihood, for a mean over rows
ROWS = (300, 500, 1000)
KINDS = {site: ("categorical", list(range(N_LETTERS))) for site in range(N_SITES)}
N_HIDDEN, N_PASSES = 60, 100  # in 30 passes, 16 to 20 contacts are found
SHORT = {"n_iter": 40, "batch_size": 100, "learning_rate": 2.0}
N_PEER_ROWS = 1000  # of which SHORT makes 400 updates
PEER = {"n_updates": 400, "batch_size": 100, "n_chains": 100, "learning_rate": 5.0}
FIRST_PEER_SEED = 10  # of the families, none of which chose the learning rate


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
    rbm = TabularRBM(N_HIDDEN, kinds=KINDS, random_state=0, **options)
    return lambda X: effective_couplings(rbm.fit(X))


def n_found(couplings: EffectiveCouplings, contacts: set[tuple[int, int]]) -> int:
    """Number of contacts among as many best scores."""
    scores = contact_scores(couplings)
    first, second = np.triu_indices(N_SITES, 1)
    best = np.argsort(-scores[first, second])[:N_CONTACTS]
    return len(contacts & set(zip(first[best].tolist(), second[best].tolist(), strict=True)))


METHODS: dict[str, Callable[[np.ndarray], EffectiveCouplings]] = {
    "TabularRBM": rbm_couplings(n_iter=N_PASSES),
    "TabularRBM, short": rbm_couplings(**SHORT),
    "pseudo-likelihood": pseudo_likelihood_couplings,
}


def peer_fit(X: np.ndarray) -> Any:
    """Model of the package rbms, learned by the update of its training loop."""
    import torch
    from rbms.potts_bernoulli.classes import PBRBM
    from rbms.potts_bernoulli.utils import ensure_zero_sum_gauge
    from rbms.training.pcd import fit_batch_pcd

    torch.set_num_threads(1)
    torch.manual_seed(0)
    v = torch.from_numpy(X).to(torch.float32)
    weights = torch.ones(len(v))
    rbm = PBRBM.init_parameters(N_HIDDEN, SimpleNamespace(data=v), v.device, v.dtype)
    ensure_zero_sum_gauge(rbm)
    rbm.init_grad()
    chains = rbm.init_chains(PEER["n_chains"])
    optimizer = torch.optim.SGD(rbm.parameters(), lr=PEER["learning_rate"], maximize=True)
    with torch.no_grad():
        for _ in range(int(PEER["n_updates"])):
            rows = torch.randperm(len(v))[: PEER["batch_size"]]
            optimizer.zero_grad(set_to_none=False)
            chains, _ = fit_batch_pcd((v[rows], weights[rows]), chains, rbm, 1, 1.0)
            optimizer.step()
            ensure_zero_sum_gauge(rbm)
    return rbm


def peer_couplings(peer: Any, X: np.ndarray) -> EffectiveCouplings:
    """Couplings of a model of rbms, by a TabularRBM with its parameters."""
    rbm = TabularRBM(N_HIDDEN, kinds=KINDS, n_iter=1, random_state=0).fit(X)
    rbm.components_ = peer.weight_matrix.reshape(-1, N_HIDDEN).T.double().numpy()
    rbm.intercept_visible_ = peer.vbias.flatten().double().numpy()
    rbm.intercept_hidden_ = peer.hbias.double().numpy()
    return effective_couplings(rbm)


def beside_peer(n_rounds: int) -> dict[str, Any]:
    """Seconds of the fits and contacts found, by each package in turn, and the ratio of the seconds."""
    methods: dict[str, tuple[Callable[[np.ndarray], Any], Callable[..., EffectiveCouplings]]] = {
        "TabularRBM": (
            TabularRBM(N_HIDDEN, kinds=KINDS, random_state=0, **SHORT).fit,
            lambda rbm, X: effective_couplings(rbm),
        ),
        "rbms": (peer_fit, peer_couplings),
    }
    found: dict[str, list[int]] = {name: [] for name in methods}
    times: dict[str, list[float]] = {name: [] for name in methods}
    peer_fit(family(N_PEER_ROWS, np.random.default_rng(0))[0])  # compiles its kernels
    for seed in range(FIRST_PEER_SEED, FIRST_PEER_SEED + n_rounds):
        X, contacts = family(N_PEER_ROWS, np.random.default_rng(seed))
        for name, (fit, couplings_of) in methods.items():
            begin = time.process_time()
            model = fit(X)
            times[name].append(time.process_time() - begin)
            found[name].append(n_found(couplings_of(model, X), contacts))
    result: dict[str, Any] = {
        name: {"found": found[name], "seconds": float(np.median(times[name]))} for name in methods
    }
    return result | {"rbms / TabularRBM": ratio(times, "rbms", "TabularRBM")}


def has_peer() -> bool:
    """Tell whether rbms is installed, and say so if not."""
    try:
        import rbms  # noqa: F401  # only to see whether it can be imported
    except ImportError:
        print("rbms is not installed and is left out; `pip install rbms` installs it.")
        return False
    return True


def families(question: str, n_families: int) -> Path:
    """Measure and write what each method finds in each family, and how long it takes."""
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
    return where.write("contacts", question, results, families=n_families, short=SHORT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    question = where.begin(__doc__)
    if options.families:
        path = families(question, options.families)
        print(path.relative_to(where.ROOT))
    if options.rounds and has_peer():
        versions = {name: version(name) for name in ("rbms", "torch")}
        print(results := beside_peer(options.rounds))
        path = where.write("contacts_rbms", question, results, peer=PEER, short=SHORT, **versions)
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
