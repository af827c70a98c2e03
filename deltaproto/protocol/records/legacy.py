"""The seven features that a legacy version number implies (TableFeature.scala, PROTOCOL.md)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    EVERY_RUNTIME,
    DropBehavior,
    DropRefusal,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    PropertyPrefix,
    SchemaHas,
    Trace,
    Trait,
)
from deltaproto.protocol.records.common import (
    COMPATIBILITY_PAGE,
    DROP_LEGACY_PAGE,
    DROP_PAGE,
    NEVER_DROPPED,
    VALID_NAMES,
    dependent_refusal,
)

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="appendOnly",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Blocks updates and deletes on the table.",
        min_reader=1,
        min_writer=2,
        enablement=PropertyIs("delta.appendOnly"),
        triggers=(EnablementTrigger("delta.appendOnly=true", by="property"),),
        switch_off="delta.appendOnly=false",
        since=FirstVersions(
            delta_spark="0.1.0",
            databricks=EVERY_RUNTIME,
            databricks_note="Part of what Databricks calls basic functionality; not listed in "
            "its table of minimum runtimes.",
        ),
        drop=NEVER_DROPPED,
        notes=("A named table feature since Delta 2.3.0; before, implied by writer version 2.",),
        sources=(
            "PROTOCOL.md#append-only-tables",
            VALID_NAMES,
            "TableFeature.scala AppendOnlyTableFeature",
        ),
    ),
    Feature(
        name="invariants",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Makes writers enforce NOT NULL columns and column invariants.",
        min_reader=1,
        min_writer=2,
        enablement=SchemaHas(Trait.NON_NULLABLE),
        triggers=(
            EnablementTrigger(
                "column NOT NULL",
                by="schema",
                existing_tables=False,
                note="Delta Spark accepts NOT NULL only when it creates or replaces the table; "
                "on an existing column it can only be removed. Databricks also sets it there.",
            ),
        ),
        switch_off="ALTER TABLE … ALTER COLUMN … DROP NOT NULL, for each such column",
        since=FirstVersions(
            delta_spark="0.1.0",
            databricks=EVERY_RUNTIME,
            databricks_note="Part of what Databricks calls basic functionality; not listed in "
            "its table of minimum runtimes.",
        ),
        drop=NEVER_DROPPED,
        notes=(
            "A named table feature since Delta 2.3.0; before, implied by writer version 2.",
            (
                "Delta counts every non-nullable column as an invariant, including inside "
                "structs, but not inside arrays and maps."
            ),
        ),
        sources=(
            "PROTOCOL.md#column-invariants",
            "Invariants.scala getFromSchema",
            "docs.delta.io/delta-constraints",
        ),
    ),
    Feature(
        name="checkConstraints",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Makes writers reject rows that violate a CHECK constraint of the table.",
        min_reader=1,
        min_writer=3,
        enablement=PropertyPrefix("delta.constraints.", any_case=True),
        triggers=(EnablementTrigger("ALTER TABLE … ADD CONSTRAINT … CHECK (…)", by="command"),),
        switch_off="ALTER TABLE … DROP CONSTRAINT, for each constraint",
        since=FirstVersions(delta_spark="0.8.0", databricks=EVERY_RUNTIME),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks="14.3 LTS",
            refusals=(
                DropRefusal(
                    when="the table has a CHECK constraint",
                    error="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
                    remedy="Drop every CHECK constraint, then drop the feature.",
                ),
            ),
            note="On Databricks, 14.3 LTS is the preview that requires TRUNCATE HISTORY; the "
            "current behavior is documented from 16.3.",
        ),
        notes=(
            "Adding a constraint reads the whole table: all existing rows must satisfy it.",
            (
                "Dropping it from writer version 4 or higher leaves a gap in the legacy set, so "
                "the table moves to writer version 7."
            ),
        ),
        sources=(
            "PROTOCOL.md#check-constraints",
            "PreDowngradeTableFeatureCommand.scala CheckConstraintsPreDowngradeTableFeatureCommand",
            DROP_PAGE,
            DROP_LEGACY_PAGE,
        ),
    ),
    Feature(
        name="changeDataFeed",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Records row-level changes so that readers can query what changed per version.",
        min_reader=1,
        min_writer=4,
        enablement=PropertyIs(
            "delta.enableChangeDataFeed", older=("delta.enableChangeDataCapture",)
        ),
        triggers=(EnablementTrigger("delta.enableChangeDataFeed=true", by="property"),),
        switch_off="delta.enableChangeDataFeed=false",
        traces=(Trace.CHANGE_FILES,),
        since=FirstVersions(delta_spark="2.0.0", databricks=EVERY_RUNTIME),
        drop=NEVER_DROPPED,
        notes=(
            "Delta also accepts the older key delta.enableChangeDataCapture.",
            (
                "Disabling it stops new change files; recorded changes stay "
                "readable until VACUUM removes them."
            ),
        ),
        sources=("PROTOCOL.md#add-cdc-file", "DeltaConfig.scala CHANGE_DATA_FEED"),
    ),
    Feature(
        name="generatedColumns",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets a column be computed from other columns on every write.",
        min_reader=1,
        min_writer=4,
        enablement=SchemaHas(Trait.GENERATED),
        triggers=(EnablementTrigger("column GENERATED ALWAYS AS (expression)", by="schema"),),
        switch_off="drop the generated columns",
        since=FirstVersions(delta_spark="1.0.0", databricks=EVERY_RUNTIME),
        drop=NEVER_DROPPED,
        notes=("Dropping a column requires column mapping, which is a separate feature.",),
        sources=(
            "PROTOCOL.md#generated-columns",
            "TableFeature.scala GeneratedColumnsTableFeature",
        ),
    ),
    Feature(
        name="columnMapping",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets columns be renamed and dropped without rewriting data files.",
        min_reader=2,
        min_writer=5,
        enablement=PropertyIs("delta.columnMapping.mode", values=("name", "id")),
        triggers=(
            EnablementTrigger("delta.columnMapping.mode=name", by="property"),
            EnablementTrigger(
                "delta.columnMapping.mode=id",
                by="property",
                existing_tables=False,
                note="id mode can only be chosen at table creation.",
            ),
        ),
        switch_off="delta.columnMapping.mode=none (rewrites every data file)",
        since=FirstVersions(delta_spark="1.2.0", databricks=EVERY_RUNTIME),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks="15.3",
            commits=(4, 5),
            preparation=("REMOVE COLUMN MAPPING",),
            rewrites="all",
            protects_history=True,
            refusals=(
                DropRefusal(
                    when="a column name contains a space or one of ,;{}()=, a tab or a newline",
                    error="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
                    remedy="Rename those columns first.",
                ),
                dependent_refusal(
                    "icebergCompatV1",
                    "icebergCompatV2",
                    "icebergCompatV3",
                    "adaptiveMetadata-preview",
                ),
            ),
            note="Without mapping mode and mapping ids no file is rewritten. Streaming readers of "
            "the table fail permanently and need a new checkpoint or a schema tracking location. "
            "On a clustered table, run CLUSTER BY NONE first: Delta Spark 4.4 keeps the physical "
            "names as clustering columns, and OPTIMIZE, DESCRIBE DETAIL and CLUSTER BY then fail.",
        ),
        notes=(
            (
                "Setting the mode to none already rewrites the files but leaves the feature in the "
                "protocol; DROP FEATURE does both."
            ),
            (
                "A table with this as its only reader-writer feature has reader version 2 and no "
                "readerFeatures, even at writer version 7."
            ),
        ),
        sources=(
            "PROTOCOL.md#column-mapping",
            "PreDowngradeTableFeatureCommand.scala ColumnMappingPreDowngradeCommand",
            "learn.microsoft.com/azure/databricks/delta/column-mapping",
        ),
    ),
    Feature(
        name="identityColumns",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Fills a column with unique, increasing numbers.",
        min_reader=1,
        min_writer=6,
        enablement=SchemaHas(Trait.IDENTITY),
        triggers=(
            EnablementTrigger(
                "column GENERATED … AS IDENTITY",
                by="schema",
                existing_tables=False,
                note="Only at table creation; an identity column cannot be added or changed later.",
            ),
        ),
        switch_off="drop the identity columns",
        since=FirstVersions(
            delta_spark="3.3.0",
            databricks=EVERY_RUNTIME,
            databricks_note="The Databricks page names 10.4 LTS as the first runtime with "
            "identity columns.",
        ),
        drop=NEVER_DROPPED,
        notes=(
            "Concurrent transactions are not supported on a table with an identity column.",
            "Delta 2.3.0 supported the name; 2.4 to 3.2 did not accept it in production.",
        ),
        sources=(
            "PROTOCOL.md#identity-columns",
            "docs.delta.io/delta-batch (identity column limitations)",
            COMPATIBILITY_PAGE,
        ),
    ),
)
