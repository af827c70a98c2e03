"""Finding tables on a local or mounted disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

from deltaproto.errors import ErrorCode, TableError, no_tables
from deltaproto.fleet.found import Found, Selection, Unseen
from deltaproto.tables.storage.local import LOG_FOLDER


def tables_under(
    roots: Sequence[str], selection: Selection, own: str | None = None
) -> Iterator[Found | Unseen]:
    """Every table at or below the absolute paths, none of which leads through a link.

    A folder that holds a `_delta_log` is a table; nothing in it is listed, whatever it holds.
    Links to folders are followed, each target once; what lies there goes by its real path. Where
    the selection is `flat`, no table comes twice; else one may, under one path. A root without
    tables is an error.

    Args:
        own: the inventory's place, as `place` makes it with a slash; its tables do not count.
    """
    walk = _Walk(roots, selection)
    for root in dict.fromkeys(roots):
        walk.shared, empty = False, True
        for each in walk.under(root):
            empty = empty and each.inside(own)
            yield each
        if empty and not walk.shared:
            yield Unseen(root, no_tables(root))


class _Walk:
    """Walks trees, which may hold each other and lead into each other by links."""

    def __init__(self, roots: Sequence[str], selection: Selection) -> None:
        self._selection = selection
        self._starts = dict.fromkeys(roots, "")
        """folders that are walked on their own, with the path below a root that led there"""
        self.shared = False
        """whether a folder was left to the walk of another start"""

    def under(self, root: str) -> Iterator[Found | Unseen]:
        """The tables at and below one of the roots, without those of the others."""
        if not os.path.isdir(root):
            missing = not os.path.lexists(root)
            yield Unseen(
                root,
                TableError(
                    ErrorCode.NOT_FOUND,
                    f"{root} does not exist" if missing else f"{root} is a file, not a folder",
                    "give a folder that holds tables",
                ),
            )
            return
        pending = [(root, "")]
        while pending:
            path, below = pending.pop()
            if os.path.isdir(f"{path}/{LOG_FOLDER}"):
                if self._selection.takes(below):
                    yield Found(path, path)
                continue
            try:
                folders = sorted(_folders(path), reverse=True)
            except OSError as error:
                yield Unseen(path, _unreadable(path, error))
                continue
            if any(name == LOG_FOLDER for name, _ in folders):
                # It may be listed and not entered; reading will tell.
                if self._selection.takes(below):
                    yield Found(path, path)
                continue
            pending += self._entered(path, below, folders)

    def _entered(
        self, path: str, below: str, folders: list[tuple[str, bool]]
    ) -> Iterator[tuple[str, str]]:
        inside = f"{below}/" if below else ""
        for name, link in folders:
            if not self._selection.enters(inside + name):
                continue
            folder = f"{path.rstrip('/')}/{name}"
            if link:
                folder = _target(folder)
                if folder in self._starts or (self._selection.flat and self._reached(folder)):
                    self.shared = True
                    continue
                self._starts[folder] = inside + name
            elif self._selection.flat and folder in self._starts:
                self.shared = True
                continue
            yield folder, inside + name

    def _reached(self, folder: str) -> bool:
        """Whether a walk from one of the starts comes to the folder without a link."""
        return any(self._leads(start, below, folder) for start, below in self._starts.items())

    def _leads(self, start: str, below: str, folder: str) -> bool:
        if not folder.startswith(start.rstrip("/") + "/"):
            return False
        path = start
        for name in folder[len(start) :].strip("/").split("/"):
            if os.path.isdir(f"{path}/{LOG_FOLDER}"):
                return False
            below = f"{below}/{name}" if below else name
            path = f"{path.rstrip('/')}/{name}"
            if path in self._starts:
                # From there on it is that start's walk.
                return False
            if not self._selection.enters(below):
                return False
        return True


def _target(link: str) -> str:
    """Where a link leads; itself where nobody may know, which listing it will tell."""
    try:
        return os.path.realpath(link)
    except OSError:
        return link


def _folders(path: str) -> list[tuple[str, bool]]:
    """The names of a folder's folders, and whether each is a link."""
    with os.scandir(path) as entries:
        return [(entry.name, entry.is_symlink()) for entry in entries if _is_folder(entry)]


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
