"""What commits to a table mean for its copy, and how a plan for a copy is recognized."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaproto.execution.copy_catch_up import group_appends
from deltaproto.execution.copy_state import CommitEffect, NamedTable, PendingCommit, pending_commits
from deltaproto.location import locate
from deltaproto.tables.log.commits import CommitTag
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import OpenedLog
from deltaproto.tables.storage import open_log
from tests.support.logs import Log, commit_info, metadata, protocol

OWNER = "0123456789abcdef"
MARK = CommitTag(OWNER, "s1", "run").text()
APPEND, CHANGE = CommitEffect.APPEND, CommitEffect.CHANGE
NOTHING, METADATA = CommitEffect.NOTHING, CommitEffect.METADATA


def file(name: str, kind: str = "add", **members: Any) -> dict[str, Any]:
    stats = json.dumps({"numRecords": 3})
    known = {"path": name, "dataChange": True, "stats": stats, "partitionValues": {}, "size": 1}
    return {kind: {**known, "modificationTime": 1, **members}}


ROWS: dict[str, tuple[list[dict[str, Any]], CommitEffect]] = {
    "append": ([file("a.parquet")], APPEND),
    "append with a transaction": ([file("a"), {"txn": {"appId": "x", "version": 1}}], APPEND),
    "append with row ids": (
        [file("a"), {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}"}}],
        APPEND,
    ),
    "files with deletion vectors": ([file("a", deletionVector={"storageType": "u"})], CHANGE),
    "removed rows": ([file("a"), file("b", "remove")], CHANGE),
    "only removed rows": ([file("b", "remove")], CHANGE),
    "a change feed": ([file("a"), file("c", "cdc")], CHANGE),
    "an unknown action": ([file("a"), {"newAction": {"x": 1}}], CHANGE),
    "optimize": ([file("a", dataChange=False), file("b", "remove", dataChange=False)], NOTHING),
    "half an optimize": ([file("a", dataChange=False), file("b")], CHANGE),
    "an empty commit": ([], NOTHING),
    "a property": ([metadata({"k": "v"})], METADATA),
    "a protocol": ([protocol(1, 3), file("a")], METADATA),
    "another clustering": (
        [{"domainMetadata": {"domain": "delta.clustering", "configuration": "{}"}}],
        METADATA,
    ),
    "its own mark": ([commit_info("SET", userMetadata=MARK), metadata({"k": "v"})], NOTHING),
    "rows with its mark": ([commit_info("WRITE", userMetadata=MARK), file("a")], APPEND),
    "the mark of another plan": (
        [commit_info("SET", userMetadata=MARK.replace("0", "1")), metadata({"k": "v"})],
        METADATA,
    ),
}


def opened(log: Log) -> NamedTable:
    location = locate(log.table)
    store = open_log(location, {})
    return NamedTable(OpenedLog(location, store), LogReader().read_from(location, store))


@pytest.mark.parametrize("name", ROWS)
def test_the_effect_of_a_commit(name: str, log: Log) -> None:
    actions, effect = ROWS[name]
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, *actions)
    (found,) = pending_commits(opened(log), 0, OWNER)
    assert (found.version, found.effect) == (1, effect)
    assert (found.rows, bool(found.files)) == ((3, True) if effect is APPEND else (None, False))


def test_names_and_rows_of_added_files(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, file("p=a%20b/x%25.parquet"), file("y.parquet", stats=None))
    (found,) = pending_commits(opened(log), 0, OWNER)
    assert found.files == ("x%.parquet", "y.parquet")
    assert found.rows is None


def test_a_commit_that_is_gone_may_have_changed_anything(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, file("a"))
    log.commit(2, file("b"))
    table = opened(log)
    log.path(1, ".json").unlink()
    found = pending_commits(table, 0, OWNER)
    assert [each.effect for each in found] == [CHANGE, APPEND]
    assert pending_commits(table, 2, OWNER) == []


def test_only_appends_that_follow_each_other_are_one_group() -> None:
    def commit(version: int, effect: CommitEffect, count: int = 1) -> PendingCommit:
        return PendingCommit(version, effect, "WRITE", ("f'",) * count, count)

    pending = [
        *(commit(1, APPEND), commit(2, APPEND), commit(3, NOTHING), commit(4, APPEND)),
        *(commit(5, APPEND, 1500), commit(6, APPEND)),
    ]
    groups = list(group_appends(pending))
    assert [[c.version for c in group.commits] for group in groups] == [[1, 2], [4], [5], [6]]
    assert [group.rows for group in groups] == [2, 1, 1500, 1]
    assert groups[0].condition == "_metadata.file_name IN ('f\\'', 'f\\'')"


def test_the_tag_says_what_was_copied() -> None:
    assert "copied" not in MARK
    assert json.loads(CommitTag(OWNER, "s1", "run", None, 7).text())["deltaproto"]["copied"] == 7
