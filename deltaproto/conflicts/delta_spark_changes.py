"""Delta Spark: what a metadata or protocol change does to whoever is writing meanwhile.

Source: Delta Spark's `ConflictChecker.attemptToResolveMetadataConflicts` and
`checkProtocolCompatibility`; `OptimizeTableCommand.commitAndRetry`.
"""

from __future__ import annotations

from deltaproto.conflicts import releases
from deltaproto.conflicts.operation import (
    RETRY,
    REWRITES,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)

CHECKER = "delta-io/delta, ConflictChecker."
METADATA = CHECKER + "attemptToResolveMetadataConflicts"
PROTOCOL = CHECKER + "checkProtocolCompatibility"
COMPACTION = "delta-io/delta, OptimizeTableCommand.commitAndRetry"
_WINDOW = f"make the change in a window without writers; else {RETRY}"


def against_metadata(loser: Operation) -> CellContent:
    """What becomes of `loser` when a metadata change was committed while it ran."""
    aborting = "; ".join(releases.ABORTING_METADATA)
    survived = releases.survived(releases.SURVIVED_METADATA)
    if loser is Operation.METADATA_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.METADATA,),
            "Always: two transactions that both store metadata are never reconciled, whatever was "
            "changed.",
            "change metadata from one place, one statement after the other",
            METADATA,
        )
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.METADATA, ExceptionName.PROTOCOL),
            "Nearly always, as a protocol change stores metadata too; so do SET TBLPROPERTIES and "
            "DROP FEATURE. Only a bare protocol commit survives a winner that is resolved by "
            f"itself ({survived}). When the winner raised the protocol too, it is "
            "ProtocolChangedException; when it needs the feature being dropped, the drop ends in "
            "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.",
            "change protocol and metadata from one place, one statement after the other",
            f"{METADATA}; {PROTOCOL}; measured with delta-spark 4.4.0",
        )
    if loser in REWRITES:
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.METADATA,),
            f"It passes over {survived}. Of other changes ({aborting}) it is told too, but starts "
            "its commit again by itself, and fails only when files it rewrote are gone or the "
            "partitioning is another.",
            _WINDOW,
            f"{METADATA}; {COMPACTION}",
        )
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.METADATA,),
        f"No conflict for {survived}, while the loser changes no metadata itself. Every other "
        f"change aborts every writer, blind appends too: {aborting}.",
        _WINDOW,
        f"{METADATA}; measured with delta-spark 3.3 to 4.4",
    )


def against_protocol(loser: Operation) -> CellContent:
    """What becomes of `loser` when a protocol change was committed while it ran."""
    aborting = "; ".join(releases.ABORTING_PROTOCOL)
    survived = releases.survived(releases.SURVIVED_PROTOCOL, releases.SURVIVED_METADATA)
    both = (ExceptionName.PROTOCOL, ExceptionName.METADATA)
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.PROTOCOL,),
            "Always: two transactions that both store a protocol are never reconciled.",
            "change protocols from one place, one statement after the other",
            PROTOCOL + "; measured with delta-spark 4.4.0",
        )
    if loser is Operation.METADATA_CHANGE:
        return CellContent(
            Conflict.MAYBE,
            both,
            "Nearly always: a winner that stored metadata too, as SET TBLPROPERTIES and DROP "
            "FEATURE do, aborts it, and so does any dropped feature. Only a bare protocol commit "
            "that adds features is passed over.",
            "change protocol and metadata from one place, one statement after the other",
            f"{PROTOCOL}; {METADATA}",
        )
    again = (
        " A rewrite starts its commit again by itself, and fails only when files it rewrote are "
        "gone or the partitioning is another."
        if loser in REWRITES
        else ""
    )
    return CellContent(
        Conflict.MAYBE,
        both,
        f"No conflict for {survived}. {aborting[0].upper()}{aborting[1:]} aborts every writer, "
        "blind appends too; it is MetadataChangedException when the drop had to unset a property "
        "first. So does a feature that comes with a change of metadata which is not on that "
        f"list: {'; '.join(releases.ABORTING_METADATA)}.{again}",
        _WINDOW,
        f"{PROTOCOL}; {METADATA}; " + (COMPACTION if again else "measured with 4.4.0"),
    )
