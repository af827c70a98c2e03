"""Results of discovery: tables, and places that could not be searched."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_places import CATALOG_PREFIX
from deltaproto.location import locate
from deltaproto.policy.document import normalize_location
from deltaproto.tables.catalogs.interface import CatalogTable
from deltaproto.tables.storage.interface import FolderEntry


class DiscoveredTable(NamedTuple):
    """A table that discovery found."""

    table: str
    """path, URI or catalog name as given by the user"""
    location: str
    """the table's path or URI"""
    listed: tuple[FolderEntry, ...] | None = None
    """contents of the log folder, if discovery had to list it"""
    entry: CatalogTable | None = None
    """the table as its catalog describes it"""
    catalog: str | None = None
    """kind of that catalog: scheme of its addresses, such as `uc`, or `spark`; None: not known"""
    storage_options: Callable[[], Mapping[str, str]] | None = None
    """returns options of its catalog, such as temporary credentials, when the table is read"""
    commits: Callable[[], Mapping[int, int]] | None = None
    """returns the newest versions of a catalog-managed table, with their in-commit timestamps"""
    requested: bool = False
    """whether the user passed the table's own name, not the name of a catalog or schema"""

    @property
    def type(self) -> str | None:
        """The table's type in its catalog; None if it is not known."""
        return (self.entry and self.entry.type) or None

    @property
    def uri(self) -> str:
        """The location as a URI."""
        return locate(self.location).uri

    def inside(self, own: str | None) -> bool:
        """Return True if it is below `own`, a path or URI that ends with a slash."""
        return own is not None and normalize_location(self.location).startswith(own)


class UnreadablePlace(NamedTuple):
    """A place that could not be searched: tables below it may be missing."""

    place: str
    error: TableError

    @property
    def uri(self) -> str:
        """The place as a URI, or unchanged if it cannot be converted."""
        if self.place.startswith(CATALOG_PREFIX):
            return self.place
        try:
            return locate(self.place).uri
        except TableError:
            return self.place

    def inside(self, own: str | None) -> bool:
        """Return True if it is below `own`; a root without tables is always reported."""
        empty = self.error.code is ErrorCode.NO_TABLES
        return own is not None and not empty and normalize_location(self.place).startswith(own)


class FolderSelection(NamedTuple):
    """The folders to search and the tables to include. Patterns are globs.

    A pattern with a slash is matched against the path below the root, any other against each
    folder's name. Folders named `_…` or `.…`, and partitions (`key=value` directly in a table or in
    another partition), are searched only if an `include` matches them.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        """True if a folder's name alone decides, independent of the root."""
        return not self.include and not any("/" in pattern for pattern in self.exclude)

    def enters(self, below: str, *, in_table: bool = False) -> bool:
        """Return True if the folder at the path `below` the root is searched.

        Args:
            in_table: whether its parent folder is a table or a partition of one.
        """
        name = below.rpartition("/")[2]
        if self.excludes(below):
            return False
        apart = name.startswith((".", "_")) or (in_table and "=" in name)
        return not apart or _matches_any(self.include, below, name)

    def hides(self, below: str, *, in_table: bool = False) -> bool:
        """Return True if a folder is skipped for its first character, not excluded by the user.

        False for folders that engines keep inside a table.
        """
        name = below.rpartition("/")[2]
        kept = in_table and name in _KEPT_IN_TABLES
        return name.startswith((".", "_")) and not kept and not self.excludes(below)

    def excludes(self, below: str) -> bool:
        """Return True if the user excludes the folder at the path `below` the root."""
        return _matches_any(self.exclude, below, below.rpartition("/")[2])

    def includes(self, below: str) -> bool:
        """Return True if a table at the path `below` the root is included."""
        if not self.include or not below:
            return True
        parts = below.split("/")
        return any(
            _matches_any(self.include, "/".join(parts[: end + 1]), part)
            for end, part in enumerate(parts)
        )


_KEPT_IN_TABLES = frozenset(
    {
        "_change_data",
        "_checkpoint",
        "_checkpoints",
        "_delta_index",
        "_delta_log",
        "_spark_metadata",
        "_symlink_format_manifest",
        "_temporary",
    }
)


class PlaceKind(StrEnum):
    """Special places found by a walk."""

    HIDDEN = "hidden"
    """a folder skipped because of its name"""
    INSIDE = "inside"
    """a table whose folder was not searched completely for other tables"""
    PARTITION = "partition"
    """a folder skipped as a partition of a table that has no such partition column"""
    OUTSIDE = "outside"
    """a followed link to a folder outside every root"""
    NOWHERE = "nowhere"
    """a link whose target does not exist"""
    RENAMED = "renamed"
    """another catalog name of a table"""


class UnsearchedPlaces(NamedTuple):
    """The places of one kind that a scan did not search: tables below them are missing."""

    kind: str
    """a `PlaceKind`, or a kind of a newer release"""
    number: int
    first: str
    """path or URI of one of them"""

    @property
    def note(self) -> str:
        """How many there are, how to search them, and the first, in one line."""
        return _describe(self.kind, self.number, self.first)


class FolderLinks:
    """Links to folders that a walk found: further paths of the tables in these folders."""

    def __init__(self) -> None:
        self._links: dict[str, list[str]] = {}
        """paths of links, by the folder that they lead to"""

    def __bool__(self) -> bool:
        return bool(self._links)

    def add(self, link: str, target: str) -> None:
        """Add a link, unless it leads to a folder that contains it: such paths never end."""
        if not link.startswith(f"{target.rstrip('/')}/"):
            self._links.setdefault(target, []).append(link)

    def other_paths(self, path: str) -> list[str]:
        """Return the paths through links of the folder at a real path, sorted, 20 at most."""
        found, pending = {path}, [path]
        while pending and len(found) <= _MOST_PATHS:
            whole = pending.pop(0)
            folder = whole
            while folder:
                for link in self._links.get(folder, ()):
                    other = f"{link}{whole[len(folder) :]}"
                    if other not in found:
                        found.add(other)
                        pending.append(other)
                folder = folder.rpartition("/")[0]
        return sorted(found - {path})[:_MOST_PATHS]


_MOST_PATHS = 20


class SkippedPlaces:
    """Counts special places, and keeps the first by name of each kind.

    Threads find places in any order, so the first one found would change between runs.
    """

    def __init__(self) -> None:
        self.links = FolderLinks()
        self._own: str | None = None
        self._counts: Counter[PlaceKind] = Counter()
        self._first: dict[PlaceKind, str] = {}
        self._lines: list[Callable[[], Iterable[str]]] = []
        self._partitions: dict[str, dict[str, tuple[int, str]]] = {}
        """number of skipped folders of each key and one of them, by the table's path or URI"""

    def leave_out(self, own: str | None) -> None:
        """Ignore places at or below this path or URI, which ends with a slash."""
        self._own = own

    def add(self, kind: PlaceKind, path: str, shown: str = "", count: int = 1) -> None:
        """Count the place at `path`; `shown` replaces the path in the note."""
        if self._own is None or not f"{path}/".startswith(self._own):
            self._counts[kind] += count
            first = shown or path
            self._first[kind] = min(first, self._first.get(kind, first))

    def add_partition(self, table: str, folder: str) -> None:
        """Remember a folder that was skipped as a partition of the table at this path or URI."""
        key = unquote(folder.rpartition("/")[2].partition("=")[0]).casefold()
        keys = self._partitions.setdefault(table, {})
        count, first = keys.get(key, (0, folder))
        keys[key] = count + 1, min(first, folder)

    def check_partitions(
        self, tables: Callable[[], Iterable[tuple[str, Sequence[str] | None]]]
    ) -> None:
        """Count the folders that were wrongly skipped as partitions.

        Args:
            tables: returns URI and partition columns of the tables; None for unreadable ones. It
                is called only if folders were skipped.
        """
        skipped = {locate(table).uri: keys for table, keys in self._partitions.items()}
        self._partitions.clear()
        if not skipped:
            return
        for uri, columns in tables():
            known = {column.casefold() for column in columns or ()}
            for key, (count, folder) in skipped.pop(uri, {}).items():
                if key not in known:
                    self.add(PlaceKind.PARTITION, folder, count=count)

    def add_lines(self, lines: Callable[[], Iterable[str]]) -> None:
        """Add lines to the notes; they are requested when the scan ends."""
        self._lines.append(lines)

    def not_searched(self) -> dict[PlaceKind, int]:
        """Return how many places of each kind were not searched: tables below them are missing."""
        return {kind: self._counts[kind] for kind in _UNSEARCHED}

    def unsearched(self) -> tuple[UnsearchedPlaces, ...]:
        """Return the places that were not searched, by kind."""
        return tuple(
            UnsearchedPlaces(str(kind), self._counts[kind], self._first[kind])
            for kind in _UNSEARCHED
            if self._counts[kind]
        )

    def notes(self) -> tuple[str, ...]:
        """Return one line for each kind found, and the added lines."""
        places = (
            _describe(kind, self._counts[kind], self._first[kind])
            for kind in PlaceKind
            if kind in self._counts
        )
        return (*places, *(line for lines in self._lines for line in lines()))


_PLACES: Mapping[str, tuple[str, str]] = {
    PlaceKind.HIDDEN: (
        "1 folder whose name starts with . or _ was not searched; --include searches it: ",
        "folders whose names start with . or _ were not searched; --include searches them: first ",
    ),
    PlaceKind.INSIDE: (
        "1 table's folder was not searched completely for tables inside it; name it as a "
        "root to search it: ",
        "tables' folders were not searched completely for tables inside them; name one "
        "as a root to search it: first ",
    ),
    PlaceKind.PARTITION: (
        "1 folder is named like a partition of a table that has no such partition column or could "
        "not be read, and was not searched; name it as a root to search it: ",
        "folders are named like partitions of tables that have no such partition column or could "
        "not be read, and were not searched; name them as roots to search them: first ",
    ),
    PlaceKind.OUTSIDE: (
        "1 link points outside the roots, and its target was searched: ",
        "links point outside the roots, and their targets were searched: first ",
    ),
    PlaceKind.NOWHERE: (
        "1 link is broken; a table may be missing there: ",
        "links are broken; tables may be missing there: first ",
    ),
    PlaceKind.RENAMED: (
        "1 catalog name has the location of another table, and was read once: ",
        "catalog names have the location of another table, and were read once: first ",
    ),
}


_OTHER_PLACES = "1 place was not searched: ", "places were not searched: first "
_UNSEARCHED = (PlaceKind.HIDDEN, PlaceKind.INSIDE, PlaceKind.PARTITION, PlaceKind.NOWHERE)


def _describe(kind: str, count: int, first: str) -> str:
    one, many = _PLACES.get(kind, _OTHER_PLACES)
    return f"{one if count == 1 else f'{count:,} {many}'}{first}"


def _matches_any(patterns: Sequence[str], below: str, name: str) -> bool:
    return any(
        fnmatch.fnmatchcase(below if "/" in pattern else name, pattern.strip("/"))
        for pattern in patterns
    )
