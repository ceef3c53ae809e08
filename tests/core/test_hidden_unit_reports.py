"""Importances of hidden units against enumerated models without them."""

import numpy as np
import oracles
import pytest
from core.models import CASES, case_id, machine_from, model, visible_states

from skrbm.core.hidden_unit_reports import histograms, importances
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
