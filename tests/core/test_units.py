"""Every unit type against sums, quadratures and finite differences of its own energy and signal."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.count_units import Count
from core.models import FALSE_ALARM, assert_mean
from scipy import sparse
from scipy.special import erfcx, expit, logsumexp
from scipy.stats import kstest, norm

from skrbm.core.units import (
    PARAMETERIZATIONS,
    Bernoulli,
    Categorical,
    Composite,
    DReLU,
    Gaussian,
    Interval,
    Mixture,
    QuadratureError,
    ReLU,
    Spin,
    StandardGaussian,
)
from skrbm.core.units.support import ColumnStatistics

N_UNITS = 3


def linear(kind):
    return lambda rng, offset: kind(rng.normal(size=N_UNITS), offset=offset(N_UNITS))


def gaussian(parameterization):
    def create(rng, offset):
        return Gaussian(
            rng.normal(size=N_UNITS),
            rng.normal(0, 0.7, N_UNITS),
            parameterization=parameterization,
            offset=offset(N_UNITS),
        )

    return create


def double_rectified(rng, offset):
    threshold, asymmetry = rng.normal(size=N_UNITS), rng.uniform(-0.6, 0.6, N_UNITS)
    return DReLU(rng.normal(size=N_UNITS), threshold, asymmetry, offset=offset(N_UNITS))


def categorical(rng, offset):
    return Categorical(rng.normal(size=7), (2, 3, 2), offset=offset(7))


def mixture(rng, offset):
    """A unit with two modes, one with a mode and an atom, one with two modes and two atoms."""
    return Mixture(
        rng.normal(size=N_UNITS),
        rng.normal(0, 0.4, N_UNITS),
        np.array([[-0.5, -1, -np.inf, -np.inf], [-1, -0.5, -np.inf, -np.inf], [-1, -2, -1.5, -1]]),
        np.array([[-1, 0.8, 0, 0], [0.3, 0.17, 0, 0], [-0.4, -1.23, 1.6, 0.57]]),
        np.array([[0.2, 0.5, 0, 0], [0.9, 0, 0, 0], [0.3, 0, 0.6, 0]]),
        offset=offset(N_UNITS),
    )


def composite(rng, offset):
    parts = (categorical, linear(Spin), linear(Interval), gaussian("cho"), linear(Count))
    return Composite(tuple(part(rng, offset) for part in parts))


UNITS = {  # a new unit type joins here
    "bernoulli": linear(Bernoulli),
    "spin": linear(Spin),
    "interval": linear(Interval),
    "count": linear(Count),
    "categorical": categorical,
    **{name: gaussian(name) for name in (*PARAMETERIZATIONS, "natural")},
    "mixture": mixture,
    "standard gaussian": linear(StandardGaussian),
    "relu": linear(ReLU),
    "drelu": double_rectified,
    "composite": composite,
}


@pytest.fixture(params=UNITS)
def name(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "offset"])
def units(name, request, rng):
    return UNITS[name](rng, lambda n: rng.normal(size=n) if request.param else None)


@pytest.fixture
def field(units, rng):
    return rng.normal(0, 2, (4, units.n_columns))


def nodes(unit):
    """Values of one unit, (n_values, n_own), with their log measure: states, or a fine grid."""
    if unit.is_discrete:
        return unit.unit_values(0), 0.0
    if np.isfinite(unit.support.high):
        values, weights = oracles.gauss_legendre(64)
        return values[:, None], np.log(weights)
    atoms = unit.unit_atoms(0)
    edges = np.arange(max(-60, unit.support.low), 61)  # a density may have a kink at zero
    values, weights = oracles.gauss_legendre(20)  # whose nodes are no atoms
    log_weights = np.broadcast_to(np.log(weights), (len(edges) - 1, 20))
    values = np.append((edges[:-1, None] + values).ravel(), atoms)[:, None]
    return values, np.append(log_weights.ravel(), np.zeros(len(atoms)))


def laws(units, field):
    """Of every unit: itself, its columns, its values, and their log-weights given the field."""
    for i in range(units.n_units):
        unit, columns = units.take(i), units.unit_columns(i)
        values, measure = nodes(unit)
        log_weights = measure - unit.energy(values) + field[:, columns] @ unit.signal(values).T
        yield unit, columns, values, log_weights


def expectation(units, field, function):
    """E[function(states)] in every column given the field, (n_samples, n_columns), by summation."""
    answer = np.zeros_like(field)
    for unit, columns, values, log_weights in laws(units, field):
        weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        answer[:, columns] = weights @ function(unit, values)
    return answer


def drawn_states(units, n_samples, rng):
    """States far and wide."""
    states = np.zeros((n_samples, units.n_columns))
    for i in range(units.n_units):
        values, _ = nodes(units.take(i))
        states[:, units.unit_columns(i)] = rng.choice(values, n_samples)
    return states


def test_log_partition_sums_over_the_states(units, field):
    # Slips: offset times field forgotten, the Gaussian's log(2 pi) dropped, a sum over columns in
    # place of units.
    total = sum(logsumexp(log_weights, axis=1) for *_, log_weights in laws(units, field))
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interval_keeps_its_precision_where_its_formulas_are_zero_over_zero(dtype):
    # Slips: 1 / (1 - exp(-x)) - 1 / x near zero, where all digits cancel; exp(x) that overflows.
    x = np.array([0, 1e-9, 1e-4, 0.02, 0.0299, 0.0301, 0.1, 5, 100], dtype=dtype)
    x = np.concatenate([-x, x])
    unit = Interval(np.zeros(1, dtype))
    values, weights = oracles.gauss_legendre(200)
    exponents = np.outer(values, x.astype(np.float64))
    log_partition = logsumexp(exponents, axis=0, b=weights[:, None])
    mean = values @ (weights[:, None] * np.exp(exponents - log_partition))
    eps = np.finfo(dtype).eps
    atol = max(40 * eps, 1e-12)
    np.testing.assert_allclose(unit.mean(x[:, None])[:, 0], mean, rtol=0, atol=atol)
    answer = unit.log_partition(x[:, None])
    atol = max(8 * eps, 1e-12)
    np.testing.assert_allclose(answer, log_partition, rtol=8 * eps, atol=atol)
    steep = np.array([[-1e4], [1e4]], dtype)
    np.testing.assert_allclose(unit.mean(steep)[:, 0], [1e-4, 1 - 1e-4], rtol=8 * eps)
    np.testing.assert_allclose(unit.log_partition(steep), [0, 1e4] - np.log(1e4), rtol=8 * eps)


STEEP = [-1e6, -300, -31, -29, -11, -9, -3, 0.0, 3, 300]  # fields, in standard deviations


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rectified_units_keep_their_precision_far_below_zero(dtype):
    # Slips: z + phi(z) / Phi(z), whose terms cancel; exp(-x^2 / 2), which is zero.
    x = np.array(STEEP, dtype=dtype)
    unit, exact = ReLU(np.zeros(1, dtype)), x.astype(np.float64)
    s, weights = oracles.gauss_legendre(400)
    low = np.maximum(exact - 12, 0)
    width = np.maximum(exact, 0) + 40 / np.maximum(3, -exact) - low  # all of it but exp(-40)
    s = low[:, None] + s * width[:, None]
    exponent = exact[:, None] * s - s**2 / 2
    log_weights = exponent + np.log(weights * width[:, None])
    total = logsumexp(log_weights, axis=1)
    mean = (np.exp(log_weights - total[:, None]) * s).sum(axis=1)
    rtol = max(4 * np.finfo(dtype).eps, 1e-11)
    np.testing.assert_allclose(unit.mean(x[:, None])[:, 0], mean, rtol=rtol)
    np.testing.assert_allclose(unit.log_partition(x[:, None]), total, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("x", STEEP)
def test_draws_of_rectified_units_follow_their_law(x, rng):
    # Slips: an inverse distribution function that is minus infinity in the tail, a law that is
    # exponential throughout, the same number for the side of a unit and for its state.
    draws = ReLU(np.zeros(1)).sample(np.full((5000, 1), x), rng)[:, 0]
    assert (draws >= 0).all()
    t = np.sort(draws)
    if x < -20:  # the survival function relative to its value at zero, without underflow
        survival = np.exp(x * t - t**2 / 2) * erfcx((t - x) / 2**0.5) / erfcx(-x / 2**0.5)
    else:
        survival = norm.sf(t - x) / norm.sf(-x)
    assert kstest(survival, "uniform").pvalue > FALSE_ALARM
    sides = DReLU(np.zeros(1), np.full(1, -0.3), np.full(1, 0.5))
    field = np.full((5000, 1), np.clip(x, -0.3, 0.3))  # neither side is rare
    states = sides.sample(field, rng)[:, 0]
    assert_mean(states, sides.mean(field[:1])[0, 0])
    assert_mean((states > 0) * 1.0, sides._sides(field[:1]).probabilities[0, 0, 0])


def test_double_rectified_units_alike_on_both_sides_are_gaussian(rng):
    # Slips: a side's share of the law that is not its own, thresholds of one sign.
    bias, field = rng.normal(size=3), rng.normal(0, 3, (50, 3))
    one, other = DReLU(bias, np.zeros(3), np.zeros(3)), StandardGaussian(bias)
    for question in ("log_partition", "mean", "energy"):
        answers = getattr(one, question)(field), getattr(other, question)(field)
        np.testing.assert_allclose(*answers, rtol=1e-12, atol=1e-10)


@pytest.mark.every_kind
def test_expected_moments_are_expectations_of_moments(units, field, rng):
    # Slips: the variance left out of the mean square of a Gaussian unit, weights that sum to zero
    # taken for probabilities.
    weights = rng.normal(size=len(field))
    moments = units.expected_moments(units.mean(field), field, weights)
    assert moments.keys() == units.parameters.keys()
    for name, moment in moments.items():
        total = np.zeros(units.n_columns)
        for (unit, columns, values, log_weights), own in zip(
            laws(units, field), names_of(units, name), strict=True
        ):
            if own is not None:
                law = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
                is_likely = law.max(axis=0) > 1e-20  # all others add less than 1e-14
                law, values = law[:, is_likely], values[is_likely]
                each = np.stack([unit.moments(row[None], np.ones(1))[own] for row in values])
                total[columns] = weights @ law @ each
        expected = total[[own is not None for own in columns_of(units, name)]]
        np.testing.assert_allclose(moment, expected, rtol=0, atol=1e-9, err_msg=name)


def names_of(units, name):
    """For every unit, what its own type calls a parameter of the layer; None if it has no part."""
    if not isinstance(units, Composite):
        return [name] * units.n_units
    number, _, own = name.partition("_")
    return [
        own if str(p) == number else None
        for p, part in enumerate(units.parts)
        for _ in range(part.n_units)
    ]


def columns_of(units, name):
    """The same for every column."""
    names = names_of(units, name)
    return [names[i] for i in range(units.n_units) for _ in units.unit_columns(i)]


def test_gradient_is_that_of_the_log_partition(units, field, rng):
    # Slips: factor 1 / (2 sigma^3), sigma differentiated in place of log sigma^2, r^2 dropped, the
    # signal's own derivative left out or given to another part.
    step = 1e-4
    weights = rng.dirichlet(np.ones(len(field)))
    mean = units.mean(field)
    gradient = units.expected_moments(mean, field, weights)
    pull, work = weights @ field, weights @ (field * units.signal(mean))
    for name, array in units.signal_gradient(pull, work).items():
        gradient[name] = gradient[name] + array
    assert gradient.keys() == units.parameters.keys()
    for name in units.parameters:
        slope = np.zeros_like(gradient[name])
        for i in range(len(slope)):
            at = []
            for k in (-2, -1, 1, 2):
                moved = units.astype(np.float64, copy=True)
                moved.parameters[name][i] += k * step
                at.append(weights @ moved.log_partition(field))
            slope[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
        np.testing.assert_allclose(gradient[name], slope, rtol=0, atol=1e-8, err_msg=name)


def test_samples_have_the_mean_and_the_variance_of_the_law(units, rng):
    # Slips: variance in place of standard deviation, no noise, spins drawn in {0, 1}.
    field = rng.uniform(-1, 1, (4, units.n_columns)) - bias_of(units)  # no state is too rare
    mean = expectation(units, field, lambda unit, s: s)
    square = expectation(units, field, lambda unit, s: s**2)
    both = units.mean_and_sample(np.repeat(field, 5000, axis=0), rng)
    np.testing.assert_allclose(both[0][::5000], mean, rtol=0, atol=1e-9)
    for draws in (units.sample(np.repeat(field, 5000, axis=0), rng), both[1]):
        draws = draws.reshape(4, 5000, -1).swapaxes(0, 1)
        assert_mean(draws, mean)
        assert_mean(draws**2, square)


def test_means_of_a_new_array_are_written_where_they_are_asked_for(rng):
    # Slip: an expectation that overwrites its argument is taken for granted.
    class Tidy(Bernoulli):
        def expectation(self, x):
            return 1 / (1 + np.exp(-x))

    field, draws = rng.normal(size=(6, 2)), np.empty((2, 2))
    expected = 1 / (1 + np.exp(-field))
    Tidy(np.zeros(2)).mean_and_sample(field, rng, out=(field, draws))
    np.testing.assert_allclose(field, expected)
    assert np.isin(draws, (0, 1)).all()


def test_values_between_states_are_the_means_of_draws(units, rng):
    # Slips: means of the other state, spins drawn in {0, 1}, other parts' columns,
    # values outside the states drawn.
    mean = units.mean(rng.uniform(-1, 1, (4, units.n_columns)) - bias_of(units))
    draws = units.draw_states_of_means(np.repeat(mean, 5000, axis=0), rng).reshape(4, 5000, -1)
    error = 5 * draws.std(axis=1) / np.sqrt(5000) + 1e-12
    assert (np.abs(draws.mean(axis=1) - mean) < error).all()
    parts, begin = getattr(units, "parts", [units]), 0
    for part in parts:
        own = draws[..., begin : begin + part.n_columns]
        begin += part.n_columns
        assert not isinstance(part, (Bernoulli, Spin)) or np.isin(own, part.support.values).all()
    states = units.sample(np.zeros((3, units.n_columns)), rng)
    np.testing.assert_array_equal(units.draw_states_of_means(states.copy(), rng), states)
    before = rng.bit_generator.state
    np.testing.assert_array_equal(units.draw_states_of_means(mean + 5, rng), mean + 5)
    assert rng.bit_generator.state == before


def test_values_that_are_not_states_have_to_be_drawn(units, rng):
    # Slips: states that are drawn again; a gray value in the last block of rows that is not seen.
    states = np.tile(units.sample(np.zeros((3, units.n_columns)), rng), (5000, 1))
    assert not units.has_means(states)
    gray = np.where(np.arange(len(states))[:, None] == len(states) - 1, 0.3, states)
    parts = getattr(units, "parts", [units])
    assert units.has_means(gray) == any(isinstance(part, (Bernoulli, Spin)) for part in parts)


@pytest.mark.parametrize("kind", [Bernoulli, Spin])
@pytest.mark.parametrize("n_rows", [10, 5000])
def test_means_that_are_rounded_beyond_the_states_are_drawn(kind, n_rows, rng):
    # Slip: a maximum of 1.0000000000000002, as MinMaxScaler makes, that keeps a mini-batch gray.
    low, high = kind.support.values
    for dtype in (np.float32, np.float64):
        values = np.full((n_rows, 2), (low + high) / 2, dtype=dtype)
        values[0] = np.nextafter(dtype(high), dtype(2)), low - np.finfo(dtype).eps
        draws = kind(np.zeros(2, dtype)).draw_states_of_means(values, rng)
        assert np.isin(draws, (low, high)).all()
        np.testing.assert_array_equal(draws[0], [high, low])


@pytest.mark.parametrize("kind", [Bernoulli, Spin])
def test_rows_beyond_the_states_leave_other_rows_to_be_drawn(kind, rng):
    # Slip: one value beyond, and no row of the mini-batch is drawn.
    low, high = kind.support.values
    values = np.full((20, 3), (low + high) / 2)
    values[7, 1] = high + 0.2
    draws = kind(np.zeros(3)).draw_states_of_means(values.copy(), rng)
    np.testing.assert_array_equal(draws[7], values[7])
    assert np.isin(np.delete(draws, 7, 0), (low, high)).all()


def bias_of(units):
    """Bias of every column."""
    parts = units.parts if isinstance(units, Composite) else [units]
    return np.concatenate([part.bias for part in parts])


def test_samples_of_different_units_are_independent(units, rng):
    # Slip: one random number for several units.
    field = np.zeros((5000, units.n_columns))
    residual = units.sample(field, rng) - expectation(units, field[:1], lambda unit, s: s)
    first = [units.unit_columns(i)[0] for i in range(units.n_units)]
    residual = residual[:, first] / residual[:, first].std(axis=0)
    products = residual[:, :, None] * residual[:, None]
    assert_mean(products[:, *np.triu_indices(len(first), 1)], 0)


def test_samples_are_states(units, field, rng):
    draws = units.sample(np.repeat(field, 200, axis=0), rng)
    for i in range(units.n_units):
        unit, own = units.take(i), draws[:, units.unit_columns(i)]
        low, high = unit.column_bounds
        assert ((low <= own) & (own <= high)).all()
        if unit.is_discrete:
            values = {tuple(row) for row in unit.unit_values(0)}
            assert {tuple(row) for row in own} <= values
            assert len({tuple(row) for row in own}) > 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_of_extreme_odds_are_drawn_one_of_a_unit(dtype, rng):
    # Slips: cumulated probabilities that end below one, where no category is drawn; rounding that
    # moves a draw into the next unit.
    unit = Categorical(np.zeros(5, dtype), (3, 2))
    field = rng.choice([-1e4, -30, 0, 30, 1e4], (20_000, 5)).astype(dtype)
    draws = unit.sample(field, rng)
    assert draws.dtype == dtype
    np.testing.assert_array_equal(draws[:, :3].sum(axis=1), 1)
    np.testing.assert_array_equal(draws[:, 3:].sum(axis=1), 1)
    for own in (slice(0, 3), slice(3, 5)):
        chosen = (field[:, own] * draws[:, own]).sum(axis=1)
        assert (chosen > field[:, own].max(axis=1) - 100).all()


class Given:
    """Generator of given uniform numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def random(self, shape):
        given, self.numbers = self.numbers[: shape[0]], self.numbers[shape[0] :]
        assert given.shape == shape
        return given


@pytest.mark.parametrize("widths", [(21,) * 3, (2, 1, 40, 2, 5), (300, 2)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_are_those_of_exact_probabilities(widths, dtype, seed, rng):
    # Slips: cumulated probabilities rounded to single precision, which choose a neighbour or what
    # has no probability; values of units of other widths; numbers of another unit.
    # The numbers lie on both sides of where the category changes, and anywhere.
    n_rows, n_columns = 400, sum(widths)
    units = Categorical(rng.normal(size=n_columns).astype(dtype), widths)
    field = rng.normal(0, 3, (n_rows, n_columns)).astype(dtype)
    field[rng.random(field.shape) < 0.2] -= 1e4
    odds = np.split((field + units.bias).astype(np.float64), np.cumsum(widths)[:-1], axis=1)
    numbers, ends = rng.random((n_rows, len(widths))), []
    for i, own in enumerate(odds):
        weights = np.exp(own - own.max(axis=1, keepdims=True))
        ends.append(np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True))
        edge = ends[-1][np.arange(n_rows), rng.integers(widths[i], size=n_rows)]
        near = edge + rng.choice([-1e-9, 1e-9], n_rows)
        numbers[::2, i] = np.clip(near, 0, 1 - 1e-9)[::2]
    draws = units.sample(field, Given(numbers))
    few = units.sample(field[:4], Given(numbers))  # by another way
    np.testing.assert_array_equal(few, draws[:4])
    for end, number, own in zip(
        ends, numbers.T, np.split(draws, np.cumsum(widths)[:-1], axis=1), strict=True
    ):
        expected = (end[:, :-1] <= number[:, None]).sum(axis=1)
        np.testing.assert_array_equal(own, np.eye(own.shape[1])[expected])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0, 2.0**-40, 0.5, 1 - 2.0**-53])
def test_categories_without_probability_are_never_drawn(number, dtype):
    # Slips: a comparison with <; a number that single precision rounds to one.
    impossible = np.array([[1, 0, 0, 1, 0, 1, 1, 0, 1]], bool)
    field = np.where(impossible, -1e4, 0).astype(dtype)
    units = Categorical(np.zeros(9, dtype), (6, 3))
    draws = units.sample(field, Given(np.full((1, 2), number)))
    np.testing.assert_array_equal((draws > impossible).sum(), 2)


def test_recentered_layer_absorbs_the_field(units, rng):
    # Slips: an absorbed field scaled by the wrong power of sigma, the old offset kept.
    field = rng.normal(size=units.n_columns)
    states = drawn_states(units, 6, rng)
    for offset in (None, rng.normal(size=units.n_columns)):
        moved = units.recentered(offset, field)
        change = moved.energy(states) - (units.energy(states) - moved.signal(states) @ field)
        rounding = 1e-12 * max(1, np.abs(moved.energy(states)).max())
        np.testing.assert_allclose(change - change[0], 0, rtol=0, atol=rounding)


def test_conditional_values_give_the_whole_sum_over_states(units, rng):
    # Slips: quadrature nodes too far apart, or too few to cover the means within the bounds; the
    # present state counted twice or left out; the nodes of an interval that is steep.
    for i in range(units.n_units):
        unit = units.take(i)
        low, high = np.full(unit.n_columns, -3.0), np.full(unit.n_columns, 5.0)
        if isinstance(unit, (StandardGaussian, ReLU, DReLU)):  # hidden units need no quadrature
            with pytest.raises(QuadratureError, match="have no quadrature"):
                unit.conditional_values(drawn_states(unit, 4, rng), low, high)
            continue
        values, log_measure = unit.conditional_values(drawn_states(unit, 4, rng), low, high)
        assert values.shape[1] in (1, 4)
        assert np.broadcast_shapes(log_measure.shape, values.shape[:2]) == values.shape[:2]
        for field in (low, high, rng.uniform(low, high)):
            terms = np.stack([-unit.energy(v) + unit.signal(v) @ field for v in values])
            expected = unit.log_partition(field[None])[0]
            answers = logsumexp(terms + log_measure, axis=0)
            np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-10)


def test_discrete_states_are_counted_and_listed_once(units):
    # Slips: columns counted for units, the states of one width listed for another.
    if not units.is_discrete:
        assert units.n_states == np.inf
        return
    total = int(units.n_states)
    states = np.concatenate([units.states(0, 5), units.states(5, total)])
    assert len(states) == len(np.unique(states, axis=0)) == total
    by_unit = np.prod([len(nodes(units.take(i))[0]) for i in range(units.n_units)])
    assert total == by_unit
    last = units.unit_columns(units.n_units - 1)
    first_rows = units.states(0, len(units.unit_values(units.n_units - 1)))
    rest = np.delete(first_rows, last, axis=1)
    np.testing.assert_array_equal(rest, np.broadcast_to(rest[:1], rest.shape))
    for i in range(units.n_units):
        own = {tuple(row) for row in states[:, units.unit_columns(i)]}
        assert own == {tuple(row) for row in nodes(units.take(i))[0]}


def test_sums_over_units_are_those_of_the_layer(units, field, rng):
    # Slips: units of a group in the order of the rows; columns of other units.
    states = units.sample(field, rng)
    energies, log_partitions = units.unit_energies(states), units.unit_log_partitions(field)
    for parts, expected in (
        (energies, units.energy(states)),
        (log_partitions, units.log_partition(field)),
    ):
        assert parts.shape == (len(field), units.n_units)
        np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-12, atol=1e-12)
    for i in range(units.n_units):
        columns = units.unit_columns(i)
        actual = units.take(i).energy(states[:, columns])
        np.testing.assert_allclose(energies[:, i], actual, rtol=1e-12, atol=1e-12)
        others = states.copy()
        others[:, columns] = np.nan
        rest = np.delete(units.unit_energies(others), i, axis=1)
        np.testing.assert_array_equal(rest, np.delete(energies, i, axis=1))


def test_gauge_takes_out_what_no_probability_depends_on(units, field, rng):
    # Slips: a mean over all columns in place of the unit's; weights that are not equal in number.
    rows = rng.normal(size=(units.n_columns, 4))
    changed = units.gauge(rows)
    for i in range(units.n_units):
        own = units.unit_columns(i)
        if len(own) > 1:
            np.testing.assert_allclose(changed[own].sum(axis=0), 0, atol=1e-14)
            taken = rows[own] - changed[own]
            np.testing.assert_allclose(taken, np.broadcast_to(taken[:1], taken.shape), atol=1e-14)
        else:
            np.testing.assert_array_equal(changed[own], rows[own])
    if units.n_units == units.n_columns:
        assert units.gauge(rows) is rows
    gauged = units.in_zero_sum_gauge()
    np.testing.assert_allclose(gauged.mean(field), units.mean(field), rtol=0, atol=1e-12)
    energies = [
        layer.energy(drawn_states(units, 5, np.random.default_rng(0))) for layer in (gauged, units)
    ]
    np.testing.assert_allclose(np.diff(energies[0] - energies[1]), 0, atol=1e-9)


def started(name, mean, variance, n_samples):
    """Layer of one type that resembles data with these statistics."""
    if name == "categorical":
        return Categorical.start(mean, variance, n_samples, n_categories=(2, 3, 2))
    if name == "composite":
        types = [
            (Categorical, 7, {"n_categories": (2, 3, 2)}),
            (Spin, 3, {}),
            (Interval, 3, {}),
            (Gaussian, 3, {"parameterization": "cho"}),
            (Count, 3, {}),
        ]
        return Composite.start(mean, variance, n_samples, types=types)
    if name == "mixture":
        options = mixture(np.random.default_rng(0), lambda n: None).start_options
        return Mixture.start(mean, variance, n_samples, **options)
    types = {"bernoulli": Bernoulli, "spin": Spin, "interval": Interval, "count": Count}
    types |= {"standard gaussian": StandardGaussian, "relu": ReLU, "drelu": DReLU}
    if name in types:
        return types[name].start(mean, variance, n_samples)
    return Gaussian.start(mean, variance, n_samples, parameterization=name)


def means(units, shares):
    """Means of a layer: of categories in these proportions, of others so far along their range."""
    low, high = (np.clip(bound, -5, 5) for bound in units.column_bounds)
    mean = low + (high - low) * shares
    for i in range(units.n_units):
        own = units.unit_columns(i)
        if len(own) > 1:
            mean[own] /= mean[own].sum()
    return mean


def test_start_resembles_the_data(name, rng):
    # Slip: the bias of a spin set to its log-odds, which are twice the bias.
    like = UNITS[name](rng, lambda n: None)
    mean = means(like, rng.uniform(0.05, 0.95, like.n_columns))
    variance = rng.uniform(0.1, 3, like.n_columns)
    units = started(name, mean, variance, 100)
    no_field = units.zero_field(1)
    np.testing.assert_allclose(units.mean(no_field)[0], mean, rtol=0, atol=1e-12)
    square = expectation(units, no_field, lambda unit, s: s**2)[0] - mean**2
    is_real = np.isinf(like.column_bounds[0]) & (name != "mixture")  # whose base has a variance
    is_real &= not isinstance(like, (StandardGaussian, DReLU))
    np.testing.assert_allclose(square[is_real], variance[is_real], rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_samples", [1, 10, 10**6])
def test_start_is_finite_for_constant_data(name, n_samples, rng):
    # Slip: log(0) or arctanh(1) of a column that never changes, such as an absent category.
    like = UNITS[name](rng, lambda n: None)
    shares = np.tile([0.0, 0.5, 1.0], like.n_columns)[: like.n_columns]
    mean = means(like, shares)
    units = started(name, mean, np.zeros(like.n_columns), n_samples)
    assert all(np.isfinite(array).all() for array in units.parameters.values())
    start = units.mean(units.zero_field(1))[0]
    parts = units.parts if isinstance(units, Composite) else [units]
    ends = np.cumsum([part.n_columns for part in parts])[:-1]
    for own, target in zip(np.split(start, ends), np.split(mean, ends), strict=True):
        order = np.argsort(target)
        assert (np.diff(own[order])[np.diff(target[order]) > 0] > 0).all()


@pytest.mark.parametrize("n_samples", [9, 999])
def test_absent_categories_start_as_if_a_part_of_a_row_had_them(n_samples):
    # Slip: a pseudo-count for every category, which would change the frequencies of the others.
    mean = np.array([0.0, 0.25, 0.75, 1.0, 0.0])
    units = Categorical.start(mean, 0 * mean, n_samples, n_categories=(3, 2))
    start = units.mean(units.zero_field(1))[0]
    assert (start[[0, 4]] > 0).all()
    assert (start[[0, 4]] < 1 / n_samples).all()
    np.testing.assert_allclose(start[2] / start[1], 3)
    for own in (slice(0, 3), slice(3, 5)):
        np.testing.assert_allclose(units.bias[own].sum(), 0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_of_a_category_follow_its_effective_number_of_values(dtype):
    # Slips: the number of values, factors below one, factors without a bound, a unit's neighbors.
    shares = [0.3, 0.7], [0.9, *[0.01] * 10], [0.05] * 20, [0.2, *[0.02] * 40], [0.01] * 100
    expected = 1, 1, 20 / 12, 1 / (12 * (0.2**2 + 40 * 0.02**2)), 8
    widths = tuple(map(len, shares))
    mean = np.concatenate(shares).astype(dtype)
    units = Categorical(np.zeros(sum(widths), dtype), widths)
    signal, parameters = units.metric(ColumnStatistics(mean * (1 - mean)))
    assert signal.dtype == dtype
    np.testing.assert_array_equal(parameters["bias"], signal)
    np.testing.assert_allclose(signal, np.repeat(expected, widths), rtol=1e-5)


def test_too_many_quadrature_nodes_are_refused():
    unit = Gaussian(np.zeros(1), np.log([1e-8]), parameterization="cho")
    with pytest.raises(QuadratureError, match="10000 quadrature nodes that are allowed"):
        unit.conditional_values(np.zeros((1, 1)), np.array([-1e3]), np.array([1e3]))


def test_learned_variances_are_chosen_unit_by_unit(rng):
    units = Gaussian(np.zeros(2), np.zeros(2), parameterization="cho", learn_variance=False)
    assert units.parameters.keys() == {"bias"}
    masked = replace(units, learn_variance=np.array([True, False]))
    moments = masked.moments(np.array([[1.0, 2.0]]), np.ones(1))
    pull = masked.signal_gradient(np.ones(2), np.ones(2))
    for gradient in (moments, pull):
        assert gradient["log_variance"][0] != 0
        assert gradient["log_variance"][1] == 0


def test_bias_of_a_composite_layer_follows_its_parts():
    # Slip: a copy that is kept while training moves the parts in place.
    layer = Composite((Spin(np.zeros(1)), Interval(np.zeros(1))))
    assert not layer.bias.any()
    layer.parts[0].bias[:] = 5
    np.testing.assert_array_equal(layer.bias, [5, 0])


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_energies_of_sparse_rows_are_one_for_each(container):
    # Slip: a matrix of one row, which numpy.matrix makes of the difference from an offset.
    layer = Bernoulli(np.ones(4), offset=np.ones(4))
    np.testing.assert_array_equal(layer.energy(container(np.eye(4))), [3, 3, 3, 3])


def test_slope_of_a_signal_does_not_go_by_the_bias():
    # Slip: the difference of two signals, which a large bias rounds away.
    for bias in (0.0, 1e17):
        layer = Gaussian(np.full(1, bias), np.zeros(1), parameterization="goodfellow")
        for units in (layer, Composite((layer,))):
            np.testing.assert_array_equal(units.affine_signal[1], [1.0])


def test_states_of_many_units_with_one_value_can_be_numbered():
    """Slip: one axis of an array for each unit, of which NumPy has at most 64."""
    units = Categorical(np.zeros(75), (1,) * 70 + (2, 3))
    states = units.states(1, 6)
    np.testing.assert_array_equal(states[:, :70], np.ones((5, 70)))
    np.testing.assert_array_equal(states[:, 70:72].argmax(axis=1), [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(states[:, 72:].argmax(axis=1), [1, 2, 0, 1, 2])
