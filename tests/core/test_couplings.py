"""Effective couplings against averages over all states of enumerated models."""

import numpy as np
import oracles
import pytest
from core.models import machine_from, sized
from core.models import model as random_model
from numpy.polynomial.legendre import leggauss
from scipy import integrate, stats

from skrbm.core.couplings import EffectiveCouplings, effective_couplings
from skrbm.core.machine import Machine
from skrbm.core.units import Mixture, Spin

# Columns and hidden units; the columns of categorical units are those of six.
SIZES = {"bernoulli": (12, 4), "spin": (12, 5), "categorical": (17, 4)}


@pytest.fixture(params=SIZES)
def p(request, rng):
    return oracles.random_parameters(request.param, *SIZES[request.param], rng, scale=1.5)


def coefficients(p, values, order):
    """Zero-sum coefficients of a function of all visible states: its Walsh transform.

    A coefficient is the function's product with what stands for some columns, averaged over all
    states: the sign of a unit with two states; of a one-hot column, q times the state less its mean.
    """
    v = oracles.visible_states(p)
    unit = np.concatenate([[i] * (own.stop - own.start) for i, (_, own) in enumerate(p.units)])
    if p.kind == "categorical":
        factors = (v - v.mean(axis=0)) * np.bincount(unit)[unit]
    else:
        factors = np.sign(v - np.mean(p.visible_values))
    letters = "abc"[:order]
    operands = ",".join("n" + letter for letter in letters)
    total = np.einsum(f"n,{operands}->{letters}", values / len(v), *[factors] * order)
    for columns in np.ndindex(total.shape):
        if len({unit[column] for column in columns}) < order:
            total[columns] = 0
    return total


def orders(result):
    return enumerate((result.fields, result.pairs, result.triples), start=1)


def test_exact_coefficients_are_the_transform_of_the_free_energy(p):
    # By defaults. Slips: a factor of the unit itself left in the product; the linear part of hidden
    # bits dropped; the visible units' own energy not centered; a frequency in place of the midpoint.
    result = effective_couplings(machine_from(p), 3)
    assert result.method == "exact"
    minus_free_energy = -oracles.free_energy(p, oracles.visible_states(p))
    for order, actual in orders(result):
        expected = coefficients(p, minus_free_energy, order)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
    assert effective_couplings(machine_from(p)).triples is None


def test_many_units_that_meet_in_pairs_have_the_coupling_of_two():
    # Slips: too few frequencies for the sum of the weights; a product of means that underflows.
    n, rng = 80, np.random.default_rng(0)
    weights = np.zeros((n, n // 2 + 1))
    strength = rng.uniform(0.5, 20.0, (n // 2, 2))
    for j, pair in enumerate(strength):
        weights[2 * j : 2 * j + 2, j] = pair
    weights[:, -1] = 1e-3  # of all spins alike: next to no coupling
    bias = rng.normal(0, 3, n // 2 + 1)
    machine = Machine(Spin(np.zeros(n)), Spin(bias), weights)
    a, b = strength.T

    def log_two_cosh(x):
        return np.logaddexp(x, -x)

    c = bias[:-1]
    expected = (
        log_two_cosh(c + a + b)
        - log_two_cosh(c + a - b)
        - log_two_cosh(c - a + b)
        + log_two_cosh(c - a - b)
    ) / 4
    actual = effective_couplings(machine).pairs
    np.testing.assert_allclose(actual[np.arange(0, n, 2), np.arange(1, n, 2)], expected, atol=1e-5)
    assert np.abs(actual[0, 2:]).max() < 1e-5


def test_gaussian_coefficients_replace_the_other_units_by_a_normal_variable(rng):
    # Slips: the variance of all units in place of the rest's; nodes of another weight function.
    p = random_model(("spin", 5, 1, 0), 0)
    result = effective_couplings(machine_from(p), 3, "gaussian")
    w, bias = p.weights[:, 0], p.hidden_bias[0]
    for own in ([0], [1, 3], [0, 2, 4]):
        rest = np.sqrt(np.sum(np.delete(w, own) ** 2))

        def integrand(z, own=own, rest=rest):
            signs = oracles.states((-1.0, 1.0), len(own))
            x = bias + signs @ w[own] + rest * z
            return np.mean(np.prod(signs, axis=1) * np.logaddexp(x, -x)) * stats.norm.pdf(z)

        expected = integrate.quad(integrand, -12, 12, epsabs=1e-11, limit=200)[0]
        actual = dict(orders(result))[len(own)][tuple(own)]
        if len(own) == 1:
            expected += p.visible_bias[own[0]]
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-8)


def test_gaussian_coefficients_are_exact_where_no_unit_is_left(rng):
    # Slips: values of a unit in another order; a column of another unit written.
    for kind, n_visible in (("bernoulli", 3), ("categorical", 8)):
        p = oracles.random_parameters(kind, n_visible, 3, rng)
        machine = machine_from(p)
        exact, normal = (effective_couplings(machine, 3, m) for m in ("exact", "gaussian"))
        np.testing.assert_allclose(normal.triples, exact.triples, rtol=0, atol=1e-12)
        assert np.abs(exact.triples).max() > 1e-3


def reference(kind, own):
    """Values of a unit, their weights in an average, and the factors of its coefficients."""
    if kind == "categorical":
        q = own.stop - own.start
        return np.eye(q), np.full(q, 1 / q), q * np.eye(q) - 1
    if kind == "interval":
        nodes, weights = leggauss(40)
        return (nodes[:, None] + 1) / 2, weights / 2, np.sqrt(3) * nodes[:, None]
    if kind in oracles.GAUSSIAN_ENERGIES:
        nodes = np.linspace(-8.5, 8.5, 120)[:, None]
        weights = np.exp(-(nodes[:, 0] ** 2) / 2)
        return nodes, weights / weights.sum(), nodes
    values = np.array(oracles.unit_values(kind, 1))
    return values, np.full(2, 0.5), np.array([[-1.0], [1.0]])


@pytest.mark.parametrize("case", [("composite", 8, 2, 1), ("cho", 2, 3, 1), ("interval", 2, 3, 0)])
def test_numbers_have_the_linear_part_of_their_interactions(case, seed):
    # Slips: a uniform number in its own unit; the mean of what is sent left out of the bias; columns
    # of numbers taken for those of values; a sine in place of its ratio.
    p = random_model(case, seed, scale=1.5)
    units = [(own, *reference(kind, own)) for kind, own in p.units]
    grid = np.indices([len(values) for _, values, *_ in units]).reshape(len(units), -1)
    v, factors = np.empty((2, grid.shape[1], len(p.weights)))
    weights, unit = np.ones(grid.shape[1]), np.empty(len(p.weights), dtype=int)
    for k, (index, (own, values, shares, own_factors)) in enumerate(zip(grid, units, strict=True)):
        v[:, own], factors[:, own], unit[own] = values[index], own_factors[index], k
        weights *= shares[index]
    log_p = -weights * oracles.free_energy(p, v)
    result = effective_couplings(machine_from(p))
    np.testing.assert_allclose(result.fields, log_p @ factors, rtol=0, atol=1e-8)
    pairs = (factors.T * log_p) @ factors
    pairs[unit[:, None] == unit] = 0
    np.testing.assert_allclose(result.pairs, pairs, rtol=0, atol=1e-8)
    assert np.abs(pairs).max() > 0.01
    with pytest.raises(ValueError, match="real values are computed exactly, got the method 'gaus"):
        effective_couplings(machine_from(p), method="gaussian")
    assert result.method == "exact"


@pytest.mark.parametrize("kind", ["cho", "interval", "count", "composite"])
def test_units_without_couplings_are_refused_by_name(kind, seed):
    machine = machine_from(random_model(sized(kind, 3, 3), seed))
    name = machine.visible.type_name
    if kind == "count":
        with pytest.raises(ValueError, match="one-hot columns or real values, got unit 0 of Count"):
            effective_couplings(machine)
    with pytest.raises(ValueError, match=f"hidden units that have two states, got {name} units"):
        effective_couplings(machine.transposed, method="exact")
    assert effective_couplings(machine.transposed).method == "gaussian"


def test_fields_of_mixtures_are_integrals_of_their_energy():
    # Slip: a Gauss-Hermite rule of a few nodes, which is exact for polynomials alone.
    components = np.log([[0.3, 0.7]]), np.array([[-1.0, 0.5]]), np.array([[0.01, 0.04]])
    mixture = Mixture(np.zeros(1), np.zeros(1), *components)
    machine = Machine(mixture, Spin(np.zeros(1)), np.zeros((1, 1)))

    def weighted_log_density(s):
        return -s * mixture.energy(np.array([[s]]))[0] * stats.norm.pdf(s)

    field, _ = integrate.quad(weighted_log_density, -9, 9, limit=500, epsabs=1e-10)
    np.testing.assert_allclose(effective_couplings(machine).fields, field, atol=1e-7)


@pytest.mark.parametrize(
    "included", [np.arange(6), np.ones(5, dtype=bool), np.ones((6, 1), dtype=bool)]
)
def test_norms_of_masks_of_another_type_or_shape_are_refused(included):
    # Slips: bits of numbers taken for the mask; an error of broadcasting.
    numbers, pairs = np.arange(3), np.ones((6, 6))
    sites = np.repeat(numbers, 2)
    couplings = EffectiveCouplings(pairs[0], pairs, None, "exact", sites, numbers, np.arange(6))
    np.testing.assert_array_equal(couplings.norms([True] * 6), couplings.norms())
    with pytest.raises(
        ValueError, match=r"included .* boolean and of shape \(6,\), .* got (int|b)"
    ):
        couplings.norms(included)
