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

from deltaproto.conflicts.operation import (
    RETRY_ADVICE,
    REWRITE_OPERATIONS,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)


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


CHECKER = "delta-io/delta, ConflictChecker."
METADATA = CHECKER + "attemptToResolveMetadataConflicts"
PROTOCOL = CHECKER + "checkProtocolCompatibility"
COMPACTION = "delta-io/delta, OptimizeTableCommand.commitAndRetry"
_WINDOW = f"make the change while no writers run; otherwise {RETRY_ADVICE}"


def against_metadata(loser: Operation) -> CellContent:
    """Return the effect on `loser` if a metadata change was committed while it ran."""
    aborting = "; ".join(ABORTING_METADATA)
    survived = describe_survived(SURVIVED_METADATA)
    if loser is Operation.METADATA_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.METADATA,),
            "Always: two transactions that both store metadata always conflict, whatever was "
            "changed.",
            "change metadata from one place, one statement after the other",
            METADATA,
        )
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.METADATA, ExceptionName.PROTOCOL),
            "Nearly always, as a protocol change also stores metadata, and so do SET TBLPROPERTIES "
            "and DROP FEATURE. Only a bare protocol commit survives a winner that is resolved "
            f"automatically ({survived}). If the winner also raised the protocol, it is "
            "ProtocolChangedException; if it needs the feature being dropped, the drop fails with "
            "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.",
            "change protocol and metadata from one place, one statement after the other",
            f"{METADATA}; {PROTOCOL}; measured with delta-spark 4.4.0",
        )
    if loser in REWRITE_OPERATIONS:
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.METADATA,),
            f"{survived} do not conflict. Other changes ({aborting}) do, but it then "
            "retries its commit automatically, and fails only if files it rewrote were removed or "
            "the partitioning changed.",
            _WINDOW,
            f"{METADATA}; {COMPACTION}",
        )
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.METADATA,),
        f"No conflict for {survived}, if the loser changes no metadata itself. Every other "
        f"change aborts every writer, even blind appends: {aborting}.",
        _WINDOW,
        f"{METADATA}; measured with delta-spark 3.3 to 4.4",
    )


def against_protocol(loser: Operation) -> CellContent:
    """Return the effect on `loser` if a protocol change was committed while it ran."""
    aborting = "; ".join(ABORTING_PROTOCOL)
    survived = describe_survived(SURVIVED_PROTOCOL, SURVIVED_METADATA)
    both = (ExceptionName.PROTOCOL, ExceptionName.METADATA)
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.PROTOCOL,),
            "Always: two transactions that both store a protocol always conflict.",
            "change protocols from one place, one statement after the other",
            PROTOCOL + "; measured with delta-spark 4.4.0",
        )
    if loser is Operation.METADATA_CHANGE:
        return CellContent(
            Conflict.MAYBE,
            both,
            "Nearly always: a winner that also stored metadata, as SET TBLPROPERTIES and DROP "
            "FEATURE do, aborts it, and so does any dropped feature. Only a bare protocol commit "
            "that adds features does not conflict.",
            "change protocol and metadata from one place, one statement after the other",
            f"{PROTOCOL}; {METADATA}",
        )
    again = (
        " A rewrite retries its commit automatically, and fails only if files it rewrote were "
        "removed or the partitioning changed."
        if loser in REWRITE_OPERATIONS
        else ""
    )
    return CellContent(
        Conflict.MAYBE,
        both,
        f"No conflict for {survived}. {aborting[0].upper()}{aborting[1:]} aborts every writer, "
        "even blind appends; it is MetadataChangedException if the drop had to unset a property "
        "first. The same applies to a feature that is added by a metadata change that is not on "
        f"that list: {'; '.join(ABORTING_METADATA)}.{again}",
        _WINDOW,
        f"{PROTOCOL}; {METADATA}; " + (COMPACTION if again else "measured with 4.4.0"),
    )
