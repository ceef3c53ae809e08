"""The log-likelihood of estimators while they train."""

import itertools
import re
from dataclasses import replace

import numpy as np
import oracles
import pytest
from estimators.instances import DISCRETE_KINDS, KINDS, draw, learned_bits, new, parameters
from scipy.special import logsumexp

from skrbm import AnnealingWarning, BernoulliRBM, TrainingCurveDisplay
from skrbm.core.likelihood import exact
from skrbm.core.likelihood.tracking import PartitionTracker
from skrbm.core.training.monitoring import Plateau
from skrbm.estimators.fitting.recording import RowRecorder
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder

TRACKED = "log_likelihood", "log_likelihood_std_error"


@pytest.mark.every_kind
@pytest.mark.parametrize("algorithm", ["pcd", "cd", "pt", "exact"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_of_a_fit_depends_on_it(kind, algorithm, monkeypatch):
    # Slips: chains that draw from the stream of training, or of samples.
    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    X = draw(kind)
    options = {"algorithm": algorithm, "n_iter": 3, "n_temperatures": 3, "random_state": 0}
    plain = new(kind, **options).fit(X)
    tracked = new(kind, track_likelihood=True, **options).fit(X)
    assert learned_bits(tracked) == learned_bits(plain)
    recorded = [n_iter - 1 for n_iter in plain.history_["n_iter"]]
    for name in plain.history_:
        if name != "time":
            assert [tracked.history_[name][i] for i in recorded] == plain.history_[name]
    assert set(tracked.history_) - set(plain.history_) == set(TRACKED)
    again = new(kind, track_likelihood=True, **options).fit(X)
    assert again.history_["log_likelihood"] == tracked.history_["log_likelihood"]


@pytest.mark.parametrize("kind", KINDS)
def test_small_models_are_tracked_exactly(kind):
    # Slips: the model before the pass; the likelihood of other rows.
    X = draw(kind)
    rbm = new(kind, n_iter=3, track_likelihood=True, random_state=0).fit(X)
    expected = oracles.log_likelihood(parameters(rbm), X).mean()
    assert rbm.history_["log_likelihood"][-1] == pytest.approx(expected, abs=1e-9)
    assert rbm.history_["log_likelihood_std_error"] == [0.0] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bernoulli", "spin", "cho"])
def test_every_pass_is_within_its_error_of_the_exact_value(kind, monkeypatch):
    # Slips: the start's own partition function; an error of the last pass alone.
    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    exact_values, results = [], []
    follow = PartitionTracker.follow

    def compared(tracker, machine, *args):
        exact_values.append(exact.log_partition(machine))
        results.append(follow(tracker, machine, *args))
        return results[-1]

    monkeypatch.setattr(PartitionTracker, "follow", compared)
    X = draw(kind, 300, 6)
    rbm = new(kind, 4, n_iter=60, track_likelihood=True, random_state=0).fit(X)
    errors = np.array([r.value for r in results]) - exact_values
    stated = np.array([r.std_error for r in results])
    assert len(errors) == 60
    assert (np.abs(errors) < 4 * stated).mean() >= 0.95
    assert stated.max() < 0.3
    history = rbm.history_["log_likelihood"]
    expected = oracles.log_likelihood(parameters(rbm), X).mean()
    assert abs(history[-1] - expected) < 4 * stated[-1]


def test_early_stopping_goes_by_it_and_keeps_the_best(monkeypatch):
    # Slips: the pseudo-likelihood, which here rises for ever, still decides; the model of the last
    # pass kept; a warm start that forgets what was best.
    rising = itertools.count()
    monkeypatch.setattr(
        RowRecorder, "_held_out_scores", lambda *args: (np.full(100, float(next(rising))), None)
    )
    held_out, record = [], LikelihoodRecorder.record

    def noted(self, machine, rows):
        held_out.append(rows["validation_"][0])
        return record(self, machine, rows)

    monkeypatch.setattr(LikelihoodRecorder, "record", noted)
    monkeypatch.setattr(Plateau, "kept_errors", -1.0)  # the best is kept, not one about as good
    rng = np.random.default_rng(0)
    bits = np.repeat(rng.random((200, 2)) < 0.5, 4, axis=1)
    X = (bits ^ (rng.random(bits.shape) < 0.2)).astype(float)
    rbm = BernoulliRBM(6, learning_rate=2, n_iter=300, early_stopping=True, random_state=0)
    rbm.set_params(n_iter_no_change=5, track_likelihood=True, validation_fraction=0.5).fit(X)
    history = rbm.history_["validation_log_likelihood"]
    assert 0 < np.argmax(history) < len(history) - 1 < 299
    best = oracles.log_likelihood(parameters(rbm), held_out[0]).mean()
    assert best == pytest.approx(max(history), abs=1e-9)
    rbm.set_params(warm_start=True, n_iter=2, learning_rate=500.0).fit(X)
    resumed = oracles.log_likelihood(parameters(rbm), held_out[0]).mean()
    assert max(rbm.history_["validation_log_likelihood"][-2:]) < best
    assert resumed == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping_goes_by_it_by_default_if_columns_are_discrete(kind):
    # Slips: numbers and missing values tracked, or a stream; False that means None.
    X, name = draw(kind, 40), "validation_log_likelihood"
    options = {"n_iter": 1, "early_stopping": True, "random_state": 0}
    assert (name in new(kind, **options).fit(X).history_) == (kind in DISCRETE_KINDS)
    assert name not in new(kind, track_likelihood=False, **options).fit(X).history_
    stream = new(kind, verbose=1, **options).partial_fit(X)  # which records if it is verbose
    assert "log_likelihood" not in stream.history_
    X = X.astype(float)
    X[0, 0] = np.nan
    assert name not in new(kind, missing="marginalize", **options).fit(X).history_


def test_early_stopping_corrects_what_chains_said_that_were_replaced(monkeypatch):
    # Slips: no correction, so that the first pass is the best; one of the other sign; a corrected
    # history.
    record, n_passes = LikelihoodRecorder.record, itertools.count(1)

    def falling(self, machine, rows):
        n_pass, notes = next(n_passes), record(self, machine, rows)
        self.tracker.correction = 20.0 * n_pass
        return notes | {"validation_log_likelihood": -10.0 * n_pass}

    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    monkeypatch.setattr(LikelihoodRecorder, "record", falling)
    rbm = BernoulliRBM(4, n_iter=9, early_stopping=True, track_likelihood=True, random_state=0)
    rbm.set_params(n_iter_no_change=2).fit(draw("bernoulli"))
    assert rbm.history_["validation_log_likelihood"] == [-10.0 * i for i in range(1, 10)]


def test_weighted_rows_weigh_in_the_likelihood():
    X = draw("bernoulli", 10)
    weights = np.arange(10.0)
    rbm = BernoulliRBM(3, n_iter=1, track_likelihood=True, random_state=0)
    rbm.fit(X, sample_weight=weights)
    expected = np.average(oracles.log_likelihood(parameters(rbm), X), weights=weights)
    assert rbm.history_["log_likelihood"][-1] == pytest.approx(expected, abs=1e-9)


def test_a_line_and_a_band_show_it(monkeypatch, capsys):
    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    X = draw("bernoulli")
    rbm = BernoulliRBM(3, n_iter=4, verbose=1, track_likelihood=True, random_state=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    form = r".* log-likelihood = (-\d+\.\d\d) \+- (\d\.\d\d), time = .*"
    shown = [re.fullmatch(form, line).groups() for line in lines]
    history = rbm.history_
    values = list(zip(*(history[name] for name in TRACKED), strict=True))
    assert shown == [(f"{a:.2f}", f"{b:.2f}") for a, b in values]
    display = TrainingCurveDisplay.from_estimator(rbm)
    (line,), (band,) = display.lines_, display.bands_
    np.testing.assert_array_equal(line.get_ydata(), history["log_likelihood"])
    (path,) = band.get_paths()
    ends = [a + s * b for a, b in values for s in (-1, 1)]
    assert path.vertices[:, 1].min() == pytest.approx(min(ends))
    assert path.vertices[:, 1].max() == pytest.approx(max(ends))


def rows_share(rbm, X, epoch=-1):
    """Probability of all distinct rows together, by the recorded log-likelihood: at most one."""
    log_partition = -rbm.free_energy(X).mean() - rbm.history_["log_likelihood"][epoch]
    return np.exp(logsumexp(-rbm.free_energy(np.unique(X, axis=0))) - log_partition)


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_no_rows_are_recorded_as_more_likely_than_one(kind, monkeypatch):
    """Bits were at +3.21 +- .71 nats. The error is then at least the gap, with one warning.

    Slips: rows that count twice; the value of chains; what an earlier epoch was raised by kept.
    """
    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    values = iter([-50.0, -60.0, 50.0])
    follow = PartitionTracker.follow

    def low(tracker, machine, *args):
        result = follow(tracker, machine, *args)
        return replace(result, value=next(values), std_error=0.7)

    monkeypatch.setattr(PartitionTracker, "follow", low)
    X = draw(kind, 100, 6)
    rbm = new(kind, 4, n_iter=1, track_likelihood=True, random_state=0)
    with pytest.warns(
        AnnealingWarning, match="tracked .* is too low: the rows alone contribute"
    ) as w:
        rbm.fit(X)
    assert len(w) == 1
    assert w[0].filename == __file__
    assert rows_share(rbm, X) == pytest.approx(1)
    assert rbm.history_["log_likelihood_std_error"][0] > 40
    values = iter([-60.0, 50.0])
    with pytest.warns(AnnealingWarning):
        rbm.set_params(n_iter=2).fit(X)
    assert rows_share(rbm, X) < 1e-9
    assert rbm.history_["log_likelihood_std_error"][1] == 0.7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mode_of_few_rows_is_tracked():
    """Six rows of 2,000 that training makes tens of nats too likely.

    Slips: chains that may jump to evenly spread rows alone.
    """
    rng = np.random.default_rng(2)
    pattern, is_rare = rng.random(60) < 0.5, np.zeros(2000, dtype=bool)
    is_rare[rng.choice(2000, 6, replace=False)] = True
    X = 1.0 * ((pattern ^ is_rare[:, None]) ^ (rng.random((2000, 60)) < 0.02))
    kind = type("BernoulliRBM", (BernoulliRBM,), {"_left_out": frozenset({"jumps", "clusters"})})
    rbm = kind(256, n_iter=8, track_likelihood=True, random_state=0).fit(X)
    error = rbm.history_["log_likelihood_std_error"][-1]
    assert rows_share(rbm, X) < np.exp(4 * error)
    assert error < 1
