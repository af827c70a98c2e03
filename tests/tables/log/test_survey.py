"""Census, traces and aging on hand-made logs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.files import LogListing, build_listing
from deltaproto.tables.log.live_files import last_type_change, read_live_files
from deltaproto.tables.log.log_retention import LogFile
from deltaproto.tables.storage.local import LocalLogStore
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string
from tests.support.surveys import survey_table
from tests.tables.log.clean_up import first_left

MODERN = protocol(
    3,
    7,
    ["columnMapping", "deletionVectors", "v2Checkpoint", "typeWidening", "geospatial"],
    ["columnMapping", "deletionVectors", "v2Checkpoint", "typeWidening", "geospatial"],
)
MAPPED = {"delta.columnMapping.mode": "name"}
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1}


def remove(path: str = "part-0.parquet", **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, **fields}}


def opened(log: Log) -> tuple[LocalLogStore, LogListing]:
    store = LocalLogStore(log.table)
    return store, build_listing(store.list())


def test_an_unused_table_shows_nothing(log: Log) -> None:
    log.commit(0, MODERN, metadata()).commit(1, add(size=7))
    seen = survey_table(log.table)
    assert not seen.traces.seen
    assert not seen.traces.unknown
    assert seen.traces.none >= {"columnMapping", "deletionVectors", "geospatial"}
    assert (seen.census.files, seen.census.bytes) == (1, 7)


def test_text_about_vectors_is_no_vector(log: Log) -> None:
    log.commit(0, MODERN, metadata()).commit(1, add(stats='{"deletionVector":1}'))
    assert "deletionVectors" in survey_table(log.table).traces.none


@pytest.mark.parametrize("kind", ["add", "remove", "cdc"])
def test_vectors_are_seen_in_every_action_on_files(log: Log, kind: str) -> None:
    log.commit(0, MODERN, metadata())
    log.commit(1, {kind: {"path": "a", "dataChange": True, "deletionVector": VECTOR}})
    log.commit(2, remove("a", deletionVector=None), remove("b"))
    newest = 2 if kind == "add" else 1
    assert survey_table(log.table).traces.seen["deletionVectors"].file.version == newest


def test_a_damaged_commit_makes_unknown_what_it_may_hold(log: Log) -> None:
    log.commit(0, MODERN, metadata())
    log.raw(1, b'{"commitInfo":')
    log.checkpoint(2, MODERN, metadata(MAPPED)).commit(2, metadata(MAPPED))
    traces = survey_table(log.table).traces
    assert traces.seen.keys() == {"columnMapping"}
    assert traces.unknown.keys() == {"deletionVectors", "v2Checkpoint", "typeWidening"}
    assert traces.none == {"geospatial"}
    assert "00000000000000000001.json" in traces.unknown["deletionVectors"]


@pytest.mark.parametrize(
    ("feature", "configuration"),
    [
        ("deletionVectors", {"delta.enableDeletionVectors": "yes"}),
        ("columnMapping", {"delta.columnMapping.mode": "both"}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "V2"}),
    ],
)
def test_a_setting_that_delta_does_not_take(
    log: Log, feature: str, configuration: dict[str, str]
) -> None:
    log.commit(0, MODERN, metadata(configuration)).commit(1, metadata())
    assert survey_table(log.table).traces.unknown.keys() == {feature}


def test_a_catalog_may_hold_more(log: Log) -> None:
    features = ["catalogManaged", "deletionVectors"]
    log.commit(0, protocol(3, 7, features, [*features, "inCommitTimestamp"]), metadata())
    assert "deletionVectors" in survey_table(log.table).traces.unknown


def test_the_state_of_the_first_checkpoint_counts(log: Log) -> None:
    log.checkpoint(3, MODERN, metadata(MAPPED)).commit(3, add()).commit(4, add("b"))
    log.commit(5, metadata())
    traces = survey_table(log.table).traces
    assert traces.seen["columnMapping"].file.version == 4
    assert traces.none >= {"v2Checkpoint"}


def test_a_checkpoint_without_its_commit_does_not_count(log: Log) -> None:
    log.checkpoint(3, MODERN, metadata(MAPPED)).commit(4, metadata())
    assert "columnMapping" in survey_table(log.table).traces.none


def test_the_commits_that_are_protected(log: Log) -> None:
    key = "delta.requireCheckpointProtectionBeforeVersion"
    log.commit(0, protocol(1, 7, None, ["checkpointProtection"]), metadata({key: "2"}))
    log.commit(1, add()).commit(2, add("b"))
    assert survey_table(log.table).traces.seen["checkpointProtection"].file.version == 1
    log.commit(3, metadata({key: "x"}))
    assert "checkpointProtection" in survey_table(log.table).traces.unknown


def test_the_last_file_before_a_checkpoint_decides(log: Log) -> None:
    log.commit(0, MODERN, metadata(MAPPED)).commit(1, metadata()).commit(2, add())
    log.checkpoint(2, MODERN, metadata()).commit(3, add("b"))
    minute = 60_000
    for name, minutes in (("0.json", 1), ("1.json", 5), ("2.checkpoint", 7), ("2.json", 6)):
        for file in log.folder.glob(f"*{name}*"):
            os.utime(file, ns=(0, minutes * minute * 1_000_000))
    seen = survey_table(log.table)
    found = seen.traces.seen["columnMapping"]
    assert found.file == LogFile(0, minute)
    assert found.decides == LogFile(1, 5 * minute)
    assert first_left(seen.aging, 5 * minute - 1) == 0
    assert first_left(seen.aging, 5 * minute) == 2
    assert seen.aging.newest is not None
    assert first_left(seen.aging, seen.aging.newest.modified_ms) == 4
    assert first_left(seen.aging, seen.aging.newest.modified_ms, checkpoint_first=False) == 2


@pytest.mark.parametrize(("modified", "removable"), [(0, 10), (1, 60_010), (60_000, 60_010)])
def test_delta_cuts_off_at_full_minutes(modified: int, removable: int) -> None:
    assert LogFile(0, modified).removable_ms(10) == removable


def test_a_commit_is_missing(log: Log) -> None:
    log.commit(0, MODERN, metadata()).commit(2, add())
    with pytest.raises(TableError) as raised:
        read_live_files(*opened(log), 2)
    assert raised.value.code is ErrorCode.CORRUPT_LOG


def test_a_rewritten_file_counts_as_old_where_nobody_says_who_wrote_it(log: Log) -> None:
    widened = schema_string(
        column("id", delta__typeChanges=[{"fromType": "integer", "toType": "long"}])
    )
    log.commit(0, MODERN, metadata(), add("a", size=1))
    log.commit(1, metadata(schema=widened))
    log.commit(2, commit_info("WRITE"), add("b", size=2))
    log.commit(3, commit_info("RESTORE"), add("c", size=4))
    log.commit(4, add("d", size=8))
    census = survey_table(log.table).census
    assert (census.files_before_type_change, census.bytes_before_type_change) == (3, 13)


def test_a_file_added_by_the_commit_that_records_a_type_change_counts_as_old(log: Log) -> None:
    widened = schema_string(
        column("id", delta__typeChanges=[{"fromType": "integer", "toType": "long"}])
    )
    log.commit(0, MODERN, metadata())
    log.commit(1, commit_info("WRITE"), metadata(schema=widened), add("a", size=1))
    log.commit(2, commit_info("WRITE"), add("b", size=2))
    census = survey_table(log.table).census
    assert (census.files_before_type_change, census.bytes_before_type_change) == (1, 1)


_FILES = st.tuples(st.sampled_from("abc"), st.booleans())


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[bool, tuple[str, bool]]]]:
    """Commits as lists of (is an add, file); a file is a path with or without a vector."""
    commits = draw(st.lists(st.lists(_FILES, max_size=3, unique=True), min_size=1, max_size=8))
    return [[(draw(st.booleans()), file) for file in commit] for commit in commits]


@given(histories(), st.data())
def test_files_are_live_as_a_plain_replay_says(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[list[tuple[bool, tuple[str, bool]]]],
    data: st.DataObject,
) -> None:
    root = tmp_path_factory.mktemp("replay")
    log = Log(root / "t").commit(0, MODERN, metadata())
    live: dict[tuple[str, bool], int] = {}
    states = [dict(live)]
    for version, commit in enumerate(history, 1):
        gone: dict[str, int] = {}
        actions = []
        for is_add, (path, vector) in commit:
            fields = {"deletionVector": VECTOR} if vector else {}
            actions.append(add(path, **fields) if is_add else remove(path, **fields))
        for is_add, file in commit:
            if not is_add and file in live:
                gone[file[0]] = live.pop(file)
        for is_add, file in commit:
            if is_add:
                live[file] = gone.get(file[0], live.get(file, version))
        log.commit(version, *actions)
        states.append(dict(live))
    store, listing = opened(log)
    newest = len(history)
    for version in range(newest + 1):
        found = read_live_files(store, listing, version).files
        assert sorted(f.since for f in found.values()) == sorted(states[version].values())
        assert sum(f.vector for f in found.values()) == sum(v for _, v in states[version])
    base = data.draw(st.integers(0, newest))
    rows = [
        add(path, **({"deletionVector": VECTOR} if vector else {})) for path, vector in states[base]
    ]
    log.checkpoint(base, MODERN, metadata(), *rows, suffix=".checkpoint.12345678.json")
    for version in range(base):
        log.path(version, ".json").unlink()
    log.path(base, ".json").unlink()
    found = read_live_files(*opened(log), newest).files
    assert len(found) == len(live)
    assert {f.since for f in found.values()} <= set(range(base, newest + 1))
    shutil.rmtree(root)


@given(st.lists(st.none() | st.sets(st.sampled_from("abc")), max_size=8), st.integers(0, 8))
def test_the_last_type_change_is_never_dated_too_early(
    tmp_path_factory: pytest.TempPathFactory, versions: list[set[str] | None], cut: int
) -> None:
    root = tmp_path_factory.mktemp("changes")
    log = Log(root / "t").commit(0, MODERN, metadata())
    state: set[str] = set()
    states = [state]
    schemas = [schema_string()]
    for version, changes in enumerate(versions, 1):
        if changes is not None:
            state = changes
            schema = schema_string(
                *(column(n, delta__typeChanges=[{"to": n}]) for n in "abc" if n in changes),
                column("z"),
            )
            log.commit(version, metadata(schema=schema))
            schemas.append(schema)
        else:
            log.commit(version, add(str(version)))
            schemas.append(schemas[-1])
        states.append(state)
    newest = len(versions)
    current = Metadata.stored(metadata(schema=schemas[-1])["metaData"])
    truth = max((v for v in range(1, newest + 1) if not state <= states[v - 1]), default=None)
    assert last_type_change(*opened(log), newest, current) == truth
    cut = min(cut, newest)
    log.checkpoint(cut, MODERN, metadata(schema=schemas[cut]))
    for version in range(cut):
        log.path(version, ".json").unlink()
    found = last_type_change(*opened(log), newest, current)
    assert (found is None) is (truth is None)
    if truth is not None:
        assert found is not None
        assert found >= truth or found <= cut
        assert found <= max(truth, cut)
    shutil.rmtree(root)


def test_a_dated_listing_of_a_disk(tmp_path: Path) -> None:
    log = Log(tmp_path / "t").commit(0, MODERN, metadata())
    (log.folder / "_staged_commits").mkdir()
    entries = LocalLogStore(log.table).list_dated()
    assert {entry.name for entry in entries} == {log.path(0, ".json").name, "_staged_commits/"}
    assert [e.modified_ms for e in entries if e.size] == [
        log.path(0, ".json").stat().st_mtime_ns // 1_000_000
    ]
