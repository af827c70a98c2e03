"""Compute when maintenance windows are open. Pure: the time is a parameter.

A window is open whenever the wall clock of its zone is inside it. When clocks go forward, the
skipped times never occur: `02:30-03:30` opens when the clock jumps to 03:00, and a window that lies
entirely in the gap does not open that day. When clocks go back, times repeat: `02:15-02:45` opens
twice, and `22:00-02:30` closes and opens again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from deltaproto.policy.document.model import Window

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
