"""Times in a runbook."""

from __future__ import annotations

from deltaproto.render.plan_json import stamp


def when(seconds: float | None) -> str:
    """Return a time in the notation of a calendar."""
    return (stamp(seconds) or "").replace("T", " ").replace("Z", " UTC")
