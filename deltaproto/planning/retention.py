"""How long history stays: the table properties, and Delta's intervals."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.protocol.intervals import parse_interval

TRUNCATION = "delta.dropFeatureTruncateHistory.retentionDuration"
"""how old history is that DROP FEATURE … TRUNCATE HISTORY deletes"""
LOG = "delta.logRetentionDuration"
"""how old history is that every checkpoint deletes"""
_DEFAULT = {TRUNCATION: "interval 24 hours", LOG: "interval 30 days"}
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
