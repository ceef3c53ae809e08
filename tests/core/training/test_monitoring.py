"""What is recorded of a pass, and the judge of plateaus."""

import numpy as np
import oracles
import pytest
from core.models import (
    FALSE_ALARM,
    balanced_model,
    draw_rows,
    hidden_states,
    machine_from,
    model,
    sized,
    visible_law,
)
from scipy import sparse, stats

from skrbm.core.training.monitoring import (
    EarlyStopping,
    Plateau,
    Score,
    epoch_scores,
    free_energy_gap,
)
from skrbm.core.training.state import TrainingState

N_ROWS = 100  # no more than are looked at


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_records_are_means_over_rows_and_chains(kind, seed, rng):
    # Slips: sums, a gap with the wrong sign, probabilities in place of a spin's mean.
    p = model(sized(kind, 4, 2), seed)
    v, h = oracles.sample_exact(p, 60, rng)
    machine = machine_from(p)
    seen = epoch_scores(machine, v, h)
    np.testing.assert_allclose(seen["mean_activation"], oracles.mean_hidden(p, v).mean())
    score = oracles.log_pseudo_likelihood(p, v).mean()
    np.testing.assert_allclose(seen["pseudo_likelihood"], score, atol=1e-6)
    assert epoch_scores(machine, v, h) == seen
    assert epoch_scores(machine, v, None) == {n: x for n, x in seen.items() if n != "chain_gap"}
    expected = oracles.free_energy(p, v[:30]).mean() - oracles.free_energy(p, v[30:]).mean()
    np.testing.assert_allclose(free_energy_gap(machine, v[:30], v[30:]), expected)
    if p.is_discrete:
        rows = sparse.csr_array(v)
        np.testing.assert_allclose(free_energy_gap(machine, rows[:30], rows[30:]), expected)


@pytest.mark.every_kind
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_chains_of_the_model_itself_are_as_likely_as_its_data(kind, seed, rng):
    # Slip: chains whose visible states are those of another temperature, or means.
    p = model(sized(kind, 4, 3), seed)
    v, _ = oracles.sample_exact(p, 100, rng)
    gaps = []
    for _ in range(20):
        _, h = oracles.sample_exact(p, 100, rng)
        gaps.append(epoch_scores(machine_from(p), v, h)["chain_gap"])
    exact = oracles.free_energy(p, oracles.sample_exact(p, 10_000, rng)[0])
    expected = exact.mean() - oracles.free_energy(p, v).mean()
    # the same visible draws serve all repeats, hence the error of a single one
    assert abs(np.mean(gaps) - expected) < 4 * exact.std() / np.sqrt(100)


def test_plateau_counts_scores_that_do_not_rise_enough():
    plateau = Plateau(tol=0.5, patience=2)
    scores = [Score(mean) for mean in (1.0, 2.0, 2.1, np.nan)]
    assert [plateau.add(score) for score in scores] == [True, True, True, False]
    assert plateau.is_reached
    assert plateau.best == Score(2.1)
    assert plateau.add(Score(3.0))
    assert not plateau.is_reached
    # Slips: patience used up, or renewed, by what may be a rise; by its error on the other side.
    errors = (0.1, 1.5, 0.9, np.nan)
    assert [plateau.add(Score(2.5, std_error)) for std_error in errors] == [False] * 4
    assert plateau.n_stale == 3


@pytest.mark.parametrize("is_weighted", [False, True])
def test_error_of_a_gain_is_that_of_a_paired_test(is_weighted, rng):
    # Slips: the error of one of the scores, which is ten times larger; weights as numbers of rows.
    one = 10 * rng.normal(size=12)
    other = one + rng.normal(size=12)
    weight = np.repeat([3.0, 0.0], [8, 4]) if is_weighted else None
    std_error, quantile = Score(0.0, 0.0, one, weight).error_of_gain(Score(0.0, 0.0, other, weight))
    differences = (one - other)[: 8 if is_weighted else 12]
    test = stats.ttest_1samp(differences, 0.0)
    np.testing.assert_allclose(std_error, abs(differences.mean() / test.statistic))
    interval = test.confidence_interval(0.9)  # a two-sided one: 5 % on either side
    np.testing.assert_allclose(differences.mean() + quantile * std_error, interval.high)
    both, _ = Score(0.0, 2.0, one, weight).error_of_gain(Score(0.0, 0.0, other, weight))
    np.testing.assert_allclose(both, np.hypot(2.0, std_error))


def test_few_rows_end_a_rising_run_rarely_and_a_falling_one_soon(rng):
    """A row's score wanders: of 500 rising runs, means of ten rows alone end 91."""
    n_runs, n_epochs, n_rows, patience = 500, 40, 10, 5

    def lengths(slope):
        for _ in range(n_runs):
            noise = rng.normal(size=(n_epochs, n_rows)).cumsum(axis=0)
            rows = slope * np.arange(n_epochs)[:, None] + noise
            plateau = Plateau(tol=0.0, patience=patience)
            n_seen = 0
            while n_seen < n_epochs and not plateau.is_reached:
                plateau.add(Score(rows[n_seen].mean(), 0.0, rows[n_seen]))
                n_seen += 1
            yield n_seen

    is_ended = np.array(list(lengths(0.3))) < n_epochs
    # Each of the tests errs in 5 % of the cases; only the steepest fall of a run matters.
    assert is_ended.mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_runs)
    assert np.median(list(lengths(-1.0))) < 15


def test_the_last_of_about_equal_machines_is_kept(rng):
    # Slips: the best of ten rows kept though the last is as good; a fall that adds up unseen; a
    # machine of an earlier fit replaced by one that is hardly worse.
    noise = rng.normal(size=10)
    noise -= noise.mean()
    half = 0.5 * noise.std(ddof=1) / np.sqrt(10)
    plateau = Plateau(tol=0.0, patience=9)
    kept = [
        plateau.add(Score(mean, 0.0, rows))
        for mean, rows in (
            (0.0, np.zeros(10)),
            (-0.9 * half, noise - 0.9 * half),
            (-1.1 * half, noise - 1.1 * half),
            (-0.5 * half, noise - 0.5 * half),
        )
    ]
    assert kept == [True, True, False, True]
    assert plateau.best.mean == 0.0
    plateau.is_resumed = True
    assert not plateau.add(Score(-0.5 * half, 0.0, noise))
    assert plateau.add(Score(0.1, 0.0, noise))
    assert plateau.add(Score(0.1 - 0.5 * half, 0.0, np.zeros(10)))


@pytest.mark.parametrize("restores_best", [False, True])
def test_judge_slows_down_before_it_ends_training(restores_best, seed):
    # Slips: an end at the first plateau; patience that is not started anew; a best machine that is
    # the last one, or shares its arrays with it.
    machine = machine_from(model(sized("bernoulli", 4, 3), seed))
    best, state = machine.weights.copy(), TrainingState(np.zeros((1, 3)), learning_rate=1e-3)
    judge = EarlyStopping(
        Plateau(tol=0.0, patience=2), slows_down=True, restores_best=restores_best
    )
    factors = []
    for _ in range(5):
        assert not judge.add(Score(-float(len(factors))), machine, state)
        machine.weights[:] += 1
        factors.append(state.rate_factor)
    np.testing.assert_allclose(factors, [1, 1, 0.2, 0.2, 0.04])
    state.learning_rate = 1e-7
    assert [judge.add(Score(-9.0), machine, state) for _ in range(2)] == [False, True]
    assert (judge.best is not None) == restores_best
    if judge.best is not None:
        np.testing.assert_array_equal(judge.best.weights, best)


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_gap_is_the_mean_free_energy_of_the_first_rows_above_that_of_the_others(kind, seed, rng):
    # Slips: sums in place of means, and one number of rows for both, of which there are 7 and 3; the
    # sign, or the arguments exchanged, where the first rows are the least likely of all.
    p = model(sized(kind, 4, 3), seed, scale=1.5)
    v = draw_rows(p, 40, rng)
    v = v[np.argsort(oracles.free_energy(p, v))]
    unlikely, likely = v[-7:], v[:3]
    expected = oracles.free_energy(p, unlikely).mean() - oracles.free_energy(p, likely).mean()
    machine = machine_from(p)
    np.testing.assert_allclose(free_energy_gap(machine, unlikely, likely), expected, rtol=1e-9)
    np.testing.assert_allclose(free_energy_gap(machine, likely, unlikely), -expected, rtol=1e-9)


def test_gap_of_many_rows_is_that_of_rows_from_the_first_to_the_last(seed):
    # Slips: the first rows alone, which are in order of time; one half of one argument.
    p = model(("cho", 2, 2, 0), seed)
    n_rows = 50 * N_ROWS
    v = np.linspace([0.0, 0.0], [8.0, 8.0], n_rows)
    gap = free_energy_gap(machine_from(p), v, v[: n_rows // 2])
    free = oracles.free_energy(p, v)
    expected = free.mean() - free[: n_rows // 2].mean()
    steepest = np.abs(np.diff(free)).max() * n_rows  # of the free energy along all rows
    assert abs(gap - expected) < steepest / N_ROWS


@pytest.mark.parametrize("kind", oracles.KINDS)
def test_recorded_gap_is_that_of_chains_above_the_data(kind, seed, rng):
    # Slips: data above chains; means of the visible units in place of draws; the chains' hidden
    # units taken for the data's.
    p = model(sized(kind, 2, 2), seed, scale=1.5)
    v = draw_rows(p, 200, rng)
    order = np.argsort(oracles.free_energy(p, v))
    gaps = []
    for h in hidden_states(p):
        states, law = visible_law(p, h)
        free = oracles.free_energy(p, states)
        mean = law @ free
        error = np.sqrt(law @ (free - mean) ** 2 / N_ROWS)
        for rows in (v[order[:5]], v[order[-5:]]):
            expected = mean - oracles.free_energy(p, rows).mean()
            gap = epoch_scores(machine_from(p), rows, np.tile(h, (N_ROWS, 1)))["chain_gap"]
            gaps.append((gap - expected) / max(error, 1e-9))
    assert np.abs(gaps).max() < stats.norm.isf(FALSE_ALARM / 2 / len(gaps))


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_gap_of_gray_rows_is_that_of_their_states(kind, seed):
    # Slip: the free energy of the means.
    p = balanced_model(sized(kind, 8, 10), seed, strength=3.0)
    machine = machine_from(p)
    states = oracles.visible_states(p)
    middle = np.full((N_ROWS, 8), states.mean())
    free = oracles.free_energy(p, states)
    h = np.tile(hidden_states(p)[-1], (N_ROWS, 1))
    of_chains = machine.free_energy(machine.sample_visible(h, np.random.default_rng(0))).mean()
    gap = epoch_scores(machine, middle, h)["chain_gap"]
    assert abs(of_chains - free.mean() - gap) < 5 * free.std() / np.sqrt(N_ROWS)
