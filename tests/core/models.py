"""Bridge between the oracles and the package, and what the tests of core/ share.

A new energy joins `oracles.KINDS` and `visible_layer`; every test then runs over it.
"""

import itertools
import re
from dataclasses import fields as fields_of

import numpy as np
import oracles
from core.count_units import Count
from scipy import stats
from scipy.special import logsumexp, softmax

from skrbm.core.chains.ladder import Ladder
from skrbm.core.machine import Machine
from skrbm.core.units import (
    Bernoulli,
    Categorical,
    Composite,
    DReLU,
    Gaussian,
    Interval,
    ReLU,
    Spin,
    StandardGaussian,
)

TWO_STATE = {"bernoulli": Bernoulli, "spin": Spin}
REAL_HIDDEN = {"gaussian": StandardGaussian, "relu": ReLU, "drelu": DReLU}
LINEAR = TWO_STATE | {"categorical": Categorical, "interval": Interval, "count": Count}
SIZES = {"categorical": 5, "composite": 8}  # columns: 3 + 2 categories, and a spin, an interval...
SHAPES = {
    "categorical": ((5, 2), (3, 4), (7, 3)),
    "count": ((2, 2), (3, 3)),
    "composite": ((8, 2), (6, 3), (8, 6)),  # the layer of six columns is discrete
}
CASES = [
    (kind, *shape, offsets)
    for kind in oracles.KINDS
    for shape in SHAPES.get(kind, ((3, 2), (2, 4), (4, 3)))
    for offsets in (0, 1)
]
REAL_HIDDEN_CASES = [  # of visible units that can be enumerated
    ("spin", 3, 2, 1, "gaussian"),
    ("categorical", 5, 2, 0, "relu"),
    ("bernoulli", 3, 2, 1, "drelu"),
]
GAUSSIAN_CASES = [case for case in CASES if case[0] in oracles.GAUSSIAN_ENERGIES]
SPARSE = [("bernoulli", 6), ("spin", 6), ("categorical", 7), ("count", 4), ("composite", 6)]
TYPICAL = {  # middle, and reach of a unit that has to feel as much as the others
    "bernoulli": (0.5, 0.5),
    "spin": (0.0, 1.0),
    "categorical": (0.4, 0.7),
    "interval": (0.5, 0.15),
    "count": (1.0, 1.0),
}
FALSE_ALARM = 2 * stats.norm.sf(4)  # probability of a normal variable beyond 4 standard errors


def sized(kind, n_visible, n_hidden, offsets=0):
    """Case of a kind with so many visible units, or the columns that the kind needs."""
    return kind, SIZES.get(kind, n_visible), n_hidden, offsets


def case_id(case):
    """Readable name of a case."""
    kind, n_visible, n_hidden, offsets, *hidden = case
    return "-".join([kind, f"{n_visible}x{n_hidden}", "offsets" if offsets else "plain", *hidden])


def model(case, seed, scale=0.8):
    """Random oracle Parameters of a case."""
    kind, n_visible, n_hidden, offsets, *hidden = case
    rng = np.random.default_rng([seed, n_visible, n_hidden, oracles.KINDS.index(kind)])
    options = {"offsets": bool(offsets), "scale": scale, "hidden": hidden[0] if hidden else None}
    return oracles.random_parameters(kind, n_visible, n_hidden, rng, **options)


def balanced_model(case, seed, strength=1.0):
    """Random model of a case for statistics: strong weights, and no unit that rarely changes.

    A standard error can be estimated from draws only where all that happens happens often.
    """
    kind, n_visible, n_hidden, offsets = case
    p = model(case, seed)
    rng = np.random.default_rng([seed, 2])
    hidden_middle = np.mean(p.hidden_values)
    hidden_reach = p.hidden_values[1] - hidden_middle
    middle, reach = np.full(n_visible, hidden_middle), np.ones(n_visible)
    sigma = np.ones(n_visible)
    for part, own in p.parts:
        if part in oracles.GAUSSIAN_ENERGIES:
            sigma[own] = np.exp(p.log_variance / 2)
        else:
            middle[own], reach[own] = TYPICAL[part]
    coupling = rng.choice([-1, 1], p.weights.shape) * rng.uniform(0.4, 0.7, p.weights.shape)
    for _, own in p.units:
        if own.stop - own.start > 1:  # categories that pull alike would not pull at all
            coupling[own.stop - 1] = -coupling[own.start]
    width = np.ones(n_visible) if kind == "krizhevsky" else sigma
    balanced = p.replace(
        weights=strength * coupling * (width / (hidden_reach * reach))[:, None],
        visible_bias=rng.normal(0, 0.2, n_visible) * sigma,
        hidden_bias=rng.normal(0, 0.2, n_hidden),
        visible_offset=middle,
        hidden_offset=np.full(n_hidden, hidden_middle),
    )
    return recentered(balanced, offsets * p.visible_offset, offsets * p.hidden_offset)


def machine_from(p, dtype=np.float64, **gaussian_options):
    """Machine of the package with copies of the oracle's parameters; zero offsets become None."""
    weights = np.array(p.weights, dtype=dtype)
    return Machine(visible_layer(p, dtype, **gaussian_options), hidden_layer(p, dtype), weights)


def hidden_layer(p, dtype=np.float64):
    """Hidden layer of the package with copies of the oracle's parameters."""
    beta = p.hidden_offset.astype(dtype) if p.hidden_offset.any() else None
    kind = REAL_HIDDEN.get(p.hidden) or TWO_STATE["spin" if p.kind == "spin" else "bernoulli"]
    names = ("hidden_bias", "threshold", "asymmetry")[: 3 if p.hidden == "drelu" else 1]
    return kind(*(np.array(getattr(p, name), dtype=dtype) for name in names), offset=beta)


def visible_layer(p, dtype=np.float64, **gaussian_options):
    """Visible layer of the package with copies of the oracle's parameters."""
    parts = []
    for (_, own), (kind, _, options) in zip(p.parts, part_types(p), strict=True):
        if kind is Gaussian:
            variance = np.array(p.log_variance, dtype=dtype)
            options = options | {"log_variance": variance} | gaussian_options
        offset = p.visible_offset[own].astype(dtype) if p.visible_offset.any() else None
        parts.append(kind(np.array(p.visible_bias[own], dtype=dtype), offset=offset, **options))
    return Composite(tuple(parts)) if p.kind == "composite" else parts[0]


def part_types(p):
    """Type, number of columns and further arguments of every part of a visible layer."""
    types = []
    for kind, own in p.parts:
        n_own, unit_type, options = own.stop - own.start, LINEAR.get(kind, Gaussian), {}
        if kind == "categorical":
            options = {"n_categories": tuple(oracles.category_counts(n_own))}
        elif unit_type is Gaussian:
            options = {"parameterization": kind}
        types.append((unit_type, n_own, options))
    return types


def started_layer(p, mean, variance, n_samples):
    """Visible layer of a model's type that resembles data with these statistics."""
    types = part_types(p)
    if p.kind == "composite":
        return Composite.start(mean, variance, n_samples, types=types)
    ((unit_type, _, options),) = types
    return unit_type.start(mean, variance, n_samples, **options)


def replace_parameters(machine, parameters):
    """Machine with some of its parameters exchanged, under their names in `Machine.parameters`."""
    moved = machine.astype(machine.dtype, copy=True)
    moved.assign(moved.parameters | parameters)
    return moved


def parameters_from(p, machine):
    """Oracle Parameters of a machine of the same type as p: the inverse of `machine_from`."""
    layers = {"visible_offset": machine.visible, "hidden_offset": machine.hidden}
    offsets = {
        name: 0 * getattr(p, name) if layer.offset is None else layer.offset
        for name, layer in layers.items()
    }
    return p.replace(**renamed(machine.parameters), **offsets)


def renamed(gradient):
    """Gradient of the package under the oracle's names, parts of a layer side by side."""
    columns = {}
    for name, array in gradient.items():
        plain = re.sub(r"_\d+_", "_", name)
        plain = re.sub(r"visible_(log_variance)|hidden_(threshold|asymmetry)", r"\1\2", plain)
        columns.setdefault(plain, []).append(array)
    return {name: np.concatenate(arrays) for name, arrays in columns.items()}


def assert_same_arrays(actual, expected, atol):
    """Two dicts of arrays have the same keys and agree."""
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, rtol=0, atol=atol, err_msg=name)


def visible_states(p, rng, n_samples=6):
    """Visible states to evaluate a model at: all of a discrete one, else draws far and wide."""
    if p.is_discrete:
        return oracles.visible_states(p)
    v = rng.normal(0, 2, (n_samples, p.weights.shape[0]))
    for kind, own in p.units:
        if kind == "interval":
            v[:, own] = rng.random((n_samples, 1))
        elif kind not in oracles.GAUSSIAN_ENERGIES:
            values = oracles.unit_values(kind, own.stop - own.start)
            v[:, own] = values[rng.integers(len(values), size=n_samples)]
    return v


def draw_rows(p, n_samples, rng):
    """So many visible states, far and wide."""
    if p.is_discrete:
        return rng.choice(oracles.visible_states(p), n_samples)
    return visible_states(p, rng, n_samples)


def hidden_states(p):
    """All hidden states."""
    return oracles.hidden_states(p)


def hidden_law(p):
    """Probabilities of `hidden_states(p)`."""
    return oracles.hidden_probabilities(p)


def visible_law(p, h, units=None):
    """States or quadrature nodes given one h (n_hidden,) of all visible units, or of these, with
    their probabilities.
    """
    tables, laws = [], []
    mean, variance = oracles.mean_visible(p, h[None]), oracles.variance_visible(p, h[None])
    for kind, own in p.units if units is None else units:
        measure = 1.0
        if kind in oracles.GAUSSIAN_ENERGIES:
            values = np.linspace(-7, 7, 19)[:, None]
            values = mean[0, own] + np.sqrt(variance[0, own]) * values
        elif kind == "interval":
            values, measure = oracles.gauss_legendre(8)
            values = values[:, None]
        else:
            values = oracles.unit_values(kind, own.stop - own.start)
        v = np.zeros((len(values), len(p.weights)))
        v[:, own] = values
        tables.append(values)
        laws.append(softmax(np.log(measure) - oracles.energy(p, v, h[None])[:, 0]))
    v = np.array([np.concatenate([[], *rows]) for rows in itertools.product(*tables)])
    return v, np.array([np.prod(row) for row in itertools.product(*laws)])


def hidden_given_visible(p, v):
    """Probabilities p(h | v) of every hidden state: (n_samples, n_states)."""
    log_weights = oracles.free_energy(p, v)[:, None] - oracles.energy(p, v, hidden_states(p))
    return np.exp(log_weights + oracles.hidden_log_measure(p))


def uncoupled_like(p, rng):
    """Oracle of an uncoupled machine of the same kind, its hidden units alike in all states."""
    base = oracles.random_parameters(p.kind, *p.weights.shape, rng, offsets=False, scale=0.3)
    return base.replace(weights=0 * base.weights, hidden_bias=0 * base.hidden_bias)


def tempered_energy(p, base, beta, v, h):
    """Energies between those of a base and those of a model: (n_v, n_h)."""
    return (1 - beta) * oracles.energy(base, v, h) + beta * oracles.energy(p, v, h)


def tempered_hidden_law(p, base, beta):
    """Probabilities of `hidden_states(p)` where the two energies are mixed.

    Given h, the energy is a sum over visible units: each is summed or integrated by itself.
    """
    h = hidden_states(p)
    reference = np.zeros((1, len(p.weights)))
    at_reference = tempered_energy(p, base, beta, reference, h)
    log_weights = -at_reference[0]
    for kind, own in p.units:
        values, measure = wide_nodes(kind, own)
        v = np.repeat(reference, len(values), axis=0)
        v[:, own] = values
        log_ratios = at_reference - tempered_energy(p, base, beta, v, h)
        log_weights += logsumexp(log_ratios, axis=0, b=measure[:, None])
    return softmax(log_weights)


def wide_nodes(kind, own):
    """Values of a unit, or nodes wherever it may be, with their weights up to a factor."""
    if kind in oracles.GAUSSIAN_ENERGIES:
        return np.linspace(-40, 40, 4001)[:, None], np.ones(4001)
    if kind == "interval":
        values, weights = oracles.gauss_legendre(64)
        return values[:, None], weights
    values = oracles.unit_values(kind, own.stop - own.start)
    return values, np.ones(len(values))


def clamped_log_partition(p, v, is_observed):
    """Log of the sum or integral of exp(-F) over the missing units of a visible state."""
    rows, log_measure = v[None], np.zeros(1)
    for (kind, own), observed in zip(p.units, is_observed, strict=True):
        if not observed:
            values, measure = wide_nodes(kind, own)
            if kind in oracles.GAUSSIAN_ENERGIES:
                measure = measure * (values[1] - values[0])
            n_rows = len(rows)
            rows = np.repeat(rows, len(values), axis=0)
            rows[:, own] = np.tile(values, (n_rows, 1))
            log_measure = np.repeat(log_measure, len(values)) + np.tile(np.log(measure), n_rows)
    return float(oracles.log_sum_exp(log_measure - oracles.free_energy(p, rows)))


def masks(p, n_samples, rng):
    """Masks of observed units: any units are missing if all are discrete, else one of each row."""
    if p.is_discrete:
        return rng.random((n_samples, len(p.units))) < 0.5
    return np.arange(len(p.units)) != rng.integers(len(p.units), size=(n_samples, 1))


def draw_states(states, law, n_samples, rng):
    """Independent draws of states."""
    return states[rng.choice(len(states), n_samples, p=law)]


def chain(p, start, n_steps):
    """Law of a Gibbs chain after steps h -> v -> h from a law `start` over the hidden states.

    Returns the last visible states or nodes, their probabilities, and the law of the last h.
    """
    h = hidden_states(p)
    laws = [visible_law(p, row) for row in h]
    v = np.concatenate([states for states, _ in laws])
    for _ in range(n_steps):
        weights = np.concatenate([q * w for q, (_, w) in zip(start, laws, strict=True)])
        start = weights @ hidden_given_visible(p, v)
    return v, weights, start


def mean_gradient(p, v, probabilities):
    """Average of minus the free energy's gradient, by finite differences of the oracle."""
    return oracles.finite_difference_gradient(
        lambda moved: -(probabilities @ oracles.free_energy(moved, v)), p
    )


def recentered(p, alpha, beta):
    """Parameters of the same distribution with other offsets: the published table, literally."""
    d_alpha, d_beta = alpha - p.visible_offset, beta - p.hidden_offset
    a, b = p.visible_bias.copy(), p.hidden_bias.copy()
    for kind, own in p.parts:
        W, shift = p.weights[own], d_alpha[own]
        pull = W @ d_beta
        if kind not in oracles.GAUSSIAN_ENERGIES:
            a[own] += pull
            b += shift @ W
            continue
        variance = np.exp(p.log_variance)
        sigma = np.sqrt(variance)
        a[own] += (sigma * pull if kind == "krizhevsky" else pull) - shift
        absorbed = {
            "krizhevsky": shift / sigma,
            "cho": shift / variance,
            "goodfellow": pull / variance,
        }
        b += absorbed[kind] @ W
    return p.replace(visible_bias=a, hidden_bias=b, visible_offset=alpha, hidden_offset=beta)


def random_offsets(p, rng):
    """New offsets anywhere: nothing requires them to be means."""
    return rng.normal(0.3, 1, p.weights.shape[0]), rng.normal(0.3, 1, p.weights.shape[1])


def fields(p):
    """Oracle Parameters as a dict of arrays."""
    names = ["weights", "visible_bias", "hidden_bias", "visible_offset", "hidden_offset"]
    names += ["log_variance"] * (p.log_variance is not None)
    names += ["threshold", "asymmetry"] * (p.hidden == "drelu")
    return {name: getattr(p, name) for name in names}


def centered_path(p, v, offsets, learned=True, ascent=lambda p, gradient: gradient):
    """Plain parameters after a centered step of any size, and the velocity of the centered ones.

    Nothing of the package: the centered machine and the way back are the published table, and the
    gradient is the finite difference of its enumerated log-likelihood.
    """
    centered = recentered(p, *offsets)
    velocity = ascent(centered, oracles.log_likelihood_gradient(centered, v))
    if "log_variance" in velocity:
        velocity["log_variance"] = velocity["log_variance"] * learned

    def plain(time):
        moved = {name: getattr(centered, name) + time * rate for name, rate in velocity.items()}
        return recentered(centered.replace(**moved), 0 * offsets[0], 0 * offsets[1])

    return plain, velocity


def explicit_direction(p, v, offsets, learned=True):
    """Velocity of the plain parameters while the centered ones follow their own gradient."""
    plain, velocity = centered_path(p, v, offsets, learned)
    step = 3e-3 / max(np.abs(rate).max() for rate in velocity.values())
    at = [fields(plain(k * step)) for k in (-2, -1, 1, 2)]
    return {
        name: (at[0][name] - 8 * at[1][name] + 8 * at[2][name] - at[3][name]) / (12 * step)
        for name in velocity
    }


def negative_phase(algorithm, machine, n_gibbs_steps=1):
    """Negative phase of an algorithm with whatever else it needs."""
    options = {"base": machine.visible, "ladder": Ladder.of(3)}
    names = {f.name for f in fields_of(algorithm)} & options.keys()
    return algorithm(n_gibbs_steps, **{name: options[name] for name in names})


def assert_mean(draws, expected):
    """Mean of independent draws (n_draws, ...) is the expected one.

    The tolerance is 4 standard errors, widened so that all entries together raise a false alarm
    as rarely as one entry would.
    """
    draws = np.asarray(draws, dtype=np.float64)
    n_draws = len(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(n_draws)
    limit = stats.t.isf(FALSE_ALARM / 2 / error.size, n_draws - 1)
    excess = np.abs(draws.mean(axis=0) - expected) - limit * error
    assert np.all(excess <= 1e-9), f"{excess.max():.3g} beyond {limit:.2f} standard errors"


def law_pvalue(draws, states, probabilities):
    """Of a chi-square test that draws follow a law over these states; rare states are pooled."""
    matches = (draws[:, None, :] == states[None]).all(axis=2)
    assert matches.any(axis=1).all(), "drawn states are not states of the model"
    counts, expected = matches.sum(axis=0), len(draws) * probabilities
    rare = expected < 25
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    statistic = np.sum((counts - expected) ** 2 / expected)
    return stats.chi2.sf(statistic, len(counts) - 1)


def assert_law(draws, states, probabilities):
    """Rows of draws follow a law over these states."""
    assert law_pvalue(draws, states, probabilities) > FALSE_ALARM
