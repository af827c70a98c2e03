"""When maintenance windows are open. Pure: the time is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from deltaproto.policy.document.model import Window

_WEEK = 8
"""days to look ahead: a weekly window begins within seven"""


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Whether any of the windows is open; `now` has a time zone."""
    return any(start <= now < end for window in windows for start, end in _around(window, now))


def next_opening(windows: Iterable[Window], now: datetime) -> datetime | None:
    """When the next window opens, in UTC; None without windows."""
    starts = (start for window in windows for start, _ in _around(window, now) if start > now)
    found = min(starts, default=None)
    return None if found is None else found.astimezone(UTC)


def _around(window: Window, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Beginnings and ends from the day before to a week ahead, by the clock of its zone."""
    zone = _zone(window.timezone)
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for days in range(-1, _WEEK):
        day = today + timedelta(days=days)
        if day.weekday() not in window.days:
            continue
        over = 0 if window.end > window.start else 1
        start = day + timedelta(minutes=window.start)
        end = day + timedelta(days=over, minutes=window.end)
        yield start.replace(tzinfo=zone), end.replace(tzinfo=zone)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    import zoneinfo

    return zoneinfo.ZoneInfo(name)
