"""SET TBLPROPERTIES statements that Delta refuses before it commits anything.

Source: Delta Spark 4.4's `DeltaConfigs.validateConfigurations`, `DeltaColumnMapping` and
`TableFeature`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import column_mapping, coordinated
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.properties import validate_properties
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    ROW_TRACKING_SUSPENDED,
    Table,
    is_constraint,
)
from deltaproto.protocol import compatibility_mode, feature_catalog
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX, feature_from_key
from deltaproto.protocol.isolation import ISOLATION_PROPERTY as ISOLATION

_BACKFILLS = "3.3"
_ADDS_CATALOG_MANAGED = "18.0"
CATALOG_ONLY_FEATURES = {
    "catalogManaged": "",
    "adaptiveMetadata-preview": "DELTA_ADAPTIVE_METADATA_UPGRADE_NOT_SUPPORTED",
}
"""features that only a catalog can enable, at table creation, with the error class of the refusal
(may be empty)"""


def validate_before_commits(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Return why the statement is refused before it starts, or None."""
    return (
        validate_values(properties, engine)
        or coordinated.validate_set(table.configuration, properties)
        or _validate_row_tracking(table, properties, engine)
    )


def validate_values(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Refuse names and values that are invalid for every table."""
    return (
        validate_properties(properties, engine)
        or _validate_isolation(properties, engine)
        or _validate_versions(properties, engine)
        or column_mapping.validate_mapping_mode(properties)
    )


def validate_after_backfill(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Return why the properties are not committed, even after a row id backfill."""
    return (
        validate_requested_features(properties, engine, table.protocol.supported)
        or validate_copy_location(properties, table.configuration)
        or column_mapping.validate_mode_change(table, properties, engine)
        or _validate_set_versions(table, properties)
        or _validate_mapping_versions(table, properties, engine)
    )


def validate_requested_features(
    properties: Mapping[str, str], engine: Engine, supported: frozenset[str] = frozenset()
) -> Refusal | None:
    """Refuse constraints and features that no table accepts.

    Args:
        supported: features that the table already supports.
    """
    for key, value in properties.items():
        lower = key.lower()
        if is_constraint(lower):
            return Refusal(
                "DELTA_ADD_CONSTRAINTS", f"{key} is a constraint", "ALTER TABLE … ADD CONSTRAINT"
            )
        refusal = (
            _validate_feature(key, value, engine, supported)
            if lower.startswith(FEATURE_PREFIX)
            else None
        )
        if refusal is not None:
            return refusal
    return None


def validate_copy_location(
    properties: Mapping[str, str], configuration: Mapping[str, str | None]
) -> Refusal | None:
    """Refuse Compatibility Mode without a location for its copy."""
    location = properties.get(compatibility_mode.LOCATION)
    if location is None:
        location = configuration.get(compatibility_mode.LOCATION)
    if not compatibility_mode.is_requested(properties) or (location or "").strip():
        return None
    return Refusal(
        compatibility_mode.NO_LOCATION,
        "Compatibility Mode requires an empty folder for its copy",
        f"also set {compatibility_mode.LOCATION}: an empty folder in an external location",
    )


def _validate_isolation(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    value = properties.get(ISOLATION, "Serializable")
    level = value.lower()
    writes = level == "writeserializable" and engine.name is EngineName.DATABRICKS
    if level == "serializable" or writes:
        return None
    known = level in ("writeserializable", "snapshotisolation")
    return Refusal(
        engine.bad_value if known else "DELTA_INVALID_ISOLATION_LEVEL",
        f"{engine} does not accept {value} for {ISOLATION}",
        "use WriteSerializable only on Databricks; Delta Spark accepts Serializable",
    )


def _validate_feature(
    key: str, value: str, engine: Engine, supported: frozenset[str]
) -> Refusal | None:
    name = feature_from_key(key)
    if name == "clustering":
        return Refusal(
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            "clustering is enabled with a clause, not with a property",
            "ALTER TABLE … CLUSTER BY (columns)",
        )
    if name is None or engine.knows(feature_catalog.feature_record(name)) is False:
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            f"{engine} has no feature {name or key[len(FEATURE_PREFIX) :]}",
            "see `deltaproto features`",
        )
    refusal = validate_catalog_only(name, supported, engine)
    if refusal is not None:
        return refusal
    if value.lower() not in ("supported", "enabled"):
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURE_STATUS", f"{value} is not a status", "write 'supported'"
        )
    return None


def validate_catalog_only(name: str, supported: frozenset[str], engine: Engine) -> Refusal | None:
    """Refuse to add a feature that only a catalog can enable.

    Databricks can add catalogManaged to managed tables of Unity Catalog, but its documentation does
    not name the features that it adds with it.

    Source: Databricks documentation, "Catalog commits".
    """
    if name not in CATALOG_ONLY_FEATURES or name in supported:
        return None
    statement = f"SET TBLPROPERTIES ('{FEATURE_PREFIX}{name}' = 'supported')"
    if name != "catalogManaged":
        where = "create a new table in a catalog that supports it, and copy the data"
    elif engine.name is EngineName.DATABRICKS and engine.at_least(_ADDS_CATALOG_MANAGED):
        return Refusal(
            "",
            f"{engine} can add it to managed tables of Unity Catalog, but the resulting protocol "
            "is not documented, so it is not planned",
            f"run ALTER TABLE … {statement} with the table's catalog name, do not cancel it, and "
            "plan other changes afterwards",
            sure=False,
        )
    else:
        where = (
            "for a managed table of Unity Catalog, use Databricks Runtime "
            f"{_ADDS_CATALOG_MANAGED} or later; otherwise create a new table in a catalog that "
            "manages commits, and copy the data"
        )
    return Refusal(
        CATALOG_ONLY_FEATURES[name],
        f"{engine} can enable {name} only in a new table of a catalog",
        where,
        on_databricks=True,
    )


def _validate_row_tracking(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    after = table.with_properties(properties)
    if (
        {ROW_TRACKING, ROW_TRACKING_SUSPENDED} & {*properties}
        and after.is_on(ROW_TRACKING)
        and after.is_on(ROW_TRACKING_SUSPENDED)
    ):
        return Refusal(
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            f"{ROW_TRACKING} and {ROW_TRACKING_SUSPENDED} exclude each other",
            f"set {ROW_TRACKING_SUSPENDED} = false",
        )
    if properties.get(ROW_TRACKING, "").lower() != "true" or table.is_on(ROW_TRACKING):
        return None
    if engine.name is EngineName.DELTA_SPARK and not engine.at_least(_BACKFILLS):
        return Refusal(
            "",
            f"{engine} cannot add row ids to an existing table",
            f"delta-spark@{_BACKFILLS} or later can",
            on_databricks=True,
        )
    return None


def _validate_versions(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    for key, highest in ((MIN_READER_VERSION, 3), (MIN_WRITER_VERSION, 7)):
        value = properties.get(key)
        taken = {str(number) for number in range(1, highest + 1)}
        if (
            key == MIN_WRITER_VERSION
            and not engine.normalizes
            and engine.name is EngineName.DELTA_SPARK
        ):
            # In these releases, identity columns are not a listed feature.
            taken -= {"6"}
        if value is not None and value not in taken:
            return Refusal(
                engine.bad_value,
                f"{engine} accepts {', '.join(sorted(taken))} for {key}",
                "use one of these",
            )
    return None


def _validate_set_versions(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    """Refuse reader version 3 with a legacy writer version, unless the table stores versions.

    Those count as set, too.
    """
    stored = {MIN_READER_VERSION, MIN_WRITER_VERSION} & table.configuration.keys()
    return None if stored else validate_version_pair(table, properties)


def validate_version_pair(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    """Refuse reader version 3 with a legacy writer version."""
    versions = requested_versions(table, properties)
    if versions is not None and versions[0] == 3 and versions[1] < 7:
        return Refusal(
            "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            f"reader version 3 requires writer version 7, not {versions[1]}",
            "set both versions, or better, enable the feature that you want",
        )
    return None


def _validate_mapping_versions(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Return why the versions are too low for a new mapping mode, or None."""
    before = table.configuration.get(MAPPING_MODE, column_mapping.MODE_NONE).lower()
    new = properties.get(MAPPING_MODE, before).lower() != before
    if not new or engine.normalizes or engine.name is not EngineName.DELTA_SPARK:
        return None
    missing = versions_for_mapping(table, properties)
    if not missing:
        return None
    return Refusal(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_PROTOCOL",
        f"{engine} requires setting the versions together with the mapping mode",
        "also set " + ", ".join(f"'{key}' = '{value}'" for key, value in missing.items()),
    )


def versions_for_mapping(table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    """Return versions that a new mapping mode also requires before Delta Spark 3.3.

    Args:
        properties: the properties that the statement sets.

    Source: `DeltaColumnMapping.verifyAndUpdateMetadataChange` of Delta 3.0 to 3.2; measured with
    3.1.0 and 3.2.1.
    """
    protocol = table.protocol
    reader, writer = requested_versions(table, properties) or protocol.versions
    wanted = ((MIN_READER_VERSION, reader, 2), (MIN_WRITER_VERSION, writer, 5))
    return {key: str(needed) for key, version, needed in wanted if version < needed}


def requested_versions(table: Table, properties: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the requested pair; a version that is not set keeps its value."""
    if MIN_READER_VERSION not in properties and MIN_WRITER_VERSION not in properties:
        return None
    protocol = table.protocol
    reader = int(properties.get(MIN_READER_VERSION, protocol.min_reader_version))
    return reader, int(properties.get(MIN_WRITER_VERSION, protocol.min_writer_version))
