"""The user, machine and process that run deltaproto."""

from __future__ import annotations

import getpass
import os
import socket
from typing import NamedTuple


class Actor(NamedTuple):
    """The acting user, machine and process."""

    actor: str
    host: str
    pid: int


def current_actor() -> Actor:
    """Return the current user, machine and process."""
    try:
        actor = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # The user has no passwd entry (containers), or the system has no passwd database (Windows).
        actor = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return Actor(actor, socket.gethostname(), os.getpid())


def find_other_owner(path: str) -> str | None:
    """Return the user who owns a file or folder; None if it is the current one, or unknown."""
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return None
    if not hasattr(os, "getuid") or owner == os.getuid():
        return None
    import pwd

    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return f"with the id {owner}"


def user_cache_folder() -> str:
    """Return the folder for caches of the current user, which may not exist."""
    import platformdirs

    try:
        return platformdirs.user_cache_dir("deltaproto")
    except RuntimeError:
        # Containers may run a user without HOME and passwd entry; others set HOME to /.
        return "/.cache/deltaproto"
