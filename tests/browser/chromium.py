"""Where Chromium is. As a script: prints it, and fails where there is none."""

from __future__ import annotations

import os
import shutil
import sys

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A closed network would otherwise refuse it one connection after the other.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """The path of the browser; `CHROMIUM` names another."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


if __name__ == "__main__":
    print(chromium() or "")
    sys.exit(0 if chromium() else 1)
