"""Bounds in the statistics of data files that are missing, or that readers misread."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.policy.hazards import HAZARDS_OF_BOUNDS
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import (
    has_indexed_booleans,
    has_indexed_timestamps,
    indexed_columns,
)
from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.file_statistics import MISREAD_BOUNDS, compare_statistics
from deltaproto.tables.log.reader import LogReader
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

COLUMNS, BOOLEANS, LATER, NAN, EXPONENTS = MISREAD_BOUNDS
STRUCT = json.loads(schema_string(column("x"), column("y"), column("z", "boolean")))
FIELDS = (column("id"), column("flag", "boolean"), column("part", "string"))
DESCRIBED = metadata(schema=schema_string(*FIELDS), partition_columns=["part"])
BOUNDS = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}}
FULL = {
    "numRecords": 3,
    "minValues": {"id": 1, "flag": False},
    "maxValues": {"id": 3, "flag": True},
}


def file(path: str, statistics: Mapping[str, Any] | None) -> dict[str, Any]:
    action = add(path, partitionValues={"part": "a"})
    if statistics is not None:
        action["add"]["stats"] = json.dumps(statistics)
    return action


def found(log: Log, *, every_commit: bool = True) -> dict[Trace, bool]:
    traces = LogReader(every_commit=every_commit).read(log.table).traces
    return {trace: traces[trace] for trace in MISREAD_BOUNDS if trace in traces}


REFUTED = dict.fromkeys(MISREAD_BOUNDS, False)


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "partitionValues": {}}}


def begun(log: Log, *actions: dict[str, Any]) -> Log:
    return log.commit(0, commit_info(), protocol(1, 2), DESCRIBED, *actions)


@each_row(
    ("statistics", "lacking"),
    [
        (None, set()),
        ({}, set()),
        ({"numRecords": 3}, set()),
        ({"numRecords": 3, "nullCount": {"id": 0, "flag": 0}}, set()),
        (FULL, set()),
        (BOUNDS, {BOOLEANS}),
        ({**BOUNDS, "nullCount": {"id": 0, "flag": 0}}, {BOOLEANS}),
        ({**BOUNDS, "nullCount": {"id": 0, "flag": 3}}, set()),
        ({**FULL, "minValues": {"flag": True}}, {COLUMNS}),
        ({**FULL, "maxValues": {"flag": True}}, {COLUMNS}),
        ({**FULL, "maxValues": {"flag": None, "id": 3}}, {BOOLEANS}),
        ({**FULL, "maxValues": None}, set()),
        ({**FULL, "minValues": {}}, {COLUMNS, BOOLEANS}),
    ],
)
def test_statistics_with_bounds_lack_those_of_other_columns(
    statistics: Mapping[str, Any] | None, lacking: set[Trace], log: Log
) -> None:
    begun(log, file("f", statistics))
    for every in (False, True):
        shown = found(log, every_commit=every)
        assert shown == {trace: trace in lacking for trace in MISREAD_BOUNDS}


NUMBERS = (column("ratio", "double"), column("sum", "decimal(20,10)"), column("id"))


@each_row(
    ("bounds", "lacking"),
    [
        ('{"ratio":1.5,"sum":1.5,"id":1}', set()),
        ('{"ratio":"NaN","sum":1.5,"id":1}', {NAN}),
        ('{"ratio":"Infinity","sum":1.5,"id":1}', set()),
        ('{"ratio":1E-10,"sum":1.5,"id":1}', set()),
        ('{"ratio":1.5,"sum":0E-10,"id":1}', {EXPONENTS}),
        ('{"ratio":1.5,"sum":-1.5e-9,"id":1}', {EXPONENTS}),
        ('{"ratio":1.5,"sum":0.0000000001,"id":1}', set()),
        ('{"ratio":"NaN","sum":1e+2,"id":1}', {NAN, EXPONENTS}),
        ('{"ratio":"NaN","sum":1.5}', {NAN, COLUMNS}),
    ],
)
def test_bounds_may_be_no_plain_numbers(bounds: str, lacking: set[Trace], log: Log) -> None:
    described = metadata(schema=schema_string(*NUMBERS))
    action = add(stats=f'{{"numRecords":3,"maxValues":{bounds}}}')
    log.commit(0, commit_info(), protocol(1, 2), described, action)
    assert {trace for trace, shown in found(log).items() if shown} == lacking


def test_removed_files_do_not_count(log: Log) -> None:
    begun(log, file("f", BOUNDS))
    log.commit(1, remove("f"), file("g", FULL))
    assert found(log) == REFUTED
    log.commit(2, remove("g"), file("g", BOUNDS))
    assert found(log)[BOOLEANS]


def test_files_in_a_checkpoint_count_if_their_commits_are_left(log: Log) -> None:
    begun(log, file("f", BOUNDS))
    log.checkpoint(0, protocol(1, 2), DESCRIBED, file("f", None)).commit(1, file("g", FULL))
    assert found(log)[BOOLEANS]
    # A scan does not read them.
    assert BOOLEANS not in found(log, every_commit=False)
    log.path(0, ".json").unlink()
    assert BOOLEANS not in found(log)
    assert Trace.MISTYPED_STATISTICS in LogReader(every_commit=True).read(log.table).traces


def test_a_checkpoint_shows_statistics_in_its_footer(log: Log) -> None:
    begun(log)
    log.checkpoint(0, protocol(1, 2), DESCRIBED, file("f", FULL), file("g", BOUNDS))
    log.commit(1, file("h", FULL)).path(0, ".json").unlink()
    assert found(log) == {BOOLEANS: True}


def test_a_checksum_has_the_statistics_of_all_files(log: Log) -> None:
    begun(log, file("f", FULL)).commit(1, {"commitInfo": {"txnId": "t"}}, file("g", FULL))
    listed: dict[str, Any] = {"txnId": "t", "numFiles": 2, "domainMetadata": []}
    for statistics, lacks in ((FULL, False), (BOUNDS, True)):
        files = [file("f", statistics)["add"], file("g", FULL)["add"]]
        log.checksum(1, protocol(1, 2), DESCRIBED, allFiles=files, **listed)
        shown = dict.fromkeys(MISREAD_BOUNDS, False) | {BOOLEANS: lacks}
        assert found(log, every_commit=False) == shown


def test_what_was_not_read_is_unknown(log: Log) -> None:
    begun(log, *(file(f"f{number}", FULL) for number in range(100)))
    assert found(log) == REFUTED
    log.commit(1, *(file(f"g{number}", FULL) for number in range(101)))
    assert found(log) == {}
    log.commit(2, file("h", BOUNDS))
    assert found(log) == {BOOLEANS: True}


def every(log: Log) -> dict[Trace, bool]:
    traces = LogReader(look_in_files=True, every_commit=True, every_statistics=True).read(log.table)
    return {trace: traces.traces[trace] for trace in MISREAD_BOUNDS if trace in traces.traces}


def test_the_statistics_of_every_file_can_be_read(log: Log) -> None:
    begun(log, *(file(f"f{number}", FULL) for number in range(100)))
    log.commit(1, file("old", BOUNDS), *(file(f"g{number}", FULL) for number in range(150)))
    assert (found(log), every(log)) == ({BOOLEANS: True}, dict(REFUTED, **{BOOLEANS: True}))
    log.commit(2, remove("old"))
    assert (found(log), every(log)) == ({}, REFUTED)
    log.commit(3, *(file(f"h{number}", FULL) for number in range(201)), file("new", BOUNDS))
    assert (found(log), every(log)[BOOLEANS]) == ({}, True)
    # The same file with other statistics, as after ANALYZE.
    log.commit(4, file("new", FULL))
    assert (found(log), every(log)) == ({}, REFUTED)


def test_files_of_a_checkpoint_count_until_they_are_removed(log: Log) -> None:
    files = (file(f"f{number}", FULL) for number in range(5))
    begun(log).checkpoint(0, protocol(1, 2), DESCRIBED, file("old", BOUNDS), *files)
    log.commit(1, file("g", FULL))
    assert every(log)[BOOLEANS]
    log.commit(2, remove("old"))
    assert every(log) == REFUTED


@pytest.mark.parametrize("stored", [None, FULL])
@pytest.mark.parametrize("parsed", [None, {"numRecords": 3}])
def test_statistics_in_another_form_leave_it_unknown(
    stored: Mapping[str, Any] | None, parsed: Mapping[str, Any] | None, log: Log
) -> None:
    begun(log).path(0, ".json").unlink()
    table = action_table((protocol(1, 2), DESCRIBED, file("f", stored)))
    added = table.column("add").combine_chunks()
    adds = pa.StructArray.from_arrays(
        [*added.flatten(), pa.array([None, None, parsed], pa.struct({"numRecords": pa.int64()}))],
        fields=[*added.type, pa.field("stats_parsed", pa.struct({"numRecords": pa.int64()}))],
        mask=added.is_null(),
    )
    number = table.schema.get_field_index("add")
    pq.write_table(table.set_column(number, "add", adds), log.path(0, ".checkpoint.parquet"))
    log.commit(1, file("g", FULL))
    assert every(log) == (REFUTED if stored or not parsed else {})
    log.commit(2, file("h", BOUNDS))
    assert every(log)[BOOLEANS]


STRUCTS = (column("a"), column("s", STRUCT), column("b"), column("c", "boolean"))


@each_row(
    ("configuration", "names"),
    [
        ({}, ["a", "s", "b", "c!"]),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ["a", "s", "b", "c!"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingNumIndexedCols": "1"}, ["a"]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["a", "s"]),
        ({"delta.dataSkippingNumIndexedCols": "4"}, ["a", "s", "b later", "c! later"]),
        ({"delta.dataSkippingNumIndexedCols": "5"}, ["a", "s", "b", "c! later"]),
        ({"delta.dataSkippingNumIndexedCols": "x"}, ["a", "s", "b", "c!"]),
        ({"delta.dataSkippingStatsColumns": "b, `c`,s.x"}, ["b", "c!"]),
        ({"delta.dataSkippingStatsColumns": ""}, []),
        ({"delta.dataSkippingStatsColumns": "B"}, []),
    ],
)
def test_properties_choose_the_indexed_columns(
    configuration: dict[str, str], names: list[str]
) -> None:
    described = Metadata("id", None, schema_string(*STRUCTS), (), configuration)
    shown = [
        each.name + "!" * each.boolean + " later" * each.later
        for each in indexed_columns(described)
    ]
    assert shown == names
    assert has_indexed_booleans(described) is any("!" in name for name in names)


@each_row(
    "kind", ["binary", "void", {"type": "array", "elementType": "long"}, 5, None, {"type": []}]
)
def test_other_types_have_no_bounds(kind: Any) -> None:
    described = Metadata("id", None, schema_string(column("a"), column("b", kind)))
    assert [each.name for each in indexed_columns(described)] == ["a"]
    assert not list(indexed_columns(Metadata("id")))


def test_partition_columns_count_but_have_no_statistics() -> None:
    one = {"delta.dataSkippingNumIndexedCols": "2"}
    described = Metadata("id", None, schema_string(*FIELDS, column("z")), ("id",), one)
    assert [each.name for each in indexed_columns(described)] == ["flag"]


@each_row(
    ("kind", "rounded"),
    [("timestamp", True), ("timestamp_ntz", True), ("date", False), ({"type": "array"}, False)],
)
def test_bounds_of_timestamps_are_rounded(kind: Any, rounded: bool) -> None:
    described = Metadata("id", None, schema_string(column("a"), column("b", kind)))
    assert has_indexed_timestamps(described) is rounded


def test_the_rule_has_a_word_for_each_trace() -> None:
    assert set(HAZARDS_OF_BOUNDS) == set(MISREAD_BOUNDS)


@each_row(
    "field",
    [
        {"type": "long"},
        {"name": None, "type": "long"},
        {"name": 5, "type": "long"},
        {"name": ["id"], "type": "long"},
        {"name": "x", "type": {"type": "struct", "fields": [{"name": {}, "type": "long"}]}},
        {"name": "x", "type": "long", "metadata": {"delta.columnMapping.physicalName": ["x"]}},
        {"name": "x"},
    ],
)
def test_a_schema_with_unnamed_columns_is_read_without_bounds(
    log: Log, field: dict[str, Any]
) -> None:
    schema = json.loads(schema_string(column("id")))
    schema["fields"].append(field)
    for named in ({}, {"delta.dataSkippingStatsColumns": "id"}):
        described = metadata(named, schema=json.dumps(schema), partition_columns=["p"])
        log.commit(0, commit_info(), protocol(1, 2), described, file("a", BOUNDS))
        state = LogReader(look_in_files=True).read(log.table)
        usable = field.get("name") == "x" and not isinstance(field.get("type"), dict)
        assert (state.metadata.schema is not None) is usable
        assert state.bounds is not None
        assert state.bounds.columns <= {"id", "x"}


def test_tables_with_the_same_schema_are_not_mixed_up() -> None:
    """The columns expected in statistics follow from the schema, partitions and properties."""
    schema = schema_string(column("id"), column("flag", "boolean"))
    text = json.dumps({"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}})

    def compared(schema: str, *partitions: str, **properties: str) -> set[Trace]:
        configuration = {f"delta.{name}": value for name, value in properties.items()}
        described = Metadata("1", None, schema, partitions, configuration)
        return compare_statistics([text], described)

    for _ in range(2):
        assert compared(schema) == {BOOLEANS}
        assert compared(schema, "flag") == set()
        assert compared(schema, dataSkippingNumIndexedCols="1") == set()
        assert compared(schema, dataSkippingStatsColumns="id") == set()
        assert compared(schema, dataSkippingStatsColumns="flag") == {BOOLEANS}
        other = schema_string(column("id", "boolean"))
        assert compared(other) == {Trace.MISTYPED_STATISTICS}
