"""Which metadata and protocol changes Delta Spark 4.x lets concurrent writers survive.

Sources: Delta Spark's `ConflictChecker.attemptToResolveMetadataConflicts` with its allow-list, and
`checkProtocolCompatibility`; measured with delta-spark 4.4.0, schema changes only read. With
`spark.databricks.delta.featureEnablement.conflictResolution.enabled` off, of these changes
only enabling row tracking is survived (`checkNoMetadataUpdates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Change(NamedTuple):
    """A change that concurrent writers survive, and what it looks like."""

    what: str
    statement: str


SURVIVED_PROPERTIES: Mapping[str, tuple[str, str]] = {
    "delta.enableDeletionVectors": ("true", "enabling deletion vectors"),
    "delta.enableRowTracking": ("true", "enabling row tracking"),
    "delta.columnMapping.mode": ("name", "column mapping from none to name"),
    "delta.checkpointPolicy": ("v2", "choosing v2 checkpoints"),
    "delta.enableInCommitTimestamps": ("true", "enabling in-commit timestamps"),
}
"""the allow-list: each property with the value that it may get"""
SURVIVED_METADATA: tuple[Change, ...] = tuple(
    Change(what, f"'{key}' = '{value}'") for key, (value, what) in SURVIVED_PROPERTIES.items()
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
