"""What the log reader needs of a store: one listing, whole files, and seekable files."""

from __future__ import annotations

from typing import IO, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError


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
