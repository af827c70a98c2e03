"""A time limit for work on one table that also interrupts computing, not only waiting."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from deltaproto.tables.storage.interface import timed_out

T = TypeVar("T")


class _Rang(BaseException):
    """Not an `Exception`, so that nothing that handles damaged files takes it for damage."""


class Alarm:
    """Limits the seconds of each call of `within`, between `__enter__` and `__exit__`.

    Only the main thread can be interrupted; elsewhere, and on systems without interval timers,
    `works` is False and there is no limit. One timer is set for each table: no thread, no process.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running = self._rang = False
        self._before: Any = None
        self.works = False

    def __enter__(self) -> Alarm:
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
        """The result of `work`.

        Raises:
            TableError: timeout, when it takes longer.
        """
        if not self.works:
            return work()
        self._running, self._rang = True, False
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            return work()
        except BaseException:
            # A library that calls back into Python may report the interruption in its own words.
            if self._rang:
                raise timed_out(self._seconds) from None
            raise
        finally:
            # In this order: a signal that comes in between must not hit the next table.
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            self._rang = True
            raise _Rang
