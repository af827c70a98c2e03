"""When maintenance windows are open, by the clock of their zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.openings import is_open, next_opening


def window(days: list[int], start: str, end: str, timezone: str = "UTC") -> Window:
    def minutes(text: str) -> int:
        hour, minute = text.split(":")
        return int(hour) * 60 + int(minute)

    return Window(tuple(days), minutes(start), minutes(end), timezone, Position(1, 1))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SATURDAY = window([5], "22:00", "04:00")
PARIS = window([0, 1, 2, 3, 4, 5, 6], "22:00", "23:00", "Europe/Paris")


@pytest.mark.parametrize(
    ("each", "moment", "open_"),
    [
        (SATURDAY, "2026-11-21T21:59", False),
        (SATURDAY, "2026-11-21T22:00", True),
        (SATURDAY, "2026-11-22T03:59", True),
        (SATURDAY, "2026-11-22T04:00", False),
        (SATURDAY, "2026-11-22T22:30", False),
        (PARIS, "2026-01-10T21:30", True),
        (PARIS, "2026-01-10T20:30", False),
        (PARIS, "2026-07-10T20:30", True),
        (PARIS, "2026-07-10T21:30", False),
        (window([0], "00:00", "24:00"), "2026-11-23T23:59", True),
        (window([0], "00:00", "24:00"), "2026-11-24T00:00", False),
    ],
)
def test_open_or_not(each: Window, moment: str, open_: bool) -> None:
    assert is_open([each], at(moment)) is open_


def test_the_next_opening_is_the_nearest() -> None:
    both = [SATURDAY, window([2], "01:00", "02:00")]
    assert next_opening(both, at("2026-11-22T05:00")) == at("2026-11-25T01:00")
    assert next_opening(both, at("2026-11-25T01:00")) == at("2026-11-28T22:00")
    assert next_opening([], at("2026-11-25T01:00")) is None


@given(
    st.lists(st.integers(0, 6), min_size=1, unique=True),
    st.integers(0, 1439),
    st.integers(1, 1440),
    st.sampled_from(["UTC", "Europe/Paris", "Asia/Kolkata", "America/St_Johns"]),
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),
)
def test_at_the_next_opening_it_is_open_and_just_before_it_another_may_be(
    days: list[int], start: int, end: int, timezone: str, moment: datetime
) -> None:
    if start == end:
        return
    each = Window(tuple(sorted(days)), start, end, timezone, Position(1, 1))
    now = moment.replace(tzinfo=UTC)
    coming = next_opening([each], now)
    assert coming is not None
    assert now < coming <= now + timedelta(days=8)
    # Where clocks go forward, a window of that hour has no length.
    assert is_open([each], coming) or timezone != "UTC"
