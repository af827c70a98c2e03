"""Names that only an open RFC of the Delta protocol defines."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    Feature,
    Kind,
    SchemaHas,
    Since,
    Status,
    Trait,
)
from deltaproto.protocol.records.common import (
    NEVER,
    by_hand,
    enabled,
    not_enabled,
    supported,
)

_NOWHERE = Since(delta_spark=None, databricks=None)
_REJECTED = "Delta Spark 4.4.0 rejects the name."
_ADAPTIVE = "protocol_rfcs/iceberg-v4-metadata.md"

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="adaptiveMetadata",
        kind=Kind.READER_WRITER,
        status=Status.RFC,
        summary="Keeps the list of files in an Iceberg v4 style metadata tree.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=(
            *enabled(
                "columnMapping",
                "rowTracking",
                "deletionVectors",
                "inCommitTimestamp",
                source=_ADAPTIVE,
            ),
            *supported("domainMetadata", source=_ADAPTIVE),
            *not_enabled("v2Checkpoint", source=_ADAPTIVE),
        ),
        since=_NOWHERE,
        drop=NEVER,
        notes=("Delta 4.4.0 and delta-kernel-rs write the name adaptiveMetadata-preview.",),
        sources=(_ADAPTIVE,),
    ),
    Feature(
        name="columnMappingUsageTracking",
        kind=Kind.WRITER,
        status=Status.RFC,
        summary="Notes whether a column was ever renamed or dropped under column mapping.",
        min_reader=1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=supported(
            "columnMapping", source="protocol_rfcs/column-mapping-usage-tracking.md"
        ),
        since=_NOWHERE,
        drop=NEVER,
        notes=("The answer is kept in delta.columnMapping.hasDroppedOrRenamed.", _REJECTED),
        sources=("protocol_rfcs/column-mapping-usage-tracking.md",),
    ),
    Feature(
        name="timestampNanos",
        kind=Kind.READER_WRITER,
        status=Status.RFC,
        summary="Allows timestamp columns with nanoseconds, with and without a time zone.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.TIMESTAMP_NANOS),
        triggers=(by_hand("timestampNanos", note="delta-rs adds it through add_feature."),),
        switch_off="drop the nanosecond timestamp columns",
        requires=supported("timestampNtz", source="protocol_rfcs/nanosecond-timestamps.md"),
        since=_NOWHERE,
        drop=NEVER,
        notes=(
            (
                "delta-rs can write it before any release of Delta Spark knows it, and then cannot "
                "open the table again unless timestampNtz is listed too."
            ),
            _REJECTED,
        ),
        sources=("protocol_rfcs/nanosecond-timestamps.md",),
    ),
)
