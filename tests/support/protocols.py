"""Protocols in a line of text."""

from __future__ import annotations

from deltaproto.protocol.protocol import Protocol


def changed(before: Protocol, after: Protocol) -> str:
    """Both, with the features that come and go."""
    gone = sorted(before.supported - after.supported)
    new = sorted(after.supported - before.supported)
    words = (*(f"-{name}" for name in gone), *(f"+{name}" for name in new))
    return " ".join((f"{before} -> {after}", *words))
