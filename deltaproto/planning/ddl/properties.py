"""Names of table properties as people write them.

Source: Delta Spark 4.4's `DeltaConfigs`, which knows its own in any case, and refuses others that
begin with `delta.`; Spark's reserved properties.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.outcome import Refusal

_KNOWN = """
minReaderVersion minWriterVersion ignoreProtocolDefaults logRetentionDuration
sampleRetentionDuration checkpointRetentionDuration checkpointInterval
redirectReaderWriter-preview redirectWriterOnly-preview autoOptimize.autoCompact
enableExpiredLogCleanup enableFullRetentionRollback dropFeatureTruncateHistory.retentionDuration
deletedFileRetentionDuration randomizeFilePrefixes randomPrefixLength appendOnly
enableDeletionVectors parquet.format.version enableVariantShredding autoOptimize
dataSkippingNumIndexedCols dataSkippingStatsColumns dataSkippingStringPrefixLength
checkpoint.writeStatsAsJson checkpoint.writeStatsAsStruct enableChangeDataCapture
enableChangeDataFeed columnMapping.mode columnMapping.maxColumnId
setTransactionRetentionDuration isolationLevel checkpointPolicy enableRowTracking
rowTrackingSuspended universalFormat.enabledFormats
universalFormat.iceberg.atomicConversion.supported castIcebergTimeType
ignoreIcebergBucketPartition autoOptimize.optimizeWrite enableTypeWidening
coordinatedCommits.commitCoordinator-preview coordinatedCommits.commitCoordinatorConf-preview
coordinatedCommits.tableConf-preview enableInCommitTimestamps inCommitTimestampEnablementVersion
inCommitTimestampEnablementTimestamp requireCheckpointProtectionBeforeVersion
enableMaterializePartitionColumnsFeature writePartitionColumnsToParquet enableIcebergCompatV1
enableIcebergCompatV2 enableIcebergCompatV3 rowTracking.materializedRowIdColumnName
rowTracking.materializedRowCommitVersionColumnName
"""
_CANONICAL = {f"delta.{key}".lower(): f"delta.{key}" for key in _KNOWN.split()}
_PREFIXES = ("delta.feature.", "delta.constraints.", "delta.universalformat.config.")
_RESERVED = ("location", "provider", "owner", "external")


def canonical(key: str) -> str:
    """The name that Delta stores for a property."""
    return _CANONICAL.get(key.lower(), key)


def unsettable(keys: Iterable[str]) -> Refusal | None:
    """The refusal of properties that cannot be set at all."""
    for key in keys:
        lower = key.lower()
        if lower in _RESERVED:
            return Refusal(
                "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
                f"{key} is a reserved property",
                "leave it out",
            )
        unknown = lower.startswith("delta.") and lower not in _CANONICAL
        if unknown and not lower.startswith(_PREFIXES):
            return Refusal(
                "DELTA_UNKNOWN_CONFIGURATION",
                f"Delta knows no property {key}",
                "look for a slip of the pen, or begin its name otherwise",
            )
    return None
