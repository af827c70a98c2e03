"""When maintenance windows are open, by the clock of their zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.windows import is_open, next_closing, next_opening


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
    assert is_open([each], coming)


# A zone, and the UTC day on which its clock changes: forward and back, by an hour, by half an hour
# and by a whole day, around midnight, in both hemispheres, and never.
CHANGES = [
    ("Europe/Paris", "2026-03-29"),
    ("Europe/Paris", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("America/St_Johns", "2026-03-08"),
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Australia/Lord_Howe", "2026-10-03"),
    ("America/Santiago", "2026-09-06"),
    ("America/Santiago", "2026-04-05"),
    ("Africa/Cairo", "2026-04-23"),
    ("Asia/Beirut", "2026-03-28"),
    ("Pacific/Apia", "2011-12-30"),
    ("Asia/Kolkata", "2026-03-29"),
    ("UTC", "2026-03-29"),
]
TIMES = [
    ("02:30", "03:30"), ("22:00", "02:30"), ("02:15", "02:45"), ("00:00", "24:00"),
    ("23:30", "00:30"), ("00:00", "01:00"), ("02:00", "03:00"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_windows_follow_the_wall_clock_minute_by_minute(zone: str, day: str) -> None:
    """The reference writes down, minute by minute, what the clock on the wall shows."""
    begin = at(f"{day}T00:00") - timedelta(hours=14)
    minutes = [begin + timedelta(minutes=number) for number in range(42 * 60)]
    walls = [each.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for each in minutes]
    one_day = [walls[len(walls) // 2].weekday()]
    for number, (start, end) in enumerate(TIMES):
        days = one_day if number % 2 else [0, 1, 2, 3, 4, 5, 6]
        each = window(days, start, end, zone)
        expected = [shows(wall, days, start, end) for wall in walls]
        assert [is_open([each], minute) for minute in minutes] == expected, (start, end)
        # An announced opening comes: the first minute at which the window is open again.
        opens = [
            n
            for n in range(1, len(minutes))
            if expected[n] and (not expected[n - 1] or f"{walls[n]:%H:%M}" == start)
        ]
        for now in range(0, len(minutes), 7 * 60 + 1):
            coming = next_opening([each], minutes[now])
            first = next((n for n in opens if n > now), None)
            if first is not None:
                assert coming == minutes[first], (start, end, minutes[now])
            elif coming is not None:
                assert coming > minutes[-1]
                assert is_open([each], coming)
            if expected[now] and False in expected[now:]:
                assert next_closing([each], minutes[now]) == minutes[expected.index(False, now)]


def shows(wall: datetime, days: list[int], start: str, end: str) -> bool:
    """Whether the wall clock shows a time in the window that began today or yesterday."""
    for back in (0, 1):
        day = wall.date() - timedelta(days=back)
        if day.weekday() in days:
            midnight = datetime(day.year, day.month, day.day)
            opens, closes = (
                midnight + timedelta(hours=int(text[:2]), minutes=int(text[3:]))
                for text in (start, end)
            )
            closes += timedelta(days=closes <= opens)
            if opens <= wall < closes:
                return True
    return False


def test_a_window_of_a_skipped_hour_opens_when_the_clock_jumps() -> None:
    paris = window([6], "02:30", "03:30", "Europe/Paris")
    assert next_opening([paris], at("2026-03-28T12:00")) == at("2026-03-29T01:00")
    assert is_open([paris], at("2026-03-29T01:29"))
    assert not is_open([paris], at("2026-03-29T01:30"))


def test_a_window_wholly_in_the_gap_opens_a_week_later() -> None:
    gap = window([6], "02:15", "02:45", "Europe/Paris")
    assert next_opening([gap], at("2026-03-28T12:00")) == at("2026-04-05T00:15")


def test_a_window_over_the_gap_ends_when_the_clock_shows_its_end() -> None:
    night = window([5], "22:00", "02:30", "Europe/Paris")
    assert is_open([night], at("2026-03-29T00:59"))
    assert not is_open([night], at("2026-03-29T01:00"))
