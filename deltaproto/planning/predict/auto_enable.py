"""Features that properties and columns enable automatically in an existing table.

Source: Delta Spark 4.4's `Protocol.upgradeProtocolFromMetadataForExistingTable` and
`TableFeature`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from deltaproto.planning import arithmetic
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Struct, Type
from deltaproto.planning.predict.table import is_constraint
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.protocol import Protocol

NTZ = "timestampNtz"
_MATERIALIZE = "delta.enableMaterializePartitionColumnsFeature"
_SHREDDING, _WIDENING = "delta.enableVariantShredding", "delta.enableTypeWidening"
_FINAL_WIDENING = "4.0"


def upgrade_for_properties(
    protocol: Protocol, configuration: Mapping[str, str], engine: Engine
) -> Protocol:
    """Return the protocol after a change of properties."""
    return _enable_all(protocol, features_of_properties(configuration, protocol, engine), engine)


def upgrade_protocol(
    protocol: Protocol,
    configuration: Mapping[str, str],
    schema: Struct | None,
    engine: Engine,
) -> Protocol | Refusal:
    """Return the protocol after a metadata change; `schema` may have only the new columns.

    Return a refusal if a feature has to be added manually first.
    """
    missing = features_of_columns(schema or Struct(()), protocol) - protocol.supported
    if NTZ in missing:
        return Refusal(
            "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            "TIMESTAMP_NTZ columns do not add their feature to an existing table automatically",
            f"first: SET TBLPROPERTIES ('delta.feature.{NTZ}' = 'supported')",
        )
    upgraded = upgrade_for_properties(protocol, configuration, engine)
    return _enable_all(upgraded, missing, engine)


def _enable_all(protocol: Protocol, names: set[str], engine: Engine) -> Protocol:
    for name in sorted(names):
        if name not in protocol.supported:
            protocol = arithmetic.enable_feature(protocol, name, engine)
    return protocol


def features_of_properties(
    configuration: Mapping[str, str], protocol: Protocol, engine: Engine
) -> set[str]:
    """Return the features that the properties enable; an engine ignores those that it lacks."""
    found: set[str] = set()
    for name, rule in _enabled_by_properties():
        if rule.holds(configuration.get(rule.key_in(configuration))):
            found.add(_choose_final_or_preview(rule.key, name, protocol, engine))
    if configuration.get(_MATERIALIZE, "").lower() == "true":
        found.add("materializePartitionColumns")
    if any(is_constraint(key) for key in configuration):
        found.add("checkConstraints")
    return {
        name for name in found if engine.knows(feature_catalog.feature_record(name)) is not False
    }


@cache
def _enabled_by_properties() -> tuple[tuple[str, PropertyIs], ...]:
    """Return the registered features that a property enables."""
    return tuple(
        (feature.name, feature.enablement)
        for feature in feature_catalog.all_features()
        if feature_catalog.is_registered(feature.name)
        and isinstance(feature.enablement, PropertyIs)
    )


def features_of_columns(schema: Struct, protocol: Protocol) -> set[str]:
    """Return the features that the columns require."""
    return {
        _present_or_final(name, protocol)
        for name in _features_of_struct(schema, in_collection=False)
    }


def _features_of_struct(struct: Struct, *, in_collection: bool) -> Iterator[str]:
    for column in struct.columns:
        yield from _features_of_column(column)
        # Delta checks NOT NULL in nested structs, but not inside arrays and maps.
        if column.bound and not in_collection:
            yield "invariants"
        yield from _features_of_type(column.type, in_collection=in_collection)


def _features_of_column(column: Column) -> Iterator[str]:
    if column.generated is not None:
        yield "generatedColumns"
    if column.identity:
        yield "identityColumns"


def _features_of_type(kind: Type, *, in_collection: bool) -> Iterator[str]:
    match kind:
        case Struct():
            yield from _features_of_struct(kind, in_collection=in_collection)
        case Array():
            yield from _features_of_type(kind.element, in_collection=True)
        case Map():
            yield from _features_of_type(kind.key, in_collection=True)
            yield from _features_of_type(kind.value, in_collection=True)
        case Atomic("timestamp_ntz"):
            yield NTZ
        case Atomic("variant"):
            yield "variantType"
        case _:
            pass


def _choose_final_or_preview(key: str, name: str, protocol: Protocol, engine: Engine) -> str:
    final = name.removesuffix("-preview")
    if {final, f"{final}-preview"} & protocol.supported:
        return _present_or_final(name, protocol)
    return f"{final}-preview" if adds_preview(key, engine) else final


def adds_preview(key: str, engine: Engine) -> bool:
    """Return True if a property shared by a preview and a final feature adds the preview."""
    if key == _WIDENING:
        return engine.name is EngineName.DELTA_SPARK and not engine.at_least(_FINAL_WIDENING)
    return key == _SHREDDING


def _present_or_final(name: str, protocol: Protocol) -> str:
    """Return the existing one of a preview and a final name; default: the final one."""
    final = name.removesuffix("-preview")
    return next((n for n in (final, f"{final}-preview") if n in protocol.supported), final)
