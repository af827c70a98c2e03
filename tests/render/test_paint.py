"""Plain text: durations, runs, and names that a terminal must not obey."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.render.plan_words import size
from deltaproto.render.terminal import Painter, cut, duration, run_length, single_line


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (24, "24 h"),
        (23.0006, "23 h 1 min"),
        (0.5, "30 min"),
        (0, "0 min"),
        (720, "30 d"),
        (100, "4 d 4 h"),
        (1 / 3600, "1 min"),
    ],
)
def test_durations(hours: float, said: str) -> None:
    assert duration(hours) == said


def test_runs_are_counted() -> None:
    assert run_length(["a", "b", "b", "b", "a"]) == "a, 3 x b, a"
    assert run_length([]) == ""


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes(number: int, said: str) -> None:
    assert size(number) == said


@given(st.text())
def test_folded_text_holds_every_word_and_no_control_character(text: str) -> None:
    file = io.StringIO()
    Painter(file, color=True).folded(text, "31", first="  ", whole_words=True)
    shown = file.getvalue()
    assert "\x1b" not in shown
    assert shown.split() == single_line(text).split()


@given(st.text(), st.integers(20, 100))
def test_long_words_are_cut_and_nothing_is_lost(text: str, width: int) -> None:
    made = cut(single_line(text) * 30, width)
    assert made.replace(" ", "") == (single_line(text) * 30).replace(" ", "")
    assert all(len(word) <= width for word in made.split(" "))


def test_settings_are_cut_after_a_dot() -> None:
    name = "spark.databricks.delta.properties.defaults.enableRowTracking"
    assert cut(f"set {name} first", 40).split() == [
        "set",
        "spark.databricks.delta.properties.",
        "defaults.enableRowTracking",
        "first",
    ]
