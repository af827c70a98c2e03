"""Small functions on features, properties and levels, at their limits."""

from __future__ import annotations

import pytest

from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.feature_catalog import (
    LEGACY,
    add_unlisted,
    feature_record,
    features_implied_by,
)
from deltaproto.protocol.isolation import IsolationLevels
from deltaproto.protocol.layers import feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.properties import VALUE_KINDS, expected_value, suggest_property
from deltaproto.protocol.protocol import Protocol, show_value
from tests.support.failures import each_row


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
    assert one.differ(one._replace(effective={"rust": "Serializable", "x": "X"})) is None
    assert one.differ(one._replace(declared=None)) is not None
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


@pytest.mark.parametrize("value", ["short", 7, None, [1, 2], {"a": 1}])
def test_a_short_value_is_shown_whole(value: object) -> None:
    assert "…" not in show_value(value)


def test_a_long_value_is_cut_with_a_mark() -> None:
    assert show_value("x" * 10_000).endswith("…")
    assert show_value([0] * 1_000_000) == "an array of 1000000"


def test_a_feature_that_no_engine_adds_to_such_a_table_has_an_advice_too() -> None:
    assert add_unlisted("timestampNtz").startswith("add it with deltalake: DeltaTable(…).alter.")
    assert add_unlisted("geospatial") == (
        "add it, or remove what uses it, with an engine that still accepts the table"
    )
