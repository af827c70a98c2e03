"""Writer-only features about commits and checkpoints (OSS Delta 4.4.0)."""

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
    PropertyPrefix,
    Trace,
)
from deltaproto.protocol.records.common import (
    COMPATIBILITY_PAGE,
    DROP_PAGE,
    dependent_refusal,
    requires_supported,
)

_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="inCommitTimestamp",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Stores the time of each commit in the commit, so copying a log preserves it.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyIs("delta.enableInCommitTimestamps"),
        triggers=(EnablementTrigger("delta.enableInCommitTimestamps=true", by="property"),),
        switch_off="delta.enableInCommitTimestamps=false",
        traces=(Trace.COMMIT_TIMESTAMP,),
        since=FirstVersions(delta_spark="3.3.0", databricks=None),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks=None,
            commits=(1, 2),
            preparation=("UNSET TBLPROPERTIES",),
            refusals=(
                dependent_refusal(
                    "catalogManaged", "coordinatedCommits-preview", "adaptiveMetadata-preview"
                ),
            ),
            note="The preparing commit is named UNSET TBLPROPERTIES, but sets "
            "delta.enableInCommitTimestamps=false and removes two properties.",
        ),
        notes=(
            "Delta 3.2 wrote it as inCommitTimestamp-preview, which later releases do not support.",
        ),
        sources=(
            "PROTOCOL.md#in-commit-timestamps",
            "PreDowngradeTableFeatureCommand.scala InCommitTimestampsPreDowngradeCommand",
        ),
    ),
    Feature(
        name="checkpointProtection",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.STABLE,
        summary="Keeps the checkpoints that let old clients skip the history of a dropped feature.",
        min_reader=1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        triggers=(
            EnablementTrigger(
                "ALTER TABLE … DROP FEATURE, without TRUNCATE HISTORY",
                by="command",
                note="Added by the drop of a feature whose history needs protection.",
            ),
        ),
        since=FirstVersions(
            delta_spark="3.3.0",
            databricks="16.3",
            databricks_note="Called protected checkpoints there; all runtimes are documented to "
            "read and write tables that list it.",
        ),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks="16.3",
            commits=(2, 3),
            preparation=("Empty Commit", "UNSET TBLPROPERTIES"),
            needs_truncate=True,
            refusals=(
                DropRefusal(
                    when="DROP FEATURE is run without TRUNCATE HISTORY",
                    error="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_"
                    "TRUNCATION",
                    remedy="Use DROP FEATURE checkpointProtection TRUNCATE HISTORY.",
                ),
                DropRefusal(
                    when="commits older than the protected version are less than 24 hours old",
                    error="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
                    remedy="Wait until 24 hours after the last drop and run it again; each "
                    "attempt before that adds one Empty Commit.",
                ),
            ),
            note="The Empty Commit is omitted if the history is already truncated. The 24 "
            "hours are delta.dropFeatureTruncateHistory.retentionDuration.",
        ),
        notes=(
            (
                "It keeps a table at writer version 7; removing it deletes the history before the "
                "protected version."
            ),
            (
                "delta.requireCheckpointProtectionBeforeVersion stores that version and must not "
                "be set by users."
            ),
            "Delta 3.3 has the code, with fast drop disabled by default.",
        ),
        sources=(
            "protocol_rfcs/checkpoint-protection.md",
            "TableFeature.scala CheckpointProtectionTableFeature",
            "docs.delta.io/delta-drop-feature",
            DROP_PAGE,
            COMPATIBILITY_PAGE,
        ),
    ),
    Feature(
        name="coordinatedCommits-preview",
        kind=FeatureKind.WRITER,
        status=FeatureStatus.PREVIEW,
        summary="Lets a commit coordinator outside the file system decide on each commit.",
        min_reader=1,
        min_writer=7,
        enablement=PropertyPrefix(_COORDINATOR),
        triggers=(EnablementTrigger(f"{_COORDINATOR}=<name>", by="property"),),
        requires=requires_supported(
            "inCommitTimestamp",
            "vacuumProtocolCheck",
            source="TableFeature.scala CoordinatedCommitsTableFeature.requiredFeatures",
        ),
        since=FirstVersions(delta_spark="3.3.0", databricks=None),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks=None,
            commits=(1, 2),
            preparation=("UNSET TBLPROPERTIES",),
            note="The drop also publishes commits that only the coordinator has.",
        ),
        notes=(
            (
                "inCommitTimestamp and vacuumProtocolCheck stay in the protocol after the drop, "
                "and vacuumProtocolCheck keeps reader version 3."
            ),
            "Users cannot unset the property; DROP FEATURE does.",
            "catalogManaged replaced it.",
        ),
        sources=(
            "TableFeature.scala CoordinatedCommitsTableFeature",
            "PreDowngradeTableFeatureCommand.scala CoordinatedCommitsPreDowngradeCommand",
            "protocol_rfcs/rejected/managed-commits.md",
        ),
    ),
)
