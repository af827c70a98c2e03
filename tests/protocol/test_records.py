"""The records of the catalog among themselves, and the reasons that are told from them."""

from __future__ import annotations

import itertools

import pytest
from syrupy.assertion import SnapshotAssertion

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import Feature, Requirement, RequirementKind
from deltaproto.protocol.layers import explain_versions
from deltaproto.protocol.protocol import Protocol
from tests.support.failures import each_row
from tests.support.golden import Text

FEATURES = [f for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)]
DEPENDENT = "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"


def needing(name: str) -> set[str]:
    return {f.name for f in FEATURES if name in f.required_features}


@each_row("feature", [f for f in FEATURES if f.droppable], ids=lambda f: f.name)
def test_a_drop_is_refused_while_another_feature_needs_it(feature: Feature) -> None:
    refusals = [r for r in feature.drop.refusals if r.error == DEPENDENT]
    assert bool(refusals) is bool(needing(feature.name))
    for refusal in refusals:
        start, _, names = refusal.when.removesuffix(")").partition(" (")
        assert start == "the protocol lists a feature that requires it"
        assert needing(feature.name) <= {*names.split(", ")}
        assert refusal.remedy


# Delta Spark's `CheckColumnMapping`, `CheckDeletionVectorDisabled`, `CheckOnlySingleVersionEnabled`
# and `TableFeature.requiredFeatures`.
REQUIRED = {
    "icebergCompatV1": {
        (RequirementKind.ENABLED, "columnMapping"),
        (RequirementKind.NOT_SUPPORTED, "deletionVectors"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV2"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV3"),
    },
    "icebergCompatV2": {
        (RequirementKind.ENABLED, "columnMapping"),
        (RequirementKind.NOT_ENABLED, "deletionVectors"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV1"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV3"),
    },
    "icebergCompatV3": {
        (RequirementKind.ENABLED, "columnMapping"),
        (RequirementKind.ENABLED, "rowTracking"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV1"),
        (RequirementKind.NOT_ENABLED, "icebergCompatV2"),
    },
    "variantShredding": {(RequirementKind.SUPPORTED, "variantType")},
    "rowTracking": {(RequirementKind.SUPPORTED, "domainMetadata")},
    "clustering": {(RequirementKind.SUPPORTED, "domainMetadata")},
}


@pytest.mark.parametrize("name", REQUIRED)
def test_what_a_feature_requires(name: str) -> None:
    requires = feature_catalog.feature_record(name).requires
    assert {(r.need, r.feature) for r in requires} == REQUIRED[name]


def test_every_requirement_is_of_a_known_feature_and_has_a_source() -> None:
    for feature in feature_catalog.all_features():
        for each in feature.requires:
            assert isinstance(each, Requirement)
            assert isinstance(each.need, RequirementKind)
            assert feature_catalog.find_feature(each.feature) is not None, (feature.name, each)
            assert each.source


@each_row("feature", FEATURES, ids=lambda f: f.name)
def test_the_property_that_adds_it_names_it(feature: Feature) -> None:
    for trigger in feature.triggers:
        assert trigger.by in ("property", "schema", "command", "feature-property")
        if trigger.by == "feature-property":
            assert trigger.act == f"delta.feature.{feature.name}=supported"
        assert isinstance(trigger.note, str)


def test_why_a_protocol_is_what_it_is(snapshot: SnapshotAssertion) -> None:
    pairs = [Protocol(r, w) for r, w in ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (2, 2))]
    names = (
        *((), ("appendOnly",), ("columnMapping",), ("rowTracking",), ("deletionVectors",)),
        *(("appendOnly", "invariants"), ("checkConstraints",), ("nosuch",)),
        ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "typeWidening"),
        ("domainMetadata", "rowTracking", "clustering", "inCommitTimestamp", "variantType"),
    )
    listed = [Protocol.carrying(n) for n in names]
    for reader, features in itertools.product((1, 2, 3), map(list, names)):
        action = {"minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": features}
        if reader == 3:
            action["readerFeatures"] = features
        # As tables hold them, sound or not.
        listed.append(Protocol.stored(action))
    lines = [
        f"{p} {sorted(p.supported)}: {'; '.join(explain_versions(p))}" for p in (*pairs, *listed)
    ]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)
