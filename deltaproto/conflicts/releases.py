"""Metadata and protocol changes that in-flight Delta Spark writers survive, by release.

The release of the transaction that commits last decides, not the release that made the change.
Sources: Delta Spark's `ConflictChecker` at the tags v3.1.0 to v4.4.0
(`checkNoMetadataUpdates` before 4.1, then `attemptToResolveMetadataConflicts` with its allow-list)
and `TableFeature.failConcurrentTransactionsAtUpgrade`; measured with delta-spark 3.2, 3.3, 4.0,
4.1, 4.2, 4.3 and 4.4 (`tests/conflicts/measured_writers.json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SurvivedProperty(NamedTuple):
    """A property and its new value that concurrent writers survive."""

    value: str
    what: str
    since: str
    """the first Delta Spark release whose writers survive it"""


class SurvivableChange(NamedTuple):
    """A change that concurrent writers survive, with an example."""

    what: str
    statement: str
    since: str


SURVIVED_PROPERTIES: Mapping[str, SurvivedProperty] = {
    "delta.enableDeletionVectors": SurvivedProperty("true", "enabling deletion vectors", "4.1"),
    "delta.enableRowTracking": SurvivedProperty("true", "enabling row tracking", "3.3"),
    "delta.columnMapping.mode": SurvivedProperty(
        "name", "column mapping from none to name on tables without structs", "4.1"
    ),
    "delta.checkpointPolicy": SurvivedProperty("v2", "choosing v2 checkpoints", "4.3"),
    "delta.enableInCommitTimestamps": SurvivedProperty(
        "true", "enabling in-commit timestamps", "4.3"
    ),
}
"""the allow-list; from 4.4 on it also has `io.unitycatalog.tableId`, which no statement sets"""
REBASED_SINCE = "4.1"
"""Writers before this release abort on any metaData action except that of row tracking alone, even
if it stores the same metadata again, as adding a feature does."""
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
    "setting any other property, including custom properties and the isolation level",
    "UNSET of any property",
    "disabling a feature",
    "a schema change or a new constraint",
)
ABORTING_PROTOCOL: tuple[str, ...] = ("any DROP FEATURE",)

RESOLVE_CONFLICTS_SETTING = "spark.databricks.delta.featureEnablement.conflictResolution.enabled"
"""a setting of the writer's session; false: behave as releases before `REBASED_SINCE`"""
ENFORCE_ENABLEMENT_SETTING = (
    "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled"
)
"""a session setting of the writer; true: an added feature aborts, except as in `SPARED_RELEASES`"""
ENFORCED_SINCE = "4.2"
SPARED_RELEASES: Mapping[str, str] = {
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
"""features whose addition aborts no writer under that setting, with the first such release"""


def describe_survived(*changes: tuple[SurvivableChange, ...]) -> str:
    """List the changes, each with the first release whose writers survive it."""
    return ", ".join(
        f"{change.what} (since {change.since})" for group in changes for change in group
    )
