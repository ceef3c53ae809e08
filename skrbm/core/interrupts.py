"""Ctrl-C: what has to be done as a whole or not at all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the body end before an interrupt is heard.

    Only the main thread is ever interrupted; in others nothing happens here.

    Yields
    ------
    None
        Control.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is None  # not Python's to put back
    ):
        yield
        return
    heard: list[tuple[Any, ...]] = []
    handler: Any = signal.signal(
        signal.SIGINT, lambda *signal_and_frame: heard.append(signal_and_frame)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if heard and callable(handler):
        handler(*heard[-1])
