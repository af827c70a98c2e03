"""Maintenance windows: days, times and time zone."""

from __future__ import annotations

import re

from deltaproto.policy.document import reader
from deltaproto.policy.document.errors import Fault, parse_each, quote_short
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.source import Node, Scalar

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAILY = "daily"
_UTC = "UTC"
_FIELDS = ("days", "from", "to", "timezone")


def parse_windows(node: Node) -> tuple[Window, ...]:
    """Parse a list of windows.

    Raises:
        Fault: an invalid day, time or zone, or an empty window.
    """
    return parse_each(_parse_window, reader.read_items(node, "a list of windows"))


def _parse_window(node: Node) -> Window:
    values = reader.read_fields(node, _FIELDS, required=("days", "from", "to"))
    start, end = _parse_minutes(values["from"], 24 * 60 - 1), _parse_minutes(values["to"], 24 * 60)
    if start == end:
        raise Fault(
            "a window without length", 'the whole day is from "00:00" to "24:00"', node.position
        )
    return Window(
        days=_parse_days(values["days"]),
        start=start,
        end=end,
        timezone=_parse_zone(values["timezone"]) if "timezone" in values else _UTC,
        position=node.position,
    )


def _parse_days(node: Node) -> tuple[int, ...]:
    if isinstance(node, Scalar) and reader.scalar_kind(node) is reader.ScalarKind.TEXT:
        if node.text == _DAILY:
            return tuple(range(len(DAYS)))
        raise reader.unexpected_node(node, "daily or a list of days", "write daily, or [mon, tue]")
    return tuple(sorted(DAYS.index(day) for day in reader.read_names(node, "day", DAYS)))


def _parse_minutes(node: Node, most: int) -> int:
    """Minutes after midnight. A plain 22:00 is a number in YAML, but is accepted as a time."""
    if isinstance(node, Scalar):
        parts = re.fullmatch(r"([0-9]{1,2}):([0-5][0-9])", node.text)
        if parts and (minutes := int(parts[1]) * 60 + int(parts[2])) <= most:
            return minutes
    raise reader.unexpected_node(node, 'a time such as "22:00"')


def _parse_zone(node: Node) -> str:
    name = reader.read_text(node, "a time zone such as Europe/Berlin")
    if name == _UTC:
        return name
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        if not known:
            raise Fault(
                "this computer has no time zone data", "install the package tzdata", node.position
            ) from None
        raise Fault(
            f"unknown time zone {quote_short(name)}",
            reader.nearest_hint(name, known),
            node.position,
        ) from None
    return name
