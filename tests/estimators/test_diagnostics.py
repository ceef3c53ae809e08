"""Diagnostics of the chains of estimators."""

import numpy as np
import pytest
from estimators.instances import KINDS, assigned, bits, random_machine

from skrbm import BernoulliRBM, chain_diagnostics


@pytest.mark.parametrize("kind", KINDS)
def test_traces_have_a_value_for_each_chain_and_step(kind):
    # Slips: the estimator's streams of training moved; a trace of another shape.
    p, v, _ = random_machine(kind)
    rbm = assigned(p, random_state=0)
    rbm._model.inference_rng()  # opens the streams
    before = bits(rbm)
    result = chain_diagnostics(rbm, 3, 7, random_state=1)
    again = chain_diagnostics(rbm, n_chains=3, n_steps=7, random_state=1)
    assert bits(rbm) == before
    for name, trace in result.traces.items():
        assert trace.shape == (3, 7)
        assert trace.dtype == np.float64
        np.testing.assert_array_equal(trace, again.traces[name])
    assert chain_diagnostics(rbm, n_steps=4, init=v[:6]).free_energy.shape == (6, 4)
    assert chain_diagnostics(rbm, n_steps=4).free_energy.shape == (20, 4)


def test_what_cannot_be_diagnosed_is_refused():
    p, v, _ = random_machine("bernoulli")
    rbm = assigned(p)
    with pytest.raises(ValueError, match=r"n_chains=3 expected .* got init of shape \(6, 4\)"):
        chain_diagnostics(rbm, 3, init=v[:6])
    with pytest.raises(ValueError, match=r"init expected to have at least 2 rows"):
        chain_diagnostics(rbm, init=v[:1])
    for parameters in ({"n_chains": 1}, {"n_steps": 3}, {"random_state": "a"}):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            chain_diagnostics(rbm, **parameters)


@pytest.mark.parametrize("seed", range(4))
def test_chains_that_all_would_start_in_one_mode_are_spread(seed):
    """Two equally likely modes, one of them where visible units without a field are.

    Slip: starts without a field: R-hat 1.000, "The chains mix", all chains in one mode.
    """
    rbm = BernoulliRBM(1)
    rbm.components_, rbm.intercept_hidden_ = np.full((1, 12), 9.0), np.array([-54.0])
    rbm.intercept_visible_ = np.full(12, -4.5)
    result = chain_diagnostics(rbm, random_state=seed)
    assert result.verdict.startswith("The chains do not mix")
    assert 5 <= (result.mean_activation.mean(axis=1) > 0.5).sum() <= 15
