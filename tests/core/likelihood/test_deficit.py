"""What is certain of a fit's likelihood, against enumeration."""

import tracemalloc

import numpy as np
import oracles
import pytest
from core.models import (
    balanced_model,
    case_id,
    draw_rows,
    hidden_states,
    machine_from,
    sized,
    uncoupled_like,
    visible_layer,
)
from scipy import sparse, stats

from skrbm.core.centering import recenter
from skrbm.core.likelihood.deficit import (
    KERNEL_WIDTHS,
    MAX_KERNEL_COLUMNS,
    N_STD_ERRORS,
    kernel_log_density,
    likelihood_deficit,
)
from skrbm.core.likelihood.exact import log_partition

N_ROWS = 40
JUDGED = [sized(kind, 2, 3, offsets) for kind in oracles.KINDS for offsets in (0, 1)]


@pytest.mark.parametrize("case", JUDGED, ids=case_id)
def test_shortfall_is_what_independent_columns_have_more(case, seed, rng):
    # Slips: a hidden energy or the base's log-partition forgotten, the sign, states counted twice,
    # the weights of rows.
    p = balanced_model(case, seed)
    base, v = uncoupled_like(p, rng), draw_rows(p, N_ROWS, rng)
    machine, layer = machine_from(p), visible_layer(base)
    difference = oracles.log_likelihood(base, v) - oracles.log_likelihood(p, v)
    weight = rng.uniform(0.1, 3, len(v))
    particles = hidden_states(p)  # all of them: the bound is the truth
    for own in (None, weight):
        mean = np.average(difference, weights=own)
        n_rows = len(v) if own is None else own.sum() ** 2 / (own**2).sum()
        error = np.sqrt(np.average((difference - mean) ** 2, weights=own) / n_rows)
        expected = mean - N_STD_ERRORS * error
        np.testing.assert_allclose(
            likelihood_deficit(machine, layer, v, particles, own),
            expected,
            rtol=1e-9,
            atol=1e-9,
        )


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_shortfall_is_close_however_many_hidden_units(kind, rng):
    # Slips: the sum over 200 of 2^100 states alone, 40 nats below; proposals given the data alone,
    # which are in another mode than the chains; a margin of 7 nats whatever the weights.
    p = oracles.random_parameters(kind, 6, 100, rng, scale=0.2)
    machine, layer = machine_from(p), visible_layer(uncoupled_like(p, rng))
    v, particles = machine.sample_visible(np.zeros((300, 100)), rng), np.zeros((100, 100))
    for _ in range(20):
        particles = machine.sample_hidden(machine.sample_visible(particles, rng), rng)
    rows = v[::3]
    independent = -layer.energy(rows) - layer.log_partition(layer.zero_field(1))
    difference = independent + machine.free_energy(rows) + log_partition(machine)
    expected = difference.mean() - N_STD_ERRORS * difference.std() / np.sqrt(len(rows))
    found = likelihood_deficit(machine, layer, v, particles)
    assert expected - 1 < found < expected + 0.1


def test_gray_rows_stand_for_the_states_that_they_are_means_of(rng):
    # Slip: free energies of the means, which are at least those that the states have on average.
    p = oracles.random_parameters("bernoulli", 12, 30, rng, scale=1.5)
    machine, layer = machine_from(p), visible_layer(uncoupled_like(p, rng))
    states = np.round(rng.random((100, 12)))
    drawn, of_means = (
        likelihood_deficit(machine, layer, v, np.round(rng.random((100, 30))))
        for v in (states, np.full((100, 12), 0.5))
    )
    at_means = machine.free_energy(np.full((1, 12), 0.5)) - machine.free_energy(states).mean()
    assert at_means > 10
    assert of_means == pytest.approx(drawn, abs=5)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_kernels_are_those_of_the_other_rows(is_weighted, rng):
    # Slips: the row's own kernel, which makes narrow kernels best; the scale of the columns; weights.
    rows = rng.normal(size=(30, 2)) * [1.0, 5.0]
    weight = rng.uniform(0.5, 2, 30) if is_weighted else None
    scale, all_weights = rows.std(axis=0), np.ones(30) if weight is None else weight
    means = []
    for width in KERNEL_WIDTHS:
        density = np.empty(30)
        for i in range(30):
            others = np.arange(30) != i
            kernels = stats.norm.pdf(rows[i], rows[others], width * scale).prod(axis=1)
            density[i] = np.average(kernels, weights=all_weights[others])
        with np.errstate(divide="ignore"):
            means.append((np.average(np.log(density), weights=all_weights), np.log(density)))
    best = max(means, key=lambda pair: pair[0])[1]
    np.testing.assert_allclose(kernel_log_density(rows, weight), best)


def test_kernels_need_distinct_values_and_few_columns(rng):
    rows = rng.normal(size=(100, 3))
    assert np.isfinite(kernel_log_density(rows)).all()
    repeated, missing = rows.copy(), rows.copy()
    repeated[:20, 1], missing[0, 0] = 0.0, np.nan
    for other in (repeated, missing, rng.normal(size=(100, MAX_KERNEL_COLUMNS + 1)), rows[:1]):
        assert (kernel_log_density(other) == -np.inf).all()


def test_a_single_row_has_no_standard_error(rng):
    p = oracles.random_parameters("bernoulli", 6, 3, rng)
    machine = machine_from(p)
    particles, base = np.ones((5, 3)), machine.visible
    assert likelihood_deficit(machine, base, np.ones((1, 6)), particles) == -np.inf
    weight = np.array([1.0, 1e-6])  # another row that hardly counts
    assert likelihood_deficit(machine, base, np.eye(2, 6), particles, weight) == -np.inf


def test_shortfall_of_wide_rows_takes_little_memory(rng):
    # Slips: free energies of 200 hidden states, 80 MB a temporary array, all at once; as many proposals.
    p = oracles.random_parameters("bernoulli", 50_000, 20, rng, scale=0.01)
    machine, v = recenter(machine_from(p), None, None), sparse.csr_array((100, 50_000))
    tracemalloc.start()
    likelihood_deficit(machine, machine.visible, v, rng.choice([0.0, 1.0], (100, 20)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
