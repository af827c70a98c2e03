"""Compute protocols after features are added or removed, as each engine does.

Since Delta 3.3, every result is the lowest protocol for its features (`Protocol`). Earlier releases
raised legacy tables to the next legacy pair, never lowered versions, and returned to version
numbers only if the remaining features were exactly those of a pair.

Source: Delta Spark 3.0 to 3.2, `TableFeatureSupport.merge`, `removeFeature` and
`downgradeProtocolVersionsIfNeeded`, `Protocol.upgradeProtocolFromMetadataForExistingTable`.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.engine import Engine
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.protocol import Protocol


def enable_feature(protocol: Protocol, name: str, engine: Engine) -> Protocol:
    """Return the protocol after a property or the schema enabled a feature."""
    if engine.normalizes:
        return protocol.with_feature(name)
    names = feature_catalog.with_required_features({name})
    records = [feature_catalog.feature_record(each) for each in names]
    reader = max(protocol.min_reader_version, *(record.min_reader for record in records))
    writer = max(protocol.min_writer_version, *(record.min_writer for record in records))
    if writer < 7:
        return Protocol(reader, writer)
    return _with_features(reader, protocol.supported | names)


def add_named_feature(protocol: Protocol, name: str, engine: Engine) -> Protocol:
    """Return the protocol after `delta.feature.NAME = supported`."""
    # Nothing changes, not even the form of the protocol.
    if name in protocol.listed:
        return protocol
    if engine.normalizes:
        return protocol.with_feature(name)
    names = feature_catalog.with_required_features({name})
    both = any(
        feature_catalog.feature_record(each).kind is FeatureKind.READER_WRITER for each in names
    )
    reader = 3 if both else protocol.min_reader_version
    return _with_features(reader, protocol.supported | names)


def raise_versions(protocol: Protocol, pair: tuple[int, int], engine: Engine) -> Protocol:
    """Return the protocol after the versions were set."""
    reader, writer = pair
    if engine.normalizes:
        lists = frozenset[str]()
        target = Protocol(
            reader, writer, lists if reader == 3 else None, lists if writer == 7 else None
        )
        return protocol.merge(target)
    reader = max(reader, protocol.min_reader_version)
    writer = max(writer, protocol.min_writer_version)
    if writer < 7:
        return Protocol(reader, writer)
    return _with_features(reader, protocol.supported | feature_catalog.features_implied_by(*pair))


def remove_feature(protocol: Protocol, name: str, engine: Engine) -> Protocol:
    """Return the protocol after the feature was dropped."""
    if engine.normalizes:
        return protocol.without_feature(name)
    left = protocol.supported - {name}
    records = [feature_catalog.feature_record(each) for each in left]
    if all(record.legacy for record in records):
        reader = max((record.min_reader for record in records), default=1)
        writer = max((record.min_writer for record in records), default=1)
        if feature_catalog.features_implied_by(reader, writer) == left:
            return Protocol(reader, writer)
    return _with_features(protocol.min_reader_version, left)


def _with_features(reader: int, features: Iterable[str]) -> Protocol:
    every = frozenset(features)
    both = frozenset(
        n for n in every if feature_catalog.feature_record(n).kind is FeatureKind.READER_WRITER
    )
    return Protocol(reader, 7, both if reader == 3 else None, every)
