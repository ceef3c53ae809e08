"""Importances of hidden units against enumerated models without them."""

import numpy as np
import oracles
import pytest
from core.models import CASES, case_id, machine_from, model, visible_states

from skrbm.core.hidden_unit_reports import HiddenUnitReport, histograms, importances
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli

PLAIN = [case for case in CASES if not case[3]]
N_DRAWS = 20_000


@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_importance_is_the_likelihood_lost_without_the_unit(case, seed, rng):
    # Slips: the partition function left as it was; an average of log in place of its log; a spin's
    # factor of two lost.
    p = model(case, seed, scale=0.4)
    v = visible_states(p, rng)[:5]
    machine = machine_from(p)
    fields = machine.hidden_field(v), machine.hidden_field(oracles.sample_exact(p, N_DRAWS, rng)[0])
    importance, std_error = importances(machine, *fields)

    def log_likelihood(p):
        return (-oracles.free_energy(p, v)).mean() - oracles.log_partition(p)

    for j in range(p.weights.shape[1]):
        rest = p.replace(
            weights=np.delete(p.weights, j, axis=1),
            hidden_bias=np.delete(p.hidden_bias, j),
            hidden_offset=np.delete(p.hidden_offset, j),
        )
        lost = log_likelihood(p) - log_likelihood(rest)
        assert abs(importance[j] - lost) < 4 * std_error[j]
        assert std_error[j] < 0.1


def test_an_average_over_too_few_draws_has_no_error():
    # Slip: a small error of a unit that one draw in a thousand finds off.
    machine = Machine(Bernoulli(np.zeros(1)), Bernoulli(np.zeros(1)), np.ones((1, 1)))
    draws = np.full((1000, 1), 30.0)
    draws[0] = -1.0
    _, std_error = importances(machine, np.zeros((1, 1)), draws)
    assert std_error.tolist() == [np.inf]


def test_histograms_count_every_row(rng):
    inputs = rng.normal(size=(200, 3))
    counts, edges = histograms(inputs)
    np.testing.assert_array_equal(counts.sum(axis=1), 200)
    np.testing.assert_allclose(edges[:, [0, -1]].T, [inputs.min(axis=0), inputs.max(axis=0)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_histograms_of_inputs_that_differ_by_rounding_have_bins(dtype):
    # Slip: more bins than there are numbers between the smallest and the largest input.
    center = dtype(-1.7)
    inputs = np.stack([[center, np.nextafter(center, dtype(0)), center], [2, 2, 2]], axis=1)
    counts, edges = histograms(inputs.astype(dtype))
    np.testing.assert_array_equal(counts.sum(axis=1), 3)
    assert (np.diff(edges, axis=1) > 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "unit expected to be an integer from 0 to 1, got -1"),
        ((2,), "unit .* got 2"),
        ((1.5,), "unit .* got 1.5"),
        (("x",), "unit .* got 'x'"),
        ((0, -1), "n_columns expected to be a positive integer, got -1"),
        ((0, 0), "n_columns .* got 0"),
        ((0, 1.5), "n_columns .* got 1.5"),
    ],
)
def test_units_that_are_not_there_and_no_columns_are_refused(arguments, message):
    # Slips: the last unit for -1; all columns but one; an IndexError.
    empty = np.zeros((2, 0))
    names = np.array(["a", "b"])
    report = HiddenUnitReport(empty, empty, empty, np.eye(2), names, empty, empty)
    assert report.strongest_columns(np.int64(1), 1) == ["+b"]
    with pytest.raises(ValueError, match=message):
        report.strongest_columns(*arguments)
