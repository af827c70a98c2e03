"""Reader-writer features of the table itself: files, checkpoints, commits (OSS Delta 4.4.0)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    DropBehavior,
    DropRefusal,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    Trace,
)
from deltaproto.protocol.records.common import (
    DROP_LEGACY_PAGE,
    DROP_PAGE,
    NEVER_DROPPED,
    VALID_NAMES,
    dependent_refusal,
    feature_property_trigger,
    requires_enabled,
    requires_not_enabled,
    requires_supported,
)

_ADAPTIVE = "TableFeature.scala AdaptiveMetadataTableFeature"
_ADAPTIVE_SWITCHES = "OptimisticTransaction.scala enableAdaptiveMetadataDependentFeatures"

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="deletionVectors",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Marks deleted rows in a side file instead of rewriting whole data files.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.enableDeletionVectors"),
        triggers=(EnablementTrigger("delta.enableDeletionVectors=true", by="property"),),
        switch_off="delta.enableDeletionVectors=false",
        traces=(Trace.DELETION_VECTORS,),
        since=FirstVersions(delta_spark="2.3.0", databricks="12.2 LTS"),
        drop=DropBehavior(
            delta_spark="4.0.0",
            databricks="14.1",
            commits=(5, 7),
            preparation=("UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones"),
            rewrites="affected",
            protects_history=True,
            refusals=(dependent_refusal("adaptiveMetadata-preview"),),
            note="UNSET only if deletion vectors are writable or present, REORG only if a data "
            "file has one, the tombstone commit always. Above 10,000 tombstones that commit is not "
            "retried after a conflict. On Databricks, 14.1 is the preview that requires TRUNCATE "
            "HISTORY; the current behavior is documented from 16.3.",
        ),
        notes=(
            (
                "Disabling it stops new deletion vectors; existing ones stay until REORG … "
                "APPLY (PURGE) or DROP FEATURE rewrites their files."
            ),
            (
                "While a table is clustered, neither rewrites files that OPTIMIZE has clustered "
                "(Delta Spark 4.4): remove clustering first, or a drop brings deleted rows back."
            ),
            "The side files themselves stay until VACUUM.",
        ),
        sources=(
            "PROTOCOL.md#deletion-vectors",
            "PreDowngradeTableFeatureCommand.scala DeletionVectorsPreDowngradeCommand",
            "learn.microsoft.com/azure/databricks/delta/drop-feature",
            DROP_PAGE,
        ),
    ),
    Feature(
        name="v2Checkpoint",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets checkpoints be split into side files, which suits very large tables.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.checkpointPolicy", values=("v2",)),
        triggers=(EnablementTrigger("delta.checkpointPolicy=v2", by="property"),),
        switch_off="delta.checkpointPolicy=classic",
        traces=(Trace.V2_CHECKPOINT,),
        since=FirstVersions(
            delta_spark="3.0.0",
            databricks="13.3 LTS",
            databricks_note="From the Databricks page on checkpoint V2; tables with liquid "
            "clustering get it by default from 14.1.",
        ),
        drop=DropBehavior(
            delta_spark="3.1.0",
            databricks="14.1",
            commits=(4, 5),
            preparation=("SET TBLPROPERTIES",),
            protects_history=True,
            note="The preparing commit sets delta.checkpointPolicy=classic; it is omitted if "
            "nothing uses V2 checkpoints. On Databricks, 14.1 is the preview that requires "
            "TRUNCATE HISTORY; the current behavior is documented from 16.3.",
        ),
        notes=(
            (
                "Spark enables it through the property; delta-kernel-rs treats it as enabled "
                "whenever it is supported."
            ),
        ),
        sources=(
            "PROTOCOL.md#v2-checkpoint-table-feature",
            "PreDowngradeTableFeatureCommand.scala V2CheckpointPreDowngradeCommand",
            "learn.microsoft.com/azure/databricks/tables/features/checkpoint-v2",
            "learn.microsoft.com/azure/databricks/delta/drop-feature",
            DROP_LEGACY_PAGE,
        ),
    ),
    Feature(
        name="vacuumProtocolCheck",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Makes VACUUM check that it may write the table before it deletes files.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(feature_property_trigger("vacuumProtocolCheck"),),
        since=FirstVersions(delta_spark="3.2.0", databricks=None),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks=None,
            commits=(4, 4),
            protects_history=True,
            refusals=(dependent_refusal("catalogManaged", "coordinatedCommits-preview"),),
            note="It leaves no traces, so one DROP FEATURE … TRUNCATE HISTORY removes it "
            "immediately without checkpointProtection, but deletes history older than 24 hours.",
        ),
        notes=(
            "Usually added together with catalogManaged or coordinatedCommits-preview.",
            (
                "Readers need to do nothing for it, but its name in readerFeatures blocks "
                "clients that do not support it."
            ),
        ),
        sources=(
            "PROTOCOL.md#vacuum-protocol-check",
            "TableFeature.scala VacuumProtocolCheckTableFeature",
        ),
    ),
    Feature(
        name="catalogManaged",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets a catalog decide on commits instead of the file system.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            feature_property_trigger(
                "catalogManaged",
                note="OSS Delta accepts it only from a catalog, and only at table creation; "
                "Databricks can also enable it for existing Unity Catalog tables from runtime "
                "18.0.",
            ),
        ),
        requires=(
            *requires_enabled(
                "inCommitTimestamp",
                source="PROTOCOL.md#writer-requirements-for-catalog-managed-tables",
            ),
            *requires_supported(
                "vacuumProtocolCheck", source="TableFeature.scala CatalogOwnedTableFeature"
            ),
        ),
        since=FirstVersions(
            delta_spark="4.0.1",
            databricks="16.4",
            databricks_note="For reading, writing and creating; enabling or disabling it on an "
            "existing table requires 18.0.",
        ),
        drop=DropBehavior(
            delta_spark=None,
            databricks="18.0",
            commits=(0, 0),
            refusals=(
                DropRefusal(
                    when="always, in every OSS release so far",
                    error="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
                    remedy="Drop it if the catalog supports that, or copy the data into a "
                    "new table.",
                ),
            ),
            note="On Databricks, an interrupted drop can leave the table locked; run the command "
            "again until it completes.",
        ),
        notes=(
            "Delta 4.0.0 wrote it as catalogOwned-preview, which later releases do not support.",
            "Such tables refuse access by path.",
            "The file system may lag behind: only the catalog knows the newest version.",
        ),
        sources=(
            "PROTOCOL.md#catalog-managed-tables",
            "TableFeature.scala CatalogOwnedTableFeature",
            "learn.microsoft.com/azure/databricks/delta/catalog-managed-commits",
            DROP_PAGE,
        ),
    ),
    Feature(
        name="adaptiveMetadata-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.PREVIEW,
        summary="Keeps the list of files in an Iceberg v4 style metadata tree.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            EnablementTrigger(
                "delta.feature.adaptiveMetadata-preview=supported",
                by="feature-property",
                existing_tables=False,
                note="Only at table creation, and only as a catalog-managed table.",
            ),
        ),
        requires=(
            *requires_supported("catalogManaged", source=f"{_ADAPTIVE}.requiredFeatures"),
            *requires_enabled("rowTracking", source=_ADAPTIVE_SWITCHES),
            *requires_supported("domainMetadata", source=f"{_ADAPTIVE}.requiredFeatures"),
            *requires_enabled("deletionVectors", "columnMapping", source=_ADAPTIVE_SWITCHES),
            *requires_not_enabled("v2Checkpoint", source="protocol_rfcs/iceberg-v4-metadata.md"),
        ),
        since=FirstVersions(delta_spark="4.4.0", databricks=None),
        drop=NEVER_DROPPED,
        notes=(
            "Delta 4.4.0 requires column mapping in id mode; the RFC also allows name mode.",
            (
                "Available in a session only while "
                "spark.databricks.delta.adaptiveMetadataTree.preview.enabled is true, the default."
            ),
        ),
        sources=(
            "protocol_rfcs/iceberg-v4-metadata.md",
            _ADAPTIVE,
            _ADAPTIVE_SWITCHES,
            VALID_NAMES + " (not listed yet)",
        ),
    ),
)
