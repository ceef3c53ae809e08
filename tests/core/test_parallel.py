"""Blocks of work: in order, and with one BLAS thread each."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skrbm.core import parallel
from skrbm.core.parallel import MANY_PRODUCTS, map_blocks, one_blas_thread


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Whatever the machine's own number is, one to be told from the limit."""
    with threadpool_limits(2, user_api="blas"):
        yield


def blas_threads(*_):
    np.zeros((2, 2)) @ np.zeros((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_in_order(n_jobs):
    blocks = [(i, 10 * i) for i in range(20)]
    assert map_blocks(lambda a, b: a + b, blocks, n_jobs) == [11 * i for i in range(20)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_products_have_one_thread_inside_and_their_own_number_again_outside(n_jobs):
    # Slip: a limit that is left behind when two jobs end in another order than they began.
    assert map_blocks(blas_threads, [(i,) for i in range(4)], n_jobs) == [{1}] * 4
    assert blas_threads() == {2}


@pytest.mark.parametrize(
    ("n_jobs", "n_products", "is_shared"),
    [
        (None, MANY_PRODUCTS - 1, False),
        (None, MANY_PRODUCTS, True),
        (None, np.inf, True),
        (2, 1, True),
    ],
)
def test_small_products_share_no_interpreter_unless_asked(n_jobs, n_products, is_shared):
    # Slips: threads by default, whatever the size; a number of jobs that is not heard.
    blocks = [(i,) for i in range(4)]
    threads = map_blocks(lambda _: threading.get_ident(), blocks, n_jobs, n_products=n_products)
    assert (threading.get_ident() not in threads) == is_shared


def test_the_number_of_threads_comes_back_after_the_last_of_overlapping_contexts():
    # Slip: the second context takes the first one's limit for the process's own number.
    one, other = (contextlib.ExitStack() for _ in range(2))
    one.enter_context(one_blas_thread())
    other.enter_context(one_blas_thread())
    one.close()
    assert blas_threads() == {1}
    other.close()
    assert blas_threads() == {2}


def test_an_interrupt_while_threads_are_limited_does_not_leave_the_limit(monkeypatch):
    # Slip: a limit whose holder was not counted yet, so that nobody lifts it.
    kind = type(parallel.BLAS_LIBRARIES[0])
    limit = kind.set_num_threads

    def interrupted(library, n_threads):
        limit(library, n_threads)
        if n_threads == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(kind, "set_num_threads", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), one_blas_thread():
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert blas_threads() == {2}


def test_an_interrupt_before_the_limit_is_released_does_not_leave_it(monkeypatch):
    # Slip: a release that Ctrl-C has skipped.
    kind, calls = type(parallel._BLAS_LIMIT), []
    release = kind.release

    def interrupted(limit, *holders):
        calls.append(holders)
        if len(calls) == 1:
            raise KeyboardInterrupt
        release(limit, *holders)

    monkeypatch.setattr(kind, "release", interrupted)
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        pass
    assert blas_threads() == {2}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_are_handled_in_workers_as_in_the_caller(n_jobs):
    # Slip: warnings that the caller has silenced, from threads with settings of their own.
    with np.errstate(over="ignore", divide="raise"):
        overflown = map_blocks(np.exp, [(np.array([1e4]),)] * 4, n_jobs)
        with pytest.raises(FloatingPointError):
            map_blocks(np.log, [(np.zeros(1),)] * 4, n_jobs)
    assert np.isinf(overflown).all()


THREADS = """
import os, signal, threading
from skrbm.core.parallel import BLAS_LIBRARIES, _BLAS_LIMIT, _set_threads, one_blas_thread
from skrbm.core.training.start.clusters import KMEANS_LOCK
from skrbm.estimators.inference.model import OPENING

def n_threads():
    return {library.num_threads for library in BLAS_LIBRARIES}

def in_another_thread(context, wait):
    def enter():
        with context:
            has_entered.set()
            wait()
        has_left.set()
        end.wait(timeout=60)
    has_entered, has_left, end = (threading.Event() for _ in range(3))
    threading.Thread(target=enter).start()
    has_entered.wait()
    return has_left, end

def exit_status(child):
    process = os.fork()
    if process == 0:
        os._exit(0 if child() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

_set_threads([(library, 2) for library in BLAS_LIBRARIES])
"""
FORKS = {
    "locks": """
def enter(lock):
    signal.alarm(5)
    with lock:
        signal.alarm(0)
        return True

for lock in (KMEANS_LOCK, OPENING, _BLAS_LIMIT._lock):
    leave = threading.Event()
    has_left, end = in_another_thread(lock, leave.wait)
    assert exit_status(lambda: enter(lock)) == 0
    leave.set(), has_left.wait(), end.set()
    assert enter(lock)
""",
    "limits": """
leave = threading.Event()
_, end = in_another_thread(one_blas_thread(), leave.wait)
assert n_threads() == {1}
assert exit_status(lambda: n_threads() == {2}) == 0
with one_blas_thread():
    assert exit_status(lambda: n_threads() == {1}) == 0
assert n_threads() == {1}
leave.set(), end.set()
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork processes")
@pytest.mark.parametrize("case", FORKS)
def test_a_forked_process_is_not_blocked_by_threads_that_it_does_not_have(case):
    """Slips: locks that no thread can release; a limit of BLAS threads that no thread ends."""
    subprocess.run([sys.executable, "-c", THREADS + FORKS[case]], check=True, timeout=120)


def test_any_thread_begins_and_ends_a_limit():
    """Slips: a limit that does nothing in other threads than the first that set one, or that only
    the thread that began it can end, as in threadpoolctl 3.8; a number that was one restored.
    """
    script = """
leave = threading.Event()
has_left, end = in_another_thread(one_blas_thread(), leave.wait)
with one_blas_thread():
    leave.set(), has_left.wait()
    assert n_threads() == {1}
assert n_threads() == {2}
leave.clear()
has_left, other_end = in_another_thread(one_blas_thread(), leave.wait)
assert n_threads() == {1}
leave.set(), has_left.wait(), end.set(), other_end.set()
_set_threads([(library, 1) for library in BLAS_LIBRARIES])
with one_blas_thread():
    _set_threads([(library, 2) for library in BLAS_LIBRARIES])
assert n_threads() == {2}
"""
    subprocess.run([sys.executable, "-c", THREADS + script], check=True, timeout=120)
