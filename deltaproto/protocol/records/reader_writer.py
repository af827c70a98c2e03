"""Reader-writer features of the table itself: files, checkpoints, commits (OSS Delta 4.4.0)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    Drop,
    DropRefusal,
    Feature,
    FeatureKind,
    FeatureStatus,
    PropertyIs,
    Since,
    Trace,
    Trigger,
)
from deltaproto.protocol.records.common import (
    DROP_LEGACY_PAGE,
    DROP_PAGE,
    NEVER,
    VALID_NAMES,
    by_hand,
    enabled,
    needed_by,
    not_enabled,
    supported,
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
        triggers=(Trigger("delta.enableDeletionVectors=true", by="property"),),
        switch_off="delta.enableDeletionVectors=false",
        traces=(Trace.DELETION_VECTORS,),
        since=Since(delta_spark="2.3.0", databricks="12.2 LTS"),
        drop=Drop(
            delta_spark="4.0.0",
            databricks="14.1",
            commits=(5, 7),
            preparation=("UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones"),
            rewrites="affected",
            protects_history=True,
            refusals=(needed_by("adaptiveMetadata-preview"),),
            note="UNSET only when deletion vectors are writable or present, REORG only when a "
            "data file carries one, the tombstone commit always. Above 10,000 tombstones that "
            "commit is not retried after a conflict. On Databricks 14.1 is the preview that "
            "needs TRUNCATE HISTORY; the current behaviour is documented from 16.3.",
        ),
        notes=(
            (
                "Switching it off stops new deletion vectors; existing ones stay until REORG … "
                "APPLY (PURGE) or DROP FEATURE rewrites their files."
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
        triggers=(Trigger("delta.checkpointPolicy=v2", by="property"),),
        switch_off="delta.checkpointPolicy=classic",
        traces=(Trace.V2_CHECKPOINT,),
        since=Since(
            delta_spark="3.0.0",
            databricks="13.3 LTS",
            databricks_note="From the platform's page on checkpoint V2; tables with liquid "
            "clustering get it by default from 14.1.",
        ),
        drop=Drop(
            delta_spark="3.1.0",
            databricks="14.1",
            commits=(4, 5),
            preparation=("SET TBLPROPERTIES",),
            protects_history=True,
            note="The preparing commit sets delta.checkpointPolicy=classic and is left out when "
            "nothing uses V2 checkpoints. On Databricks 14.1 is the preview that needs TRUNCATE "
            "HISTORY; the current behaviour is documented from 16.3.",
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
        triggers=(by_hand("vacuumProtocolCheck"),),
        since=Since(delta_spark="3.2.0", databricks=None),
        drop=Drop(
            delta_spark="3.3.0",
            databricks=None,
            commits=(4, 4),
            protects_history=True,
            refusals=(needed_by("catalogManaged", "coordinatedCommits-preview"),),
            note="It leaves no traces, so one DROP FEATURE … TRUNCATE HISTORY removes it at once "
            "and leaves no checkpointProtection, at the price of history older than 24 hours.",
        ),
        notes=(
            "Usually arrives with catalogManaged or coordinatedCommits-preview.",
            (
                "Readers have nothing to do for it, yet the name in readerFeatures shuts out "
                "clients that do not know it."
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
        summary="Hands the deciding of commits over from the file system to the catalog.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            by_hand(
                "catalogManaged",
                note="OSS Delta takes it only from a catalog, and only when the table is "
                "created; Databricks also switches it on for existing Unity Catalog tables "
                "from runtime 18.0.",
            ),
        ),
        requires=(
            *enabled(
                "inCommitTimestamp",
                source="PROTOCOL.md#writer-requirements-for-catalog-managed-tables",
            ),
            *supported("vacuumProtocolCheck", source="TableFeature.scala CatalogOwnedTableFeature"),
        ),
        since=Since(
            delta_spark="4.0.1",
            databricks="16.4",
            databricks_note="To read, write and create; switching it on or off on an existing "
            "table needs 18.0.",
        ),
        drop=Drop(
            delta_spark=None,
            databricks="18.0",
            commits=(0, 0),
            refusals=(
                DropRefusal(
                    when="always, in every OSS release so far",
                    error="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
                    remedy="Drop it where the catalog supports that, or copy the data into a "
                    "new table.",
                ),
            ),
            note="On Databricks an interrupted drop can leave the table locked; the command has "
            "to be run again to the end.",
        ),
        notes=(
            "Delta 4.0.0 wrote it as catalogOwned-preview, which later releases do not know.",
            "Such a table refuses access by path.",
            "The file system may lag behind: the catalog alone knows the newest version.",
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
            Trigger(
                "delta.feature.adaptiveMetadata-preview=supported",
                by="feature-property",
                existing_tables=False,
                note="Only when the table is created, and only as a catalog-managed table.",
            ),
        ),
        requires=(
            *supported("catalogManaged", source=f"{_ADAPTIVE}.requiredFeatures"),
            *enabled("rowTracking", source=_ADAPTIVE_SWITCHES),
            *supported("domainMetadata", source=f"{_ADAPTIVE}.requiredFeatures"),
            *enabled("deletionVectors", "columnMapping", source=_ADAPTIVE_SWITCHES),
            *not_enabled("v2Checkpoint", source="protocol_rfcs/iceberg-v4-metadata.md"),
        ),
        since=Since(delta_spark="4.4.0", databricks=None),
        drop=NEVER,
        notes=(
            "Delta 4.4.0 wants column mapping in id mode; the RFC allows name mode as well.",
            (
                "Known to a session only while "
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
