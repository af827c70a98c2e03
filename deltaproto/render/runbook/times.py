"""Times in a runbook."""

from __future__ import annotations

from deltaproto.render.interface import stamp


def when(seconds: float | None) -> str:
    """Return a time as `YYYY-MM-DD HH:MM:SS UTC`; empty for None."""
    return (stamp(seconds) or "").replace("T", " ").replace("Z", " UTC")
