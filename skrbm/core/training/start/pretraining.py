"""Pretraining of a few hidden units on well-separated clusters by the exact gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import logsumexp

from skrbm.core.centering import recenter
from skrbm.core.likelihood.exact import log_partition, log_partition_and_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, weighted_mean
from skrbm.core.training.start.clusters import Clusters
from skrbm.core.training.start.initialization import (
    column_variances,
    initial_hidden_layer,
    initial_machine,
)
from skrbm.core.units import Units

MAX_PRETRAINED_UNITS = 10  # hidden units, whose up to 1,024 states are enumerated in every step
# Largest numbers of steps before and after the addition of units.
N_LBFGS_STEPS, N_ADDED_UNITS_STEPS = 100, 300
# Initial log-odds in nats: all states with one active hidden unit against the state with none.
INITIAL_LOG_ODDS = 2.0
# Difference in nats between the log-likelihoods of a mixture of the clusters and of the machine:
# above the first value, hidden units are added; above the second, pretraining is discarded
# (tests/core/training/start/test_pretraining.py).
SMALL_LIKELIHOOD_LOSS, MAX_LIKELIHOOD_LOSS = 3.0, 12.0
N_LIKELIEST_STATES = 32  # largest number of hidden states to whose visible means chains may jump
MIN_RELATIVE_GAIN = 1e-6  # relative increase of the log-likelihood at which L-BFGS stops

Bounds = dict[str, tuple[Any, Any]]  # by the names of `Machine.parameters`


def pretrained_machine(
    data: Units,
    mode: Units,
    hidden: type[Units],
    modes: Clusters,
    n_hidden: int,
    variance: Array,
    rng: np.random.Generator,
    *,
    n_steps: tuple[int, int] = (N_LBFGS_STEPS, N_ADDED_UNITS_STEPS),
    max_loss: float = MAX_LIKELIHOOD_LOSS,
) -> Machine | None:
    """Pretrain a machine with few hidden units, so that its modes are the clusters of the data.

    If there are more than two modes, each has one hidden unit. The weights of this unit are
    initialized such that activating the unit moves the visible means from the mean of the modes
    approximately to this mode. If there are two modes, a single unit is used, which moves the
    visible means from the larger mode to the smaller one. L-BFGS-B [1]_ then maximizes the exact
    likelihood. If the mean log-likelihood is still more than `SMALL_LIKELIHOOD_LOSS` nats below
    that of a mixture of the clusters, units are added up to a total of `n_hidden`, and L-BFGS-B is
    run again. A common reason for the low likelihood is that states with several active units are
    modes without data, which the added units can suppress.

    Parameters
    ----------
    data, mode : Units
        Visible layers in double precision. Without a field, the distribution of `data` resembles
        the data, and the distribution of `mode` resembles rows with the mean `modes.origin` and the
        variances `modes.variance`.
    hidden : type
        Type of the hidden units; it must have two states.
    modes : Clusters
        Clusters of the data.
    n_hidden : int
        Largest number of hidden units, including added ones. Values above `MAX_PRETRAINED_UNITS`
        count as `MAX_PRETRAINED_UNITS`.
    variance : ndarray of shape (n_visible,)
        Variance of the data.
    rng : numpy.random.Generator
        Source of random numbers for the weights of added units.
    n_steps : tuple of int, default=(N_LBFGS_STEPS, N_ADDED_UNITS_STEPS)
        Two maximum numbers of quasi-Newton steps: the first applies to the machine before units are
        added, the second to the machine with added units.
    max_loss : float, default=MAX_LIKELIHOOD_LOSS
        Largest amount, in nats, by which the mean log-likelihood of the machine may be lower than
        the mean log-likelihood of a mixture of the clusters. Without added units, a difference of
        at most `SMALL_LIKELIHOOD_LOSS` is always accepted.

    Returns
    -------
    machine : Machine or None
        Plain machine, or None if its mean log-likelihood is too low (see `max_loss`).

    References
    ----------
    .. [1] Byrd, Lu, Nocedal, Zhu (1995), "A limited memory algorithm for bound constrained
       optimization", SIAM Journal on Scientific Computing 16(5), 1190-1208.
       :doi:`10.1137/0916069`
    """
    v, weights, origin = modes.rows, modes.weights, modes.origin
    visible = mode.recentered(origin, mode.zero_field(1)[0])
    counts = np.rint(len(v) * modes.shares)
    n_origin = counts[0] if len(counts) == 2 else counts.mean()
    fields = _fields(visible, modes, n_origin, counts)
    bias = np.log(modes.shares) - visible.log_partition(fields)
    log_density = logsumexp(bias + visible.signal(v) @ fields.T, axis=1) - visible.energy(v)
    mixture = float(weights @ log_density)
    if len(fields) == 2:
        fields, bias = fields[1:], bias[1:] - bias[0]
    else:
        bias += visible.log_partition(visible.zero_field(1)) + INITIAL_LOG_ODDS
    low, distance = hidden.support.low, hidden.support.high - hidden.support.low
    layer = initial_hidden_layer(hidden, len(fields))
    layer = layer.recentered(np.full(len(fields), low), layer.zero_field(1)[0])
    machine = Machine(visible, layer, fields.T / distance)
    machine.assign(machine.parameters | {"hidden_bias": bias / distance})
    bounds = parameter_bounds(machine, variance, n_origin, counts[-len(fields) :])
    machine = maximize_likelihood(machine, v, data, bounds, n_steps[0], weights)
    is_likely = log_likelihood(machine, v, weights) >= mixture - SMALL_LIKELIHOOD_LOSS
    if not is_likely and n_hidden > len(fields):
        more = min(n_hidden, MAX_PRETRAINED_UNITS)
        machine = add_hidden_units(
            recenter(machine, None, None), more, weights @ v, modes.variance, rng
        )
        machine = recenter(machine, origin, np.full(more, low))
        n_rows = np.append(counts, np.full(more - len(counts), counts.mean()))
        bounds = parameter_bounds(machine, variance, n_origin, n_rows[-more:])
        machine = maximize_likelihood(machine, v, data, bounds, n_steps[1], weights)
    is_likely = is_likely or log_likelihood(machine, v, weights) >= mixture - max_loss
    return recenter(machine, None, None) if is_likely else None


def _fields(visible: Units, modes: Clusters, n_origin: float, counts: Array) -> Array:
    """Fields that move the visible means from the origin to the modes.

    The fields have shape (n_modes, n_visible). If the units are not discrete, the fields are
    computed to first order in the distances between origin and modes.
    """
    if visible.is_discrete:
        ends = [
            _resembling(visible, center, n_rows).bias
            for center, n_rows in zip(modes.centers, counts, strict=True)
        ]
        return ends - _resembling(visible, modes.origin, n_origin).bias
    response = column_variances(visible)
    is_constant = response == 0
    distance = modes.centers - modes.origin
    return np.where(is_constant, 0, distance) / (response + is_constant)


def _resembling(like: Units, mean: Array, n_samples: float) -> Units:
    """Plain discrete layer with the means of `n_samples` rows, smoothed so that biases are finite.

    The layer has the type and the options of the layer `like`.
    """
    variance = np.zeros_like(mean)
    return type(like).start(mean, variance, int(n_samples), **like.start_options).natural()


def parameter_bounds(machine: Machine, variance: Array, n_origin: float, n_rows: Array) -> Bounds:
    """Compute bounds of the parameters of a machine for pretraining.

    The result includes `Units.bounds` of the visible layer. If the visible units are discrete, the
    weights and the visible biases have bounds as well. These correspond to smoothed frequencies. A
    value of a binary unit that does not occur in n rows has a probability of 1 / (2 n + 2).

    Parameters
    ----------
    machine : Machine
        Machine to train.
    variance : ndarray of shape (n_visible,)
        Variance of the data.
    n_origin : float
        Number of rows attributed to the state in which all hidden units are off.
    n_rows : ndarray of shape (n_hidden,)
        For each hidden unit, the number of rows attributed to the state in which it is on.

    Returns
    -------
    bounds : dict of str to tuple of ndarray
        Lower and upper bounds, by the names of `Machine.parameters`. Unbounded parameters are
        absent.
    """
    visible, hidden = machine.visible, machine.hidden.support
    bounds: Bounds = {f"visible_{k}": ends for k, ends in visible.bounds(variance).items()}
    if visible.is_discrete:
        low, high = (_resembling(visible, ends, n_origin) for ends in visible.column_bounds)
        biases = [_resembling(visible, visible.column_bounds[1], n).bias for n in n_rows]
        bound = (np.stack(biases, axis=1) - low.bias[:, None]) / (hidden.high - hidden.low)
        bounds["weights"] = (-bound, bound)
        for name, least in low.parameters.items():
            bounds[f"visible_{name}"] = (least, high.parameters[name])
    return bounds


def log_likelihood(machine: Machine, v: Array, sample_weight: Array | None = None) -> float:
    """Exact mean log-likelihood of rows, in nats.

    The partition function is a sum over all states of the layer with fewer states. The mean is
    weighted by `sample_weight`, of shape (n_samples,), unless it is None.
    """
    return -weighted_mean(machine.free_energy(v), sample_weight) - log_partition(machine)


def maximize_likelihood(
    machine: Machine,
    v: Array,
    data: Units,
    bounds: Bounds,
    n_steps: int,
    sample_weight: Array | None = None,
) -> Machine:
    """Maximize the exact log-likelihood of rows by L-BFGS-B.

    Parameters
    ----------
    machine : Machine
        Initial machine. A step enumerates all states of the layer with fewer states.
    v : ndarray of shape (n_samples, n_visible)
        Training rows.
    data : Units
        Visible layer whose distribution, without a field, resembles the data. Its metric scales the
        steps.
    bounds : dict of str to tuple of ndarray
        Lower and upper bounds, by parameter name. Parameters without an entry are unbounded.
    n_steps : int
        Maximum number of steps.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, which sum to one. If None, all rows have equal weights.

    Returns
    -------
    machine : Machine
        Copy of the machine, in double precision, with the optimized parameters.

    Raises
    ------
    TooManyStatesError
        If both layers have more than `MAX_STATES` states.
    """
    machine = machine.astype(np.float64, copy=True)
    names = list(machine.parameters)
    shapes = [array.shape for array in machine.parameters.values()]
    ends = np.cumsum([array.size for array in machine.parameters.values()])

    def flat(values: dict[str, Any], missing: float) -> Array:
        """Concatenate values of all parameters to a vector; absent values are set to `missing`."""
        arrays = (
            np.broadcast_to(values.get(n, missing), s) for n, s in zip(names, shapes, strict=True)
        )
        return np.concatenate([array.ravel() for array in arrays])

    metric = data.metric()
    multiples = {f"visible_{name}": m for name, m in metric.parameters.items()}
    multiples["weights"] = np.broadcast_to(metric.signal, machine.visible.n_columns)[:, None]
    unit = np.sqrt(flat(multiples, 1.0))
    start = flat(machine.parameters, 0.0)
    low = flat({name: interval[0] for name, interval in bounds.items()}, -np.inf)
    high = flat({name: interval[1] for name, interval in bounds.items()}, np.inf)

    def assign(x: Array) -> None:
        parts = np.split(x * unit, ends[:-1])
        machine.assign({n: p.reshape(s) for n, p, s in zip(names, parts, shapes, strict=True)})

    def loss(x: Array) -> tuple[float, Array]:
        assign(x)
        value, negative = log_partition_and_gradient(machine)
        value += weighted_mean(machine.free_energy(v), sample_weight)
        positive = machine.gradient(v, sample_weight=sample_weight)
        gradient = {name: array - negative[name] for name, array in positive.items()}
        return float(value), -unit * flat(gradient, 0.0)

    with np.errstate(all="ignore"):
        box = np.stack([low, high], axis=1) / unit[:, None]
        factor = MIN_RELATIVE_GAIN / np.finfo(float).eps
        best, *_ = fmin_l_bfgs_b(loss, start / unit, bounds=box, factr=factor, maxiter=n_steps)
    assign(best)
    return machine


def add_hidden_units(
    machine: Machine, n_hidden: int, mean: Array, variance: Array, rng: np.random.Generator
) -> Machine:
    """Add hidden units with small random weights to a machine.

    Parameters
    ----------
    machine : Machine
        Plain machine in double precision.
    n_hidden : int
        Number of hidden units after the addition, at least the current number.
    mean, variance : ndarray of shape (n_visible,)
        Mean and variance of the columns of the data, which determine the biases of the added units
        and the scale of their weights (see `initial_machine`).
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        Plain machine with `n_hidden` hidden units, or `machine` itself if no units are added. Its
        visible biases compensate for the mean field and the coupling of the added units, as in
        `initial_machine`.
    """
    n_more = n_hidden - machine.hidden.n_columns
    if n_more == 0:
        return machine
    kind = type(machine.hidden)
    more = initial_machine(machine.visible, initial_hidden_layer(kind, n_more), mean, variance, rng)
    weights = np.hstack([machine.weights, more.weights])
    wide = Machine(more.visible, initial_hidden_layer(kind, n_hidden), weights)
    bias = np.append(machine.parameters["hidden_bias"], more.parameters["hidden_bias"])
    wide.assign(wide.parameters | {"hidden_bias": bias})
    return wide


def mode_means(machine: Machine) -> Array:
    """Visible means given the most likely hidden states.

    Parameters
    ----------
    machine : Machine
        Plain machine whose hidden units are few and discrete.

    Returns
    -------
    v : ndarray of shape (n_states, n_visible)
        Visible means given the `N_LIKELIEST_STATES` most likely hidden states, or given all hidden
        states if there are fewer. Besides the modes of the machine, these may include states that
        become modes in training.
    """
    h = machine.hidden.states(0, int(machine.hidden.n_states))
    order = np.argsort(machine.transposed.free_energy(h))
    return machine.mean_visible(h[order[:N_LIKELIEST_STATES]])
