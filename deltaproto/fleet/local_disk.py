"""Finds tables on a local or mounted disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError, no_tables_error
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderSelection,
    PlaceKind,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.tables.storage.local import LOG_FOLDER

_MOST_ENTRIES = 10_000
_MOST_FOLDERS = 100
"""limits for listing inside a table, which may have any number of files"""


def tables_under(
    roots: Sequence[str],
    selection: FolderSelection,
    own: str | None = None,
    skipped: SkippedPlaces | None = None,
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Find every table at or below the absolute paths.

    A folder with a `_delta_log` is a table, even if that is a broken link. The rest of such a
    folder is searched except for its partitions; unless it is a root, only within limits. Only
    folders directly in a table or in a partition are partitions, and none that has a log. `skipped`
    counts what was not searched.
    Links to folders are followed, each target once; tables there have their real path. If the
    selection is `flat`, no table is returned twice; otherwise it may be, with the same path. A
    root without tables is an error.

    Args:
        own: path of the inventory with a slash at the end; its tables do not count.
    """
    walk = _Walk(roots, selection, SkippedPlaces() if skipped is None else skipped)
    all_empty, sharing = True, []
    for root in dict.fromkeys(roots):
        walk.shared, empty = False, True
        for each in walk.under(root):
            empty = empty and each.inside(own)
            yield each
        all_empty = all_empty and empty
        if empty and walk.shared:
            sharing.append(root)
        elif empty:
            yield UnreadablePlace(root, no_tables_error(root))
    if all_empty:
        yield from (UnreadablePlace(root, no_tables_error(root)) for root in sharing)


class _Table:
    """A table whose folder is searched for other tables.

    Args:
        limited: False for a root, which is searched without limits.
    """

    def __init__(self, path: str, skipped: SkippedPlaces, *, limited: bool) -> None:
        self.path, self._limited, self._skipped = path, limited, skipped
        self._entries, self._folders = _MOST_ENTRIES, _MOST_FOLDERS
        self.open = True
        """whether its folder is still searched"""

    @property
    def lists_more(self) -> bool:
        """Whether the limit allows listing another folder."""
        return not self._limited or self._folders > 0

    def lists(self) -> None:
        """Count a folder, whether it is listed or exceeds the limit."""
        self._folders -= 1
        self._within(self._folders)

    def meets(self) -> bool:
        """Count an entry of its folders; return whether the limit allows more."""
        self._entries -= 1
        return self._within(self._entries)

    def fails(self) -> bool:
        """Return True if an unlistable folder is ignored because it contains data files."""
        if not self._limited:
            return False
        self._within(-1)
        return True

    def _within(self, left: int) -> bool:
        if self._limited and left < 0 and self.open:
            self.open = False
            self._skipped.add(PlaceKind.INSIDE, self.path)
        return self.open


class _Listing:
    """The entries of a folder; only the first ones are listed immediately."""

    def __init__(self, path: str) -> None:
        self._error: OSError | None = None
        try:
            self._rest = os.scandir(path)
            self._first = list(islice(self._rest, _MOST_ENTRIES))
        except OSError as error:
            self._error = error
            # A folder may be searchable but not listable.
            self.has_log = _is_table(path)
            return
        # A log of any type: a folder that is not searchable, a file, a broken link. Reading it
        # reports that.
        self.has_log = any(entry.name == LOG_FOLDER for entry in self._first) or (
            len(self._first) == _MOST_ENTRIES and _has_log(path)
        )

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Yield all entries.

        Raises:
            OSError: when the folder cannot be listed.
        """
        if self._error is not None:
            raise self._error
        return chain(self._first, self._rest)

    def close(self) -> None:
        """Stop listing it."""
        if self._error is None:
            self._rest.close()


class _Folder(NamedTuple):
    """A folder to search."""

    path: str
    below: str
    """its path below the root"""
    table: _Table | None = None
    """the innermost table around it"""
    partition: bool = False
    """whether it is a partition of that table"""


class _Start(NamedTuple):
    """A folder with a separate walk."""

    below: str
    """the path below a root that led there"""
    partition: bool
    """whether that is a partition"""
    root: str
    """the root whose tables are found there"""


class _Walk:
    """Walks trees that may contain each other or link to each other."""

    def __init__(
        self, roots: Sequence[str], selection: FolderSelection, skipped: SkippedPlaces
    ) -> None:
        self._selection = selection
        self._skipped = skipped
        self._roots = [f"{root.rstrip('/')}/" for root in roots]
        self._starts = {root: _Start("", False, root) for root in roots}
        self._root = ""
        """the root whose walk this is now"""
        self.shared = False
        """whether a folder was left to the walk of another root"""

    def under(self, root: str) -> Iterator[DiscoveredTable | UnreadablePlace]:
        """Yield the tables at and below one of the roots, except those of the other roots."""
        self._root = root
        if not os.path.isdir(root):
            missing = not os.path.lexists(root)
            yield UnreadablePlace(
                root,
                TableError(
                    ErrorCode.NOT_FOUND,
                    f"{root} does not exist" if missing else f"{root} is a file, not a folder",
                    "check the path" if missing else "pass a folder with tables",
                ),
            )
            return
        pending = [_Folder(root, "")]
        while pending:
            path, below, table, partition = pending.pop()
            if table is not None and not table.open:
                continue
            if table is not None and not table.lists_more and not _is_table(path):
                table.lists()
                continue
            listing = _Listing(path)
            if listing.has_log:
                table = _Table(path, self._skipped, limited=bool(below))
                if self._selection.includes(below):
                    yield DiscoveredTable(path, path)
            if table is not None:
                table.lists()
            try:
                folders = sorted(self._folders(listing, table), reverse=True)
            except OSError as error:
                if table is None or not table.fails():
                    yield UnreadablePlace(path, _unreadable(path, error))
                continue
            in_table = listing.has_log or partition
            pending += self._entered(_Folder(path, below, table, in_table), folders)

    def _entered(self, parent: _Folder, folders: list[tuple[str, bool]]) -> Iterator[_Folder]:
        """Yield the subfolders to search; `parent.partition` is also True for a table."""
        inside = f"{parent.below}/" if parent.below else ""
        in_table = parent.partition
        for name, link in folders:
            folder = f"{parent.path.rstrip('/')}/{name}"
            if not self._enters(folder, inside + name, in_table=in_table):
                self._skip(folder, inside + name, parent)
                continue
            partition = in_table and "=" in name
            if link:
                link_path, folder = folder, _target(folder)
                self._skipped.links.add(link_path, folder)
                if not _below(folder, self._roots):
                    self._skipped.add(PlaceKind.OUTSIDE, link_path, f"{link_path} -> {folder}")
            start = self._starts.get(folder)
            if start is None and link and self._selection.flat:
                start = self._reaching(folder)
            if start is not None and (link or self._selection.flat):
                self.shared = self.shared or start.root != self._root
                continue
            if link:
                self._starts[folder] = _Start(inside + name, partition, self._root)
            yield _Folder(folder, inside + name, parent.table, partition)

    def _skip(self, folder: str, below: str, parent: _Folder) -> None:
        if self._selection.hides(below):
            in_table = parent.table is not None
            if self._selection.hides(below, in_table=in_table) or _has_log(folder):
                self._skipped.add(PlaceKind.HIDDEN, folder)
        elif not self._selection.excludes(below):
            assert parent.table is not None
            self._skipped.add_partition(parent.table.path, folder)

    def _enters(self, folder: str, below: str, *, in_table: bool) -> bool:
        """Return True if a folder is searched; no partition of a table has a log of its own."""
        if self._selection.enters(below, in_table=in_table):
            return True
        usual = self._selection.excludes(below) or self._selection.hides(below)
        return in_table and not usual and _has_log(folder)

    def _reaching(self, folder: str) -> _Start | None:
        """Return the start from which a walk reaches the folder without following a link."""
        ways = (led for start, led in self._starts.items() if self._leads(start, led, folder))
        return next(ways, None)

    def _leads(self, start: str, led: _Start, folder: str) -> bool:
        below, partition, _ = led
        if not folder.startswith(start.rstrip("/") + "/"):
            return False
        path = start
        for name in folder[len(start) :].strip("/").split("/"):
            in_table = partition or _is_table(path)
            below = f"{below}/{name}" if below else name
            path = f"{path.rstrip('/')}/{name}"
            if path in self._starts:
                # The other walk covers everything from here on.
                return False
            if not self._enters(path, below, in_table=in_table):
                return False
            partition = in_table and "=" in name
        return True

    def _folders(self, listing: _Listing, table: _Table | None) -> list[tuple[str, bool]]:
        """Return the names of subfolders except the log, and whether each is a link.

        Raises:
            OSError: when the folder cannot be listed.
        """
        found = []
        for entry in listing.entries():
            if table is not None and not table.meets():
                listing.close()
                break
            link = entry.is_symlink()
            if _is_folder(entry):
                if entry.name != LOG_FOLDER:
                    found.append((entry.name, link))
            elif link and not os.path.exists(entry.path):
                self._skipped.add(PlaceKind.NOWHERE, entry.path)
        return found


def _is_table(folder: str) -> bool:
    return os.path.isdir(f"{folder}/{LOG_FOLDER}")


def _has_log(folder: str) -> bool:
    return os.path.lexists(f"{folder}/{LOG_FOLDER}")


def _target(link: str) -> str:
    """Resolve a link; return it unchanged when unreadable (listing will report that)."""
    try:
        return os.path.realpath(link)
    except OSError:
        return link


def _below(path: str, folders: Sequence[str]) -> bool:
    """Return True if the path equals or is inside one of the folders, which end with a slash."""
    return f"{path.rstrip('/')}/".startswith(tuple(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        # A link to itself is ignored. Any other unresolvable link may hide a folder, which is then
        # reported as unreadable.
        return error.errno != errno.ELOOP


def _unreadable(path: str, error: OSError) -> TableError:
    if isinstance(error, PermissionError):
        return TableError(
            ErrorCode.PERMISSION_DENIED,
            f"no permission to list {path}",
            "run as a user with permission, or leave it out with --exclude",
        )
    return TableError(ErrorCode.STORAGE, f"cannot list {path}: {error.strerror}")
