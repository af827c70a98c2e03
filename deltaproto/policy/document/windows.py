"""Maintenance windows: days, times and time zone, and when they are open. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from deltaproto.errors import quote_short
from deltaproto.policy.document import reader
from deltaproto.policy.document.errors import Fault, parse_each
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


_AHEAD = 16
"""days to search ahead: a weekly window begins within 7 days, or 14 if one is skipped"""
_STEP = timedelta(hours=6)
"""shorter than the time between two clock changes of any zone"""
_TICK = timedelta(microseconds=1)


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Return True if any window is open; `now` must have a time zone."""
    return any(_is_open(window, now, _load_zone(window.timezone)) for window in windows)


def next_opening(windows: Iterable[Window], now: datetime) -> datetime | None:
    """Return when the next window opens after `now`, in UTC; None without windows."""
    found = (opening for window in windows if (opening := _next_opening(window, now)) is not None)
    return min(found, default=None)


def next_closing(windows: Collection[Window], now: datetime) -> datetime:
    """Return the first whole minute after `now` at which no window is open, at most 16 days later.

    `now` must be in an open window.
    """
    moment, last = now.replace(second=0, microsecond=0), now + timedelta(days=_AHEAD)
    # Windows, and the gaps between them, last at least a minute.
    while moment <= now or (moment < last and is_open(windows, moment)):
        moment += timedelta(minutes=1)
    return moment


def _is_open(window: Window, now: datetime, zone: tzinfo) -> bool:
    wall = now.astimezone(zone)
    minutes = wall.hour * 60 + wall.minute
    if window.end > window.start:
        return wall.weekday() in window.days and window.start <= minutes < window.end
    yesterday = (wall.weekday() - 1) % 7
    return (wall.weekday() in window.days and minutes >= window.start) or (
        yesterday in window.days and minutes < window.end
    )


def _next_opening(window: Window, now: datetime) -> datetime | None:
    zone = _load_zone(window.timezone)
    moments = sorted({*_starts(window, now, zone), *_clock_changes(now, zone)})
    return next(
        (
            moment
            for moment in moments
            if moment > now and _is_open(window, moment, zone) and _opens_at(window, moment, zone)
        ),
        None,
    )


def _opens_at(window: Window, moment: datetime, zone: tzinfo) -> bool:
    """Return True if the window opens now. Another day's window may still be open."""
    wall = moment.astimezone(zone)
    at_start = (wall.hour * 60 + wall.minute, wall.second) == (window.start, 0)
    starts = at_start and wall.weekday() in window.days
    return starts or not _is_open(window, moment - _TICK, zone)


def _starts(window: Window, now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield both occurrences of each start time, including skipped times."""
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for days in range(-1, _AHEAD):
        day = today + timedelta(days=days)
        if day.weekday() in window.days:
            start = (day + timedelta(minutes=window.start)).replace(tzinfo=zone)
            yield start.astimezone(UTC)
            yield start.replace(fold=1).astimezone(UTC)


def _clock_changes(now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield the times at which the zone's clock changes, to the second."""
    start = now.astimezone(UTC).replace(microsecond=0)
    for number in range(_AHEAD * int(timedelta(days=1) / _STEP)):
        before, after = start + number * _STEP, start + (number + 1) * _STEP
        if before.astimezone(zone).utcoffset() == after.astimezone(zone).utcoffset():
            continue
        while after - before > timedelta(seconds=1):
            middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
            if middle.astimezone(zone).utcoffset() == before.astimezone(zone).utcoffset():
                before = middle
            else:
                after = middle
        yield after


def _load_zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    import zoneinfo

    return zoneinfo.ZoneInfo(name)
