"""Deferred handling of Ctrl-C and SIGTERM, at points where a computation may stop."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

SIGNALS = signal.SIGINT, signal.SIGTERM


@final
class Interrupts:
    """Signal handler that stores signals until `check` passes them to other handlers.

    Parameters
    ----------
    handlers : dict of int to callable
        Handler of each signal number, called by `check`.
    """

    def __init__(self, handlers: dict[int, Callable[..., Any]]) -> None:
        self._handlers = handlers
        self._pending: dict[int, Any] = {}

    def __call__(self, number: int, frame: Any) -> None:
        self._pending[number] = frame

    def check(self) -> None:
        """Call the handlers of the pending signals; usually they raise KeyboardInterrupt."""
        while self._pending:
            number, frame = self._pending.popitem()
            self._handlers[number](number, frame)


@contextmanager
def deferred_interrupts(*, stops_for_sigterm: bool = False) -> Iterator[Interrupts]:
    """Defer Ctrl-C and SIGTERM until the body of the context checks for them or ends.

    Python handles signals in the main thread only. In other threads, this context does nothing.
    Inside another such context, signals that the outer context defers stay deferred until the outer
    context checks for them or ends. A signal is deferred only if it has a Python handler. Signals
    that the process ignores or that kill it are not deferred, except as described under
    `stops_for_sigterm`. If the body raises, its error is raised and pending signals are dropped.

    Parameters
    ----------
    stops_for_sigterm : bool, default=False
        If True, a SIGTERM that would kill the process is deferred, too, and raises
        KeyboardInterrupt. Processes started by `multiprocessing` are killed nevertheless, since
        their parents wait for them to end.

    Yields
    ------
    interrupts : Interrupts
        Deferred signals; call `check` at points where the computation may stop.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before: dict[int, Any] = {n: signal.getsignal(n) for n in SIGNALS} if is_main else {}
    # Inside another such context the signals are deferred already; setting handlers takes time.
    handlers = {n: h for n, h in before.items() if callable(h) and not isinstance(h, Interrupts)}
    is_fatal = before.get(signal.SIGTERM) is signal.SIG_DFL
    if is_fatal and stops_for_sigterm and multiprocessing.parent_process() is None:
        handlers[signal.SIGTERM] = signal.default_int_handler
    interrupts = Interrupts(handlers)
    try:
        for number in handlers:
            signal.signal(number, interrupts)
        yield interrupts
    finally:
        for number in handlers:
            signal.signal(number, before[number])
    interrupts.check()
