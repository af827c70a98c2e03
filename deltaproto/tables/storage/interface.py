"""The interface of log stores, and the time limit for reading one table."""

import time
from typing import IO, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError


class Deadline:
    """A point in time, given as seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Remaining seconds; negative if the deadline has passed."""
        return self._until - time.monotonic()

    def check(self) -> None:
        """Raise an error if the deadline has passed.

        Raises:
            TableError: timeout, when it has passed.
        """
        if self.left < 0:
            raise timed_out_error(self._seconds)


def timed_out_error(seconds: float) -> TableError:
    """Return the error of a table that took longer than `seconds`."""
    return TableError(
        ErrorCode.TIMEOUT,
        f"reading its log took longer than {seconds:g} s",
        "try again when the store is less busy, or increase the timeout",
    )


class _DeadlineStore:
    def __init__(self, store: "LogStore", deadline: Deadline) -> None:
        self._store, self._deadline = store, deadline

    def list(self) -> "list[FolderEntry]":
        self._deadline.check()
        return self._store.list()

    def list_dated(self) -> "tuple[FolderEntry, ...]":
        self._deadline.check()
        return self._store.list_dated()

    def list_staged(self) -> "tuple[FolderEntry, ...]":
        self._deadline.check()
        return self._store.list_staged()

    def open(self, name: str) -> IO[bytes]:
        self._deadline.check()
        return self._store.open(name)


def limit_reads(store: "LogStore", deadline: Deadline) -> "LogStore":
    """Return a log that refuses reads after the deadline.

    A running request is limited by the store's own timeouts.
    """
    return _DeadlineStore(store, deadline)


STAGED_COMMITS = "_staged_commits/"
_MOST_BYTES = {".crc": 128 << 20, ".parquet": 16 << 30}
_MOST_BYTES_ELSE = 2 << 30
"""maximum bytes of a log file, by file name ending: commits are read line by line, checksums as a
whole, and Parquet files only in part
"""


class FolderEntry(NamedTuple):
    """One name in the folder; subfolders end with a slash."""

    name: str
    size: int | None
    """bytes; None if not determined"""
    modified_ms: int | None = None
    """last modification, in milliseconds since the epoch; None if not determined"""


class LogStore(Interface):
    """The `_delta_log` folder of one table."""

    def list(self) -> list[FolderEntry]:
        """List the folder, without subfolders; checkpoints always have sizes.

        Raises:
            TableError: not-found, not-a-delta-table, permission-denied, timeout or storage.
        """
        ...

    def list_dated(self) -> tuple[FolderEntry, ...]:
        """List the folder like `list`, with size and modification time of every file."""
        ...

    def list_staged(self) -> tuple[FolderEntry, ...]:
        """List `_staged_commits` with names relative to the log's folder; empty if missing.

        Raises:
            TableError: permission-denied, timeout or storage.
        """
        ...

    def open(self, name: str) -> IO[bytes]:
        """Open a file in the folder as seekable; read in ranges if the store allows it.

        Raises:
            TableError: like `list`; a missing file is `corrupt-log`.
        """
        ...


def file_gone_error(name: str) -> TableError:
    """Return the error of a file that was listed and no longer exists."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} was listed in _delta_log but no longer exists",
        "the log was cleaned up while it was read; run the command again",
    )


def max_file_bytes(name: str) -> int:
    """Return the maximum number of bytes of a log file with this name."""
    return _MOST_BYTES.get(name[name.rfind(".") :], _MOST_BYTES_ELSE)


def check_size(name: str, size: int | None) -> None:
    """Refuse a log file that is too large.

    Raises:
        TableError: corrupt-log.
    """
    if size is not None and size > max_file_bytes(name):
        raise too_large_error(name, size)


def too_large_error(name: str, size: int) -> TableError:
    """Return the error of a log file that is too large."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} has {size} bytes; deltaproto reads at most {max_file_bytes(name)}",
        "no engine writes log files of that size; restore the file from a backup",
    )


def not_regular_error(name: str) -> TableError:
    """Return the error of a log file that is a pipe, a device or a socket."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{name} is not a regular file",
        "the log is damaged there; restore the file from a backup or another replica",
    )
