"""Independent blocks of work, run in order or side by side with the same result."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import chain, islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def map_blocks(
    function: Callable[..., T],
    blocks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    processes: bool = False,
) -> list[T]:
    """Results of a function for each of some blocks of arguments, in their order.

    Matrix products get one BLAS thread: jobs do not wait for each other's threads, and no bit
    depends on how a product was shared among them.

    Parameters
    ----------
    function : callable
        Has no side effects but on arguments that no other block has, and those only in threads.
    blocks : iterable of tuple
        Positional arguments of each call.
    n_jobs : int or None
        Number of joblib workers. None for that of ``joblib.parallel_config``, else for as many
        threads as a matrix product would have taken; no processes are started then.
    processes : bool, default=False
        Whether workers are processes rather than threads.

    Returns
    -------
    results : list
        As many as there are blocks.
    """
    if n_jobs is None and effective_n_jobs(None) == 1 and not processes:
        n_jobs = _n_blas_threads()
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    workers = {"prefer": "processes"} if processes else {"require": "sharedmem"}
    with one_blas_thread():
        if len(first) < 2:
            return [function(*block) for block in first]
        jobs = Parallel(n_jobs, **workers)
        return list(jobs(delayed(function)(*block) for block in chain(first, blocks)))


class _BlasLimit:
    """The process's one limit, which its first holder sets and its last one lifts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_holders = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._n_holders == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._n_holders += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_holders -= 1
            if self._n_holders == 0:
                self._limit.restore_original_limits()


_BLAS_LIMIT = _BlasLimit()


def one_blas_thread() -> AbstractContextManager[None]:
    """Context in which matrix products are not shared among threads.

    The number of BLAS threads belongs to the process: it comes back when the last of all contexts
    ends that threads have entered, in whatever order they do.

    Returns
    -------
    context : context manager
        Without a value.
    """
    return _BLAS_LIMIT


def _n_blas_threads() -> int:
    """Largest number of threads that a product may take at present."""
    pools = _controller().select(user_api="blas").info()
    return max((pool["num_threads"] for pool in pools), default=1)


@functools.cache
def _controller() -> ThreadpoolController:
    """Handle of the loaded BLAS libraries, which takes milliseconds to find."""
    return ThreadpoolController()
