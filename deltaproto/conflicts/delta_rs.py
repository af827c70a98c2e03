"""The conflict matrix of delta-rs, as the conflict checker of each release behaves.

Source: delta-rs's `ConflictChecker` and `DeltaOperation.read_predicate` at the tags python-v0.18.2
to python-v1.6.3; measured with the releases of `tests/conflicts/measured_delta_rs.json`, 1.6.6
among them. It is directional: the winner is never disturbed. It compares files, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.conflicts.operation import (
    APPENDS,
    RETRY,
    REWRITES,
    Cell,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.protocol.isolation import IsolationLevel

Release = tuple[int, ...]

OLDEST, NEWEST = (0, 18), (1, 6, 6)
MERGE_READS_ALL = (0, 25)
"""from 0.19 up to here MERGE reads only files that may hold the source's keys"""
WRITES_MEET = (1, 1)
"""`write_deltalake` no longer reloads the table before it commits"""
READS_ALL = (1, 2)
"""whoever has no predicate counts as having read every file, blind appends too"""
SPARES_REWRITES = (1, 3)
"""what compaction removes no longer counts as deleted"""
DELETES_UNREAD = (1, 4)
"""DELETE without a condition no longer counts as reading"""
MISSES_REMOVED = (1, 6, 6)
"""two removals of one file are no longer noticed; any higher protocol is"""

VARIANTS: Mapping[ExceptionName, str] = {
    ExceptionName.APPEND: "ConcurrentAppend",
    ExceptionName.DELETE_READ: "ConcurrentDeleteRead",
    ExceptionName.DELETE_DELETE: "ConcurrentDeleteDelete",
    ExceptionName.METADATA: "MetadataChanged",
    ExceptionName.PROTOCOL: "ProtocolChanged",
    ExceptionName.TRANSACTION: "ConcurrentTransaction",
    ExceptionName.WRITE: "MaxCommitAttempts",
}
"""delta-rs's own names: variants of CommitConflictError, and of TransactionError the last one"""
MESSAGES: Mapping[ExceptionName, str] = {
    ExceptionName.APPEND: "concurrent transactions added new data",
    ExceptionName.DELETE_READ: "deleted data this operation read",
    ExceptionName.DELETE_DELETE: "deleted the same data your transaction deletes",
    ExceptionName.METADATA: "metadata changed since last commit",
    ExceptionName.PROTOCOL: "protocol changed since last commit",
    ExceptionName.TRANSACTION: "concurrent transaction failed",
    ExceptionName.WRITE: "failed to commit transaction: 0",
}
"""what its messages hold, in lower case"""
PYTHON = "deltalake.exceptions.CommitFailedError"

_CHECKER = "delta-io/delta-rs, ConflictChecker."
_ADDED = _CHECKER + "check_for_added_files_that_should_have_been_read_by_current_txn"
_READ = _CHECKER + "check_for_deleted_files_against_current_txn_read_files"
_REMOVED = _CHECKER + "check_for_deleted_files_against_current_txn_deleted_files"
_METADATA = _CHECKER + "check_no_metadata_updates"
_PROTOCOL = _CHECKER + "check_protocol_compatibility"
_TRANSACTIONS = _CHECKER + (
    "check_for_updated_application_transaction_ids_that_current_txn_depends_on"
)
_MEASURED = "; measured with deltalake"
_NOTHING = "nothing to avoid"
_WINDOW = f"make the change in a window without writers; else {RETRY}"
_ONE_BY_ONE = "let one job at a time compact, delete from or overwrite the table"
_ALTERS = frozenset({Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE})


def parse_release(text: str) -> Release | None:
    """The release that `text` names, as `0.25.5` or `1.6`; None if it is not one."""
    parts = text.split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return tuple(map(int, parts))


def cell(
    loser: Operation, winner: Operation, level: IsolationLevel, *, release: Release = NEWEST
) -> Cell:
    """What becomes of `loser` when `winner` was committed while it ran.

    Args:
        release: of the loser's deltalake; the winner may be any engine.
    """
    answer = _answer(loser, winner, level, release)
    if loser in APPENDS and release < WRITES_MEET and answer.conflict is not Conflict.NO:
        answer = answer._replace(conflict=Conflict.MAYBE, when=answer.when + _RELOADS)
    return Cell(loser, winner, *answer._replace(source=answer.source + _MEASURED))


def _answer(
    loser: Operation, winner: Operation, level: IsolationLevel, release: Release
) -> CellContent:
    if loser is Operation.REORG:
        return _no("delta-rs has no REORG. As winners, those of other engines are rewrites.")
    if loser is Operation.RESTORE:
        return _RESTORE_LOSES
    if winner is Operation.PROTOCOL_CHANGE or (loser, winner) == (
        Operation.PROTOCOL_CHANGE,
        Operation.RESTORE,
    ):
        return _against_protocol(loser, release)
    if winner is Operation.METADATA_CHANGE:
        return _METADATA_WINS
    if winner is Operation.RESTORE:
        return _RESTORE_WINS
    if loser is winner is Operation.STREAMING_APPEND:
        return _STREAMS
    if loser in APPENDS or loser in _ALTERS:
        return _reads_no_rows(winner, release)
    if loser in REWRITES:
        return _rewrite_loses(winner, release)
    return _change_loses(loser, winner, level, release)


def _reads_no_rows(winner: Operation, release: Release) -> CellContent:
    """Appends, and changes of metadata or protocol."""
    if winner in APPENDS:
        return _no("It has no predicate, so added files do not count.", _ADDED)
    if release < READS_ALL:
        return _no("It has no predicate, so neither added nor removed files count.", _READ)
    if winner in REWRITES and release >= SPARES_REWRITES:
        return _no("Compaction deletes no data, so the files that it removes do not count.", _READ)
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.DELETE_READ,),
        "When the winner removed any file of the table: without a predicate delta-rs counts every "
        "file as read, so that even a blind append is aborted. A winner that only adds rows is not "
        "in its way.",
        f"run it again, as nothing of it was committed; or {_ONE_BY_ONE}",
        _READ,
    )


def _rewrite_loses(winner: Operation, release: Release) -> CellContent:
    if winner in APPENDS:
        return _no("OPTIMIZE has no predicate, so added files do not count.", _ADDED)
    if winner not in REWRITES:
        reads = release >= READS_ALL
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.DELETE_READ if reads else ExceptionName.DELETE_DELETE,),
            "When the winner removed any file of the table."
            if reads
            else "When the winner removed a file that is being compacted.",
            _ONE_BY_ONE,
            _READ if reads else _REMOVED,
        )
    if release >= MISSES_REMOVED:
        return CellContent(
            Conflict.WRONG,
            (),
            "Both are committed, and every row of the files that both compacted is in the table "
            "twice: 1.6.6 does not notice that a file is removed by both. 1.6.3 raises "
            "ConcurrentDeleteDelete.",
            "never run two compactions of one table at a time, scheduled ones included",
            _REMOVED,
        )
    reads = READS_ALL <= release < SPARES_REWRITES
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.DELETE_READ if reads else ExceptionName.DELETE_DELETE,),
        "When both compact the same file.",
        "run one compaction of a table at a time",
        _READ if reads else _REMOVED,
    )


def _change_loses(
    loser: Operation, winner: Operation, level: IsolationLevel, release: Release
) -> CellContent:
    if winner in APPENDS:
        spared = (
            " Under writeSerializable the appends that Spark marks as blind do not count; delta-rs "
            "marks none of its own."
            if level is IsolationLevel.WRITE_SERIALIZABLE
            else ""
        )
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.APPEND,),
            f"When an added file may hold rows that it reads, by {_reads(loser, release)}.{spared}",
            f"give it a predicate that the added files cannot match; else {RETRY}",
            _ADDED,
        )
    exceptions = [ExceptionName.DELETE_READ, ExceptionName.APPEND]
    if winner in REWRITES and release >= SPARES_REWRITES:
        exceptions.remove(ExceptionName.DELETE_READ)
    if release < MISSES_REMOVED:
        exceptions.append(ExceptionName.DELETE_DELETE)
    if winner in REWRITES and loser is Operation.DELETE and release >= MISSES_REMOVED:
        return CellContent(
            Conflict.WRONG,
            tuple(exceptions),
            "Without a condition, as of an overwrite, both are committed and the rows that were to "
            "be deleted stay: 1.6.6 does not notice that the files were compacted. With one it is "
            "aborted when a compacted file may hold rows that it reads. 1.6.3 raises "
            "ConcurrentDeleteDelete.",
            _ONE_BY_ONE,
            f"{_ADDED}; {_REMOVED}",
        )
    return CellContent(
        Conflict.MAYBE,
        tuple(exceptions),
        "When the winner removed a file, or added one, that may hold rows which it reads, by "
        f"{_reads(loser, release)}. Rows are not compared.",
        f"give both predicates that no file matches twice; else {RETRY}",
        f"{_ADDED}; {_READ}",
    )


def _reads(loser: Operation, release: Release) -> str:
    """By what it is decided which files a change reads."""
    if loser is Operation.MERGE:
        if (0, 19) <= release < MERGE_READS_ALL:
            return "the statistics of the file and the source's keys"
        return "nothing: a MERGE counts as reading the whole table"
    if loser is Operation.DELETE and release >= DELETES_UNREAD:
        return (
            "its predicate and the statistics of the file; without a predicate added files do not "
            "count, and every removed one does"
        )
    return "its predicate and the statistics of the file; without a predicate any file does"


def _against_protocol(loser: Operation, release: Release) -> CellContent:
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.PROTOCOL,),
            "Always: two transactions that both store a protocol are never reconciled.",
            "change protocols from one place, one statement after the other",
            _PROTOCOL,
        )
    noticed = (
        "a higher reader or writer version; a protocol that is only lowered, or gets another "
        "feature at the same versions, goes unnoticed"
        if release >= MISSES_REMOVED
        else "a higher reader version or a lower writer version; a higher writer version alone, or "
        "another feature at the same versions, goes unnoticed"
    )
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.PROTOCOL, ExceptionName.METADATA),
        f"For {noticed}, and the writer commits by the old protocol. Changes by Spark store "
        "metadata too, which always aborts it, with MetadataChanged.",
        _WINDOW,
        f"{_PROTOCOL}; {_METADATA}",
    )


def _no(when: str, source: str = "delta-io/delta-rs, ConflictChecker") -> CellContent:
    return CellContent(Conflict.NO, (), when, _NOTHING, source)


_RELOADS = (
    " Up to 1.0 write_deltalake reloads the table before it writes, so that only what is committed "
    "after that can be in its way."
)
_METADATA_WINS = CellContent(
    Conflict.YES,
    (ExceptionName.METADATA, ExceptionName.PROTOCOL),
    "Always, whatever was changed, also by a write that evolved the schema: delta-rs reconciles no "
    "new metadata, not even the same again. It is ProtocolChanged when the protocol changed too, "
    "as add_constraint changes it. A table that is created or replaced conflicts with nothing "
    "itself, and drops what was committed meanwhile.",
    _WINDOW,
    f"{_METADATA}; {_PROTOCOL}",
)
_RESTORE_WINS = CellContent(
    Conflict.MAYBE,
    (
        ExceptionName.METADATA,
        ExceptionName.PROTOCOL,
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
    ),
    "A restore by deltalake 1.0 or later, or by Spark, stores metadata, which always aborts it; "
    "one by an earlier deltalake only changes files.",
    _WINDOW,
    f"{_METADATA}; {_READ}",
)
_RESTORE_LOSES = CellContent(
    Conflict.YES,
    (ExceptionName.WRITE,),
    "Always: a restore is committed without checking conflicts and without trying again, so any "
    'commit in between ends it, with "Failed to commit transaction: 0" or "version N already '
    'exists" (before 1.5).',
    f"restore in a window without writers; else {RETRY}",
    "delta-io/delta-rs, operations::restore",
)
_STREAMS = CellContent(
    Conflict.MAYBE,
    (ExceptionName.TRANSACTION,),
    "Only when both carry the same app_id in CommitProperties(app_transactions=…). Otherwise they "
    "are blind appends, which do not conflict.",
    "let one job at a time write with an app_id, as with one checkpoint location",
    _TRANSACTIONS,
)
