"""Blocks of work: in order, and with one BLAS thread each."""

import contextlib
import signal
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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_are_handled_in_workers_as_in_the_caller(n_jobs):
    # Slip: warnings that the caller has silenced, from threads with settings of their own.
    with np.errstate(over="ignore", divide="raise"):
        overflown = map_blocks(np.exp, [(np.array([1e4]),)] * 4, n_jobs)
        with pytest.raises(FloatingPointError):
            map_blocks(np.log, [(np.zeros(1),)] * 4, n_jobs)
    assert np.isinf(overflown).all()
