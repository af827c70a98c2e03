"""Column types in the spellings of catalogs, and the columns of entries and logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaproto.tables.catalogs.column_types import canonical_json_type, canonical_type
from deltaproto.tables.catalogs.described import (
    Columns,
    compare_digests,
    describe_differences,
    hive_columns,
    log_columns_digest,
    schema_columns,
    unity_columns,
)


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": type_, "nullable": True, "metadata": {}}
            for name, type_ in fields
        ],
    }


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": False}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


@pytest.mark.parametrize(
    ("log", "written"),
    [
        ("byte", ["tinyint", "BYTE", " tinyint "]),
        ("integer", ["int", "INT", "integer"]),
        ("long", ["bigint", "long"]),
        ("string", ["string", "varchar(10)", "char(3)", "string collate UTF8_LCASE"]),
        ("decimal(10,0)", ["decimal", "decimal(10)", "DECIMAL( 10 , 0 )"]),
        ("decimal(12,2)", ["decimal(12,2)"]),
        ("timestamp", ["timestamp", "timestamp_ltz", "timestamp with local time zone"]),
        (array("long"), ["array<bigint>", "ARRAY< BIGINT >"]),
        (mapping("string", array("date")), ["map<string,array<date>>"]),
        (
            struct(("A", "integer"), ("b c", struct())),
            [
                "struct<a:int,b c:struct<>>",
                "STRUCT<`b c`: STRUCT<>, A: INT NOT NULL COMMENT 'x,y:>'>",
                "struct<b  c:struct<>,a:int comment 'z'>",
            ],
        ),
        (struct(("comment", "string"), ("not", "long")), ["struct<comment:string,not:bigint>"]),
    ],
)
def test_spellings_of_one_type(log: Any, written: list[str]) -> None:
    for hive in (False, True):
        form = canonical_json_type(log, hive=hive)
        assert form is not None
        assert {canonical_type(each, hive=hive) for each in written} == {form}


@pytest.mark.parametrize(
    "written",
    [
        *("", "uniontype<int,string>", "interval day", "void", "binary(3)", "int int", "geometry"),
        *("struct<a:int", "struct<a:int,b:str", "struct<a:int,... 3 more fields>", "decimal(10"),
        # Names without quotes, as Hive stores them, may be read in two ways.
        *("struct<a:b:int>", "struct<a,b:int>", "struct<`a:b`:int>", "struct<it's:int>"),
        *("array<>", "map<int>", "decimal(p,s)", "array<" * 500 + "int" + ">" * 500, "'", "`"),
    ],
)
def test_a_spelling_that_is_not_certain_has_no_form(written: str) -> None:
    assert canonical_type(written) is None
    assert canonical_type(f"array<{written}>", hive=True) is None


@pytest.mark.parametrize(
    "type_", [None, 3, [], {}, {"type": "udt"}, {"type": "struct", "fields": [1]}, "void"]
)
def test_json_that_is_no_type_of_delta(type_: Any) -> None:
    assert canonical_json_type(type_) is None
    assert canonical_json_type(array(type_)) is None


def test_a_deep_type_in_json() -> None:
    type_: Any = "long"
    for _ in range(5_000):
        type_ = array(type_)
    assert canonical_json_type(type_) is None


LOG = struct(
    ("Id", "long"), ("day", "date"), ("at", "timestamp_ntz"), ("v", "variant"), ("x:y", "string")
)
HIVE = [("id", "bigint"), ("at", "timestamp"), ("v", "string"), ("x:y", "string")]


def compared(entry: Columns | None, schema: Any = LOG, partitions: tuple[str, ...] = ()) -> str:
    """What a table that is named shows; checks that a scan sees no more."""
    assert entry is not None
    log = schema_columns(schema, partitions, hive=entry.hive)
    digest = log_columns_digest(schema, partitions)
    assert log is not None
    assert digest is not None
    text = describe_differences(entry, log)
    assert text or compare_digests(entry.digest, digest) is None
    return text


def test_what_hive_cannot_spell_is_no_difference() -> None:
    # A partition column that a crawler found in folder names.
    for entry in (
        hive_columns(HIVE, [("day", "string")], {}),
        hive_columns([*HIVE, ("day", "string")], [], {}),
    ):
        assert compared(entry, partitions=("day",)) == ""
    assert compared(hive_columns([*HIVE, ("day", "string")], [], {})) == (
        "day is string instead of date"
    )


def test_differences_name_the_columns() -> None:
    stale = hive_columns([("id", "int"), ("old", "int"), ("at", "timestamp")], [], {})
    assert compared(stale) == (
        "only in the entry: old; only in the log: day, v, x:y; id is int instead of bigint"
    )
    wide = struct(*((f"c{number}", "long") for number in range(9)))
    few = hive_columns([("c0", "bigint")], [], {})
    assert compared(few, wide) == "only in the log: c1, c2, c3, c4 and 4 more"
    long = Columns({"a": "struct<" + "x:int," * 50 + "y:int>"})
    assert len(describe_differences(long, Columns({"a": "int"}))) < 200


def test_types_of_spark_and_unity_catalog_are_exact() -> None:
    older = struct(*(("at", "timestamp") if n == "at" else (n, t) for n, t in
                     ((f["name"], f["type"]) for f in LOG["fields"])))  # fmt: skip
    stored = {"spark.sql.sources.schema": json.dumps(older)}
    assert compared(hive_columns([], [], stored)) == "at is timestamp instead of timestamp_ntz"
    assert compared(hive_columns([], [], {"spark.sql.sources.schema": json.dumps(LOG)})) == ""


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        # Databricks, the open-source server and its connector for Spark, and an older one.
        ({"type_text": "bigint", "type_json": '{"name":"a","type":"long"}'}, "bigint"),
        ({"type_text": "int", "type_json": '"integer"', "type_name": "INT"}, "int"),
        ({"type_text": "decimal(10,2)", "type_json": '{"type":"decimal"}'}, "decimal(10,2)"),
        ({"type_text": "long", "type_json": "LongType"}, "bigint"),
        ({"type_text": "struct<a:int,... 9 more fields>",
          "type_json": json.dumps({"name": "a", "type": struct(("A", "long"))})},
         "struct<a:bigint>"),
        ({"type_text": "struct<a:int,... 9 more fields>"}, None),
        ({"type_text": "varchar(3)", "type_json": '{"name":"a","type":"varchar(3)"}'}, "string"),
        ({}, None),
        ({"type_text": None, "type_json": None}, None),
    ],
)  # fmt: skip
def test_columns_of_unity_catalog(column: dict[str, Any], expected: str | None) -> None:
    assert unity_columns([{"name": "A", **column}]) == ({"a": expected}, False)
    assert unity_columns([]) is None
    assert unity_columns([{"name": "col", "type_text": "array<string>"}]) is None
