"""Partition function and exact gradient against enumeration and quadrature."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    assert_same_arrays,
    case_id,
    machine_from,
    model,
    renamed,
    visible_states,
)

from skrbm.core.likelihood import exact


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


@pytest.fixture(params=["either", "visible", "hidden"])
def enumerated(request, p, monkeypatch):
    """Which layer the sums go over: the smaller one, or one that is forced."""
    if request.param == "visible" and not p.is_gaussian:
        monkeypatch.setattr(exact, "enumerable", lambda machine: machine)
    elif request.param == "hidden":
        monkeypatch.setattr(exact, "enumerable", lambda machine: machine.transposed)
    return request.param


def test_log_partition_sums_over_all_states(p, enumerated):
    # Slip: the Gaussian integral's normaliser or its mixed term a'Uh left out.
    actual = exact.log_partition(machine_from(p))
    np.testing.assert_allclose(actual, oracles.log_partition(p), rtol=0, atol=1e-8)


def test_gradient_is_that_of_the_log_likelihood(p, enumerated, rng):
    # Slips: sigma-gradient with 1 / (2 sigma^3); E[h] = p for spins; +h'Wv in the energy alone;
    # sums in place of means; goodfellow's bias without the pull of the hidden units.
    v = visible_states(p, rng)[:7]
    machine = machine_from(p)
    positive, negative = machine.gradient(v), exact.expected_gradient(machine)
    actual = {name: array - negative[name] for name, array in positive.items()}
    expected = oracles.log_likelihood_gradient(p, v)
    assert_same_arrays(renamed(actual), expected, atol=1e-6)


def test_sums_do_not_depend_on_the_blocks(p, monkeypatch):
    # Slip: the blocks' averages averaged in place of their sums added.
    machine = machine_from(p)
    whole = exact.log_partition(machine), exact.expected_gradient(machine)
    monkeypatch.setattr(exact, "BLOCK_ELEMENTS", 13)
    monkeypatch.setattr(exact, "TASK_BLOCKS", 2)
    np.testing.assert_allclose(exact.log_partition(machine), whole[0], rtol=0, atol=1e-12)
    assert_same_arrays(exact.expected_gradient(machine), whole[1], atol=1e-12)


@pytest.mark.parametrize("kind", oracles.ENERGIES)
def test_layers_too_large_to_enumerate_are_refused(kind, rng):
    n_units = exact.MAX_UNITS + 1
    machine = machine_from(oracles.random_parameters(kind, n_units, n_units, rng))
    message = rf"{exact.MAX_UNITS} discrete units, .* {n_units} visible and {n_units} hidden"
    for question in (exact.log_partition, exact.expected_gradient):
        with pytest.raises(ValueError, match=message):
            question(machine)
