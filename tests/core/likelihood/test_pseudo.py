"""Pseudo-likelihood against enumeration and quadrature, its estimate against itself."""

import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import oracles
import pytest
from core.models import (
    CASES,
    SPARSE,
    TWO_STATE,
    assert_mean,
    case_id,
    draw_rows,
    machine_from,
    model,
    sized,
    visible_states,
)
from scipy import sparse
from scipy.special import logsumexp

from skrbm.core.centering import recenter
from skrbm.core.labels import Labels
from skrbm.core.likelihood import conditional, exact, pseudo
from skrbm.core.machine import Machine
from skrbm.core.numerics import spread_rows, weighted_mean
from skrbm.core.units import (
    Bernoulli,
    Categorical,
    Composite,
    DReLU,
    Interval,
    LinearUnits,
    QuadratureError,
    StandardGaussian,
    UnknownRangeError,
)

WHOLE = [
    (kind, n_visible)
    for kind in oracles.KINDS
    for n_visible in {"categorical": (2, 5, 7), "composite": (6, 8)}.get(kind, (1, 4, 7))
    if (kind, n_visible) != ("count", 7)  # as many states as no test waits for
]


def monitor(*args):
    """Mean of the scores of a training curve."""
    return weighted_mean(*pseudo.monitored_rows(*args))


@pytest.fixture(params=CASES, ids=case_id)
def p(request, seed):
    return model(request.param, seed)


@pytest.mark.every_kind
@pytest.mark.parametrize("few_values", [1, pseudo._Rows.max_paired])
def test_pseudo_likelihood_is_the_sum_of_conditionals(p, few_values, monkeypatch, rng):
    # Slips: a temperature lost for spins, a quadrature too coarse, log of a clipped probability, the
    # columns of a categorical unit taken for units of their own, the measure of a count forgotten;
    # the energies of values, or what a value itself adds to the field, left in the rest.
    monkeypatch.setattr(pseudo._Rows, "max_paired", few_values)
    v = visible_states(p, rng)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, oracles.log_pseudo_likelihood(p, v), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", TWO_STATE)
def test_a_row_does_not_matter_to_the_score_of_another(kind, seed, monkeypatch):
    # Slip: one gray row in a block, for which all others take its way, slower and less exact.
    p = model((kind, 4, 3, 0), seed)
    machine, asked, of_any = machine_from(p), [], pseudo._Rows._from_all_values
    v = np.ones((5, 4))
    v[3, 1] = 0.3

    def from_all_values(self, unit, columns, states, rows):
        asked.append(states.tolist())
        return of_any(self, unit, columns, states, rows)

    alone = np.concatenate([pseudo.pseudo_likelihood(machine, row[None]) for row in v])
    monkeypatch.setattr(pseudo._Rows, "_from_all_values", from_all_values)
    actual = pseudo.pseudo_likelihood(machine, v)
    np.testing.assert_allclose(actual, alone, rtol=0, atol=1e-12)
    assert asked == [[[0.3]]]


@pytest.mark.parametrize("few_values", [1, pseudo._Rows.max_paired])
@pytest.mark.parametrize(("kind", "n_visible"), SPARSE)
def test_pseudo_likelihood_of_extreme_models_is_finite_and_exact(
    kind, n_visible, few_values, monkeypatch, rng
):
    # Slips: log(1 + exp(x)) that overflows; log(max(probability, eps)).
    monkeypatch.setattr(pseudo._Rows, "max_paired", few_values)
    p = oracles.random_parameters(kind, min(n_visible, 6), 3, rng, scale=2000.0)
    v = visible_states(p, rng)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, oracles.log_pseudo_likelihood(p, v), rtol=1e-10, atol=1e-6)
    assert actual.min() < -1000


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("kind", TWO_STATE)
def test_values_between_the_states_are_compared_with_their_mirror_image(kind, offsets, rng):
    # Slip: v_i rounded or thresholded, as if a gray pixel were black or white.
    p = oracles.random_parameters(kind, 4, 3, rng, offsets=offsets)
    low, high = p.visible_values
    v = rng.uniform(low, high, (5, 4))
    expected = 0
    for i in range(4):
        mirrored = v.copy()
        mirrored[:, i] = low + high - v[:, i]
        difference = oracles.free_energy(p, v) - oracles.free_energy(p, mirrored)
        expected = expected - np.logaddexp(0, difference)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("few_values", [1, pseudo._Rows.max_paired])
def test_shares_of_several_categories_are_compared_with_each_other(few_values, monkeypatch, rng):
    # Slips: the shares of a unit rounded to one category, or compared with pure ones; the share of
    # one row, or of one unit, taken for that of another.
    monkeypatch.setattr(pseudo._Rows, "max_paired", few_values)
    p = oracles.random_parameters("categorical", 5, 3, rng)
    v = np.concatenate([rng.dirichlet(np.ones(n), 4) for n in (3, 2)], axis=1)
    v[2, :3] = 0, 1, 0
    v[3, 3:] = 1, 0
    expected = 0
    for _, own in p.units:
        turned = [v.copy() for _ in range(own.stop - own.start)]
        for k, rows in enumerate(turned):
            rows[:, own] = np.roll(v[:, own], k, axis=1)
        free_energies = np.stack([oracles.free_energy(p, rows) for rows in turned])
        expected = expected - np.logaddexp.reduce(free_energies[0] - free_energies, axis=0)
    actual = pseudo.pseudo_likelihood(machine_from(p), v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
    estimate = pseudo.estimate_pseudo_likelihood(machine_from(p), v, 2, rng)
    np.testing.assert_allclose(estimate, expected, rtol=0, atol=1e-9)


@dataclass(frozen=True, eq=False)
class Unintegrated(LinearUnits):
    """Real values between 0 and 1 that nobody has told how to sum over."""

    support = Interval.support
    log_normaliser, expectation, draw = Interval.log_normaliser, Interval.expectation, Interval.draw


def test_units_without_a_quadrature_are_refused_by_name(rng):
    # Slip: the ends of the interval taken for all values, and a number returned.
    p = oracles.random_parameters("interval", 3, 2, rng)
    machine = machine_from(p)
    machine = replace(machine, visible=Unintegrated(machine.visible.bias))
    v = draw_rows(p, 4, rng)
    for question in (
        lambda: pseudo.pseudo_likelihood(machine, v),
        lambda: pseudo.estimate_pseudo_likelihood(machine, v, 1, rng),
    ):
        with pytest.raises(QuadratureError, match="Unintegrated units have no quadrature"):
            question()
    assert np.isnan(monitor(machine, v))


def test_units_of_unknown_range_are_refused(rng):
    # Slip: the range of a convex energy, which a second mode lies outside of.
    two_modes = DReLU(np.zeros(2), np.full(2, -5.0), np.zeros(2))
    hidden = StandardGaussian(np.zeros(1))
    machine = Machine(two_modes, hidden, np.full((2, 1), 0.1))
    v = two_modes.sample(np.zeros((3, 2)), rng)
    message = r"A real-valued unit .* and Gaussian hidden units .* hidden units with two states\.$"
    with pytest.raises(UnknownRangeError, match=message):
        pseudo.pseudo_likelihood(machine, v)
    assert np.isnan(monitor(machine, v))


@pytest.mark.parametrize("steepness", [1, 20, 1e3, 1e6, 1e9])
def test_scores_of_steep_intervals_are_those_of_mixtures_of_exponentials(steepness, rng):
    # Slips: one rule whose nodes miss the peak at an end; parts that halve towards one end alone.
    n_visible, n_hidden = 2, 3
    layers = Interval(rng.normal(size=n_visible)), Bernoulli(rng.normal(size=n_hidden))
    machine = Machine(*layers, steepness * rng.normal(size=(n_visible, n_hidden)))
    near = rng.random((40, n_visible)) / steepness
    v = np.concatenate([near[:20], 1 - near[20:], rng.random((20, n_visible))])
    h = machine.hidden.states(0, 2**n_hidden)
    slopes = machine.visible_field(h) + machine.visible.bias  # (n_states, n_visible)
    joint = machine.hidden.bias @ h.T + v @ slopes.T
    expected = 0
    for i in range(n_visible):
        unit, slope = machine.visible.take([i]), slopes[:, [i]]
        others = joint - v[:, [i]] * slope.T
        expected += logsumexp(joint, axis=1) - logsumexp(
            others + unit.log_normaliser(slope), axis=1
        )
    rounding = 1e-12 * np.abs(joint).max()
    np.testing.assert_allclose(pseudo.pseudo_likelihood(machine, v), expected, atol=1e-9 + rounding)


def test_interval_whose_density_is_too_steep_is_refused(rng):
    # Slip: so many nodes that some of them are equal to an end.
    machine = machine_from(oracles.random_parameters("interval", 3, 2, rng, offsets=False))
    v = rng.random((4, 3))
    machine.weights[1] = 1e12
    with pytest.raises(QuadratureError, match=r"interval unit .* rises by up to 2e\+12 nats"):
        pseudo.pseudo_likelihood(machine, v)
    assert np.isnan(monitor(machine, v))


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_number_of_jobs_does_not_change_a_bit(kind, seed, rng, monkeypatch):
    p = model(sized(kind, 3, 2, 1), seed)
    machine, v = machine_from(p), draw_rows(p, 101, rng)
    whole = pseudo.pseudo_likelihood(machine, v)
    monkeypatch.setattr(pseudo._Rows, "max_elements", 20)
    alone, together = (pseudo.pseudo_likelihood(machine, v, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_estimate_from_some_flips_is_unbiased(kind, seed, rng):
    # Slips: not scaled up to all units; the first unit of a row more likely than the last.
    p = model((kind, {"categorical": 7, "composite": 8}.get(kind, 5), 3, 1), seed)
    machine, v = machine_from(p), draw_rows(p, 4, rng)
    exact = pseudo.pseudo_likelihood(machine, v)
    for n_flips in (1, 2, 3):
        draws = pseudo.estimate_pseudo_likelihood(machine, np.tile(v, (400, 1)), n_flips, rng)
        assert_mean(draws.reshape(400, -1), exact)
        one, other = (
            pseudo.estimate_pseudo_likelihood(machine, v, n_flips, np.random.default_rng(seed))
            for _ in range(2)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.every_kind
@pytest.mark.parametrize("n_elements", [1, 2 * 9 * 3, 2**19])
@pytest.mark.parametrize(("kind", "n_visible"), WHOLE)
def test_estimate_from_all_flips_is_exact(kind, n_visible, n_elements, rng, monkeypatch):
    # Slips: a unit that comes twice; quadrature nodes of another row's unit; columns counted for
    # units; rows mixed up where each is asked for a unit of another type or width; flips of the
    # first block in place of the last.
    monkeypatch.setattr(pseudo._Rows, "max_elements", n_elements)
    p = oracles.random_parameters(kind, n_visible, 3, rng)
    machine, v = machine_from(p), draw_rows(p, 9, rng)
    estimate = pseudo.estimate_pseudo_likelihood(machine, v, len(p.units), rng)
    np.testing.assert_allclose(estimate, pseudo.pseudo_likelihood(machine, v), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_monitor_is_exact_where_that_is_cheap(kind, seed, rng):
    p = model(sized(kind, 3, 2, 1), seed)
    machine = machine_from(p)
    v = draw_rows(p, pseudo.MONITOR_ROWS[0], rng)
    n_passed = 10**8 if kind == "composite" else None  # all of its units are a little dearer
    expected = pseudo.pseudo_likelihood(machine, v).mean()
    np.testing.assert_allclose(monitor(machine, v, n_passed), expected, rtol=0, atol=1e-9)
    if p.is_discrete:
        sparse_score = monitor(machine_from(p), sparse.csr_array(v))
        np.testing.assert_allclose(sparse_score, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n_passed", "bound"), [(None, 0), (10**9, 1), (1, 0)])
def test_monitor_of_a_large_model_looks_at_a_few_units_and_at_the_same_ones(
    n_passed, bound, rng, monkeypatch
):
    # Slips: a cost that does not follow the pass, or has no bounds; pairs of few hidden units free.
    p = oracles.random_parameters("bernoulli", 100, 20, rng, scale=0.1)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (2000, 100))
    looks = []
    n_pairs = pseudo.MONITOR_EVALUATIONS[bound] // (20 + pseudo.MONITOR_OVERHEAD)
    n_rows = pseudo.MONITOR_ROWS[bound]
    n_flips = n_pairs // n_rows
    assert 1 < n_flips < 100
    original = pseudo._Rows.log_conditionals

    def log_conditionals(self, rows, units):
        looks.append(units)
        return original(self, rows, units)

    monkeypatch.setattr(pseudo._Rows, "log_conditionals", log_conditionals)
    one, other = (monitor(machine, v, n_passed) for _ in range(2))
    assert one == other
    assert sum(map(len, looks)) == 2 * n_flips * n_rows


def test_monitor_makes_sparse_rows_dense_a_block_at_a_time():
    # Slip: 200 MB for 500 rows at once.
    p = oracles.random_parameters("bernoulli", 50_000, 2, np.random.default_rng(0), scale=0.01)
    machine = recenter(machine_from(p), None, None)
    v = sparse.random(500, 50_000, density=1e-3, format="csr", random_state=0)
    v.data[:] = 1
    tracemalloc.start()
    score = monitor(machine, v, 10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 8 * pseudo.DENSE_ELEMENTS  # a block, the one before, and what is in between
    np.testing.assert_allclose(monitor(machine, v.toarray(), 10**6), score, rtol=1e-12)


@pytest.mark.parametrize("width", [100, 1000, 3000, 1e6])
def test_monitor_never_integrates_over_very_wide_laws(width, rng, monkeypatch):
    # Slip: a diverging model of three units that takes ten seconds for every pass.
    p = oracles.random_parameters("cho", 3, 2, rng)
    machine, v = machine_from(p), rng.normal(size=(20, 3))
    machine.weights[...] = width
    looks = []
    monkeypatch.setattr(
        pseudo._Rows, "log_conditionals", lambda *a: looks.append(1) or np.zeros(len(a[-1]))
    )
    assert np.isnan(monitor(machine, v)) == (width > 100) == (not looks)


def test_monitor_weighs_rows(rng):
    # Slip: weights of the first rows for those that are spread over the data.
    p = oracles.random_parameters("bernoulli", 3, 2, rng)
    machine, v = machine_from(p), draw_rows(p, 20_000, rng)
    weight = rng.random(20_000)
    seen = spread_rows(np.arange(20_000), pseudo.MONITOR_ROWS[1])
    expected = np.average(pseudo.pseudo_likelihood(machine, v[seen]), weights=weight[seen])
    np.testing.assert_allclose(monitor(machine, v, 10**9, weight), expected, rtol=1e-9)


OF_MANY_VALUES = {
    "score": lambda machine, v: pseudo.pseudo_likelihood(machine, v),
    "monitor": lambda machine, v: pseudo.monitored_rows(machine, v)[0],
    "mean": lambda machine, v: conditional.conditional_mean(machine, v, 1),
    "sum over a unit": lambda machine, v: conditional.log_sum_over_unit(machine, v, 1),
    "missing": lambda machine, v: exact.log_sum_over_missing(
        machine, v[0], np.array([True, False])
    ),
    "missing states": lambda machine, v: exact.n_missing_states(machine.visible, v[:, :2] < 0),
    "states": lambda machine, v: machine.visible.states(0, len(v)),
    "labels": lambda machine, v: Labels(machine).n_labels,
}


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("name", OF_MANY_VALUES)
def test_no_array_has_all_pairs_of_values_of_a_unit(name, with_offset, rng):
    # Slip: the one-hot states of all values, here of 72 megabytes.
    k, n_rows = 3000, 10
    parts = Bernoulli(rng.normal(size=1)), Categorical(rng.normal(size=k), (k,))
    machine = Machine(Composite(parts), Bernoulli(rng.normal(size=2)), rng.normal(size=(k + 1, 2)))
    v = np.zeros((n_rows, k + 1))
    v[np.arange(n_rows), rng.integers(1, k + 1, n_rows)] = 1
    if with_offset:
        machine = recenter(machine, v.mean(axis=0), np.full(2, 0.5))
    tracemalloc.start()
    result = OF_MANY_VALUES[name](machine, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(result).all()
    assert peak < 10e6


def test_monitored_rows_do_not_depend_on_the_parameters(rng):
    """Slip: 213 rows in the best epoch and 209 in the next one, which cannot be compared in pairs."""
    p = model(sized("cho", 50, 8), 0)
    machine, v = machine_from(p), draw_rows(p, 1000, rng)
    numbers = set()
    for factor in (0.3, 1, 1.05, 1.1, 3):  # 20 to 90 nodes
        other = replace(machine, weights=machine.weights * factor)
        numbers.add(len(pseudo.monitored_rows(other, v, 5_000_000)[0]))
    (number,) = numbers
    assert pseudo.MONITOR_ROWS[0] < number < pseudo.MONITOR_ROWS[1]
