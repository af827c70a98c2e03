"""Names that OSS Delta 4.4.0 does not accept: of other products, its tests, and old releases."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    AuthorityDispute,
    DropBehavior,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    PropertyPrefix,
    SchemaHas,
    Trait,
)
from deltaproto.protocol.records.common import (
    COLLATION_PAGE,
    COMPATIBILITY_PAGE,
    DROP_LEGACY_PAGE,
    NEVER_DROPPED,
    requires_enabled,
    requires_supported,
)

_NOWHERE = FirstVersions(delta_spark=None, databricks=None)
_REJECTED = "Delta Spark 4.4.0 rejects the name."
_REDIRECT = "TableFeature.scala (registered only in tests), TableRedirect.scala"
_COLLATED = "protocol_rfcs/collated-string-type.md"
_COLLATION_DISPUTE = AuthorityDispute(
    about="whether readers must support the feature",
    oss="writer-only: the RFC and Delta Kernel (Java) put it in writerFeatures, so a client that "
    "does not support it may read, and compares strings byte by byte",
    databricks="the compatibility page lists collations as reader and writer, reader version 3 "
    "and writer version 7, while the collation page calls it a writer feature",
    applies="Trust the table's own protocol: if readerFeatures lists it, readers need it. "
    "Without a table, use the RFC for OSS clients, the page for Databricks clients.",
)

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="collations",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.DATABRICKS,
        summary="Lets string columns compare and sort by language or without regard to case.",
        min_reader=1,
        min_writer=7,
        enablement=SchemaHas(Trait.COLLATION),
        triggers=(EnablementTrigger("column type STRING COLLATE name", by="schema"),),
        switch_off="ALTER TABLE … ALTER COLUMN … TYPE STRING COLLATE UTF8_BINARY, for each column",
        requires=requires_supported("domainMetadata", source=_COLLATED),
        since=FirstVersions(
            delta_spark=None,
            databricks="16.1",
            databricks_note="From the table of minimum runtimes; the newest collation page says "
            "16.4 LTS.",
        ),
        drop=DropBehavior(
            delta_spark=None,
            databricks="16.4 LTS",
            commits=(0, 0),
            note="Every collated column must be changed back to UTF8_BINARY first.",
        ),
        disputes=(_COLLATION_DISPUTE,),
        notes=(
            _REJECTED,
            "Delta Kernel (Java) supports the name, delta-kernel-rs does not.",
            "Only the RFC requires domainMetadata; Delta Kernel (Java) declares no requirement.",
        ),
        sources=(_COLLATED, "TableFeatures.java Collations", COLLATION_PAGE, COMPATIBILITY_PAGE),
    ),
    Feature(
        name="collations-preview",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.DATABRICKS,
        summary="The name of collated strings from their preview.",
        min_reader=1,
        min_writer=7,
        enablement=SchemaHas(Trait.COLLATION),
        triggers=(
            EnablementTrigger(
                "column type STRING COLLATE name",
                by="schema",
                note="Runtimes of the preview added this name; newer ones add collations.",
            ),
        ),
        switch_off="ALTER TABLE … ALTER COLUMN … TYPE STRING COLLATE UTF8_BINARY, for each column",
        requires=requires_supported("domainMetadata", source=_COLLATED),
        since=FirstVersions(
            delta_spark=None,
            databricks="16.1",
            databricks_note="The page at that time allowed 15.4 to read such tables.",
        ),
        drop=DropBehavior(
            delta_spark=None,
            databricks="16.1",
            commits=(0, 0),
            note="Every collated column must be changed back to UTF8_BINARY first. The runtime is "
            "from two pages: the legacy drop page lists the feature, the collation page of that "
            "time starts at 16.1.",
        ),
        disputes=(_COLLATION_DISPUTE,),
        notes=(_REJECTED,),
        sources=("TableFeatures.java CollationsPreview", COLLATION_PAGE, DROP_LEGACY_PAGE),
    ),
    Feature(
        name="redirectReaderWriter-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.TESTING,
        summary="Redirects readers and writers to another table.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyPrefix("delta.redirectReaderWriter-preview"),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("Delta Spark registers it only in its own tests; a normal session rejects it.",),
        sources=(_REDIRECT,),
    ),
    Feature(
        name="redirectWriterOnly-preview",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.TESTING,
        summary="Redirects writers to another table.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyPrefix("delta.redirectWriterOnly-preview"),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("Delta Spark registers it only in its own tests; a normal session rejects it.",),
        sources=(_REDIRECT,),
    ),
    Feature(
        name="catalogOwned-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RETIRED,
        summary="The name of catalogManaged in Delta 4.0.0.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        requires=(
            *requires_enabled(
                "inCommitTimestamp", source="delta-kernel-rs CATALOG_OWNED_PREVIEW_INFO"
            ),
            *requires_supported("vacuumProtocolCheck", source="TableFeature.scala at tag v4.0.0"),
        ),
        renamed_to="catalogManaged",
        since=FirstVersions(delta_spark="4.0.0", databricks=None),
        drop=NEVER_DROPPED,
        notes=(
            "Only Delta Spark 4.0.0 supports it; 4.0.1 and later reject it, without migration.",
            "delta-kernel-rs still reads and writes it.",
        ),
        sources=("TableFeature.scala at tag v4.0.0", "delta-kernel-rs CatalogOwnedPreview"),
    ),
    Feature(
        name="catalogOwned",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RETIRED,
        summary="A name for catalogManaged that appears in some test tables.",
        min_reader=3,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        renamed_to="catalogManaged",
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("No released client accepts it; it occurs only in test logs of delta-rs.",),
        sources=("delta-rs crates/core/tests/data_err_logs",),
    ),
    Feature(
        name="inCommitTimestamp-preview",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RETIRED,
        summary="The name of inCommitTimestamp in Delta 3.2.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableInCommitTimestamps-preview"),
        triggers=(EnablementTrigger("delta.enableInCommitTimestamps-preview=true", by="property"),),
        switch_off="delta.enableInCommitTimestamps-preview=false",
        renamed_to="inCommitTimestamp",
        since=FirstVersions(delta_spark="3.2.0", databricks=None),
        drop=DropBehavior(
            delta_spark="3.2.0",
            databricks=None,
            commits=(1, 2),
            preparation=("UNSET TBLPROPERTIES",),
            note="Only Delta 3.2 can drop it; 3.3.0 and later do not support the name.",
        ),
        notes=("Its properties also have the suffix -preview.", _REJECTED),
        sources=("TableFeature.scala at tag v3.2.0", "DeltaConfig.scala at tag v3.2.0"),
    ),
    Feature(
        name="managed-commit-dev",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.RETIRED,
        summary="An early form of coordinated commits, from Delta 3.2's tests.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyPrefix("delta.managedCommits.commitOwner-dev"),
        renamed_to="coordinatedCommits-preview",
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("It was reader-writer; coordinatedCommits-preview is writer-only.", _REJECTED),
        sources=("TableFeature.scala at tag v3.2.0", "protocol_rfcs/rejected/managed-commits.md"),
    ),
    Feature(
        name="managedCommit",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RETIRED,
        summary="The name of coordinated commits in an RFC that was rejected in April 2025.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyPrefix("delta.managedCommit.commitOwner"),
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=("No release wrote it; catalogManaged replaced it.", _REJECTED),
        sources=("protocol_rfcs/rejected/managed-commits.md",),
    ),
    Feature(
        name="rowIds",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.RETIRED,
        summary="An early form of row tracking, from Delta 2.4's tests.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableRowIds"),
        renamed_to="rowTracking",
        since=_NOWHERE,
        drop=NEVER_DROPPED,
        notes=(_REJECTED,),
        sources=("TableFeature.scala at tag v2.4.0", "DeltaConfig.scala at tag v2.4.0"),
    ),
)
