"""How fast are features and scores beside scikit-learn's?

transform of 60,000 x 784 rows by 500 hidden units; score_samples, exact, of 10,000 rows of the same model;
and of the 8x8 digits by 64 units, where scikit-learn's estimate from one random pixel is repeated until the
standard error of a row's score is a tenth of the rows' spread. Medians over rounds in turn. Run from
the repository:

    python -m benchmarks.speed.inference
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM as Peer

from benchmarks import machine as where
from benchmarks.timing import ratio, take_turns
from skrbm import BernoulliRBM

N_ROUNDS = 7
SHARE = 0.1  # of the spread of the rows' scores that a row's error may be


def twins(X: np.ndarray, n_hidden: int) -> tuple[BernoulliRBM, Peer]:
    """The same model in both classes."""
    ours = BernoulliRBM(n_hidden, n_iter=1, random_state=0).fit(X)
    peer = Peer(n_hidden, n_iter=0, random_state=0).fit(X[:10])
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(peer, name, getattr(ours, name))
    return ours, peer


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {f"{name}, s": float(np.median(t)) for name, t in times.items()}


def compare_transform(X: np.ndarray, ours: BernoulliRBM, peer: Peer) -> dict[str, float]:
    times = take_turns(
        {"skrbm": lambda: ours.transform(X), "scikit-learn": lambda: peer.transform(X)}, N_ROUNDS
    )
    return medians(times) | {"ratio": ratio(times, "scikit-learn", "skrbm")}


def compare_scores() -> dict[str, float]:
    """Exact scores of digits beside random ones that are repeated until they are as good."""
    X = (load_digits().data > 7).astype(np.float64)
    ours, peer = twins(X, 64)
    exact = ours.score_samples(X)
    peer.random_state = np.random.RandomState(0)
    draws = np.array([peer.score_samples(X) for _ in range(200)])
    error, spread = draws.std(axis=0).mean(), exact.std()
    n_repeats = int(np.ceil((error / (SHARE * spread)) ** 2))
    times = take_turns(
        {
            "skrbm": lambda: ours.score_samples(X),
            "scikit-learn": lambda: [peer.score_samples(X) for _ in range(n_repeats)],
        },
        N_ROUNDS,
    )
    return medians(times) | {
        "repeats": n_repeats,
        "error of one draw, nats": float(error),
        "spread of rows, nats": float(spread),
        "ratio": ratio(times, "scikit-learn", "skrbm"),
    }


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = (rng.random((60_000, 784)) < 0.2).astype(np.float32)
    ours, peer = twins(X[:2000], 500)
    results = {
        "transform, float32": compare_transform(X, ours, peer),
        "transform, float64": compare_transform(X.astype(np.float64), *twins(X[:2000] / 1.0, 500)),
        "score_samples of 10,000 rows": medians(
            take_turns({"skrbm": lambda: ours.score_samples(X[:10_000])}, 1)
        ),
        "score_samples of digits": compare_scores(),
    }
    for name, result in results.items():
        print(f"\n{name}")
        for label, value in result.items():
            print(f"  {label:24} {value:8.4f}", flush=True)
    path = where.write("inference", question, results, rounds=N_ROUNDS)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
