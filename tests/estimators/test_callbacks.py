"""scikit-learn's callbacks: what they are shown, what they may ask for, and that they change nothing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from estimators.instances import KINDS, assert_same_arrays, draw, learned_bits, new
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skrbm import BernoulliRBM, RBMClassifier

ROOT = Path(__file__).parents[2]

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since version 1.9")


class Recorder:
    """Callback that notes every call, keeps what it is shown and may ask for an end."""

    def __init__(self, stop_after=None):
        self.stop_after, self.calls, self.shown = stop_after, [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"{context.task_name} begins")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.calls.append(f"{context.task_name} ends")
        self.shown.append(fitted_estimator)
        return len(self.shown) == self.stop_after


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_hooks_are_called_around_the_fit_and_every_pass():
    recorder = Recorder()
    BernoulliRBM(3, n_iter=2).set_callbacks(recorder).fit(draw("bernoulli"))
    passes = 2 * ["epoch begins", "epoch ends"]
    assert recorder.calls == ["setup", "fit begins", *passes, "fit ends", "teardown"]


@pytest.mark.slow
@pytest.mark.every_kind
def test_snapshots_are_the_fits_that_would_have_ended_there(kind):
    """Catches snapshots that share their arrays with training, or lack what partial_fit needs."""
    recorder, X = Recorder(), draw(kind)
    rbm = new(kind, learning_rate_schedule="constant", random_state=0)
    rbm.set_params(n_iter=3).set_callbacks(recorder).fit(X)
    for n_iter, shown in enumerate(recorder.shown[:3], 1):
        fitted = clone(rbm).set_params(n_iter=n_iter).set_callbacks().fit(X)
        assert_same_arrays(shown, fitted)
        assert shown.n_iter_ == n_iter
        added = {name for name in vars(shown) if name.endswith("_")} - vars(fitted).keys()
        assert not added  # such as feature_names_in_, which is absent without names
        assert shown.history_["n_iter"] == ([1] if n_iter < 3 else [1, 3])
        np.testing.assert_array_equal(shown.sample(5), fitted.sample(5))
        assert_same_arrays(shown.partial_fit(X), fitted.partial_fit(X))
    assert_same_arrays(recorder.shown[3], rbm)


@pytest.mark.every_kind
def test_callbacks_do_not_move_a_bit(kind):
    """Catches snapshots whose samples draw on from the estimator's own streams."""

    class Sampling(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            fitted_estimator.sample(3)
            fitted_estimator.components_[:] = 0

    X = draw(kind)
    plain, watched = (new(kind, n_iter=3, random_state=0) for _ in range(2))
    plain.fit(X)
    watched.set_callbacks(Sampling()).fit(X).set_callbacks()
    assert learned_bits(watched) == learned_bits(plain)
    np.testing.assert_array_equal(watched.sample(5), plain.sample(5))


def test_a_stop_request_ends_the_fit_cleanly(kind):
    recorder, X = Recorder(stop_after=2), draw(kind)
    rbm = new(kind, n_iter=5, random_state=0).set_callbacks(recorder).fit(X)
    assert rbm.n_iter_ == 2
    assert recorder.calls[-2:] == ["fit ends", "teardown"]
    assert_same_arrays(recorder.shown[-1], rbm)


@pytest.mark.parametrize("of_labels", [False, True])
def test_the_last_epoch_of_a_stopped_fit_is_recorded(of_labels):
    """Seen to fail without the record: the history ended long before the fit. Slips: an epoch that is
    recorded twice; a score that draws from the random stream of training.
    """
    X = draw("bernoulli")
    rbm = new("bernoulli", n_iter=3, learning_rate_schedule="constant", random_state=0)
    whole, longer = rbm, clone(rbm).set_params(n_iter=9)
    if of_labels:
        whole, longer = RBMClassifier(whole), RBMClassifier(longer)
    whole.fit(X, X[:, 0])
    for n_iter in (1, 3):
        stopped = longer.set_callbacks(Recorder(stop_after=n_iter)).fit(X, X[:, 0])
        history = {name: values for name, values in stopped.history_.items() if name != "time"}
        assert history["n_iter"] == sorted({1, n_iter})
        n_records = len(history["n_iter"])
        assert history == {name: whole.history_[name][:n_records] for name in history}
    assert_same_arrays(stopped, whole)
    assert_same_arrays(*(model.partial_fit(X, X[:, 0]) for model in (stopped, whole)))


def test_callbacks_are_torn_down_after_a_failure():
    """Catches an estimator that is put back as it was, and forgets what to tear down."""
    recorder = Recorder()
    rbm = BernoulliRBM(3).set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        rbm.fit([[np.nan]])
    assert recorder.calls == ["setup", "fit begins", "teardown"]
    assert list(vars(rbm).keys() - vars(BernoulliRBM(3)).keys()) == ["_skl_callbacks"]


def test_a_failing_callback_leaves_no_trace():
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("disk full")

    rbm = BernoulliRBM(3).set_callbacks(Failing())
    with pytest.raises(RuntimeError, match="disk full"):
        rbm.fit(draw("bernoulli"))
    assert not hasattr(rbm, "components_")


def test_callbacks_inside_a_classifier_warn():
    """They are never called. Before, a `Checkpoint` there saved nothing, without a word."""
    recorder, X = Recorder(), draw("bernoulli")
    classifier = RBMClassifier(BernoulliRBM(3, n_iter=1).set_callbacks(recorder))
    with pytest.warns(UserWarning, match="Set them on the RBMClassifier itself"):
        classifier.fit(X, np.arange(len(X)) % 2)
    assert not recorder.calls


@pytest.mark.slow
def test_progress_bar_nests_under_pipeline_and_search(capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    steps = make_pipeline(BernoulliRBM(3, random_state=0))
    grid = {"bernoullirbm__n_iter": [2, 3]}
    X = draw("bernoulli")
    plain = GridSearchCV(steps, grid, cv=2).fit(X)
    watched = GridSearchCV(clone(steps), grid, cv=2).set_callbacks(
        ProgressBar(max_propagation_depth=None)
    )
    watched.fit(X)
    printed = capsys.readouterr().out
    assert "BernoulliRBM" in printed
    assert "100%" in printed
    np.testing.assert_array_equal(
        watched.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


WATCHED_FIT = """
import numpy as np
from sklearn.callback import ProgressBar
from skrbm import BernoulliRBM
BernoulliRBM(2, n_iter=3).set_callbacks(ProgressBar()).fit(np.eye(4))
"""


@pytest.mark.slow
def test_progress_bar_is_seen_in_a_terminal():
    pytest.importorskip("rich")
    pty = pytest.importorskip("pty")
    screen, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-c", WATCHED_FIT], stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    seen = b""
    try:
        while part := os.read(screen, 4096):
            seen += part
    except OSError:  # the program has closed its end
        pass
    os.close(screen)
    assert program.wait(timeout=60) == 0, seen.decode()
    assert "BernoulliRBM - fit" in seen.decode()
    assert "100%" in seen.decode()
