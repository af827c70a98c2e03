"""Writer-only features about rows, columns and layout (OSS Delta 4.4.0)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    CLUSTERING_DOMAIN,
    AlwaysWhenSupported,
    AuthorityDispute,
    DomainHas,
    DropBehavior,
    DropRefusal,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    SchemaHas,
    Trace,
    Trait,
)
from deltaproto.protocol.records.common import (
    COMPATIBILITY_PAGE,
    DROP_PAGE,
    NEVER_DROPPED,
    VALID_NAMES,
    dependent_refusal,
    feature_property_trigger,
    requires_supported,
)

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="rowTracking",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Gives every row a stable id and the version of its last change.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableRowTracking"),
        triggers=(
            EnablementTrigger(
                "delta.enableRowTracking=true",
                by="property",
                note="On an existing table, backfill commits first assign ids to all files.",
            ),
        ),
        switch_off="delta.enableRowTracking=false",
        requires=requires_supported("domainMetadata", source="PROTOCOL.md#row-tracking"),
        traces=(Trace.ROW_IDS,),
        since=FirstVersions(
            delta_spark="3.2.0",
            databricks="14.3 LTS",
            databricks_note="The row tracking page says 14.1; the table of minimum runtimes for "
            "full support says 14.3 LTS.",
        ),
        drop=DropBehavior(
            delta_spark="4.1.0",
            databricks="16.3",
            commits=(1, 3),
            preparation=("SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL"),
            refusals=(
                dependent_refusal("icebergCompatV3", "adaptiveMetadata-preview"),
                DropRefusal(
                    when="a backfill of row ids runs concurrently",
                    error="DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL",
                    remedy="Wait for the backfill to finish and run the drop again.",
                ),
            ),
            note="Unbackfill re-commits file entries without row ids, in several commits for a "
            "large table; no data file is rewritten. On Databricks the row tracking page points "
            "to DROP FEATURE, whose page requires 16.3, but does not list the feature.",
            databricks_doubt="its page on row tracking points to DROP FEATURE, whose page does not "
            "list it",
        ),
        notes=(
            "domainMetadata stays in the protocol after rowTracking is dropped; drop it next.",
            (
                "delta.rowTrackingSuspended=true stops new ids and must not be combined with "
                "delta.enableRowTracking=true."
            ),
            "While it is supported but not enabled, writers still assign unreliable ids.",
        ),
        sources=(
            "PROTOCOL.md#row-tracking",
            "PreDowngradeTableFeatureCommand.scala RowTrackingPreDowngradeCommand",
            "learn.microsoft.com/azure/databricks/tables/features/row-tracking",
            DROP_PAGE,
        ),
    ),
    Feature(
        name="domainMetadata",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets other features store their settings in the Delta log.",
        min_reader=1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            feature_property_trigger(
                "domainMetadata", note="It is usually added by another feature."
            ),
        ),
        traces=(Trace.DOMAINS,),
        since=FirstVersions(delta_spark="3.0.0", databricks=None),
        drop=DropBehavior(
            delta_spark="4.1.0",
            databricks=None,
            commits=(1, 2),
            preparation=("DOMAIN METADATA CLEANUP",),
            refusals=(
                dependent_refusal(
                    "rowTracking", "clustering", "collations", "adaptiveMetadata-preview"
                ),
            ),
            note="The clean-up commit is omitted if the table has no domain.",
        ),
        notes=(
            "Dropping it removes all remaining domains, even those of unknown owners.",
            "clustering cannot be dropped by OSS Delta, so it keeps domainMetadata permanently.",
        ),
        sources=(
            "PROTOCOL.md#domain-metadata",
            "PreDowngradeTableFeatureCommand.scala DomainMetadataPreDowngradeCommand",
        ),
    ),
    Feature(
        name="clustering",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Lays data out by chosen columns that can be changed later (liquid clustering).",
        min_reader=1,
        min_writer=7,
        enablement=DomainHas(CLUSTERING_DOMAIN, "clusteringColumns"),
        triggers=(
            EnablementTrigger(
                "CLUSTER BY (columns)",
                by="command",
                note="delta.feature.clustering is rejected, and so is a partitioned table.",
            ),
        ),
        switch_off="ALTER TABLE … CLUSTER BY NONE",
        requires=requires_supported("domainMetadata", source="PROTOCOL.md#clustered-table"),
        aliases=("ClusteredTable",),
        since=FirstVersions(delta_spark="3.1.0", databricks="13.3 LTS"),
        drop=NEVER_DROPPED,
        disputes=(
            AuthorityDispute(
                about="whether readers must support the feature",
                oss="writer-only: PROTOCOL.md and Delta Spark put it only in writerFeatures, so "
                "a clustered table can stay at reader version 1",
                databricks="listed as reader and writer, reader version 3 and writer version 7",
                applies="OSS describes the feature itself. Databricks describes a table that it "
                "has clustered: there deletionVectors and v2Checkpoint are enabled by default, and "
                "those two need reader version 3.",
            ),
        ),
        notes=(
            "Clustering columns are stored in the domain delta.clustering, by physical name.",
            "CLUSTER BY NONE empties the list of columns but leaves the feature.",
        ),
        sources=(
            "PROTOCOL.md#clustered-table",
            "TableFeature.scala ClusteringTableFeature",
            "learn.microsoft.com/azure/databricks/delta/clustering",
            COMPATIBILITY_PAGE,
        ),
    ),
    Feature(
        name="allowColumnDefaults",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets columns have default values that writers fill in.",
        min_reader=1,
        min_writer=7,
        enablement=SchemaHas(Trait.DEFAULT),
        triggers=(
            feature_property_trigger("allowColumnDefaults"),
            EnablementTrigger(
                "column DEFAULT value",
                by="schema",
                new_tables=False,
                existing_tables=False,
                note="Fails with WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED until the "
                "feature is added manually.",
            ),
        ),
        switch_off="ALTER TABLE … ALTER COLUMN … DROP DEFAULT, for each such column",
        since=FirstVersions(delta_spark="3.1.0", databricks=None),
        drop=NEVER_DROPPED,
        notes=(
            "A new column cannot get its default in the statement that adds it.",
            "delta-kernel-rs treats it as enabled whenever it is supported.",
        ),
        sources=(
            "PROTOCOL.md#default-columns",
            "TableFeature.scala AllowColumnDefaultsTableFeature",
            "docs.delta.io/delta-default-columns",
        ),
    ),
    Feature(
        name="materializePartitionColumns",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Makes writers store partition columns in the data files, too.",
        min_reader=1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            EnablementTrigger("delta.enableMaterializePartitionColumnsFeature=true", by="property"),
            feature_property_trigger("materializePartitionColumns"),
        ),
        since=FirstVersions(delta_spark="4.1.0", databricks=None),
        drop=DropBehavior(
            delta_spark="4.1.0",
            databricks=None,
            commits=(1, 1),
            note="The final commit also removes the property.",
        ),
        notes=(
            "The property only adds the feature: once listed, it applies to every writer.",
            "Files written before it was added are not changed.",
        ),
        sources=(
            "protocol_rfcs/materialize-partition-columns.md",
            "TableFeature.scala MaterializePartitionColumnsTableFeature",
            VALID_NAMES + " (not listed yet)",
        ),
    ),
)
