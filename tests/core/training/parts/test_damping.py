"""What is left of a gradient along directions that lead, and when it is looked at."""

import numpy as np
import oracles
import pytest
from core.models import case_id, machine_from, model, sized, visible_states
from scipy import sparse

from skrbm.core.training.gradient import Samples
from skrbm.core.training.part import Step
from skrbm.core.training.parts.damping import MAX_CHECK_PAUSE, MAX_DAMPED_ROWS, Damping, correction
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import TrainingState

# The bias that a unit subtracts from its signal also moves the weights' part.
CASES = [sized(kind, 4, 3, 1) for kind in oracles.KINDS if kind != "goodfellow"]
LINEAR = [sized(kind, 4, 3, 1) for kind in ("bernoulli", "spin", "categorical")]
UNIT = 2.0
N_EACH = 20


def damping(**options):
    return Damping(Preconditioner(unit=UNIT), **options)


def step_of(rate):
    return Step(None, None, None, rate, TrainingState(np.zeros((1, 3))), None)


def difference_of(machine, v, container=np.asarray, n_each=1):
    """Positive minus negative phase: half of some rows are data, the others the model's."""
    parts = [np.repeat(own, n_each, axis=0) for own in np.split(v, 2)]
    means = [machine.mean_hidden(own) for own in parts]
    equal = np.full(len(parts[0]), 1 / len(parts[0]))
    joint = None
    if container is np.asarray:
        joint = np.concatenate(parts), np.concatenate(means)
    else:
        parts[0] = container(parts[0])
    positive, negative = (Samples((pair,), equal, joint) for pair in zip(parts, means, strict=True))
    return positive - negative


def flat(arrays):
    """Weights and biases as one vector."""
    return np.concatenate(
        [arrays[name].ravel() for name in sorted(arrays) if "variance" not in name]
    )


def metric_of(machine):
    """Multiples of the gradient in a step, one for each parameter."""
    ones = {name: np.ones_like(array) for name, array in machine.parameters.items()}
    return flat(Preconditioner(unit=UNIT).direction(machine, ones))


def row_gradients(machine, difference):
    """What each row adds to the gradient, in coordinates in which the metric is one."""
    (v, mean), *_ = difference.blocks
    rows = [flat(machine.gradient(v[[k]], mean=mean[[k]])) for k in range(len(mean))]
    return np.array(rows) * np.sqrt(metric_of(machine))


@pytest.mark.every_kind
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_inner_products_are_those_of_the_rows_gradients(case, seed, rng):
    # Slips: rows without offsets, the metric of the other layer or its root, no unit, biases left out.
    p = model(case, seed)
    machine = machine_from(p)
    difference = difference_of(machine, visible_states(p, rng)[:6])
    own = row_gradients(machine, difference)
    products = damping()._gram_matrix(machine, difference)
    own -= own.mean(axis=0)  # biases of numbers have another origin
    products += products.mean() - products.mean(axis=0) - products.mean(axis=1)[:, None]
    np.testing.assert_allclose(products, own @ own.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rate", [3.0, 1e6])
@pytest.mark.parametrize("case", LINEAR, ids=case_id)
def test_what_is_left_of_a_gradient(case, rate, container, seed, rng):
    """Of each eigenvector of the rows' covariance: all, or what its eigenvalue allows."""
    # Slips: second moments in place of the covariance; all directions shortened alike; the model's
    # rows with the data's sign; sparse rows forgotten; shares that are changed in place.
    p = model(case, seed, scale=2.0)
    machine = machine_from(p)
    v = visible_states(p, rng)[:4]
    rows = row_gradients(machine, difference_of(machine, v))
    gradient = np.array([0.5, 0.5, -0.5, -0.5]) @ rows
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    bearable = max(0.5 / rate, 0.015 * values.sum())
    left = np.minimum(1, bearable / np.maximum(values, bearable))
    assert values[-1] > bearable
    expected = vectors @ (left * (gradient @ vectors)) / np.sqrt(metric_of(machine))
    difference = difference_of(machine, v, container, N_EACH)
    difference = damping().weigh_rows(step_of(rate), machine, difference)
    found = flat(difference.gradient(machine))
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_gradient_without_a_direction_that_leads_stays_as_it_is(seed, rng):
    # Slips: a rate of zero divided by; a row's own direction that leads; rows that are all alike; NaN
    # or overflow in the decomposition, which raises; steps that are short enough; a part of many rows
    # that is taken for all of them.
    machine, broken = (
        machine_from(model(sized("bernoulli", 200, 20, 1), seed, scale=0.1)) for _ in range(2)
    )
    v = (rng.random((100, 200)) < 0.5).astype(float)
    broken.hidden.bias[0] = np.nan
    for rate, states, own in (
        (1e6, v, machine),
        (1e6, v[:2], machine),
        (0.0, v[[0, 0, 1, 1]], machine),
        (1e-3, np.repeat(v[:2], 50, axis=0), machine),
        (1e6, v[[0, 0, 0, 0]], machine),
        (1e6, np.repeat(v[:2], MAX_DAMPED_ROWS, axis=0), machine),
        (1e6, v, broken),
    ):
        difference = difference_of(own, states)
        assert damping().weigh_rows(step_of(rate), own, difference) is difference


@pytest.mark.parametrize("n_model", [1, 3, 100])
def test_a_row_that_is_its_whole_phase_leads_nowhere(n_model, rng):
    # Slip: the share of its direction in the whole compared with one, which rounding decides.
    shares = np.append(1.0, np.full(n_model, -1 / n_model))
    for _ in range(50):
        rows = np.repeat(rng.normal(size=(2, 5)), [1, n_model], axis=0)
        assert correction(1e6, shares, rows @ rows.T) == (None, False)


@pytest.mark.parametrize(("multiple", "diverges"), [(1.9, False), (2.1, True)])
def test_steps_beyond_the_second_of_newtons_diverge(multiple, diverges):
    # Slips: all that are damped diverge; the eigenvalue without the rate.
    shares, eigenvalue = np.repeat([1 / 20, -1 / 20], 20), 7.0
    rows = np.sign(shares)
    change, found = correction(multiple / eigenvalue, shares, eigenvalue * np.outer(rows, rows))
    np.testing.assert_allclose(shares + change, 0.5 / multiple * shares)
    assert found is diverges


def test_rows_of_few_patterns_are_damped_alike_in_single_precision(rng):
    # Slip: vectors that are made orthogonal once: rounding is left when the patterns are exhausted.
    shares = np.repeat([1 / 10, -1 / 100], [10, 100])
    for _ in range(200):
        n_patterns = rng.integers(2, 6)
        patterns = rng.normal(size=(n_patterns, 60))
        rows = patterns[rng.integers(n_patterns, size=110)].astype(np.float32)
        single, double = (
            correction(0.4, shares.astype(dtype), own @ own.T)[0]
            for dtype in (np.float32, np.float64)
            for own in [rows.astype(dtype)]
        )
        assert (single is None) == (double is None)
        if double is not None:
            np.testing.assert_allclose(single, double, atol=1e-3 * np.abs(double).max())


def test_products_near_the_largest_number_are_left(rng):
    # Slip: any finite trace is decomposed: LinAlgError.
    shares = np.repeat([1 / 20, -1 / 20], 20)
    for size in (1e300, 0.9 * np.finfo(float).max):
        rows = np.repeat([1.0, -1.0], 20)
        assert correction(1.0, shares, size * np.outer(rows, rows)) == (None, False)


@pytest.mark.parametrize("n_heavy", [1, 3, 8])
def test_heavy_rows_of_the_data_are_learned_in_full(n_heavy):
    # Slips: directions damped that a data row has alone; rows of the model taken for the data's.
    # Eight directions are more than Lanczos finds, and it mixes them.
    weights, size = np.repeat([1 / 40, -1 / 40], 40), np.ones(80)
    size[:n_heavy] = 30 + 2 * np.arange(n_heavy)
    gram = np.diag(size**2)
    assert correction(1e6, weights, gram) == (None, False)
    if n_heavy < 8:
        change, diverges = correction(1e6, -weights, gram)
        assert diverges
        np.testing.assert_array_less(0, (change * weights)[:n_heavy])


def test_directions_that_rows_have_in_common_are_damped_beside_a_heavy_row():
    # Slips: no damping at all if the leading direction is one row's; the heavy row damped, too; a
    # step that diverges along the heavy row alone counted.
    weights, eigenvalue, rate = np.repeat([1 / 40, -1 / 40], 40), 4.0, 0.4
    rows = np.zeros((80, 2))
    rows[:, 0] = np.sqrt(eigenvalue) * np.sign(weights)
    rows[0] = 0.0, 30.0
    gram = rows @ rows.T
    change, diverges = correction(rate, weights, gram)
    before, after = weights @ rows, (weights + change) @ rows
    assert not diverges
    np.testing.assert_allclose(after[1], before[1], rtol=0.01)
    np.testing.assert_allclose(after[0], before[0] * 0.5 / (rate * eigenvalue), rtol=0.1)


@pytest.mark.parametrize(("found_every", "most_looks"), [(10**9, 80), (5, 600)])
def test_looks_become_rare_where_nothing_is_found(found_every, most_looks, seed, rng):
    # Slips: no pauses; pauses where every fifth mini-batch has rows of a rare mode.
    p = model(LINEAR[0], seed)
    machine, looks, step = machine_from(p), [], step_of(1.0)
    difference = difference_of(machine, visible_states(p, rng)[:6])

    def scripted(rate, weights, products):
        looks.append(step.state.n_updates)
        return np.zeros_like(weights), len(looks) % found_every == 0

    part = damping(correction=scripted)
    for step.state.n_updates in range(600):
        part.weigh_rows(step, machine, difference)
    assert 0.75 * most_looks < len(looks) <= most_looks
    assert np.diff(looks).max() == (MAX_CHECK_PAUSE if most_looks < 600 else 1)
