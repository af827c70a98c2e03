"""Waiting for threads in a way that Ctrl-C and other signals can interrupt safely."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

_R = TypeVar("_R")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
# A signal that another thread takes does not wake the main thread, in which Python handles it.
_POLL_SECONDS = 0.2


def wait_for_first(futures: Iterable[Future[_R]]) -> set[Future[_R]]:
    """Return the futures that are done, as soon as there is one. There must be at least one.

    A signal takes effect within a fraction of a second, whichever thread receives it, and leaves
    no lock of a future held.
    """
    waiting = set(futures)
    done: set[Future[_R]] = set()
    while not done:
        with defer_signals():
            done = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED).done
    return done


@contextmanager
def defer_signals() -> Iterator[None]:
    """Handle signals only when the block ends, if the main thread runs it.

    An exception that a handler raises while a lock is acquired would leave it held, and a thread
    that needs it would wait forever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, Any]] = []
    before: dict[int, Any] = {}
    for number in (getattr(signal, name, None) for name in _SIGNALS):
        if number is not None and callable(handler := signal.getsignal(number)):
            before[number] = handler
            signal.signal(number, lambda *given: received.append(given))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in received[:1]:
            before[number](number, frame)
