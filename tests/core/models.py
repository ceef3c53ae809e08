"""Bridge between the oracles and the package, and what the tests of core/ share.

A new energy joins `oracles.ENERGIES` and `machine_from`; every test then runs over it.
"""

from dataclasses import fields as fields_of
from dataclasses import replace

import numpy as np
import oracles
from scipy import stats
from scipy.special import logsumexp, softmax

from skrbm.core.machine import Machine
from skrbm.core.sampling import Ladder
from skrbm.core.units import Bernoulli, Gaussian, Spin

DISCRETE = {"bernoulli": Bernoulli, "spin": Spin}
NAMES = {"visible_log_variance": "log_variance"}  # of parameters in the oracles, where they differ
SHAPES = ((3, 2), (2, 4), (4, 3))
CASES = [(kind, *s, offsets) for kind in oracles.ENERGIES for s in SHAPES for offsets in (0, 1)]
GAUSSIAN_CASES = [case for case in CASES if case[0] in oracles.GAUSSIAN_ENERGIES]
FALSE_ALARM = 2 * stats.norm.sf(4)  # probability of a normal variable beyond 4 standard errors


def case_id(case):
    """Readable name of a case."""
    kind, n_visible, n_hidden, offsets = case
    return f"{kind}-{n_visible}x{n_hidden}-{'offsets' if offsets else 'plain'}"


def model(case, seed, scale=0.8):
    """Random oracle Parameters of a case."""
    kind, n_visible, n_hidden, offsets = case
    rng = np.random.default_rng([seed, n_visible, n_hidden, oracles.ENERGIES.index(kind)])
    return oracles.random_parameters(
        kind, n_visible, n_hidden, rng, offsets=bool(offsets), scale=scale
    )


def balanced_model(case, seed):
    """Random model of a case for statistics: strong weights, and no unit that rarely changes.

    A standard error can be estimated from draws only where all that happens happens often.
    """
    kind, n_visible, n_hidden, offsets = case
    p = model(case, seed)
    rng = np.random.default_rng([seed, 2])
    middle = np.mean(p.hidden_values)
    reach = p.hidden_values[1] - middle
    sigma = np.exp(p.log_variance / 2) if p.is_gaussian else np.ones(n_visible)
    coupling = rng.choice([-1, 1], p.weights.shape) * rng.uniform(0.4, 0.7, p.weights.shape)
    width = 1 if kind == "krizhevsky" else sigma[:, None]
    balanced = p.replace(
        weights=coupling * width / (reach if p.is_gaussian else reach**2),
        visible_bias=rng.normal(0, 0.2, n_visible) * sigma,
        hidden_bias=rng.normal(0, 0.2, n_hidden),
        visible_offset=np.full(n_visible, middle),
        hidden_offset=np.full(n_hidden, middle),
    )
    return recentered(balanced, offsets * p.visible_offset, offsets * p.hidden_offset)


def machine_from(p, dtype=np.float64, **gaussian_options):
    """Machine of the package with copies of the oracle's parameters; zero offsets become None."""
    alpha, beta = (
        None if not o.any() else o.astype(dtype) for o in (p.visible_offset, p.hidden_offset)
    )
    a, b, W = (np.array(x, dtype=dtype) for x in (p.visible_bias, p.hidden_bias, p.weights))
    hidden = DISCRETE["spin" if p.kind == "spin" else "bernoulli"](b, offset=beta)
    if p.is_gaussian:
        z = np.array(p.log_variance, dtype=dtype)
        visible = Gaussian(a, z, parameterization=p.kind, offset=alpha, **gaussian_options)
    else:
        visible = DISCRETE[p.kind](a, offset=alpha)
    return Machine(visible, hidden, W)


def replace_parameters(machine, parameters):
    """Machine with some of its parameters exchanged, under their names in `Machine.parameters`."""
    layers = {
        layer: replace(
            getattr(machine, layer),
            **{
                name.removeprefix(f"{layer}_"): array
                for name, array in parameters.items()
                if name.startswith(f"{layer}_")
            },
        )
        for layer in ("visible", "hidden")
    }
    return Machine(**layers, weights=parameters.get("weights", machine.weights))


def parameters_from(kind, machine):
    """Oracle Parameters of a machine: the inverse of `machine_from`."""
    n_visible, n_hidden = machine.weights.shape
    alpha, beta = machine.visible.offset, machine.hidden.offset
    return oracles.Parameters(
        kind=kind,
        weights=machine.weights,
        visible_bias=machine.visible.bias,
        hidden_bias=machine.hidden.bias,
        visible_offset=np.zeros(n_visible) if alpha is None else alpha,
        hidden_offset=np.zeros(n_hidden) if beta is None else beta,
        log_variance=getattr(machine.visible, "log_variance", None),
    )


def renamed(gradient):
    """Gradient of the package under the oracle's names."""
    return {NAMES.get(name, name): array for name, array in gradient.items()}


def assert_same_arrays(actual, expected, atol):
    """Two dicts of arrays have the same keys and agree."""
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, rtol=0, atol=atol, err_msg=name)


def visible_states(p, rng, n_samples=6):
    """Visible states to evaluate a model at: all of a discrete one, real ones around the origin."""
    if p.is_gaussian:
        return rng.normal(0, 2, (n_samples, p.weights.shape[0]))
    return oracles.states(p.visible_values, p.weights.shape[0])


def hidden_states(p):
    """All hidden states."""
    return oracles.states(p.hidden_values, p.weights.shape[1])


def hidden_law(p):
    """Probabilities of `hidden_states(p)`, from p(h) = p(v, h) / p(v | h) at one reference v."""
    h = hidden_states(p)
    if not p.is_gaussian:
        weights = np.exp(-oracles.energy(p, oracles.states(p.visible_values, len(p.weights)), h))
        return weights.sum(axis=0) / weights.sum()
    reference = np.zeros((1, len(p.weights)))
    mean, deviation = oracles.mean_visible(p, h), np.sqrt(oracles.variance_visible(p, h))
    log_weights = -oracles.energy(p, reference, h)[0]
    log_weights -= stats.norm.logpdf(reference, mean, deviation).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def visible_law(p, h):
    """States or quadrature nodes of v given one h (n_hidden,), with their probabilities."""
    if not p.is_gaussian:
        v = oracles.states(p.visible_values, len(p.weights))
        weights = np.exp(-oracles.energy(p, v, h[None])[:, 0])
    else:
        nodes = oracles.states(np.linspace(-7, 7, 25), len(p.weights))
        mean, variance = oracles.mean_visible(p, h[None]), oracles.variance_visible(p, h[None])
        v, weights = mean + np.sqrt(variance) * nodes, np.exp(-(nodes**2).sum(axis=1) / 2)
    return v, weights / weights.sum()


def hidden_given_visible(p, v):
    """Probabilities p(h | v) of every hidden state: (n_samples, n_states)."""
    log_weights = oracles.free_energy(p, v)[:, None] - oracles.energy(p, v, hidden_states(p))
    return np.exp(log_weights)


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
    h, n_visible = hidden_states(p), len(p.weights)
    nodes = np.linspace(-40, 40, 4001) if p.is_gaussian else np.array(p.visible_values)
    reference = np.full((1, n_visible), nodes[0] if not p.is_gaussian else 0.0)
    at_reference = tempered_energy(p, base, beta, reference, h)
    log_weights = -at_reference[0]
    for i in range(n_visible):
        v = np.repeat(reference, len(nodes), axis=0)
        v[:, i] = nodes
        log_weights += logsumexp(at_reference - tempered_energy(p, base, beta, v, h), axis=0)
    return softmax(log_weights)


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
    W = p.weights
    if not p.is_gaussian:
        a, b = p.visible_bias + W @ d_beta, p.hidden_bias + d_alpha @ W
    else:
        variance = np.exp(p.log_variance)
        sigma = np.sqrt(variance)
        pull = W @ d_beta
        a = p.visible_bias - d_alpha + (sigma * pull if p.kind == "krizhevsky" else pull)
        absorbed = {
            "krizhevsky": d_alpha / sigma,
            "cho": d_alpha / variance,
            "goodfellow": pull / variance,
        }
        b = p.hidden_bias + absorbed[p.kind] @ W
    return p.replace(visible_bias=a, hidden_bias=b, visible_offset=alpha, hidden_offset=beta)


def random_offsets(p, rng):
    """New offsets anywhere: nothing requires them to be means."""
    return rng.normal(0.3, 1, p.weights.shape[0]), rng.normal(0.3, 1, p.weights.shape[1])


def fields(p):
    """Oracle Parameters as a dict of arrays."""
    names = ["weights", "visible_bias", "hidden_bias", "visible_offset", "hidden_offset"]
    return {name: getattr(p, name) for name in names + ["log_variance"] * p.is_gaussian}


def centered_path(p, v, offsets, learned=True, ascent=lambda p, gradient: gradient):
    """Plain parameters after a centred step of any size, and the velocity of the centred ones.

    Nothing of the package: the centred machine and the way back are the published table, and the
    gradient is the finite difference of its enumerated log-likelihood.
    """
    centred = recentered(p, *offsets)
    velocity = ascent(centred, oracles.log_likelihood_gradient(centred, v))
    if "log_variance" in velocity:
        velocity["log_variance"] = velocity["log_variance"] * learned

    def plain(time):
        moved = {name: getattr(centred, name) + time * rate for name, rate in velocity.items()}
        return recentered(centred.replace(**moved), 0 * offsets[0], 0 * offsets[1])

    return plain, velocity


def explicit_direction(p, v, offsets, learned=True):
    """Velocity of the plain parameters while the centred ones follow their own gradient."""
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
