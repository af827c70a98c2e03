"""Hazards told from findings, properties and the path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaproto.clients import requirements
from deltaproto.policy.contents import find_contents
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import hazards_from_findings, uninspected_by_reader
from deltaproto.policy.rules import deleted_rows_read, log_not_read
from deltaproto.protocol.metadata import Metadata
from tests.support.failures import each_row
from tests.support.logs import column as plain_column
from tests.support.logs import schema_string


def finding(rule: str, evidence: str) -> Finding:
    return Finding(rule, Severity.INFO, "m", "h", "t", evidence=evidence)


def test_only_local_paths_hold_percent_signs_literally() -> None:
    assert set(hazards_from_findings((), {}, "file:///t%2520")) == {requirements.PERCENT_IN_PATH}
    assert set(hazards_from_findings((), {}, "file:///t%20")) == {requirements.SPECIAL_LOCATION}
    special, beyond = requirements.SPECIAL_LOCATION, requirements.NON_ASCII_LOCATION
    assert set(hazards_from_findings((), {}, "file:///%C3%A4/t")) == {special}
    assert set(hazards_from_findings((), {}, "file:///t%C3%A4")) == {special, beyond}
    parted = requirements.PARTITIONS_AT_NON_ASCII_LOCATION
    assert set(hazards_from_findings((), {}, "file:///t%C3%A4", ["p"])) == {special, beyond, parted}
    assert parted not in set(hazards_from_findings((), {}, "file:///%C3%A4/t", ["p"]))
    prefixes = {"delta.randomizeFilePrefixes": "true"}
    hidden = {requirements.RANDOM_PREFIXES}
    assert set(hazards_from_findings((), prefixes, "file:///t", ["p"])) == hidden
    assert not set(hazards_from_findings((), prefixes, "file:///t"))
    for odd in ("%5E", "%09", "%7F"):
        assert set(hazards_from_findings((), {}, f"file:///t{odd}")) == {requirements.ODD_LOCATION}
    assert set(hazards_from_findings((), {}, "s3://bucket/t=1/a+b")) == {requirements.HIVE_LOCATION}
    assert set(hazards_from_findings((), {}, "file:///t%3D1")) == {requirements.HIVE_LOCATION}
    below = {requirements.HIVE_LOCATION, requirements.PARTITIONS_AT_HIVE_LOCATION}
    assert set(hazards_from_findings((), {}, "file:///a=b/t", ["p"])) == below
    assert not set(hazards_from_findings((), {}, "file:///t-1/a+b"))
    assert not set(hazards_from_findings((), {}, "s3://bucket/t%2520"))


def test_the_evidence_of_findings_names_hazards() -> None:
    found = [
        finding("DP140", "absolute-paths"),
        finding("DP143", "expression size(); expression double-quoted string"),
        finding("DP107", "absolute-paths"),
        finding("DP141", "something else"),
    ]
    assert set(hazards_from_findings(found, {}, "file:///t")) == {
        "absolute-paths",
        "expression size()",
        "expression double-quoted string",
    }


def test_an_operator_is_named_as_one() -> None:
    # Colons often follow: "uses :::" is not readable.
    described = requirements.describe_hazard("expression ::")
    assert described == "a constraint or generated column uses the operator `::`"
    assert requirements.describe_construct("expression size()") == "size()"


def test_random_prefixes_hide_nothing_where_files_have_the_columns() -> None:
    random = {"delta.randomizeFilePrefixes": "true"}

    def found(*words: str) -> set[str]:
        findings = [finding("DP140", word) for word in words]
        return {*hazards_from_findings(findings, random, "file:///t", ["p"])}

    stored, hidden = requirements.STORED_PARTITIONS, requirements.HIDDEN_PARTITIONS
    assert found(hidden) == {hidden, requirements.RANDOM_PREFIXES}
    assert found("absolute-paths", stored) == {"absolute-paths", stored}


def test_properties_show_hazards_in_any_case() -> None:
    assert set(hazards_from_findings((), {"delta.appendOnly": "TRUE"}, "")) == {
        requirements.APPEND_ONLY
    }
    tracking = {"delta.enableRowTracking": "true"}
    assert set(hazards_from_findings((), tracking, "")) == {requirements.UNNAMED_ROW_IDS}
    named = {**tracking, "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1"}
    assert set(hazards_from_findings((), named, "")) == {requirements.UNNAMED_ROW_IDS}
    named["delta.rowTracking.materializedRowCommitVersionColumnName"] = "_row-commit-col-1"
    assert not set(hazards_from_findings((), named, ""))


@each_row(
    ("members", "mapped"),
    [
        ({}, True),
        ({"delta.columnMapping.id": "1"}, False),
        ({"delta.columnMapping.id": 1.0}, False),
        ({"delta.columnMapping.physicalName": 5}, False),
        ({"delta.columnMapping.physicalName": ""}, False),
    ],
)
def test_mapping_needs_a_number_and_a_name(members: dict[str, object], mapped: bool) -> None:
    described = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    field = {**plain_column("c"), "metadata": {**described, **members}}
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    found = find_contents(
        Metadata(None, schema_string=schema_string(field), configuration=configuration)
    )
    assert (requirements.UNMAPPED_COLUMNS not in found) is mapped


def test_only_the_log_shows_the_files() -> None:
    assert requirements.ABSOLUTE_PATHS not in uninspected_by_reader("log", {})
    assert requirements.ABSOLUTE_PATHS in uninspected_by_reader("spark", {})
    assert requirements.HIDDEN_PARTITIONS in uninspected_by_reader("spark", {}, ["p"])
    assert requirements.HIDDEN_PARTITIONS not in uninspected_by_reader("spark", {})


@pytest.mark.parametrize("reader", ["log", "spark"])
def test_an_inventory_has_no_schema(reader: str) -> None:
    words = {requirements.MAPPED_COLLECTIONS, requirements.DROPPED_COLUMNS}
    assert words <= {*uninspected_by_reader(reader, {"delta.columnMapping.mode": "Name"})}
    assert not words & {*uninspected_by_reader(reader, {"delta.columnMapping.mode": "none"})}
    assert not words & {*uninspected_by_reader(reader, {})}


def mapped(*columns: dict[str, Any], highest: int, mode: str = "name") -> Metadata:
    configuration = {
        "delta.columnMapping.mode": mode,
        "delta.columnMapping.maxColumnId": str(highest),
    }
    schema = json.dumps({"type": "struct", "fields": columns})
    return Metadata(None, schema_string=schema, configuration=configuration)


def column(number: int, kind: Any, **more: Any) -> dict[str, Any]:
    metadata = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": f"col-{number}",
        **more,
    }
    return {"name": f"c{number}", "type": kind, "nullable": True, "metadata": metadata}


ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("kind", [ARRAY, MAP, "variant"])
def test_parts_without_column_ids_are_a_hazard(kind: Any, mode: str) -> None:
    inner = {"type": "struct", "fields": [column(3, kind)]}
    for columns in ([column(2, kind), column(3, "long")], [column(2, inner)]):
        shown = find_contents(mapped(column(1, "long"), *columns, highest=3, mode=mode))
        assert {*shown} == {requirements.MAPPED_COLLECTIONS}
    assert not find_contents(mapped(column(1, kind), highest=1, mode="none"))


def test_a_column_id_that_is_missing_was_dropped() -> None:
    dropped = {requirements.DROPPED_COLUMNS}
    assert {*find_contents(mapped(column(1, "long"), column(3, "long"), highest=3))} == dropped
    assert {*find_contents(mapped(column(1, "long"), highest=2))} == dropped
    assert not find_contents(mapped(column(1, "long"), highest=2, mode="none"))
    inner = {"type": "struct", "fields": [column(2, "long")]}
    assert not find_contents(mapped(column(1, inner), highest=2))
    assert {*find_contents(mapped(column(1, inner), highest=3))} == dropped


def test_tables_with_the_same_schema_are_not_mixed_up() -> None:
    dropped = {requirements.DROPPED_COLUMNS}
    columns = column(1, "long"), column(2, "long")
    for _ in range(2):
        assert not find_contents(mapped(*columns, highest=2))
        assert {*find_contents(mapped(*columns, highest=3))} == dropped
        assert not find_contents(mapped(*columns, highest=3, mode="none"))


def test_a_schema_of_unexpected_values_shows_what_it_can() -> None:
    """Values that are not an object cannot hide the hazards of the other columns."""
    odd = [{"name": "n", "type": None}, {"name": "m", "type": "long", "metadata": [1]}]
    found = find_contents(mapped(*odd, column(1, ARRAY), highest=2))  # type: ignore[arg-type]
    assert found == {
        requirements.UNMAPPED_COLUMNS: ("n", "m"),
        requirements.TYPE_PREFIX + requirements.MALFORMED: ("n", "m"),
        requirements.MAPPED_COLLECTIONS: ("c1",),
        requirements.DROPPED_COLUMNS: (),
    }


def test_a_cast_of_a_time_has_a_name() -> None:
    """delta-rs casts a timestamp to nanoseconds, Spark to seconds."""
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in (("id", "long"), ("At", "timestamp"), ("n", "timestamp_ntz"))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})

    def found(expression: str) -> bool:
        metadata = Metadata(
            None, schema_string=schema, configuration={"delta.constraints.c": expression}
        )
        return requirements.EXPRESSION_PREFIX + "cast with a timestamp column" in find_contents(
            metadata
        )

    assert found("cast(at as bigint) > 0")
    assert found("`n`::long > 0")
    assert not found("cast(id as int) > 0")
    assert not found("at > timestamp'2020-01-01 00:00:00'")


def test_invariants_and_expressions_name_their_column_once() -> None:
    invariant = json.dumps({"expression": {"expression": "size(x) > 0 and year(x) > 1"}})
    metadata = {"delta.invariants": invariant, "delta.generationExpression": "size(x)"}
    fields = [
        {"name": "x", "type": "long", "nullable": True, "metadata": metadata},
        {"name": "y", "type": "long", "nullable": True, "metadata": {"delta.invariants": "{"}},
        {"name": "z", "type": "long", "nullable": True, "metadata": {"delta.invariants": None}},
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    prefix = requirements.EXPRESSION_PREFIX
    assert find_contents(Metadata(None, schema_string=schema)) == {
        prefix + "delta.invariants": ("x",),
        prefix + "size()": ("x",),
        prefix + "year()": ("x",),
    }


def test_a_binary_partition_column_is_shown() -> None:
    schema = schema_string(*(plain_column(name, "binary") for name in ("b", "p")))
    found = find_contents(Metadata(None, schema_string=schema, partition_columns=("p",)))
    assert found == {requirements.BINARY_PARTITIONS: ("p",)}
    assert not find_contents(Metadata(None, schema_string=schema))


@each_row(
    ("kind", "shown"),
    [("decimal(10,2)", True), ("decimal(10, 2)", True), ("decimal(10,0)", False), ("long", False)],
)
def test_a_decimal_partition_column_with_places_is_shown(kind: str, shown: bool) -> None:
    schema = schema_string(plain_column("id"), plain_column("p", kind))
    found = find_contents(Metadata(None, schema_string=schema, partition_columns=("p",)))
    assert found == ({requirements.DECIMAL_PARTITIONS: ("p",)} if shown else {})


def test_ids_for_iceberg_are_no_dropped_columns() -> None:
    nested = {"delta.columnMapping.nested.ids": {"col-1.element": 2}}
    shown = find_contents(mapped(column(1, ARRAY, **nested), highest=2))
    assert {*shown} == {requirements.MAPPED_COLLECTIONS}
    assert requirements.DROPPED_COLUMNS in find_contents(mapped(column(1, ARRAY), highest=2))


def test_readers_in_an_access_log_are_named_with_what_they_read() -> None:
    last = 1_790_000_000_000
    one = deleted_rows_read.finding("t", "ada", ["a"], last, [])
    assert one.message == (
        "ada reads 1 data file without the deletion vectors, last 2026-09-21T14:00Z: it returns "
        "deleted rows"
    )
    assert (one.feature, one.detail, one.severity) == ("deletionVectors", "ada", Severity.ERROR)
    assert one.evidence == "a; user agent unknown"
    files = ["a", "b", "c", "d"]
    four = log_not_read.finding("t", "ada", files, last, ["x", "y"], other_identity=False)
    assert four.message == (
        "ada reads 4 data files but never the table's log, last 2026-09-21T14:00Z: it may return "
        "stale or deleted rows"
    )
    assert four.evidence == "a, b, c and 1 more; user agent x, y"
    assert (four.rule, four.severity, four.detail) == ("DP402", Severity.ERROR, "ada")
    other = log_not_read.finding("t", "ada", files[:3], last, [], other_identity=True)
    assert other.severity is Severity.WARNING
    assert other.evidence == "a, b, c; user agent unknown"
    assert other.hint == (
        f"{four.hint}; nothing is wrong if its engine reads the log with another identity"
    )


@pytest.mark.parametrize(
    ("type_", "named"),
    [
        ("time(6)", "time"),
        ("time(7)", "time(7)"),
        ("time", "time without a number"),
        ("varchar(0)", "varchar"),
        ("varchar(-1)", "varchar(-1)"),
        ("char", "char without a number"),
        ("decimal", "decimal"),
        ("decimal(9,-2)", "decimal out of range"),
        ("decimal(3)", "decimal out of range"),
        ("", "without a name"),
    ],
)
def test_types_that_spark_cannot_parse_have_names_of_their_own(type_: str, named: str) -> None:
    found = find_contents(Metadata(None, schema_string=schema_string(plain_column("c", type_))))
    assert found == {requirements.TYPE_PREFIX + named: ("c",)}
