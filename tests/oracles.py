"""Brute-force oracles for restricted Boltzmann machines: simple, literal and slow.

Only `energy` knows a model. Everything else follows from it by enumeration of the discrete states, by
quadrature over the real-valued visible units and by finite differences, and never from a closed form.
Results are float64; logarithms are natural (nats). This file never imports the package under test.
"""

import dataclasses
import functools
import itertools

import numpy as np
from scipy.special import gammaln, roots_legendre, softmax

ENERGIES = ("bernoulli", "spin", "krizhevsky", "cho", "goodfellow")  # those of the estimators
GAUSSIAN_ENERGIES = ("krizhevsky", "cho", "goodfellow")
REAL = ("interval", *GAUSSIAN_ENERGIES)
KINDS = (*ENERGIES, "categorical", "interval", "count", "composite")

HIDDEN = ("gaussian", "relu", "drelu")  # real-valued hidden units, in place of those of a kind

# Of discrete units that take one column each; counts have a base measure of 1 / k! besides.
VALUES = {"bernoulli": (0.0, 1.0), "spin": (-1.0, 1.0), "count": tuple(map(float, range(6)))}
COMPOSITE = (  # parts with their columns; a smaller layer has the first of them
    ("categorical", slice(0, 5)),
    ("spin", slice(5, 6)),
    ("interval", slice(6, 7)),
    ("cho", slice(7, 8)),
)
REACH = 10  # widths of a parabola's exp(-E) that a quadrature covers: the tails are below 1e-22
STEP = 0.25  # between its nodes: the trapezoid rule errs by 2 exp(-2 pi^2 / STEP^2)
# Panels of the rule of Gauss and Legendre for a real-valued hidden unit, with an edge at zero: exact for laws
# of a standard deviation between 0.5 and 1.6.
HIDDEN_EDGES, N_PANEL_NODES = np.linspace(-16, 16, 9), 16
N_CURVE = 4001  # nodes of a cumulated law, which is linear in between: an error below 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of one machine: weights (n_visible, n_hidden), biases and offsets (n_visible,) and (n_hidden,).

    n_visible is the number of columns. `log_variance` is log sigma_i^2 of each Gaussian unit, and None where
    there are none. `hidden` is one of HIDDEN, or None for the two-state units of the kind; `threshold` and
    `asymmetry` (n_hidden,) are those of "drelu".
    """

    kind: str
    weights: np.ndarray
    visible_bias: np.ndarray
    hidden_bias: np.ndarray
    visible_offset: np.ndarray
    hidden_offset: np.ndarray
    log_variance: np.ndarray | None = None
    hidden: str | None = None
    threshold: np.ndarray | None = None
    asymmetry: np.ndarray | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {self.kind!r}.")
        n_gaussian = np.arange(len(self.visible_bias))[self.gaussian_columns].size
        if (n_gaussian > 0) != (self.log_variance is not None):
            raise ValueError(f"log_variance belongs to Gaussian units only; kind={self.kind!r}.")
        n_visible, n_hidden = np.shape(self.weights)
        shapes = dict.fromkeys(["visible_bias", "visible_offset"], (n_visible,))
        shapes |= dict.fromkeys(["log_variance"] * (n_gaussian > 0), (n_gaussian,))
        shapes |= dict.fromkeys(["hidden_bias", "hidden_offset"], (n_hidden,))
        shapes |= dict.fromkeys(["threshold", "asymmetry"] * (self.hidden == "drelu"), (n_hidden,))
        for name, shape in (shapes | {"weights": (n_visible, n_hidden)}).items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
            object.__setattr__(self, name, array)

    @property
    def parts(self):
        """Kinds of visible units with their columns: one kind, but in a composite layer."""
        n_visible = len(self.visible_bias)
        if self.kind != "composite":
            return ((self.kind, slice(0, n_visible)),)
        return tuple((kind, own) for kind, own in COMPOSITE if own.stop <= n_visible)

    @property
    def units(self):
        """Kind and columns of every visible unit."""
        units = []
        for kind, own in self.parts:
            n_columns = own.stop - own.start
            widths = category_counts(n_columns) if kind == "categorical" else [1] * n_columns
            ends = own.start + np.cumsum(widths)
            units += [(kind, slice(e - w, e)) for e, w in zip(ends, widths, strict=True)]
        return units

    @property
    def gaussian_columns(self):
        """Columns of the Gaussian units, which are one part at most."""
        own = [columns for kind, columns in self.parts if kind in GAUSSIAN_ENERGIES]
        return own[0] if own else slice(0, 0)

    @property
    def is_gaussian(self):
        """Whether all visible units are Gaussian."""
        return self.kind in GAUSSIAN_ENERGIES

    @property
    def is_discrete(self):
        """Whether the visible states can be enumerated."""
        return not any(kind in REAL for kind, _ in self.parts)

    @property
    def hidden_values(self):
        """The two values of a hidden unit."""
        return VALUES["spin" if self.kind == "spin" else "bernoulli"]

    @property
    def visible_values(self):
        """Values of every visible unit, None if they are not finitely many numbers."""
        return VALUES.get(self.kind)

    def replace(self, **changes):
        """Copy with the named fields replaced."""
        return dataclasses.replace(self, **changes)


def category_counts(n_columns):
    """Numbers of categories of units that take so many columns: threes, and then twos."""
    n_twos = -n_columns % 3
    return [3] * ((n_columns - 2 * n_twos) // 3) + [2] * n_twos


def random_parameters(kind, n_visible, n_hidden, rng, *, offsets=True, scale=1.0, hidden=None):
    """Machine with normal weights and biases of standard deviation `scale`, and variances that differ from one.

    With `offsets`, those of Gaussian units are normal and all others uniform in [0, 1], of spins in [-1, 1];
    without, all are zero. Log variances are normal(0, 0.7).
    """
    low = -1.0 if kind == "spin" else 0.0
    is_gaussian = kind in GAUSSIAN_ENERGIES
    visible_offset, hidden_offset = np.zeros(n_visible), np.zeros(n_hidden)
    if offsets:
        visible_offset = (
            rng.normal(size=n_visible) if is_gaussian else rng.uniform(low, 1.0, n_visible)
        )
        hidden_offset = rng.uniform(low, 1.0, n_hidden)
    n_gaussian = n_visible if is_gaussian else int(kind == "composite" and n_visible == 8)
    return Parameters(
        kind=kind,
        weights=rng.normal(0.0, scale, (n_visible, n_hidden)),
        visible_bias=rng.normal(0.0, scale, n_visible),
        hidden_bias=rng.normal(0.0, scale, n_hidden),
        visible_offset=visible_offset,
        hidden_offset=hidden_offset,
        log_variance=rng.normal(0.0, 0.7, n_gaussian) if n_gaussian else None,
        hidden=hidden,
        threshold=rng.normal(0.0, 0.7, n_hidden) if hidden == "drelu" else None,
        asymmetry=rng.uniform(-0.6, 0.6, n_hidden) if hidden == "drelu" else None,
    )


def states(values, n_units):
    """All states of `n_units` units that take these `values`: (len(values) ** n_units, n_units)."""
    return np.array(list(itertools.product(values, repeat=n_units)), dtype=np.float64)


def hidden_states(p):
    """All hidden states, or nodes of a quadrature over them: (n_values ** n_hidden, n_hidden)."""
    values = p.hidden_values if p.hidden is None else hidden_nodes(p.hidden)[0]
    return states(values, p.weights.shape[1])


@functools.cache
def hidden_nodes(hidden):
    """Nodes of a quadrature over a real-valued hidden unit, and the logarithms of their weights."""
    edges = HIDDEN_EDGES[HIDDEN_EDGES >= 0] if hidden == "relu" else HIDDEN_EDGES
    nodes, weights = gauss_legendre(N_PANEL_NODES)
    widths = np.diff(edges)[:, np.newaxis]
    return (edges[:-1, np.newaxis] + widths * nodes).ravel(), np.log(widths * weights).ravel()


def hidden_log_measure(p):
    """Logarithms of the weights of `hidden_states(p)`, zero for states that are counted."""
    if p.hidden is None:
        return 0.0
    return states(hidden_nodes(p.hidden)[1], p.weights.shape[1]).sum(axis=1)


def visible_states(p):
    """All visible states of a discrete machine: (n_states, n_visible)."""
    if not p.is_discrete:
        raise ValueError(f"The visible states of kind={p.kind!r} cannot be enumerated.")
    tables = [unit_values(kind, own.stop - own.start) for kind, own in p.units]
    return np.array([np.concatenate(rows) for rows in itertools.product(*tables)])


def unit_values(kind, n_own):
    """All values of one discrete unit: (n_values, n_own)."""
    return np.eye(n_own) if kind == "categorical" else np.array(VALUES[kind])[:, np.newaxis]


def energy(p, v, h):
    """Energy E(v, h) of every pair of v (n, n_visible) and h (m, n_hidden): (n, m)."""
    g = h - p.hidden_offset
    own = -(g @ p.hidden_bias)
    if p.hidden is not None:
        own += np.sum(h**2 / 2, axis=1)
    if p.hidden == "drelu":
        up, down, eta = np.maximum(h, 0), np.minimum(h, 0), p.asymmetry
        own += np.sum(eta * up**2 / 2 - eta * down**2 / 2 + p.threshold * (up - down), axis=1)
    total = np.tile(own, (len(v), 1))
    for kind, own in p.parts:
        W, a, u = p.weights[own], p.visible_bias[own], v[:, own] - p.visible_offset[own]
        if kind in GAUSSIAN_ENERGIES:
            sigma = np.sqrt(np.exp(p.log_variance))
            total += np.sum((u - a) ** 2 / (2 * sigma**2), axis=1)[:, np.newaxis]
            if kind == "krizhevsky":
                total -= (u / sigma) @ W @ g.T
            elif kind == "cho":
                total -= (u / sigma**2) @ W @ g.T
            else:
                total -= ((u - a) / sigma**2) @ W @ g.T
        else:
            total -= (u @ a)[:, np.newaxis] + u @ W @ g.T
        if kind == "count":
            total += np.sum(gammaln(v[:, own] + 1), axis=1)[:, np.newaxis]
    return total


def log_sum_exp(x, axis=None):
    """Log of the sum of exp(x) along an axis, as SciPy's for finite x, in a third of its time for few terms."""
    peak = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(peak, axis) + np.log(np.sum(np.exp(x - peak), axis=axis))


def free_energy(p, v):
    """Free energy F(v) = -log sum_h exp(-E(v, h)) of v (n, n_visible): (n,)."""
    if p.hidden is None:
        return -log_sum_exp(-energy(p, v, hidden_states(p)), axis=1)
    at_zero = energy(p, v, np.zeros((1, len(p.hidden_bias))))[:, 0]
    return at_zero - np.sum([log_sum_exp(terms, axis=1) for terms in _hidden_terms(p, v)], axis=0)


def log_partition(p):
    """Log Z, a float: the sum over all hidden states of the visible units' sum or integral.

    Over visible states where those are discrete, and only the hidden ones are integrated.
    """
    if p.hidden is not None and p.is_discrete:
        return float(log_sum_exp(-free_energy(p, visible_states(p))))
    return float(log_sum_exp(_log_hidden_weights(p)))


def hidden_probabilities(p):
    """Probabilities p(h) of `hidden_states(p)`: (n_states,)."""
    return softmax(_log_hidden_weights(p))


def log_likelihood(p, v):
    """Log probability (density) log p(v) of v (n, n_visible): (n,)."""
    return -free_energy(p, v) - log_partition(p)


def mean_hidden(p, v):
    """E[h | v] of v (n, n_visible): (n, n_hidden)."""
    if p.hidden is None:
        h = hidden_states(p)
        return softmax(-energy(p, v, h), axis=1) @ h
    values, _ = hidden_nodes(p.hidden)
    return np.stack([softmax(terms, axis=1) @ values for terms in _hidden_terms(p, v)], axis=1)


def _hidden_terms(p, v):
    """For each real-valued hidden unit the logarithms of weights times exp(-E), all others zero and relative
    to this one zero too: (n, n_nodes). Given v the energy is a sum over hidden units.
    """
    values, log_weights = hidden_nodes(p.hidden)
    at_zero = energy(p, v, np.zeros((1, len(p.hidden_bias))))
    for j in range(len(p.hidden_bias)):
        h = np.zeros((len(values), len(p.hidden_bias)))
        h[:, j] = values
        yield log_weights + at_zero - energy(p, v, h)


def mean_visible(p, h):
    """E[v | h] of h (m, n_hidden): (m, n_visible)."""
    if p.is_discrete:
        v = visible_states(p)
        return softmax(-energy(p, v, h), axis=0).T @ v
    return np.concatenate([law.T @ values for values, law, _ in _unit_laws(p, h)], axis=1)


def variance_visible(p, h):
    """Var[v_i | h] of h (m, n_hidden): (m, n_visible)."""
    mean = mean_visible(p, h)
    if p.is_discrete:
        v = visible_states(p)
        probabilities = softmax(-energy(p, v, h), axis=0).T
        deviations = v[np.newaxis, :, :] - mean[:, np.newaxis, :]
        return np.sum(probabilities[:, :, np.newaxis] * deviations**2, axis=1)
    square = [law.T @ values**2 for values, law, _ in _unit_laws(p, h)]
    return np.concatenate(square, axis=1) - mean**2


def model_mean_visible(p):
    """The model's own average of v, for every kind: (n_visible,)."""
    return hidden_probabilities(p) @ mean_visible(p, hidden_states(p))


def model_probabilities(p):
    """Probabilities p(v) of `visible_states(p)`, of discrete machines only: (n_states,)."""
    return softmax(-free_energy(p, visible_states(p)))


def finite_difference_gradient(function, parameters, step=1e-4):
    """Gradient of a scalar function of Parameters: dict from parameter name to an array of its shape.

    Central differences on five points, with an error of order `step` ** 4 plus rounding of order 1e-16 / `step`
    times the function's value. Offsets are not varied; log_variance is, where there are Gaussian units.
    """

    def at(name, index, shift):
        moved = getattr(parameters, name).copy()
        moved[index] += shift
        return function(parameters.replace(**{name: moved}))

    names = ["weights", "visible_bias", "hidden_bias"]
    names += ["log_variance"] * (parameters.log_variance is not None)
    names += ["threshold", "asymmetry"] * (parameters.hidden == "drelu")
    gradient = {name: np.zeros_like(getattr(parameters, name)) for name in names}
    for name in names:
        for index in np.ndindex(gradient[name].shape):
            near = at(name, index, step) - at(name, index, -step)
            far = at(name, index, 2 * step) - at(name, index, -2 * step)
            gradient[name][index] = (8 * near - far) / (12 * step)
    return gradient


def log_likelihood_gradient(p, v, step=1e-4):
    """Finite-difference gradient of the mean log likelihood of v (n, n_visible): dict from name to array."""
    return finite_difference_gradient(lambda moved: np.mean(log_likelihood(moved, v)), p, step)


def ascent(p, gradient, data_variance=0.0, data_kurtosis=3.0, frequencies=None, redundancy=0.0):
    """Direction of a training step: the gradient with states measured in units of their own.

    Spins are measured in the distance of their states, which is two, Gaussian states in sigma. In
    units of sigma the weights of all parameterisations are krizhevsky's, and means and weights of
    data that are multiplied by a constant move by the same number of sigmas. All of them move more
    slowly by the share of the noise in the data's variance, if that is larger; log-variances slower
    still where the data's tails are heavier than normal ones. All three move more slowly where r
    columns determine each other: chains need r / share updates to cross their factor, of which 100
    are free. Categorical units move faster by a twelfth of the number of equally likely values that
    would be equal in two rows as often, at least 1 and at most 8, unless `frequencies`, of shape
    (n_visible,), is None. Other units follow the gradient.
    """
    names = "weights", "visible_bias", "hidden_bias"
    multiples = {name: np.ones_like(getattr(p, name)) for name in names}
    weights, bias = multiples["weights"], multiples["visible_bias"]
    for kind, own in p.parts:
        if kind == "spin":
            weights[own], bias[own] = 1 / 4, 1 / 4
    for kind, own in p.units:
        if kind == "categorical" and frequencies is not None:
            shares = frequencies[own]
            weights[own] = bias[own] = max(1, min(8, 1 / (12 * shares @ shares)))
    if p.kind == "spin":
        weights[:], multiples["hidden_bias"][:] = 1 / 16, 1 / 4
    if p.log_variance is not None:
        own, variance = p.gaussian_columns, np.exp(p.log_variance)
        share = np.minimum(1, variance / np.maximum(data_variance, variance))
        pace = 100 / np.maximum(100, redundancy / share)
        per_sigma = np.ones_like(variance) if p.kind == "krizhevsky" else variance
        of_tails = share**2 / (share + np.maximum(data_kurtosis - 3.0, 0) / 2)
        weights[own], bias[own] = (pace * share * per_sigma)[:, np.newaxis], pace * share * variance
        multiples["log_variance"] = pace * of_tails
    return {name: array * multiples.get(name, 1.0) for name, array in gradient.items()}


def zero_sum(p, weights):
    """Weights, or what is shaped like them, minus their mean over the columns of each categorical unit."""
    weights = weights.copy()
    for kind, own in p.units:
        if kind == "categorical":
            weights[own] -= weights[own].mean(axis=0)
    return weights


def log_conditional_visible(p, v):
    """Log p(unit | all others), a density for real-valued units, of v (n, n_visible): (n, n_units)."""
    normalisers = [_log_normaliser_along(p, v, kind, own) for kind, own in p.units]
    return -free_energy(p, v)[:, np.newaxis] - np.stack(normalisers, axis=1)


def log_pseudo_likelihood(p, v):
    """Log pseudo-likelihood, the sum of log p(unit | all others) over units, of v (n, n_visible): (n,)."""
    return np.sum(log_conditional_visible(p, v), axis=1)


def sample_exact(p, n_samples, rng):
    """Independent samples of the joint law: v (n_samples, n_visible) and h (n_samples, n_hidden)."""
    hidden = hidden_states(p)
    if p.is_discrete:
        visible = visible_states(p)
        probabilities = softmax(hidden_log_measure(p) - energy(p, visible, hidden))
        drawn = rng.choice(probabilities.size, size=n_samples, p=probabilities.ravel())
        row, column = np.unravel_index(drawn, probabilities.shape)
        return visible[row], hidden[column]
    drawn = rng.choice(len(hidden), size=n_samples, p=hidden_probabilities(p))
    if p.is_gaussian:
        mean, variance = mean_visible(p, hidden), variance_visible(p, hidden)
        return rng.normal(mean[drawn], np.sqrt(variance[drawn])), hidden[drawn]
    v = np.zeros((n_samples, len(p.weights)))
    for (kind, own), (values, law, _) in zip(p.units, _unit_laws(p, hidden), strict=True):
        for state in np.unique(drawn):
            rows = np.flatnonzero(drawn == state)
            if kind in REAL:
                curve = _cumulated(p, kind, own, hidden[state : state + 1])
                v[rows, own] = np.interp(rng.random((len(rows), 1)), *reversed(curve))
            else:
                v[rows, own] = values[rng.choice(len(values), len(rows), p=law[:, state])]
    return v, hidden[drawn]


def cumulated(p, v, h):
    """Probability given h of less than v, of real-valued units: (n, n_real) with their columns (n_real,)."""
    real = [(kind, own) for kind, own in p.units if kind in REAL]
    shares = np.zeros((len(v), len(real)))
    for row in np.unique(h, axis=0):
        rows = np.flatnonzero((h == row).all(axis=1))
        for i, (kind, own) in enumerate(real):
            values = v[rows, own].ravel()
            shares[rows, i] = np.interp(values, *_cumulated(p, kind, own, row[np.newaxis]))
    return shares, np.array([own.start for _, own in real], dtype=int)


@functools.cache
def gauss_legendre(n_nodes):
    """Nodes between 0 and 1 and their weights."""
    nodes, weights = roots_legendre(n_nodes)
    return (nodes + 1) / 2, weights / 2


def _log_hidden_weights(p):
    """Log of the sum or integral over v of exp(-E(v, h)), for all hidden states: (n_states,).

    At nodes of a quadrature over h the logarithms of their weights are added.

    Given h the energy is a sum over visible units, so exp(-E) is a product of functions of one unit each: its
    value at a reference state times, per unit, the sum of the ratios to it.
    """
    h = hidden_states(p)
    if p.is_discrete:
        return hidden_log_measure(p) + log_sum_exp(-energy(p, visible_states(p), h), axis=0)
    log_ratios = [log_ratio for _, _, log_ratio in _unit_laws(p, h)]
    at_zero = energy(p, np.zeros((1, len(p.weights))), h)[0]
    return hidden_log_measure(p) + np.sum(log_ratios, axis=0) - at_zero


def _unit_laws(p, h):
    """Of each visible unit its values or nodes (n_values, n_own), their probabilities given h (n_values, m),
    and the log of the sum of exp(-E) over them relative to all states zero (m,).
    """
    laws = []
    reference = np.zeros((1, len(p.weights)))
    at_reference = energy(p, reference, h)
    for kind, own in p.units:
        values, weights = _nodes(p, kind, own, h)
        v = np.repeat(reference, len(values), axis=0)
        v[:, own] = values
        log_terms = at_reference - energy(p, v, h) + np.log(weights)[:, np.newaxis]
        laws.append((values, softmax(log_terms, axis=0), log_sum_exp(log_terms, axis=0)))
    return laws


def _nodes(p, kind, own, h):
    """Values of a unit (n_values, n_own), or nodes that serve all h (m, n_hidden), and their weights."""
    if kind in GAUSSIAN_ENERGIES:
        centre, width = _parabola(p, own, h)
        n_nodes = 1 + int(np.ceil((np.ptp(centre) / width + 2 * REACH) / STEP))
        ends = centre.min() - REACH * width, centre.max() + REACH * width
        values, step = np.linspace(*ends, n_nodes, retstep=True)
        return values[:, np.newaxis], np.full(n_nodes, step)
    if kind == "interval":
        values, weights = gauss_legendre(64)
        return values[:, np.newaxis], weights
    values = unit_values(kind, own.stop - own.start)
    return values, np.ones(len(values))


def _cumulated(p, kind, own, h):
    """Values of one real-valued unit and the probabilities given one h (1, n_hidden) to be below them."""
    values = np.linspace(0, 1, N_CURVE)
    if kind != "interval":
        centre, width = _parabola(p, own, h)
        values = centre + width * REACH * (2 * values - 1)
    v = np.zeros((N_CURVE, len(p.weights)))
    v[:, own] = values[:, np.newaxis]
    density = softmax(-energy(p, v, h)[:, 0])
    below = np.concatenate([[0], np.cumsum(density[1:] + density[:-1])])
    return values, below / below[-1]


def _parabola(p, own, h):
    """Minimum (m,) and width 1 / sqrt(curvature) of the energy along a Gaussian unit, given h (m, n_hidden).

    Three energies fix the parabola. It only says where to put the nodes of a quadrature.
    """
    v = np.zeros((3, len(p.weights)))
    v[:, own] = [[-1.0], [0.0], [1.0]]
    below, at_zero, above = energy(p, v, h)
    curvature = above - 2 * at_zero + below
    return (below - above) / (2 * curvature), 1 / np.sqrt(curvature[0])


def _log_normaliser_along(p, v, kind, own):
    """Log of the sum or integral of exp(-F) over one unit, the rest of v (n, n_visible) held: (n,)."""
    # exp(-F) is a sum over h of exp(-E): nodes that serve all hidden states serve it.
    values, weights = _nodes(p, kind, own, hidden_states(p))
    moved = np.repeat(np.asarray(v, dtype=np.float64), len(values), axis=0)
    moved[:, own] = np.tile(values, (len(v), 1))
    log_terms = -free_energy(p, moved).reshape(len(v), -1) + np.log(weights)
    return log_sum_exp(log_terms, axis=1)
