"""What `add` actions lack, whether their lines are parsed or only searched."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake

from deltaproto.errors import TableError
from deltaproto.protocol.feature import Trace
from deltaproto.tables.log import files
from deltaproto.tables.log.add_flaws import flaws_of_info
from deltaproto.tables.log.file_changes import FileChange
from deltaproto.tables.log.reader import LogReader
from tests.support.failures import each_row
from tests.support.logs import Log, add, column, metadata, protocol, schema_string

UNSIZED, IMPOSSIBLE, INCOMPLETE = (
    Trace.UNSIZED_FILES,
    Trace.IMPOSSIBLE_SIZES,
    Trace.INCOMPLETE_ADDS,
)
MISTYPED, STATISTICS = Trace.MISTYPED_ADDS, Trace.UNREADABLE_STATISTICS
UNENCODED = Trace.UNENCODED_PATHS
NOTHING = {"path": "p"}
VECTORS = Trace.MALFORMED_VECTORS
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "JmYU<FAxImPyDC7d!BKU",
    "offset": 1,
    "sizeInBytes": 34,
    "cardinality": 1,
}
GOOD_VECTORS: tuple[dict[str, Any], ...] = (
    {},
    {"offset": None},
    {"pathOrInlineDv": "abJmYU<FAxImPyDC7d!BKU"},
    {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"},
    {"storageType": "p", "pathOrInlineDv": "file:/t/v.bin"},
    {"storageType": "p", "pathOrInlineDv": "s3://t/v.bin", "maxRowIndex": 4},
)
BAD_VECTORS: tuple[dict[str, Any], ...] = (
    *({name: None} for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")),
    {"storageType": "U"},
    {"storageType": "x"},
    {"storageType": "p", "pathOrInlineDv": "/t/v.bin"},
    {"pathOrInlineDv": 5},
    {"sizeInBytes": 0},
    {"sizeInBytes": "34"},
    {"cardinality": -1},
    {"cardinality": "1"},
    {"cardinality": 1.0},
    {"offset": -1},
    {"offset": "1"},
)


def found(action: dict[str, Any]) -> set[Trace]:
    text = json.dumps(action, separators=(",", ":")).encode()
    seen: list[FileChange] = []
    actions = files.read_actions(
        "0.json", io.BytesIO(text), seen=lambda _, changes, __: seen.extend(changes)
    )
    list(actions)
    return {flaw for change in seen for flaw in change.flaws}


@each_row(
    ("members", "flaws"),
    [
        ({}, set()),
        ({"stats": '{"numRecords":1}'}, set()),
        ({"stats": '{"numRecords":1'}, {STATISTICS}),
        ({"stats": None}, set()),
        ({"stats": '{"a":}'}, {STATISTICS}),
        ({"stats": '{"numRecords":1}}'}, {STATISTICS}),
        ({"stats": '{"numRecords":NaN}'}, {STATISTICS}),
        ({"stats": '{"x":NaN}'}, {STATISTICS}),
        ({"stats": '{"numRecords":"x"}'}, {STATISTICS}),
        ({"stats": '{"numRecords":true}'}, {STATISTICS}),
        ({"stats": '{"numRecords":99999999999999999999}'}, {STATISTICS}),
        ({"stats": '{"x":"' + "\\ud800" + '"}'}, {STATISTICS}),
        ({"stats": '{"x":"' + "\\ud83d\\ude00" + '"}'}, set()),
        ({"stats": '{"numRecords":"1","x":{"y":[1]}}'}, set()),
        ({"stats": '{"numRecords":1.5}'}, set()),
        ({"stats": "[" * 100_000}, {STATISTICS}),
        ({"tags": {"size": "1"}}, set()),
        *(({"path": text}, {UNENCODED}) for text in ("a b", "50%", "a%zz", "a[1]", "a#b", "p=a?b")),
        *(({"path": text}, set()) for text in ("a%20b", "é", "p=a:b/c+d", "s3://a/b", "a'b(1)~!")),
        ({"size": None, "tags": {"size": 5}}, {UNSIZED}),
        ({"size": 0}, {IMPOSSIBLE}),
        ({"size": -5}, {IMPOSSIBLE}),
        ({"size": (1 << 63) - 1}, set()),
        ({"size": 1 << 63}, {MISTYPED}),
        ({"size": 1.5}, {MISTYPED}),
        ({"modificationTime": 1.5}, {MISTYPED}),
        ({"modificationTime": -1}, set()),
        ({"modificationTime": None, "dataChange": "x"}, {INCOMPLETE, MISTYPED}),
        ({"dataChange": None}, {INCOMPLETE}),
        ({"partitionValues": None}, {Trace.NO_PARTITION_VALUES}),
        ({"partitionValues": []}, {MISTYPED}),
        *(({"deletionVector": {**VECTOR, **more}}, set()) for more in GOOD_VECTORS),
        *(({"deletionVector": {**VECTOR, **more}}, {VECTORS}) for more in BAD_VECTORS),
        *(({"deletionVector": wrong}, {VECTORS}) for wrong in ({}, "x", [])),
        ({"baseRowId": 5, "defaultRowCommitVersion": 1}, set()),
        ({"baseRowId": "5"}, {MISTYPED}),
        ({"baseRowId": 5, "defaultRowCommitVersion": 1.0}, {MISTYPED}),
        ({"path": None}, {MISTYPED}),
        ({"path": 'a"size":1'}, {UNENCODED}),
    ],
)
def test_an_unparsed_line_shows_the_same(members: dict[str, Any], flaws: set[Trace]) -> None:
    action = add(**members)
    assert found(action) == flaws
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_PARSE_ALL_BYTES", 0)
        assert found(action) == flaws


def test_an_action_without_anything_lacks_everything() -> None:
    lacks = {UNSIZED, INCOMPLETE, Trace.NO_PARTITION_VALUES}
    assert found({"add": NOTHING}) == lacks
    assert found({"add": {}}) == {*lacks, MISTYPED}
    assert found({"remove": NOTHING}) == {Trace.INCOMPLETE_REMOVES}


STRUCT = {"type": "struct", "fields": [column("x", "integer")]}
KINDS: dict[str, Any] = {
    **{name: name for name in ("byte", "integer", "long", "double", "boolean", "string", "date")},
    **{"decimal": "decimal(10,2)", "struct": STRUCT},
}


def bound(kind: str, value: str, where: str = "minValues") -> str:
    return f'{{"{where}":{{"{kind}":{value}}}}}'


@pytest.mark.parametrize("parsed", [0, files._PARSE_ALL_BYTES])
@each_row(
    ("statistics", "mistyped"),
    [
        ('{"numRecords":1,"minValues":{"long":1},"nullCount":{"struct":{"x":0}}}', False),
        *((bound("long", value), False) for value in ('"5"', "5.5", "null", "1e3")),
        *((bound("long", value), True) for value in ('"a"', "true", "{}", str(1 << 63))),
        *((bound("integer", value), value != "1") for value in ("1", "9999999999")),
        *((bound("byte", value), value == "128") for value in ("127", "128", "-128")),
        *((bound("double", value), value == '"x"') for value in ("5", '"NaN"', '"x"')),
        *((bound("boolean", value), value != "true") for value in ("true", '"true"', "0")),
        *((bound("string", value), value == "{}") for value in ("5", "true", "{}")),
        *((bound(kind, '"x"'), False) for kind in ("date", "decimal", "part", "unknown")),
        *((bound("struct", value), value != '{"x":1}') for value in ('{"x":1}', '{"x":"a"}', "5")),
        *((bound("string", value, "nullCount"), value == '"x"') for value in ("0", '"x"')),
        (bound("long", '"a"', "maxValues"), True),
        (bound("struct", "5", "nullCount"), True),
        *((f'{{"{where}":[]}}', True) for where in ("minValues", "maxValues", "nullCount")),
    ],
)
def test_statistics_are_compared_with_the_schema(
    statistics: str, mistyped: bool, parsed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As deltalake 1.6.6 reads them, which `tests/clients/test_real_hazards.py` shows."""
    monkeypatch.setattr(files, "_PARSE_ALL_BYTES", parsed)
    fields = [*(column(name, kind) for name, kind in KINDS.items()), column("part", "long")]
    log = Log(Path(tempfile.mkdtemp(dir=tmp_path)))
    described = metadata(schema=schema_string(*fields), partition_columns=["part"])
    log.commit(0, protocol(1, 2), described, add(stats="{}"), add("b", stats=statistics))
    assert LogReader().read(log.table).traces[Trace.MISTYPED_STATISTICS] is mistyped


@each_row(
    "line",
    [
        b'{"add":{"path":"p","tags":{"a":"\xff"}}}',
        b'{"add":{"path":"p","tags":{"a":"\\q"}}}',
        b'{"add":{"path":"p","tags":{"a":%s}}}' % (b"1" * 5000),
        b'{"add":{"path":"p","tags":{"a":1,}}}',
        b'{"add":{"path":"p"}} 5',
    ],
)
def test_damage_beside_the_members_of_an_add_is_damage(line: bytes) -> None:
    """With the fast decoder, too, which skips these members."""
    import msgspec  # noqa: F401

    usual = b'"size":1,"modificationTime":1,"dataChange":true,"partitionValues":{},"path":"p"'
    damaged = io.BytesIO(line.replace(b'"path":"p"', usual))
    with pytest.raises(TableError, match=r"0\.json line 1: "):
        list(files.read_actions("0.json", damaged, seen=lambda *_: None))


def test_other_actions_in_the_line_of_an_add_are_seen() -> None:
    action = {**add("a"), "remove": {"path": "b"}, "commitInfo": {"operation": "WRITE"}}
    text = json.dumps(action, separators=(",", ":")).encode()
    seen: list[Any] = []
    list(files.read_actions("0.json", io.BytesIO(text), seen=lambda *each: seen.extend(each)))
    info, changes, _ = seen
    assert info == {"operation": "WRITE"}
    assert [(change.action, change.path) for change in changes] == [("add", "a"), ("remove", "b")]


@pytest.mark.parametrize("every_commit", [True, False])
def test_commits_before_the_checkpoint_do_not_count(log: Log, every_commit: bool) -> None:
    """The checkpoint replaces them; what the newest commit lacks is always seen."""
    odd, good = add(size=None), add("p2")
    log.commit(0, protocol(1, 2), metadata(), odd).commit(1, good)
    log.checkpoint(0, protocol(1, 2), metadata(), add())
    traces = LogReader(every_commit=every_commit).read(log.table).traces
    assert traces[UNSIZED] is False
    log.commit(2, odd)
    assert LogReader(every_commit=True).read(log.table).traces[UNSIZED] is True


@each_row(
    ("members", "flawed"),
    [
        ({}, False),
        ({"timestamp": 1, "readVersion": 1, "isBlindAppend": True, "tags": {}}, False),
        ({"timestamp": "2026-01-01", "engineInfo": 5, "operation": 5, "userMetadata": {}}, False),
        ({"operationParameters": {"a": {"b": 1}}, "operationMetrics": None, "job": {}}, False),
        ({"timestamp": 1.5}, True),
        ({"timestamp": True}, True),
        ({"readVersion": "1"}, True),
        ({"readVersion": 1.0}, True),
        ({"version": 1 << 63}, True),
        ({"inCommitTimestamp": "5"}, True),
        ({"isBlindAppend": "true"}, True),
        *(
            ({name: "x"}, True)
            for name in ("operationParameters", "operationMetrics", "tags", "job", "notebook")
        ),
    ],
)
def test_delta_spark_cannot_read_other_types_in_commit_info(
    members: dict[str, Any], flawed: bool
) -> None:
    assert [*flaws_of_info(members)] == ([Trace.MISTYPED_INFO] if flawed else [])


def test_only_commits_since_the_checkpoint_have_flaws(log: Log) -> None:
    described = protocol(1, 2), metadata()
    log.commit(0, *described).commit(1, {"commitInfo": {"timestamp": 1.5}})
    assert LogReader(every_commit=True).read(log.table).traces[Trace.MISTYPED_INFO]
    log.checkpoint(1, *described).commit(2, add())
    assert not LogReader(every_commit=True).read(log.table).traces[Trace.MISTYPED_INFO]


def test_a_remove_action_needs_data_change() -> None:
    removed = {"path": "p", "deletionTimestamp": 1, "dataChange": True}
    assert found({"remove": removed}) == set()
    assert found({"remove": {**removed, "dataChange": None}}) == {Trace.INCOMPLETE_REMOVES}


STRICT = pa.schema([("id", pa.int64()), pa.field("x", pa.int32(), nullable=False)])


def with_a_late_column(log: Log) -> DeltaTable:
    """A table of deltalake that got a NOT NULL column when it had rows."""
    write_deltalake(log.table, pa.table({"id": [1, 2]}))
    DeltaTable(log.table).alter.add_columns(Field("x", "integer", nullable=False))
    write_deltalake(log.table, pa.table({"id": [3], "x": [3]}, schema=STRICT), mode="append")
    return DeltaTable(log.table)


@pytest.mark.parametrize("every_commit", [True, False])
def test_files_without_a_late_not_null_column_are_found(log: Log, every_commit: bool) -> None:
    table = with_a_late_column(log)
    query = QueryBuilder().register("t", table)
    with pytest.raises(Exception, match="Non-nullable column 'x' is missing"):
        query.execute("select x from t").read_all()
    read = LogReader(every_commit=every_commit)
    assert read.read(log.table).traces[Trace.LACKING_COLUMNS]
    table.create_checkpoint()
    assert not read.read(log.table).traces.get(Trace.LACKING_COLUMNS)
    assert (
        LogReader(look_in_files=True, every_statistics=True)
        .read(log.table)
        .traces[Trace.LACKING_COLUMNS]
    )


def test_files_that_were_replaced_lack_nothing(log: Log) -> None:
    with_a_late_column(log)
    write_deltalake(log.table, pa.table({"id": [4], "x": [4]}, schema=STRICT), mode="overwrite")
    assert LogReader(every_commit=True).read(log.table).traces[Trace.LACKING_COLUMNS] is False


@each_row(
    ("statistics", "lacking"),
    [
        ({"numRecords": 1, "nullCount": {"id": 0}}, True),
        ({"numRecords": 1, "nullCount": {"id": 0, "x": 0}}, False),
        ({"numRecords": 1, "nullCount": {}}, False),
        ({"numRecords": 1}, False),
        ({"numRecords": 0, "nullCount": {"id": 0}}, False),
        ({"numRecords": 1, "nullCount": 0}, False),
    ],
)
def test_only_null_counts_show_that_a_column_is_missing(
    statistics: dict[str, Any], lacking: bool
) -> None:
    strict = schema_string(column("id"), column("x", nullable=False))
    log = Log(Path(tempfile.mkdtemp()) / "t")
    log.commit(0, protocol(1, 2), metadata(schema=strict), add(stats=json.dumps(statistics)))
    assert LogReader(every_commit=True).read(log.table).traces[Trace.LACKING_COLUMNS] is lacking
