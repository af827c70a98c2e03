"""Append-only record files: one line of JSON per record, on disk before execution continues."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATE_FOLDER = ".deltaproto"
"""folder of journals and undo plans, next to the plan files"""
JOURNAL_SUFFIX, AUDIT_FILE, UNDO_SUFFIX = ".journal.jsonl", "audit.jsonl", ".undo.json"
RECORD_SUFFIXES = (JOURNAL_SUFFIX, AUDIT_FILE, UNDO_SUFFIX)
"""file name endings in that folder"""


def find_append_obstacle(path: Path) -> str | None:
    """Return why nothing can be appended to the file at `path`, or None. Creates nothing."""
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


def open_for_append(path: Path, mode: int) -> int:
    """Open the file for appending; a line truncated by a crash is terminated.

    Raises:
        OSError: when the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_off = _ends_mid_line(path)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    if cut_off:
        os.write(file, b"\n")
    return file


def _ends_mid_line(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"
    except OSError:
        # The file is empty, or it is writable but not readable.
        return False


def append(file: int, members: Mapping[str, Any]) -> None:
    """Append one line with a single write, as several processes may append to one file.

    Raises:
        OSError: when the disk is full or fails.
    """
    line = (json.dumps(members) + "\n").encode()
    if os.write(file, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)
