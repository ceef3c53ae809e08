"""How much faster than its peers, and how much slower than its matrix products, is training?

Persistent contrastive divergence, one step, 784 x 500. Passes over random binary rows, each job's
pass being the difference of a fit of three passes and one of one pass, halved, so that what a fit
does once does not count. "plain": no centring, no averages, a constant rate, rows in order, as
many chains as rows in a batch: what scikit-learn's class does. "all": centring, momentum, averages,
a falling rate and history. "products": the three matrix products that an update cannot do without,
data and chains stacked. "kernels": these, logistic functions, draws and the step, written by hand
in single precision on arrays that are reused: what training in NumPy can hope for. "rbms": the
PyTorch package of that name from the registry, its own update without centring, if it is installed.

Then the user's everyday call, fit(X) with defaults and float64 grey values of MNIST, beside
scikit-learn's defaults, per pass of 10,000 rows. Medians over rounds in turn. Run from the
repository, with one thread or two:

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python -m benchmarks.speed.training
    python -m benchmarks.speed.training
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.neural_network import BernoulliRBM as Peer
from threadpoolctl import threadpool_info

from benchmarks import data
from benchmarks import machine as where
from benchmarks.timing import ratio, seconds, take_turns
from skrbm import BernoulliRBM
from skrbm.core.numerics import logistic

N_VISIBLE, N_HIDDEN, N_ROUNDS = 784, 500, 7
N_UPDATES = {10: 200, 100: 60, 500: 20}
PAIRS = (
    ("scikit-learn", "plain"),
    ("plain", "products"),
    ("plain", "kernels"),
    ("scikit-learn", "kernels"),
    ("all", "plain"),
    ("rbms", "plain"),
)
PLAIN = {"centering": False, "average": False, "learning_rate_schedule": "constant"}


def n_threads() -> int:
    """Number that matrix products may take."""
    return max(pool["num_threads"] for pool in threadpool_info())


def seconds_a_pass(fit: Callable[[int], object]) -> float:
    """Mean of the second and third of three passes."""
    return (seconds(lambda: fit(3)) - seconds(lambda: fit(1))) / 2


def rows(n_rows: int, n_visible: int, dtype: Any) -> np.ndarray:
    return (np.random.default_rng(0).random((n_rows, n_visible)) < 0.2).astype(dtype)


def bare_products(X: np.ndarray, n_hidden: int, batch_size: int) -> Callable[[int], object]:
    """What no update can do without."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (X.shape[1], n_hidden)).astype(X.dtype)
    v = X[: 2 * batch_size]
    h = rng.random((len(v), n_hidden)).astype(X.dtype)

    def run(n_passes: int) -> None:
        for _ in range(n_passes * (len(X) // batch_size)):
            v @ weights
            h[:batch_size] @ weights.T
            v.T @ h

    return run


def bare_kernels(X: np.ndarray, n_hidden: int, batch_size: int) -> Callable[[int], object]:
    """Persistent contrastive divergence by hand, on arrays that are reused, and nothing around it."""
    rng = np.random.default_rng(0)
    X = X.astype(np.float32, copy=False)
    n_visible = X.shape[1]
    weights = rng.normal(0, 0.1, (n_visible, n_hidden)).astype(np.float32)
    visible_bias, hidden_bias = np.zeros(n_visible, np.float32), np.zeros(n_hidden, np.float32)
    chains = np.zeros((batch_size, n_hidden), np.float32)
    v, h = (np.empty((2 * batch_size, n), np.float32) for n in (n_visible, n_hidden))
    model, step = v[batch_size:], np.empty_like(weights)
    rates = np.repeat(np.array([0.05, -0.05], np.float32) / batch_size, batch_size)
    draw_visible, draw_hidden = (fast_draws((batch_size, n), rng) for n in (n_visible, n_hidden))

    def update(batch: np.ndarray) -> None:
        nonlocal visible_bias, hidden_bias, weights
        v[:batch_size] = batch
        np.matmul(chains, weights.T, out=model)
        np.add(model, visible_bias, out=model)
        draw_visible(logistic(model), model)
        np.matmul(v, weights, out=h)
        np.add(h, hidden_bias, out=h)
        draw_hidden(logistic(h)[batch_size:], chains)
        visible_bias += rates @ v
        hidden_bias += rates @ h
        np.multiply(h, rates[:, None], out=h)
        weights += np.matmul(v.T, h, out=step)

    def run(n_passes: int) -> None:
        for _ in range(n_passes):
            for begin in range(0, len(X), batch_size):
                update(X[begin : begin + batch_size])

    return run


def fast_draws(
    shape: tuple[int, int], rng: np.random.Generator
) -> Callable[[np.ndarray, np.ndarray], None]:
    """Draws from probabilities by 16 bits each, on arrays that are reused; the few left open take more."""
    scaled, threshold = np.empty(shape, np.float32), np.empty(shape, np.uint16)
    is_open, size = np.empty(shape, bool), scaled.size

    def draw(probability: np.ndarray, out: np.ndarray) -> None:
        np.multiply(probability, 2**16, out=scaled)
        np.minimum(scaled, 2**16 - 1, out=threshold, casting="unsafe")
        words = rng.bit_generator.random_raw(-(-size // 4)).view(np.uint16)[:size].reshape(shape)
        np.equal(words, threshold, out=is_open)
        np.less(words, threshold, out=out)
        if is_open.any():
            rest = scaled[is_open] - threshold[is_open]
            out[is_open] = rng.random(len(rest)) < rest

    return draw


def rbms(X: np.ndarray, n_hidden: int, batch_size: int) -> Callable[[int], object] | None:
    """Updates of the PyTorch package, as in its training loop but for files and shuffling."""
    try:
        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM
        from rbms.training.pcd import fit_batch_pcd
    except ImportError:
        return None
    torch.set_num_threads(n_threads())
    v = torch.from_numpy(X)

    def run(n_passes: int) -> None:
        rbm = BBRBM.init_parameters(n_hidden, SimpleNamespace(data=v), v.device, v.dtype)
        for parameter in rbm.parameters():
            parameter.grad = torch.zeros_like(parameter)
        chains = rbm.init_chains(batch_size)
        optimizer = torch.optim.SGD(rbm.parameters(), lr=0.05, maximize=True)
        weights = torch.ones(batch_size, 1, dtype=v.dtype)
        with torch.no_grad():
            for _ in range(n_passes):
                for begin in range(0, len(v), batch_size):
                    optimizer.zero_grad(set_to_none=False)
                    batch = v[begin : begin + batch_size], weights
                    chains, _ = fit_batch_pcd(batch, chains, rbm, 1, 1.0, centered=False)
                    optimizer.step()

    return run


def fits(X: np.ndarray, n_hidden: int, batch_size: int) -> dict[str, Callable[[int], object]]:
    """Trainings by the number of their passes."""
    options = {"batch_size": batch_size, "learning_rate": 0.05, "random_state": 0}
    own = options | {"n_particles": batch_size, "shuffle": False}
    jobs: dict[str, Callable[[int], object] | None] = {
        "plain": lambda n: BernoulliRBM(n_hidden, n_iter=n, **own, **PLAIN).fit(X),
        "all": lambda n: BernoulliRBM(n_hidden, n_iter=n, momentum=0.5, **own).fit(X),
        "scikit-learn": lambda n: Peer(n_hidden, n_iter=n, **options).fit(X),
        "products": bare_products(X, n_hidden, batch_size),
        "kernels": bare_kernels(X, n_hidden, batch_size),
        "rbms": rbms(X, n_hidden, batch_size),
    }
    return {name: job for name, job in jobs.items() if job is not None}


def compare(
    n_visible: int, n_hidden: int, batch_size: int, n_updates: int, dtype: type
) -> dict[str, float]:
    """Milliseconds of an update, and ratios."""
    jobs = fits(rows(n_updates * batch_size, n_visible, dtype), n_hidden, batch_size)
    times = take_turns(jobs, N_ROUNDS, seconds_a_pass)
    result = {f"{name}, ms": 1e3 * float(np.median(t)) / n_updates for name, t in times.items()}
    return result | {f"{a} / {b}": ratio(times, a, b) for a, b in PAIRS if a in times}


def everyday() -> dict[str, float]:
    """Seconds of a pass of the two classes' defaults over float64 rows."""
    X = data.mnist()[0][:10_000] / 255.0
    times = take_turns(
        {
            "skrbm": lambda: BernoulliRBM(n_iter=5, random_state=0).fit(X),
            "scikit-learn": lambda: Peer(n_iter=1, random_state=0).fit(X),
        },
        N_ROUNDS,
    )
    times["skrbm"] = [t / 5 for t in times["skrbm"]]
    result = {f"{name}, s a pass": float(np.median(t)) for name, t in times.items()}
    return result | {"scikit-learn / skrbm": ratio(times, "scikit-learn", "skrbm")}


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    results = {}
    for dtype in (np.float32, np.float64):
        for batch_size, n_updates in N_UPDATES.items():
            name = f"{dtype.__name__}, batch {batch_size}"
            results[name] = compare(N_VISIBLE, N_HIDDEN, batch_size, n_updates, dtype)
            show(name, results[name])
    results["everyday"] = everyday()
    show("everyday", results["everyday"])
    path = where.write(
        f"training_{n_threads()}_threads", question, results, threads=n_threads(), rounds=N_ROUNDS
    )
    print(path.relative_to(where.ROOT))


def show(name: str, result: dict[str, float]) -> None:
    print(f"\n{name}")
    for label, value in result.items():
        print(f"  {label:24} {value:8.2f}", flush=True)


if __name__ == "__main__":
    main()
