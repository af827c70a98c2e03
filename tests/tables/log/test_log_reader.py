"""The log reader on hand-made logs: right answers, and errors that name the place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from deltaproto.errors import ErrorCode, TableError
from deltaproto.policy.context import RuleContext
from deltaproto.policy.rules import run_table_rules
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import NoteKind, TableState, UnsupportedProtocol
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader, protocol_changes
from deltaproto.tables.storage.local import LocalLogStore
from tests.support.logs import Log, action_table, add, commit_info, metadata, protocol

P12, P13 = protocol(1, 2), protocol(1, 3)
P37 = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
M = metadata()


def read(
    log: Log, version: int | None = None, *, crc: bool = True, look: bool = False
) -> TableState:
    return LogReader(use_checksums=crc, look_in_files=look).read(log.table, version)


def failure(log: Log, version: int | None = None) -> TableError:
    with pytest.raises(TableError) as raised:
        read(log, version)
    return raised.value


def pair(state: TableState) -> tuple[int, int]:
    return state.protocol.min_reader_version, state.protocol.min_writer_version


def test_the_newest_protocol_wins(log: Log) -> None:
    log.commit(0, P12, M).commit(1, P13).commit(2, add())
    state = read(log)
    assert (pair(state), state.version) == ((1, 3), 2)


@pytest.mark.parametrize("stamp", [{"inCommitTimestamp": 7}, {}])
def test_a_checkpoint_of_the_newest_version_does_not_hide_its_commit(
    log: Log, stamp: dict[str, int]
) -> None:
    log.commit(0, commit_info("CLONE", **stamp), P12, M).checkpoint(0, P12, M)
    state = LogReader(every_commit=True).read(log.table)
    assert state.last_commit["operation"] == "CLONE"
    assert state.traces[Trace.COMMIT_TIMESTAMP] is bool(stamp)
    log.raw(0, b"{")
    state = LogReader(every_commit=True).read(log.table)
    assert Trace.COMMIT_TIMESTAMP not in state.traces
    log.path(0, ".json").unlink()
    state = LogReader(every_commit=True).read(log.table)
    assert Trace.COMMIT_TIMESTAMP not in state.traces


def test_time_travel(log: Log) -> None:
    log.commit(0, P12, M).commit(1, P13).commit(2, P37)
    assert [pair(read(log, version)) for version in (0, 1, 2)] == [(1, 2), (1, 3), (3, 7)]
    assert failure(log, 3).code is ErrorCode.NOT_FOUND
    assert "the newest is 2" in failure(log, 3).hint


def test_empty_and_absent_lists_are_kept_apart(log: Log) -> None:
    log.commit(0, protocol(3, 7, [], []), M)
    assert read(log).protocol.reader_features == frozenset()
    log.commit(1, protocol(1, 7, None, []))
    assert read(log).protocol.reader_features is None


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf%s\n%s\n",
        b"%s\r\n%s\r\n",
        b"\n\n%s\n\n   \n%s",
        b'%s\n%s\n{"somethingNew":{"a":1}}\n',
    ],
    ids=["byte-order-mark", "crlf", "blank-lines-no-final-newline", "unknown-action"],
)
def test_what_spark_accepts_is_accepted(log: Log, content: bytes) -> None:
    log.raw(0, content % (json.dumps(P13).encode(), json.dumps(M).encode()))
    assert pair(read(log)) == (1, 3)


def test_null_members_are_absent_members(log: Log) -> None:
    row = {"protocol": None, "metaData": None, "add": None, "txn": None}
    log.commit(0, {**row, **P13}, {**row, **M})
    assert pair(read(log)) == (1, 3)


@pytest.mark.parametrize("file", ["add", "remove", "cdc"])
def test_a_protocol_in_the_object_of_a_file_is_read(log: Log, file: str) -> None:
    line = json.dumps({file: {"path": "p"}, **P13}, separators=(",", ":"))
    log.commit(0, P12, M).raw(1, line.encode())
    assert pair(read(log)) == (1, 3)


def test_an_empty_commit_counts_as_a_version(log: Log) -> None:
    log.commit(0, P12, M).raw(1, b"")
    assert read(log).version == 1


def test_several_protocols_in_one_commit_the_last_wins(log: Log) -> None:
    log.commit(0, P13, M, P12)
    state = read(log)
    assert pair(state) == (1, 2)
    assert [note.kind for note in state.notes] == [NoteKind.SEVERAL_PROTOCOLS]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"commitInfo":{}}\n{"add":{"path":"x"', "line 2"),
        (b'{"commitInfo":{}}\n\n{"add"}\n', "line 3"),
        (b"\x00\x01\x02", "line 1"),
        (b"[1,2]\n", "list instead of an action"),
        (b'"text"\n', "str instead of an action"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a":' + b"[" * 100_000 + b"}", "line 1"),
        (b'{\n "commitInfo": {}\n}\n', "line 1"),
    ],
    ids=["cut-off", "malformed", "binary", "array", "string", "utf16", "nested", "pretty"],
)
def test_malformed_json_names_file_and_line(log: Log, content: bytes, why: str) -> None:
    log.commit(0, P12, M).raw(1, content)
    error = failure(log)
    assert error.code is ErrorCode.CORRUPT_LOG
    assert "00000000000000000001.json" in error.message
    assert why in error.message


@pytest.mark.parametrize(
    "action",
    [
        {"minReaderVersion": "1", "minWriterVersion": 2},
        {"minReaderVersion": 1.5, "minWriterVersion": 2},
        {"minReaderVersion": 1},
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": {}},
        [],
        "x",
    ],
)
def test_a_malformed_protocol_is_a_corrupt_log(log: Log, action: object) -> None:
    log.commit(0, {"protocol": action}, M)
    assert failure(log).code is ErrorCode.CORRUPT_LOG


@pytest.mark.parametrize(
    ("broken", "word"), [((P12,), "metaData"), ((M,), "protocol"), ((add(),), "protocol")]
)
def test_a_log_without_protocol_or_metadata(
    log: Log, broken: tuple[dict[str, object], ...], word: str
) -> None:
    log.commit(0, *broken)
    error = failure(log)
    assert error.code is ErrorCode.CORRUPT_LOG
    assert word in error.message


def test_a_gap_is_an_error_that_names_the_commit(log: Log) -> None:
    log.commit(0, P12, M).commit(2, add())
    error = failure(log)
    assert error.code is ErrorCode.CORRUPT_LOG
    assert "00000000000000000001.json" in error.message


def test_a_compacted_file_does_not_cover_a_gap(log: Log) -> None:
    log.commit(0, P12, M).commit(3, add())
    log.raw(0, json.dumps(P13).encode(), f".{2:020d}.compacted.json")
    assert failure(log).code is ErrorCode.CORRUPT_LOG
    log.commit(1, add()).commit(2, add())
    assert pair(read(log)) == (1, 2)


def test_a_protocol_from_the_future_is_shown_and_refused(log: Log) -> None:
    log.commit(0, protocol(9, 12, ["x"], ["x"]), M)
    error = failure(log)
    assert isinstance(error, UnsupportedProtocol)
    assert error.code is ErrorCode.UNSUPPORTED_PROTOCOL
    assert "upgrade deltaproto" in error.hint
    assert error.protocol.to_action()["minReaderVersion"] == 9


CHECKPOINTS = {
    "classic": ".checkpoint.parquet",
    "v2-parquet": ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
    "v2-json": ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints_of_every_kind(log: Log, kind: str) -> None:
    rows = (add(), P37, add("b"), M, {"checkpointMetadata": {"version": 4}})
    log.checkpoint(4, *rows, suffix=CHECKPOINTS[kind]).commit(4, add()).commit(5, add())
    state = read(log)
    assert (state.version, pair(state)) == (5, (3, 7))
    assert state.protocol.to_action() == P37["protocol"]
    assert state.metadata.id == M["metaData"]["id"]


def test_a_checkpoint_alone_is_read_and_noted(log: Log) -> None:
    log.checkpoint(7, P12, M)
    state = read(log)
    assert (state.version, pair(state)) == (7, (1, 2))
    assert [note.kind for note in state.notes] == [NoteKind.NO_COMMIT_FILES]


def test_multi_part_checkpoints_need_all_their_parts(log: Log) -> None:
    first, second = (f".checkpoint.{n:010d}.{2:010d}.parquet" for n in (1, 2))
    log.commit(0, P12, M).commit(1, add()).commit(2, P13)
    log.checkpoint(1, add(), suffix=first)
    assert pair(read(log)) == (1, 3)
    log.checkpoint(1, P12, M, suffix=second)
    log.path(0, ".json").unlink()
    assert pair(read(log)) == (1, 3)
    log.path(1, first).unlink()
    assert failure(log).code is ErrorCode.CORRUPT_LOG


def test_parts_with_wrong_numbers_are_no_checkpoint(log: Log) -> None:
    log.commit(0, P12, M).commit(1, add()).commit(2, P13)
    for part in (2, 3):
        log.checkpoint(1, P37, M, suffix=f".checkpoint.{part:010d}.{2:010d}.parquet")
    assert pair(read(log)) == (1, 3)
    log.path(0, ".json").unlink()
    assert failure(log).code is ErrorCode.CORRUPT_LOG


def test_sidecars_are_not_needed_for_the_protocol(log: Log) -> None:
    sidecar = {"sidecar": {"path": "gone.parquet"}}
    log.checkpoint(2, P37, M, sidecar, suffix=CHECKPOINTS["v2-json"]).commit(3, add())
    assert pair(read(log)) == (3, 7)


def test_a_checkpoint_that_is_written_while_the_log_is_read_is_not_missing(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.commit(0, P12, M).checkpoint(0, P12, M).commit(1, add())
    opened = LocalLogStore.open

    def late(store: LocalLogStore, name: str) -> Any:
        if name == "_last_checkpoint":
            log.checkpoint(2, P12, M).commit(2, add())
            hint.write_text('{"version":2,"size":2}')
        return opened(store, name)

    hint = log.folder / "_last_checkpoint"
    hint.write_text('{"version":0,"size":2}')
    monkeypatch.setattr(LocalLogStore, "open", late)
    state = LogReader(every_commit=True).read(log.table)
    assert (state.version, state.notes) == (1, ())


@pytest.mark.parametrize(
    ("hint", "version", "noted"),
    [
        (b'{"version":2,"size":1}', None, False),
        (b'{"version":3,"size":1}', None, True),
        (b'{"version":3,"size":1}', 2, False),
        (b'{"version":3,"size":1}', 3, True),
        (b'{"version":9,"size":1}', None, True),
        (b'{"version":9,"size":1}', 3, False),
        *((text, None, False) for text in (b"", b"{", b"[9]", b'{"version":9}')),
        *(
            (b'{"version":%b,"size":1}' % text, None, False)
            for text in (b"-1", b'"9"', b"9.0", b"true", b"18446744073709551616")
        ),
    ],
)
def test_a_hint_that_delta_kernel_refuses_is_noted(
    log: Log, hint: bytes, version: int | None, noted: bool
) -> None:
    log.commit(0, P12, M).commit(1, add()).commit(2, add()).commit(3, add()).commit(4, add())
    log.checkpoint(2, P12, M)
    (log.folder / "_last_checkpoint").write_bytes(hint)
    notes = LogReader(every_commit=True).read(log.table, version).notes
    assert bool(notes) is noted


@pytest.mark.parametrize("hint", [None, b"", b"garbage", b'{"version":99,"size":1}'])
def test_the_last_checkpoint_hint_is_not_trusted(log: Log, hint: bytes | None) -> None:
    log.checkpoint(1, P13, M).commit(2, add())
    if hint is not None:
        (log.folder / "_last_checkpoint").write_bytes(hint)
    assert pair(read(log)) == (1, 3)


@pytest.mark.parametrize("damage", [b"", b"not parquet", b"PAR1 half a file"])
def test_a_corrupt_checkpoint_falls_back_to_the_commits(log: Log, damage: bytes) -> None:
    log.commit(0, P12, M).commit(1, P13).commit(2, add())
    log.raw(1, damage, ".checkpoint.parquet")
    state = read(log)
    assert (state.version, pair(state)) == (2, (1, 3))
    log.path(0, ".json").unlink()
    assert failure(log).code is ErrorCode.CORRUPT_LOG


def test_a_corrupt_checkpoint_is_noted_and_an_older_one_used(log: Log) -> None:
    log.checkpoint(1, P13, M).commit(2, add()).commit(3, add()).commit(4, add())
    log.raw(3, b"broken", ".checkpoint.parquet")
    state = read(log)
    assert (state.version, pair(state)) == (4, (1, 3))
    assert NoteKind.CHECKPOINT_UNREADABLE in {note.kind for note in state.notes}


def test_a_readable_checkpoint_without_protocol_is_a_broken_log(log: Log) -> None:
    log.commit(0, P12, M).commit(1, add()).checkpoint(1, M, add())
    error = failure(log)
    assert error.code is ErrorCode.CORRUPT_LOG
    assert "protocol" in error.message


def test_a_version_that_was_cleaned_up(log: Log) -> None:
    log.checkpoint(5, P12, M).commit(5, add()).commit(6, add())
    error = failure(log, 3)
    assert error.code is ErrorCode.NOT_FOUND
    assert "oldest version that can be rebuilt is 5" in error.hint


def info(transaction: str, **fields: object) -> dict[str, object]:
    return commit_info(txnId=transaction, **fields)


def test_a_checksum_of_the_newest_commit_saves_reading_the_rest(log: Log) -> None:
    log.commit(0, P12, M).raw(1, b"this line is never read").commit(2, info("t2"), add())
    log.checksum(2, P13, M, txnId="t2")
    assert pair(read(log)) == (1, 3)
    with pytest.raises(TableError):
        read(log, crc=False)


@pytest.mark.parametrize(
    ("fields", "contradicts"),
    [
        ({"txnId": "another"}, True),
        ({}, True),
        ({"txnId": "t1", "numProtocol": 2}, False),
        ({"txnId": "t1", "inCommitTimestampOpt": 5}, True),
    ],
    ids=["another-transaction", "no-transaction", "two-protocols", "another-time"],
)
def test_a_checksum_that_cannot_be_proven_is_ignored(
    log: Log, fields: dict[str, object], contradicts: bool
) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), add()).checksum(1, P37, M, **fields)
    state = read(log)
    assert pair(state) == (1, 2)
    kinds = {note.kind for note in state.notes}
    assert (NoteKind.CHECKSUM_CONTRADICTS in kinds) is contradicts


def contradicted(log: Log) -> bool:
    return NoteKind.CHECKSUM_CONTRADICTS in {note.kind for note in read(log).notes}


def test_a_checksum_that_older_commits_contradict_is_reported(log: Log) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), add()).commit(2, info("t2"), add())
    assert not contradicted(log.checksum(1, P12, M))
    assert contradicted(log.checksum(1, P37, M))
    assert not contradicted(log.checksum(2, P12, M)), "only the newest is a start for others"
    assert contradicted(log.checksum(2, P12, metadata({"delta.appendOnly": "true"})))


def test_a_checksum_before_the_change_that_it_lacks_is_right(log: Log) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), add()).commit(2, info("t2"), P13)
    assert not contradicted(log.checksum(1, P12, M))
    # The commit of version 2 replaced the protocol, whatever it was.
    assert not contradicted(log.checksum(1, P37, M))
    assert contradicted(log.checksum(1, P12, metadata({"delta.appendOnly": "true"})))


def test_a_checksum_below_the_checkpoint_is_of_no_use_to_anybody(log: Log) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), add()).checksum(0, P37, M)
    assert contradicted(log)
    log.checkpoint(1, P12, M, add())
    assert not contradicted(log)


def test_a_checksum_beyond_the_log_is_reported(log: Log) -> None:
    log.commit(0, P12, M).checksum(5, P12, M)
    (note,) = read(log).notes
    assert note.message == f"{5:020d}.crc is ignored: the log ends at version 0"


def test_a_checksum_beyond_the_log_is_reported_beside_a_valid_one(log: Log) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), add()).checksum(1, P12, M, txnId="t1")
    assert not contradicted(log)
    log.checksum(2, P12, M, txnId="t2")
    for every_commit in (True, False):
        (note,) = LogReader(every_commit=every_commit).read(log.table).notes
        assert note.message == f"{2:020d}.crc is ignored: the log ends at version 1"
    with pytest.raises(DeltaError, match="newer than log segment"):
        DeltaTable(log.table)


def test_a_checkpoint_needs_every_member_of_the_metadata(log: Log) -> None:
    incomplete = {"metaData": {**M["metaData"], "configuration": None, "id": None}}
    log.commit(0, P12, M).commit(1, add()).checkpoint(1, P12, M, add())
    assert not read(log).notes
    log.checkpoint(1, P12, incomplete, add())
    (note,) = read(log).notes
    assert note.kind is NoteKind.METADATA_INCOMPLETE
    assert "has no id and no configuration" in note.message
    # A newer commit replaces it.
    assert not read(log.commit(2, M)).notes


@pytest.mark.parametrize("form", ["v2-json", "v2-parquet"])
@pytest.mark.parametrize("missing", ["sizeInBytes", "modificationTime"])
def test_a_sidecar_needs_its_size_and_its_time(log: Log, form: str, missing: str) -> None:
    (log.folder / "_sidecars").mkdir()
    pq.write_table(action_table((add("a"),)), log.folder / "_sidecars" / "part.parquet")
    log.commit(0, P37, M).commit(1, add())
    for value, damaged in ((1, False), (None, True)):
        sidecar = {"sidecar": {"path": "part.parquet", missing: value}}
        version = {"checkpointMetadata": {"version": 1}}
        log.checkpoint(1, P37, M, sidecar, version, suffix=CHECKPOINTS[form])
        notes = LogReader(every_commit=True).read(log.table).notes
        assert [note.kind for note in notes] == [NoteKind.CHECKPOINT_UNREADABLE] * damaged


def test_a_checksum_against_the_protocol_of_its_own_commit_is_a_lie(log: Log) -> None:
    log.commit(0, P12, M).commit(1, info("t1"), P13).checksum(1, P37, M, txnId="t1")
    state = read(log)
    assert pair(state) == (1, 3)
    assert {note.kind for note in state.notes} == {NoteKind.CHECKSUM_CONTRADICTS}


def test_a_checksum_against_the_domains_of_its_own_commit_is_a_lie(log: Log) -> None:
    def domain(text: str) -> dict[str, object]:
        return {"domain": "delta.clustering", "configuration": text, "removed": False}

    log.commit(0, P37, M).commit(1, info("t1"), {"domainMetadata": domain("new")})
    log.checksum(1, P37, M, txnId="t1", domainMetadata=[domain("old")])
    state = read(log)
    assert {note.kind for note in state.notes} == {NoteKind.CHECKSUM_CONTRADICTS}
    assert state.domains == {"delta.clustering": "new"}


def test_stale_and_partial_checksums_are_ignored(log: Log) -> None:
    log.commit(0, info("t0"), P12, M).commit(1, info("t1"), P13)
    log.checksum(0, P12, M, txnId="t0")
    assert pair(read(log)) == (1, 3)
    log.raw(1, b'{"txnId":"t1","numFiles":0}', ".crc")
    assert pair(read(log)) == (1, 3)
    log.raw(1, b"not json", ".crc")
    assert pair(read(log)) == (1, 3)


def test_a_broken_newest_commit_is_found_beside_a_good_checksum(log: Log) -> None:
    log.commit(0, P12, M).raw(1, b'{"commitInfo":{"txnId":"t1"}}\n{"add":{').checksum(
        1, P12, M, txnId="t1"
    )
    assert failure(log).code is ErrorCode.CORRUPT_LOG


def domain(name: str, configuration: str, *, removed: bool = False) -> dict[str, object]:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


CLUSTERED = protocol(1, 7, None, ["clustering", "domainMetadata"])


def test_clustering_columns_come_from_their_domain(log: Log) -> None:
    columns = json.dumps({"clusteringColumns": [["a"], ["b", "c"]]})
    log.commit(0, CLUSTERED, M, domain("delta.clustering", columns)).commit(1, add())
    assert read(log).clustering_columns == ("a", "b.c")
    log.checkpoint(1, CLUSTERED, M, domain("delta.clustering", columns))
    log.path(0, ".json").unlink()
    assert read(log).clustering_columns == ("a", "b.c")
    log.commit(2, domain("delta.clustering", "", removed=True))
    assert read(log).clustering_columns == ()
    log.commit(3, domain("delta.clustering", "[" * 100_000))
    assert read(log).clustering_columns is None


def test_looking_in_files_finds_what_is_live(log: Log) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1}
    log.commit(0, P37, M, add("a"), add("b", baseRowId=0))
    log.commit(1, {"remove": {"path": "a"}}, add("a", deletionVector=vector))
    assert read(log).traces.get(Trace.DELETION_VECTORS) is None
    traces = read(log, look=True).traces
    assert (traces[Trace.DELETION_VECTORS], traces[Trace.ROW_IDS]) == (True, True)
    log.commit(2, {"remove": {"path": "a", "deletionVector": vector}}, {"cdc": {"path": "c"}})
    traces = read(log, look=True).traces
    assert (traces[Trace.DELETION_VECTORS], traces[Trace.CHANGE_FILES]) == (False, True)


def test_looking_in_files_reads_checkpoints_and_sidecars(log: Log) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x"}
    (log.folder / "_sidecars").mkdir()
    rows = (add("a", deletionVector=vector),)
    pq.write_table(action_table(rows), log.folder / "_sidecars" / "part.parquet")
    log.checkpoint(
        3,
        P37,
        M,
        {"sidecar": {"path": "part.parquet"}},
        {"checkpointMetadata": {"version": 3}},
        suffix=CHECKPOINTS["v2-parquet"],
    ).commit(3, add("z"))
    traces = read(log, look=True).traces
    assert (traces[Trace.DELETION_VECTORS], traces[Trace.V2_CHECKPOINT]) == (True, True)


def test_whether_the_newest_checkpoint_is_v2_is_known_by_its_name_or_parts(log: Log) -> None:
    log.commit(0, P37, M)
    assert read(log).traces[Trace.V2_CHECKPOINT] is False
    # One file with a version alone can be of either kind.
    log.commit(1, add()).checkpoint(1, P37, M)
    assert Trace.V2_CHECKPOINT not in read(log).traces
    log.commit(2, add())
    for part in (1, 2):
        log.checkpoint(2, P37, M, suffix=f".checkpoint.{part:010d}.{2:010d}.parquet")
    assert read(log).traces[Trace.V2_CHECKPOINT] is False


def test_the_changes_of_the_protocol(log: Log) -> None:
    log.commit(0, commit_info("CREATE TABLE"), P12, M).commit(1, add())
    log.commit(2, commit_info("SET TBLPROPERTIES", engineInfo="e"), P13)
    changes = read(log).changes
    assert changes is not None
    seen = [(c.version, c.protocol, c.commit_info["operation"]) for c in changes()]
    assert seen == [
        (0, Protocol(1, 2), "CREATE TABLE"),
        (2, Protocol(1, 3), "SET TBLPROPERTIES"),
    ]


@pytest.mark.parametrize("name", ["a b", "a%20b", "täble", "x'y", "q?r#s", "[1]", "a`b", " lead"])
def test_paths_are_taken_literally(tmp_path: Path, name: str) -> None:
    Log(tmp_path / name).commit(0, P13, M)
    if "%20" in name:
        Log(tmp_path / "a b").commit(0, P37, M)
    state = LogReader().read(str(tmp_path / name))
    assert pair(state) == (1, 3)
    assert pair(LogReader().read(state.location)) == (1, 3)


def test_the_log_folder_itself_stands_for_its_table(log: Log) -> None:
    log.commit(0, P12, M)
    assert LogReader().read(str(log.folder)).location == LogReader().read(log.table).location


def test_staged_commits_are_noted_and_not_read(log: Log) -> None:
    log.commit(0, protocol(3, 7, ["catalogManaged"], ["catalogManaged"]), M)
    staged = log.folder / "_staged_commits"
    staged.mkdir()
    (staged / f"{1:020d}.{'0' * 8}.json").write_text(json.dumps(P12))
    state = read(log)
    assert state.version == 0
    assert [note.kind for note in state.notes] == [NoteKind.STAGED_COMMITS]


def test_what_is_no_table(tmp_path: Path) -> None:
    def code(path: Path) -> ErrorCode:
        with pytest.raises(TableError) as raised:
            LogReader().read(str(path))
        assert raised.value.hint
        return raised.value.code

    empty, parquet, file, inside = (tmp_path / n for n in ("empty", "parquet", "file", "t"))
    empty.mkdir()
    parquet.mkdir()
    (parquet / "part-0.parquet").write_bytes(b"PAR1")
    file.write_text("x")
    (inside / "_delta_log").mkdir(parents=True)
    (inside / "day=1").mkdir()
    assert code(tmp_path / "nowhere") is ErrorCode.NOT_FOUND
    for path in (empty, parquet, file, inside, inside / "day=1"):
        assert code(path) is ErrorCode.NOT_A_DELTA_TABLE
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "_delta_log").write_text("a file")
    assert code(odd) is ErrorCode.NOT_A_DELTA_TABLE


def test_a_log_that_may_not_be_read(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    log.commit(0, P12, M)
    real = os.open

    def refuse(path: str, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(".json"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    # Root may read everything, and the tests may run as root.
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "open", refuse)
    else:
        log.path(0, ".json").chmod(0)
    assert failure(log).code is ErrorCode.PERMISSION_DENIED


def test_a_folder_that_may_not_be_listed_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    folder, real = tmp_path / "shut", os.listdir
    folder.mkdir()

    def refuse(path: str) -> list[str]:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    # Root may list everything, and the tests may run as root.
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "listdir", refuse)
    else:
        folder.chmod(0o311)
    with pytest.raises(TableError) as raised:
        LogReader().read(str(folder))
    assert raised.value.code is ErrorCode.NOT_A_DELTA_TABLE
    assert raised.value.hint == "cannot list the folder: Permission denied"


def test_the_changes_cost_a_bounded_part_of_the_log(log: Log) -> None:
    vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly", "invariants"])
    log.commit(0, commit_info("CREATE TABLE"), vectors, M)
    for version in range(1, 401):
        log.commit(version, commit_info(), *(add(f"{version}-{n}") for n in range(3)))
    log.commit(401, info("t"), add()).checksum(401, vectors, M, txnId="t", numDeletionVectorsOpt=0)
    opened: list[str] = []
    state = read(log)

    class Counting(LocalLogStore):
        def open(self, name: str) -> Any:
            opened.append(name)
            return super().open(name)

    store = Counting(log.table)
    assert protocol_changes(store, build_listing(store.list()), 401) == ()
    assert len(opened) == 200
    assert {finding.rule for finding in run_table_rules(RuleContext(state))} == {"DP110"}


def test_the_changes_start_from_a_checkpoint_next_to_the_first_commit(log: Log) -> None:
    log.checkpoint(4, P13, M).commit(5, P37).commit(6, add())
    changes = read(log).changes
    assert changes is not None
    assert [change.version for change in changes()] == [4, 5]


def test_the_changes_claim_nothing_across_commits_that_are_gone(log: Log) -> None:
    log.checkpoint(2, P13, M).checkpoint(8, P12, M).commit(9, P37)
    log.path(8, ".checkpoint.parquet").unlink()
    store = LocalLogStore(log.table)
    changes = protocol_changes(store, build_listing(store.list()), 9)
    assert [change.version for change in changes] == [9]


def test_the_changes_end_where_a_commit_before_the_checkpoint_is_missing(log: Log) -> None:
    log.commit(0, P12, M).commit(1, add()).commit(3, add()).checkpoint(3, P37, M).commit(4, P13)
    store = LocalLogStore(log.table)
    changes = protocol_changes(store, build_listing(store.list()), 4)
    assert [(change.version, change.protocol.min_writer_version) for change in changes] == [
        (3, 7),
        (4, 3),
    ]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["00000000000000000000.json", "00000000000000000000.crc"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(log: Log, name: str) -> None:
    if name.endswith(".crc"):
        log.commit(0, protocol(1, 2), metadata())
        os.mkfifo(log.folder / name)
        assert pair(read(log)) == (1, 2)
    else:
        os.mkfifo(log.folder / name)
        with pytest.raises(TableError) as error:
            read(log)
        assert error.value.code is ErrorCode.CORRUPT_LOG
