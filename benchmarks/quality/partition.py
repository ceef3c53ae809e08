"""Can the partition functions be believed: do stated errors cover the exact values?

50 random models each of Bernoulli, spin and Gaussian units (the three parameterisations in turn), of 2
to 12 visible and 2 to 10 hidden units, whose weights and biases have standard deviations of 0.5, 1, 1.5
and 2 in turn. Annealed importance sampling with 100 chains and 2000 inverse temperatures from the
statistics of 1000 exact samples; reverse annealing from 100 other ones. "bound" is the mean of the
log-weights, which errs low forwards and high in reverse. Then the exact sum over 2^25 hidden states of
a model with 784 visible units. Run from the repository:

    python -m benchmarks.quality.partition [--models 50]
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from scipy.special import logsumexp

from benchmarks import machine as where
from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood import exact
from skrbm.core.likelihood.annealing import (
    _anneal,
    annealed_log_partition,
    inverse_temperatures,
    reversed_log_partition,
)
from skrbm.core.machine import Machine
from skrbm.core.units import PARAMETERIZATIONS, Bernoulli, Categorical, Gaussian, Spin, Units

N_CHAINS, N_TEMPERATURES, N_SAMPLES = 100, 2_000, 1_000
SCALES = (0.5, 1.0, 1.5, 2.0)
N_CATEGORIES = 3


def random_machine(kind: str, index: int, rng: np.random.Generator) -> Machine:
    """Machine of a random size."""
    n_visible, n_hidden = rng.integers(2, [13, 11])
    scale = SCALES[index % len(SCALES)]
    bias, other = rng.normal(0, scale, n_visible), rng.normal(0, scale, n_hidden)
    weights = rng.normal(0, scale, (n_visible, n_hidden))
    if kind == "categorical":
        n_visible *= N_CATEGORIES
        weights, bias = rng.normal(0, scale, (n_visible, n_hidden)), rng.normal(0, scale, n_visible)
        n_categories = (N_CATEGORIES,) * (n_visible // N_CATEGORIES)
        return Machine(Categorical(bias, n_categories=n_categories), Bernoulli(other), weights)
    if kind == "gaussian":
        name = list(PARAMETERIZATIONS)[index % len(PARAMETERIZATIONS)]
        visible = Gaussian(bias, rng.normal(0, 0.7, n_visible), parameterization=name)
        return Machine(visible, Bernoulli(other), weights)
    units = {"bernoulli": Bernoulli, "spin": Spin}[kind]
    return Machine(units(bias), units(other), weights)


def exact_samples(machine: Machine, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Independent visible states, by enumeration of the hidden ones."""
    h = machine.hidden.states(0, int(machine.hidden.n_states))
    log_weights = -machine.transposed.free_energy(h)
    drawn = rng.choice(len(h), n_samples, p=np.exp(log_weights - logsumexp(log_weights)))
    return machine.sample_visible(h[drawn], rng)


def base_of(machine: Machine, v: np.ndarray) -> Units:
    """Layer without a field that has the statistics of some rows."""
    names = ("parameterization", "n_categories")
    options = {name: x for name, x in vars(machine.visible).items() if name in names}
    start = type(machine.visible).start
    return start(v.mean(axis=0), v.var(axis=0), len(v), **options)


def trial(kind: str, index: int) -> dict[str, float]:
    """Errors of both estimates for one model, in nats and in standard errors."""
    rng = np.random.default_rng([index, len(kind)])
    machine = random_machine(kind, index, rng)
    v = exact_samples(machine, N_SAMPLES, rng)
    path, truth = TemperedPath.to(machine, base_of(machine, v)), exact.log_partition(machine)
    forward = annealed_log_partition(path, N_CHAINS, N_TEMPERATURES, rng)
    samples = exact_samples(machine, N_CHAINS, rng)
    reverse = reversed_log_partition(path, samples, N_TEMPERATURES, rng)
    betas = inverse_temperatures(N_TEMPERATURES)
    known = truth - path.base_log_partition - path.energy_shift
    low = _anneal(path, path.sample_base(N_CHAINS, rng), betas.tolist(), rng).mean()
    high = -_anneal(path, samples, betas[::-1].tolist(), rng).mean()
    return {
        "forward": forward.value - truth,
        "forward_z": (forward.value - truth) / forward.std_error,
        "reverse": reverse.value - truth,
        "reverse_z": (reverse.value - truth) / reverse.std_error,
        "forward_bound": low - known,
        "reverse_bound": high - known,
    }


def large_sum(n_visible: int = 784, n_hidden: int = 25) -> dict[str, float]:
    """Seconds of the largest sum that is allowed, with its value for coupled and uncoupled units."""
    rng = np.random.default_rng(0)
    bias, other = rng.normal(0, 1, n_visible), rng.normal(0, 1, n_hidden)
    weights = rng.normal(0, 0.1, (n_visible, n_hidden))
    weights[:, n_hidden // 2 :] = 0
    machine = Machine(Bernoulli(bias), Bernoulli(other), weights)
    begin = time.perf_counter()
    value = exact.log_partition(machine, n_jobs=2)
    seconds = time.perf_counter() - begin
    coupled = n_hidden // 2
    part = Machine(Bernoulli(bias), Bernoulli(other[:coupled]), weights[:, :coupled])
    rest = np.logaddexp(0, other[coupled:]).sum()
    return {"seconds": seconds, "value": value, "error": value - exact.log_partition(part) - rest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=50)
    n_models = parser.parse_args().models
    question = where.begin(__doc__)
    print(
        f"\n{'units':10} {'direction':9} {'1 se':>5} {'2 se':>5} {'4 se':>5} {'mean error':>11} "
        f"{'mean bound':>11}   (of {n_models} models; nats)"
    )
    results = {}
    for kind, direction in itertools.product(
        ("bernoulli", "spin", "gaussian"), ("forward", "reverse")
    ):
        if direction == "forward":
            trials = [trial(kind, index) for index in range(n_models)]
        z = np.abs([t[f"{direction}_z"] for t in trials])
        row = {f"within_{k}": int((z < k).sum()) for k in (1, 2, 4)}
        row["mean_error"] = float(np.mean([t[direction] for t in trials]))
        row["mean_bound"] = float(np.mean([t[f"{direction}_bound"] for t in trials]))
        results[f"{kind} {direction}"] = row
        print(
            f"{kind:10} {direction:9} {row['within_1']:5} {row['within_2']:5} {row['within_4']:5} "
            f"{row['mean_error']:11.5f} {row['mean_bound']:11.5f}",
            flush=True,
        )
    results["784 x 25"] = large = large_sum()
    print(f"\n784 x 25, exactly: {large['seconds']:.0f} s on two cores, error {large['error']:.1e}")
    path = where.write(
        "partition",
        question,
        results,
        models=n_models,
        chains=N_CHAINS,
        temperatures=N_TEMPERATURES,
    )
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
