"""Which metadata and protocol changes Delta Spark 4.x lets concurrent writers survive.

Sources: Delta Spark's `ConflictChecker.attemptToResolveMetadataConflicts` with its allow-list, and
`checkProtocolCompatibility`; measured with delta-spark 4.4.0, schema changes only read. With
`spark.databricks.delta.featureEnablement.conflictResolution.enabled` off, of these changes
only enabling row tracking is survived (`checkNoMetadataUpdates`).
"""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A change that concurrent writers survive, and what it looks like."""

    what: str
    statement: str


SURVIVED_METADATA: tuple[Change, ...] = (
    Change("enabling deletion vectors", "'delta.enableDeletionVectors' = 'true'"),
    Change("enabling row tracking", "'delta.enableRowTracking' = 'true'"),
    Change("column mapping from none to name", "'delta.columnMapping.mode' = 'name'"),
    Change("choosing v2 checkpoints", "'delta.checkpointPolicy' = 'v2'"),
    Change("enabling in-commit timestamps", "'delta.enableInCommitTimestamps' = 'true'"),
)
SURVIVED_PROTOCOL: tuple[Change, ...] = (
    Change("adding a feature", "'delta.feature.NAME' = 'supported'"),
    Change("raising the versions", "'delta.minWriterVersion' = '3'"),
    Change("the first CLUSTER BY", "ALTER TABLE … CLUSTER BY (…)"),
)
ABORTING_METADATA: tuple[str, ...] = (
    "setting any other property, a custom one or the isolation level too",
    "UNSET of any property",
    "disabling a feature",
    "a schema change or a new constraint",
)
ABORTING_PROTOCOL: tuple[str, ...] = ("any DROP FEATURE",)


def survived(*changes: tuple[Change, ...]) -> str:
    """The changes as a phrase."""
    return ", ".join(change.what for group in changes for change in group)
