"""Intervals as Spark parses them."""

from __future__ import annotations

import pytest

from deltaproto.protocol.intervals import Interval, parse_interval

_SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("interval 1 week", Interval(0, 7, 0)),
        ("30 days", Interval(0, 30, 0)),
        ("INTERVAL 1 Year -2 months", Interval(10, 0, 0)),
        ("interval 1.5 seconds", Interval(0, 0, 3 * _SECOND // 2)),
        ("interval -1.5 seconds", Interval(0, 0, -3 * _SECOND // 2)),
        ("interval -.25 second", Interval(0, 0, -_SECOND // 4)),
        ("interval - 2 hours 1 minute", Interval(0, 0, -7_140 * _SECOND)),
        ("interval 0.0000019 seconds", Interval(0, 0, 1)),
        ("interval 1.5 hours", None),
        ("interval . seconds", None),
        ("interval 1", None),
        ("interval 1 fortnight", None),
        ("interval 2147483648 days", None),
        ("interval -2147483648 days", Interval(0, -(2**31), 0)),
        ("", None),
    ],
)
def test_an_interval(text: str, interval: Interval | None) -> None:
    assert parse_interval(text) == interval


def test_hours() -> None:
    found = parse_interval("interval 1 month 2 days 90 minutes")
    assert found is not None
    assert found.hours == 49.5
