"""What the log shows of data files without reading every action on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import NoteKind
from deltaproto.tables.log import checkpoint_layout, layout
from deltaproto.tables.log.layout_evidence import is_absolute
from deltaproto.tables.log.parquet import UnsupportedParquet
from deltaproto.tables.log.parquet.footer import LeafStatistics, read_statistics, text_bounds
from deltaproto.tables.log.partition_paths import is_partitioned_by_text, partition_types
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.spark import read_local_layout
from tests.support.failures import each_row
from tests.support.logs import (
    Log,
    action_table,
    add,
    column,
    commit_info,
    metadata,
    protocol,
    schema_string,
)

CLONED = "file:///elsewhere/part-0.parquet"
FILES = (Trace.ABSOLUTE_PATHS, Trace.DELTA_RS_FILES, Trace.DELTA_RS_REWRITES)
DELTA_RS = {"engineInfo": "delta-rs:py-1.6.6", "operationMetrics": {"num_added_rows": 1}}


def traces(log: Log, *, every_commit: bool = True) -> Mapping[Trace, bool]:
    return LogReader(every_commit=every_commit).read(log.table).traces


def begun(log: Log, *actions: dict[str, Any]) -> Log:
    return log.commit(0, commit_info(), protocol(1, 2), metadata(), *actions)


@each_row("path", [CLONED, "s3://b/k", "/mnt/t/part-0", "abfss://c@a.dfs.core.windows.net/x"])
def test_uris_and_paths_from_the_root_are_absolute(path: str) -> None:
    assert is_absolute(path)


@each_row("path", ["part-0.parquet", "at=10:00/part-0", "a b/part-0", "p%3A1=x/part-0", ""])
def test_other_paths_are_relative(path: str) -> None:
    assert not is_absolute(path)


def test_a_relative_table_has_no_absolute_paths(log: Log) -> None:
    found = traces(begun(log, add()))
    assert [found[trace] for trace in FILES] == [False, False, False]


@pytest.mark.parametrize("every_commit", [True, False])
def test_the_first_commit_shows_a_clone(log: Log, every_commit: bool) -> None:
    begun(log, add(CLONED)).commit(1, commit_info(), add()).commit(2, commit_info(), add("p2"))
    assert traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS]


def test_a_clone_in_the_middle_shows_when_every_commit_is_read(log: Log) -> None:
    action = metadata()
    begun(log).commit(1, commit_info(), add(CLONED)).commit(2, commit_info(txnId="a"), add())
    log.checksum(2, protocol(1, 2), action, txnId="a")
    assert traces(log)[Trace.ABSOLUTE_PATHS]


def test_an_absolute_path_that_was_removed_is_gone(log: Log) -> None:
    begun(log, add(CLONED)).commit(1, {"remove": {"path": CLONED, "dataChange": True}}, add())
    assert not traces(log)[Trace.ABSOLUTE_PATHS]


@pytest.mark.parametrize("every_commit", [True, False])
@pytest.mark.parametrize("path", [CLONED, "part-9.parquet"])
def test_a_checkpoint_shows_it_by_its_statistics(
    log: Log, path: str, every_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(log, add(path)).commit(1, commit_info(), add("part-1.parquet"))
    log.checkpoint(1, protocol(1, 2), metadata(), add(path), add("part-1.parquet"))
    log.path(0, ".json").unlink()
    monkeypatch.setattr(checkpoint_layout, "checkpoint_adds", _unread)
    assert traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS] is (path == CLONED)


@pytest.mark.parametrize("every_commit", [True, False])
@pytest.mark.parametrize("left", [[], ["zz/part-1.parquet"], ["file:/other/part-1.parquet"]])
def test_commits_after_a_checkpoint_may_have_replaced_its_absolute_paths(
    log: Log, left: list[str], every_commit: bool
) -> None:
    begun(log, add(CLONED), *(add(path) for path in left))
    log.checkpoint(0, protocol(1, 2), metadata(), add(CLONED), *(add(path) for path in left))
    log.commit(1, commit_info(txnId="a"), {"remove": {"path": CLONED}}, add("part-2.parquet"))
    log.commit(2, commit_info(txnId="b"))
    log.checksum(2, protocol(1, 2), metadata(), txnId="b")
    found = traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS]
    assert found is (left == ["file:/other/part-1.parquet"])
    log.commit(3, commit_info(), add(CLONED))
    assert traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS]


@pytest.mark.parametrize("every_commit", [True, False])
def test_an_absolute_path_that_gets_a_deletion_vector_stays(log: Log, every_commit: bool) -> None:
    begun(log).checkpoint(0, protocol(1, 2), metadata(), add(CLONED))
    log.commit(1, commit_info(), {"remove": {"path": CLONED}}, add(CLONED, deletionVector={}))
    assert traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS]


def test_paths_beyond_ascii_may_be_gone_since_the_checkpoint(log: Log) -> None:
    described = metadata(schema=schema_string(column("p", "string")), partition_columns=["p"])
    removed = add("p=é/part-0.parquet")
    log.commit(0, commit_info(), protocol(1, 2), described, removed)
    log.checkpoint(0, protocol(1, 2), described, add("p=a/part-0"), removed)
    assert traces(log)[Trace.NON_ASCII_PATHS]
    log.commit(1, commit_info(), {"remove": {"path": removed["add"]["path"]}})
    assert not traces(log)[Trace.NON_ASCII_PATHS]


def test_paths_beyond_ascii_come_from_partitions_of_text(log: Log) -> None:
    described = metadata(schema=schema_string(column("p", "string")), partition_columns=["p"])
    log.commit(0, commit_info(), protocol(1, 2), described, add("p=é/part-0.parquet"))
    assert traces(log)[Trace.NON_ASCII_PATHS]
    log.checkpoint(0, protocol(1, 2), described, add("p=a/part-0"), add("p=é/part-0.parquet"))
    log.path(0, ".json").write_text(log.path(0, ".json").read_text().replace("u00e9", "u0065"))
    assert traces(log)[Trace.NON_ASCII_PATHS]
    log.checkpoint(0, protocol(1, 2), described, add("p=a/part-0"))
    assert not traces(log)[Trace.NON_ASCII_PATHS]


def test_a_v2_checkpoint_with_a_classic_name_has_sidecars(log: Log) -> None:
    v2 = protocol(3, 7, ["v2Checkpoint"], ["v2Checkpoint"])
    log.commit(0, commit_info(), v2, metadata()).commit(1, commit_info(), add(CLONED))
    log.checkpoint(1, v2, metadata(), {"sidecar": {"path": "s.parquet"}})
    (log.folder / "_sidecars").mkdir()
    pq.write_table(action_table((add(CLONED),)), log.folder / "_sidecars" / "s.parquet")
    log.commit(2, commit_info()).path(1, ".json").unlink()
    for every_commit in (False, True):
        assert traces(log, every_commit=every_commit)[Trace.ABSOLUTE_PATHS]


def _unread(*_: object, **__: object) -> Any:
    raise AssertionError("the statistics are enough")


def test_paths_are_looked_at_where_statistics_do_not_tell(log: Log) -> None:
    paths = ["ab/part-0.parquet", CLONED, "zz/part-1.parquet"]
    actions = [protocol(1, 2), metadata(), *(add(path) for path in paths)]
    begun(log).checkpoint(0, *actions)
    assert traces(log)[Trace.ABSOLUTE_PATHS]
    log.checkpoint(0, *actions[:3], actions[4])
    assert not traces(log)[Trace.ABSOLUTE_PATHS]


def test_sidecars_are_looked_at(log: Log) -> None:
    name = "_sidecars/one.parquet"
    (log.folder / "_sidecars").mkdir()
    pq.write_table(pa.table({"add": [{"path": CLONED, "size": 1}]}), log.folder / name)
    begun(log)
    actions = [protocol(1, 2), metadata(), {"sidecar": {"path": "one.parquet", "sizeInBytes": 1}}]
    log.checkpoint(0, *actions, suffix=".checkpoint.0123abcd-0000-0000-0000-000000000000.json")
    assert traces(log)[Trace.ABSOLUTE_PATHS]


def test_what_was_not_read_is_missing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_COMMITS", 2)
    begun(log)
    for version in range(1, 6):
        log.commit(version, commit_info(), add(f"p{version}"))
    found = LogReader(use_checksums=False, every_commit=True).read(log.table).traces
    assert Trace.ABSOLUTE_PATHS in found
    log.checksum(5, protocol(1, 2), metadata(), txnId="a")
    log.commit(5, commit_info(txnId="a"), add("p5"))
    monkeypatch.setattr("deltaproto.tables.log.checksum.MOST_COMMITS", 2)
    assert Trace.ABSOLUTE_PATHS not in traces(log)


def test_delta_rs_says_that_it_wrote_files(log: Log) -> None:
    begun(log).commit(1, commit_info("WRITE", **DELTA_RS), add())
    found = traces(log)
    assert (found[Trace.DELTA_RS_FILES], found[Trace.DELTA_RS_REWRITES]) == (True, False)
    log.commit(2, commit_info("DELETE", **DELTA_RS), add("p2"))
    assert traces(log)[Trace.DELTA_RS_REWRITES]


def test_files_of_delta_rs_that_are_gone_do_not_count(log: Log) -> None:
    begun(log).commit(1, commit_info("DELETE", **DELTA_RS), add("old"))
    log.commit(2, commit_info(), {"remove": {"path": "old", "dataChange": False}}, add("new"))
    found = traces(log)
    assert (found[Trace.DELTA_RS_FILES], found[Trace.DELTA_RS_REWRITES]) == (False, False)


@each_row(
    "info",
    [
        commit_info("OPTIMIZE", **DELTA_RS),
        commit_info("WRITE", engineInfo="delta-rs:py-1.6.6"),
        commit_info("DELETE", engineInfo="Apache-Spark/4.2.0 Delta-Lake/4.4.0"),
    ],
    ids=lambda info: json.dumps(info),
)
def test_others_do_not(info: dict[str, Any], tmp_path: Path) -> None:
    log = begun(Log(tmp_path / str(id(info)))).commit(1, info, add())
    found = traces(log)
    assert not found[Trace.DELTA_RS_FILES]
    assert not found[Trace.DELTA_RS_REWRITES]


def test_writers_are_looked_for_before_the_checkpoint_too(log: Log) -> None:
    begun(log).commit(1, commit_info("DELETE", **DELTA_RS), add()).commit(2, commit_info(), add())
    log.checkpoint(2, protocol(1, 2), metadata(), add())
    log.commit(3, commit_info(), add("p3"))
    assert traces(log)[Trace.DELTA_RS_REWRITES]
    log.path(0, ".json").unlink()
    log.path(1, ".json").unlink()
    assert Trace.DELTA_RS_REWRITES not in traces(log)


def test_a_checksum_is_held_against_the_whole_log(log: Log) -> None:
    begun(log).commit(1, commit_info(), protocol(1, 4)).commit(2, commit_info(txnId="a"), add())
    log.checksum(2, protocol(1, 2), metadata(), txnId="a")
    believed = LogReader().read(log.table)
    assert str(believed.protocol) == "(1,2)"
    held = LogReader(every_commit=True).read(log.table)
    assert str(held.protocol) == "(1,4)"
    assert [note.kind for note in held.notes] == [NoteKind.CHECKSUM_CONTRADICTS]
    assert "its protocol differs from the log's" in held.notes[0].message


class TestBounds:
    def test_of_all_row_groups(self, tmp_path: Path) -> None:
        table = pa.table({"add": [{"path": p} for p in ("c", "a", "e", "b")] + [None]})
        pq.write_table(table, tmp_path / "f", row_group_size=2)
        with (tmp_path / "f").open("rb") as file:
            found = read_statistics(file, "add")
        assert found == {"path": LeafStatistics(4, (b"a", b"b"), (b"c", b"e"), bounded=True)}
        assert text_bounds(found["path"]) == ("a", "e")
        assert text_bounds(found.get("other")) == (None, None)

    def test_of_files_with_the_same_schema(self, tmp_path: Path) -> None:
        paths = {"one": ["a", "b"], "other": ["c", "d", "e"], "third": ["f"]}
        for name, found in paths.items():
            pq.write_table(pa.table({"add": [{"path": p} for p in found]}), tmp_path / name)
        # The second time, the schema of all three is known, and so are some footers.
        for name in [*paths, *reversed(paths)]:
            with (tmp_path / name).open("rb") as file:
                leaf = read_statistics(file, "add")["path"]
            assert text_bounds(leaf) == (paths[name][0], paths[name][-1])
            assert leaf.filled == len(paths[name])

    def test_a_schema_cut_off_by_damage_is_not_taken_for_the_schema_of_others(
        self, tmp_path: Path
    ) -> None:
        pq.write_table(pa.table({"add": [{"path": "a"}]}), tmp_path / "whole")
        data = (tmp_path / "whole").read_bytes()
        size = int.from_bytes(data[-8:-4], "little")
        footer = data[-8 - size : -8]
        for length in range(1, size):
            part = footer[:length]
            (tmp_path / "cut").write_bytes(
                b"PAR1" + part + len(part).to_bytes(4, "little") + b"PAR1"
            )
            with (tmp_path / "cut").open("rb") as file, pytest.raises(UnsupportedParquet):
                read_statistics(file, "add")
        with (tmp_path / "whole").open("rb") as file:
            assert text_bounds(read_statistics(file, "add")["path"]) == ("a", "a")

    def test_nothing_without_statistics(self, tmp_path: Path) -> None:
        table = pa.table({"a": [{"x": "x"}]})
        pq.write_table(table, tmp_path / "f", write_statistics=False)
        with (tmp_path / "f").open("rb") as file:
            found = read_statistics(file, "a")
        assert found == {"x": LeafStatistics(None, (), (), bounded=False)}
        assert text_bounds(found["x"]) is None

    def test_damage_is_left_to_others(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"PAR1" + bytes(40) + b"\x20\0\0\0PAR1")
        with (tmp_path / "f").open("rb") as file, pytest.raises(UnsupportedParquet):
            read_statistics(file, "a")


class TestBySpark:
    """Spark's SQL shows no files; the log does where it is at hand."""

    def test_a_local_table_is_looked_at(self, log: Log) -> None:
        begun(log, add(CLONED))
        uri = log.root.as_uri()
        assert read_local_layout(uri)[Trace.ABSOLUTE_PATHS]
        assert Trace.V2_CHECKPOINT not in read_local_layout(uri)

    def test_what_is_elsewhere_is_not(self, tmp_path: Path) -> None:
        assert read_local_layout("s3://bucket/t") == {}
        assert read_local_layout((tmp_path / "none").as_uri()) == {}


@pytest.mark.parametrize(
    ("columns", "by", "text"),
    [
        ((), (), False),
        (("long", "string"), ("c0",), False),
        (("long", "string"), ("c0", "c1"), True),
        (("binary",), ("c0",), True),
        (("timestamp",), ("c0",), True),
        (("timestamp_ntz",), ("c0",), True),
        (("date", "double", "boolean"), ("c0", "c1", "c2"), False),
        # Nothing is known about a column that the schema lacks.
        (("long",), ("gone",), True),
    ],
)
def test_only_text_and_times_can_need_escapes(
    columns: tuple[str, ...], by: tuple[str, ...], text: bool
) -> None:
    fields = [column(f"c{number}", kind) for number, kind in enumerate(columns)]
    found = Metadata(None, schema_string=schema_string(*fields), partition_columns=by)
    assert is_partitioned_by_text(partition_types(found)) is text
    without = Metadata(None, partition_columns=by)
    assert is_partitioned_by_text(partition_types(without)) is bool(by)


@pytest.mark.parametrize(("newest", "known"), [(60, True), (99, True), (100, False)])
def test_a_hundred_commits_before_the_checkpoint_show_who_wrote_files(
    log: Log, newest: int, known: bool
) -> None:
    log.commit(0, commit_info("WRITE", **DELTA_RS), protocol(1, 2), metadata(), add())
    for version in range(1, newest + 1):
        log.commit(version, commit_info(), {"txn": {"appId": "a", "version": version}})
    log.checkpoint(newest, protocol(1, 2), metadata(), add()).commit(newest + 1, commit_info())
    found = traces(log)
    assert (Trace.DELTA_RS_FILES in found) is known
    assert found.get(Trace.DELTA_RS_FILES, True)
