"""Machines with mixture units: their sampler, their annealing path, and the mass of their atoms."""

import numpy as np
import pytest
from core.models import assert_mean
from core.test_units import expectation
from scipy.integrate import quad
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

from skrbm.core.chains.gibbs import gibbs
from skrbm.core.chains.path import TemperedPath
from skrbm.core.likelihood.annealing import annealed_log_partition
from skrbm.core.likelihood.conditional import conditional_distribution
from skrbm.core.likelihood.exact import log_partition
from skrbm.core.likelihood.pseudo import pseudo_likelihood
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli, Mixture, StandardGaussian

ATOM = 0.37
N_CHAINS = 4000


@pytest.fixture
def machine():
    """Two units, one of two modes and one of a mode and an atom, and three hidden ones."""
    visible = Mixture(
        np.array([0.2, -0.3]),
        np.array([-0.4, 0.2]),
        np.log([[0.4, 0.6], [0.6, 0.4]]),
        np.array([[-1.0, 0.8], [0.0, ATOM]]),
        np.array([[0.2, 0.4], [1.0, 0.0]]),
    )
    weights = np.array([[1.0, -0.6, 0.3], [0.5, 0.8, -1.0]])
    return Machine(visible, Bernoulli(np.array([-0.5, 0.2, 0.1])), weights)


def test_gibbs_steps_leave_the_distribution_as_it_is(machine, rng):
    # Slips: a variance in place of a deviation, draws of components in proportion to the base.
    h = machine.hidden.states(0, 8)
    log_weight = machine.visible.log_partition(machine.visible_field(h)) - machine.hidden.energy(h)
    share = np.exp(log_weight - logsumexp(log_weight))
    field = machine.visible_field(h)
    mean, square = (
        share @ expectation(machine.visible, field, lambda unit, s, power=power: s**power)
        for power in (1, 2)
    )
    chosen = h[rng.choice(8, N_CHAINS, p=share)]
    v = gibbs(machine, machine.sample_visible(chosen, rng), 3, rng)
    assert_mean(v, mean)
    assert_mean(v**2, square)
    of_atom = conditional_distribution(machine, v, 1)[1][0]  # nodes begin with the atom
    assert_mean((v[:, 1] == ATOM) - of_atom, 0)


def test_annealing_agrees_with_the_sum_over_hidden_states(machine, rng):
    # Slip: intermediate laws of another energy than the mixture of both ends'.
    base = Mixture.start(
        np.array([0.1, 0.2]), np.array([0.05, 4.0]), 100, **machine.visible.start_options
    )
    estimate = annealed_log_partition(TemperedPath.to(machine, base), 200, 100, rng)
    exact = log_partition(machine)
    assert abs(estimate.value - exact) < 4 * estimate.std_error


@pytest.mark.parametrize("refinement", [1, 8])
def test_density_and_atom_have_a_probability_of_one(refinement, machine):
    # Slips: a density at the atom, an atom that counts twice among the nodes of the quadrature or
    # that is a node of the refined one.
    v = np.array([[0.3, 0.0]])

    def likelihood(value):
        return np.exp(-machine.free_energy(np.array([[0.3, value]]))[0])

    total = quad(likelihood, -15, 15, limit=200)[0] + likelihood(ATOM)
    values, share = conditional_distribution(machine, v, 1, refinement)
    is_atom = values[:, 0, 0] == ATOM
    np.testing.assert_allclose(share[is_atom].sum(), likelihood(ATOM) / total, rtol=1e-8)
    np.testing.assert_allclose(share.sum(), 1, rtol=1e-12)


def test_range_of_a_unit_contains_those_of_all_its_components():
    # Slips: the range of the first, the widest or the nearest component alone.
    center, spread, strength = np.array([-1.0, 1.0]), np.array([0.04, 0.03]), 20.0
    shrinkage = 1 - strength * spread  # of the precisions, by the hidden unit
    evidence = strength * center**2 / shrinkage / 2 - np.log(shrinkage) / 2
    zero = np.zeros(1)
    visible = Mixture(zero, zero, log_softmax(-evidence)[None], center[None], spread[None])
    machine = Machine(visible, StandardGaussian(zero), np.full((1, 1), np.sqrt(strength)))
    law = norm(center / shrinkage, np.sqrt(spread / shrinkage))  # both are equally probable
    v = np.array([[-5.0], [0.0], [2.4], [4.0]])
    expected = logsumexp(law.logpdf(v), axis=1) - np.log(2)
    np.testing.assert_allclose(pseudo_likelihood(machine, v), expected, rtol=0, atol=1e-9)
