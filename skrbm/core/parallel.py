"""Independent blocks of work, run in order or side by side with the same result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def map_blocks(
    function: Callable[..., T],
    blocks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    prefer: str = "threads",
) -> list[T]:
    """Results of a function for each of some blocks of arguments, in their order.

    Matrix products get one BLAS thread: jobs do not wait for each other's threads, and no bit
    depends on how a product was shared among them.

    Parameters
    ----------
    function : callable
        Has no side effects.
    blocks : iterable of tuple
        Positional arguments of each call.
    n_jobs : int or None
        Number of joblib workers.
    prefer : {"threads", "processes"}, default="threads"
        What workers are, unless ``joblib.parallel_config`` says otherwise.

    Returns
    -------
    results : list
        As many as there are blocks.
    """
    with _controller().limit(limits=1, user_api="blas"):
        jobs = Parallel(n_jobs=n_jobs, prefer=prefer)
        return list(jobs(delayed(function)(*block) for block in blocks))


@functools.cache
def _controller() -> ThreadpoolController:
    """Handle of the loaded BLAS libraries, which takes milliseconds to find."""
    return ThreadpoolController()
