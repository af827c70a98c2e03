"""What discovery gives: tables, and places that could not be looked into."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import locate
from deltaproto.policy.document import place
from deltaproto.tables.storage.interface import FolderEntry


class DiscoveredTable(NamedTuple):
    """One table, to be read."""

    table: str
    """a path, a URI or a catalog name, as people call it"""
    location: str
    """the path or URI where it lies"""
    listed: tuple[FolderEntry, ...] | None = None
    """what its log folder holds, where discovery had to look"""

    @property
    def uri(self) -> str:
        """The location as a URI."""
        return locate(self.location).uri

    def inside(self, own: str | None) -> bool:
        """Whether it lies below `own`, a place with a slash at its end."""
        return own is not None and place(self.location).startswith(own)


class UnreadablePlace(NamedTuple):
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
    name. Folders named `_…` or `.…`, and `key=value` inside a table, are entered only where an
    `include` names them.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        """Whether a folder's name alone decides, from whichever root it is seen."""
        return not self.include and not any("/" in pattern for pattern in self.exclude)

    def enters(self, below: str, *, in_table: bool = False) -> bool:
        """Whether the folder at the path `below` the root is searched."""
        name = below.rpartition("/")[2]
        if _any(self.exclude, below, name):
            return False
        apart = name.startswith((".", "_")) or (in_table and "=" in name)
        return not apart or _any(self.include, below, name)

    def hides(self, below: str) -> bool:
        """Whether a folder that is not entered is one that nobody excluded."""
        name = below.rpartition("/")[2]
        return name.startswith((".", "_")) and not _any(self.exclude, below, name)

    def takes(self, below: str) -> bool:
        """Whether a table at the path `below` the root counts."""
        if not self.include or not below:
            return True
        parts = below.split("/")
        return any(
            _any(self.include, "/".join(parts[: end + 1]), part) for end, part in enumerate(parts)
        )


class Place(StrEnum):
    """What a walk met besides tables and folders that it searched."""

    HIDDEN = "hidden"
    """a folder that was not searched, because of its name"""
    INSIDE = "inside"
    """a table whose folder was not searched, or not to its end, for other tables"""
    OUTSIDE = "outside"
    """a link to a folder outside of every root, which was searched"""
    NOWHERE = "nowhere"
    """a link whose target does not exist"""


class Passed:
    """Counts places that a reader of the result must know of, and keeps the first of each kind."""

    def __init__(self) -> None:
        self._own: str | None = None
        self._counts: Counter[Place] = Counter()
        self._first: dict[Place, str] = {}

    def leave_out(self, own: str | None) -> None:
        """Count nothing at or below this path or URI, which ends in a slash."""
        self._own = own

    def add(self, kind: Place, path: str, shown: str = "") -> None:
        """Count the place at `path`; `shown` says more of it."""
        if self._own is None or not f"{path}/".startswith(self._own):
            self._counts[kind] += 1
            self._first.setdefault(kind, shown or path)

    def notes(self) -> tuple[str, ...]:
        """One line for each kind that was met."""
        return tuple(
            f"{_counted(self._counts[kind], *_PLACES[kind])}{self._first[kind]}"
            for kind in Place
            if kind in self._counts
        )


_PLACES = {
    Place.HIDDEN: (
        "1 folder whose name starts with . or _ was not searched; --include searches it: ",
        "folders whose names start with . or _ were not searched; --include searches them: first ",
    ),
    Place.INSIDE: (
        "1 table's folder was not searched, or not to its end, for tables inside it; name it as a "
        "root to search it: ",
        "tables' folders were not searched, or not to their end, for tables inside them; name one "
        "as a root to search it: first ",
    ),
    Place.OUTSIDE: (
        "1 link leads out of the roots, and its target was searched: ",
        "links lead out of the roots, and their targets were searched: first ",
    ),
    Place.NOWHERE: (
        "1 link leads to nothing; a table may be missing there: ",
        "links lead to nothing; tables may be missing there: first ",
    ),
}


def _counted(count: int, one: str, many: str) -> str:
    return one if count == 1 else f"{count:,} {many}"


def _any(patterns: Sequence[str], below: str, name: str) -> bool:
    return any(
        fnmatch.fnmatchcase(below if "/" in pattern else name, pattern.strip("/"))
        for pattern in patterns
    )
