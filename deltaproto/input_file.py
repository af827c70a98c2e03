"""Opens files that the user names: policies, plans, saved results, lists."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

from deltaproto.errors import UsageError

SETTINGS_FILE = "deltaproto.yaml"
"""settings of a folder, for the commands that run in it"""
_INHERITED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""paths of pipes that a shell passes, as in `--policy <(command)`"""


def open_input(path: str | Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        OSError: also for a folder, a device or a named pipe, which may never end or never begin.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        passed = stat.S_ISFIFO(mode) and str(path).startswith(_INHERITED)
        if not stat.S_ISREG(mode) and not passed:
            raise OSError(errno.EINVAL, "not a regular file", path)
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def require_input(path: str, hint: str = "check the path") -> IO[bytes]:
    """Open a file for reading. `hint` is the hint of the error.

    Raises:
        UsageError: if `open_input` cannot open it.
    """
    try:
        return open_input(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint) from None
