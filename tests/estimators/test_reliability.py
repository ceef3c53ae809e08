"""Interrupts at any moment, threads side by side, input that must not be written to."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pandas as pd
import pytest
from estimators.instances import (
    KINDS,
    arrays,
    assert_same_arrays,
    assigned,
    draw,
    learned_bits,
    new,
    random_machine,
)
from sklearn.base import clone

from skrbm import BernoulliRBM
from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.training.parts.guard import DivergenceError, Guard
from skrbm.core.training.update import Trainer
from skrbm.estimators.fitting.callbacks import FitTask
from skrbm.estimators.fitting.fit import Fit

INTERRUPTED = pytest.mark.filterwarnings("ignore:Training interrupted by user:UserWarning")
READERS = {
    "transform": lambda rbm, X: rbm.transform(X),
    "score_samples": lambda rbm, X: rbm.score_samples(X),
    "free_energy": lambda rbm, X: rbm.free_energy(X),
    "sample": lambda rbm, X: rbm.sample(5, 3, random_state=0),
    "impute": lambda rbm, X: rbm.impute(np.where(X > 0, X, np.nan), n_chains=2, random_state=0),
    "log_partition": lambda rbm, X: rbm.log_partition("ais", n_temperatures=50).value,
}


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C as in a terminal: what a shell runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def fit_interrupted_at(n_lines, rbm, X):
    """Fit that hears Ctrl-C as training begins its line of that number."""
    lines = iter(range(n_lines))

    def trace(frame, event, _):
        if event == "line" and next(lines, None) is None:
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        name = frame.f_globals.get("__name__", "")
        is_training = name.startswith(("skrbm.core.training", "skrbm.core.centering"))
        is_start = name.startswith("skrbm.core.training.start")  # there Ctrl-C ends the fit
        return trace if is_training and not is_start else None

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        rbm.fit(X)
    finally:
        sys.settrace(before)


@pytest.mark.slow
@INTERRUPTED
@pytest.mark.parametrize("kind", ["bernoulli", "cho"])
def test_an_interrupt_at_any_line_keeps_whole_updates(kind):
    """Catches an average, a step or a change of coordinates that is published half done."""
    X = draw(kind, 10)
    options = {"learning_rate_schedule": "constant", "momentum": 0.5, "random_state": 0}
    expected = [arrays(new(kind, n_iter=n, **options).fit(X)) for n in range(1, 4)]
    for n_lines in count(100, 3):  # from before the first update to the end of the second
        rbm = new(kind, n_iter=1000, **options)
        fit_interrupted_at(n_lines, rbm, X)
        n_updates = rbm._training_state["n_updates"]
        if n_updates:
            for name in ("components_", "intercept_hidden_", "intercept_visible_"):
                np.testing.assert_array_equal(arrays(rbm)[name], expected[n_updates - 1][name])
        if n_updates == 2:
            break


@pytest.mark.parametrize(("owner", "answer"), [(Guard, "_divergence"), (Fit, "attributes")])
@pytest.mark.parametrize(("n_kept", "last"), [(20, 0.1), (18, np.nan)])
def test_a_second_interrupt_does_not_undo_the_answer_to_the_first(
    n_kept, last, owner, answer, monkeypatch
):
    """Catches what was learned, or that it diverged, being lost to an impatient user."""
    X, updates = draw("bernoulli", 100), []
    update, function = Trainer.update, getattr(owner, answer)

    def interrupted_update(trainer, machine, *arguments):
        update(trainer, machine, *arguments)
        updates.append(machine)
        if len(updates) == 20:
            machine.weights[0] = last
            signal.raise_signal(signal.SIGINT)

    def interrupted_answer(*arguments, **options):
        if len(updates) == 20:
            signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    monkeypatch.setattr(Trainer, "update", interrupted_update)
    monkeypatch.setattr(owner, answer, interrupted_answer)
    rbm = BernoulliRBM(3, n_iter=1000, batch_size=12, random_state=0)  # 9 updates a pass
    with pytest.warns(UserWarning, match=r"Training interrupted by user\."):
        rbm.fit(X)
    assert rbm._training_state["n_updates"] == n_kept
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    rbm.partial_fit(X)


def test_a_deferred_interrupt_is_heard_where_it_is_asked_for():
    """Catches a Ctrl-C that is swallowed, or heard in the middle."""
    done = []

    def work(is_asked):
        with deferred_interrupts() as interrupts:
            interrupts.check()
            signal.raise_signal(signal.SIGINT)
            done.append("deferred")
            if is_asked:
                interrupts.check()
            done.append("not asked")

    with pytest.raises(KeyboardInterrupt):
        work(True)
    with pytest.raises(KeyboardInterrupt):
        work(False)
    assert done == ["deferred", "deferred", "not asked"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_a_program_that_does_not_stop_for_an_interrupt_is_not_stopped(handler):
    """Catches Ctrl-C taken for the end of a fit where the program has another use for it."""
    signal.signal(signal.SIGINT, handler)
    with deferred_interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is handler


def test_signals_that_wait_already_are_left_to_the_outer_context():
    """Catches an answer in the inner context, and handlers set twice, which costs short passes."""
    done = []

    def work():
        with deferred_interrupts():
            handler = signal.getsignal(signal.SIGINT)
            with deferred_interrupts() as inner:
                assert signal.getsignal(signal.SIGINT) is handler
                signal.raise_signal(signal.SIGINT)
                inner.check()
            done.append("not asked")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["not asked"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def sigterm_after(n_updates, monkeypatch):
    """Send the process a SIGTERM after so many updates."""
    update, updates = Trainer.update, iter(range(n_updates - 1))

    def interrupted(*arguments):
        update(*arguments)
        if next(updates, None) is None:
            monkeypatch.setattr(Trainer, "update", update)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Trainer, "update", interrupted)


def test_sigterm_ends_a_fit_as_ctrl_c_does(monkeypatch):
    """Seen to fail, by the death of the test, without a handler."""
    sigterm_after(5, monkeypatch)
    rbm = BernoulliRBM(3, n_iter=1000, batch_size=10, random_state=0)
    with pytest.warns(UserWarning, match=r"Training interrupted by user\."):
        rbm.fit(draw("bernoulli", 100))
    assert rbm._training_state["n_updates"] == 5
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_programs_own_answer_to_sigterm_is_kept(monkeypatch):
    """Seen to fail with KeyboardInterrupt for every handler: the fit ended in its first pass."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        sigterm_after(5, monkeypatch)
        rbm = BernoulliRBM(3, n_iter=2, batch_size=10, random_state=0).fit(draw("bernoulli", 100))
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM] * 2
    assert rbm.n_iter_ == 2


def test_a_worker_is_killed_by_sigterm(monkeypatch):
    """Catches a pool that ends its processes, and waits for one that goes on with its next task."""
    with deferred_interrupts(stops_for_sigterm=True):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    with deferred_interrupts():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    monkeypatch.setattr("multiprocessing.parent_process", object)
    with deferred_interrupts(stops_for_sigterm=True):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("learning_rate", [0.1, 1e30])
@pytest.mark.parametrize(("owner", "moment"), [(Fit, "attributes"), (FitTask, "end")])
def test_an_interrupt_of_the_last_moments_is_not_lost(owner, moment, learning_rate, monkeypatch):
    """Catches a Ctrl-C, what was learned, or the error of a diverged fit that ends in silence."""
    function = getattr(owner, moment)

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    monkeypatch.setattr(owner, moment, interrupted)
    rbm = BernoulliRBM(3, n_iter=2, learning_rate=learning_rate, random_state=0)
    if learning_rate > 1:
        with pytest.raises(DivergenceError):
            rbm.fit(draw("bernoulli"))
    else:
        with pytest.warns(UserWarning, match=r"Training interrupted by user\."):
            rbm.fit(draw("bernoulli"))
    assert np.isfinite(rbm.components_).all()


def run_and_interrupt(code, *prompts):
    """Status, output and errors of a program that hears Ctrl-C, as in a shell, at each prompt.

    A prompt is what has to be printed, line by line. No process of the program may be left.
    """
    program = subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        lines = []
        for prompt in prompts:
            for part in prompt:
                lines.append(program.stdout.readline())
                while part not in lines[-1]:
                    assert lines[-1], program.communicate()
                    lines.append(program.stdout.readline())
            os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=60)
        end = time.monotonic() + 10
        while is_alive(program.pid):
            assert time.monotonic() < end, "processes are left behind"
            time.sleep(0.1)
    finally:
        if is_alive(program.pid):
            os.killpg(program.pid, signal.SIGKILL)
    return program.returncode, "".join(lines) + out, err


def is_alive(group):
    """Whether a process group has a process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_ctrl_c_ends_a_fit_and_again_the_next_one():
    """Catches a program that is gone with what it learned."""
    status, out, err = run_and_interrupt(
        """
        import numpy as np
        from skrbm import BernoulliRBM

        X = np.random.default_rng(0).integers(0, 2, (2000, 400))
        rbm = BernoulliRBM(300, n_iter=10**6, warm_start=True, verbose=1, random_state=0)
        for _ in range(2):
            n_iter = rbm.fit(X).n_iter_
            print("kept", n_iter, np.isfinite(rbm.components_).all())
        """,
        ["Iteration 2,"],
        ["kept", "Iteration"],
    )
    assert status == 0, err
    assert out.count("kept") == 2
    assert "False" not in out
    assert err.count("Training interrupted by user.") == 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_ctrl_c_ends_a_parallel_search_and_all_its_processes(backend):
    """Catches workers that take the interrupt for theirs and go on with the next fit."""
    status, _, err = run_and_interrupt(
        f"""
        import joblib
        import numpy as np
        from sklearn.model_selection import GridSearchCV
        from skrbm import BernoulliRBM

        X = np.random.default_rng(0).integers(0, 2, (2000, 400))
        rbm = BernoulliRBM(300, n_iter=10**6, verbose=1, random_state=0)
        grid = {{"learning_rate": [0.1, 0.2, 0.3, 0.4]}}
        with joblib.parallel_config("{backend}"):
            GridSearchCV(rbm, grid, n_jobs=2).fit(X)
        """,
        ["Iteration 2,"],
    )
    assert status != 0
    assert "KeyboardInterrupt" in err


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", READERS)
def test_threads_may_share_a_model(kind, method):
    """Catches state that inference keeps on the estimator."""
    p, v, _ = random_machine(kind)
    rbm = assigned(p, random_state=0)
    expected = READERS[method](rbm, v)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: READERS[method](rbm, v), range(16)))
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_threads_that_draw_from_one_model_draw_different_states():
    """Catches threads that are handed the same random numbers, also by a stream opened twice."""

    class Slow(np.random.RandomState):
        def randint(self, *args, **options):
            time.sleep(0.01)
            return super().randint(*args, **options)

    p, v, _ = random_machine("cho")
    rbm = assigned(p, random_state=Slow(0))
    with ThreadPoolExecutor(8) as threads:
        draws = list(threads.map(lambda _: rbm.gibbs(v)[0, 0], range(50)))
    assert len(set(draws)) == 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_fits_side_by_side_learn_what_they_learn_alone(kind):
    """Catches random numbers, buffers or settings that fits share."""
    X = draw(kind, 200)
    expected = [learned_bits(new(kind, random_state=seed).fit(X)) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        fits = list(threads.map(lambda seed: new(kind, random_state=seed).fit(X), range(4)))
    assert [learned_bits(rbm) for rbm in fits] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_cannot_be_written_is_written_to(kind):
    """Catches a step taken in the user's own arrays."""
    p, v, h = random_machine(kind)
    rbm = assigned(p, random_state=0)
    given = [value for value in vars(rbm).values() if isinstance(value, np.ndarray)] + [v, h]
    for array in given:
        array.flags.writeable = False
    for method in READERS.values():
        method(rbm, v)
    for result in (rbm.energy(v, h), rbm.inverse_transform(h), rbm.gibbs(v)):
        assert np.isfinite(result).all()
    rbm.partial_fit(v)
    in_order = {"shuffle": False, "random_state": 0}  # batches are views
    assert_same_arrays(new(kind, **in_order).fit(v), new(kind, **in_order).fit(v.copy()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_layout_of_rows_does_not_change_a_bit(kind, dtype):
    """Slip: sums over rows in the order in which they lie in memory, as frames' columns do."""
    X = np.random.default_rng(0).random((200, 20)) * 3
    X = (X > 1.5 if dtype is bool else X).astype(dtype)
    rbm = new(kind, n_iter=2, check_input="ignore", random_state=0)
    plain = clone(rbm).fit(X)
    for other in (np.asfortranarray(X), pd.DataFrame(X), X[:, ::-1].copy()[:, ::-1]):
        assert learned_bits(clone(rbm).fit(other)) == learned_bits(plain)
        for method in ("transform", "score_samples", "free_energy"):
            expected = getattr(plain, method)(X)
            np.testing.assert_array_equal(getattr(plain, method)(other), expected)
