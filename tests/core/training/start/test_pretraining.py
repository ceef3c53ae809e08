"""Machines that have far modes before training begins."""

import numpy as np
import oracles
import pytest
from core.models import machine_from, model, parameters_from, sized, started_layer
from core.training.start.test_clusters import SHARES, found, grouped, patterned
from scipy.special import logsumexp

from skrbm.core.training.start.initialization import initial_hidden_layer, initial_machine
from skrbm.core.training.start.pretraining import (
    N_LIKELIEST_STATES,
    add_hidden_units,
    log_likelihood,
    maximize_likelihood,
    mode_means,
    parameter_bounds,
    pretrained_machine,
)
from skrbm.core.units import Bernoulli, Spin

N_COLUMNS = 10


def parameters_of(kind, n_hidden, n_visible=N_COLUMNS):
    """Any of this kind and size."""
    return oracles.random_parameters(
        kind, n_visible, n_hidden, np.random.default_rng(0), offsets=False
    )


def layer_of(kind, mean, variance):
    """Visible layer of a parameterisation with these moments."""
    return started_layer(parameters_of(kind, 1, len(mean)), mean, variance, 1000)


def mixture(X, centers, shares):
    """Mean log-likelihood under the law that rows are from."""
    squares = ((X[:, None] - centers) ** 2).sum(axis=2) / 2
    density = np.log(shares) - squares - X.shape[1] / 2 * np.log(2 * np.pi)
    return logsumexp(density, axis=1).mean()


def pretrained(kind, X, rng, n_hidden=8, hidden=Bernoulli, **options):
    mean, variance = X.mean(axis=0), X.var(axis=0)
    support = layer_of(kind, mean, variance).support
    modes = found(X, rng, step=support.high - support.low if support.values else 0.0)
    data, mode = layer_of(kind, mean, variance), layer_of(kind, modes.origin, modes.variance)
    machine = pretrained_machine(data, mode, hidden, modes, n_hidden, variance, rng, **options)
    return machine, modes


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_rows_are_nearly_as_likely_as_under_their_own_law(kind, shares, rng):
    """Exactly so where two modes are joined by one unit.

    Slips: hidden biases without what the fields add; an origin elsewhere; shares in another order;
    fields in other units than signals.
    """
    rows, centers = grouped(shares, rng)
    scale = np.geomspace(0.1, 10, N_COLUMNS)
    X, truth = rows * scale, mixture(rows, centers, shares) - np.log(scale).sum()
    machine, _ = pretrained(kind, X, rng)
    oracle = parameters_from(parameters_of(kind, machine.weights.shape[1]), machine)
    actual = oracles.log_likelihood(oracle, X).mean()
    assert actual == pytest.approx(log_likelihood(machine, X))
    assert actual > truth - (0.1 if len(shares) == 2 else 3)


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize(("kind", "hidden"), [("bernoulli", Bernoulli), ("spin", Spin)])
def test_bits_are_as_likely_as_under_their_own_law(kind, hidden, shares, rng):
    """Also those that nothing was learned from.

    Slips: hidden states whose lower one sends a signal; logits by the slope at the origin.
    """
    X, patterns = patterned(shares, rng)
    n_wrong = (X[:, None] != patterns).sum(axis=2)
    noise = n_wrong * np.log(0.02) + (X.shape[1] - n_wrong) * np.log(0.98)
    truth = logsumexp(np.log(shares) + noise, axis=1)[500:].mean()
    if kind == "spin":
        X = 2 * X - 1
    machine, _ = pretrained(kind, X[:500], rng, hidden=hidden)
    assert log_likelihood(machine, X[500:]) > truth - 1.5


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_spins_start_where_bits_do(shares, rng):
    # Slips: fields from the middle of hidden spins; weights as long as if their states were bits.
    options = {"n_steps": (0, 0), "max_loss": np.inf}
    X, _ = patterned(shares, rng)
    bits, _ = pretrained("bernoulli", X, np.random.default_rng(0), **options)
    spins, _ = pretrained("spin", 2 * X - 1, np.random.default_rng(0), hidden=Spin, **options)
    assert log_likelihood(spins, 2 * X - 1) == pytest.approx(log_likelihood(bits, X), abs=0.05)


@pytest.mark.parametrize(("kind", "hidden"), [("bernoulli", Bernoulli), ("spin", Spin)])
def test_few_rows_do_not_tell_how_rare_their_exceptions_are(kind, hidden, rng):
    """Bits without noise in either of two groups: their odds are those of one exception in all.

    Slips: no bounds, where weights grow to 10^16; those of all rows, or of half of them, for either.
    """
    is_second = rng.permutation(np.arange(60) < 20)
    X = np.repeat(is_second[:, None], 40, axis=1).astype(float)
    if kind == "spin":
        X = 2 * X - 1
    machine, _ = pretrained(kind, X, rng, hidden=hidden)
    odds = machine.visible_field(machine.hidden.states(0, 2)) + machine.visible.bias
    odds *= np.ptp(X)
    limits = np.log([[2 * 40 + 1], [2 * 20 + 1]])
    assert np.abs(np.abs(odds) - limits).max() < 0.1


@pytest.mark.parametrize(("seed", "is_enough"), [(11, False), (6, True)])
def test_further_units_forbid_modes_without_rows(seed, is_enough):
    """In which two units are on: five groups of five units are 7 or 20 nats below their law.

    Slips: as many units as groups; a start of 7 nats below refused, or one of 20 taken.
    """
    rng = np.random.default_rng(seed)
    centers = 40.0 * (rng.random((5, 50)) < 0.5)[:, :N_COLUMNS]
    X = centers[rng.integers(5, size=1000)] + rng.normal(size=(1000, N_COLUMNS))
    machine, _ = pretrained("cho", X, rng, n_hidden=5)
    assert (machine is not None) == is_enough
    machine, _ = pretrained("cho", X, rng, n_hidden=10)
    assert machine.weights.shape == (N_COLUMNS, 10)
    assert log_likelihood(machine, X) > mixture(X, centers, SHARES["five"]) - 2


@pytest.mark.parametrize("kind", oracles.GAUSSIAN_ENERGIES)
def test_climbing_ends_where_the_gradient_vanishes(kind, rng):
    # Slips: a gradient of the other sign or scale; parameters that lose their place.
    p = model(sized(kind, 3, 2), 0)
    machine, v = machine_from(p), rng.normal(size=(200, 3)) * [1, 2, 3] + [0, 1, 5]
    data = layer_of(kind, v.mean(axis=0), v.var(axis=0))
    best = maximize_likelihood(machine, v, data, {}, 500)
    assert log_likelihood(best, v) > log_likelihood(machine, v)
    gradient = oracles.log_likelihood_gradient(parameters_from(p, best), v)
    for name, array in gradient.items():
        np.testing.assert_allclose(array, 0, atol=0.02, err_msg=name)


def test_climbing_keeps_variances_in_their_bounds_and_the_machine_as_it_is(rng):
    # Slips: no bounds; steps that write into the machine that was given.
    v = np.repeat(rng.normal(size=(2, 3)), 50, axis=0)  # which a hidden unit can reproduce exactly
    mean, variance = v.mean(axis=0), v.var(axis=0)
    data = layer_of("cho", mean, variance)
    machine = initial_machine(data, initial_hidden_layer(Bernoulli, 1), mean, variance, rng)
    before = {name: array.copy() for name, array in machine.parameters.items()}
    best = maximize_likelihood(machine, v, data, parameter_bounds(machine, variance, 50, [50]), 500)
    share = np.exp(best.visible.log_variance) / variance
    assert share.min() > 0.99e-4
    for name, array in machine.parameters.items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("n_hidden", [5, 6, 100])
def test_more_hidden_units_hardly_change_the_law(n_hidden, rng):
    # Slips: weights as if the data were of one mode; biases of other units.
    X, _ = grouped(SHARES["five"], rng)
    machine, _ = pretrained("cho", X, rng, n_hidden=5)
    wide = add_hidden_units(machine, n_hidden, X.mean(axis=0), X.var(axis=0), rng)
    assert wide.weights.shape == (N_COLUMNS, n_hidden)
    assert wide is machine or n_hidden > 5
    np.testing.assert_array_equal(wide.weights[:, :5], machine.weights)
    change = wide.free_energy(X) - machine.free_energy(X)
    assert change.std() < 1


def test_mode_means_are_in_all_modes(rng):
    # Slip: the least likely states.
    X, _ = grouped(SHARES["five"], rng)
    machine, modes = pretrained("cho", X, rng, n_hidden=5)
    means = mode_means(machine)
    assert means.shape == (N_LIKELIEST_STATES, N_COLUMNS)
    nearest = np.abs(means[:5, None] - modes.centers).max(axis=2).argmin(axis=1)
    assert set(nearest) == set(range(5))
