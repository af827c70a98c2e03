"""Data files without row ids, while row tracking is enabled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.inspection.inspect import inspect_table
from deltaproto.inspection.interface import ReadRequest
from deltaproto.protocol.feature import Trace
from deltaproto.tables.log import layout_evidence
from deltaproto.tables.log.reader import LogReader
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

NAMES = ["domainMetadata", "rowTracking", "v2Checkpoint"]
MODERN = protocol(3, 7, ["v2Checkpoint"], NAMES)
ENABLED = metadata({"delta.enableRowTracking": "true"})
NAMED = metadata(
    {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    }
)
V2_JSON = ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
IDS: dict[str, Any] = {"baseRowId": 0, "defaultRowCommitVersion": 1}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True}}


def is_untracked(log: Log) -> bool | None:
    """What `inspect` finds, which is what searching every file finds."""
    found = LogReader(every_commit=True).read(log.table).traces.get(Trace.UNTRACKED_FILES)
    exact = LogReader(look_in_files=True).read(log.table).traces[Trace.UNTRACKED_FILES]
    assert found in (None, exact)
    return found


# The actions of each commit after the first.
COMMITS: dict[str, tuple[list[list[dict[str, Any]]], bool]] = {
    "no files": ([], False),
    "all have ids": ([[add("a", **IDS), add("b", **IDS)]], False),
    "one has none": ([[add("a", **IDS), add("b")]], True),
    "ids are given later": ([[add("a")], [add("b")], [add("a", **IDS), add("b", **IDS)]], False),
    "ids are given to one": ([[add("a"), add("b")], [add("b", **IDS)]], True),
    "ids are taken": ([[add("a", **IDS)], [add("a")]], True),
    "the file is removed": ([[add("a")], [remove("a"), add("b", **IDS)]], False),
    "a vector is added": ([[add("a")], [remove("a"), add("a", **IDS)]], False),
    "the file comes back": ([[add("a")], [remove("a")], [add("a")]], True),
}


@pytest.mark.parametrize("name", COMMITS)
def test_commits_show_files_without_ids(name: str, log: Log) -> None:
    commits, untracked = COMMITS[name]
    log.commit(0, MODERN, ENABLED)
    for version, actions in enumerate(commits, 1):
        log.commit(version, *actions)
    assert is_untracked(log) is untracked


@pytest.mark.parametrize("name", COMMITS)
def test_large_commits_show_the_same(name: str, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("msgspec")
    monkeypatch.setattr("deltaproto.tables.log.files._FAST_FROM_BYTES", 1)
    monkeypatch.setattr("deltaproto.tables.log.files._PARSE_ALL_BYTES", 1)
    test_commits_show_files_without_ids(name, log)


def test_the_oldest_of_many_commits_shows_files_without_ids(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("layout", "checksum"):
        monkeypatch.setattr(f"deltaproto.tables.log.{each}.MOST_COMMITS", 3)
    log.commit(0, MODERN, ENABLED).commit(1, add("a"))
    for version in range(2, 8):
        log.commit(version, commit_info(txnId="x"), add(f"p{version}", **IDS))
    log.checksum(7, MODERN, ENABLED, txnId="x", domainMetadata=[])
    assert is_untracked(log) is True
    monkeypatch.setattr("deltaproto.tables.log.layout._MOST_FOR_ROW_IDS", 3)
    assert is_untracked(log) is None


# The files of a checkpoint, and the actions of a later commit.
CHECKPOINTS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], bool]] = {
    "no files": ([], [add("a", **IDS)], False),
    "all have ids": ([add("a", **IDS)], [add("b", **IDS)], False),
    "one has none": ([add("a", **IDS), add("b")], [], True),
    "ids are given later": ([add("a"), add("b")], [add("a", **IDS), add("b", **IDS)], False),
    "the file is removed": ([add("a"), add("b", **IDS)], [remove("a")], False),
    "a commit adds one": ([add("a", **IDS)], [add("b")], True),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("suffix", [".checkpoint.parquet", V2_JSON])
def test_checkpoints_show_files_without_ids(name: str, suffix: str, log: Log) -> None:
    files, actions, untracked = CHECKPOINTS[name]
    log.checkpoint(4, MODERN, ENABLED, *files, suffix=suffix).commit(5, *actions)
    assert is_untracked(log) is untracked


def test_more_removed_files_than_are_remembered_leave_it_unknown(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout_evidence, "_MOST_REMOVED", 1)
    gone = {"partitionValues": {}}
    removed = [{"remove": {**remove(each)["remove"], **gone}} for each in ("a", "b")]
    log.commit(0, MODERN, ENABLED).commit(1, add("a"), add("b")).commit(2, *removed)
    assert is_untracked(log) is None


@pytest.mark.parametrize("rows", [0, None])
def test_a_checksum_shows_files_without_ids(rows: int | None, log: Log) -> None:
    file = add("a", baseRowId=rows)
    log.commit(0, MODERN, ENABLED).commit(1, commit_info(txnId="x"), file)
    log.checksum(
        1, MODERN, ENABLED, numFiles=1, allFiles=[file["add"]], txnId="x", domainMetadata=[]
    )
    traces = LogReader().read(log.table).traces
    assert traces[Trace.UNTRACKED_FILES] is (rows is None)


def test_a_table_without_row_tracking_has_no_finding(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata(), add())
    inspection = inspect_table(log.table, ReadRequest())
    assert "DP146" not in json.dumps([each.rule for each in inspection.findings])


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "delta.enableRowTracking=true"),
        ("--set", "DELTA.enablerowtracking=TRUE"),
        ("--enable", "rowTracking"),
    ],
)
def test_plan_upgrade_gives_the_files_ids(
    words: tuple[str, ...], log: Log, cli: Callable[..., Ran]
) -> None:
    log.commit(0, MODERN, NAMED, add("a", baseRowId=0, stats='{"numRecords":1}'))
    log.commit(1, add("b", stats='{"numRecords":1}'))
    found = json.loads(cli("plan-upgrade", log.table, *words, "--format", "json").out)
    (step,) = found["steps"]
    assert "'delta.enableRowTracking' = 'true'" in step["sql"].replace("TRUE", "true")
    assert step["commits"] == {"min": 2, "max": 2}
    checked = cli("check", log.table, "--client", "delta-spark@4.4.0", "--access", "dml").out
    command = f"deltaproto plan-upgrade {log.table} --enable rowTracking"
    assert f"enable row tracking again, which gives row ids to all files: {command}" in checked


def test_plan_upgrade_has_nothing_to_do_if_all_files_have_ids(
    log: Log, cli: Callable[..., Ran]
) -> None:
    log.commit(0, MODERN, NAMED, add("a", baseRowId=0, stats='{"numRecords":1}'))
    words = ("--set", "delta.enableRowTracking=true", "--enable", "rowTracking")
    found = json.loads(cli("plan-upgrade", log.table, *words, "--format", "json").out)
    assert (found["steps"], found["blocked"]) == ([], [])


@pytest.mark.parametrize("command", ["plan", "plan-downgrade"])
@pytest.mark.parametrize("source", ["the table", "a saved inspection", "an inventory"])
def test_a_plan_for_clients_gives_the_files_ids(
    command: str, source: str, cli: Callable[..., Ran], tmp_path: Path
) -> None:
    root = tmp_path / "fleet"
    log, file = Log(root / "t"), add("a", stats='{"numRecords":1}')
    log.commit(0, MODERN, NAMED).commit(1, commit_info(txnId="x"), file)
    log.checksum(1, MODERN, NAMED, numFiles=1, allFiles=[file["add"]], txnId="x", domainMetadata=[])
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients:\n  - client: delta-spark@4.4.0\n    access: [dml]\n"
    )
    asked = (log.table,)
    if source == "a saved inspection":
        saved = tmp_path / "saved.json"
        saved.write_text(cli("inspect", log.table, "--format", "json").out)
        asked = (str(saved),)
    elif source == "an inventory":
        asked = (str(tmp_path / "inventory"),)
        assert cli("scan", str(root), "--inventory", *asked).code == 0
    found = json.loads(cli(command, *asked, "--policy", str(policy), "--format", "json").out)
    (plan,) = found.get("plans", [found])
    (step,) = plan["steps"]
    assert step["sql"].endswith(" SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    assert step["why"].startswith("give row ids to the files that have none")
