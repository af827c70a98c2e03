"""What discovery gives: tables, and places that could not be looked into."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.policy.document import place
from deltaproto.tables.location import locate
from deltaproto.tables.storage.interface import Entry


class Found(NamedTuple):
    """One table, to be read."""

    table: str
    """a path, a URI or a catalog name, as people call it"""
    location: str
    """the path or URI where it lies"""
    listed: tuple[Entry, ...] | None = None
    """what its log folder holds, where discovery had to look"""

    @property
    def uri(self) -> str:
        """The location as a URI."""
        return locate(self.location).uri

    def inside(self, own: str | None) -> bool:
        """Whether it lies below `own`, a place with a slash at its end."""
        return own is not None and place(self.location).startswith(own)


class Unseen(NamedTuple):
    """A place that could not be looked into: tables may be missing below it."""

    place: str
    error: TableError

    @property
    def uri(self) -> str:
        """The place as a URI; as it stands where it is none."""
        try:
            return locate(self.place).uri
        except TableError:
            return self.place

    def inside(self, own: str | None) -> bool:
        """Whether it lies below `own`; a root without tables is reported wherever it lies."""
        empty = self.error.code is ErrorCode.NO_TABLES
        return own is not None and not empty and place(self.place).startswith(own)


class Selection(NamedTuple):
    """Which folders are entered, and which tables count. Patterns are globs.

    A pattern with a slash is held against the path below the root, another against each folder's
    name. Folders named `_…`, `.…` or `key=value` are entered only where an `include` names them.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        """Whether a folder's name alone decides, from whichever root it is seen."""
        return not self.include and not any("/" in pattern for pattern in self.exclude)

    def enters(self, below: str) -> bool:
        """Whether the folder at the path `below` the root is looked into."""
        name = below.rpartition("/")[2]
        if _any(self.exclude, below, name):
            return False
        apart = name.startswith((".", "_")) or "=" in name
        return not apart or _any(self.include, below, name)

    def takes(self, below: str) -> bool:
        """Whether a table at the path `below` the root counts."""
        if not self.include or not below:
            return True
        parts = below.split("/")
        return any(
            _any(self.include, "/".join(parts[: end + 1]), part) for end, part in enumerate(parts)
        )


def _any(patterns: Sequence[str], below: str, name: str) -> bool:
    return any(
        fnmatch.fnmatchcase(below if "/" in pattern else name, pattern.strip("/"))
        for pattern in patterns
    )
