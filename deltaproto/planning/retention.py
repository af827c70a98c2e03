"""How long history stays: the table properties, and Delta's intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping

TRUNCATION = "delta.dropFeatureTruncateHistory.retentionDuration"
"""how old history is that DROP FEATURE … TRUNCATE HISTORY deletes"""
LOG = "delta.logRetentionDuration"
"""how old history is that every checkpoint deletes"""
_DEFAULT = {TRUNCATION: "interval 24 hours", LOG: "interval 30 days"}
_HOURS = {"week": 168.0, "day": 24.0, "hour": 1.0, "minute": 1 / 60, "second": 1 / 3600}
_UNREADABLE = 24.0


def setting(configuration: Mapping[str, str], key: str) -> str:
    """The property in force."""
    return configuration.get(key) or _DEFAULT[key]


def hours(configuration: Mapping[str, str], key: str) -> float:
    """The property in force, in hours."""
    return interval_hours(setting(configuration, key))


def interval_hours(interval: str) -> float:
    """A Delta interval (`interval 1 day 12 hours`) in hours; 24 for one that cannot be read."""
    found = re.findall(r"(\d+)\s*([a-z]+?)s?\b", interval.lower().removeprefix("interval"))
    known = [int(number) * _HOURS[unit] for number, unit in found if unit in _HOURS]
    return sum(known) if known and len(known) == len(found) else _UNREADABLE
