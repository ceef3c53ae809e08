"""Offsets: the law that does not move, and the step of a machine that has them."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    GAUSSIAN_CASES,
    SPARSE,
    assert_same_arrays,
    case_id,
    draw_rows,
    explicit_direction,
    fields,
    hidden_states,
    machine_from,
    model,
    parameters_from,
    random_offsets,
    recentered,
    renamed,
    replace_parameters,
    visible_states,
)
from scipy import sparse

from skrbm.core.centering import in_zero_sum_gauge, recenter
from skrbm.core.likelihood.exact import log_partition, log_partition_and_gradient
from skrbm.core.machine import Machine
from skrbm.core.units import (
    PARAMETERIZATIONS,
    Bernoulli,
    Categorical,
    Composite,
    Gaussian,
    Interval,
    Spin,
)

PLAIN = [case for case in CASES if not case[3]]
LINEAR_CASES = [case for case in PLAIN if model(case, 0).log_variance is None]


def gradient_of(machine, v):
    """Exact gradient of the mean log-likelihood of visible states."""
    negative = log_partition_and_gradient(machine)[1]
    return {name: array - negative[name] for name, array in machine.gradient(v).items()}


def direction_of(machine, v, alpha, beta):
    """Velocity of the plain parameters while the centered ones follow their gradient."""
    centered = recenter(machine, alpha, beta)
    velocity = gradient_of(centered, v)
    step = 3e-3 / max(np.abs(rate).max() for rate in velocity.values())

    def plain(time):
        moved = {n: a + time * velocity[n] for n, a in centered.parameters.items()}
        return recenter(replace_parameters(centered, moved), None, None).parameters

    at = [plain(k * step) for k in (-2, -1, 1, 2)]
    return {
        name: (at[0][name] - 8 * at[1][name] + 8 * at[2][name] - at[3][name]) / (12 * step)
        for name in velocity
    }


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_recentering_leaves_the_law_alone(case, seed, rng):
    # Slips: W(beta' - beta) left out or with the wrong sign, the wrong power of sigma.
    p = model(case, seed)
    moved = parameters_from(p, recenter(machine_from(p), *random_offsets(p, rng)))
    v, h = visible_states(p, rng), hidden_states(p)
    for answer, argument in (
        (oracles.log_likelihood, v),
        (oracles.mean_hidden, v),
        (oracles.mean_visible, h),
    ):
        np.testing.assert_allclose(answer(moved, argument), answer(p, argument), rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_recentering_in_place_leaves_the_distribution_alone(case, seed, rng):
    # Slip: offsets are written to copies that the parts of a composite layer do not use.
    p = model(case, seed)
    v, h = visible_states(p, rng), hidden_states(p)
    machine = recenter(machine_from(p), *random_offsets(p, rng))
    machine.assign(recenter(machine, *random_offsets(p, rng)).arrays)
    np.testing.assert_allclose(machine.mean_hidden(v), oracles.mean_hidden(p, v), atol=1e-9)
    np.testing.assert_allclose(machine.mean_visible(h), oracles.mean_visible(p, h), atol=1e-9)
    constant = machine.free_energy(v) + oracles.log_likelihood(p, v)
    np.testing.assert_allclose(constant, constant[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_recentering_follows_the_table_and_round_trips(case, seed, rng):
    p = model(case, seed)
    offsets = random_offsets(p, rng)
    machine = machine_from(p)
    moved = recenter(machine, *offsets)
    expected = fields(recentered(p, *offsets))
    assert_same_arrays(fields(parameters_from(p, moved)), expected, atol=1e-12)
    back = recenter(moved, machine.visible.offset, machine.hidden.offset)
    assert_same_arrays(fields(parameters_from(p, back)), fields(p), atol=1e-12)
    assert moved.weights is machine.weights


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_recentering_shifts_all_free_energies_alike(case, seed, rng):
    p = model(case, seed)
    machine = machine_from(p)
    v = visible_states(p, rng)
    for offsets in (random_offsets(p, rng), (None, None)):
        moved = recenter(machine, *offsets)
        shift = log_partition(moved) - log_partition(machine)
        np.testing.assert_allclose(
            moved.free_energy(v), machine.free_energy(v) - shift, rtol=0, atol=1e-9
        )


@pytest.mark.every_kind
@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_centered_direction_is_an_explicitly_centered_step(case, seed, rng):
    # Slips: an offset that is not multiplied by the gradient of the other layer's bias, Delta W
    # replaced by G_W in the biases, the pull on log sigma^2 or on goodfellow's hidden bias lost.
    p = model(case, seed)
    machine, offsets, v = machine_from(p), random_offsets(p, rng), visible_states(p, rng)
    actual = direction_of(machine, v, *offsets)
    assert_same_arrays(renamed(actual), explicit_direction(p, v, offsets), atol=1e-6)


@pytest.mark.parametrize("case", LINEAR_CASES, ids=case_id)
def test_centered_direction_of_linear_units_has_a_closed_form(case, seed, rng):
    # Slip: a unit of several columns, or a continuous one, that absorbs the offset's field otherwise.
    p = model(case, seed)
    machine, (alpha, beta), v = machine_from(p), random_offsets(p, rng), visible_states(p, rng)
    G = renamed(gradient_of(machine, v))
    actual = renamed(direction_of(machine, v, alpha, beta))
    weights = G["weights"] - np.outer(alpha, G["hidden_bias"]) - np.outer(G["visible_bias"], beta)
    expected = {
        "weights": weights,
        "visible_bias": G["visible_bias"] - weights @ beta,
        "hidden_bias": G["hidden_bias"] - weights.T @ alpha,
    }
    assert_same_arrays(actual, expected, atol=1e-9)


@pytest.mark.parametrize("learned", ["none", "some"])
@pytest.mark.parametrize("case", [c for c in GAUSSIAN_CASES if not c[3]], ids=case_id)
def test_variance_that_is_not_learned_stays_when_centered(case, learned, seed, rng):
    # Slip: the pull of the biases on log sigma^2 added to a variance that training may not change.
    p = model(case, seed)
    mask = np.arange(p.weights.shape[0]) % 2 == 0
    machine = machine_from(p, learn_variance=mask if learned == "some" else False)
    offsets, v = random_offsets(p, rng), visible_states(p, rng)
    actual = direction_of(machine, v, *offsets)
    expected = explicit_direction(p, v, offsets, learned=mask if learned == "some" else 0.0)
    if learned == "none":
        del expected["log_variance"]
    assert_same_arrays(renamed(actual), expected, atol=1e-6)


@pytest.mark.parametrize(("kind", "n_visible"), SPARSE)
def test_gradient_of_sparse_states_stays_sparse_when_centered(
    kind, n_visible, seed, rng, monkeypatch
):
    # Slips: the offset's rank-one part left out, or states made dense to subtract it.
    p = model((kind, n_visible, 3, 0), seed)
    centered = recenter(machine_from(p), *random_offsets(p, rng))
    v = draw_rows(p, 20, rng)
    sample_weight = rng.normal(size=len(v))
    options = {"mean": centered.mean_hidden(v), "sample_weight": sample_weight}
    expected = centered.gradient(v, **options)
    compressed = sparse.csr_array(v)
    field = centered.hidden_field(compressed)
    np.testing.assert_allclose(field, centered.hidden_field(v), rtol=0, atol=1e-12)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    assert_same_arrays(centered.gradient(compressed, **options), expected, atol=1e-12)


# The gauge


@pytest.mark.parametrize("parameterization", PARAMETERIZATIONS)
def test_gauge_of_one_layer_leaves_the_signal_of_the_other(parameterization, rng):
    # Slip: a bias that absorbs what the gauge took, and moves its own signal.
    visible = Gaussian(rng.normal(size=2), np.zeros(2), parameterization)
    machine = Machine(visible, Categorical(rng.normal(size=3), (3,)), rng.normal(size=(2, 3)))
    moved, v = in_zero_sum_gauge(machine), rng.normal(size=(3, 2))
    np.testing.assert_allclose(moved.weights.sum(axis=1), 0, rtol=0, atol=1e-12)
    old, new = (-m.free_energy(v) - log_partition(m) for m in (machine, moved))
    np.testing.assert_allclose(new, old, rtol=0, atol=1e-12)


def test_layers_of_layers_without_a_gauge_are_left_as_they_are():
    layer = Composite((Spin(np.ones(2)), Interval(np.ones(1))))
    machine = Machine(layer, Bernoulli(np.zeros(2)), np.ones((3, 2)))
    assert in_zero_sum_gauge(machine) is machine


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_gauged_machine_has_the_same_law_and_categories_that_sum_to_zero(case, seed, rng):
    # Slips: what is taken out of the weights not given to the hidden biases, or once for every
    # category; an offset of which only a part is in the one-hot columns; biases left as they were.
    p = model(case, seed)
    machine = machine_from(p)
    moved = in_zero_sum_gauge(machine)
    if not any(kind == "categorical" for kind, _ in p.parts):
        assert moved is machine
        return
    q = parameters_from(p, moved)
    v, h = draw_rows(p, 12, rng), hidden_states(p)
    for answer, argument in (
        (oracles.log_likelihood, v),
        (oracles.mean_hidden, v),
        (oracles.mean_visible, h),
    ):
        np.testing.assert_allclose(answer(q, argument), answer(p, argument), rtol=0, atol=1e-9)
    np.testing.assert_allclose(q.weights, oracles.zero_sum(p, p.weights), rtol=0, atol=1e-12)
    bias = oracles.zero_sum(p, p.visible_bias[:, None])[:, 0]
    np.testing.assert_allclose(q.visible_bias, bias, rtol=0, atol=1e-12)
    for name in ("visible_offset", "hidden_offset"):
        np.testing.assert_array_equal(getattr(q, name), getattr(p, name))
    turned = in_zero_sum_gauge(machine.transposed).transposed
    assert_same_arrays(turned.parameters, moved.parameters, atol=1e-12)


@pytest.mark.parametrize("offsets", [0, 1])
def test_gauge_of_both_layers_is_taken_out(offsets, seed, rng):
    # Slip: the gauge of the hidden layer brought back by that of the visible one, or left in.
    p = model(("categorical", 5, 7, offsets), seed)
    machine = machine_from(p)
    hidden = Categorical(machine.hidden.bias, (3, 2, 2), offset=machine.hidden.offset)
    machine = replace(machine, hidden=hidden)
    moved = in_zero_sum_gauge(machine)
    for rows, counts in ((moved.weights, (3, 2)), (moved.weights.T, (3, 2, 2))):
        sums = np.add.reduceat(rows, np.cumsum(counts) - counts, axis=0)
        np.testing.assert_allclose(sums, 0, atol=1e-12)
    v = machine.visible.states(0, 6)
    shift = moved.free_energy(v) - machine.free_energy(v)
    np.testing.assert_allclose(shift, shift[0], rtol=0, atol=1e-9)
    h = machine.hidden.states(0, 12)
    np.testing.assert_allclose(moved.mean_visible(h), machine.mean_visible(h), rtol=0, atol=1e-9)
