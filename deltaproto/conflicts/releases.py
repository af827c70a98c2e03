"""Which metadata and protocol changes Delta Spark's writers in flight survive, by their release.

It is the release of the transaction that commits last that decides, not the one that made the
change. Sources: Delta Spark's `ConflictChecker` at the tags v3.1.0 to v4.4.0
(`checkNoMetadataUpdates` before 4.1, then `attemptToResolveMetadataConflicts` with its allow-list)
and `TableFeature.failConcurrentTransactionsAtUpgrade`; measured with delta-spark 3.2, 3.3, 4.0,
4.1, 4.2, 4.3 and 4.4 (`tests/conflicts/measured_writers.json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Survived(NamedTuple):
    """A property and the value that it may get while others write."""

    value: str
    what: str
    since: str
    """the first release of Delta Spark whose writers survive it"""


class SurvivableChange(NamedTuple):
    """A change that concurrent writers survive, and what it looks like."""

    what: str
    statement: str
    since: str


SURVIVED_PROPERTIES: Mapping[str, Survived] = {
    "delta.enableDeletionVectors": Survived("true", "enabling deletion vectors", "4.1"),
    "delta.enableRowTracking": Survived("true", "enabling row tracking", "3.3"),
    "delta.columnMapping.mode": Survived(
        "name", "column mapping from none to name on tables without structs", "4.1"
    ),
    "delta.checkpointPolicy": Survived("v2", "choosing v2 checkpoints", "4.3"),
    "delta.enableInCommitTimestamps": Survived("true", "enabling in-commit timestamps", "4.3"),
}
"""the allow-list; from 4.4 on also `io.unitycatalog.tableId`, which no statement sets"""
REBASED_SINCE = "4.1"
"""Writers before this release abort at any metaData action but that of row tracking alone, even
when it stores the same metadata again, as adding a feature does."""
SURVIVED_METADATA: tuple[SurvivableChange, ...] = tuple(
    SurvivableChange(each.what, f"'{key}' = '{each.value}'", each.since)
    for key, each in SURVIVED_PROPERTIES.items()
)
SURVIVED_PROTOCOL: tuple[SurvivableChange, ...] = (
    SurvivableChange(
        "adding a feature other than rowTracking",
        "'delta.feature.NAME' = 'supported'",
        REBASED_SINCE,
    ),
    SurvivableChange("raising the versions", "'delta.minWriterVersion' = '3'", REBASED_SINCE),
    SurvivableChange("the first CLUSTER BY", "ALTER TABLE … CLUSTER BY (…)", REBASED_SINCE),
)
ABORTING_METADATA: tuple[str, ...] = (
    "setting any other property, a custom one or the isolation level too",
    "UNSET of any property",
    "disabling a feature",
    "a schema change or a new constraint",
)
ABORTING_PROTOCOL: tuple[str, ...] = ("any DROP FEATURE",)

RESOLVE = "spark.databricks.delta.featureEnablement.conflictResolution.enabled"
"""a setting of the writer's session; false: as releases before `REBASED_SINCE`"""
ENFORCE = "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled"
"""a setting of the writer's session; true: an added feature aborts, unless it is spared"""
ENFORCED_SINCE = "4.2"
SPARED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "appendOnly",
            "changeDataFeed",
            "columnMapping",
            "deletionVectors",
            "domainMetadata",
            "icebergCompatV1",
            "icebergCompatV2",
            "inCommitTimestamp",
            "rowTracking",
            "timestampNtz",
            "typeWidening",
            "typeWidening-preview",
        ),
        "4.2",
    ),
    "icebergCompatV3": "4.3",
    "v2Checkpoint": "4.3",
    "catalogManaged": "4.4",
    "vacuumProtocolCheck": "4.4",
}
"""features whose addition aborts nobody under `ENFORCE`, with the first release that spares them"""


def survived(*changes: tuple[SurvivableChange, ...]) -> str:
    """The changes as a phrase, each with the first release whose writers survive it."""
    return ", ".join(
        f"{change.what} (since {change.since})" for group in changes for change in group
    )
