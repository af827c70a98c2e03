"""Who runs this, for records."""

from __future__ import annotations

import getpass
import os
import socket
from typing import NamedTuple


class Whoami(NamedTuple):
    """The process that acts."""

    actor: str
    host: str
    pid: int


def current_actor() -> Whoami:
    """Name of the user, of the machine, and the process."""
    try:
        actor = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # No entry for the process's user, as in a container, or no such list, as on Windows.
        actor = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return Whoami(actor, socket.gethostname(), os.getpid())
