"""A time limit per table that interrupts computing as well as waiting."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from deltaproto.tables.storage.interface import timed_out_error

T = TypeVar("T")


class _AlarmInterrupt(BaseException):
    """Not an `Exception`, so that handlers of damaged files do not catch it."""


class TimeLimit:
    """Limits the duration of each call of `within`, between `__enter__` and `__exit__`.

    Only the main thread can be interrupted. In other threads, and on systems without interval
    timers, `works` is False and there is no limit. Uses one timer, and no thread or process.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running = self._rang = False
        self._before: Any = None
        self.works = False

    def __enter__(self) -> TimeLimit:
        main = threading.current_thread() is threading.main_thread()
        self.works = hasattr(signal, "setitimer") and main
        if self.works:
            self._before = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        if self.works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self.works = False

    def within(self, work: Callable[[], T]) -> T:
        """Return the result of `work`.

        Raises:
            TableError: timeout, when it takes too long.
        """
        if not self.works:
            return work()
        self._running, self._rang = True, False
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            return work()
        except BaseException:
            # A library that calls back into Python may wrap the interruption in its own exception.
            if self._rang:
                raise timed_out_error(self._seconds) from None
            raise
        finally:
            # In this order: a signal in between must not interrupt the next table.
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            self._rang = True
            raise _AlarmInterrupt
