"""What the log reader needs of a store, and the time limit for reading one table."""

from __future__ import annotations

import time
from typing import IO, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError


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

    def list(self) -> list[FolderEntry]:
        self._deadline.check()
        return self._store.list()

    def list_dated(self) -> tuple[FolderEntry, ...]:
        self._deadline.check()
        return self._store.list_dated()

    def list_staged(self) -> tuple[FolderEntry, ...]:
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


STAGED_COMMITS = "_staged_commits/"
_MOST_BYTES = {".crc": 128 << 20, ".parquet": 16 << 30}
_MOST_BYTES_ELSE = 2 << 30
"""the most bytes of a log file, by how its name ends: commits are read line by line, checksums as a
whole, and of Parquet the parts that are needed"""


class FolderEntry(NamedTuple):
    """One name in the folder; sub-folders end in a slash."""

    name: str
    size: int | None
    """bytes; None where it was not worth asking"""
    modified_ms: int | None = None
    """when it was last written, in milliseconds since the epoch; None where nobody asked"""


class LogStore(Interface):
    """The `_delta_log` folder of one table."""

    def list(self) -> list[FolderEntry]:
        """Everything directly in the folder; sizes at least of checkpoints.

        Raises:
            TableError: not-found, not-a-delta-table, permission-denied, timeout or storage.
        """
        ...

    def list_dated(self) -> tuple[FolderEntry, ...]:
        """As `list`, and every file with its size and when it was last written."""
        ...

    def list_staged(self) -> tuple[FolderEntry, ...]:
        """The files in `_staged_commits`, named with that folder; empty where there is none.

        Raises:
            TableError: permission-denied, timeout or storage.
        """
        ...

    def open(self, name: str) -> IO[bytes]:
        """A seekable file in the folder, read in ranges where the store allows it.

        Raises:
            TableError: as `list`; a file that is gone is `corrupt-log`.
        """
        ...


def gone(name: str) -> TableError:
    """The error of a file that was listed and is not there any more."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} was listed in _delta_log but is gone",
        "the log was cleaned up while it was read; run the command again",
    )


def most_bytes(name: str) -> int:
    """The most bytes that a log file of this name may have."""
    return _MOST_BYTES.get(name[name.rfind(".") :], _MOST_BYTES_ELSE)


def check_size(name: str, size: int | None) -> None:
    """Refuse a log file that is too large to be one.

    Raises:
        TableError: corrupt-log.
    """
    if size is not None and size > most_bytes(name):
        raise too_large(name, size)


def too_large(name: str, size: int) -> TableError:
    """The error of a log file with too many bytes."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} has {size} bytes; deltaproto reads at most {most_bytes(name)}",
        "no engine writes log files of that size; restore the file from a backup",
    )


def not_regular(name: str) -> TableError:
    """The error of a log file that is a pipe, a device or a socket."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} is not a regular file",
        "the log is damaged there; restore the file from a backup or another replica",
    )
