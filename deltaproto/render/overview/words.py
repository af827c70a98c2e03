"""Helpers shared by the report's chapters."""

from __future__ import annotations

from urllib.parse import urlencode

from deltaproto.render.interface import escape_control_chars


def versions(pair: tuple[int, int]) -> str:
    """Return a protocol version as text."""
    return f"({pair[0]},{pair[1]})"


def query(**values: str) -> str:
    """Return a link to the list of tables, filtered by these values."""
    return "tables?" + urlencode(
        {name: escape_control_chars(value) for name, value in values.items()}
    )
