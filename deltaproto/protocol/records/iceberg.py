"""Writer-only features that keep a table convertible to Apache Iceberg."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
)
from deltaproto.protocol.records.common import (
    COMPATIBILITY_PAGE,
    NEVER_DROPPED,
    VALID_NAMES,
    requires_enabled,
    requires_not_enabled,
    requires_not_supported,
)

_V1 = "PROTOCOL.md#writer-requirements-for-icebergcompatv1"
_V2 = "PROTOCOL.md#writer-requirements-for-icebergcompatv2"
_V3 = "protocol_rfcs/iceberg-compat-v3.md"
_ONE_VERSION = "IcebergCompat.scala CheckOnlySingleVersionEnabled"
_WRITER_V1 = "protocol_rfcs/iceberg-writer-compat-v1.md"
_WRITER_V3 = "IcebergWriterCompatV3MetadataValidatorAndUpdater.java"
_COMMON_CHECKS = "IcebergWriterCompatMetadataValidatorAndUpdater.java COMMON_CHECKS"
_UNIFORM = "The Databricks table has one row, UniForm, at 13.3 LTS, for all Iceberg features. "
_NO_FEATURE = (
    "Databricks Compatibility Mode (delta.universalFormat.enabledFormats=compatibility) requires "
    "no feature: it maintains a read-only copy with the oldest protocol for Delta and Iceberg "
    "readers."
)
_ID_MODE = "Column mapping must be in id mode, with physical names of the form col-<id>."

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="icebergCompatV1",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Keeps the table convertible to Iceberg v2, without lists and maps.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergCompatV1"),
        triggers=(EnablementTrigger("delta.enableIcebergCompatV1=true", by="property"),),
        switch_off="delta.enableIcebergCompatV1=false",
        requires=(
            *requires_enabled("columnMapping", source=_V1),
            *requires_not_supported("deletionVectors", source=_V1),
            *requires_not_enabled("icebergCompatV2", "icebergCompatV3", source=_ONE_VERSION),
        ),
        since=FirstVersions(
            delta_spark="3.0.0",
            databricks="13.3 LTS",
            databricks_note=_UNIFORM.strip(),
        ),
        drop=NEVER_DROPPED,
        notes=(
            "It keeps columnMapping in the protocol permanently, even if disabled.",
            (
                "The spec requires that the protocol lacks deletionVectors; Delta Spark only "
                "checks that they are disabled."
            ),
            "On an existing table, the property fails unless column mapping is already enabled.",
            _NO_FEATURE,
        ),
        sources=(
            "PROTOCOL.md#iceberg-compatibility-v1",
            "IcebergCompat.scala IcebergCompatV1",
            COMPATIBILITY_PAGE,
        ),
    ),
    Feature(
        name="icebergCompatV2",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Keeps the table convertible to Iceberg v2, including lists and maps.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergCompatV2"),
        triggers=(
            EnablementTrigger("delta.enableIcebergCompatV2=true", by="property"),
            EnablementTrigger(
                "REORG TABLE … APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION=2))",
                by="command",
                new_tables=False,
                note="Rewrites files that are not convertible and disables deletion vectors.",
            ),
        ),
        switch_off="delta.enableIcebergCompatV2=false",
        requires=(
            *requires_enabled("columnMapping", source=_V2),
            *requires_not_enabled("deletionVectors", source=_V2),
            *requires_not_enabled("icebergCompatV1", "icebergCompatV3", source=_ONE_VERSION),
        ),
        since=FirstVersions(
            delta_spark="3.1.0",
            databricks="14.3 LTS",
            databricks_note=_UNIFORM + "The page on Iceberg reads, which describes this version, "
            "requires 14.3 LTS for writers.",
        ),
        drop=NEVER_DROPPED,
        notes=(
            "It keeps columnMapping in the protocol permanently, even if disabled.",
            "On an existing table, the property fails unless column mapping is already enabled.",
            _NO_FEATURE,
        ),
        sources=(
            "PROTOCOL.md#iceberg-compatibility-v2",
            "IcebergCompat.scala IcebergCompatV2",
            "learn.microsoft.com/azure/databricks/delta/uniform",
            COMPATIBILITY_PAGE,
        ),
    ),
    Feature(
        name="icebergCompatV3",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Keeps the table convertible to Iceberg v3, with deletion vectors allowed.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergCompatV3"),
        triggers=(
            EnablementTrigger(
                "delta.enableIcebergCompatV3=true",
                by="property",
                note="ALTER TABLE refuses it while row tracking is already enabled.",
            ),
        ),
        requires=(
            *requires_enabled("columnMapping", "rowTracking", source=_V3),
            *requires_not_enabled("icebergCompatV1", "icebergCompatV2", source=_ONE_VERSION),
        ),
        since=FirstVersions(
            delta_spark="4.3.0",
            databricks="18.0",
            databricks_note="From the Databricks page on Iceberg v3; its preview version names "
            "17.3, its newest version 18 LTS.",
        ),
        drop=NEVER_DROPPED,
        notes=(
            "Delta Spark refuses to set the property back to false on an existing table.",
            "On an existing table, column mapping must already be enabled; row tracking is added.",
            "It keeps columnMapping, rowTracking and domainMetadata in the protocol permanently.",
            _NO_FEATURE,
        ),
        sources=(
            _V3,
            "IcebergCompat.scala IcebergCompatV3, CheckCannotDisableCompat",
            "learn.microsoft.com/azure/databricks/iceberg/iceberg-v3",
            VALID_NAMES + " (not listed yet)",
        ),
    ),
    Feature(
        name="icebergWriterCompatV1",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.KERNEL,
        summary="Keeps the table readable and writable as an Iceberg v2 table.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergWriterCompatV1"),
        triggers=(
            EnablementTrigger(
                "delta.enableIcebergWriterCompatV1=true",
                by="property",
                existing_tables=False,
                note="With Delta Kernel (Java), and only at table creation.",
            ),
        ),
        requires=(
            *requires_enabled("icebergCompatV2", "columnMapping", source=_WRITER_V1),
            *requires_not_supported(
                "allowColumnDefaults", "collations", "variantType", source=_WRITER_V1
            ),
            *requires_not_enabled(
                "changeDataFeed",
                "checkConstraints",
                "generatedColumns",
                "identityColumns",
                "rowTracking",
                source=_WRITER_V1,
            ),
        ),
        since=FirstVersions(delta_spark=None, databricks=None),
        drop=NEVER_DROPPED,
        notes=(
            _ID_MODE,
            (
                "The RFC has a list of the only features that such a table may list; column "
                "invariants may be listed, but no column may have delta.invariants (NOT NULL "
                "is allowed)."
            ),
            "Delta Spark 4.4.0 rejects the name.",
        ),
        sources=(_WRITER_V1, "TableFeatures.java IcebergWriterCompatV1"),
    ),
    Feature(
        name="icebergWriterCompatV3",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.KERNEL,
        summary="Keeps the table readable and writable as an Iceberg v3 table.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergWriterCompatV3"),
        triggers=(
            EnablementTrigger(
                "delta.enableIcebergWriterCompatV3=true",
                by="property",
                existing_tables=False,
                note="With Delta Kernel (Java), and only at table creation.",
            ),
        ),
        requires=(
            *requires_enabled("icebergCompatV3", "columnMapping", source=_WRITER_V3),
            *requires_not_enabled(
                "changeDataFeed",
                "checkConstraints",
                "generatedColumns",
                "identityColumns",
                source=_COMMON_CHECKS,
            ),
        ),
        since=FirstVersions(delta_spark=None, databricks=None),
        drop=NEVER_DROPPED,
        notes=(
            _ID_MODE,
            "No RFC describes it yet; Delta Kernel (Java) is the only source.",
            "Delta Spark 4.4.0 rejects the name.",
        ),
        sources=("TableFeatures.java IcebergWriterCompatV3", _WRITER_V3),
    ),
)
