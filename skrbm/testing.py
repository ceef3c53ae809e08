"""Tests of a unit type against the interface of `Units`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import quad

from skrbm.core.numerics import Array
from skrbm.core.units import EveryPair, QuadratureError, ShiftedUnits, Units
from skrbm.estimators.input.validation import checked_arguments

N_FIELDS = 5  # rows of the test fields
N_NEAR_FIELDS = 81  # fields at which the variance is compared with its bound
N_DRAWS_PER_FIELD = 20_000  # relative errors of moments are about 0.01
DIFFERENCE_STEP = 1e-3  # of finite differences; five-point ones have errors of order step^4
FAR_STATE, FAR_ERROR = 1e6, 1e-4  # state where quadratic terms dominate, and tolerance there
MAX_ERROR = 1e-6  # relative and absolute tolerance of comparisons in double precision
MAX_SINGLE_ERROR = 1e-4  # the same, of results in single precision
LARGE_FIELD = 1e3  # multiple of the test fields whose exponential overflows
MAX_STD_ERRORS = 6  # of a sample moment; a correct moment fails with a probability of 2e-9


@checked_arguments(units=[Units], rng=[np.random.Generator])
def check_units(units: Units, rng: np.random.Generator) -> None:
    """Test a layer of units: its distribution, gradients, offsets and initialization.

    Most methods are compared with values that are computed from `energy`, `signal` and the values
    of the units, by enumeration, quadrature or finite differences. Some overridden methods, such as
    `log_partition_change`, are compared with their default implementations. The methods `metric`,
    `bounds`, `has_means`, `draw_states_of_means` and `from_arrays`, the properties `offsets` and
    `value_step`, and sparse states are not tested.

    Parameters
    ----------
    units : Units
        Layer of a few units in double precision. The parameters should be of order one. Each
        parameter should be learned either in all units or in none.
    rng : numpy.random.Generator
        Source of random fields and draws.

    Raises
    ------
    AssertionError
        If a check fails. The message names the method that was compared. The fault may also be in a
        method that is used in the comparison, such as `energy` or `signal_gradient`. If a unit with
        two bounds has no quadrature, the message is that of the `QuadratureError`. The error is
        raised even under ``python -O``.
    ValueError
        If `units` is not a layer, if its parameters are not arrays in double precision, or if `rng`
        is not a NumPy generator.

    Examples
    --------
    >>> from skrbm.core.units import Spin
    >>> check_units(Spin(np.array([-1.0, 0.5])), np.random.default_rng(0))
    """
    for name, array in units.parameters.items():
        dtype = getattr(array, "dtype", type(array).__name__)
        if dtype != np.float64:
            raise ValueError(
                f"units expected parameters that are arrays in double precision, got {name} of type "
                f"{dtype}. Convert it by np.asarray({name}, dtype=float)."
            )
    field = rng.standard_normal((N_FIELDS, units.n_columns))
    for check in CHECKS:
        check(units, field, rng)


def _check_columns(units: Units, field: Array, rng: np.random.Generator) -> None:
    columns = np.concatenate([units.unit_columns(i) for i in range(units.n_units)])
    _equal(columns, np.arange(units.n_columns), "unit_columns of all units, in order,")
    grouped = np.sort(np.concatenate(units.unit_groups))
    _equal(grouped, np.arange(units.n_units), "unit_groups, sorted,")
    numbers = np.arange(units.n_units)
    for i in numbers:
        _equal(np.flatnonzero(units.by_column(numbers == i)), units.unit_columns(i), "by_column")


def _check_types(units: Units, field: Array, rng: np.random.Generator) -> None:
    for name, array in units.parameters.items():
        attribute = getattr(units, name, array)  # composite layers have no such attributes
        _require(array is attribute, f"parameters[{name!r}] is a copy of the layer's array")
    single, single_field = units.astype(np.float32), field.astype(np.float32)
    for name in ("mean", "sample"):
        draws = (rng,) if name == "sample" else ()
        answer, out = getattr(single, name)(single_field, *draws), single_field.copy()
        _require_single(answer, name, field.shape)
        in_place = getattr(single, name)(out, *draws, out=out)
        _equal(in_place, out, f"{name} in place")
        if not draws:
            _equal(out, answer, f"{name} in place")
    states = units.sample(field, rng)
    for name, rows, shape in (
        ("mean", field, field.shape),
        ("signal", states, field.shape),
        ("energy", states, field.shape[:1]),
        ("log_partition", field, field.shape[:1]),
    ):
        answer = getattr(single, name)(rows.astype(np.float32))
        _require_single(answer, name, shape)
        what = f"{name} of single precision"
        _close(answer, getattr(units, name)(rows), what, MAX_SINGLE_ERROR)


def _check_distribution(units: Units, field: Array, rng: np.random.Generator) -> None:
    for row in field:
        log_partition, mean = zip(*_integrals(units, row, 1), strict=True)
        _close(units.log_partition(row[None])[0], sum(log_partition), "log_partition")
        _close(units.mean(row[None])[0], np.concatenate(mean), "mean")


def _check_large_fields(units: Units, field: Array, rng: np.random.Generator) -> None:
    """Check that nothing overflows."""
    bounds, unbounded = units.column_bounds, (-np.inf, np.inf)
    for dtype in (np.float32, np.float64):
        layer, fields = units.astype(dtype), (LARGE_FIELD * field).astype(dtype)
        for name, answer, (low, high) in (
            ("mean", layer.mean(fields), bounds),
            ("sample", layer.sample(fields, rng), bounds),
            ("log_partition", layer.log_partition(fields), unbounded),
        ):
            is_possible = np.isfinite(answer) & (answer >= low) & (answer <= high)
            message = f"{name} given large fields returned {answer[~is_possible]}"
            _require(is_possible.all(), message)


def _check_draws(units: Units, field: Array, rng: np.random.Generator) -> None:
    rows = np.repeat(field[:1], N_DRAWS_PER_FIELD, axis=0)
    low, high = units.column_bounds

    def sample_after_mean(rows: Array, rng: np.random.Generator) -> Array:
        return units.mean_and_sample(rows, rng)[1]

    for name, sample in (("sample", units.sample), ("mean_and_sample", sample_after_mean)):
        draws = sample(rows, rng)
        _require(
            ((draws >= low) & (draws <= high)).all(), f"{name} drew values outside the support"
        )
        for i in range(units.n_units):
            values, states = units.unit_values(i), draws[:, units.unit_columns(i)]
            if values is not None:
                is_state = (states[:, None] == values).all(axis=2).any(axis=1)
                _require(is_state.all(), f"{name} drew other values than {values.tolist()}")
        for power in (1, 2, 3, 4):
            _compare_moment(draws, units, field[0], power, name)
        _compare_units(draws, units, name)
        first, again, other = (sample(rows, np.random.default_rng(seed)) for seed in (0, 0, 1))
        _require(np.array_equal(first, again), f"{name} drew other states with an equal `rng`")
        differ = not np.array_equal(first, other) or not np.ptp(first, axis=0).any()
        _require(differ, f"{name} drew the same states with another `rng`")
    mean, _ = units.mean_and_sample(field, rng)
    _close(mean, units.mean(field), "mean_and_sample: mean")


def _check_signal(units: Units, field: Array, rng: np.random.Generator) -> None:
    s, t = units.sample(field, rng), units.sample(-field, rng)
    _close(units.signal(0.3 * s + 0.7 * t), 0.3 * units.signal(s) + 0.7 * units.signal(t), "signal")
    origin, slope = units.affine_signal
    _close(units.signal(s), origin + slope * s, "affine_signal")


def _check_gradient(units: Units, field: Array, rng: np.random.Generator) -> None:
    states, mean = units.sample(field, rng), units.mean(field)
    sample_weight = rng.standard_normal(len(field))  # both signs, as for data minus model

    def log_weight(layer: Units) -> float:
        exponent = (layer.signal(states) * field).sum(axis=1) - layer.energy(states)
        return float(sample_weight @ exponent)

    def log_normaliser(layer: Units) -> float:
        return float(sample_weight @ layer.log_partition(field))

    known_field = None if units.is_mean_sufficient else field
    expected_moments = units.expected_moments(mean, known_field, sample_weight)
    for name, function, signal, gradient in (
        ("moments", log_weight, units.signal(states), units.moments(states, sample_weight)),
        ("expected_moments", log_normaliser, units.signal(mean), expected_moments),
    ):
        same = gradient.keys() == units.parameters.keys()
        _require(same, f"{name} and parameters differ in keys")
        if not units.is_signal_fixed:
            added = units.signal_gradient(sample_weight @ field, sample_weight @ (signal * field))
            gradient = {key: array + added.get(key, 0) for key, array in gradient.items()}
        for parameter, array in gradient.items():
            expected = _derivatives(function, units, parameter)
            _close(array, expected, f"gradient in {parameter} from {name}")


def _check_recentering(units: Units, field: Array, rng: np.random.Generator) -> None:
    states = units.sample(field, rng)
    for offset in (field[1], None):
        moved = units.recentered(offset, field[0])
        is_new = np.array_equal(moved.offset, offset)  # type: ignore[arg-type]  # None is an object
        _require(is_new, f"recentered: offset expected {offset}, got {moved.offset}")
        default = Units.signal_shift(units, moved)
        _close(units.signal_shift(moved), default, "signal_shift, compared with its default,")
        absorbed = units.energy(states) - moved.signal(states) @ field[0]
        _constant(moved.energy(states) - absorbed, "recentered, up to a constant,")


def _check_natural(units: Units, field: Array, rng: np.random.Generator) -> None:
    natural, states = units.natural(), units.sample(field, rng)
    _close(natural.signal(states), states, "natural: signal")
    _, slope = units.affine_signal
    old = (units.signal(states) * field[0]).sum(axis=1) - units.energy(states)
    new = (states * slope * field[0]).sum(axis=1) - natural.energy(states)
    _constant(new - old, "natural, up to a constant,")


def _check_tempered(units: Units, field: Array, rng: np.random.Generator) -> None:
    natural, states = units.natural(), units.sample(field, rng)
    base = _moved(natural.recentered(None, field[0]))
    for beta in np.linspace(0, 1, len(states)):
        layer = natural.tempered(base, float(beta))
        mixture = (1 - beta) * base.energy(states) + beta * natural.energy(states)
        _close(layer.signal(states), states, "tempered: signal")
        _constant(layer.energy(states) - mixture, "tempered, up to a constant,")
        if units.is_tempered_exactly:
            _close(layer.energy(states), mixture, "tempered: energy")


def _check_heated(units: Units, field: Array, rng: np.random.Generator) -> None:
    natural, states = units.natural(), units.sample(field, rng)
    for temperature in (0.5, 2.0):
        try:
            layer = natural.heated(temperature)
        except ValueError:  # types need not support it
            return
        _close(layer.signal(states), states, "heated: signal")
        energy = natural.energy(states) / temperature
        _constant(layer.energy(states) - energy, "heated, up to a constant,")


def _check_rows(units: Units, field: Array, rng: np.random.Generator) -> None:
    """Check that a layer with different parameters in each row agrees with one layer per row."""
    natural, states = units.natural(), units.sample(field, rng)
    base, betas = natural.recentered(None, field[0]), np.linspace(0, 1, len(field))
    singles: list[Units] = [natural.tempered(base, float(beta)) for beta in betas]
    _compare_rows(natural.tempered(base, betas[:, None]), singles, states, field)
    fields = np.repeat(field, N_DRAWS_PER_FIELD, axis=0)
    layers = natural.tempered(base, np.repeat(betas, N_DRAWS_PER_FIELD)[:, None])
    draws = np.split(layers.sample(fields, rng), len(singles))
    for unit, row, states_of_row in zip(singles, field, draws, strict=True):
        _compare_moment(states_of_row, unit, row, 1, "sample with parameters for each row")
    for group in units.unit_groups:
        index = np.resize(group, len(field))
        places = np.arange(len(field))[:, None], units.unit_columns(index)
        singles = [units.take(int(i)) for i in index]
        _compare_rows(units.take(index), singles, states[places], field[places])


def _compare_rows(rows: Units, singles: list[Units], states: Array, field: Array) -> None:
    arguments = {"energy": states, "signal": states, "mean": field, "log_partition": field}
    for name, argument in arguments.items():
        expected = [getattr(u, name)(argument[i, None])[0] for i, u in enumerate(singles)]
        _close(getattr(rows, name)(argument), expected, f"{name} with parameters for each row")


def _check_changes(units: Units, field: Array, rng: np.random.Generator) -> None:
    other = _moved(units)
    for size in (1e-3, 1, 1e3):
        other_field = field + size * field[::-1]
        change = units.log_partition_change(other, field, other_field, other.mean(other_field))
        default = Units.log_partition_change(units, other, field, other_field, field)
        _close(change, default, "log_partition_change, compared with its default,")
        all_shifts = size * np.concatenate([field[:2], 0 * field[:1]])
        for shifts in (all_shifts, all_shifts[:0]):
            _compare_shifted(units.shifted(field), EveryPair(units, field), shifts, rng)


def _compare_shifted(
    shifted: ShiftedUnits, default: ShiftedUnits, shifts: Array, rng: np.random.Generator
) -> None:
    for name in ("log_partitions", "log_partition_changes"):
        actual, expected = (getattr(layer, name)(shifts) for layer in (shifted, default))
        _close(actual, expected, f"{name}, compared with its default,")
    weights = rng.standard_normal((len(shifts), len(default.field)))
    sums, every = (layer.sums(shifts, weights, default.units) for layer in (shifted, default))
    for number in (0, 1):
        _close(sums[number], every[number], f"sums, result {number}, compared with its default,")
    for name, moment in every[2].items():
        _close(sums[2][name], moment, f"sums, moment {name}, compared with its default,")


def _check_unit_values(units: Units, field: Array, rng: np.random.Generator) -> None:
    for i in range(units.n_units):
        unit, values = units.take(i), units.unit_values(i)
        count = None if values is None else len(values)
        for layer, number in ((units, i), (unit, 0)):
            actual = layer.n_unit_states(number)
            _require(actual == count, f"n_unit_states expected {count}, got {actual}")
        if values is None:
            continue
        numbers = rng.integers(len(values), size=N_FIELDS)
        for layer, number in ((units, i), (unit, 0)):
            _equal(layer.unit_states(number, numbers), values[numbers], "unit_states")
        weights = rng.standard_normal((unit.n_columns, 3))
        fields, energies = unit.fields_and_energies(weights)
        _close(fields, unit.signal(values) @ weights, "fields_and_energies: fields")
        _close(energies, unit.energy(values), "fields_and_energies: energies")
        probability = rng.dirichlet(np.ones(len(values)), size=N_FIELDS)
        _close(unit.unit_mean(probability), probability @ values, "unit_mean")


def _check_counting(units: Units, field: Array, rng: np.random.Generator) -> None:
    n_states: Any = Units.n_states
    expected = n_states.fget(units)
    _require(units.n_states == expected, f"n_states expected {expected}, got {units.n_states}")
    if units.is_discrete:
        _equal(units.states(0, expected), Units.states(units, 0, expected), "states")
    weights, states = rng.standard_normal((4, units.n_columns)), units.sample(field, rng)
    low, high = units.field_bounds(weights)
    exerted = units.signal(states) @ weights.T
    is_inside = (exerted >= low - MAX_ERROR) & (exerted <= high + MAX_ERROR)
    _require(is_inside.all(), "field_bounds do not bound the field")


def _check_tails(units: Units, field: Array, rng: np.random.Generator) -> None:
    curvature = units.tail_curvature
    near = np.linspace(-4, 4, N_NEAR_FIELDS)[:, None] * np.ones(units.n_columns)
    response = units.mean(near + DIFFERENCE_STEP) - units.mean(near - DIFFERENCE_STEP)
    variance = response / (2 * DIFFERENCE_STEP * units.affine_signal[1])
    _require((variance <= units.largest_variance + MAX_ERROR).all(), "largest_variance is exceeded")
    for i in range(units.n_units):
        columns, bounds = units.unit_columns(i), np.stack(units.column_bounds)
        ends = bounds[:, columns]
        if np.isfinite(ends).all():
            _require(
                np.isposinf(curvature[columns]).all(), "tail_curvature within bounds is finite"
            )
            continue
        far = np.clip(ends, -FAR_STATE, FAR_STATE)[np.isinf(ends).any(axis=1)]
        energy = units.take(i).energy(far) * 2 / FAR_STATE**2
        _close(energy.min(), curvature[columns].min(), "tail_curvature", FAR_ERROR)


def _check_scale_gradient(units: Units, field: Array, rng: np.random.Generator) -> None:
    work = rng.standard_normal(units.n_columns)

    def log_scale(layer: Units) -> float:
        scale = layer.affine_signal[1] / np.sqrt(layer.tail_curvature)
        return float(work @ np.log(np.where(scale > 0, scale, 1.0)))  # bounded units have no scale

    gradient = units.scale_gradient(work)
    _require(gradient.keys() <= units.parameters.keys(), "scale_gradient has further parameters")
    for parameter in units.parameters:
        expected = _derivatives(log_scale, units, parameter)
        _close(gradient.get(parameter, 0.0), expected, f"scale_gradient in {parameter}")


def _check_conditional_values(units: Units, field: Array, rng: np.random.Generator) -> None:
    for i in range(units.n_units):
        unit, fields = units.take(i), field[:, units.unit_columns(i)]
        states, (low, high) = unit.sample(fields, rng), np.sort(fields[:2], axis=0)
        try:
            values, log_measure = unit.conditional_values(states, low, high)
        except QuadratureError as error:  # allowed for unbounded values, in hidden layers
            _require(bool(np.isinf(unit.column_bounds).any()), str(error))
            continue
        for unit_field in np.linspace(low, high, 5):
            exponents = [(unit.signal(s) @ unit_field) - unit.energy(s) for s in values]
            total = np.logaddexp.reduce(exponents + log_measure, axis=0)
            expected = np.broadcast_to(unit.log_partition(unit_field[None])[0], total.shape)
            _close(total, expected, "conditional_values: the sum of their probabilities")


def _check_gauge(units: Units, field: Array, rng: np.random.Generator) -> None:
    weights = rng.standard_normal((units.n_columns, 3))
    inner, states = units.gauge(weights), units.sample(field, rng)
    _close(units.gauge(inner), inner, "gauge, applied twice,")
    for removed in (units.signal(states) @ (weights - inner)).T:
        _constant(removed, "gauge: the removed field, over all states,")
    _constant(
        units.in_zero_sum_gauge().energy(states) - units.energy(states),
        "in_zero_sum_gauge, up to a constant,",
    )


def _check_start(units: Units, field: Array, rng: np.random.Generator) -> None:
    start, options = type(units).start, units.start_options
    mean, zero = units.mean(field)[0], np.zeros(units.n_columns)
    edges = [bound for bound in units.column_bounds if np.isfinite(bound).all()]
    for n_samples in (1, 10**6):
        for values in (mean, 1e6 * mean, zero + 1e30, zero, *edges):
            for name, array in start(values, zero, n_samples, **options).parameters.items():
                _require(np.isfinite(array).all(), f"start made {name} infinite or NaN")
    layer = start(mean, zero + 1, 10**6, **options)
    _close(layer.mean(layer.zero_field(1))[0], mean, "start: mean without a field")


def _integrals(units: Units, field: Array, power: int) -> Iterator[tuple[float, Array]]:
    """Yield the log-partition of each unit, and the mean of a power of its states, given a field.

    `field` has shape (n_columns,), and the means have the shape of the columns of the unit.
    """
    for i in range(units.n_units):
        unit, unit_field = units.take(i), field[units.unit_columns(i)]
        values = unit.unit_values(0)
        if values is None:
            yield _quadrature(unit, unit_field, power)
            continue
        exponent = unit.signal(values) @ unit_field - unit.energy(values)
        total = np.logaddexp.reduce(exponent)
        yield float(total), np.exp(exponent - total) @ values**power


def _quadrature(unit: Units, unit_field: Array, power: int) -> tuple[float, Array]:
    """Log-partition of a continuous unit, and mean of a power of its states.

    Both are computed by quadrature, to which a sum over the atoms is added.
    """

    def exponent(s: float) -> float:
        state = np.array([[s]])
        return float((unit.signal(state) @ unit_field - unit.energy(state))[0])

    (low,), (high,) = unit.column_bounds
    centre = float(np.clip(unit.mean(unit_field[None])[0, 0], low, high))
    top, kink = exponent(centre), np.clip(0.0, low, high)  # densities may have a kink at zero
    spans = list(pairwise(np.unique([low, kink, centre, high])))

    def integral(p: int) -> float:
        parts = [quad(lambda s: np.exp(exponent(s) - top) * s**p, *ab, limit=200) for ab in spans]
        atoms = (np.exp(exponent(s) - top) * s**p for s in unit.unit_atoms(0))
        return float(sum(value for value, _ in parts) + sum(atoms))

    total = integral(0)
    return float(np.log(total)) + top, np.array([integral(power) / total])


def _moved(units: Units) -> Any:
    """Layer with 0.3 added to all of its `parameters`."""
    learned = {id(array) for array in units.parameters.values()}
    return units.map_arrays(lambda array: array + 0.3 if id(array) in learned else array)


def _derivatives(function: Callable[[Units], float], units: Units, name: str) -> Array:
    """Finite-difference derivatives of a function of a layer with respect to a parameter."""
    array = units.parameters[name]

    def at(moved: Array) -> float:
        return function(units.map_arrays(lambda other: moved if other is array else other))

    steps = DIFFERENCE_STEP * np.eye(len(array))
    near, far = (
        np.array([at(array + k * step) - at(array - k * step) for step in steps]) for k in (1, 2)
    )
    return (8 * near - far) / (12 * DIFFERENCE_STEP)


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_single(answer: Array, name: str, shape: tuple[int, ...]) -> None:
    _require(answer.dtype == np.float32, f"{name} of single precision returned {answer.dtype}")
    _require(answer.shape == shape, f"{name} expected shape {shape}, got {answer.shape}")


def _equal(actual: Any, expected: Any, what: str) -> None:
    _require(np.array_equal(actual, expected), f"{what} expected {expected}, got {actual}")


def _close(actual: Any, expected: Any, what: str, error: float = MAX_ERROR) -> None:
    message = f"{what} differs"
    np.testing.assert_allclose(actual, expected, error, error, equal_nan=False, err_msg=message)


def _constant(values: Array, what: str) -> None:
    _close(values, values[0], what)


def _compare_moment(draws: Array, units: Units, field: Array, power: int, name: str) -> None:
    exact, square = (
        np.concatenate([moment for _, moment in _integrals(units, field, p)])
        for p in (power, 2 * power)
    )
    error = np.sqrt(np.maximum(square - exact**2, 1e-12) / len(draws))
    gap = np.abs((draws**power).mean(axis=0) - exact)
    _require((gap < MAX_STD_ERRORS * error).all(), f"{name} misses moment {power} by {gap}")


def _compare_units(draws: Array, units: Units, name: str) -> None:
    columns = draws[:, [units.unit_columns(i)[0] for i in range(units.n_units)]].astype(np.float64)
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    if columns.shape[1] > 1:
        correlation = np.corrcoef(columns.T) - np.eye(columns.shape[1])
        largest = np.abs(correlation).max()
        is_small = largest < MAX_STD_ERRORS / np.sqrt(len(draws))
        _require(is_small, f"{name} drew units with a correlation of {largest:.2g}, not of 0")


CHECKS = [check for name, check in list(vars().items()) if name.startswith("_check_")]
