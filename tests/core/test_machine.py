"""Machine against enumeration, quadrature and finite differences, and its symmetries."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    GAUSSIAN_CASES,
    REAL_HIDDEN_CASES,
    SPARSE,
    TWO_STATE,
    assert_same_arrays,
    case_id,
    hidden_states,
    machine_from,
    mean_gradient,
    model,
    renamed,
    replace_parameters,
    visible_states,
)
from scipy import sparse

from skrbm.core.likelihood.exact import exchange_layers, log_partition
from skrbm.core.likelihood.pseudo import pseudo_likelihood


@pytest.fixture(params=CASES + REAL_HIDDEN_CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


@pytest.fixture
def v(p, rng):
    return visible_states(p, rng)


@pytest.fixture
def h(p, v, rng):
    return rng.choice(p.hidden_values, (len(v), p.weights.shape[1]))


def test_energy_is_the_definition(p, v, h):
    # Slips: +v'Wh, sigma in place of the variance, an offset left out of one term.
    expected = np.diag(oracles.energy(p, v, h))
    np.testing.assert_allclose(machine_from(p).energy(v, h), expected, rtol=0, atol=1e-9)


def test_free_energy_marginalises_hidden_units(p, v):
    # Slips: beta_j x_j forgotten, log(1 + e^x) for spins.
    expected = oracles.free_energy(p, v)
    np.testing.assert_allclose(machine_from(p).free_energy(v), expected, rtol=0, atol=1e-9)


def test_mean_hidden_is_the_conditional_expectation(p, v):
    # Slips: the probability of +1 in place of the mean of a spin, expit(x) for expit(2x).
    expected = oracles.mean_hidden(p, v)
    np.testing.assert_allclose(machine_from(p).mean_hidden(v), expected, rtol=0, atol=1e-9)


def test_mean_visible_is_the_conditional_expectation(p):
    # Slips: sigma in the wrong power in the mean of a Gaussian unit, the offset not added.
    h = hidden_states(p)
    expected = oracles.mean_visible(p, h)
    np.testing.assert_allclose(machine_from(p).mean_visible(h), expected, rtol=0, atol=1e-9)


def test_gradient_is_that_of_minus_the_free_energy(p, v, rng):
    # Slips: 1 / (2 sigma^3), a sum in place of a mean, weights of the rows ignored.
    uniform, weights = np.full(len(v), 1 / len(v)), rng.dirichlet(np.ones(len(v)))
    machine = machine_from(p)
    for sample_weight, law in ((None, uniform), (weights, weights)):
        actual = machine.gradient(v, sample_weight=sample_weight)
        assert_same_arrays(renamed(actual), mean_gradient(p, v, law), atol=1e-6)


def test_gradient_has_the_keys_and_shapes_of_the_parameters(p, v):
    machine = machine_from(p)
    shapes = {name: array.shape for name, array in machine.parameters.items()}
    assert {name: array.shape for name, array in machine.gradient(v).items()} == shapes


def test_gradient_ignores_how_often_the_rows_are_repeated(p, v):
    machine = machine_from(p)
    repeated = machine.gradient(np.tile(v, (3, 1)))
    assert_same_arrays(repeated, machine.gradient(v), atol=1e-12)


def test_transposing_keeps_energy_and_partition_function(p, v, h):
    machine = machine_from(p)
    turned = machine.transposed
    np.testing.assert_allclose(turned.energy(h, v), machine.energy(v, h), rtol=0, atol=1e-12)
    np.testing.assert_allclose(log_partition(turned), log_partition(machine), rtol=0, atol=1e-12)


def test_transposed_gradient_is_the_same_under_exchanged_names(p):
    # The joint average of -dE/dtheta given h, from the other side: -dF(h)/dtheta of the transpose.
    h, step = hidden_states(p), 1e-4
    machine = machine_from(p)
    actual = exchange_layers(machine.transposed.gradient(h))
    for name, array in machine.parameters.items():
        for index in np.ndindex(array.shape):
            energies = []
            for shift in (-2, -1, 1, 2):
                moved = array.copy()
                moved[index] += shift * step
                shifted = replace_parameters(machine, {name: moved})
                energies.append(-shifted.transposed.free_energy(h).mean())
            slope = (energies[0] - 8 * energies[1] + 8 * energies[2] - energies[3]) / (12 * step)
            np.testing.assert_allclose(actual[name][index], slope, rtol=0, atol=1e-6)


def symmetry(p, rng):
    """Order of the columns after units of one kind, and the categories of a unit, change places."""
    order, groups = np.arange(len(p.weights)), {}
    for kind, own in p.units:
        groups.setdefault((kind, own.stop - own.start), []).append(order[own].copy())
    for places in groups.values():
        for place, source in zip(places, rng.permutation(len(places)), strict=True):
            order[place] = rng.permutation(places[source])
    return order


def test_permuting_units_permutes_answers(p, v, h, rng):
    # Slip: weights, biases or categories of one unit taken for another's.
    rows, columns = symmetry(p, rng), rng.permutation(p.weights.shape[1])
    changes = {name: getattr(p, name)[rows] for name in ("visible_bias", "visible_offset")}
    of_hidden = ["hidden_bias", "hidden_offset"] + ["threshold", "asymmetry"] * (
        p.hidden == "drelu"
    )
    changes |= {name: getattr(p, name)[columns] for name in of_hidden}
    if p.is_gaussian:
        changes["log_variance"] = p.log_variance[rows]
    twin = machine_from(p.replace(weights=p.weights[rows][:, columns], **changes))
    machine = machine_from(p)
    for one, other in (
        (machine.energy(v, h), twin.energy(v[:, rows], h[:, columns])),
        (machine.free_energy(v), twin.free_energy(v[:, rows])),
        (machine.mean_hidden(v)[:, columns], twin.mean_hidden(v[:, rows])),
        (machine.mean_visible(h)[:, rows], twin.mean_visible(h[:, columns])),
        (pseudo_likelihood(machine, v), pseudo_likelihood(twin, v[:, rows])),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_spin_machine_is_a_bernoulli_machine_in_other_words(rng):
    # Slip: a temperature lost, expit(x) in place of expit(2x).
    p = oracles.random_parameters("spin", 4, 3, rng, offsets=False)
    W, a, b = p.weights, p.visible_bias, p.hidden_bias
    spin = machine_from(p)
    twin = machine_from(
        p.replace(
            kind="bernoulli",
            weights=4 * W,
            visible_bias=2 * (a - W.sum(axis=1)),
            hidden_bias=2 * (b - W.sum(axis=0)),
        )
    )
    v = oracles.states((-1, 1), 4)
    u = (v + 1) / 2
    for one, other in (
        (spin.free_energy(v) + log_partition(spin), twin.free_energy(u) + log_partition(twin)),
        (spin.mean_hidden(v), 2 * twin.mean_hidden(u) - 1),
        (pseudo_likelihood(spin, v), pseudo_likelihood(twin, u)),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_units_of_two_categories_are_bernoulli_units_in_other_words(rng):
    # Slips: a column taken for a unit; the gauge taken for a part of the law.
    p = oracles.random_parameters("categorical", 4, 3, rng, offsets=False)
    W, a = p.weights, p.visible_bias
    twin = machine_from(
        p.replace(
            kind="bernoulli",
            weights=W[1::2] - W[::2],
            visible_bias=a[1::2] - a[::2],
            visible_offset=np.zeros(2),
            hidden_bias=p.hidden_bias + W[::2].sum(axis=0),
        )
    )
    machine, v = machine_from(p), oracles.visible_states(p)
    for one, other in (
        (log_partition(machine), log_partition(twin) + a[::2].sum()),
        (machine.mean_hidden(v), twin.mean_hidden(v[:, 1::2])),
        (machine.mean_visible(hidden_states(p))[:, 1::2], twin.mean_visible(hidden_states(p))),
        (pseudo_likelihood(machine, v), pseudo_likelihood(twin, v[:, 1::2])),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("target", oracles.GAUSSIAN_ENERGIES)
@pytest.mark.parametrize("source", oracles.GAUSSIAN_ENERGIES)
def test_gaussian_energies_are_one_family(source, target, rng):
    # Slips: sigma^2 in the wrong power of one signal, a bias subtracted where it must not be.
    p = oracles.random_parameters(source, 3, 2, rng, offsets=False)

    def divisor(kind):  # the coupling of the canonical form is U = W / divisor
        return np.exp(p.log_variance * (0.5 if kind == "krizhevsky" else 1))[:, None]

    U = p.weights / divisor(source)
    c = p.hidden_bias - (p.visible_bias @ U if source == "goodfellow" else 0)
    b = c + (p.visible_bias @ U if target == "goodfellow" else 0)
    one = machine_from(p)
    other = machine_from(p.replace(kind=target, weights=U * divisor(target), hidden_bias=b))
    v, h = visible_states(p, rng), hidden_states(p)
    for left, right in (
        (one.free_energy(v) + log_partition(one), other.free_energy(v) + log_partition(other)),
        (one.mean_hidden(v), other.mean_hidden(v)),
        (one.mean_visible(h), other.mean_visible(h)),
        (pseudo_likelihood(one, v), pseudo_likelihood(other, v)),
    ):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("kind", "n_visible"), SPARSE)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_states_give_the_answers_of_dense_ones(kind, n_visible, container, rng):
    # Slips: an elementwise product with a sparse matrix that is a matrix product; columns of a part
    # cut out of the wrong axis.
    p = oracles.random_parameters(kind, n_visible, 4, rng, offsets=False)
    machine = machine_from(p)
    v = rng.choice([-1.0, 0.0, 0.0, 1.0], (9, 6))
    if kind not in TWO_STATE:  # the others have no mirror image of a value between their states
        v = rng.choice(oracles.visible_states(p), 9)
    compressed = container(v)
    for question in (machine.hidden_field, machine.free_energy, machine.mean_hidden):
        np.testing.assert_allclose(question(compressed), question(v), rtol=0, atol=1e-12)
    h = rng.choice(p.hidden_values, (9, 4))
    np.testing.assert_allclose(machine.energy(compressed, h), machine.energy(v, h), atol=1e-12)
    probabilities = rng.dirichlet(np.ones(9))
    for weights in (None, probabilities):
        assert_same_arrays(
            machine.gradient(compressed, sample_weight=weights),
            machine.gradient(v, sample_weight=weights),
            atol=1e-12,
        )
    np.testing.assert_allclose(
        pseudo_likelihood(machine, compressed), pseudo_likelihood(machine, v), rtol=0, atol=1e-12
    )


def test_single_precision_gives_single_precision_answers(p, v, h, rng):
    # Slip: a float64 constant that promotes every array of the hot loop.
    machine = machine_from(p, np.float32)
    v, h = v.astype(np.float32), h.astype(np.float32)
    answers = [machine.energy(v, h), machine.free_energy(v), machine.mean_hidden(v)]
    answers += [
        machine.mean_visible(h),
        machine.sample_hidden(v, rng),
        machine.sample_visible(h, rng),
    ]
    answers += [*machine.gradient(v).values(), pseudo_likelihood(machine, v)]
    assert {answer.dtype for answer in answers} == {np.dtype(np.float32)}


def test_astype_casts_every_array_and_copies_only_when_asked(p):
    machine = machine_from(p)
    same, copied = machine.astype(np.float64), machine.astype(np.float64, copy=True)
    single = machine.astype(np.float32)
    for name, array in machine.parameters.items():
        assert same.parameters[name] is array
        assert not np.shares_memory(copied.parameters[name], array)
        assert copied.parameters[name].flags.c_contiguous
        assert single.parameters[name].dtype == np.float32
        np.testing.assert_array_equal(single.parameters[name], array.astype(np.float32))
    assert machine.transposed.astype(np.float64, copy=True).weights.flags.c_contiguous


@pytest.mark.parametrize("p", GAUSSIAN_CASES, indirect=True, ids=case_id)
def test_variance_that_is_not_learned_is_no_parameter(p, v):
    machine = machine_from(p)
    fixed = replace(machine, visible=replace(machine.visible, learn_variance=False))
    gradient = machine.gradient(v)
    del gradient["visible_log_variance"]
    assert fixed.parameters.keys() == gradient.keys()
    assert_same_arrays(fixed.gradient(v), gradient, atol=0)
    mask = np.arange(p.weights.shape[0]) > 0
    masked = replace(machine, visible=replace(machine.visible, learn_variance=mask))
    expected = mask * machine.gradient(v)["visible_log_variance"]
    np.testing.assert_array_equal(masked.gradient(v)["visible_log_variance"], expected)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda machine: pickle.loads(pickle.dumps(machine))]
)
def test_copies_are_trained_in_both_directions(copied, rng):
    # Slip: weights of the exchanged machine that stay behind, because a view became an array.
    machine = machine_from(model(("bernoulli", 4, 3, 0), 0))
    assert machine.transposed.weights.base is machine.weights  # from now on, it is remembered
    machine = copied(machine)
    machine.weights[...] += 1
    np.testing.assert_array_equal(machine.transposed.weights, machine.weights.T)
