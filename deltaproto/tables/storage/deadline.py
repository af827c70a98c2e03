"""A time limit for everything that is read of one table."""

from __future__ import annotations

import time
from typing import IO

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.storage.interface import Entry, LogStore


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; none when it is negative."""
        return self._until - time.monotonic()

    def check(self) -> None:
        """Raises:
        TableError: timeout, when it has passed.
        """
        if self.left < 0:
            raise timed_out(self._seconds)


def timed_out(seconds: float) -> TableError:
    """The error of a table that took longer than `seconds`."""
    return TableError(
        ErrorCode.TIMEOUT,
        f"its log was not read within {seconds:g} s",
        "try again when the store is quieter, or give it more time",
    )


class _Within:
    def __init__(self, store: LogStore, deadline: Deadline) -> None:
        self._store, self._deadline = store, deadline

    def list(self) -> list[Entry]:
        self._deadline.check()
        return self._store.list()

    def list_dated(self) -> tuple[Entry, ...]:
        self._deadline.check()
        return self._store.list_dated()

    def list_staged(self) -> tuple[Entry, ...]:
        self._deadline.check()
        return self._store.list_staged()

    def open(self, name: str) -> IO[bytes]:
        self._deadline.check()
        return self._store.open(name)


def within(store: LogStore, deadline: Deadline) -> LogStore:
    """The same log, of which nothing more is read after the deadline.

    A request that has begun is bounded by the store's own time limits.
    """
    return _Within(store, deadline)
