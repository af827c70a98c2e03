"""Names defined only by an open RFC of the Delta protocol."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    CLUSTERING_DOMAIN,
    AlwaysWhenSupported,
    DomainHas,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    SchemaHas,
    Trait,
)
from deltaproto.protocol.records.common import (
    NEVER_DROPPED,
    feature_property_trigger,
    requires_enabled,
    requires_not_enabled,
    requires_supported,
)

_NOWHERE = FirstVersions(delta_spark=None, databricks=None)
_REJECTED = "Delta Spark 4.4.0 rejects the name."
_ADAPTIVE = "protocol_rfcs/iceberg-v4-metadata.md"
_EXPRESSIONS = "protocol_rfcs/clustering-expressions.md"
_NATIVE = "protocol_rfcs/iceberg-native-v4.md"
_COLUMN_FILES = "protocol_rfcs/column-updates.md"

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="adaptiveMetadata",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RFC,
        summary="Keeps the list of files in an Iceberg v4 style metadata tree.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=(
            *requires_enabled(
                "columnMapping",
                "rowTracking",
                "deletionVectors",
                "inCommitTimestamp",
                source=_ADAPTIVE,
            ),
            *requires_supported("domainMetadata", source=_ADAPTIVE),
            *requires_not_enabled("v2Checkpoint", source=_ADAPTIVE),
        ),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("Delta 4.4.0 and delta-kernel-rs write the name adaptiveMetadata-preview.",),
        sources=(_ADAPTIVE,),
    ),
    Feature(
        name="clusteringExpressions",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RFC,
        summary="Clusters a table by expressions on columns, such as date_trunc.",
        min_reader=1,
        min_writer=7,
        enablement=DomainHas(CLUSTERING_DOMAIN, "transforms"),
        requires=requires_supported("clustering", "domainMetadata", source=_EXPRESSIONS),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=(
            "A writer must keep statistics for each expression, as it does for clustering columns.",
            _REJECTED,
        ),
        sources=(_EXPRESSIONS, "github.com/delta-io/delta/issues/6736"),
    ),
    Feature(
        name="columnMappingUsageTracking",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RFC,
        summary="Records whether a column was ever renamed or dropped under column mapping.",
        min_reader=1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=requires_supported(
            "columnMapping", source="protocol_rfcs/column-mapping-usage-tracking.md"
        ),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("The result is stored in delta.columnMapping.hasDroppedOrRenamed.", _REJECTED),
        sources=("protocol_rfcs/column-mapping-usage-tracking.md",),
    ),
    Feature(
        name="columnUpdates",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RFC,
        summary="Stores updated columns of a data file in separate column files.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=requires_enabled("columnMapping", source=_COLUMN_FILES),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=(
            "A reader that ignores the column files returns the old values of updated columns.",
            _REJECTED,
        ),
        sources=(
            _COLUMN_FILES,
            "github.com/delta-io/delta/pull/7413",
            "github.com/delta-io/delta/issues/7414",
        ),
    ),
    Feature(
        name="icebergNativeV4",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RFC,
        summary="Keeps all files in an Iceberg v4 tree, so that Iceberg can read the table.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableIcebergNativeV4"),
        triggers=(EnablementTrigger("delta.enableIcebergNativeV4=true", by="property"),),
        switch_off="delta.enableIcebergNativeV4=false, only as part of removing the feature",
        requires=(
            *requires_supported("adaptiveMetadata", source=_NATIVE),
            *requires_not_enabled(
                "icebergCompatV1",
                "icebergCompatV2",
                "icebergCompatV3",
                "invariants",
                "checkConstraints",
                "generatedColumns",
                "identityColumns",
                "changeDataFeed",
                "appendOnly",
                source=_NATIVE,
            ),
        ),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=(
            (
                "Column mapping must be by id, and a column cannot be BYTE or SHORT. The protocol "
                "must not list features that the RFC does not name."
            ),
            _REJECTED,
        ),
        sources=(
            _NATIVE,
            "github.com/delta-io/delta/issues/7373",
            "github.com/delta-io/delta/pull/7374",
        ),
    ),
    Feature(
        name="timestampNanos",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RFC,
        summary="Allows timestamp columns with nanoseconds, with and without a time zone.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.TIMESTAMP_NANOS),
        triggers=(
            feature_property_trigger(
                "timestampNanos", note="delta-rs adds it through add_feature."
            ),
        ),
        switch_off="drop the nanosecond timestamp columns",
        requires=requires_supported(
            "timestampNtz", source="protocol_rfcs/nanosecond-timestamps.md"
        ),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=(
            (
                "delta-rs can write it before any release of Delta Spark supports it, and then "
                "cannot open the table again unless timestampNtz is also listed."
            ),
            _REJECTED,
        ),
        sources=("protocol_rfcs/nanosecond-timestamps.md",),
    ),
)
