"""Records that are only appended to: a line of JSON each, on disk before anything else is done."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = ".deltaproto"
"""where records and ways back are kept, beside the plan files"""
JOURNAL, AUDIT, WAY_BACK = ".journal.jsonl", "audit.jsonl", ".undo.json"
KEPT = (JOURNAL, AUDIT, WAY_BACK)
"""how the names of what is kept there end"""


def refusal(path: Path) -> str | None:
    """Why nothing can be appended to the file at `path`, or None; nothing is made there."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        place = path
        while not os.path.lexists(place):
            place = place.parent
        if place != path and not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        return error.strerror
    wanted = os.W_OK if place == path else os.W_OK | os.X_OK
    return None if os.access(place, wanted) else os.strerror(errno.EACCES)


def opened(path: Path, mode: int) -> int:
    """The file, to be appended to; a line that a crash has cut off is ended.

    Raises:
        OSError: when it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_off = _cut_off(path)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    if cut_off:
        os.write(file, b"\n")
    return file


def _cut_off(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"
    except OSError:
        # It is empty, or may be written and not read.
        return False


def append(file: int, members: Mapping[str, Any]) -> None:
    """One line, written at once, as several processes may append to one file.

    Raises:
        OSError: when there is no room for it, or the disk fails.
    """
    line = (json.dumps(members) + "\n").encode()
    if os.write(file, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)
