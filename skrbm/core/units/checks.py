"""Examination of a unit type, one's own included: does it keep what the protocol promises."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.integrate import quad

from skrbm.core.numerics import Array
from skrbm.core.units.base import Units

N_ROWS = 5
N_DRAWS = 20_000
STEP = 1e-3  # of finite differences by the five-point rule, whose error is of order step^4
TOLERANCE = 1e-6
WIDTH = 30  # standard deviations on either side that a quadrature covers
STANDARD_ERRORS = 6  # of a draw's average: one correct unit in a billion fails


def check_units(units: Units, rng: np.random.Generator) -> None:
    """Examine a layer: its law, its gradients, its offsets and its start.

    Every answer is compared with what follows from `energy` and `signal` alone, by
    enumeration or quadrature and by finite differences.

    Parameters
    ----------
    units : Units
        A double precision layer of a few units with parameters of ordinary size, each of
        them learned or fixed for all units alike.
    rng : numpy.random.Generator
        Source of fields and draws.

    Raises
    ------
    AssertionError
        At the first broken promise, with its name.

    Examples
    --------
    >>> from skrbm.core.units import Spin
    >>> check_units(Spin(np.array([-1.0, 0.5])), np.random.default_rng(0))
    """
    field = rng.standard_normal((N_ROWS, units.n_units))
    for check in (
        _check_types,
        _check_law,
        _check_draws,
        _check_signal,
        _check_gradient,
        _check_recentering,
        _check_change,
        _check_natural,
        _check_tempered,
        _check_rows,
        _check_alternatives,
        _check_start,
    ):
        check(units, field, rng)


def _check_types(units: Units, field: Array, rng: np.random.Generator) -> None:
    for name, array in units.parameters.items():
        assert array is getattr(units, name), f"parameters[{name!r}] is not the layer's own array"
    single = units.map_arrays(lambda a: a.astype(np.float32) if a.dtype == float else a)
    h = field.astype(np.float32)
    states = single.sample(h, rng)
    answers = {
        "mean": single.mean(h),
        "sample": states,
        "signal": single.signal(states),
        "energy": single.energy(states),
        "log_partition": single.log_partition(h),
    }
    for name, answer in answers.items():
        assert answer.dtype == np.float32, f"{name} of single precision returned {answer.dtype}"
        shape = h.shape if answer.ndim == 2 else h.shape[:1]
        assert answer.shape == shape, f"{name} expected shape {shape}, got {answer.shape}"


def _check_law(units: Units, field: Array, rng: np.random.Generator) -> None:
    for row in field:
        log_partition, mean = zip(*_integrals(units, row, 1), strict=True)
        _close(units.log_partition(row[None])[0], sum(log_partition), "log_partition")
        _close(units.mean(row[None])[0], mean, "mean")


def _check_change(units: Units, field: Array, rng: np.random.Generator) -> None:
    other = replace(units, **{name: array + 0.3 for name, array in units.parameters.items()})
    for size in (1e-3, 1, 1e3):
        other_field = field + size * field[::-1]
        change = units.log_partition_change(other, field, other_field, other.mean(other_field))
        expected = other.log_partition(other_field) - units.log_partition(field)
        _close(change, expected, "log_partition_change")
        shift = size * field[0]
        change = units.log_partition_shift(units.mean(field), shift, lambda: field)
        expected = units.log_partition(field + shift) - units.log_partition(field)
        _close(change, expected, "log_partition_shift")


def _check_draws(units: Units, field: Array, rng: np.random.Generator) -> None:
    row = field[0]
    draws = units.sample(np.broadcast_to(row, (N_DRAWS, units.n_units)), rng)
    if units.states is not None:
        assert np.isin(draws, units.states).all(), f"sample drew values outside {units.states}"
    for power in (1, 2, 3):
        exact, square = (
            np.array([mean for _, mean in _integrals(units, row, p)]) for p in (power, 2 * power)
        )
        error = np.sqrt(np.maximum(square - exact**2, 1e-12) / N_DRAWS)
        gap = np.abs((draws**power).mean(axis=0) - exact)
        assert (gap < STANDARD_ERRORS * error).all(), f"sample misses moment {power} by {gap}"


def _check_signal(units: Units, field: Array, rng: np.random.Generator) -> None:
    s, t = units.sample(field, rng), units.sample(-field, rng)
    _close(units.signal(0.3 * s + 0.7 * t), 0.3 * units.signal(s) + 0.7 * units.signal(t), "signal")


def _check_gradient(units: Units, field: Array, rng: np.random.Generator) -> None:
    states = units.sample(field, rng)
    sample_weight = rng.standard_normal(len(field))  # data against model

    def log_weight(layer: Units) -> float:
        exponent = (layer.signal(states) * field).sum(axis=1) - layer.energy(states)
        return float(sample_weight @ exponent)

    def log_normaliser(layer: Units) -> float:
        return float(sample_weight @ layer.log_partition(field))

    mean, mean_field = units.mean(field), sample_weight @ field
    for name, function, signal, moments in (
        ("moments", log_weight, units.signal(states), units.moments(states, sample_weight)),
        (
            "mean_moments",
            log_normaliser,
            units.signal(mean),
            units.mean_moments(mean, sample_weight),
        ),
    ):
        work = functools.partial(np.matmul, sample_weight, signal * field)
        gradient = units.gradient(moments, lambda: mean_field, work)
        assert gradient.keys() == units.parameters.keys(), "gradient and parameters differ in keys"
        for parameter, array in gradient.items():
            expected = _derivatives(function, units, parameter)
            _close(array, expected, f"gradient in {parameter} from {name}")


def _check_recentering(units: Units, field: Array, rng: np.random.Generator) -> None:
    states = units.sample(field, rng)
    for offset in (field[1], None):
        moved = units.recentered(offset, field[0])
        absorbed = units.energy(states) - moved.signal(states) @ field[0]
        gap = moved.energy(states) - absorbed
        _close(gap, np.full_like(gap, gap[0]), "recentered, up to a constant,")


def _check_natural(units: Units, field: Array, rng: np.random.Generator) -> None:
    natural = units.natural()
    states = units.sample(field, rng)
    _close(natural.signal(states), states, "natural: signal")
    slope = units.signal(states + 1) - units.signal(states)
    old = (units.signal(states) * field[0]).sum(axis=1) - units.energy(states)
    gap = (states * slope * field[0]).sum(axis=1) - natural.energy(states) - old
    _close(gap, np.full_like(gap, gap[0]), "natural, up to a constant,")


def _check_tempered(units: Units, field: Array, rng: np.random.Generator) -> None:
    natural = units.natural()
    base = natural.recentered(None, field[0])
    base = replace(base, **{name: array + 0.3 for name, array in base.parameters.items()})
    states = units.sample(field, rng)
    betas = np.linspace(0, 1, len(states))
    mixture = (1 - betas) * base.energy(states[:1]) + betas * natural.energy(states[:1])
    mixtures = (1 - betas) * base.energy(states) + betas * natural.energy(states)
    for beta, first, energy, row in zip(betas, mixture, mixtures, states, strict=True):
        layer = natural.tempered(base, float(beta))
        _close(layer.signal(row[None])[0], row, "tempered: signal")
        gap = energy - layer.energy(row[None])[0]
        reference = first - layer.energy(states[:1])[0]
        _close(gap, reference, "tempered, up to a constant,")
        if units.states is not None:
            _close(gap, 0, "tempered: energy")


def _check_rows(units: Units, field: Array, rng: np.random.Generator) -> None:
    """Samples with a law of their own are answered as they are one by one."""
    natural = units.natural()
    base = natural.recentered(None, field[0])
    betas = np.linspace(0, 1, len(field))[:, None]
    index = np.arange(len(field)) % units.n_units
    states = units.sample(field, rng)
    tempered = natural.tempered(base, betas)
    layers = [natural.tempered(base, float(beta)) for beta in betas[:, 0]]
    for rows, singles, s, f in (
        (tempered, layers, states, field),
        (units.take(index), [units.take(int(i)) for i in index], states[:, :1], field[:, :1]),
    ):
        for name, argument in (("energy", s), ("signal", s), ("mean", f), ("log_partition", f)):
            expected = [getattr(u, name)(argument[i, None])[0] for i, u in enumerate(singles)]
            _close(getattr(rows, name)(argument), expected, f"{name} of samples with own laws")
        seed = rng.integers(2**32)
        draws = rows.sample(f, np.random.default_rng(seed))
        one_by_one = np.random.default_rng(seed)
        expected = [u.sample(f[i, None], one_by_one)[0] for i, u in enumerate(singles)]
        _close(draws, expected, "sample of samples with own laws")


def _check_alternatives(units: Units, field: Array, rng: np.random.Generator) -> None:
    low, high = np.sort(field[:2], axis=0)
    for i in range(units.n_units):
        unit = units.take(i)
        states = unit.sample(field[:, i : i + 1], rng)
        values, log_weights = unit.alternatives(states, low[i : i + 1], high[i : i + 1])
        if units.states is not None:
            for state, others in zip(states[:, 0], values, strict=True):
                expected = sorted(set(units.states) - {float(state)})
                assert sorted(others) == expected, f"alternatives to {state} are {others}"
            continue
        for pull in np.linspace(low[i], high[i], 5):
            exponent = unit.signal(values.T)[:, 0] * pull - unit.energy(values.T)
            total = np.log(np.exp(exponent + log_weights).sum())
            _close(total, unit.log_partition(np.array([[pull]]))[0], "alternatives: quadrature")


def _check_start(units: Units, field: Array, rng: np.random.Generator) -> None:
    options = {n: v for n, v in vars(units).items() if not isinstance(v, np.ndarray)}
    options.pop("offset", None)
    low, high = units.domain or (-1.0, 1.0)
    mean = np.linspace(low, high, 7)
    for n_samples in (1, 10**6):
        for values in (mean, 1e6 * mean, np.full(7, 1e30)):
            layer = type(units).start(values, np.zeros(7), n_samples, **options)
            for name, array in layer.parameters.items():
                assert np.isfinite(array).all(), f"start made {name} infinite or NaN"
    layer = type(units).start(mean[1:-1], np.ones(5), 10**6, **options)
    _close(layer.mean(np.zeros((1, 5)))[0], mean[1:-1], "start: mean without a field")


def _integrals(units: Units, field: Array, power: int) -> Iterator[tuple[float, float]]:
    """For each unit the log-normaliser and the mean of a power, from energy and signal."""
    for i in range(units.n_units):
        unit, pull = units.take(i), field[i]

        def exponent(s: Array, unit: Units = unit, pull: float = pull) -> Array:
            return np.asarray(unit.signal(s)[:, 0] * pull - unit.energy(s))

        if units.states is not None:
            states = np.array(units.states)[:, None]
            weights = np.exp(exponent(states))
            total = weights.sum()
            yield float(np.log(total)), float(weights @ states[:, 0] ** power / total)
            continue
        centre = float(unit.mean(np.array([[pull]]))[0, 0])
        curvature = np.diff(exponent(centre + np.array([[-1.0], [0.0], [1.0]])), 2)[0]
        reach = WIDTH / np.sqrt(-curvature)
        top = exponent(np.array([[centre]]))[0]

        def weight(s: float, power: int, top: float = top, exponent: Any = exponent) -> float:
            return float(np.exp(exponent(np.array([[s]]))[0] - top) * s**power)

        total, first = (
            quad(weight, centre - reach, centre + reach, (p,), points=[centre], limit=200)[0]
            for p in (0, power)
        )
        yield float(np.log(total) + top), float(first / total)


def _five_point(function: Callable[[float], Array]) -> Array:
    """Derivative at zero."""
    near, far = (np.asarray(function(k * STEP) - function(-k * STEP)) for k in (1, 2))
    return np.asarray((8 * near - far) / (12 * STEP))


def _derivatives(function: Callable[[Units], float], units: Units, name: str) -> Array:
    """Derivatives of a function of the layer in each entry of one of its parameters."""
    array = units.parameters[name]

    def along(direction: Array) -> Array:
        return _five_point(
            lambda t: np.array(function(replace(units, **{name: array + t * direction})))
        )

    return np.array([along(direction) for direction in np.eye(len(array))])


def _close(actual: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(
        actual, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"{what} differs"
    )
