"""Finding tables on a local or mounted disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.found import Found, Selection, Unseen
from deltaproto.tables.storage.local import LOG_FOLDER


def tables_under(root: str, selection: Selection) -> Iterator[Found | Unseen]:
    """Every table at or below the absolute path `root`, in the order of their names.

    A folder that holds a `_delta_log` is a table; nothing in it is listed, whatever it holds.
    Links to folders are followed, each target once; what lies there goes by its real path, so that
    a table may come twice under one path.
    """
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
    entered = {root}
    pending = [(root, "")]
    while pending:
        path, below = pending.pop()
        if os.path.isdir(f"{path}/{LOG_FOLDER}"):
            if selection.takes(below):
                yield Found(path, path)
            continue
        try:
            folders = sorted(_folders(path), reverse=True)
        except OSError as error:
            yield Unseen(path, _unreadable(path, error))
            continue
        inside = f"{below}/" if below else ""
        for name, link in folders:
            if not selection.enters(inside + name):
                continue
            folder = f"{path.rstrip('/')}/{name}"
            if link:
                folder = os.path.realpath(folder)
                if folder in entered:
                    continue
                entered.add(folder)
            pending.append((folder, inside + name))


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
