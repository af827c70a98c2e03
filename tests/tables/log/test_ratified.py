"""Staged commits of catalog-managed tables: only what the catalog confirms is part of the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from deltaproto.errors import EngineError
from deltaproto.inspection.inspect import compare_readers
from deltaproto.location import locate
from deltaproto.plan_inputs.from_log import survey_log
from deltaproto.protocol.table_state import ReaderName
from deltaproto.tables.log.catalog_managed import RatifiedLog, has_every_commit
from deltaproto.tables.log.commits import read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import objects
from deltaproto.tables.storage.local import LocalLogStore
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Any]
NAMES = ["catalogManaged", "inCommitTimestamp"]
MANAGED = protocol(3, 7, ["catalogManaged"], NAMES)


def stage(log: Log, version: int, identity: str, time: int | None, *actions: Any) -> None:
    folder = Path(log.table) / "_delta_log" / "_staged_commits"
    folder.mkdir(exist_ok=True)
    stamp = {} if time is None else {"inCommitTimestamp": time}
    lines = [commit_info("SET TBLPROPERTIES", **stamp), *actions]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{version:020d}.{identity}.json").write_text(text)


@pytest.fixture
def managed(log: Log) -> Log:
    log.commit(0, commit_info(inCommitTimestamp=100), MANAGED, metadata({"owner": "v0"}))
    stage(log, 1, "aaaaaaaa-1111", 101, metadata({"owner": "v1"}))
    stage(log, 2, "bbbbbbbb-2222", 102, metadata({"owner": "v2"}))
    stage(log, 2, "cccccccc-3333", 999, metadata({"owner": "rejected"}))
    return log


def read(log: Log, ratified: dict[int, int]) -> tuple[int, str | None, bool]:
    store = RatifiedLog(LocalLogStore(log.table), lambda: ratified)
    state = LogReader().read_from(locate(log.table), store)
    return state.version, state.metadata.property("owner"), state.confirmed


@pytest.mark.parametrize(
    ("ratified", "version", "confirmed"),
    [
        ({0: 100, 1: 101, 2: 102}, 2, True),
        ({0: 100, 1: 101}, 1, True),
        ({0: 100}, 0, True),
        ({1: 101, 2: 102}, 2, True),
        ({2: 102, 3: 103}, 0, False),
        ({0: 100, 1: 101, 2: 555}, 1, False),
        ({0: 100, 1: 7, 2: 102}, 0, False),
        ({0: 100, 1: 101, 2: 102, 3: 103}, 2, False),
    ],
)
def test_the_newest_version_is_the_last_that_the_catalog_confirms(
    ratified: dict[int, int], version: int, confirmed: bool, managed: Log
) -> None:
    assert read(managed, ratified) == (version, f"v{version}", confirmed)


def test_two_files_with_the_same_timestamp_confirm_nothing(managed: Log) -> None:
    stage(managed, 2, "dddddddd-4444", 102, metadata({"owner": "twin"}))
    assert read(managed, {0: 100, 1: 101, 2: 102}) == (1, "v1", False)


def test_a_staged_file_that_cannot_be_read_or_has_no_timestamp_confirms_nothing(
    managed: Log,
) -> None:
    folder = Path(managed.table) / "_delta_log" / "_staged_commits"
    (folder / f"{1:020d}.aaaaaaaa-1111.json").write_text("{")
    stage(managed, 1, "eeeeeeee-5555", None)
    assert read(managed, {0: 100, 1: 101}) == (0, "v0", False)


def test_published_commits_need_no_staged_file(managed: Log) -> None:
    managed.commit(1, commit_info(inCommitTimestamp=101), metadata({"owner": "v1"}))
    assert read(managed, {0: 100, 1: 101, 2: 102}) == (2, "v2", True)
    assert read(managed, {0: 100, 1: 101}) == (1, "v1", True)


def test_each_listing_asks_again_and_each_reader_of_the_log_sees_the_same(managed: Log) -> None:
    ratified = {0: 100, 1: 101}
    store = RatifiedLog(LocalLogStore(managed.table), lambda: ratified)
    assert [c.version for c in read_commits(store, build_listing(store.list()))] == [1, 0]
    ratified[2] = 102
    assert [c.version for c in read_commits(store, build_listing(store.list()))] == [2, 1, 0]
    assert survey_log(store).version == 2
    assert store.confirmed == 2
    del ratified[1]
    store.list()
    assert store.confirmed is None


def test_staged_commits_are_read_from_object_stores(
    managed: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MemoryStore()
    root = Path(managed.table)
    for file in root.rglob("*.json"):
        memory.put(f"t/{file.relative_to(root)}", file.read_bytes())
    monkeypatch.setattr(objects, "open_store", lambda *_: (memory, "t"))
    store = objects.ObjectLogStore("s3://b/t", {})
    names = {Path(entry.name).name for entry in store.list_staged()}
    assert names == {file.name for file in root.rglob("_staged_commits/*")}
    ratified = RatifiedLog(store, lambda: {0: 100, 1: 101, 2: 102})
    assert [c.version for c in read_commits(ratified, build_listing(ratified.list_dated()))] == [
        2,
        1,
        0,
    ]
    assert ratified.confirmed == 2


def test_a_log_without_staged_commits_lists_none(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata())
    assert LocalLogStore(log.table).list_staged() == ()


def test_a_catalog_that_does_not_answer_is_an_error(managed: Log) -> None:
    def silent() -> dict[int, int]:
        raise EngineError("Spark disconnected")

    store = RatifiedLog(LocalLogStore(managed.table), silent)
    with pytest.raises(EngineError):
        store.list()


def test_a_log_without_its_catalog_is_whole_only_where_none_manages_it(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata())
    store = LocalLogStore(log.table)
    plain = LogReader().read(log.table)
    assert has_every_commit(store, plain.protocol)
    managed = plain._replace(protocol=plain.protocol.carrying({"catalogManaged"}))
    assert not has_every_commit(store, managed.protocol)


def test_by_path_history_and_activity_are_not_complete(managed: Log, cli: Cli) -> None:
    ran = cli("history", managed.table, "--format", "json")
    assert (ran.code, ran.json["complete"]) == (3, False)
    assert "a catalog manages this table" in cli("history", managed.table).out
    ran = cli("inspect", managed.table, "--activity", "--format", "json")
    assert (ran.code, ran.json["complete"]) == (3, False)
    assert "newer commits may not be in its log" in cli("inspect", managed.table, "--activity").out


def test_an_older_answer_of_the_log_is_not_blamed_on_a_concurrent_write(managed: Log) -> None:
    log = LogReader().read(managed.table)
    spark = log._replace(reader=ReaderName.SPARK, version=2)
    answers = {ReaderName.LOG: log, ReaderName.SPARK: spark}
    (finding,) = (f for f in compare_readers("c.t", answers, spark) if f.evidence == "version")
    assert finding.message == "version: spark has 2, log has 0"
    assert "catalog has newer commits" in finding.hint


def test_a_staged_commit_cannot_expire_as_it_is_written_again_when_it_is_published(
    log: Log,
) -> None:
    modern = protocol(3, 7, ["v2Checkpoint", "catalogManaged"], ["v2Checkpoint", *NAMES])
    policy = metadata({"delta.checkpointPolicy": "v2"})
    log.commit(0, commit_info(inCommitTimestamp=100), modern, policy)
    stage(log, 1, "aaaaaaaa-1111", 101, metadata({"delta.checkpointPolicy": "classic"}))
    store = RatifiedLog(LocalLogStore(log.table), lambda: {0: 100, 1: 101})
    staged = survey_log(store)
    assert (staged.version, staged.aging.unpublished) == (1, True)
    assert staged.traces.seen["v2Checkpoint"].decides is None
    log.commit(1, commit_info(inCommitTimestamp=101), metadata())
    published = survey_log(store)
    assert (published.version, published.aging.unpublished) == (1, False)
    decides = published.traces.seen["v2Checkpoint"].decides
    assert decides is not None
    assert decides.version == 1
