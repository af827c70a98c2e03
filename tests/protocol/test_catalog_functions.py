"""Small functions on features, properties and levels, at their limits."""

from __future__ import annotations

import pytest

from deltaproto.protocol.feature import Feature, FeatureKind, PropertyIs
from deltaproto.protocol.feature_catalog import (
    LEGACY,
    UNITY_FEATURES,
    add_unlisted,
    all_features,
    feature_record,
    features_blocking_drop,
    features_implied_by,
    find_dependents,
    is_registered,
    required_features,
    search_feature,
    with_required_features,
)
from deltaproto.protocol.isolation import IsolationLevels
from deltaproto.protocol.layers import explain_versions, feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.properties import VALUE_KINDS, expected_value, suggest_property
from deltaproto.protocol.protocol import Protocol, show_value
from tests.support.failures import each_row
from tests.support.logs import column, schema_string


@each_row(
    ("reader", "writer", "implies"),
    [
        (1, 1, set()),
        (1, 2, {"appendOnly", "invariants"}),
        (1, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (2, 6, {each.name for each in LEGACY}),
        (3, 6, set()),
        (3, 7, set()),
        (1, 7, set()),
        (2, 7, set()),
    ],
)
def test_legacy_versions_imply_features(reader: int, writer: int, implies: set[str]) -> None:
    assert features_implied_by(reader, writer) == implies


def test_a_feature_in_the_readers_list_binds_readers() -> None:
    listed = ["appendOnly", "someFeature"]
    protocol = Protocol.stored(
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": listed,
            "writerFeatures": [*listed, "otherFeature"],
        }
    )
    states = {each.name: each for each in feature_states(protocol, Metadata(None), {}, {})}
    both, writers = FeatureKind.READER_WRITER, FeatureKind.WRITER
    assert [states[name].kind for name in (*listed, "otherFeature")] == [both, both, writers]
    assert feature_record("appendOnly").kind is writers


def test_levels_differ_where_both_know_the_engine() -> None:
    one = IsolationLevels("Serializable", {"spark": "Serializable", "rust": "Serializable"})
    other = IsolationLevels("Serializable", {"spark": "WriteSerializable", "x": "Serializable"})
    said = one.differ(other)
    assert said == (
        "Serializable (Serializable on spark)",
        "Serializable (WriteSerializable on spark)",
    )
    assert one.differ(one._replace(effective={"rust": None, "spark": None})) == (
        "Serializable (Serializable on spark, Serializable on rust)",
        "Serializable (refused on spark, refused on rust)",
    )
    assert one.differ(one._replace(declared=None)) == ("Serializable", "not set")
    assert one.differ(one._replace(effective={"rust": "Serializable", "x": "X"})) is None
    refused = one.differ(one._replace(effective={"spark": None}))
    assert refused == ("Serializable (Serializable on spark)", "Serializable (refused on spark)")


@each_row(
    ("key", "value", "wanted"),
    [
        ("delta.appendOnly", "maybe", "true or false"),
        ("delta.appendOnly", "TRUE", None),
        (
            "delta.isolationLevel",
            "Snapshot",
            "serializable, writeserializable or snapshotisolation",
        ),
        ("delta.checkpointInterval", "0", "an integer of at least 1"),
        ("delta.checkpointInterval", "x", "an integer of at least 1"),
        ("delta.checkpointInterval", "1", None),
        ("delta.dataSkippingNumIndexedCols", "-2", "an integer of at least -1"),
        ("delta.unheardOf", "x", None),
    ],
)
def test_valid_values_are_described(key: str, value: str, wanted: str | None) -> None:
    found = expected_value(key, value)
    assert found == wanted


def test_every_description_reads_like_words() -> None:
    for key, kind in VALUE_KINDS.items():
        assert kind.wanted, key
        assert " or or " not in kind.wanted
        assert not kind.wanted.startswith((" or", ", ")), key


@each_row(
    ("key", "suggestion"),
    [
        ("delta.appendonly", None),
        ("delta.appendOnyl", "delta.appendOnly"),
        ("delta.append", "delta.appendOnly"),
        ("delta.retention", ""),
        ("delta.timestamps", ""),
        ("delta.unlike", ""),
        ("other.appendOnyl", None),
    ],
)
def test_similar_names_are_suggested(key: str, suggestion: str | None) -> None:
    assert suggest_property(key) == suggestion


@each_row("feature", [each for each in all_features() if is_registered(each.name)])
def test_delta_knows_the_property_that_enables_a_feature(feature: Feature) -> None:
    enablement = feature.enablement
    keys = [enablement.key] if isinstance(enablement, PropertyIs) else []
    if feature.switch_off:
        keys.append(feature.switch_off.partition("=")[0])
    assert [key for key in keys if suggest_property(key) is not None] == []


@pytest.mark.parametrize("value", ["short", 7, None, [1, 2], {"a": 1}])
def test_a_short_value_is_shown_whole(value: object) -> None:
    assert "…" not in show_value(value)


def test_a_long_value_is_cut_with_a_mark() -> None:
    assert show_value("x" * 10_000).endswith("…")
    assert show_value([0] * 1_000_000) == "an array of 1000000"


def test_values_are_cut_right_after_the_limit() -> None:
    assert show_value("x" * 98) == f"'{'x' * 98}'"
    assert show_value("x" * 99) == f"'{'x' * 99}…"
    assert show_value("x" * 101) == f"'{'x' * 99}…"
    assert show_value([10] * 20) == str([10] * 20)
    assert show_value([1] * 21) == "an array of 21"
    assert show_value({str(n): n for n in range(21)}) == "an object of 21"
    assert show_value({1.5: None}) == '{"1.5": null}'
    assert show_value({"a": {1}}) == '{"a": "{1}"}'


def test_long_lists_of_names_are_cut() -> None:
    names = ["clustering", "deletionVectors", "domainMetadata", "rowTracking", "v2Checkpoint"]
    protocol = Protocol.carrying(names)
    shown = ", ".join(names[:4])
    assert explain_versions(protocol)[1] == (
        f"writer 7: only a feature list can include {shown} and 1 more"
    )
    four = protocol.without_feature("v2Checkpoint")
    assert explain_versions(four)[1] == f"writer 7: only a feature list can include {shown}"


@each_row(
    ("count", "evidence"),
    [
        (0, ""),
        (1, "column c0"),
        (3, "columns c0, c1, c2"),
        (4, "columns c0, c1, c2 and 1 more"),
        (6, "columns c0, c1, c2 and 3 more"),
    ],
)
def test_columns_are_evidence(count: int, evidence: str) -> None:
    fields = [column(f"c{n}") | {"nullable": False} for n in range(count)]
    metadata = Metadata(None, schema_string=schema_string(*fields))
    (found,) = (
        each
        for each in feature_states(Protocol(1, 2), metadata, {}, {})
        if each.name == "invariants"
    )
    assert (found.evidence, found.enabled) == (evidence, count > 0)


def test_a_feature_that_no_engine_adds_to_such_a_table_has_an_advice_too() -> None:
    assert add_unlisted("timestampNtz").startswith("add it with deltalake: DeltaTable(…).alter.")
    assert add_unlisted("geospatial") == (
        "add it, or remove what uses it, with an engine that still accepts the table"
    )


def test_an_unknown_feature_has_a_record_that_fails_closed() -> None:
    writers, readers = feature_record("new"), feature_record("new", in_reader_list=True)
    assert (writers.kind, writers.min_reader, writers.min_writer) == (FeatureKind.WRITER, 1, 7)
    assert (readers.kind, readers.min_reader) == (FeatureKind.READER_WRITER, 3)
    assert feature_record("appendOnly", in_reader_list=True).min_reader == 3
    for record in (writers, readers):
        assert (record.name, record.status) == ("new", "unknown")
        assert record.summary == "Unknown feature: it is not in deltaproto's catalog."
        assert record.drop[:3] == (None, None, (0, 0))
        assert record.since[:2] == (None, None)
    assert is_registered("rowTracking")
    assert is_registered("catalogManaged")
    assert not is_registered("new")


def test_features_are_found_by_what_people_write() -> None:
    found, near = search_feature("ROWTRACKING")
    assert found is not None
    assert (found.name, near) == ("rowTracking", ())
    assert search_feature("deletionVector") == (None, ("deletionVectors",))
    assert search_feature("x" * 100) == (None, ())
    nearly = "deletionvectors" + "x" * 20
    assert search_feature(nearly)[1][:1] == ("deletionVectors",)
    assert search_feature("icebergCompat")[1] == (
        "icebergCompatV3",
        "icebergCompatV2",
        "icebergCompatV1",
    )


def test_required_features_and_their_dependents() -> None:
    assert with_required_features({"icebergCompatV3", "new"}) == {
        *("icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata", "new")
    }
    assert find_dependents("domainMetadata", {"rowTracking", "clustering", "x"}) == (
        "clustering",
        "rowTracking",
    )
    assert find_dependents("new", {"rowTracking"}) == ()
    assert required_features("icebergCompatV2") == ("columnMapping",)
    assert required_features("new") == ()


@each_row(
    ("name", "supported", "present", "blocking"),
    [
        ("domainMetadata", {"clustering", "rowTracking"}, None, ("clustering",)),
        ("domainMetadata", {"rowTracking"}, None, ()),
        ("deletionVectors", {"catalogManaged"}, None, ("catalogManaged",)),
        ("typeWidening", {"catalogManaged"}, None, ()),
        ("typeWidening", {"catalogManaged"}, False, ()),
        ("typeWidening", {"catalogManaged"}, True, ("catalogManaged",)),
        ("typeWidening-preview", {"catalogOwned-preview"}, True, ("catalogOwned-preview",)),
        ("rowTracking", {"icebergCompatV3"}, True, ("icebergCompatV3",)),
        ("columnMapping", {"icebergCompatV1", "icebergCompatV2"}, None, None),
    ],
)
def test_features_that_block_a_drop(
    name: str, supported: set[str], present: bool | None, blocking: tuple[str, ...] | None
) -> None:
    found = features_blocking_drop(name, supported, present=present)
    assert found == (tuple(sorted(supported)) if blocking is None else blocking)


def test_unity_catalog_keeps_what_it_requires_of_its_tables() -> None:
    supported = {*UNITY_FEATURES, "rowTracking"}
    for name in sorted(supported - {"catalogManaged"}):
        kept = features_blocking_drop(name, supported, in_unity=True)
        assert kept == (() if name == "rowTracking" else ("catalogManaged",)), name
    assert features_blocking_drop("v2Checkpoint", supported) == ()
    assert features_blocking_drop("v2Checkpoint", {"v2Checkpoint"}, in_unity=True) == ()


@each_row(
    ("key", "value", "wanted"),
    [
        ("delta.autoOptimize.autoCompact", "Auto", None),
        ("delta.autoOptimize.autoCompact", "never", "true or false"),
        ("delta.appendOnly", "auto", "true or false"),
        ("delta.universalFormat.enabledFormats", "compatibility", None),
        ("delta.universalFormat.enabledFormats", "iceberg,compatibility", None),
        (
            "delta.universalFormat.enabledFormats",
            "compatibility,compatibility",
            "iceberg, hudi, or both",
        ),
        ("delta.universalFormat.enabledFormats", "parquet,compatibility", "iceberg, hudi, or both"),
        ("delta.universalFormat.enabledFormats", "parquet", "iceberg, hudi, or both"),
    ],
)
def test_values_that_only_databricks_accepts(key: str, value: str, wanted: str | None) -> None:
    assert expected_value(key, value, on_databricks=True) == wanted
    assert expected_value(key, value) is not None
