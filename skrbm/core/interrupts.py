"""Ctrl-C: heard where work may end, and nowhere else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final


@final
class Interrupts:
    """Handler of signals that wait until they are asked for.

    Parameters
    ----------
    answer : callable
        Handler that they are meant for.
    """

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer
        self._heard: tuple[Any, ...] = ()

    def __call__(self, *signal_and_frame: Any) -> None:
        self._heard = signal_and_frame

    def check(self) -> None:
        """Let the waiting one be answered, usually by KeyboardInterrupt, if there is one."""
        heard, self._heard = self._heard, ()
        if heard:
            self._answer(*heard)


@contextmanager
def deferred_interrupts() -> Iterator[Interrupts]:
    """Let Ctrl-C wait until the body asks for it, or has ended.

    Only the main thread is ever interrupted; in others nothing happens here, nor where Ctrl-C is
    ignored or kills the process. A body that fails has ended as well: its error is raised.

    Yields
    ------
    interrupts : Interrupts
        To be asked where the work may end.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    interrupts = Interrupts(handler)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)
    interrupts.check()
