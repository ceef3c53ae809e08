"""Every unit type against sums, quadratures and finite differences of its own energy and signal."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from core.models import assert_mean
from scipy.special import expit, logsumexp

from skrbm.core.units import PARAMETERIZATIONS, Bernoulli, Gaussian, Spin

N_UNITS = 3


def gaussian(parameterization):
    def create(bias, rng, **options):
        variance = rng.normal(0, 0.7, len(bias))
        return Gaussian(bias, variance, parameterization=parameterization, **options)

    return create


UNITS = {  # a new unit type joins here
    "bernoulli": lambda bias, rng, **options: Bernoulli(bias, **options),
    "spin": lambda bias, rng, **options: Spin(bias, **options),
    **{name: gaussian(name) for name in (*PARAMETERIZATIONS, "natural")},
}
TYPES = {"bernoulli": Bernoulli, "spin": Spin} | dict.fromkeys(
    (*PARAMETERIZATIONS, "natural"), Gaussian
)


@pytest.fixture(params=UNITS)
def name(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "offset"])
def units(name, request, rng):
    offset = rng.normal(size=N_UNITS) if request.param else None
    return UNITS[name](rng.normal(size=N_UNITS), rng, offset=offset)


@pytest.fixture
def field(units, rng):
    return rng.normal(0, 2, (4, units.n_units))


def nodes(unit):
    """Values of one unit with their log measure: its states, or a wide and fine grid."""
    if unit.states is not None:
        return np.array(unit.states), 0.0
    grid = np.linspace(-60, 60, 8001)
    return grid, np.log(grid[1] - grid[0])


def expectation(units, field, function):
    """E[function(states)] of every unit given the field, (n_samples, n_units), by summation."""
    columns = []
    for i in range(units.n_units):
        unit = units.take(i)
        values, _ = nodes(unit)
        s = values[:, None]
        log_weights = -unit.energy(s) + field[:, i : i + 1] * unit.signal(s)[:, 0]
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        columns.append(weights @ function(unit, s)[:, 0] / weights.sum(axis=1))
    return np.stack(columns, axis=1)


def test_log_partition_sums_over_the_states(units, field):
    # Slips: offset times field forgotten, the Gaussian's log(2 pi) dropped.
    total = 0
    for i in range(units.n_units):
        unit = units.take(i)
        values, measure = nodes(unit)
        s = values[:, None]
        total += logsumexp(
            measure - unit.energy(s) + field[:, i : i + 1] * unit.signal(s)[:, 0], axis=1
        )
    np.testing.assert_allclose(units.log_partition(field), total, rtol=0, atol=1e-9)


def test_means_are_expectations(units, field):
    # Slips: p in place of 2p - 1 for spins, expit(x) for expit(2x), a lost offset.
    mean = expectation(units, field, lambda unit, s: s)
    np.testing.assert_allclose(units.mean(field), mean, rtol=0, atol=1e-9)


def test_rare_states_keep_their_relative_precision():
    # Slip: one plus the hyperbolic tangent, which rounds probabilities below 1e-8 to zero.
    field = np.array([[-80, -20, -3, 0, 3, 200]], dtype=np.float32)
    means = Bernoulli(np.zeros(6, np.float32)).mean(field)
    np.testing.assert_allclose(means, expit(field.astype(np.float64)), rtol=1e-6)


def test_mean_moments_are_expected_moments(units, field, rng):
    # Slip: the variance left out of the mean square of a Gaussian unit.
    weights = rng.dirichlet(np.ones(len(field)))
    for m, moment in enumerate(units.mean_moments(units.mean(field), weights)):

        def each(unit, s, m=m):
            return np.stack([unit.moments(row[None], None)[m] for row in s])

        expected = weights @ expectation(units, field, each)
        np.testing.assert_allclose(moment, expected, rtol=0, atol=1e-9)


def test_gradient_is_that_of_the_log_partition(units, field, rng):
    # Slips: factor 1 / (2 sigma^3), sigma differentiated in place of log sigma^2, r^2 dropped.
    step = 1e-4
    weights = rng.dirichlet(np.ones(len(field)))
    gradient = units.gradient(
        units.mean_moments(units.mean(field), weights),
        lambda: weights @ field,
        lambda: weights @ (field * units.signal(units.mean(field))),
    )
    assert gradient.keys() == units.parameters.keys()
    for name, array in units.parameters.items():
        slope = np.zeros_like(array)
        for i in range(len(array)):
            unit = np.arange(len(array)) == i
            at = [
                weights @ replace(units, **{name: array + k * step * unit}).log_partition(field)
                for k in (-2, -1, 1, 2)
            ]
            slope[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
        np.testing.assert_allclose(gradient[name], slope, rtol=0, atol=1e-8, err_msg=name)


def test_samples_have_the_mean_and_the_variance_of_the_law(units, rng):
    # Slips: variance in place of standard deviation, no noise, spins drawn in {0, 1}.
    field = rng.uniform(-1, 1, (4, units.n_units)) - units.bias  # no state is too rare to be seen
    mean = expectation(units, field, lambda unit, s: s)
    square = expectation(units, field, lambda unit, s: s**2)
    draws = units.sample(np.repeat(field, 5000, axis=0), rng).reshape(4, 5000, -1)
    assert_mean(draws.swapaxes(0, 1), mean)
    assert_mean(draws.swapaxes(0, 1) ** 2, square)


def test_samples_are_states(units, field, rng):
    if units.states is not None:
        assert set(np.unique(units.sample(np.repeat(field, 50, axis=0), rng))) == set(units.states)
    else:
        assert np.isfinite(units.sample(field, rng)).all()


def test_recentered_layer_absorbs_the_field(units, rng):
    # Slips: an absorbed field scaled by the wrong power of sigma, the old offset kept.
    field = rng.normal(size=units.n_units)
    values, _ = nodes(units)
    states = rng.choice(values, (6, units.n_units))
    for offset in (None, rng.normal(size=units.n_units)):
        moved = units.recentered(offset, field)
        change = moved.energy(states) - (units.energy(states) - moved.signal(states) @ field)
        rounding = 1e-12 * max(1, np.abs(moved.energy(states)).max())
        np.testing.assert_allclose(change - change[0], 0, rtol=0, atol=rounding)


def test_alternatives_complete_the_sum_over_states(units):
    # Slips: quadrature nodes too far apart, or too few to cover the means within the bounds.
    bounds = np.array([-3.0]), np.array([5.0])
    for i in range(units.n_units):
        unit = units.take(i)
        own = np.full((1, 1), nodes(unit)[0][-1])
        values, measure = unit.alternatives(own, *bounds)
        s = values[0][:, None]
        for f in (-3.0, 0.7, 5.0):
            terms = measure - unit.energy(s) + f * unit.signal(s)[:, 0]
            if unit.states is not None:
                terms = np.append(terms, -unit.energy(own) + f * unit.signal(own)[:, 0])
            expected = unit.log_partition(np.array([[f]]))[0]
            np.testing.assert_allclose(logsumexp(terms), expected, rtol=0, atol=1e-10)


def test_start_resembles_the_data(name, rng):
    # Slip: the bias of a spin set to its log-odds, which are twice the bias.
    options = {"parameterization": name} if TYPES[name] is Gaussian else {}
    low, high = TYPES[name].domain or (-5, 5)
    mean = low + (high - low) * rng.uniform(0.05, 0.95, N_UNITS)
    variance = rng.uniform(0.1, 3, N_UNITS)
    units = TYPES[name].start(mean, variance, 100, **options)
    still = np.zeros((1, N_UNITS))
    np.testing.assert_allclose(units.mean(still)[0], mean, rtol=0, atol=1e-12)
    if units.states is None:
        square = expectation(units, still, lambda unit, s: s**2)[0] - mean**2
        np.testing.assert_allclose(square, variance, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_samples", [1, 10, 10**6])
def test_start_is_finite_for_constant_data(name, n_samples):
    # Slip: log(0) or arctanh(1) of a column that never changes.
    options = {"parameterization": name} if TYPES[name] is Gaussian else {}
    low, high = TYPES[name].domain or (-5.0, 5.0)
    mean = np.array([low, (low + high) / 2, high])
    units = TYPES[name].start(mean, np.zeros(3), n_samples, **options)
    assert all(np.isfinite(array).all() for array in units.parameters.values())
    assert np.all(np.diff(units.mean(np.zeros((1, 3)))) > 0)


def test_too_many_quadrature_nodes_are_refused():
    unit = Gaussian(np.zeros(1), np.log([1e-8]), parameterization="cho")
    with pytest.raises(ValueError, match=r"10000 quadrature nodes .* Reduce components_"):
        unit.alternatives(np.zeros((1, 1)), np.array([-1e3]), np.array([1e3]))


def test_learned_variances_are_chosen_unit_by_unit(rng):
    units = Gaussian(np.zeros(2), np.zeros(2), parameterization="cho", learn_variance=False)
    assert units.parameters.keys() == {"bias"}
    masked = replace(units, learn_variance=np.array([True, False]))
    pull = functools.partial(np.ones, 2)
    gradient = masked.gradient((np.ones(2), np.full(2, 5.0)), pull, pull)
    assert gradient["log_variance"][0] != 0
    assert gradient["log_variance"][1] == 0
