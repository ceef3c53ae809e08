"""Gibbs sampling: started from exact samples, the law must not move; from elsewhere, it must."""

import numpy as np
import oracles
import pytest
from core.models import (
    FALSE_ALARM,
    TWO_STATE,
    assert_law,
    assert_mean,
    balanced_model,
    chain,
    draw_states,
    hidden_law,
    hidden_states,
    law_pvalue,
    machine_from,
    sized,
    tempered_hidden_law,
    uncoupled_like,
    visible_law,
    visible_layer,
    wide_nodes,
)
from scipy import sparse, stats
from scipy.integrate import trapezoid
from scipy.special import softmax

from skrbm.core.chains.gibbs import (
    clamped_gibbs,
    clamped_mean,
    gibbs,
    sample_scattered,
)
from skrbm.core.chains.jumps import draw_given_observed
from skrbm.core.chains.ladder import Ladder
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import parallel_tempering, sample_tempered
from skrbm.core.machine import Machine

N_CHAINS = 20_000
SAMPLED = [sized(kind, 2, 3, offsets) for kind in oracles.KINDS for offsets in (0, 1)]


def sampled_id(case):
    """Readable name of a case of which the size is known."""
    return f"{case[0]}-{'offsets' if case[3] else 'plain'}"


@pytest.fixture(params=SAMPLED, ids=sampled_id)
def p(request, seed):
    return balanced_model(request.param, seed)


def sample_base(machine, n_samples, rng):
    """Visible states drawn without a field."""
    return machine.visible.sample(machine.visible.zero_field(n_samples), rng)


def assert_joint_law(p, v, h):
    """Pairs of v and h are independent draws of the model."""
    shares, real = oracles.cumulated(p, v, h)
    residual = stats.norm.ppf(shares)  # of real-valued units given h
    counted = np.delete(np.concatenate([v, h], axis=1), real, axis=1)
    assert_law(counted, *counted_law(p))
    if len(real):
        assert_mean(residual[:, :, None] * counted[:, None], 0)
        assert_mean(residual[:, :, None] * residual[:, None], np.eye(len(real)))
    for unit in shares.T:
        assert stats.kstest(unit, "uniform").pvalue > FALSE_ALARM


def counted_law(p):
    """States of all discrete units, the visible ones first, with their probabilities."""
    discrete = [unit for unit in p.units if unit[0] not in oracles.REAL]
    hidden, laws = hidden_states(p), []
    for h, share in zip(hidden, hidden_law(p), strict=True):
        v, weights = visible_law(p, h, discrete)
        laws.append((np.concatenate([v, np.tile(h, (len(v), 1))], axis=1), share * weights))
    states, law = zip(*laws, strict=True)
    return np.concatenate(states), np.concatenate(law)


@pytest.mark.every_kind
@pytest.mark.parametrize("n_gibbs_steps", [1, 3])
def test_gibbs_leaves_the_law_alone(p, n_gibbs_steps, rng):
    # Slips: expit(x) for expit(2x), spins in {0, 1}, variance for standard deviation, no noise.
    machine = machine_from(p)
    v, _ = oracles.sample_exact(p, N_CHAINS, rng)
    v = gibbs(machine, v, n_gibbs_steps, rng)
    assert_joint_law(p, v, machine.sample_hidden(v, rng))


def test_visible_kernel_leaves_the_joint_law_alone(p, rng):
    _, h = oracles.sample_exact(p, N_CHAINS, rng)
    assert_joint_law(p, machine_from(p).sample_visible(h, rng), h)


@pytest.mark.every_kind
@pytest.mark.parametrize("n_gibbs_steps", [0, 1, 2, 3])
def test_gibbs_takes_as_many_steps_as_it_is_told(p, n_gibbs_steps, rng):
    # Slip: one step too many or too few.
    machine, start = machine_from(p), np.zeros(8)
    start[np.argmin(hidden_law(p))] = 1
    h = np.repeat(hidden_states(p)[start == 1], N_CHAINS, axis=0)
    v = gibbs(machine, machine.sample_visible(h, rng), n_gibbs_steps, rng)
    _, _, law = chain(p, start, n_gibbs_steps + 1)
    assert_law(machine.sample_hidden(v, rng), hidden_states(p), law)


def test_no_step_is_no_change(p, rng):
    v, _ = oracles.sample_exact(p, 5, rng)
    before = rng.bit_generator.state
    np.testing.assert_array_equal(gibbs(machine_from(p), v, 0, rng), v)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_are_states_in_the_precision_of_the_machine(p, dtype, rng):
    # Slip: spins in {0, 1}, chain starts included.
    machine = machine_from(p, dtype)
    start = sample_base(machine, 50, rng)
    for v in (start, gibbs(machine, start, 2, rng)):
        assert v.dtype == dtype
        for kind, own in p.units:
            if kind not in oracles.REAL:
                values = oracles.unit_values(kind, own.stop - own.start)
                assert {tuple(row) for row in v[:, own]} <= {tuple(row) for row in values}
        if p.kind in TWO_STATE:
            assert set(np.unique(v)) == set(p.visible_values)
    h = machine.sample_hidden(v, rng)
    assert h.dtype == dtype
    assert set(np.unique(h)) == set(p.hidden_values)


def test_base_is_the_machine_without_weights(p, rng):
    uncoupled = p.replace(weights=0 * p.weights)
    v = sample_base(machine_from(p), N_CHAINS, rng)
    assert_mean(v, oracles.mean_visible(uncoupled, hidden_states(p)[:1])[0])
    assert_mean(
        (v - oracles.mean_visible(uncoupled, hidden_states(p)[:1])[0]) ** 2,
        oracles.variance_visible(uncoupled, hidden_states(p)[:1])[0],
    )


def test_sparse_chains_start_as_dense_ones(seed, rng):
    p = oracles.random_parameters("bernoulli", 6, 4, rng, offsets=False)
    machine, v = machine_from(p), rng.choice([0.0, 1.0], (20, 6))
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    np.testing.assert_array_equal(
        gibbs(machine, sparse.csr_array(v), 3, one), gibbs(machine, v, 3, other)
    )


# Clamped chains


def conditional_law(p, v, is_known):
    """Probabilities of all visible states given the known columns of v (n_visible,)."""
    states = oracles.visible_states(p)
    law = oracles.model_probabilities(p) * (states == v)[:, is_known].all(axis=1)
    return states, law / law.sum()


@pytest.mark.every_kind
@pytest.mark.parametrize("n_gibbs_steps", [1, 4])
def test_clamped_gibbs_leaves_the_law_alone_and_observed_units_as_they_are(p, n_gibbs_steps, rng):
    # Slips: unknown units held and known ones drawn; a mask of the first row for all; half of the
    # columns of a categorical unit held.
    machine = machine_from(p)
    v, _ = oracles.sample_exact(p, N_CHAINS, rng)
    is_known = rng.random((len(v), len(p.units))) < 0.5
    is_held = np.repeat(is_known, [own.stop - own.start for _, own in p.units], axis=1)
    moved = clamped_gibbs(machine, v, is_known, n_gibbs_steps, rng)
    np.testing.assert_array_equal(moved[is_held], v[is_held])
    assert (moved != v).any(axis=0).all()
    assert_joint_law(p, moved, machine.sample_hidden(moved, rng))


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "categorical", "composite"])
def test_clamped_gibbs_reaches_the_conditional_law(kind, seed, rng):
    """Within a total variation of 0.02, from unknown units that are all in one state."""
    p = balanced_model((kind, {"categorical": 7, "composite": 6}.get(kind, 5), 3, 0), seed)
    v = oracles.visible_states(p)[0]
    is_known = np.arange(len(p.units)) < len(p.units) // 2
    is_held = np.concatenate(
        [[k] * (u.stop - u.start) for k, (_, u) in zip(is_known, p.units, strict=True)]
    )
    chains = np.tile(v, (N_CHAINS, 1))
    draws = clamped_gibbs(machine_from(p), chains, np.tile(is_known, (N_CHAINS, 1)), 50, rng)
    states, law = conditional_law(p, v, is_held)
    counts = (draws[:, None] == states[None]).all(axis=2).mean(axis=0)
    assert np.abs(counts - law).sum() / 2 < 0.02
    assert law_pvalue(draws, states[law > 0], law[law > 0]) > FALSE_ALARM


# Nothing observed: every kind, with offsets every second one.
GIVEN = [(case, 0.5) for case in SAMPLED]
GIVEN += [(case, 0.0) for i, case in enumerate(SAMPLED) if i % 4 in (0, 3)]


@pytest.mark.every_kind
@pytest.mark.parametrize(
    ("p", "share"),
    GIVEN,
    indirect=["p"],
    ids=lambda value: sampled_id(value) if isinstance(value, tuple) else None,
)
def test_draws_given_observed_units_follow_the_law(p, share, rng):
    """Given no or some units of rows that follow the law, the rows with draws follow it.

    Half of the anchors are far from the law: they are drawn without weights.

    Slips: the energies of hidden states in the weights; log-partitions of all units for those of the
    missing ones; no observed signal; proposals without weights.
    """
    machine = machine_from(p)
    v, _ = oracles.sample_exact(p, N_CHAINS // 4, rng)
    anchors = np.concatenate([sample_base(machine, 20, rng), v[-20:]])
    v = v[:-20]
    is_known = rng.random((len(v), len(p.units))) < share
    is_held = np.repeat(is_known, [own.stop - own.start for _, own in p.units], axis=1)
    unknown = np.where(is_held, v, np.nan)
    drawn = draw_given_observed(machine, unknown, is_known, anchors, 64, rng)
    drawn = drawn[64 * np.arange(len(v)) + rng.integers(64, size=len(v))]
    np.testing.assert_array_equal(drawn[is_held], v[is_held])
    assert_joint_law(p, drawn, machine.sample_hidden(drawn, rng))


def test_draws_given_all_units_are_these(p, rng):
    v, _ = oracles.sample_exact(p, 40, rng)
    is_known = np.ones((len(v), len(p.units)), dtype=bool)
    drawn = draw_given_observed(machine_from(p), v, is_known, v[::-1], 64, rng)
    np.testing.assert_array_equal(drawn, np.repeat(v, 64, axis=0))


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "categorical", "composite"])
@pytest.mark.parametrize("n_draws", [1, 40, 200])
def test_draws_given_observed_units_are_in_each_mode_as_it_is_probable(kind, n_draws, seed, rng):
    """Within a total variation of 0.03, where clamped Gibbs chains stay where they start."""
    p = balanced_model((kind, {"categorical": 7, "composite": 6}.get(kind, 5), 3, 0), seed)
    p = p.replace(weights=4 * p.weights)
    machine, n_rows = machine_from(p), -(-4_000 // n_draws)
    v, _ = oracles.sample_exact(p, 200, rng)
    is_known = np.arange(len(p.units)) == 0
    rows, known = np.repeat(v[:1], n_rows, axis=0), np.tile(is_known, (n_rows, 1))
    drawn = draw_given_observed(machine, rows, known, v[1:], n_draws, rng)
    states, law = conditional_law(p, v[0], machine.visible.by_column(is_known))
    counts = (drawn[:, None] == states).all(axis=2).mean(axis=0)
    assert np.abs(counts - law).sum() / 2 < 0.03


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_given_observed_units_of_large_models_differ(dtype, rng):
    """Without the bound on the effective number, a row's draws are made given one hidden state."""
    p = oracles.random_parameters("bernoulli", 100, 60, rng, offsets=False)
    machine = machine_from(p.replace(weights=30 * p.weights), dtype)  # v is a function of h
    v = sample_base(machine, 40, rng)
    is_known = np.tile(np.arange(100) < 20, (40, 1))
    drawn = draw_given_observed(machine, v, is_known, v[::-1], 50, rng).reshape(40, 50, 100)
    n_different = [len(np.unique(draws, axis=0)) for draws in drawn]
    assert np.median(n_different) >= 3
    assert drawn.dtype == dtype


@pytest.mark.every_kind
def test_clamped_mean_is_the_conditional_mean(p, rng):
    # Slips: the burn-in counted in; the sum in place of the mean; samples of known units; the mask
    # of units taken for one of columns.
    machine, is_known = machine_from(p), np.arange(len(p.units)) > 0
    _, own = p.units[0]
    v, _ = oracles.sample_exact(p, 1, rng)
    chains, known = np.repeat(v, N_CHAINS, axis=0), np.tile(is_known, (N_CHAINS, 1))
    start = clamped_gibbs(machine, chains, known, 30, rng)
    means = clamped_mean(machine, start, known, 5, rng)
    held = np.delete(np.arange(v.shape[1]), own)
    np.testing.assert_array_equal(means[:, held], np.repeat(v[:, held], N_CHAINS, axis=0))
    values, measure = wide_nodes(p.units[0][0], own)
    states = np.repeat(v, len(values), axis=0)
    states[:, own] = values
    law = softmax(np.log(measure) - oracles.free_energy(p, states))
    assert_mean(means[:, own], law @ values)


# Parallel tempering


def tempered(p, rng, n_chains, betas=(1.0, 0.6, 0.35, 0.0)):
    """Path, ladder and exact hidden states at every temperature, with their laws."""
    base = uncoupled_like(p, rng)
    path = TemperedPath.to(machine_from(p), visible_layer(base))
    laws = [tempered_hidden_law(p, base, beta) for beta in betas]
    h = np.stack([draw_states(hidden_states(p), law, n_chains, rng) for law in laws])
    return path, Ladder(np.array(betas)), h, laws


@pytest.mark.every_kind
@pytest.mark.parametrize("n_gibbs_steps", [1, 3])
def test_parallel_tempering_leaves_every_law_alone(p, n_gibbs_steps, rng):
    # Slips: free energies in place of joint ones in the exchange; the sign of its exponent; a beta
    # that the hidden bias does not carry; h exchanged without v.
    path, ladder, h, laws = tempered(p, rng, N_CHAINS)
    v, h = parallel_tempering(path, h, ladder, n_gibbs_steps, rng)
    assert_joint_law(p, v[0], h[0])
    for states, law in zip(h, laws, strict=True):
        assert_law(states, hidden_states(p), law)
    assert (ladder.acceptance > 0.01).all()
    assert (ladder.acceptance < 1).all()


def test_even_ladder_shares_the_rejections(rng):
    # Slips: acceptance in place of rejection; the ends moved.
    ladder = Ladder.of(6)
    for _ in range(40):
        cost = np.array(
            [
                trapezoid(1 + 30 * (x > 0.7), x) / 40
                for low, high in zip(ladder.betas[1:], ladder.betas[:-1], strict=True)
                for x in [np.linspace(low, high, 2001)]
            ]
        )
        ladder.record(1 - cost)
        mean = ladder.adapt()
        np.testing.assert_allclose(mean, 1 - cost.mean())
    np.testing.assert_allclose(cost, cost.mean(), rtol=0.05)
    assert ladder.betas[0] == 1
    assert ladder.betas[-1] == 0
    assert (np.diff(ladder.betas) < 0).all()
    assert np.isnan(ladder.adapt())


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
@pytest.mark.parametrize("n_gibbs_steps", [0, 1, 7, 40])
def test_tempered_samples_of_separate_modes(kind, n_gibbs_steps, rng):
    """Two modes that Gibbs sampling does not leave are visited as their weights say."""
    reach = 1.0 if kind == "spin" else 2.0
    p = oracles.random_parameters(kind, 6, 2, rng, offsets=False)
    middle = np.mean(p.visible_values)
    p = p.replace(
        weights=np.full((6, 2), 1.2 * reach**2),
        visible_bias=np.full(6, -2 * 1.2 * reach**2 * middle),
        hidden_bias=np.full(2, 0.2 - 6 * 1.2 * reach**2 * middle),
    )
    machine = machine_from(p)
    start = np.full((4_000, 6), p.visible_values[0])
    path = TemperedPath.to(machine, visible_layer(uncoupled_like(p, rng)))
    v = sample_tempered(path, start, 6, n_gibbs_steps, rng)
    if n_gibbs_steps == 0:
        np.testing.assert_array_equal(v, start)
    elif n_gibbs_steps == 40:
        assert_law(v, oracles.states(p.visible_values, 6), oracles.model_probabilities(p))
        stuck = gibbs(machine, start, 40, rng)
        assert (stuck.mean(axis=1) < middle).mean() > 0.9


def separate_modes(rng):
    """Bits of two far modes, of probabilities .7 and .3."""
    p = oracles.random_parameters("bernoulli", 6, 2, rng, offsets=False)
    return p.replace(
        weights=np.full((6, 2), 6.0), visible_bias=np.full(6, -6.0), hidden_bias=np.full(2, -18.42)
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_temperatures", [2, 4])
def test_jumps_lead_a_short_tempered_run_to_all_modes(n_temperatures, rng):
    # Slips: jumps behind the last step, which no visible state sees; at all temperatures alike.
    p = separate_modes(rng)
    anchors = np.repeat([[0.0], [1.0]], 6, axis=1)
    path = TemperedPath.to(machine_from(p), visible_layer(uncoupled_like(p, rng)), anchors)
    start, _ = oracles.sample_exact(p, 4_000, rng)
    for n_gibbs_steps in (1, 12):  # the chains of the machine itself stay where they should be
        v = sample_tempered(path, start, n_temperatures, n_gibbs_steps, rng, n_warm_steps=200)
        assert_law(v, oracles.states((0, 1), 6), oracles.model_probabilities(p))
    v = sample_tempered(path, np.zeros((4_000, 6)), 2, 200, rng)
    assert_law(v, oracles.states((0, 1), 6), oracles.model_probabilities(p))


# Over many models

KERNELS = {
    "gibbs": lambda p, v, rng: gibbs(machine_from(p), v, 2, rng),
    "clamped": lambda p, v, rng: clamped_gibbs(
        machine_from(p), v, rng.random(v.shape) < 0.5, 2, rng
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [*KERNELS, "tempered"])
def test_no_law_drifts_over_many_models(kernel, rng):
    """p-values of chi-square tests over all visible states are uniform over random models."""
    pvalues = []
    for index in range(20):
        kind = ("bernoulli", "spin")[index % 2]
        p = oracles.random_parameters(kind, 4, 3, rng)
        if kernel == "tempered":
            path, ladder, h, _ = tempered(p, rng, N_CHAINS)
            v = parallel_tempering(path, h, ladder, 2, rng)[0][0]
        else:
            v, _ = oracles.sample_exact(p, N_CHAINS, rng)
            v = KERNELS[kernel](p, v, rng)
        states = oracles.states(p.visible_values, 4)
        pvalues.append(law_pvalue(v, states, oracles.model_probabilities(p)))
    assert stats.kstest(pvalues, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
@pytest.mark.parametrize("n_chains", [2, 20])
def test_scattered_starts_have_all_hidden_units_on_or_off(kind, n_chains, rng):
    """Whatever the biases say; with many chains some have one half of them on.

    Slip: hidden units each of which is on by chance, all of them never.
    """
    n = 300
    low, high = TWO_STATE[kind].support.values
    machine = Machine(
        TWO_STATE[kind](np.zeros(n)), TWO_STATE[kind](np.full(n, -30.0)), 40 * np.eye(n)
    )
    share = (sample_scattered(machine, n_chains, rng).mean(axis=1) - low) / (high - low)
    off = 0.5 if kind == "bernoulli" else 0
    share = (share - off) / (1 - off)
    np.testing.assert_allclose((share[0], share[-1]), (0, 1), atol=0.3)
    assert n_chains == 2 or (abs(share - 0.5) < 0.4).any()
