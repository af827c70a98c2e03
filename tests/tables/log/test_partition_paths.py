"""Whether paths show the partition values of the log, and in which form timestamps are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log import checkpoint_layout, files
from deltaproto.tables.log.partition_paths import is_iso_timestamp, shows_partition_values
from deltaproto.tables.log.reader import LogReader
from tests.support.failures import each_row
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

PLAIN, ISO = "2026-01-02 03:04:05", "2026-01-02T03:04:05.000000Z"
HOUR = "at=2026-01-02%2003%253A04%253A05"
HIDDEN, ISO_TRACE, MIXED = Trace.HIDDEN_PARTITIONS, Trace.ISO_TIMESTAMPS, Trace.MIXED_TIMESTAMPS


@each_row(
    ("path", "values", "shows"),
    [
        ("f.parquet", {}, True),
        ("ab/f.parquet", {}, True),
        ("f.parquet", {"p": "1"}, False),
        ("ab/f.parquet", {"p": "1"}, False),
        ("p=1/f.parquet", {"p": "1"}, True),
        ("s3://b/t/p=1/f.parquet", {"p": "1"}, True),
        ("p=1/f.parquet", {"p": "2"}, False),
        ("p=1/q=x/f.parquet", {"p": "1", "q": "x"}, True),
        ("p=1/f.parquet", {"p": "1", "q": "x"}, False),
        ("P=1/f.parquet", {"p": "1"}, False),
        ("p=1", {"p": "1"}, False),
        ("p=__HIVE_DEFAULT_PARTITION__/f", {"p": None}, True),
        ("p=__HIVE_DEFAULT_PARTITION__/f", {"p": ""}, True),
        ("p=__HIVE_DEFAULT_PARTITION__/f", {"p": "1"}, False),
        ("p=1/f", {"p": None}, False),
        ("p=a%20b%253Ac/f", {"p": "a b:c"}, True),
        ("p=a%2520b/f", {"p": "a b"}, True),
        ("p=a=b/f", {"p": "a=b"}, True),
        (f"{HOUR}/f", {"at": PLAIN}, True),
        (f"{HOUR}/f", {"at": ISO}, True),
        (f"{HOUR}/f", {"at": "2026-01-02T08:04:05.000000Z"}, False),
        (f"{HOUR}.123/f", {"at": "2026-01-02T03:04:05.123000Z"}, True),
        (f"{HOUR}/f", {"at": "2026-01-02T03:04:05.000001Z"}, False),
    ],
)
def test_folders_show_the_values(path: str, values: Mapping[str, object], shows: bool) -> None:
    assert shows_partition_values(path, values) is shows


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/"), min_size=1))
def test_any_text_is_found_as_delta_spark_stores_it(value: str) -> None:
    folder = quote("p=" + quote(value, safe=" .-_"), safe="=")
    assert shows_partition_values(f"{folder}/f.parquet", {"p": value})
    assert not shows_partition_values(f"{folder}x/f.parquet", {"p": value})


@each_row(
    ("value", "iso"),
    [
        (PLAIN, False),
        (PLAIN + ".123456", False),
        (ISO, True),
        ("2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05", None),
        ("2026-01-02 03:04:05Z", None),
        ("2026-01-02", None),
        ("x", None),
        (None, None),
        (7, None),
    ],
)
def test_a_timestamp_has_one_of_two_forms(value: object, iso: bool | None) -> None:
    assert is_iso_timestamp(value) is iso


def described(kind: str = "timestamp", **more: str) -> dict[str, Any]:
    schema = schema_string(column("id"), column("at", kind))
    return metadata(more, schema, partition_columns=["at"])


def stored(path: str, value: str | None) -> dict[str, Any]:
    return add(path, partitionValues={"at": value})


def seen(log: Log, *, every_commit: bool = True) -> list[bool | None]:
    traces = LogReader(every_commit=every_commit).read(log.table).traces
    return [traces.get(trace) for trace in (HIDDEN, ISO_TRACE, MIXED)]


@pytest.mark.parametrize("parsed", [0, files._PARSE_ALL_BYTES])
@pytest.mark.parametrize("where", ["commit", "checkpoint", "old checkpoint"])
@pytest.mark.parametrize(
    ("kind", "adds", "shown"),
    [
        ("timestamp", [(f"{HOUR}/0", PLAIN)], [False, False, False]),
        ("timestamp", [(f"{HOUR}/0", PLAIN), (f"{HOUR}/1", ISO)], [False, True, True]),
        ("timestamp", [(f"{HOUR}/1", ISO)], [False, True, False]),
        ("timestamp", [("at=2026-01-01%2022%253A04%253A05/1", ISO)], [True, True, False]),
        ("string", [(f"{HOUR}/0", PLAIN), (f"{HOUR}/1", ISO)], [False, False, False]),
        ("timestamp", [("x/0", PLAIN)], [True, False, False]),
        ("integer", [("at=1/0", "1"), ("at=2/1", "2")], [False, False, False]),
        ("integer", [("ab/0", "1"), ("zz/1", "2")], [True, False, False]),
        ("integer", [("ab/0", "1"), ("at=2/1", "2")], [True, False, False]),
    ],
)
def test_the_log_shows_it_wherever_the_files_are_listed(
    log: Log,
    kind: str,
    adds: list[tuple[str, str]],
    shown: list[bool],
    where: str,
    parsed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "_PARSE_ALL_BYTES", parsed)
    actions = [protocol(1, 2), described(kind), *(stored(*each) for each in adds)]
    log.commit(0, commit_info(), *actions)
    if where != "commit":
        log.checkpoint(0, *actions)
        log.commit(1, commit_info())
    if where == "old checkpoint":
        log.path(0, ".json").unlink()
    assert seen(log) == shown


SPARK = {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}
OLDER = {"engineInfo": "Apache-Spark/4.1.1 Delta-Lake/4.3.1"}
KEY = "delta.writePartitionColumnsToParquet"


def names(action: dict[str, Any], operation: str, **more: Any) -> list[dict[str, Any]]:
    """A commit of Delta Spark 4.4 with an action."""
    return [commit_info(operation, **SPARK, **more), action]


@each_row(
    ("commits", "shown"),
    [
        ([names(stored("ab/0", PLAIN), "WRITE")], True),
        ([names(stored("0", PLAIN), "WRITE")], True),
        ([names(stored("ab/0", PLAIN), "WRITE"), names(stored("x/1", PLAIN), "OPTIMIZE")], True),
        ([[commit_info("WRITE", **OLDER), stored("ab/0", PLAIN)]], False),
        ([[commit_info("WRITE"), stored("ab/0", PLAIN)]], False),
        ([[stored("ab/0", PLAIN)]], False),
        ([names(stored("ab/0", PLAIN), "CLONE")], False),
        ([names(stored("ab/0", PLAIN), "WRITE"), [commit_info(**OLDER), stored("b", ISO)]], False),
        # A path with any folder of a partition, or none that hides, is another case.
        ([names(stored("ab/0", PLAIN), "WRITE"), names(stored("at=1/0", PLAIN), "WRITE")], None),
        ([names(stored(f"{HOUR}/0", PLAIN), "WRITE")], None),
        # The property may have been false when the files were written.
        ([names(stored("ab/0", PLAIN), "WRITE"), names(described(**{KEY: "false"}), "X")], False),
        (
            [
                names(stored("ab/0", PLAIN), "WRITE"),
                names(described(), "UNSET", operationParameters={"properties": f'["{KEY}"]'}),
            ],
            False,
        ),
    ],
)
def test_files_of_delta_spark_have_their_partition_columns(
    commits: list[list[dict[str, Any]]], shown: bool | None, tmp_path: Path
) -> None:
    log = Log(tmp_path / str(len([*tmp_path.iterdir()])))
    log.commit(0, commit_info("CREATE TABLE", **SPARK), protocol(1, 2), described())
    for version, actions in enumerate(commits, 1):
        log.commit(version, *actions)
    traces = LogReader(every_commit=True).read(log.table).traces
    assert traces.get(Trace.STORED_PARTITIONS) is shown


@pytest.mark.parametrize("kept", [True, False])
def test_only_a_whole_history_shows_who_stored_the_columns(log: Log, kept: bool) -> None:
    actions = [protocol(1, 2), described(), stored("ab/0", PLAIN)]
    log.commit(0, commit_info(**SPARK), *actions).checkpoint(0, *actions)
    log.commit(1, commit_info(**SPARK))
    if not kept:
        log.path(0, ".json").unlink()
    assert seen(log) == [True, False, False]
    traces = LogReader(every_commit=True).read(log.table).traces
    assert traces.get(Trace.STORED_PARTITIONS) is (True if kept else None)
    assert Trace.STORED_PARTITIONS not in LogReader().read(log.table).traces


def test_a_partition_by_numbers_is_decided_by_the_statistics_of_a_checkpoint(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object, **__: object) -> Any:
        raise AssertionError("the statistics are enough")

    actions = [protocol(1, 2), described("integer"), stored("at=1/0", "1"), stored("at=2/1", "2")]
    log.commit(0, commit_info(), *actions)
    log.checkpoint(0, *actions)
    monkeypatch.setattr(checkpoint_layout, "checkpoint_adds", unread)
    assert seen(log) == [False, False, False]


def test_files_that_were_removed_do_not_count(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), described(), stored("x/0", ISO))
    removed = {"remove": {"path": "x/0", "dataChange": True, "partitionValues": {"at": ISO}}}
    log.commit(1, commit_info(), removed, stored(f"{HOUR}/1", PLAIN))
    assert seen(log) == [False, False, False]


def test_a_table_without_partitions_has_none_that_hide(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata(), add("ab/0"))
    assert seen(log) == [False, False, False]
    assert seen(log, every_commit=False) == [False, False, False]


@pytest.mark.parametrize("later", [0, 1, 9, 10])
def test_a_scan_looks_at_the_newest_commit_that_adds_files(log: Log, later: int) -> None:
    newest = 1 + later
    log.commit(0, commit_info(), protocol(1, 2), described())
    log.commit(1, commit_info(txnId="1"), stored("x/0", ISO))
    for version in range(2, newest + 1):
        log.commit(version, commit_info("SET TBLPROPERTIES", txnId=str(version)), described())
    checksum = {
        "txnId": str(newest),
        "numFiles": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "protocol": protocol(1, 2)["protocol"],
        "metadata": described()["metaData"],
        "setTransactions": [],
        "domainMetadata": [],
    }
    log.raw(newest, json.dumps(checksum).encode(), ".crc")
    shown = later < 10
    assert seen(log, every_commit=False) == [shown, shown, False]
