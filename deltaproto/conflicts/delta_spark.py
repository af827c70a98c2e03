"""The conflict matrix of Delta Spark, based on its conflict checker.

Source: Delta Spark's `ConflictChecker` (which runs for every commit that came between),
`TransactionHelper` (OPTIMIZE and REORG commit under SnapshotIsolation), `OptimizeTableCommand`
(which retries automatically), `OptimisticTransaction.commitLarge`; read, and partly measured with
delta-spark 4.4.0. It is directional: the winner is never affected. It compares files, never rows.
"""

from __future__ import annotations

from deltaproto.conflicts.operation import (
    APPEND_OPERATIONS,
    RETRY_ADVICE,
    REWRITE_OPERATIONS,
    USE_LITERALS,
    Cell,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.conflicts.releases import (
    CHECKER,
    COMPACTION,
    METADATA,
    PROTOCOL,
    against_metadata,
    against_protocol,
)
from deltaproto.protocol.isolation import IsolationLevel

_ADDED = CHECKER + "checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn"
_REMOVED = CHECKER + "checkForDeletedFilesAgainstCurrentTxnReadFiles"
_FILES = (ExceptionName.APPEND, ExceptionName.DELETE_READ, ExceptionName.DELETE_DELETE)
_NOTHING = "nothing to avoid"
_GENERATES_IDENTITY = frozenset({Operation.INSERT, Operation.MERGE, Operation.STREAMING_APPEND})


def delta_spark_cell(
    loser: Operation, winner: Operation, level: IsolationLevel, *, identity: bool | None
) -> Cell:
    """Return the effect on `loser` if `winner` was committed while it ran.

    Args:
        identity: True if the table has identity columns; None: unknown.
    """
    answer = _build_content(loser, winner, level)
    if identity is not False:
        answer = _with_identity(answer, loser, winner, level, known=identity is not None)
    return Cell(loser, winner, *answer)


def _build_content(loser: Operation, winner: Operation, level: IsolationLevel) -> CellContent:
    if loser is Operation.RESTORE:
        return _RESTORE_LOSES
    if winner is Operation.RESTORE:
        return _restore_wins(loser)
    if winner is Operation.PROTOCOL_CHANGE:
        return against_protocol(loser)
    if winner is Operation.METADATA_CHANGE:
        return against_metadata(loser)
    if loser is Operation.PROTOCOL_CHANGE:
        return _PROTOCOL_LOSES
    if loser is Operation.METADATA_CHANGE:
        return _METADATA_LOSES
    if loser is winner is Operation.STREAMING_APPEND:
        return _STREAMS
    if loser in APPEND_OPERATIONS:
        return _no_conflict(
            "A blind append reads nothing, so no data commit conflicts with it.", _ADDED
        )
    if loser in REWRITE_OPERATIONS:
        if winner in APPEND_OPERATIONS:
            return _no_conflict(
                "A rewrite commits under SnapshotIsolation, where new files do not count."
            )
        return _REWRITE_LOSES
    return _change_against(winner, level)


def _change_against(winner: Operation, level: IsolationLevel) -> CellContent:
    if winner in APPEND_OPERATIONS:
        if level is IsolationLevel.WRITE_SERIALIZABLE:
            return _no_conflict(
                "Under WriteSerializable the files of blind appends do not count: the result is as "
                "if the append came second. A write that also evolves the schema is a METADATA "
                "CHANGE, and does conflict.",
                _ADDED,
            )
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.APPEND,),
            "If the append added a file to a partition that the loser reads; in an unpartitioned "
            "table any file counts. A table without delta.isolationLevel is Serializable here.",
            f"{USE_LITERALS}; otherwise {RETRY_ADVICE}",
            _ADDED + "; measured with delta-spark 4.4.0",
        )
    if winner in REWRITE_OPERATIONS:
        return CellContent(
            Conflict.MAYBE,
            _FILES,
            "If files that the loser read or changes were rewritten, or if new files were added to "
            "a partition that it reads: rewritten files count at both levels, and in an "
            "unpartitioned table any file counts. Deletion vectors do not help.",
            "compact partitions that no job changes at the same time; for the loser, "
            + USE_LITERALS,
            f"{_ADDED}; {_REMOVED}",
        )
    return CellContent(
        Conflict.MAYBE,
        _FILES,
        "If the winner added files to a partition that the loser reads (any file in an "
        "unpartitioned table), or removed a file that the loser read or removes. Rows are not "
        "compared, even with deletion vectors.",
        f"{USE_LITERALS}; otherwise {RETRY_ADVICE}",
        f"{_ADDED}; {_REMOVED}; measured with delta-spark 4.4.0",
    )


def _with_identity(
    answer: CellContent, loser: Operation, winner: Operation, level: IsolationLevel, *, known: bool
) -> CellContent:
    """Tables with identity columns: generating keys stores the counter, which is metadata."""
    alters = loser in (Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE)
    if winner in _GENERATES_IDENTITY and (loser in _GENERATES_IDENTITY or alters):
        added: tuple[ExceptionName, ...] = (ExceptionName.METADATA,)
        if loser is Operation.MERGE and level is IsolationLevel.WRITE_SERIALIZABLE:
            added = (*added, ExceptionName.APPEND)
        exceptions = dict.fromkeys((*answer.exceptions, *added))
        return CellContent(
            Conflict.MAYBE,
            tuple(exceptions),
            f"{'' if known else 'If the table has identity columns: '}{_COUNTER} Apart from that: "
            + answer.when,
            "run writes to tables with identity columns one at a time",
            f"{METADATA}; {answer.source}",
        )
    if loser in _GENERATES_IDENTITY and winner is Operation.METADATA_CHANGE:
        return answer._replace(
            when="A loser that generates identity values stores metadata itself, so it does not "
            "survive any metadata change. Otherwise: " + answer.when
        )
    return answer


_COUNTER = (
    "A winner that generated identity values stored the column's counter, which is metadata: a "
    "loser that generates identity values or changes metadata itself is aborted. Explicit values "
    "in the statement do not count."
)


def _no_conflict(when: str, source: str = "delta-io/delta, TransactionHelper") -> CellContent:
    return CellContent(Conflict.NO, (), when, _NOTHING, source)


def _restore_wins(loser: Operation) -> CellContent:
    if loser in (Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE):
        return CellContent(
            Conflict.YES,
            (ExceptionName.METADATA, ExceptionName.PROTOCOL),
            "Always: RESTORE stores metadata, even if unchanged, and two transactions that both "
            "store metadata always conflict.",
            RESTORE_ALONE,
            f"{METADATA}; {RESTORE}",
        )
    files = () if loser in APPEND_OPERATIONS else _FILES
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.METADATA, *files),
        "RESTORE stores metadata: if it restores schema or properties, and for every writer before "
        "4.1, it counts as a METADATA CHANGE. Otherwise it counts as a DELETE and an INSERT of "
        "whole files, which does not affect blind appends.",
        RESTORE_ALONE,
        f"{METADATA}; {RESTORE}; measured with delta-spark 4.4.0",
    )


RESTORE = "delta-io/delta, RestoreTableCommand, OptimisticTransaction.commitLarge"
RESTORE_ALONE = "restore while no writers run, and stop streams first"
_RESTORE_LOSES = CellContent(
    Conflict.YES,
    (ExceptionName.WRITE,),
    "Always: RESTORE is committed as one large commit, without conflict checks or retries; any "
    "commit after the version that it started from makes it fail.",
    f"{RESTORE_ALONE}; otherwise {RETRY_ADVICE}",
    RESTORE,
)
_REWRITE_LOSES = CellContent(
    Conflict.MAYBE,
    (ExceptionName.DELETE_READ, ExceptionName.DELETE_DELETE),
    "Only if files that it rewrote were concurrently removed, rewritten or given a deletion "
    "vector. After any other conflict it retries its commit automatically.",
    "compact partitions that no job changes at the same time, one compaction at a time",
    f"{_REMOVED}; {COMPACTION}",
)
_METADATA_LOSES = CellContent(
    Conflict.MAYBE,
    _FILES,
    "Only if the change reads or rewrites the table's rows, as ADD CONSTRAINT, SYNC IDENTITY and "
    "schema-evolving writes do: then as for MERGE, and blind appends count at both levels. "
    "Setting or unsetting properties and adding columns read nothing and are committed on top.",
    f"run such a change while no writers run; otherwise {RETRY_ADVICE}",
    f"{_ADDED}; {_REMOVED}",
)
_PROTOCOL_LOSES = CellContent(
    Conflict.MAYBE,
    (ExceptionName.WRITE,),
    "Normally it is committed on top of concurrent commits. It fails for the tombstones that DROP "
    "FEATURE deletionVectors writes if there are more than 10,000 (RESTORE and CLONE likewise), "
    "and for the move to coordinated commits: these do not retry. A data commit that restores "
    "traces of the feature being dropped makes the drop fail with "
    "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.",
    f"run it while no writers run; otherwise {RETRY_ADVICE}",
    f"{PROTOCOL}; delta-io/delta, OptimisticTransaction.commitLarge; measured with 4.4.0",
)
_STREAMS = CellContent(
    Conflict.MAYBE,
    (ExceptionName.TRANSACTION,),
    "Only if both are runs of one streaming query (one checkpoint location), or batch writes "
    "with the same txnAppId. Otherwise they are blind appends, which do not conflict.",
    "never run two streaming queries with the same checkpoint location at the same time",
    CHECKER + "checkForUpdatedApplicationTransactionIdsThatCurrentTxnDependsOn",
)
