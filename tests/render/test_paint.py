"""Plain text: durations, runs, and names that a terminal must not obey."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.render.plan_words import size
from deltaproto.render.terminal import (
    Overlong,
    Painter,
    cut,
    duration,
    run_length,
    single_line,
    width_of,
    wrap,
)


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


@given(st.text(st.sampled_from("ab /.,é…日本語한🎉\u0301\ue000")), st.integers(20, 60))
def test_lines_are_as_wide_as_terminals_show_them(text: str, width: int) -> None:
    for overlong in (Overlong.CUT, Overlong.FILL):
        lines = wrap(single_line(text), width, overlong)
        assert "".join("".join(lines).split()) == "".join(single_line(text).split())
        if "\ue000" not in text:
            assert all(width_of(line) <= width for line in lines)


def test_a_wide_character_counts_as_two_columns() -> None:
    words = "日本語の表 日本語の表"
    assert wrap(words, 21, Overlong.CUT) == [words]
    assert wrap(words, 20, Overlong.CUT) == words.split()
    assert wrap("x" + "日" * 15, 20, Overlong.FILL) == ["x" + "日" * 9, "日" * 6]
    assert wrap("日" * 15, 20, Overlong.KEEP) == ["日" * 15]


def test_settings_are_cut_after_a_dot() -> None:
    name = "spark.databricks.delta.properties.defaults.enableRowTracking"
    assert cut(f"set {name} first", 40).split() == [
        "set",
        "spark.databricks.delta.properties.",
        "defaults.enableRowTracking",
        "first",
    ]
