"""What Delta refuses of SET TBLPROPERTIES, before it commits anything.

Source: Delta Spark 4.4's `DeltaConfigs.validateConfigurations`, `DeltaColumnMapping`,
`IcebergCompat` and `TableFeature`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.planning.engine import DEFAULT, Engine, EngineName
from deltaproto.planning.outcome import Refusal
from deltaproto.planning.table import CONSTRAINT, MODE, ROW_TRACKING, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Status
from deltaproto.protocol.isolation import PROPERTY as ISOLATION

FEATURE = "delta.feature."
READER, WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
_BACKFILLS = "3.3"
# With the error class of the refusal; it may have none.
_BY_CATALOG = {
    "catalogManaged": "",
    "adaptiveMetadata-preview": "DELTA_ADAPTIVE_METADATA_UPGRADE_NOT_SUPPORTED",
}
_COMPATIBLE = {
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
}


def refused(table: Table, properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Why the statement is refused; None when it is not."""
    return (
        asked_wrongly(properties, engine)
        or _bad_versions(table, properties, engine)
        or _bad_row_tracking(table, properties, engine)
        or _bad_mapping(table, properties)
    )


def asked_wrongly(properties: Mapping[str, str], engine: Engine = DEFAULT) -> Refusal | None:
    """The refusal of properties that no table takes."""
    for key, value in properties.items():
        lower = key.lower()
        refusal = None
        if lower.startswith(CONSTRAINT):
            return Refusal(
                "DELTA_ADD_CONSTRAINTS", f"{key} is a constraint", "ALTER TABLE … ADD CONSTRAINT"
            )
        if lower.startswith(FEATURE):
            refusal = _bad_feature(key, value, engine)
        elif lower == ISOLATION.lower():
            refusal = _bad_isolation(value, engine)
        if refusal is not None:
            return refusal
    return None


def _bad_isolation(value: str, engine: Engine) -> Refusal | None:
    level = value.lower()
    writes = level == "writeserializable" and engine.name is EngineName.DATABRICKS
    if level == "serializable" or writes:
        return None
    known = level in ("writeserializable", "snapshotisolation")
    return Refusal(
        "UNSUPPORTED_TABLE_CHANGE" if known else "DELTA_INVALID_ISOLATION_LEVEL",
        f"{engine} takes no {value} for {ISOLATION}",
        "WriteSerializable is set on Databricks only; Delta Spark takes Serializable",
    )


def _bad_feature(key: str, value: str, engine: Engine) -> Refusal | None:
    name = feature_of(key)
    if name == "clustering":
        return Refusal(
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            "clustering comes with a clause, not with a property",
            "ALTER TABLE … CLUSTER BY (columns)",
        )
    if name is None or engine.knows(catalogue.record(name)) is False:
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            f"{engine} knows no feature {name or key[len(FEATURE) :]}",
            "see `deltaproto features`",
        )
    if name in _BY_CATALOG:
        return Refusal(
            _BY_CATALOG[name],
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
    key = ROW_TRACKING
    if properties.get(key, "").lower() != "true" or table.on(key):
        return None
    if engine.name is EngineName.DELTA_SPARK and not engine.at_least(_BACKFILLS):
        return Refusal(
            "",
            f"{engine} cannot give row ids to an existing table",
            f"delta-spark@{_BACKFILLS} or later can",
        )
    return None


def _bad_versions(table: Table, properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    for key, highest in ((READER, 3), (WRITER, 7)):
        value = properties.get(key)
        taken = {str(number) for number in range(1, highest + 1)}
        if key == WRITER and not engine.normalises and engine.name is EngineName.DELTA_SPARK:
            # Identity columns are not among the features of these releases.
            taken -= {"6"}
        if value is not None and value not in taken:
            return Refusal(
                "UNSUPPORTED_TABLE_CHANGE",
                f"{engine} takes {', '.join(sorted(taken))} for {key}",
                "choose one of them",
            )
    versions = asked_versions(table, properties)
    if versions is not None and versions[0] == 3 and versions[1] < 7:
        return Refusal(
            "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            f"reader version 3 goes with writer version 7, not {versions[1]}",
            "set the other version as well, or better, enable the feature that is wanted",
        )
    return None


def _bad_mapping(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    before = table.configuration.get(MODE, "none").lower()
    after = properties.get(MODE, before).lower()
    if after not in ("none", "name", "id"):
        return Refusal("", f"no mapping mode is called {after}", "name, id or none")
    if after != before and after != "none" and not (before == "none" and after == "name"):
        return Refusal(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            f"the mapping mode cannot go from {before} to {after}",
            "an existing table takes name only",
        )
    return _bad_iceberg(table, properties, after)


def _bad_iceberg(table: Table, properties: Mapping[str, str], mode: str) -> Refusal | None:
    def on(key: str) -> bool:
        return properties.get(key, table.configuration.get(key, "")).strip().lower() == "true"

    compatible = [key for key in _COMPATIBLE if on(key)]
    if not compatible:
        return None
    name = _COMPATIBLE[compatible[-1]]
    if len(compatible) > 1:
        others = " and ".join(_COMPATIBLE[key] for key in compatible)
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.VERSION_MUTUAL_EXCLUSIVE",
            f"{others} exclude each other",
            f"set {compatible[0]} = false in the same statement",
        )
    if mode == "none":
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            f"{name} needs column mapping",
            f"set {MODE} = name first",
        )
    tracked = table.on(ROW_TRACKING)
    if name == "icebergCompatV3" and tracked and not table.on(compatible[-1]):
        return Refusal(
            "",
            "Delta Spark does not switch icebergCompatV3 on while row tracking is enabled",
            "set delta.enableRowTracking = false first, and true again together with the property",
        )
    tracking = (
        properties.get(ROW_TRACKING, table.configuration.get(ROW_TRACKING, "")).strip().lower()
    )
    if name == "icebergCompatV3" and tracking == "false":
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            f"icebergCompatV3 does not go with {ROW_TRACKING} = false",
            f"set {ROW_TRACKING} = true in the same statement",
        )
    if name != "icebergCompatV3" and on("delta.enableDeletionVectors"):
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
            f"{name} goes without deletion vectors",
            "set delta.enableDeletionVectors = false, and REORG TABLE … APPLY (PURGE)",
        )
    return None


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
    for feature in catalogue.all_features():
        if feature.name.lower() == wanted and catalogue.registered(feature.name):
            return None if feature.status is Status.TESTING else feature.name
    return None
