"""Delta Spark: the effect of metadata and protocol changes on concurrent writers.

Source: Delta Spark's `ConflictChecker.attemptToResolveMetadataConflicts` and
`checkProtocolCompatibility`; `OptimizeTableCommand.commitAndRetry`.
"""

from __future__ import annotations

from deltaproto.conflicts import releases
from deltaproto.conflicts.operation import (
    RETRY_ADVICE,
    REWRITE_OPERATIONS,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)

CHECKER = "delta-io/delta, ConflictChecker."
METADATA = CHECKER + "attemptToResolveMetadataConflicts"
PROTOCOL = CHECKER + "checkProtocolCompatibility"
COMPACTION = "delta-io/delta, OptimizeTableCommand.commitAndRetry"
_WINDOW = f"make the change while no writers run; otherwise {RETRY_ADVICE}"


def against_metadata(loser: Operation) -> CellContent:
    """Return the effect on `loser` if a metadata change was committed while it ran."""
    aborting = "; ".join(releases.ABORTING_METADATA)
    survived = releases.describe_survived(releases.SURVIVED_METADATA)
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
    aborting = "; ".join(releases.ABORTING_PROTOCOL)
    survived = releases.describe_survived(releases.SURVIVED_PROTOCOL, releases.SURVIVED_METADATA)
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
        f"that list: {'; '.join(releases.ABORTING_METADATA)}.{again}",
        _WINDOW,
        f"{PROTOCOL}; {METADATA}; " + (COMPACTION if again else "measured with 4.4.0"),
    )
