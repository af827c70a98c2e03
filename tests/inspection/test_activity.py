"""Who writes, how often, and what a change would meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.inspection.activity import build_forecast, summarize_commits
from deltaproto.tables.log.commits import Commit
from tests.support.contract import validate
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Any]
MINUTE = 60_000
HOUR = 60 * MINUTE
TIMES = st.lists(st.integers(0, 10 * HOUR), min_size=2, max_size=40).map(sorted)


def commit(version: int, time: int | None, operation: str = "WRITE", **fields: Any) -> Commit:
    stamp = {} if time is None else {"timestamp": time}
    transactions = tuple(fields.pop("transactions", ()))
    info = {"operation": operation, "engineInfo": "Spark", **stamp, **fields}
    return Commit(version, info, None, None, transactions)


def brute_force(times: list[int], minutes: float) -> tuple[float, float]:
    """Mean commits and share of empty windows, from windows at many places."""
    width = int(minutes * MINUTE)
    last = times[-1] - width
    places = [times[0] + (last - times[0]) * i / 20_000 for i in range(20_001)]
    held = [sum(start <= time < start + width for time in times) for start in places]
    return sum(held) / len(held), sum(count == 0 for count in held) / len(held)


@given(st.lists(st.integers(0, 300), min_size=3, max_size=6), st.sampled_from([1, 7, 30]))
def test_the_forecast_is_what_windows_everywhere_would_hold(minutes: list[int], width: int) -> None:
    times = sorted(minute * MINUTE for minute in minutes)
    found = build_forecast(times, width)
    if found is None:
        assert times[-1] - times[0] < width * MINUTE
        return
    if times[-1] - times[0] == width * MINUTE:
        return
    expected, free = brute_force(times, width)
    assert found.expected == pytest.approx(expected, abs=0.05)
    assert found.free == pytest.approx(free, abs=0.05)


@given(TIMES, st.floats(0.1, 300))
def test_the_forecast_keeps_its_bounds(times: list[int], minutes: float) -> None:
    found = build_forecast(times, minutes)
    if found is not None:
        assert 0 <= found.expected <= found.most <= len(times)
        assert 0 <= found.free <= 1


@given(TIMES, st.integers(-(10**12), 10**12))
def test_activity_does_not_depend_on_the_date(times: list[int], shift: int) -> None:
    here = summarize_commits(commit(n, time) for n, time in enumerate(times))
    there = summarize_commits(commit(n, time + shift) for n, time in enumerate(times))
    assert here.longest_gap == there.longest_gap
    assert build_forecast(here.times, 5) == build_forecast(there.times, 5)
    assert here.writers[0].typical_gap == there.writers[0].typical_gap


def test_writers_are_told_apart_by_engine_and_operation() -> None:
    activity = summarize_commits(
        [
            commit(4, 50 * MINUTE, "MERGE"),
            commit(3, 40 * MINUTE, isBlindAppend=True),
            commit(2, 20 * MINUTE, isBlindAppend=True),
            commit(1, 10 * MINUTE, isBlindAppend=True),
            commit(0, None, "CREATE TABLE"),
        ]
    )
    first = activity.writers[0]
    assert (first.operation, first.commits, first.blind_appends) == ("WRITE", 3, 3)
    assert first.typical_gap == 20 * MINUTE
    assert activity.longest_gap == 20 * MINUTE
    assert len(activity.writers) == 3


def test_streams_show_their_last_batch() -> None:
    activity = summarize_commits(
        [
            commit(2, 3 * MINUTE, "STREAMING UPDATE", transactions=[("a", 8)]),
            commit(1, 2 * MINUTE, "STREAMING UPDATE", transactions=[("b", 3)]),
            commit(0, 1 * MINUTE, "STREAMING UPDATE", transactions=[("a", 7)]),
        ]
    )
    assert [(s.app_id, s.last_batch) for s in activity.streams] == [("a", 8), ("b", 3)]


@pytest.mark.parametrize(
    ("clusters", "severity"),
    [
        (["one", "two", "one"], "warning"),
        (["one", "one", "two", "three", "two"], "warning"),
        (["one", "one", "two"], "info"),
        (["one", "one"], None),
        ([None, "one", None, 7], None),
        ([], None),
    ],
)
def test_a_stream_on_two_clusters_is_a_finding(
    log: Log, cli: Cli, clusters: list[Any], severity: str | None
) -> None:
    log.commit(0, commit_info("CREATE TABLE", timestamp=1_000), protocol(1, 2), metadata())
    for number, cluster in enumerate(clusters, 1):
        info = commit_info("STREAMING UPDATE", timestamp=number * MINUTE, clusterId=cluster)
        txn = {"txn": {"appId": "query-7", "version": number}}
        log.commit(number, info, txn, add(f"{number}.parquet"))
    ran = cli("inspect", log.table, "--activity", "--format", "json")
    validate("inspect", ran.json)
    table = ran.json["tables"][0] if "tables" in ran.json else ran.json
    found = [each for each in table["findings"] if each["rule"] == "DP122"]
    assert [each["severity"] for each in found] == ([] if severity is None else [severity])
    if severity is not None:
        assert "query-7" in found[0]["message"]
        assert "one" in found[0]["message"]
        assert cli("inspect", log.table, "--activity", "--fail-on", "warning").code == (
            1 if severity == "warning" else 0
        )


def test_the_levels_that_commits_recorded_are_counted() -> None:
    rewrite = commit(2, 2 * MINUTE, "OPTIMIZE", isolationLevel="SnapshotIsolation")
    write = commit(1, MINUTE, isolationLevel="Serializable")
    odd = commit(0, 0, isolationLevel=7)
    assert summarize_commits([rewrite, write, odd]).levels == (
        ("Serializable", 1),
        ("SnapshotIsolation", 1),
    )


def test_the_quiet_hour_needs_two_days_of_log() -> None:
    day = 24 * HOUR
    busy = [
        commit(n, d * day + hour * HOUR)
        for n, (d, hour) in enumerate((d, h) for d in range(3) for h in range(24) if h != 4)
    ]
    quiet = summarize_commits(busy).quiet_hour
    assert quiet is not None
    assert (quiet.hour, quiet.commits_per_day) == (4, 0)
    assert summarize_commits(busy[:20]).quiet_hour is None
    assert summarize_commits([]).quiet_hour is None


def test_inspect_shows_it(log: Log, cli: Cli) -> None:
    log.commit(0, commit_info("CREATE TABLE", timestamp=0), protocol(1, 2), metadata())
    for version in range(1, 20):
        txn = {"txn": {"appId": "query", "version": version}}
        info = commit_info("STREAMING UPDATE", timestamp=version * MINUTE, engineInfo="Spark")
        log.commit(version, info, txn, add())
    ran = cli("inspect", log.table, "--activity", "--format", "json")
    validate("inspect", ran.json)
    activity = ran.table["activity"]
    assert activity["commits"] == 20
    assert activity["streams"] == [
        {
            "app_id": "query",
            "last_batch": 19,
            "last_version": 19,
            "last_time": "1970-01-01T00:19:00Z",
            "clusters": [],
        }
    ]
    assert activity["writers"][0]["typical_gap_seconds"] == 60
    assert [found["minutes"] for found in activity["forecast"]] == [1, 5, 15]
    assert activity["forecast"][1]["expected"] == pytest.approx(5, abs=0.2)
    text = cli("inspect", log.table, "--activity").out
    assert "stream query wrote batch 19 last" in text
    assert "a change of 5 min would meet" in text
    assert "activity" not in cli("inspect", log.table, "--format", "json").table
    assert "query" in cli("inspect", log.table, "--activity", "--format", "markdown").out
