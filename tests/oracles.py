"""Brute-force oracles for restricted Boltzmann machines: simple, literal and slow.

Only `energy` knows a model. Everything else follows from it by enumeration of the discrete states, by
quadrature over the real-valued visible units and by finite differences, and never from a closed form.
Results are float64; logarithms are natural (nats). This file never imports the package under test.
"""

import dataclasses
import itertools

import numpy as np
from scipy.integrate import quad_vec, trapezoid
from scipy.special import logsumexp, softmax

ENERGIES = ("bernoulli", "spin", "krizhevsky", "cho", "goodfellow")
GAUSSIAN_ENERGIES = ("krizhevsky", "cho", "goodfellow")

# Quadrature nodes in units of the width of a parabola's exp(-E): the tails beyond 12 are below 1e-31.
NODES = np.linspace(-12.0, 12.0, 193)


@dataclasses.dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of one machine: weights (n_visible, n_hidden), biases and offsets (n_visible,) and (n_hidden,).

    `log_variance` (n_visible,) is log sigma_i^2 of each visible unit, and None for the discrete kinds.
    """

    kind: str
    weights: np.ndarray
    visible_bias: np.ndarray
    hidden_bias: np.ndarray
    visible_offset: np.ndarray
    hidden_offset: np.ndarray
    log_variance: np.ndarray | None = None

    def __post_init__(self):
        if self.kind not in ENERGIES:
            raise ValueError(f"kind must be one of {ENERGIES}, got {self.kind!r}.")
        if self.is_gaussian != (self.log_variance is not None):
            raise ValueError(f"log_variance belongs to Gaussian kinds only; kind={self.kind!r}.")
        n_visible, n_hidden = np.shape(self.weights)
        visible = ["visible_bias", "visible_offset"] + ["log_variance"] * self.is_gaussian
        shapes = dict.fromkeys(visible, (n_visible,)) | {"weights": (n_visible, n_hidden)}
        shapes |= dict.fromkeys(["hidden_bias", "hidden_offset"], (n_hidden,))
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
            object.__setattr__(self, name, array)

    @property
    def is_gaussian(self):
        """Whether the visible units are real-valued."""
        return self.kind in GAUSSIAN_ENERGIES

    @property
    def hidden_values(self):
        """The two values of a hidden unit."""
        return (-1.0, 1.0) if self.kind == "spin" else (0.0, 1.0)

    @property
    def visible_values(self):
        """The two values of a visible unit, None if it is real-valued."""
        return None if self.is_gaussian else self.hidden_values

    def replace(self, **changes):
        """Copy with the named fields replaced."""
        return dataclasses.replace(self, **changes)


def random_parameters(kind, n_visible, n_hidden, rng, *, offsets=True, scale=1.0):
    """Machine with normal weights and biases of standard deviation `scale`, and variances that differ from one.

    With `offsets`, those of discrete units are uniform in the units' range and those of Gaussian units normal;
    without, all are zero. Log variances are normal(0, 0.7).
    """
    low, high = (-1.0, 1.0) if kind == "spin" else (0.0, 1.0)
    is_gaussian = kind in GAUSSIAN_ENERGIES
    visible_offset, hidden_offset = np.zeros(n_visible), np.zeros(n_hidden)
    if offsets:
        visible_offset = (
            rng.normal(size=n_visible) if is_gaussian else rng.uniform(low, high, n_visible)
        )
        hidden_offset = rng.uniform(low, high, n_hidden)
    return Parameters(
        kind=kind,
        weights=rng.normal(0.0, scale, (n_visible, n_hidden)),
        visible_bias=rng.normal(0.0, scale, n_visible),
        hidden_bias=rng.normal(0.0, scale, n_hidden),
        visible_offset=visible_offset,
        hidden_offset=hidden_offset,
        log_variance=rng.normal(0.0, 0.7, n_visible) if is_gaussian else None,
    )


def states(values, n_units):
    """All states of `n_units` units that take these `values`: (len(values) ** n_units, n_units)."""
    return np.array(list(itertools.product(values, repeat=n_units)), dtype=np.float64)


def energy(p, v, h):
    """Energy E(v, h) of every pair of v (n, n_visible) and h (m, n_hidden): (n, m)."""
    W, a, b = p.weights, p.visible_bias, p.hidden_bias
    alpha, beta = p.visible_offset, p.hidden_offset
    hidden_term = ((h - beta) @ b)[np.newaxis, :]
    if p.kind in ("bernoulli", "spin"):
        visible_term = ((v - alpha) @ a)[:, np.newaxis]
        return -visible_term - (v - alpha) @ W @ (h - beta).T - hidden_term
    sigma = np.sqrt(np.exp(p.log_variance))
    quadratic_term = np.sum((v - a - alpha) ** 2 / (2 * sigma**2), axis=1)[:, np.newaxis]
    if p.kind == "krizhevsky":
        return quadratic_term - ((v - alpha) / sigma) @ W @ (h - beta).T - hidden_term
    if p.kind == "cho":
        return quadratic_term - ((v - alpha) / sigma**2) @ W @ (h - beta).T - hidden_term
    return quadratic_term - ((v - a - alpha) / sigma**2) @ W @ (h - beta).T - hidden_term


def free_energy(p, v):
    """Free energy F(v) = -log sum_h exp(-E(v, h)) of v (n, n_visible): (n,)."""
    return -logsumexp(-energy(p, v, _hidden_states(p)), axis=1)


def log_partition(p):
    """Log Z, a float: the sum over all hidden states of the visible units' sum or integral."""
    return float(logsumexp(_log_hidden_weights(p)))


def log_likelihood(p, v):
    """Log probability (density) log p(v) of v (n, n_visible): (n,)."""
    return -free_energy(p, v) - log_partition(p)


def mean_hidden(p, v):
    """E[h | v] of v (n, n_visible): (n, n_hidden)."""
    h = _hidden_states(p)
    return softmax(-energy(p, v, h), axis=1) @ h


def mean_visible(p, h):
    """E[v | h] of h (m, n_hidden): (m, n_visible)."""
    if p.is_gaussian:
        return np.array([_quadrature(p, row)[1] for row in h])
    v = _visible_states(p)
    return softmax(-energy(p, v, h), axis=0).T @ v


def variance_visible(p, h):
    """Var[v_i | h] of h (m, n_hidden): (m, n_visible)."""
    if p.is_gaussian:
        return np.array([_quadrature(p, row)[2] for row in h])
    v = _visible_states(p)
    probabilities = softmax(-energy(p, v, h), axis=0).T
    deviations = v[np.newaxis, :, :] - mean_visible(p, h)[:, np.newaxis, :]
    return np.sum(probabilities[:, :, np.newaxis] * deviations**2, axis=1)


def model_mean_visible(p):
    """The model's own average of v, for every kind: (n_visible,)."""
    return softmax(_log_hidden_weights(p)) @ mean_visible(p, _hidden_states(p))


def model_probabilities(p):
    """Probabilities p(v) of the rows of `states(p.visible_values, n_visible)`, discrete kinds only: (n_states,)."""
    return softmax(-free_energy(p, _visible_states(p)))


def finite_difference_gradient(function, parameters, step=1e-4):
    """Gradient of a scalar function of Parameters: dict from parameter name to an array of its shape.

    Central differences on five points, with an error of order `step` ** 4 plus rounding of order 1e-16 / `step`
    times the function's value. Offsets are not varied; log_variance is, for Gaussian kinds.
    """

    def at(name, index, shift):
        moved = getattr(parameters, name).copy()
        moved[index] += shift
        return function(parameters.replace(**{name: moved}))

    names = ["weights", "visible_bias", "hidden_bias"] + ["log_variance"] * parameters.is_gaussian
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


def ascent(p, gradient, data_variance=0.0):
    """Direction of a training step: the gradient with Gaussian states measured in sigma.

    In those units the weights of all parameterisations are krizhevsky's, and means and weights
    of data that are multiplied by a constant move by the same number of sigmas. All of them move
    more slowly by the share of the noise in the data's variance, if that is larger.
    """
    if not p.is_gaussian:
        return gradient
    variance = np.exp(p.log_variance)
    share = np.minimum(1, variance / np.maximum(data_variance, variance))
    per_sigma = np.ones_like(variance) if p.kind == "krizhevsky" else variance
    multiples = {
        "weights": (share * per_sigma)[:, None],
        "visible_bias": share * variance,
        "log_variance": share,
    }
    return {name: array * multiples.get(name, 1.0) for name, array in gradient.items()}


def log_conditional_visible(p, v):
    """Log p(v_i | v_-i), a density for Gaussian units, of v (n, n_visible): (n, n_visible)."""
    columns = [_log_normaliser_along(p, v, unit) for unit in range(v.shape[1])]
    return -free_energy(p, v)[:, np.newaxis] - np.stack(columns, axis=1)


def log_pseudo_likelihood(p, v):
    """Log pseudo-likelihood, the sum over i of log p(v_i | v_-i), of v (n, n_visible): (n,)."""
    return np.sum(log_conditional_visible(p, v), axis=1)


def sample_exact(p, n_samples, rng):
    """Independent samples of the joint law: v (n_samples, n_visible) and h (n_samples, n_hidden)."""
    hidden = _hidden_states(p)
    if p.is_gaussian:
        drawn = rng.choice(len(hidden), size=n_samples, p=softmax(_log_hidden_weights(p)))
        mean, variance = mean_visible(p, hidden), variance_visible(p, hidden)
        return rng.normal(mean[drawn], np.sqrt(variance[drawn])), hidden[drawn]
    visible = _visible_states(p)
    probabilities = softmax(-energy(p, visible, hidden))
    drawn = rng.choice(probabilities.size, size=n_samples, p=probabilities.ravel())
    row, column = np.unravel_index(drawn, probabilities.shape)
    return visible[row], hidden[column]


def _hidden_states(p):
    """All hidden states: (2 ** n_hidden, n_hidden)."""
    return states(p.hidden_values, p.weights.shape[1])


def _visible_states(p):
    """All visible states of a discrete machine: (2 ** n_visible, n_visible)."""
    if p.is_gaussian:
        raise ValueError(
            f"The visible states of kind={p.kind!r} are real-valued and cannot be enumerated."
        )
    return states(p.visible_values, p.weights.shape[0])


def _log_hidden_weights(p):
    """Log of the sum or integral over v of exp(-E(v, h)), for all hidden states: (2 ** n_hidden,)."""
    h = _hidden_states(p)
    if p.is_gaussian:
        return np.array([_quadrature(p, row)[0] for row in h])
    return logsumexp(-energy(p, _visible_states(p), h), axis=0)


def _parabola(p, h):
    """Minimum and width 1 / sqrt(curvature) of the energy along each v_i, given one h (n_hidden,): two (n_visible,).

    Three energies along each unit fix the parabola. It only says where to put the nodes of a quadrature.
    """
    n_visible = p.weights.shape[0]
    at_zero = energy(p, np.zeros((1, n_visible)), h[np.newaxis])[0, 0]
    above = energy(p, np.eye(n_visible), h[np.newaxis])[:, 0]
    below = energy(p, -np.eye(n_visible), h[np.newaxis])[:, 0]
    curvature = above - 2 * at_zero + below
    return (below - above) / (2 * curvature), 1 / np.sqrt(curvature)


def _quadrature(p, h):
    """Log of the integral over v of exp(-E(v, h)), with mean and variance of v, given one h (n_hidden,).

    Given h the energy is a sum over visible units, so exp(-E) is a product of functions of one v_i each: its
    value at a reference state times, per unit, the ratio to it. Returns a float and two arrays (n_visible,).
    """
    centre, width = _parabola(p, h)
    n_visible = len(centre)
    reference = energy(p, centre[np.newaxis], h[np.newaxis])[0, 0]
    log_integral, mean, variance = -reference, np.zeros(n_visible), np.zeros(n_visible)
    for i in range(n_visible):
        x = centre[i] + width[i] * NODES
        v = np.tile(centre, (len(x), 1))
        v[:, i] = x
        density = np.exp(reference - energy(p, v, h[np.newaxis])[:, 0])
        integral = trapezoid(density, x)
        log_integral += np.log(integral)
        mean[i] = trapezoid(x * density, x) / integral
        variance[i] = trapezoid((x - mean[i]) ** 2 * density, x) / integral
    return log_integral, mean, variance


def _log_normaliser_along(p, v, unit):
    """Log of the sum or integral of exp(-F) over v_unit, the rest of v (n, n_visible) held: (n,)."""

    def minus_free_energy(value):
        moved = np.array(v, dtype=np.float64)
        moved[:, unit] = value
        return -free_energy(p, moved)

    if not p.is_gaussian:
        return logsumexp([minus_free_energy(value) for value in p.visible_values], axis=0)
    # exp(-F) is a sum over h of exp(-E), so it peaks at the minima of the energy, one for each hidden state.
    parabolas = [_parabola(p, h) for h in _hidden_states(p)]
    centres = np.array([centre[unit] for centre, _ in parabolas])
    reach = 12 * max(width[unit] for _, width in parabolas)
    peak = np.max([minus_free_energy(centre) for centre in centres], axis=0)
    integral, error = quad_vec(
        lambda value: np.exp(minus_free_energy(value) - peak),
        centres.min() - reach,
        centres.max() + reach,
        epsabs=0.0,
        epsrel=1e-13,
        norm="max",
        limit=1000,
        points=np.unique(centres),
    )
    if not error <= 1e-11 * integral.min():
        raise ArithmeticError(
            f"Quadrature along v_{unit} reached only {error:.1e} of {integral.min():.1e}."
        )
    return peak + np.log(integral)
