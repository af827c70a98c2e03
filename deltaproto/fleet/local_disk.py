"""Finding tables on a local or mounted disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

from deltaproto.errors import ErrorCode, TableError, no_tables
from deltaproto.fleet.discovered import DiscoveredTable, Passed, Place, Selection, UnreadablePlace
from deltaproto.tables.storage.local import LOG_FOLDER

_MOST_ENTRIES = 10_000
_MOST_FOLDERS = 100
"""what is listed at the most to find tables inside a table, which may have any number of files"""


def tables_under(
    roots: Sequence[str],
    selection: Selection,
    own: str | None = None,
    passed: Passed | None = None,
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Every table at or below the absolute paths, none of which leads through a link.

    A folder that holds a `_delta_log` is a table, also when that is a link to nothing. What else it
    holds is searched without its partitions; if it is not a root itself, only as far as that is
    cheap. `passed` counts what was not searched. Links to folders are followed, each target once;
    what lies there goes by its real path. Where the selection is `flat`, no table comes twice; else
    one may, by one path. A root without tables is an error.

    Args:
        own: the inventory's place, as `place` makes it with a slash; its tables do not count.
    """
    walk = _Walk(roots, selection, Passed() if passed is None else passed)
    for root in dict.fromkeys(roots):
        walk.shared, empty = False, True
        for each in walk.under(root):
            empty = empty and each.inside(own)
            yield each
        if empty and not walk.shared:
            yield UnreadablePlace(root, no_tables(root))


class _Table:
    """A table whose folder is searched for other tables.

    Args:
        path: of the table; None for a root, which is searched whatever it takes.
    """

    def __init__(self, path: str | None, passed: Passed) -> None:
        self._path, self._passed = path, passed
        self._entries, self._folders = _MOST_ENTRIES, _MOST_FOLDERS
        self.open = True
        """whether its folder is searched further"""

    def lists(self) -> bool:
        """Count one more folder that is listed; whether it may be."""
        self._folders -= 1
        return self._within(self._folders)

    def meets(self) -> bool:
        """Count one more entry of its folders; whether the listing may go on."""
        self._entries -= 1
        return self._within(self._entries)

    def fails(self) -> bool:
        """Whether a folder that cannot be listed only ends the search: its data lie there."""
        if self._path is None:
            return False
        self._within(-1)
        return True

    def _within(self, left: int) -> bool:
        if self._path is not None and left < 0 and self.open:
            self.open = False
            self._passed.add(Place.INSIDE, self._path)
        return self.open


class _Walk:
    """Walks trees, which may hold each other and lead into each other by links."""

    def __init__(self, roots: Sequence[str], selection: Selection, passed: Passed) -> None:
        self._selection = selection
        self._passed = passed
        self._roots = [f"{root.rstrip('/')}/" for root in roots]
        self._starts = dict.fromkeys(roots, ("", False))
        """folders that are walked on their own, with the path below a root that led there and
        whether that lies in a table"""
        self.shared = False
        """whether a folder was left to the walk of another start"""

    def under(self, root: str) -> Iterator[DiscoveredTable | UnreadablePlace]:
        """The tables at and below one of the roots, without those of the others."""
        if not os.path.isdir(root):
            missing = not os.path.lexists(root)
            yield UnreadablePlace(
                root,
                TableError(
                    ErrorCode.NOT_FOUND,
                    f"{root} does not exist" if missing else f"{root} is a file, not a folder",
                    "give a folder that holds tables",
                ),
            )
            return
        pending: list[tuple[str, str, _Table | None]] = [(root, "", None)]
        while pending:
            path, below, table = pending.pop()
            if table is not None and not table.open:
                continue
            found = os.path.isdir(f"{path}/{LOG_FOLDER}")
            if found:
                table = self._table(path, below)
                if self._selection.takes(below):
                    yield DiscoveredTable(path, path)
            if table is not None and not table.lists():
                continue
            try:
                folders = sorted(self._folders(path, table), reverse=True)
            except OSError as error:
                if table is None or not table.fails():
                    yield UnreadablePlace(path, _unreadable(path, error))
                continue
            if not found and any(name == LOG_FOLDER for name, _ in folders):
                # It may be listed and not entered, or be a link to nothing; reading will tell.
                table = self._table(path, below)
                if self._selection.takes(below):
                    yield DiscoveredTable(path, path)
            pending += self._entered(path, below, folders, table)

    def _table(self, path: str, below: str) -> _Table:
        return _Table(path if below else None, self._passed)

    def _entered(
        self, path: str, below: str, folders: list[tuple[str, bool]], table: _Table | None
    ) -> Iterator[tuple[str, str, _Table | None]]:
        inside = f"{below}/" if below else ""
        in_table = table is not None
        for name, link in folders:
            if name == LOG_FOLDER:
                continue
            folder = f"{path.rstrip('/')}/{name}"
            if not self._selection.enters(inside + name, in_table=in_table):
                if not in_table and self._selection.hides(inside + name):
                    self._passed.add(Place.HIDDEN, folder)
                continue
            if link:
                link_path, folder = folder, _target(folder)
                if not _below(folder, self._roots):
                    self._passed.add(Place.OUTSIDE, link_path, f"{link_path} -> {folder}")
                if folder in self._starts or (self._selection.flat and self._reached(folder)):
                    self.shared = True
                    continue
                self._starts[folder] = inside + name, in_table
            elif self._selection.flat and folder in self._starts:
                self.shared = True
                continue
            yield folder, inside + name, table

    def _reached(self, folder: str) -> bool:
        """Whether a walk from one of the starts comes to the folder without a link."""
        return any(self._leads(start, *led, folder) for start, led in self._starts.items())

    def _leads(self, start: str, below: str, in_table: bool, folder: str) -> bool:
        if not folder.startswith(start.rstrip("/") + "/"):
            return False
        path = start
        for name in folder[len(start) :].strip("/").split("/"):
            in_table = in_table or os.path.isdir(f"{path}/{LOG_FOLDER}")
            below = f"{below}/{name}" if below else name
            path = f"{path.rstrip('/')}/{name}"
            if path in self._starts:
                # From there on it is that start's walk.
                return False
            if not self._selection.enters(below, in_table=in_table):
                return False
        return True

    def _folders(self, path: str, table: _Table | None) -> list[tuple[str, bool]]:
        """Names of a folder's folders, and of its log whatever it is; whether each is a link."""
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                if table is not None and not table.meets():
                    break
                link = entry.is_symlink()
                if _is_folder(entry) or entry.name == LOG_FOLDER:
                    found.append((entry.name, link))
                elif link and not os.path.exists(entry.path):
                    self._passed.add(Place.NOWHERE, entry.path)
        return found


def _target(link: str) -> str:
    """Where a link leads; itself where nobody may know, which listing it will tell."""
    try:
        return os.path.realpath(link)
    except OSError:
        return link


def _below(path: str, folders: Sequence[str]) -> bool:
    """Whether the path is one of the folders, which end in a slash, or lies in one."""
    return f"{path.rstrip('/')}/".startswith(tuple(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        # A link that leads to itself leads nowhere; another may hide a folder, which is then
        # entered and told as unreadable.
        return error.errno != errno.ELOOP


def _unreadable(path: str, error: OSError) -> TableError:
    if isinstance(error, PermissionError):
        return TableError(
            ErrorCode.PERMISSION_DENIED,
            f"no permission to list {path}",
            "run as a user who may, or leave it out with --exclude",
        )
    return TableError(ErrorCode.STORAGE, f"{path} cannot be listed: {error.strerror}")
