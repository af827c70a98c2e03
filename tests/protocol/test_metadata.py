"""Metadata as a value, and as the log stores it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaproto.protocol.feature import Trait
from deltaproto.protocol.metadata import Metadata, physical_name
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import HIDDEN
from tests.support.failures import each_row
from tests.support.logs import column, metadata, schema_string

ACTION: dict[str, Any] = {
    "id": "1",
    "name": "orders",
    "description": "all orders",
    "schemaString": schema_string(column("id")),
    "partitionColumns": ["id"],
    "configuration": {"delta.appendOnly": "true", "odd": 3, "empty": None},
}


def test_an_action_is_read_member_by_member() -> None:
    found = Metadata.stored(ACTION)
    assert (found.id, found.name, found.description) == ("1", "orders", "all orders")
    assert found.schema_string == ACTION["schemaString"]
    assert found.partition_columns == ("id",)
    assert found.configuration == {"delta.appendOnly": "true", "odd": "3", "empty": None}
    assert found.property("delta.appendOnly") == "true"
    assert found.property("delta.APPENDONLY") is None
    assert Metadata.stored({}) == Metadata(None)


@pytest.mark.parametrize(
    ("member", "value", "told"),
    [
        ("configuration", ["a"], "metaData.configuration is not a map"),
        ("partitionColumns", "id", "metaData.partitionColumns is not a list of names"),
        ("partitionColumns", ["id", 3], "metaData.partitionColumns is not a list of names"),
        ("schemaString", {"fields": []}, "metaData.schemaString is not a string"),
    ],
)
def test_what_has_a_wrong_type_is_refused(member: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}$"):
        Metadata.stored({**ACTION, member: value})


@pytest.mark.parametrize("member", ["id", "name", "schemaString", "partitionColumns"])
def test_it_equals_what_has_the_same_members_only(member: str) -> None:
    one, same = Metadata.stored(ACTION), Metadata.stored(dict(ACTION))
    other = Metadata.stored({k: v for k, v in ACTION.items() if k != member})
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != Metadata.stored({**ACTION, "configuration": {}})
    assert one != ACTION
    assert (one == 3) is False


def test_a_schema_that_cannot_be_used_is_none() -> None:
    for text in (None, "", "{", "[]", '{"fields": 3}', "[" * 100_000, '"variant"', "variant"):
        found = Metadata(None, schema_string=text)
        assert found.schema is None
        assert found.traits is None
    nested = {"type": "struct", "fields": [3]}
    for damaged in (None, 3, "id", ["id"]):
        for kind in (
            {"type": "struct", "fields": [damaged]},
            {"type": nested},
            {"type": "array", "elementType": nested},
            {"type": "map", "keyType": nested, "valueType": "string"},
            {"type": "map", "keyType": "string", "valueType": nested},
        ):
            columns = [damaged] if "fields" in kind else [{**column("s"), "type": kind}]
            text = json.dumps({"type": "struct", "fields": columns})
            found = Metadata(None, schema_string=text)
            assert (found.schema, found.traits) == (None, None), text
    plain = Metadata.stored(metadata()["metaData"])
    assert plain.schema == {"type": "struct", "fields": [column("id")]}
    assert plain.traits == {}


@pytest.mark.parametrize("name", ["a", "\u00e4"])
@pytest.mark.parametrize("key", ["fields", "elementType", "keyType", "valueType"])
def test_a_schema_with_more_levels_than_code_can_descend_is_not_usable(key: str, name: str) -> None:
    def nested(levels: int) -> Any:
        kind: Any = "long"
        for _ in range(levels - 1):
            inner = [{**column(name), "type": kind}] if key == "fields" else kind
            kind = {"type": "struct" if key == "fields" else "array", key: inner}
        text = json.dumps({"type": "struct", "fields": [{**column(name), "type": kind}]})
        return Metadata(None, schema_string=text).schema

    assert nested(200) is not None
    assert nested(201) is None


def test_many_columns_are_no_levels() -> None:
    inner = {"type": "struct", "fields": [column("id")]}
    columns = [{**column(f"s{number}"), "type": inner} for number in range(500)]
    text = json.dumps({"type": "struct", "fields": columns})
    assert Metadata(None, schema_string=text).schema is not None


def test_settings_hide_every_secret_of_theirs() -> None:
    settings = SparkSettings(
        conf={"spark.hadoop.fs.azure.account.key.x": "s3cret-key-0001"},
        hadoop={"fs.s3a.secret.key": "s3cret-key-0002"},
        remote="sc://host:15002/;use_ssl=true;token=s3cret-token-3;user_id=me",
    )
    text = "s3cret-key-0001 s3cret-key-0002 s3cret-token-3 me"
    assert settings.redact(text) == f"{HIDDEN} {HIDDEN} {HIDDEN} me"
    assert SparkSettings(remote="sc://host").redact(text) == text


@each_row(
    ("key", "trait"),
    [
        ("delta.generationExpression", Trait.GENERATED),
        ("delta.identity.start", Trait.IDENTITY),
        ("delta.identity.", Trait.IDENTITY),
        ("CURRENT_DEFAULT", Trait.DEFAULT),
        ("delta.columnMapping.id", Trait.MAPPING),
        ("delta.columnMapping.physicalName", Trait.MAPPING),
        ("delta.typeChanges", Trait.TYPE_CHANGE),
        ("__COLLATIONS", Trait.COLLATION),
        ("__COLLATION_METADATA", Trait.COLLATION),
        ("delta.invariants", Trait.NON_NULLABLE),
        ("delta.identity", None),
        ("current_default", None),
        ("Delta.typeChanges", None),
    ],
)
def test_each_key_of_a_column_shows_its_trait_alone(key: str, trait: Trait | None) -> None:
    field = {**column("a"), "metadata": {key: "x"}}
    outer = {**column("s"), "type": {"type": "struct", "fields": [field]}}
    found = Metadata(None, schema_string=schema_string(field, outer)).traits
    assert found == ({} if trait is None else {trait: ("a", "s.a")})


@each_row(
    ("kind", "trait"),
    [
        ("timestamp_ntz", Trait.TIMESTAMP_NTZ),
        ("TIMESTAMP_NTZ", Trait.TIMESTAMP_NTZ),
        ("timestamp_nanos", Trait.TIMESTAMP_NANOS),
        ("timestamp_ntz_nanos(9)", Trait.TIMESTAMP_NANOS),
        ("variant", Trait.VARIANT),
        ("geometry(4326)", Trait.GEOSPATIAL),
        ("geography(4326)", Trait.GEOSPATIAL),
        ("string collate UTF8_LCASE", Trait.COLLATION),
        ("interval year to month", Trait.INTERVAL),
        ("variants", None),
        ("intervals", None),
    ],
)
def test_each_type_shows_its_trait_at_any_depth(kind: str, trait: Trait | None) -> None:
    array = {"type": "array", "elementType": kind, "containsNull": True}
    both = {"type": "map", "keyType": kind, "valueType": array, "valueContainsNull": True}
    text = schema_string(column("a", kind), {**column("m"), "type": both})
    found = Metadata(None, schema_string=text).traits
    assert found == ({} if trait is None else {trait: ("a", "m.key", "m.value.element")})


@each_row(
    ("field", "name"),
    [
        ({"name": "a", "metadata": {"delta.columnMapping.physicalName": "col-1"}}, "col-1"),
        ({"name": "a", "metadata": {"delta.columnMapping.physicalName": ""}}, "a"),
        ({"name": "a", "metadata": {}}, "a"),
        ({"name": "a", "metadata": "x"}, "a"),
        ({"name": "a"}, "a"),
        ({}, None),
        ("a", None),
    ],
)
def test_the_name_of_a_field_in_files(field: object, name: str | None) -> None:
    assert physical_name(field) == name
