"""The arithmetic's laws, and the values that a person would check by hand."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.violations import InvalidProtocol, ViolationKind
from tests.protocol.strategies import NAMES, UNKNOWN, lowest_protocols, protocols


@given(protocols())
def test_normalising_twice_is_normalising_once(protocol: Protocol) -> None:
    assert protocol.normalized().normalized() == protocol.normalized()
    assert protocol.lowest().lowest() == protocol.lowest()


@given(protocols(closed=True))
def test_every_form_supports_the_same_features(protocol: Protocol) -> None:
    for form in (protocol.normalized(), protocol.denormalized(), protocol.lowest()):
        assert form.supported == protocol.supported
    assert protocol.normalized().denormalized().supported == protocol.supported


@given(protocols(closed=True))
def test_the_lowest_form_is_never_higher(protocol: Protocol) -> None:
    lowest = protocol.lowest()
    assert lowest.min_reader_version <= protocol.min_reader_version
    assert lowest.min_writer_version <= protocol.min_writer_version


@given(lowest_protocols(), lowest_protocols(), lowest_protocols())
def test_merge_is_commutative_and_associative(a: Protocol, b: Protocol, c: Protocol) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@given(protocols(), protocols())
def test_merge_is_monotone_and_normalized(a: Protocol, b: Protocol) -> None:
    merged = a.merge(b)
    assert a.supported | b.supported <= merged.supported
    assert merged == merged.lowest()
    assert merged.merge(a) == merged


@given(lowest_protocols(), st.sampled_from(NAMES))
def test_taking_back_what_was_added_gives_the_protocol_back(protocol: Protocol, name: str) -> None:
    required = feature_catalog.with_required_features({name}) - {name}
    needed = {
        other
        for other in protocol.supported
        if name in feature_catalog.feature_record(other).required_features
    }
    if name in protocol.supported or not required <= protocol.supported or needed:
        return
    assert protocol.with_feature(name).without_feature(name) == protocol


@given(lowest_protocols(), st.sampled_from(NAMES))
def test_adding_a_feature_supports_it_and_what_it_requires(protocol: Protocol, name: str) -> None:
    richer = protocol.with_feature(name)
    assert richer.supported == protocol.supported | feature_catalog.with_required_features({name})
    assert richer.with_feature(name) == richer


@given(protocols())
def test_an_action_is_read_back_as_it_was_written(protocol: Protocol) -> None:
    assert Protocol.parse(protocol.to_action()) == protocol
    assert Protocol.stored(protocol.to_action()) == protocol


@given(st.sampled_from(UNKNOWN), protocols(closed=True))
def test_unknown_features_are_values_like_any_other(name: str, protocol: Protocol) -> None:
    for_readers = name == "zzzReaderThing"
    richer = protocol.with_feature(name, in_reader_list=for_readers)
    assert name in (richer.writer_features or ())
    assert (name in (richer.reader_features or ())) is for_readers
    assert richer.min_writer_version == 7
    assert richer.min_reader_version == (3 if for_readers else protocol.lowest().min_reader_version)
    assert richer.without_feature(name) == protocol.lowest()
    assert richer.lowest() == richer


@pytest.mark.parametrize(
    ("pair", "lowest"),
    [
        ((1, 1), (1, 1)),
        ((2, 1), (1, 1)),
        ((2, 2), (1, 2)),
        ((1, 3), (1, 3)),
        ((2, 4), (1, 4)),
        ((1, 5), (1, 4)),
        ((2, 5), (2, 5)),
        ((1, 6), (1, 6)),
        ((2, 6), (2, 6)),
    ],
)
def test_item_33_every_legacy_pair_has_its_lowest_form(
    pair: tuple[int, int], lowest: tuple[int, int]
) -> None:
    assert Protocol(*pair).lowest() == Protocol(*lowest)


def test_item_5_legacy_numbers_are_cumulative() -> None:
    previous: frozenset[str] = frozenset()
    for writer in range(1, 7):
        implied = Protocol(2, writer).implied
        assert previous <= implied
        previous = implied
    assert previous == {feature.name for feature in feature_catalog.LEGACY}
    assert "columnMapping" not in Protocol(1, 6).implied


def test_removing_from_a_legacy_pair_leaves_lists_only_where_it_must() -> None:
    assert Protocol(1, 3).without_feature("checkConstraints") == Protocol(1, 2)
    gap = Protocol(1, 4).without_feature("checkConstraints")
    assert gap == Protocol(
        1, 7, None, frozenset({"appendOnly", "changeDataFeed", "generatedColumns", "invariants"})
    )
    assert gap.with_feature("checkConstraints") == Protocol(1, 4)
    assert Protocol(2, 5).without_feature("columnMapping") == Protocol(1, 4)


def test_item_22_iceberg_compatibility_needs_writer_7_and_reader_2() -> None:
    protocol = Protocol(1, 2).with_feature("icebergCompatV2")
    assert (protocol.min_reader_version, protocol.min_writer_version) == (2, 7)
    assert protocol.reader_features is None
    assert protocol.supported == {"appendOnly", "invariants", "columnMapping", "icebergCompatV2"}


def test_item_10_a_reader_version_that_nothing_needs_is_lowered() -> None:
    written_high = Protocol(3, 7, frozenset(), frozenset({"appendOnly", "invariants"}))
    assert written_high.lowest() == Protocol(1, 2)


@pytest.mark.parametrize(
    ("action", "breach"),
    [
        ({"minReaderVersion": 0, "minWriterVersion": 2}, ViolationKind.VERSION),
        (
            {"minReaderVersion": 4, "minWriterVersion": 7, "writerFeatures": []},
            ViolationKind.VERSION,
        ),
        ({"minReaderVersion": 1, "minWriterVersion": 8}, ViolationKind.VERSION),
        ({"minReaderVersion": 3, "minWriterVersion": 5, "readerFeatures": []}, ViolationKind.PAIR),
        ({"minReaderVersion": 1, "minWriterVersion": 7}, ViolationKind.LIST_MISSING),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []},
            ViolationKind.LIST_MISSING,
        ),
        (
            {"minReaderVersion": 1, "minWriterVersion": 2, "writerFeatures": []},
            ViolationKind.LIST_UNEXPECTED,
        ),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": [],
            },
            ViolationKind.NOT_IN_WRITER_LIST,
        ),
        (
            {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["deletionVectors"]},
            ViolationKind.NOT_FOR_READERS,
        ),
        (
            {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["columnMapping"]},
            ViolationKind.NOT_FOR_READERS,
        ),
    ],
)
def test_items_13_and_14_forbidden_combinations_are_refused_with_the_reason(
    action: dict[str, Any], breach: ViolationKind
) -> None:
    with pytest.raises(InvalidProtocol) as refused:
        Protocol.parse(action)
    assert breach in {violation.breach for violation in refused.value.violations}
    assert str(refused.value) == "; ".join(each.message for each in refused.value.violations)
    stored = Protocol.stored(action)
    assert stored.to_action() == action
    assert pickle.loads(pickle.dumps(stored)) == stored


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"minReaderVersion": "1"}, "minReaderVersion is '1', not an integer"),
        ({"minReaderVersion": 1.0}, "minReaderVersion is 1.0, not an integer"),
        ({"minReaderVersion": True}, "minReaderVersion is true, not an integer"),
        ({"minWriterVersion": None}, "minWriterVersion is null, not an integer"),
        ({"writerFeatures": "a"}, "writerFeatures is 'a', not a list of names"),
        ({"writerFeatures": [1]}, "writerFeatures is [1], not a list of names"),
        ({"readerFeatures": ["a", ""]}, "readerFeatures has an empty name"),
    ],
)
def test_an_action_of_the_wrong_shape_is_no_protocol(damage: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Protocol.stored({"minReaderVersion": 3, "minWriterVersion": 7, **damage})


@pytest.mark.parametrize("key", ["readerFeatures", "writerFeatures"])
def test_a_feature_name_of_no_sensible_length_is_malformed(key: str) -> None:
    action = {"minReaderVersion": 3, "minWriterVersion": 7, key: ["x" * 255]}
    assert Protocol.stored(action).listed == {"x" * 255}
    with pytest.raises(ValueError, match=f"{key} has a name of 256 characters; .* is 255$"):
        Protocol.stored({**action, key: ["a", "x" * 256]})
    with pytest.raises(ValueError, match=f"{key} has a name of 10000000 characters"):
        Protocol.stored({**action, key: ["x" * 10_000_000]})


@pytest.mark.parametrize(
    "damage",
    [
        {"minReaderVersion": "x" * 10_000_000},
        {"readerFeatures": "x" * 10_000_000},
        {"writerFeatures": [1] * 1_000_000},
        {"writerFeatures": {str(number): number for number in range(100_000)}},
        {"readerFeatures": [["x" * 10_000_000]]},
    ],
    ids=["version", "text", "list", "object", "nested"],
)
def test_a_malformed_action_is_described_briefly(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is") as raised:
        Protocol.stored({"minReaderVersion": 3, "minWriterVersion": 7, **damage})
    assert len(str(raised.value)) < 200
