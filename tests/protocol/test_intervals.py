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
        ("+1 day 2 milliseconds 3 microseconds", Interval(0, 1, 2_003)),
        ("interval 2 hours 3 minutes 4 seconds", Interval(0, 0, 7_384 * _SECOND)),
        ("interval 2147483647 months 2147483647 days", Interval(2**31 - 1, 2**31 - 1, 0)),
        ("interval 2147483648 months", None),
        ("interval -178956970 years -8 months", Interval(-(2**31), 0, 0)),
        ("interval -178956970 years -9 months", None),
        ("interval -2147483649 days", None),
        ("interval 9223372036854775807 microseconds", Interval(0, 0, 2**63 - 1)),
        ("interval 9223372036854775808 microseconds", None),
        ("interval -9223372036854775808 microseconds", Interval(0, 0, -(2**63))),
        ("interval -9223372036854775808 microseconds -1 microsecond", None),
        ("interval 1.123456789 seconds", Interval(0, 0, 1_123_456)),
        ("interval 1.1234567891 seconds", None),
        (f"interval {'1' * 20} microseconds", None),
        ("interval 3. seconds", Interval(0, 0, 3 * _SECOND)),
        ("interval 1 days2 hours", None),
    ],
)
def test_an_interval(text: str, interval: Interval | None) -> None:
    assert parse_interval(text) == interval


def test_hours() -> None:
    found = parse_interval("interval 1 month 2 days 90 minutes")
    assert found is not None
    assert found.hours == 49.5


def test_too_many_days_overflow() -> None:
    assert Interval(0, 106_751_991, 0).hours == 106_751_991 * 24
    assert Interval(0, 106_751_992, 0).hours < 0
    assert Interval(0, 0, 2**63 - 1).hours > 0
