"""Partition function and exact gradient against enumeration and quadrature."""

import tracemalloc
from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    assert_same_arrays,
    case_id,
    clamped_log_partition,
    machine_from,
    masks,
    model,
    renamed,
    visible_states,
)

from skrbm.core.likelihood import exact
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, Interval


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


SUMMED = [
    (case, layer)
    for case in CASES
    for layer in ("smaller", "visible", "hidden")
    if layer != "visible" or model(case, 0).is_discrete
]


@pytest.fixture(params=SUMMED, ids=lambda pair: f"{case_id(pair[0])}-{pair[1]}")
def enumerated(request, seed):
    """Model, its machine, and the machine whose visible states are summed; None for fewer states."""
    case, layer = request.param
    p = model(case, seed)
    machine = machine_from(p)
    return p, machine, {"smaller": None, "visible": machine, "hidden": machine.transposed}[layer]


def test_log_partition_sums_over_all_states(enumerated):
    # Slip: the Gaussian integral's normaliser or its mixed term a'Uh left out.
    p, machine, marginal = enumerated
    actual = exact.log_partition(machine, marginal=marginal)
    np.testing.assert_allclose(actual, oracles.log_partition(p), rtol=0, atol=1e-8)


@pytest.mark.parametrize("case", [c for c in CASES if model(c, 0).is_discrete], ids=case_id)
def test_clamped_log_partition_sums_over_the_missing_units(case, seed, rng):
    # Slips: states of the missing units that are not ignored; joint states counted by columns.
    p = model(case, seed)
    machine, v = machine_from(p), visible_states(p, rng)
    is_observed = masks(p, len(v), rng)
    is_held = machine.visible.by_column(is_observed)
    every = oracles.visible_states(p)
    agree = [
        (every == row)[:, held].all(axis=1).sum() for row, held in zip(v, is_held, strict=True)
    ]
    np.testing.assert_array_equal(exact.n_missing_states(machine.visible, is_observed), agree)
    for row, observed, held in zip(v, is_observed, is_held, strict=True):
        actual = exact.log_sum_over_missing(machine, np.where(held, row, np.nan), observed)
        np.testing.assert_allclose(actual, clamped_log_partition(p, row, observed), atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_sum_over_hidden_states_is_that_over_the_missing_units(case, seed, rng):
    # Slips: the probability of one unit's filled state for all; fields without the hidden energy.
    p = model(case, seed)
    machine, v = machine_from(p), visible_states(p, rng)
    is_observed = masks(p, len(v), rng)
    rows = np.where(machine.visible.by_column(is_observed), v, np.nan)
    actual = exact.log_sum_over_hidden(machine, rows, is_observed)
    expected = [clamped_log_partition(p, *pair) for pair in zip(v, is_observed, strict=True)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.every_kind
def test_gradient_is_that_of_the_log_likelihood(enumerated, rng):
    # Slips: sigma-gradient with 1 / (2 sigma^3); E[h] = p for spins; +h'Wv in the energy alone;
    # sums in place of means; goodfellow's bias without the pull of the hidden units.
    p, machine, marginal = enumerated
    v = visible_states(p, rng)[:7]
    log_z, negative = exact.log_partition_and_gradient(machine, marginal=marginal)
    np.testing.assert_allclose(log_z, oracles.log_partition(p), atol=1e-6)
    positive = machine.gradient(v)
    actual = {name: array - negative[name] for name, array in positive.items()}
    expected = oracles.log_likelihood_gradient(p, v)
    assert_same_arrays(renamed(actual), expected, atol=1e-6)


def test_sums_do_not_depend_on_the_blocks(p):
    # Slips: the blocks' averages averaged in place of their sums added; the largest weight of the
    # last block alone.
    machine = machine_from(p)
    whole = exact.log_partition_and_gradient(machine)
    small = {"blocks": (13, 2)}
    log_z, gradient = exact.log_partition_and_gradient(machine, **small)
    for other in (log_z, exact.log_partition(machine), exact.log_partition(machine, **small)):
        np.testing.assert_allclose(other, whole[0], rtol=0, atol=1e-12)
    assert_same_arrays(gradient, whole[1], atol=1e-12)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_layers_too_large_to_enumerate_are_refused_by_name(kind, seed, rng):
    # Slips: a continuous layer taken for a small one; columns counted in place of states.
    n_hidden = exact.MAX_STATES.bit_length()
    n_visible = {"composite": 8}.get(kind, 3 * n_hidden)
    machine = machine_from(model((kind, n_visible, n_hidden, 0), seed))
    if kind == "composite":  # two layers of which neither has a limit
        machine = replace(machine, hidden=Interval(machine.hidden.bias))
    n_units = len(model((kind, n_visible, n_hidden, 0), seed).units)
    sort = ", continuous," if kind in ("composite", *oracles.REAL) else ""
    hidden = "Interval, continuous," if kind == "composite" else type(machine.hidden).__name__
    message = (
        rf"at most {exact.MAX_STATES} states, .* has {n_units} visible "
        rf"{machine.visible.type_name}{sort} units and {n_hidden} hidden {hidden} units"
    )
    for question in (exact.log_partition, exact.log_partition_and_gradient):
        with pytest.raises(ValueError, match=message):
            question(machine)


@pytest.mark.parametrize("n_more", [0, 1])
def test_limit_is_in_states_and_not_in_units(n_more, rng):
    # Slip: units or columns counted, of which three categories would be as dear as two.
    p = oracles.random_parameters("categorical", 7, 6, rng)  # 3 * 2 * 2 against 2^6 states
    if n_more:
        with pytest.raises(ValueError, match="3 visible Categorical units and 6 hidden"):
            exact.enumerable(machine_from(p), 12 - n_more)
    else:
        marginal = exact.enumerable(machine_from(p), 12)
        np.testing.assert_allclose(
            exact.log_partition(marginal), oracles.log_partition(p), rtol=0, atol=1e-9
        )


def test_sums_over_missing_units_take_memory_for_fields_alone(rng):
    """Slip: a copy of all columns for each of the states that are summed."""
    machine = Machine(Bernoulli(np.zeros(5000)), Bernoulli(np.zeros(4)), np.zeros((5000, 4)))
    v, is_observed = np.ones(5000), np.arange(5000) >= 10
    tracemalloc.start()
    value = exact.log_sum_over_missing(machine, np.where(is_observed, v, np.nan), is_observed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert value == pytest.approx(14 * np.log(2), abs=1e-9)
    assert peak < 2**10 * 5000 * 8 / 10
