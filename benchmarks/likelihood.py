"""The measure of the quality benchmarks: log-likelihood of held-out rows, from both sides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skrbm import BernoulliRBM
from skrbm.estimators.input.validation import AnnealingWarning

N_CHAINS = 100
N_TEMPERATURES = 10_000


def as_skrbm(rbm: Any) -> BernoulliRBM:
    """Arrays of another package's Bernoulli machine in ours, single precision."""
    ours = BernoulliRBM(len(rbm.components_), random_state=0)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(ours, name, getattr(rbm, name).astype(np.float32))
    return ours


def bracket(
    rbm: Any, test: np.ndarray, train: np.ndarray, n_temperatures: int = N_TEMPERATURES
) -> dict[str, float]:
    """Mean log-likelihood of test rows by annealing forwards and in reverse.

    Forwards starts from independent features with the training data's statistics and flatters
    the model where it errs; in reverse, from tempered samples of the model, it does the opposite.

    Returns
    -------
    bracket : dict of str to float
        "forward" and "reverse" in nats per row with their standard errors, and the mean of as
        many training rows, forwards.
    """
    free_energy, result = rbm.free_energy(test).mean(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnealingWarning)  # the errors are stated
        for name, method in (("forward", "ais"), ("reverse", "reverse_ais")):
            log_z = rbm.log_partition(
                method, n_chains=N_CHAINS, n_temperatures=n_temperatures, X=train, random_state=0
            )
            result[name] = float(-free_energy - log_z.value)
            result[f"{name}_error"] = log_z.std_error
    result["train"] = float(
        result["forward"] + free_energy - rbm.free_energy(train[: len(test)]).mean()
    )
    return result
