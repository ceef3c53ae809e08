"""The tempered path against enumerated mixtures of its ends' energies."""

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    assert_law,
    assert_mean,
    balanced_model,
    case_id,
    draw_rows,
    hidden_states,
    machine_from,
    model,
    sized,
    tempered_energy,
    uncoupled_like,
    visible_layer,
    visible_states,
    wide_nodes,
)
from scipy.special import logsumexp, softmax

from skrbm.core.chains.path import TemperedPath, heated_machine

BETAS = (0.0, 0.3, 0.8, 1.0)
N_DRAWS = 20_000


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


def path_to(p, base):
    return TemperedPath.to(machine_from(p), visible_layer(base))


def test_path_ends_at_its_machine(p, rng):
    # Slips: offsets dropped, a scale that is left in the signal, goodfellow's bias in it.
    machine = machine_from(p)
    path = TemperedPath.to(machine, machine.visible)
    v, h = visible_states(p, rng), hidden_states(p)
    for old, new, states in (
        (machine, path.machine, v),
        (machine.transposed, path.transposed, h),
    ):
        change = new.free_energy(states) - old.free_energy(states)
        np.testing.assert_allclose(change, path.energy_shift, rtol=0, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.4, 3.0])
def test_heated_machine_has_the_energy_over_the_temperature(p, rng, temperature):
    # Slips: a variance divided; a scale that stays in the signal; offsets dropped.
    machine, v = machine_from(p), visible_states(p, rng)
    if p.kind == "count":  # its energy has a term that no parameter heats
        with pytest.raises(ValueError, match="Count units have no distribution at another temp"):
            heated_machine(machine, temperature)
        return
    energy = oracles.energy(p, v, hidden_states(p)) / temperature
    change = heated_machine(machine, temperature).free_energy(v) + logsumexp(-energy, axis=1)
    np.testing.assert_allclose(change, change[0], rtol=0, atol=1e-9)
    assert heated_machine(machine, 1) is machine


def test_base_is_uncoupled_and_its_partition_function_is_known(p, rng):
    base = uncoupled_like(p, rng)
    path = path_to(p, base)
    np.testing.assert_allclose(path.base_log_partition, oracles.log_partition(base), atol=1e-9)
    v = path.sample_base(N_DRAWS, rng)
    h = hidden_states(p)[:1]
    assert_mean(v, oracles.mean_visible(base, h)[0])
    assert_mean((v - oracles.mean_visible(base, h)) ** 2, oracles.variance_visible(base, h)[0])


def test_energy_gap_is_the_difference_of_the_ends(p, rng):
    # Slip: the energy of the path's end in place of the difference.
    base = uncoupled_like(p, rng)
    path = path_to(p, base)
    h = hidden_states(p)
    v = draw_rows(p, len(h), rng)
    expected = np.diag(oracles.energy(p, v, h) - oracles.energy(base, v, h))
    np.testing.assert_allclose(
        path.energy_gap(v, h), expected + path.energy_shift, rtol=0, atol=1e-9
    )


def conditional_cases():
    return [pytest.param(sized(kind, 2, 2, 1), id=kind) for kind in oracles.KINDS]


@pytest.mark.parametrize("case", conditional_cases())
@pytest.mark.parametrize("beta", BETAS)
def test_conditionals_are_those_of_the_mixed_energy(case, beta, seed, rng):
    # Slips: field scaled by beta but not the bias; variances mixed in place of precisions.
    p = balanced_model(case, seed)
    base = uncoupled_like(p, rng)
    machine = path_to(p, base).at(beta)
    h, v = hidden_states(p), visible_states(p, rng)[:1]
    law = softmax(-tempered_energy(p, base, beta, v, h)[0])
    assert_law(machine.sample_hidden(np.repeat(v, N_DRAWS, axis=0), rng), h, law)
    draws = machine.sample_visible(np.repeat(h[1:2], N_DRAWS, axis=0), rng)
    if p.is_discrete:
        states = visible_states(p, rng)
        assert_law(draws, states, softmax(-tempered_energy(p, base, beta, states, h[1:2])[:, 0]))
        return
    for kind, own in p.units:
        values, measure = wide_nodes(kind, own)
        v = np.zeros((len(values), len(p.weights)))
        v[:, own] = values
        log_weights = np.log(measure) - tempered_energy(p, base, beta, v, h[1:2])[:, 0]
        mean = softmax(log_weights) @ values
        assert_mean(draws[:, own], mean)
        assert_mean((draws[:, own] - mean) ** 2, softmax(log_weights) @ (values - mean) ** 2)


def test_samples_with_an_inverse_temperature_each_are_as_if_all_had_it(p, seed, rng):
    # Slip: the first sample's temperature used for all.
    path = path_to(p, uncoupled_like(p, rng))
    h = hidden_states(p)[rng.integers(4, size=6)]
    betas = rng.random((6, 1))
    v = path.at(betas).sample_visible(h, np.random.default_rng(seed))
    h_next = path.at(betas).sample_hidden(v, np.random.default_rng(seed))
    for i, beta in enumerate(betas[:, 0]):
        machine = path.at(float(beta))
        expected = machine.sample_visible(h, np.random.default_rng(seed))
        np.testing.assert_allclose(v[i], expected[i], rtol=0, atol=1e-12)
        expected = machine.sample_hidden(v, np.random.default_rng(seed))
        np.testing.assert_array_equal(h_next[i], expected[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_machine(p, dtype, rng):
    path = TemperedPath.to(machine_from(p, dtype), visible_layer(uncoupled_like(p, rng)))
    v = path.sample_base(3, rng)
    h = path.at(np.full((3, 1), 0.5, dtype)).sample_hidden(v, rng)
    moved = path.at(0.4).sample_visible(h, rng)
    assert {a.dtype for a in (v, moved, h, path.energy_gap(v, h))} == {np.dtype(dtype)}


@pytest.mark.parametrize("kind", ["krizhevsky", "composite"])
def test_hidden_units_of_inexact_tempering_are_refused_by_name(kind, seed):
    # Slip: a path whose energies are right up to a constant only, and an evidence that is off by it.
    machine = machine_from(model(sized(kind, 3, 2), seed)).transposed
    name = type(machine.hidden).__name__
    with pytest.raises(ValueError, match=rf"need hidden units whose .* got {name} units"):
        TemperedPath.to(machine, machine.visible)
