"""Delta's intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.planning.engine import parse_engine
from deltaproto.planning.predict.properties import (
    TRUNCATION_RETENTION,
    effective_value,
    interval_hours,
    retention_hours,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.goals import FeaturesAbsent, HistoryChoice
from deltaproto.planning.search.route import retention_wait
from deltaproto.planning.search.search import SearchTask, find_solutions
from deltaproto.planning.statement import DropFeature, Wait
from deltaproto.protocol.protocol import Protocol


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
    assert effective_value({}, TRUNCATION_RETENTION) == "interval 24 hours"
    assert retention_hours({TRUNCATION_RETENTION: "interval 2 days"}, TRUNCATION_RETENTION) == 48


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    assert interval_hours(text) >= 0


# Delta counts the retention from a full minute.
@pytest.mark.parametrize(
    ("left", "expected"),
    [(None, 24), (5.0, 5), (23.5, 23.5), (24.01, 24.01), (30.5, 24 + 1 / 60)],
)
def test_no_more_is_waited_than_is_left(left: float | None, expected: float) -> None:
    assert retention_wait(Table(Protocol(1, 2)), TRUNCATION_RETENTION, left).hours == pytest.approx(
        expected
    )


def test_what_is_left_of_a_wait_stays_when_a_checkpoint_ends_the_run() -> None:
    traced = frozenset({"deletionVectors", "v2Checkpoint"})
    table = Table(Protocol(1, 2), traced=traced, hours_left={"v2Checkpoint": 5.0})
    assert table.ended(24).hours_left == {"v2Checkpoint": 5.0, "deletionVectors": 24}


@pytest.mark.parametrize(
    ("left", "ahead", "hours"),
    [(None, 0, 24), (5.0, 0, 5), (None, 72, 96), (96.0, 72, 96), (5.0, 72, 5)],
)
def test_a_plan_waits_for_what_is_left(left: float | None, ahead: float, hours: float) -> None:
    """Where it is not known, a call comes first, as it leaves a checkpoint that history needs.

    Where files of the log are ahead of the clock, newer ones expire that much later.
    """
    feature = "v2Checkpoint"
    table = Table(
        Protocol.carrying({feature}),
        vectors=False,
        widened=False,
        v2_checkpoint=False,
        row_ids=False,
        traced=frozenset({feature}),
        hours_left={} if left is None else {feature: left},
        hours_ahead=ahead,
    )
    task = SearchTask(
        table,
        FeaturesAbsent(frozenset({feature})),
        parse_engine("delta-spark@4.4.0"),
        history=HistoryChoice.TRUNCATE,
    )
    (found, *_) = find_solutions(task)
    waits = [m.statement.hours for m in found.predictions if isinstance(m.statement, Wait)]
    calls = [m.statement for m in found.predictions if isinstance(m.statement, DropFeature)]
    assert waits == [hours]
    assert calls == [DropFeature(feature, truncate=True)] * (2 if left is None else 1)


@pytest.mark.parametrize("left", [{}, {"v2Checkpoint": 5.0}])
def test_without_truncation_history_goes_as_the_log_does(left: dict[str, float]) -> None:
    """A drop of Delta 3 deletes nothing early: what a truncation still waits for is too little."""
    feature = "v2Checkpoint"
    table = Table(
        Protocol.carrying({feature}),
        vectors=False,
        v2_checkpoint=False,
        traced=frozenset({feature}),
        hours_left=left,
    )
    task = SearchTask(
        table,
        FeaturesAbsent(frozenset({feature})),
        parse_engine("delta-spark@3.3.0"),
        history=HistoryChoice.KEEP,
    )
    (found, *_) = find_solutions(task)
    assert [m.statement.hours for m in found.predictions if isinstance(m.statement, Wait)] == [720]


@pytest.mark.parametrize("interval", ["interval -1 day", "-5 weeks", "interval 110000000 days"])
def test_what_only_other_engines_store_retains_nothing(interval: str) -> None:
    assert interval_hours(interval) == 0
