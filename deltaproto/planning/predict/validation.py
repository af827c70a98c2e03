"""What Delta refuses of SET TBLPROPERTIES, before it commits anything.

Source: Delta Spark 4.4's `DeltaConfigs.validateConfigurations`, `DeltaColumnMapping` and
`TableFeature`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import column_mapping, coordinated
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.properties import validate_properties
from deltaproto.planning.predict.table import CONSTRAINT, MODE, READER, ROW_TRACKING, WRITER, Table
from deltaproto.protocol import compatibility_mode, feature_catalog
from deltaproto.protocol.feature import FeatureStatus
from deltaproto.protocol.isolation import PROPERTY as ISOLATION

FEATURE = "delta.feature."
_SUSPENDED = "delta.rowTrackingSuspended"
_BACKFILLS = "3.3"
BY_CATALOG = {
    "catalogManaged": "",
    "adaptiveMetadata-preview": "DELTA_ADAPTIVE_METADATA_UPGRADE_NOT_SUPPORTED",
}
"""features that only a catalog gives a table, when it creates it, each with the error class of the
refusal, which may have none"""


def invalid(table: Table, properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Why nothing of the statement is done; None where it is begun."""
    return (
        invalid_value(properties, engine)
        or coordinated.unsettable(table.configuration, properties)
        or _bad_row_tracking(table, properties, engine)
    )


def invalid_value(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """The refusal of names and values that no table takes."""
    return (
        validate_properties(properties, engine)
        or _bad_isolation(properties, engine)
        or _bad_versions(properties, engine)
        or column_mapping.invalid_mapping_mode(properties)
    )


def validate_set_properties(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Why it comes to no commit of the properties, though row ids have been filled in."""
    return (
        asked_wrongly(properties, engine, table.protocol.supported)
        or unlocated(properties, table.configuration)
        or column_mapping.changed(table, properties, engine)
        or _bad_pair(table, properties)
        or _too_low(table, properties, engine)
    )


def asked_wrongly(
    properties: Mapping[str, str], engine: Engine, supported: frozenset[str] = frozenset()
) -> Refusal | None:
    """The refusal of constraints and features that no table takes.

    Args:
        supported: features that the table has already.
    """
    for key, value in properties.items():
        lower = key.lower()
        if lower.startswith(CONSTRAINT):
            return Refusal(
                "DELTA_ADD_CONSTRAINTS", f"{key} is a constraint", "ALTER TABLE … ADD CONSTRAINT"
            )
        refusal = _bad_feature(key, value, engine, supported) if lower.startswith(FEATURE) else None
        if refusal is not None:
            return refusal
    return None


def unlocated(
    properties: Mapping[str, str], configuration: Mapping[str, str | None]
) -> Refusal | None:
    """The refusal of Compatibility Mode without a location for its copy."""
    location = properties.get(compatibility_mode.LOCATION)
    if location is None:
        location = configuration.get(compatibility_mode.LOCATION)
    if not compatibility_mode.requested(properties) or (location or "").strip():
        return None
    return Refusal(
        compatibility_mode.NO_LOCATION,
        "Compatibility Mode needs an empty folder for its copy",
        f"set {compatibility_mode.LOCATION}, too: an empty folder in an external location",
    )


def _bad_isolation(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    value = properties.get(ISOLATION, "Serializable")
    level = value.lower()
    writes = level == "writeserializable" and engine.name is EngineName.DATABRICKS
    if level == "serializable" or writes:
        return None
    known = level in ("writeserializable", "snapshotisolation")
    return Refusal(
        engine.bad_value if known else "DELTA_INVALID_ISOLATION_LEVEL",
        f"{engine} takes no {value} for {ISOLATION}",
        "WriteSerializable is set on Databricks only; Delta Spark takes Serializable",
    )


def _bad_feature(key: str, value: str, engine: Engine, supported: frozenset[str]) -> Refusal | None:
    name = feature_of(key)
    if name == "clustering":
        return Refusal(
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            "clustering comes with a clause, not with a property",
            "ALTER TABLE … CLUSTER BY (columns)",
        )
    if name is None or engine.knows(feature_catalog.record(name)) is False:
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            f"{engine} knows no feature {name or key[len(FEATURE) :]}",
            "see `deltaproto features`",
        )
    if name in BY_CATALOG and name not in supported:
        return Refusal(
            BY_CATALOG[name],
            f"an existing table never gets {name}",
            "a catalog creates such tables",
        )
    if value.lower() not in ("supported", "enabled"):
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURE_STATUS", f"{value} is no status", "write 'supported'"
        )
    return None


def _bad_row_tracking(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    after = table.with_properties(properties)
    if (
        {ROW_TRACKING, _SUSPENDED} & {*properties}
        and after.on(ROW_TRACKING)
        and after.on(_SUSPENDED)
    ):
        return Refusal(
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            f"{ROW_TRACKING} and {_SUSPENDED} exclude each other",
            f"set {_SUSPENDED} = false",
        )
    if properties.get(ROW_TRACKING, "").lower() != "true" or table.on(ROW_TRACKING):
        return None
    if engine.name is EngineName.DELTA_SPARK and not engine.at_least(_BACKFILLS):
        return Refusal(
            "",
            f"{engine} cannot give row ids to an existing table",
            f"delta-spark@{_BACKFILLS} or later can",
        )
    return None


def _bad_versions(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    for key, highest in ((READER, 3), (WRITER, 7)):
        value = properties.get(key)
        taken = {str(number) for number in range(1, highest + 1)}
        if key == WRITER and not engine.normalises and engine.name is EngineName.DELTA_SPARK:
            # Identity columns are not among the features of these releases.
            taken -= {"6"}
        if value is not None and value not in taken:
            return Refusal(
                engine.bad_value,
                f"{engine} takes {', '.join(sorted(taken))} for {key}",
                "choose one of them",
            )
    return None


def _bad_pair(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    versions = asked_versions(table, properties)
    if versions is not None and versions[0] == 3 and versions[1] < 7:
        return Refusal(
            "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            f"reader version 3 goes with writer version 7, not {versions[1]}",
            "set the other version as well, or better, enable the feature that is wanted",
        )
    return None


def _too_low(table: Table, properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Why the versions do not go with a mapping mode that is new."""
    before = table.configuration.get(MODE, column_mapping.NONE).lower()
    new = properties.get(MODE, before).lower() != before
    if not new or engine.normalises or engine.name is not EngineName.DELTA_SPARK:
        return None
    missing = versions_for_mapping(table, properties)
    if not missing:
        return None
    return Refusal(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_PROTOCOL",
        f"{engine} wants the versions set with the mapping mode",
        "set as well " + ", ".join(f"'{key}' = '{value}'" for key, value in missing.items()),
    )


def versions_for_mapping(table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    """The versions that a statement lacks beside a new mapping mode, before Delta Spark 3.3.

    Args:
        properties: what the statement sets.

    Source: `DeltaColumnMapping.verifyAndUpdateMetadataChange` of Delta 3.0 to 3.2; measured with
    3.1.0 and 3.2.1.
    """
    protocol = table.protocol
    stored = protocol.min_reader_version, protocol.min_writer_version
    reader, writer = asked_versions(table, properties) or stored
    wanted = ((READER, reader, 2), (WRITER, writer, 5))
    return {key: str(needed) for key, version, needed in wanted if version < needed}


def asked_versions(table: Table, properties: Mapping[str, str]) -> tuple[int, int] | None:
    """The pair that is asked for; what is not set counts as it is."""
    if READER not in properties and WRITER not in properties:
        return None
    protocol = table.protocol
    reader = int(properties.get(READER, protocol.min_reader_version))
    return reader, int(properties.get(WRITER, protocol.min_writer_version))


def feature_of(key: str) -> str | None:
    """The registered feature that a `delta.feature.…` key means, in any case; None when none."""
    wanted = key[len(FEATURE) :].lower()
    for feature in feature_catalog.all_features():
        if feature.name.lower() == wanted and feature_catalog.registered(feature.name):
            return None if feature.status is FeatureStatus.TESTING else feature.name
    return None
