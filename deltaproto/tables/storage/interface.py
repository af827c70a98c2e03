"""What the log reader needs of a store: one listing, whole files, and seekable files."""

from __future__ import annotations

from typing import IO, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError

STAGED_COMMITS = "_staged_commits/"
_MOST_BYTES = {".crc": 128 << 20, ".parquet": 16 << 30}
_MOST_BYTES_ELSE = 2 << 30
"""the most bytes of a log file, by how its name ends: commits are read line by line, checksums as a
whole, and of Parquet the parts that are needed"""


class Entry(NamedTuple):
    """One name in the folder; sub-folders end in a slash."""

    name: str
    size: int | None
    """bytes; None where it was not worth asking"""
    modified_ms: int | None = None
    """when it was last written, in milliseconds since the epoch; None where nobody asked"""


class LogStore(Interface):
    """The `_delta_log` folder of one table."""

    def list(self) -> list[Entry]:
        """Everything directly in the folder; sizes at least of checkpoints.

        Raises:
            TableError: not-found, not-a-delta-table, permission-denied, timeout or storage.
        """
        ...

    def list_dated(self) -> tuple[Entry, ...]:
        """As `list`, and every file with its size and when it was last written."""
        ...

    def list_staged(self) -> tuple[Entry, ...]:
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
