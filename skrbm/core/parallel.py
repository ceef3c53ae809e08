"""Independent blocks of work, run serially or in parallel with the same result."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from skrbm.core.interrupts import deferred_interrupts

T = TypeVar("T")

# Range of the number of multiplications of a matrix product for which one BLAS thread is enforced.
# Larger products gain from several threads; on a busy machine, smaller ones take many times as long
# with them. The smallest are left alone: OpenBLAS uses several threads from 2^18 on, and setting
# the limit takes a fourth of the time of a small model's update.
SERIAL_PRODUCTS = FEW_PRODUCTS, MANY_PRODUCTS = 2**16, 2**24


def map_blocks(
    function: Callable[..., T],
    blocks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    n_products: float = math.inf,
    processes: bool = False,
) -> list[T]:
    """Apply a function to blocks of arguments, serially or in parallel.

    In this process, matrix products use one BLAS thread, so that jobs do not compete for threads
    and results do not depend on the number of threads. In worker processes, joblib sets the number.

    Parameters
    ----------
    function : callable
        Function without side effects. With threads, it may change arguments that are not shared
        with other blocks.
    blocks : iterable of tuple
        Positional arguments of each call.
    n_jobs : int or None
        Number of workers, as in joblib. If None, it is the number set by
        ``joblib.parallel_config``. If this number is one, which is the default of joblib, there are
        as many threads as BLAS would use, or one process if `processes` is True.
    n_products : float, default=infinity
        Number of multiplications in each matrix product of `function`. If it is below
        `MANY_PRODUCTS`, the number of threads in place of the default of joblib is one, since
        several threads would wait for the interpreter.
    processes : bool, default=False
        Whether workers are processes rather than threads.

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
    with np.errstate(**errors), one_blas_thread():  # worker processes have limits of their own
        return function(*block)


class _BlasLimit:
    """Limit of one BLAS thread, which is in force while it has at least one holder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[object] = set()

    def hold(self, holder: object) -> None:
        with deferred_interrupts(), self._lock:
            if not self._holders:
                # ThreadpoolController.limit does the same, but queries all of its information first.
                self._before = [(library, library.num_threads) for library in _blas_libraries()]
                for library, _ in self._before:
                    library.set_num_threads(1)
            self._holders.add(holder)

    def release(self, holder: object) -> None:
        with deferred_interrupts(), self._lock:
            if self._holders == {holder}:
                for library, n_threads in self._before:
                    library.set_num_threads(n_threads)
            self._holders.discard(holder)


_BLAS_LIMIT = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which matrix products use one BLAS thread.

    The number of BLAS threads is global to the process. It is restored when no thread is in such a
    context any more.

    Yields
    ------
    None
        Nothing.
    """
    holder = object()
    try:
        _BLAS_LIMIT.hold(holder)
        yield
    finally:
        _BLAS_LIMIT.release(holder)


def _n_blas_threads() -> int:
    """Number of threads of BLAS; the largest number if several BLAS libraries are loaded."""
    return max((library.num_threads for library in _blas_libraries()), default=1)


@functools.cache
def _blas_libraries() -> list[Any]:
    """Handles of the loaded BLAS libraries, which are cached: a search takes milliseconds."""
    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries
