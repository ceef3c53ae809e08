"""Independent blocks of work, run in order or side by side with the same result."""

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

# Multiplications in a product: fewer are as fast in one thread, and no slower on a busy machine,
# where threads that wait for each other take many times as long. Few are not shared anyway: OpenBLAS
# begins at 2^18, and to forbid it takes as long as a fourth of a small model's update.
SERIAL_PRODUCTS = FEW_PRODUCTS, MANY_PRODUCTS = 2**16, 2**24


def map_blocks(
    function: Callable[..., T],
    blocks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    n_products: float = math.inf,
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
        Number of workers, as joblib reads it. None for that of ``joblib.parallel_config`` if it
        is not one, else for as many threads as a matrix product would have taken, or one process.
    n_products : float, default=infinity
        Multiplications in a matrix product of a call. If they are few, None stands for one worker:
        threads would wait for the interpreter.
    processes : bool, default=False
        Whether workers are processes rather than threads.

    Returns
    -------
    results : list
        As many as there are blocks.
    """
    if n_jobs is None and effective_n_jobs(None) == 1 and not processes:
        n_jobs = 1 if n_products < MANY_PRODUCTS else _n_blas_threads()
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    n_workers = effective_n_jobs(n_jobs) if len(first) > 1 else 1
    blocks, errors = chain(first, blocks), np.geterr()  # of this thread: others have their own
    with one_blas_thread():
        if n_workers == 1:
            return [function(*block) for block in blocks]
        if processes:
            jobs = (delayed(_call)(errors, function, block) for block in blocks)
            return list(Parallel(n_jobs, prefer="processes")(jobs))
        with ThreadPoolExecutor(n_workers) as pool:  # joblib's threads are waited for by 10 ms
            return list(pool.map(functools.partial(_call, errors, function), blocks))


def _call(errors: Any, function: Callable[..., T], block: tuple[Any, ...]) -> T:
    with np.errstate(**errors):
        return function(*block)


class _BlasLimit:
    """The process's one limit, which its first holder sets and its last one lifts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[object] = set()

    def hold(self, holder: object) -> None:
        with deferred_interrupts(), self._lock:
            if not self._holders:
                # What `ThreadpoolController.limit` does, without asking for all that it can tell.
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
    """Context in which matrix products are not shared among threads.

    The number of BLAS threads belongs to the process: it comes back when the last of all contexts
    ends that threads have entered, in whatever order they do.

    Yields
    ------
    None
        Control.
    """
    holder = object()
    try:
        _BLAS_LIMIT.hold(holder)
        yield
    finally:
        _BLAS_LIMIT.release(holder)


def _n_blas_threads() -> int:
    """Largest number of threads that a product may take at present."""
    return max((library.num_threads for library in _blas_libraries()), default=1)


@functools.cache
def _blas_libraries() -> list[Any]:
    """Handles of the loaded BLAS libraries, which take milliseconds to find."""
    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries
