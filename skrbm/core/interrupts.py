"""Ctrl-C and SIGTERM: heard where work may end, and nowhere else."""

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
    """Handler of signals that wait until they are asked for.

    Parameters
    ----------
    answers : dict of int to callable
        Handler that each signal is meant for.
    """

    def __init__(self, answers: dict[int, Callable[..., Any]]) -> None:
        self._answers = answers
        self._heard: dict[int, Any] = {}

    def __call__(self, number: int, frame: Any) -> None:
        self._heard[number] = frame

    def check(self) -> None:
        """Let waiting ones be answered, usually by KeyboardInterrupt, if there are any."""
        while self._heard:
            number, frame = self._heard.popitem()
            self._answers[number](number, frame)


@contextmanager
def deferred_interrupts(*, stops_for_sigterm: bool = False) -> Iterator[Interrupts]:
    """Let Ctrl-C and SIGTERM wait until the body asks for them, or has ended.

    Only the main thread is ever interrupted; in others nothing happens here, nor where a signal is
    ignored or kills the process. A body that fails has ended as well: its error is raised.

    Parameters
    ----------
    stops_for_sigterm : bool, default=False
        Whether a SIGTERM that would kill the process is answered by KeyboardInterrupt, as Ctrl-C
        is. Processes that `multiprocessing` has started are killed: who ends them waits for that.

    Yields
    ------
    interrupts : Interrupts
        To be asked where the work may end.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before: dict[int, Any] = {n: signal.getsignal(n) for n in SIGNALS} if is_main else {}
    # Inside of another such context the signals wait already: setting handlers takes microseconds.
    answers = {n: h for n, h in before.items() if callable(h) and not isinstance(h, Interrupts)}
    is_fatal = before.get(signal.SIGTERM) is signal.SIG_DFL
    if is_fatal and stops_for_sigterm and multiprocessing.parent_process() is None:
        answers[signal.SIGTERM] = signal.default_int_handler
    interrupts = Interrupts(answers)
    try:
        for number in answers:
            signal.signal(number, interrupts)
        yield interrupts
    finally:
        for number in answers:
            signal.signal(number, before[number])
    interrupts.check()
