"""Effective couplings of estimators."""

import numpy as np
import oracles
import pytest
from estimators.instances import assigned, random_machine

from skrbm import effective_couplings, to_spin


def test_bits_have_the_couplings_of_the_spins_that_they_are():
    # Slip: the coupling of products of bits, which are a quarter of the states.
    rbm = assigned(random_machine("bernoulli", 6, 4, scale=1.5)[0])
    ours, twin = (effective_couplings(model, order=3) for model in (rbm, to_spin(rbm)))
    for name in ("fields", "pairs", "triples"):
        np.testing.assert_allclose(getattr(ours, name), getattr(twin, name), rtol=0, atol=1e-12)
    assert np.abs(ours.pairs).max() > 0.1


def test_two_bits_have_half_the_log_odds_ratio_over_two():
    # Slip: the pairs of bits' states swapped.
    p = random_machine("bernoulli", 2, 3, scale=2.0)[0]
    log_p = -oracles.free_energy(p, oracles.visible_states(p)).reshape(2, 2)
    expected = (log_p[0, 0] + log_p[1, 1] - log_p[0, 1] - log_p[1, 0]) / 4
    assert effective_couplings(assigned(p)).pairs[0, 1] == pytest.approx(expected, abs=1e-12)


def test_what_has_no_couplings_is_refused():
    rbm = assigned(random_machine("cho")[0])
    with pytest.raises(ValueError, match="got unit 0 of Gaussian units"):
        effective_couplings(rbm)
    with pytest.raises(ValueError, match="'order' parameter"):
        effective_couplings(assigned(random_machine("spin")[0]), order=4)
