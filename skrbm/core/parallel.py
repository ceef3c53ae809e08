"""Independent blocks of work, run serially or in parallel with the same result."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar, final

import numpy as np
import scipy.linalg  # noqa: F401  # loads the last of the BLAS libraries that the package uses
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from skrbm.core.interrupts import deferred_interrupts

T = TypeVar("T")

# Matrix products with a number of multiplications in this range are limited to one BLAS thread.
# Larger products gain from several threads; on a busy machine, products in the range take many
# times as long with them. No limit is set below the range: OpenBLAS uses several threads only from
# 2^18 multiplications on, and setting the limit takes a fourth of the time of a small model's
# update.
FEW_PRODUCTS, MANY_PRODUCTS = 2**16, 2**24
# Handles of the BLAS libraries, found at import, because a search takes the time of many updates.
BLAS_LIBRARIES: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers


@final
class ForkSafeLock:
    """Lock, for `with` statements, that nobody holds in a forked process.

    A forked process has only the thread that forked. It would wait forever for a lock that another
    thread of its parent held.
    """

    def __init__(self) -> None:
        self._renew()
        _call_in_forked_processes(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _call_in_forked_processes(function: Callable[[], None]) -> None:
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=function)


def map_blocks(
    function: Callable[..., T],
    blocks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    n_products: float = math.inf,
    processes: bool = False,
) -> list[T]:
    """Apply a function to blocks of arguments, serially or in parallel.

    Each worker uses one BLAS thread for matrix products, so that workers do not compete for
    processor cores and results do not depend on the number of BLAS threads.

    Parameters
    ----------
    function : callable
        Function without side effects. With threads, it may change arguments that are not shared
        with other blocks.
    blocks : iterable of tuple
        Positional arguments of each call.
    n_jobs : int or None
        Number of workers, as in joblib. If None, it is the number set by
        ``joblib.parallel_config``, or one by default. If that number is one and `processes` is
        False, there are as many threads as BLAS would use.
    n_products : float, default=infinity
        Number of multiplications in each matrix product of `function`. If it is below
        `MANY_PRODUCTS` and `n_jobs` is None, one thread takes the place of the threads that BLAS
        would use, since several threads would wait for the interpreter.
    processes : bool, default=False
        If True, workers are processes, unless ``joblib.parallel_config`` sets another backend. If
        False, they are threads.

    Returns
    -------
    results : list
        Results, in the order of the blocks.
    """
    if n_jobs is None and effective_n_jobs(None) == 1 and not processes:
        n_jobs = 1 if n_products < MANY_PRODUCTS else _n_blas_threads()
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    n_workers = effective_n_jobs(n_jobs) if len(first) > 1 else 1
    blocks, errors = chain(first, blocks), np.geterr()  # each thread has a separate error state
    with one_blas_thread():
        if n_workers == 1:
            return [function(*block) for block in blocks]
        if processes:
            jobs = (delayed(_call)(errors, function, block) for block in blocks)
            return list(Parallel(n_jobs, prefer="processes")(jobs))
        with ThreadPoolExecutor(n_workers) as pool:  # joblib polls its threads every 10 ms
            return list(pool.map(functools.partial(_call, errors, function), blocks))


def _call(errors: Any, function: Callable[..., T], block: tuple[Any, ...]) -> T:
    with np.errstate(**errors), one_blas_thread():  # a worker process does not inherit the limit
        return function(*block)


class _BlasLimit:
    """Limit of one BLAS thread for this process, which applies while it has at least one holder."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._holders: dict[object, int] = {}  # identifiers of their threads
        self._before: list[tuple[Any, int]] = []  # limited libraries
        _call_in_forked_processes(self._release_lost_threads)

    def hold(self, holder: object) -> None:
        with deferred_interrupts(), self._lock:
            is_first = not self._holders
            if is_first:
                # ThreadpoolController.limit does the same, but is slower: it first queries all
                # information about the libraries.
                numbers = [(library, library.num_threads) for library in BLAS_LIBRARIES]
                self._before = [(library, n) for library, n in numbers if n != 1]
            self._holders[holder] = threading.get_ident()
            if is_first:  # after it is held, so that a process that is forked now can release it
                _set_threads([(library, 1) for library, _ in self._before])

    def release(self, *holders: object) -> None:
        with deferred_interrupts(), self._lock:
            remaining = {h: thread for h, thread in self._holders.items() if h not in holders}
            if self._holders and not remaining:
                _set_threads(self._before)
            self._holders = remaining

    def _release_lost_threads(self) -> None:
        """Release the holders of the threads that a forked process does not have."""
        own = threading.get_ident()
        self.release(*(holder for holder, thread in self._holders.items() if thread != own))


def _set_threads(numbers: list[tuple[Any, int]]) -> None:
    """Set the numbers of threads of BLAS libraries, so that any thread can change them again.

    Since threadpoolctl 3.8, calls of all threads but the first have no effect until this thread
    gives up control.
    """
    for library, n_threads in numbers:
        library.set_num_threads(n_threads)
        if hasattr(library, "clear_controlling_thread"):  # of OpenBLAS
            library.clear_controlling_thread()


_BLAS_LIMIT = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which matrix products use one BLAS thread.

    The limit applies to all threads of the process. The previous number of BLAS threads is restored
    when the last of these contexts ends.
    """
    holder = object()
    try:
        _BLAS_LIMIT.hold(holder)
        yield
    finally:
        try:
            _BLAS_LIMIT.release(holder)
        except BaseException:  # Ctrl-C before it was deferred
            _BLAS_LIMIT.release(holder)
            raise


def _n_blas_threads() -> int:
    """Present number of BLAS threads; the largest number if several BLAS libraries are loaded."""
    return max((library.num_threads for library in BLAS_LIBRARIES), default=1)
