"""Start of training."""

import time

import numpy as np
import oracles
import pytest
from core.models import (
    assert_mean,
    machine_from,
    model,
    parameters_from,
    sized,
    started_layer,
    visible_layer,
    visible_states,
)
from sklearn.datasets import load_digits

from skrbm.core.training.start import initialization
from skrbm.core.training.start.initialization import (
    column_variances,
    initial_hidden_layer,
    initial_machine,
    initial_particles,
    with_new_columns,
)
from skrbm.core.units import Bernoulli, Categorical, Composite, Spin


def start(kind, n_visible, n_hidden, seed, rng, hidden_bias=0.0):
    """Statistics of some data, a machine started from them, and its oracle parameters."""
    n_visible = 8 if kind == "composite" else n_visible
    p = oracles.random_parameters(kind, n_visible, n_hidden, rng, offsets=False)
    mean = rng.uniform(0.1, 0.9, n_visible)
    variance = mean * (1 - mean)
    for unit, own in p.units:
        if unit == "categorical":
            mean[own] /= mean[own].sum()
            variance[own] = mean[own] * (1 - mean[own])
    if p.log_variance is not None:
        own = p.gaussian_columns
        mean[own], variance[own] = 10 * mean[own], np.exp(p.log_variance)
    visible = started_layer(p, mean, variance, 99)
    variance = column_variances(visible.natural())
    hidden = initial_hidden_layer(type(machine_from(p).hidden), n_hidden)
    hidden = hidden.recentered(None, np.full(n_hidden, hidden_bias))
    machine = initial_machine(visible, hidden, mean, variance, np.random.default_rng(seed))
    return mean, variance, machine, parameters_from(p, machine)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_initial_weights_are_alike_in_the_effect_of_a_standard_deviation(kind, seed, rng):
    # Slips: one scale for all widths, the deviation for the variance, a field that grows with sigma,
    # the metric of one part of a layer used for another.
    # Hidden units without effect on each other: hardly any is on.
    mean, variance, _, p = start(kind, 200, 300, seed, rng, hidden_bias=-12.0)
    n_visible = len(variance)
    energies = oracles.energy(p, np.eye(n_visible + 1, n_visible, k=-1), np.eye(301, 300, k=-1))
    origin, *steps = energies[:, :1] - energies[:, 1:]  # a hidden unit's field lowers the energy
    effects = (steps - origin) ** 2 * variance[:, None]
    scale = initialization.INITIAL_FIELD / (p.hidden_values[1] - p.hidden_values[0])
    assert_mean(effects.sum(axis=0), scale**2)
    own = variance[p.gaussian_columns]
    ones = {"weights": np.ones_like(p.weights)}
    metric = oracles.ascent(p, ones, own, frequencies=mean)["weights"][:, 0]
    shares = metric * (effects / p.weights**2)[:, 0]
    assert_mean(effects.T, scale**2 * shares / shares.sum())


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_hidden_units_start_as_active_as_they_should_at_the_data_s_mean(kind, seed, rng):
    # Slip: data far from zero that hold the hidden units in one state.
    mean, _, _, p = start(kind, 6, 5, seed, rng)
    low, high = p.hidden_values
    activity = low + initialization.INITIAL_ACTIVITY * (high - low)
    np.testing.assert_allclose(oracles.mean_hidden(p, mean[None]), [[activity] * 5], atol=1e-9)


@pytest.mark.slow
@pytest.mark.every_kind
@pytest.mark.parametrize("n_hidden", [1, 8, 64, 1024])
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_initial_machine_has_the_data_s_mean_whatever_its_width(kind, n_hidden, seed, rng):
    # Slips: weights that grow with neither layer's width, which hold a wide machine in one state;
    # the coupling of units to themselves left in, taken back twice, or as if categories had one each.
    mean, variance, machine, _ = start(kind, 10, n_hidden, seed, rng)
    n_chains, n_steps = 2000, 6  # fields are weak: chains forget within two
    h = machine.hidden.sample(machine.hidden.zero_field(n_chains) - 2, rng)
    for _ in range(n_steps):
        h = machine.sample_hidden(machine.sample_visible(h, rng), rng)
    v = machine.mean_visible(h)
    error = v.std(axis=0, ddof=1) / np.sqrt(n_chains)
    higher_orders = 0.1 * np.sqrt(variance)  # which nothing takes back
    assert (np.abs(v.mean(axis=0) - mean) < 4 * error + higher_orders).all()


@pytest.mark.parametrize("unit_type", [Bernoulli, Spin])
def test_rare_states_do_not_throw_the_start(unit_type):
    # Slip, seen with SciPy 1.11 in 3 and 6 of 100 starts: conjugate gradients that go on in the noise
    # of finite differences, and biases of 1e7.
    on = (load_digits().data[:1500] > 7).mean(axis=0)
    low, high = unit_type.support.low, unit_type.support.high
    mean, variance = low + on * (high - low), on * (1 - on) * (high - low) ** 2
    visible, hidden = unit_type.start(mean, variance, 1500), initial_hidden_layer(Bernoulli, 100)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        machine = initial_machine(visible, hidden, mean, variance, rng)
        field = hidden.mean(hidden.zero_field(1)) @ machine.weights.T
        drift = machine.visible.mean(field) - visible.mean(visible.zero_field(1))
        assert (np.abs(drift) < 0.2 * (high - low)).all()


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_variances_are_those_of_the_layer_without_a_field(kind, rng):
    # Slips: a field on all columns of a unit at once, to which it does not respond.
    _, _, machine, _ = start(kind, 6, 2, 0, rng)
    layer = machine.visible.natural()
    draws = layer.sample(layer.zero_field(20_000), rng)
    residual = draws - layer.mean(layer.zero_field(1))
    assert_mean(residual**2, column_variances(layer))


@pytest.mark.parametrize("kind", ["categorical", "composite"])
def test_initial_machine_is_finite_and_hardly_ever_in_a_category_that_is_absent(kind, rng):
    # Slip: the logarithm of a frequency of zero.
    p = oracles.random_parameters(kind, {"categorical": 5}.get(kind, 8), 4, rng, offsets=False)
    v, _ = oracles.sample_exact(p, 500, rng)
    v[:, :5] = [0, 0.0, 1, 0, 1]
    v[:100, :5] = [0, 1, 0.0, 0, 1]
    mean, variance = v.mean(axis=0), v.var(axis=0)
    visible = started_layer(p, mean, variance, len(v))
    machine = initial_machine(visible, initial_hidden_layer(Bernoulli, 4), mean, variance, rng)
    assert all(np.isfinite(array).all() for array in machine.parameters.values())
    start = parameters_from(p, machine)
    assert np.isfinite(oracles.log_likelihood(start, v)).all()
    np.testing.assert_allclose(oracles.model_mean_visible(start)[:5], mean[:5], atol=0.05)


@pytest.mark.parametrize("variance", [0.0, 1e-12])
def test_initial_weights_stay_small_where_the_data_hardly_vary(variance, rng):
    # Slip: division by a vanishing variance.
    visible = Bernoulli.start(np.full(20, 0.5), np.zeros(20), 100)
    machine = initial_machine(
        visible, initial_hidden_layer(Bernoulli, 100), np.full(20, 0.5), np.full(20, variance), rng
    )
    activity = initialization.INITIAL_ACTIVITY
    spread = initialization.MIN_VARIANCE * 100 * activity * (1 - activity)
    assert_mean(machine.weights.ravel() ** 2, initialization.INITIAL_FIELD**2 / spread)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_initial_particles_are_hidden_units_under_independent_features(kind, seed, rng):
    # Slips: particles of a spin machine that start at 0, where no spin can be; the bias alone, which
    # data far from zero make extreme; the model's own visible bias in place of the data's mean.
    p, base = (model(sized(kind, 3, 2), seed + i, scale=0.5) for i in (0, 1))
    particles = initial_particles(machine_from(p), visible_layer(base), 20_000, rng)
    assert set(np.unique(particles)) == set(p.hidden_values)
    uncoupled = base.replace(weights=0 * base.weights)
    v, _ = oracles.sample_exact(uncoupled, 20_000, rng)
    assert_mean(particles - oracles.mean_hidden(p, v), 0)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_new_columns_are_independent_and_leave_the_hidden_units_as_they_are(kind, rng):
    """Slips: the columns of another part, a bias of the hidden units that loses what they absorb."""
    p, other = (model(sized(kind, 4, 3), seed) for seed in (0, 1))
    machine, visible = machine_from(p), visible_layer(other)
    unit = machine.visible.unit_columns(machine.visible.n_units - 1)
    is_new = np.isin(np.arange(machine.visible.n_columns), unit)
    state = visible_states(p, rng, 1)[0]
    renewed = with_new_columns(machine, is_new, visible, state)
    rows = np.stack([state, np.where(is_new, visible_states(p, rng)[-1], state)])
    np.testing.assert_allclose(
        renewed.mean_hidden(rows), machine.mean_hidden(rows[:1]).repeat(2, axis=0), atol=1e-12
    )
    h = machine.sample_hidden(rows, rng)
    means, before = renewed.mean_visible(h), machine.mean_visible(h)
    np.testing.assert_allclose(means[:, ~is_new], before[:, ~is_new], atol=1e-12)
    alone = visible.mean(visible.zero_field(2))
    np.testing.assert_allclose(means[:, is_new], alone[:, is_new], atol=1e-12)
    for name, array in renewed.visible.arrays.items():
        assert not np.shares_memory(array, machine.visible.arrays[name])


def test_variances_of_many_columns_beside_a_label_take_no_time():
    """Seen to take 12 s, with the widths of all units collected for each unit."""
    layer = Composite((Bernoulli(np.zeros(20_000)), Categorical(np.zeros(20), (20,))))
    begin = time.process_time()
    variances = column_variances(layer)
    assert time.process_time() - begin < 2
    np.testing.assert_allclose(variances[:20_000], 1 / 4, rtol=1e-3)
    np.testing.assert_allclose(variances[20_000:], 1 / 20 - 1 / 400, rtol=1e-3)
