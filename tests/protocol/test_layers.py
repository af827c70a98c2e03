"""The layers of features, and what an engine makes of the isolation level."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, Trace, Trait
from deltaproto.protocol.isolation import (
    IsolationLevel,
    RowLevelSupport,
    WriterEngine,
    evaluate_isolation,
    row_level_concurrency,
)
from deltaproto.protocol.layers import explain_versions, feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from tests.protocol.strategies import protocols
from tests.support.logs import column, schema_string

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
FEED, OLD_FEED = "delta.enableChangeDataFeed", "delta.enableChangeDataCapture"
traces = st.dictionaries(st.sampled_from(list(Trace)), st.booleans())


@given(protocols(), traces)
def test_every_supported_feature_has_a_state_with_a_way_in(
    protocol: Protocol, seen: dict[Trace, bool]
) -> None:
    states = feature_states(protocol, Metadata(None), {}, seen)
    assert [state.name for state in states] == sorted(protocol.supported)
    for state in states:
        assert state.listed or state.implied
        for other in state.required_by:
            assert state.name in feature_catalog.feature_record(other).required_features
        if state.name in (protocol.reader_features or ()):
            assert state.kind is FeatureKind.READER_WRITER


@given(json_values)
def test_no_schema_breaks_the_reading_of_traits(value: object) -> None:
    metadata = Metadata(None, schema_string=json.dumps(value))
    assert metadata.traits is None or isinstance(metadata.traits, dict)
    # A column that is not an object leaves no usable schema; its metadata may be anything.
    traits = Metadata(None, schema_string=json.dumps({"fields": [value]})).traits
    assert traits is None or isinstance(value, dict)
    column = {"name": "id", "type": "long", "metadata": value}
    traits = Metadata(None, schema_string=json.dumps({"fields": [column]})).traits
    assert traits is not None


@given(protocols())
def test_reasons_name_both_versions(protocol: Protocol) -> None:
    reader, writer = explain_versions(protocol)
    assert reader.startswith(f"reader {protocol.min_reader_version}: ")
    assert writer.startswith(f"writer {protocol.min_writer_version}: ")


def test_traits_are_found_at_every_depth() -> None:
    nested = {"type": "struct", "fields": [column("at", "timestamp_ntz", nullable=False)]}
    schema = schema_string(
        column("plain", nullable=False),
        column("list", {"type": "array", "elementType": nested, "containsNull": True}),
        column("map", {"type": "map", "keyType": "string", "valueType": "variant"}),
        column("twice", delta__generationExpression="id * 2"),
        column("n", delta__identity__start=1),
        column("wide", delta__typeChanges=[{"fromType": "integer", "toType": "long"}]),
    )
    traits = Metadata(None, schema_string=schema).traits
    assert traits == {
        Trait.NON_NULLABLE: ("plain",),
        Trait.TIMESTAMP_NTZ: ("list.element.at",),
        Trait.VARIANT: ("map.value",),
        Trait.GENERATED: ("twice",),
        Trait.IDENTITY: ("n",),
        Trait.TYPE_CHANGE: ("wide",),
    }


@pytest.mark.parametrize(
    ("type_", "metadata", "trait", "path"),
    [
        ("geometry(OGC:CRS84)", {}, Trait.GEOSPATIAL, "c"),
        ("Geography(srid, spherical)", {}, Trait.GEOSPATIAL, "c"),
        ("string collate UNICODE_CI", {}, Trait.COLLATION, "c"),
        ("string", {"__COLLATIONS": {"c": "ICU.UNICODE"}}, Trait.COLLATION, "c"),
        ("string", {"__COLLATION_METADATA": {}}, Trait.COLLATION, "c"),
        ("string", {"CURRENT_DEFAULT": "'a'"}, Trait.DEFAULT, "c"),
        ("interval day to second", {}, Trait.INTERVAL, "c"),
        ("timestamp_nanos", {}, Trait.TIMESTAMP_NANOS, "c"),
        ({"type": "timestamp_ntz_nanos"}, {}, Trait.TIMESTAMP_NANOS, "c"),
        ({"type": "array", "elementType": "variant"}, {}, Trait.VARIANT, "c.element"),
        ("geometr", {}, None, ""),
        ("string", {"collations": {}}, None, ""),
    ],
)
def test_each_trait_of_a_column(
    type_: Any, metadata: dict[str, Any], trait: Trait | None, path: str
) -> None:
    field = {"name": "c", "type": type_, "nullable": True, "metadata": metadata}
    schema = json.dumps({"type": "struct", "fields": [field]})
    expected = {} if trait is None else {trait: (path,)}
    assert Metadata(None, schema_string=schema).traits == expected


@pytest.mark.parametrize(
    ("configuration", "on", "evidence"),
    [
        ({OLD_FEED: "true"}, True, f"{OLD_FEED}=true"),
        ({OLD_FEED: "true", FEED: "false"}, False, ""),
        ({OLD_FEED: "false", FEED: "true"}, True, f"{FEED}=true"),
    ],
)
def test_a_former_name_counts_where_the_property_is_not_set(
    configuration: dict[str, str], on: bool, evidence: str
) -> None:
    """Measured with delta-spark 3.1 and 3.2: the former name brings the feature, too."""
    metadata = Metadata("id", schema_string=schema_string(), configuration=configuration)
    states = {s.name: s for s in feature_states(Protocol(1, 4), metadata, {}, {})}
    feed = states["changeDataFeed"]
    assert (feed.enabled, feed.evidence) == (on, evidence)


@pytest.mark.parametrize("stored", ["[]", "1", "not json", "[" * 100_000])
def test_a_domain_that_says_nothing_leaves_it_open(stored: str) -> None:
    protocol = Protocol.carrying({"clustering"})
    domains = {"delta.clustering": stored}
    metadata = Metadata("id", schema_string=schema_string())
    states = {s.name: s for s in feature_states(protocol, metadata, domains, {})}
    assert states["clustering"].enabled is None


def test_logical_names_of_mapped_columns() -> None:
    inner = {
        "type": "struct",
        "fields": [column("y", delta__columnMapping__physicalName="col-2")],
    }
    schema = schema_string(
        column("x", inner, delta__columnMapping__physicalName="col-1"), column("z")
    )
    metadata = Metadata(None, schema_string=schema)
    assert metadata.logical_paths([["col-1", "col-2"]]) == ("x.y",)
    assert metadata.logical_paths([["z"]]) == ("z",)
    assert metadata.logical_paths([["gone", "too"]]) == ("gone.too",)
    unusable = json.dumps({"type": "struct", "fields": [3, *json.loads(schema)["fields"]]})
    metadata = Metadata(None, schema_string=unusable)
    assert metadata.logical_paths([["col-1", "col-2"]]) == ("`col-1`.`col-2`",)
    assert Metadata(None).logical_paths([["a", "b"]]) == ("a.b",)
    # As Spark's DESCRIBE DETAIL writes them.
    assert Metadata(None).logical_paths([["a b", "c.d", "e`f", "1"]]) == ("`a b`.`c.d`.`e``f`.`1`",)


S, W, N = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE, None
SNAPSHOT = IsolationLevel.SNAPSHOT_ISOLATION


@pytest.mark.parametrize(
    ("declared", "spark", "databricks", "delta_rs", "valid"),
    [
        (None, S, W, S, True),
        ("Serializable", S, S, S, True),
        ("serializable", S, S, S, True),
        ("WriteSerializable", W, W, S, True),
        ("SnapshotIsolation", SNAPSHOT, N, S, False),
        ("writeSerializable", W, W, W, True),
        ("WRITESERIALIZABLE", W, W, S, True),
        ("snapshotIsolation", SNAPSHOT, N, SNAPSHOT, False),
        ("bogus", N, N, S, False),
    ],
)
def test_items_6_and_15_each_engine_reads_the_level_its_own_way(
    declared: str | None,
    spark: IsolationLevel | None,
    databricks: IsolationLevel | None,
    delta_rs: IsolationLevel,
    valid: bool,
) -> None:
    found = evaluate_isolation(declared)
    assert found.effective[WriterEngine.DELTA_SPARK] is spark
    assert found.effective[WriterEngine.DELTA_RS] is delta_rs
    assert found.valid is valid
    if databricks is not None:
        assert found.effective[WriterEngine.DATABRICKS] is databricks


@pytest.mark.parametrize(
    ("features", "properties", "partitions", "clustering", "answer"),
    [
        ({"deletionVectors"}, {"delta.enableDeletionVectors": "true"}, (), (), RowLevelSupport.YES),
        (
            {"deletionVectors"},
            {"delta.enableDeletionVectors": "true"},
            ("d",),
            (),
            RowLevelSupport.NO,
        ),
        ({"deletionVectors"}, {}, (), (), RowLevelSupport.NO),
        ({"appendOnly"}, {}, (), (), RowLevelSupport.NO),
        (
            {"deletionVectors", "clustering", "domainMetadata"},
            {"delta.enableDeletionVectors": "true"},
            (),
            ("c",),
            RowLevelSupport.YES,
        ),
        ({"clustering", "domainMetadata"}, {}, (), ("c",), RowLevelSupport.NO),
    ],
)
def test_items_7_and_59_row_level_concurrency(
    features: set[str],
    properties: dict[str, str],
    partitions: tuple[str, ...],
    clustering: tuple[str, ...],
    answer: RowLevelSupport,
) -> None:
    protocol = Protocol.carrying(features)
    states = feature_states(protocol, Metadata(None, configuration=properties), {}, {})
    found = row_level_concurrency(states, partitions, clustering)
    assert found.databricks is answer
    assert found.reason


def test_item_8_identity_columns_rule_out_concurrent_transactions() -> None:
    protocol = Protocol.carrying({"identityColumns", "deletionVectors"})
    metadata = Metadata(
        None,
        schema_string=schema_string(column("n", delta__identity__start=1)),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    states = feature_states(protocol, metadata, {}, {})
    found = row_level_concurrency(states, (), ())
    assert found.databricks is RowLevelSupport.NO
    assert "identity" in found.reason


def test_the_cost_grows_with_the_number_of_features_and_no_faster() -> None:
    def calls(count: int) -> int:
        names = frozenset(f"feature{number}" for number in range(count))
        protocol = Protocol(3, 7, names, names | {"rowTracking", "domainMetadata"})
        seen = 0

        def count_call(frame: object, event: str, argument: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            states = feature_states(protocol, Metadata(None), {}, {})
        finally:
            sys.setprofile(None)
        assert len(states) == count + 2
        return seen

    calls(100)
    assert calls(800) < 5 * calls(200)


def test_every_required_feature_names_its_dependents() -> None:
    every = frozenset(feature.name for feature in feature_catalog.all_features())
    for name in every:
        expected = sorted(
            o for o in every if name in feature_catalog.feature_record(o).required_features
        )
        assert feature_catalog.find_dependents(name, every) == tuple(expected)
        assert feature_catalog.find_dependents(name, frozenset()) == ()


def test_a_name_is_found_in_any_case_or_by_similarity() -> None:
    every = [each.name for each in feature_catalog.all_features()]
    for name in every:
        found, near = feature_catalog.search_feature(name.upper())
        assert (found and found.name, near) == (name, ())
    assert "deletionVectors" in feature_catalog.search_feature("deletionvectorz")[1]
    assert feature_catalog.search_feature("x" * 40) == (None, ())
    # Similarity is not computed for long names: its cost grows with their square.
    assert feature_catalog.search_feature("deletionVectors" * 7) == (None, ())


def test_what_blocks_a_drop_is_found_through_every_dependent() -> None:
    """Compared with a search that follows each requirement by itself."""
    every = {feature.name: feature for feature in feature_catalog.all_features()}

    def blocking(name: str) -> set[str]:
        direct = {o.name for o in every.values() if name in o.required_features}
        kept = {o for o in direct if every[o].drop.delta_spark is None}
        return kept.union(*(blocking(o) for o in direct - kept))

    for name in every:
        extra = feature_catalog.CATALOG_MANAGED if name == "deletionVectors" else frozenset()
        found = feature_catalog.features_blocking_drop(name, frozenset(every))
        assert set(found) == blocking(name) | (extra & every.keys()), name
        assert feature_catalog.features_blocking_drop(name, {name}) == ()
