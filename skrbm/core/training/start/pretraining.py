"""Exact pretraining of a few hidden units on well-separated clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import logsumexp

from skrbm.core.centering import recenter
from skrbm.core.likelihood.exact import expected_gradient, log_partition
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, mean_of_rows
from skrbm.core.training.start.clusters import Clusters
from skrbm.core.training.start.initialization import (
    column_variances,
    initial_hidden_layer,
    initial_machine,
)
from skrbm.core.units import Units

MAX_PRETRAINED_UNITS = 10  # hidden units, whose 1,024 states are summed in every step
N_LBFGS_STEPS, N_WIDENED_STEPS = 100, 300  # steps, with a unit for each cluster and with more
INITIAL_LOG_ODDS = 2.0  # nats of a hidden state of one unit over that of none
# Loss against a mixture of the clusters, in nats: beyond the first hidden units are added, beyond the
# second training does better alone (tests/core/training/start/test_pretraining.py).
SMALL_LIKELIHOOD_LOSS, MAX_LIKELIHOOD_LOSS = 3.0, 12.0
N_LIKELIEST_STATES = 32  # hidden states that chains may jump to
MIN_RELATIVE_GAIN = 1e-6  # of the log-likelihood, in a step

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
    n_steps: tuple[int, int] = (N_LBFGS_STEPS, N_WIDENED_STEPS),
    max_loss: float = MAX_LIKELIHOOD_LOSS,
) -> Machine | None:
    """Machine of few hidden units that has modes of the data, and hardly any other.

    A hidden unit leads to every mode from the mean of all, or to one of two modes from the other.
    Quasi-Newton steps [1]_ then follow the exact gradient of the likelihood. Where two units that
    are on together make a mode without rows, more of them learn to be off there.

    Parameters
    ----------
    data, mode : Units
        Double precision layers that resemble, without a field, the data and the rows of a mode
        around the origin of all.
    hidden : type
        Of the hidden units, which have two states.
    modes : Clusters
        To be learned.
    n_hidden : int
        Largest number of hidden units.
    variance : ndarray of shape (n_visible,)
        Of the data.
    rng : numpy.random.Generator
        Source of random numbers.
    n_steps : tuple of int, default=(N_LBFGS_STEPS, N_WIDENED_STEPS)
        Largest numbers of quasi-Newton steps, with a unit for each cluster and with more.
    max_loss : float, default=MAX_LIKELIHOOD_LOSS
        Allowed loss of log-likelihood against the mixture, in nats.

    Returns
    -------
    machine : Machine or None
        Plain. None where it is less likely by `max_loss` than a mixture of the modes.

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
    machine = climbed(machine, v, data, bounds, n_steps[0], weights)
    is_likely = log_likelihood(machine, v, weights) >= mixture - SMALL_LIKELIHOOD_LOSS
    if not is_likely and n_hidden > len(fields):
        more = min(n_hidden, MAX_PRETRAINED_UNITS)
        machine = widened(recenter(machine, None, None), more, weights @ v, modes.variance, rng)
        machine = recenter(machine, origin, np.full(more, low))
        n_rows = np.append(counts, np.full(more - len(counts), counts.mean()))
        bounds = parameter_bounds(machine, variance, n_origin, n_rows[-more:])
        machine = climbed(machine, v, data, bounds, n_steps[1], weights)
    is_likely = is_likely or log_likelihood(machine, v, weights) >= mixture - max_loss
    return recenter(machine, None, None) if is_likely else None


def _fields(visible: Units, modes: Clusters, n_origin: float, counts: Array) -> Array:
    """Fields that lead from the origin to the modes."""
    if visible.is_discrete:
        ends = [_resembling(visible, *own).bias for own in zip(modes.centers, counts, strict=True)]
        return np.asarray(ends - _resembling(visible, modes.origin, n_origin).bias)
    response = column_variances(visible)
    is_constant = response == 0
    distance = modes.centers - modes.origin
    return np.asarray(np.where(is_constant, 0, distance) / (response + is_constant))


def _resembling(like: Units, mean: Array, n_samples: float) -> Units:
    """Discrete layer of these means, as far as some rows can tell them."""
    variance = np.zeros_like(mean)
    return type(like).start(mean, variance, int(n_samples), **like.start_options).natural()


def parameter_bounds(machine: Machine, variance: Array, n_origin: float, n_rows: Array) -> Bounds:
    """Ranges of parameters: those of training, and of what some rows can tell.

    Few rows know little of what is rare: a bit that is never on among them may be so in one of
    twice as many.

    Parameters
    ----------
    machine : Machine
        Whose visible layer, and the states of whose hidden units, are asked.
    variance : ndarray of shape (n_visible,)
        Of the data.
    n_origin : float
        Number of rows where all hidden units are off.
    n_rows : ndarray of shape (n_hidden,)
        Number of rows where each is on.

    Returns
    -------
    bounds : dict of str to tuple of ndarray
        Least and greatest values.
    """
    visible, hidden = machine.visible, machine.hidden.support
    bounds: Bounds = {f"visible_{k}": own for k, own in visible.bounds(variance).items()}
    if visible.is_discrete:
        low, high = (_resembling(visible, ends, n_origin) for ends in visible.column_bounds)
        ends = [_resembling(visible, visible.column_bounds[1], n).bias for n in n_rows]
        reach = (np.stack(ends, axis=1) - low.bias[:, None]) / (hidden.high - hidden.low)
        bounds["weights"] = (-reach, reach)
        for name, least in low.parameters.items():
            bounds[f"visible_{name}"] = (least, high.parameters[name])
    return bounds


def log_likelihood(machine: Machine, v: Array, sample_weight: Array | None = None) -> float:
    """Weighted mean over rows, in nats, by a sum over all states of the smaller discrete layer."""
    return -mean_of_rows(machine.free_energy(v), sample_weight) - log_partition(machine)


def climbed(
    machine: Machine,
    v: Array,
    data: Units,
    bounds: Bounds,
    n_steps: int,
    sample_weight: Array | None = None,
) -> Machine:
    """Machine under which some rows are likelier.

    Parameters
    ----------
    machine : Machine
        Double precision, with few hidden states.
    v : ndarray of shape (n_samples, n_visible)
        The rows.
    data : Units
        Visible layer that resembles the data without a field, whose metric is that of the steps.
    bounds : dict of str to tuple of ndarray
        Least and greatest value of some parameters.
    n_steps : int
        Largest number of steps.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, of a sum of one; None weighs them alike.

    Returns
    -------
    machine : Machine
        With arrays of its own.
    """
    machine = machine.astype(np.float64, copy=True)
    names = list(machine.parameters)
    shapes = [array.shape for array in machine.parameters.values()]
    ends = np.cumsum([array.size for array in machine.parameters.values()])

    def flat(values: dict[str, Any], missing: float) -> Array:
        """One number for every parameter."""
        own = (
            np.broadcast_to(values.get(n, missing), s) for n, s in zip(names, shapes, strict=True)
        )
        return np.concatenate([array.ravel() for array in own])

    metric = data.metric(None)
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
        positive, negative = (
            machine.gradient(v, sample_weight=sample_weight),
            expected_gradient(machine),
        )
        gradient = {name: own - negative[name] for name, own in positive.items()}
        return -log_likelihood(machine, v, sample_weight), -unit * flat(gradient, 0.0)

    with np.errstate(all="ignore"):
        box = np.stack([low, high], axis=1) / unit[:, None]
        factor = MIN_RELATIVE_GAIN / np.finfo(float).eps
        best, *_ = fmin_l_bfgs_b(loss, start / unit, bounds=box, factr=factor, maxiter=n_steps)
    assign(best)
    return machine


def widened(
    machine: Machine, n_hidden: int, mean: Array, variance: Array, rng: np.random.Generator
) -> Machine:
    """Machine with more hidden units, which are hardly coupled to the visible ones.

    Parameters
    ----------
    machine : Machine
        Plain, in double precision.
    n_hidden : int
        Number of hidden units, at least its own.
    mean, variance : ndarray of shape (n_visible,)
        Of the data.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    machine : Machine
        Plain.
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


def likeliest_means(machine: Machine) -> Array:
    """Visible means given the hidden states that are likeliest.

    Parameters
    ----------
    machine : Machine
        Plain, with few hidden states.

    Returns
    -------
    v : ndarray of shape (n_states, n_visible)
        Of at most `N_LIKELIEST_STATES` states: the modes, and what might become one.
    """
    h = machine.hidden.states(0, int(machine.hidden.n_states))
    order = np.argsort(machine.transposed.free_energy(h))
    return machine.mean_visible(h[order[:N_LIKELIEST_STATES]])
