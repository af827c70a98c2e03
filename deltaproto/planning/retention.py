"""How long history stays: the table properties, and Delta's intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

TRUNCATION = "delta.dropFeatureTruncateHistory.retentionDuration"
"""how old history is that DROP FEATURE … TRUNCATE HISTORY deletes"""
LOG = "delta.logRetentionDuration"
"""how old history is that every checkpoint deletes"""
_DEFAULT = {TRUNCATION: "interval 24 hours", LOG: "interval 30 days"}
_HOURS = {
    "week": 168.0,
    "day": 24.0,
    "hour": 1.0,
    "minute": 1 / 60,
    "second": 1 / 3600,
    "millisecond": 1 / 3_600_000,
    "microsecond": 1 / 3_600_000_000,
}
_MONTHS = {"year": 12, "month": 1}
_UNIT = "|".join((*_HOURS, *_MONTHS))
_PART = re.compile(rf"([+-]?\s*\d{{1,19}})\s+({_UNIT})s?\b")
_INTERVAL = re.compile(rf"(?:interval\s+)?({_PART.pattern}(?:\s+{_PART.pattern})*)")
_UNREADABLE = 24.0


def setting(configuration: Mapping[str, str], key: str) -> str:
    """The property in force."""
    return configuration.get(key) or _DEFAULT[key]


def hours(configuration: Mapping[str, str], key: str) -> float:
    """The property in force, in hours."""
    return interval_hours(setting(configuration, key))


def interval_hours(interval: str) -> float:
    """A Delta interval (`interval 1 day 12 hours`) in hours; 24 for one that cannot be read."""
    parsed = parse_interval(interval)
    return _UNREADABLE if parsed is None or parsed.months else parsed.hours


class Interval(NamedTuple):
    """A calendar interval as Spark parses it."""

    months: int
    hours: float


def parse_interval(text: str) -> Interval | None:
    """`interval 1 day 12 hours`, with or without its first word; None when it is none."""
    text = text.strip().lower()
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return None
    months, hours = 0, 0.0
    for number, unit in _PART.findall(found[1]):
        amount = int(number.replace(" ", ""))
        months += amount * _MONTHS.get(unit, 0)
        hours += amount * _HOURS.get(unit, 0.0)
    return Interval(months, hours)
