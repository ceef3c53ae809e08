"""Diagnostics of the mixing of Gibbs chains."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from skrbm.core.chains.gibbs import gibbs, sample_scattered
from skrbm.core.chains.jumps import draws_from_modes
from skrbm.core.diagnostics import LAG, ChainDiagnostics, chain_memory, trace_chains
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, like
from skrbm.estimators.inference.model import ArrayModel, model_of
from skrbm.estimators.input.array_libraries import computed_by_numpy
from skrbm.estimators.input.validation import RANDOM_STATE, checked_arguments, warn_user

MIN_TRACE_STEPS = 4  # steps, so that both halves of a chain have a variance
MIN_MEMORY_CHAINS = 20  # smallest number of chains for a correlation with their initial states
MAX_MEMORY = 0.5  # correlation with initial states above which chains do not mix: test_mixing.py


@computed_by_numpy
@checked_arguments(
    n_chains=[Interval(Integral, 2, None, closed="left"), None],
    n_steps=[Interval(Integral, MIN_TRACE_STEPS, None, closed="left")],
    init=["array-like", "sparse matrix", None],
    random_state=RANDOM_STATE,
)
def chain_diagnostics(
    rbm: Any,
    n_chains: int | None = None,
    n_steps: int = 1000,
    *,
    init: Any = None,
    random_state: Any = None,
) -> ChainDiagnostics:
    """Run Gibbs chains and diagnose their mixing.

    By default, the initial visible states are overdispersed. In each chain, all hidden units get
    the same input, from -8 nats in the first chain to 8 nats in the last. A hidden state is drawn
    with this input, then a visible state given the hidden state. Nearly all "binary" hidden units
    are thus in the lower state in the first chain, and in the upper state in the last. Each chain
    first takes ``n_steps // 2`` Gibbs steps that are not recorded. The autocorrelation time is
    estimated with Sokal's self-consistent window [1]_. R-hat is the rank-normalized split R-hat of
    Vehtari and others [2]_, who recommend values below 1.01.

    Parameters
    ----------
    rbm : BernoulliRBM, SpinRBM, GaussianBernoulliRBM or TabularRBM
        Fitted estimator, or one with public arrays assigned by hand.
    n_chains : int, default=None
        Number of chains, at least 2. If None, it is the number of rows of `init`, or 20 without
        `init`.
    n_steps : int, default=1000
        Number of recorded steps of each chain, at least 4.
    init : {array-like, sparse matrix} of shape (n_chains, n_features), default=None
        Initial visible states, such as rows of the data. They should cover all modes. If None,
        overdispersed states are used, which do not require data.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. If None, the random stream of the estimator is continued.

    Returns
    -------
    diagnostics : ChainDiagnostics
        Diagnostics of the chains. `traces` is a dict of the arrays "free_energy" (in nats),
        "mean_activation" and "principal_component", each of shape (n_chains, n_steps).
        `autocorrelation_time`, in steps, and `r_hat` are computed for each trace, and the largest
        results are reported.
        `effective_sample_size` is the number of independent samples that are equivalent to all
        chains together. `verdict` is a summary in words.

    Raises
    ------
    TypeError
        If `rbm` is not an instance of one of these classes, as for example an `RBMClassifier`; pass
        its attribute `estimator_` instead.
    ValueError
        If `n_chains` is not the number of rows of `init`, or if `init` is invalid or has a single
        row.

    References
    ----------
    .. [1] Sokal (1997), "Monte Carlo methods in statistical mechanics: foundations and new
       algorithms", in Functional Integration, 131-192, section 3.
       :doi:`10.1007/978-1-4899-0319-8_6`
    .. [2] Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), "Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2),
       667-718. :doi:`10.1214/20-BA1221`

    Examples
    --------
    Two visible units are nearly always equal, and change together about once in 3000 steps:

    >>> import numpy as np
    >>> from skrbm import SpinRBM, chain_diagnostics
    >>> rbm = SpinRBM(1)
    >>> rbm.components_ = np.full((1, 2), 4.0)
    >>> rbm.intercept_visible_, rbm.intercept_hidden_ = np.zeros(2), np.zeros(1)
    >>> diagnostics = chain_diagnostics(rbm, random_state=0)
    >>> print(diagnostics)  # doctest: +ELLIPSIS
    The chains do not mix: R-hat is ... Sample by parallel tempering.

    ``arviz.convert_to_dataset(diagnostics.traces)`` converts the traces for plots by ArviZ:

    >>> {name: trace.shape for name, trace in diagnostics.traces.items()}
    {'free_energy': (20, 1000), 'mean_activation': (20, 1000), 'principal_component': (20, 1000)}
    """
    model = model_of(rbm)
    machine, rng = model.machine(), model.inference_rng(random_state)
    if init is None:
        v = sample_scattered(machine, n_chains or 20, rng)
    else:
        v = dense(model.check_X(init)).astype(machine.dtype)
        if n_chains not in (None, len(v)):
            raise ValueError(
                f"n_chains={n_chains} expected to be the number of rows of init, got init of shape "
                f"{v.shape}. Leave n_chains out."
            )
        if len(v) < 2:
            raise ValueError(
                f"init expected to have at least 2 rows, since chains are compared, got shape "
                f"{v.shape}."
            )
    return trace_chains(machine, gibbs(machine, v, n_steps // 2, rng), n_steps, rng)


def chain_starts(
    model: ArrayModel,
    machine: Machine,
    anchors: Array,
    n_samples: int,
    n_steps: int,
    rng: np.random.Generator,
    cure: str = "Set n_temperatures=10.",
) -> Callable[[int], Array]:
    """Prepare draws of the initial visible states of Gibbs chains that sample a machine.

    Parameters
    ----------
    model : ArrayModel
        Model of the estimator.
    machine : Machine
        Machine to sample from, with as many hidden units as the model.
    anchors : ndarray of shape (n_anchors, n_visible)
        Visible states in the modes of the machine.
    n_samples : int
        Number of all chains.
    n_steps : int
        Number of Gibbs steps of the sample, for `warn_if_chains_stay`.
    rng : numpy.random.Generator
        Source of random numbers.
    cure : str, default="Set n_temperatures=10."
        Advice at the end of the warning.

    Returns
    -------
    draw : callable
        Function that draws a given number of visible states. They are in each mode about as often
        as it is probable (see `draws_from_modes`). If such draws cannot be had, they are states of
        random persistent chains, or states drawn without input from the hidden units if there are
        no persistent chains.

    Warns
    -----
    ConvergenceWarning
        If there are no such draws, and the chains do not mix.
    """
    from_modes = draws_from_modes(machine, anchors, n_samples, rng)
    if from_modes is not None:
        return from_modes
    warn_if_chains_stay(model, machine, n_steps, cure)
    chains = model.chain_states(machine, rng)

    def draw(n_draws: int) -> Array:
        if chains is None:
            return machine.visible.sample(machine.visible.zero_field(n_draws), rng)
        return chains[like(rng.integers(len(chains), size=n_draws), chains)]

    return draw


def warn_if_chains_stay(model: ArrayModel, machine: Machine, n_steps: int, cure: str) -> None:
    """Warn if Gibbs chains of `n_steps` steps do not mix between modes.

    During training, persistent chains also jump between modes, so that they usually cover all
    modes. For the check, copies of at most 100 of these chains take `2 * LAG` Gibbs steps without
    jumps. A lower bound on the correlation between the states before and after `n_steps` steps is
    extrapolated from these steps (see `chain_memory`). A warning is issued if this bound exceeds
    `MAX_MEMORY`. With fewer than `MIN_MEMORY_CHAINS` persistent chains, nothing is checked.

    Parameters
    ----------
    model : ArrayModel
        Model of the estimator. Its random streams are not advanced.
    machine : Machine
        Machine to sample from, with as many hidden units as the model.
    n_steps : int
        Number of Gibbs steps of the sample. A number below `2 * LAG` is replaced by `2 * LAG`.
    cure : str
        Advice at the end of the warning.
    """
    rng = model.annealing_rng()  # the same result in every call
    v = model.chain_states(machine, rng)
    if v is None or len(v) < MIN_MEMORY_CHAINS:
        return
    n_steps = max(n_steps, 2 * LAG)
    memory = chain_memory(machine, v, n_steps, rng)
    if memory > MAX_MEMORY:
        warn_user(
            f"The chains do not mix: after {n_steps} Gibbs steps, the correlation with their "
            f"initial states is still at least {memory:.2f}, extrapolated from {2 * LAG} steps. The "
            f"frequencies of modes in the sample depend on these states. {cure}",
            ConvergenceWarning,
        )
