"""Delta's intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.planning.retention import TRUNCATION, hours, interval_hours, setting


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("interval 24 hours", 24),
        ("INTERVAL 1 week 2 days", 216),
        ("interval 0 hours", 0),
        ("90 minutes", 1.5),
        ("interval 1 day 12 hours", 36),
        ("nonsense", 24),
        ("", 24),
    ],
)
def test_hours(interval: str, expected: float) -> None:
    assert interval_hours(interval) == pytest.approx(expected)


def test_the_default_is_a_day() -> None:
    assert setting({}, TRUNCATION) == "interval 24 hours"
    assert hours({TRUNCATION: "interval 2 days"}, TRUNCATION) == 48


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    assert interval_hours(text) >= 0
