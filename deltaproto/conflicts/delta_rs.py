"""The conflict matrix of delta-rs, for the conflict checker of each release.

Source: delta-rs's `ConflictChecker` and `DeltaOperation.read_predicate` at the tags python-v0.18.2
to python-v1.6.3; measured with the releases of `tests/conflicts/measured_delta_rs.json`, 1.6.6
among them. It is directional: the winner is never affected. It compares files, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.conflicts.operation import (
    APPEND_OPERATIONS,
    RETRY_ADVICE,
    REWRITE_OPERATIONS,
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
"""from 0.19 up to here, MERGE reads only files that may contain the source's keys"""
WRITES_MEET = (1, 1)
"""`write_deltalake` no longer reloads the table before it commits"""
READS_ALL = (1, 2)
"""operations without a predicate, even blind appends, count as reading every file"""
SPARES_REWRITES = (1, 3)
"""files removed by compaction no longer count as deleted"""
DELETES_UNREAD = (1, 4)
"""DELETE without a condition no longer counts as reading"""
MISSES_REMOVED = (1, 6, 6)
"""two removals of one file go unnoticed; any higher protocol is noticed"""

VARIANTS: Mapping[ExceptionName, str] = {
    ExceptionName.APPEND: "ConcurrentAppend",
    ExceptionName.DELETE_READ: "ConcurrentDeleteRead",
    ExceptionName.DELETE_DELETE: "ConcurrentDeleteDelete",
    ExceptionName.METADATA: "MetadataChanged",
    ExceptionName.PROTOCOL: "ProtocolChanged",
    ExceptionName.TRANSACTION: "ConcurrentTransaction",
    ExceptionName.WRITE: "MaxCommitAttempts",
}
"""delta-rs's own names: variants of CommitConflictError; the last one is of TransactionError"""
MESSAGES: Mapping[ExceptionName, str] = {
    ExceptionName.APPEND: "concurrent transactions added new data",
    ExceptionName.DELETE_READ: "deleted data this operation read",
    ExceptionName.DELETE_DELETE: "deleted the same data your transaction deletes",
    ExceptionName.METADATA: "metadata changed since last commit",
    ExceptionName.PROTOCOL: "protocol changed since last commit",
    ExceptionName.TRANSACTION: "concurrent transaction failed",
    ExceptionName.WRITE: "failed to commit transaction: 0",
}
"""parts of its messages, in lowercase"""
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
_WINDOW = f"make the change while no writers run; otherwise {RETRY_ADVICE}"
_ONE_BY_ONE = "let one job at a time compact, delete from or overwrite the table"
_ALTERS = frozenset({Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE})


def parse_release(text: str) -> Release | None:
    """Parse a release, such as `0.25.5` or `1.6`; None if it is not one."""
    parts = text.split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return tuple(map(int, parts))


def delta_rs_cell(
    loser: Operation, winner: Operation, level: IsolationLevel, *, release: Release = NEWEST
) -> Cell:
    """Return the effect on `loser` if `winner` was committed while it ran.

    Args:
        release: of the loser's deltalake; the winner may be any engine.
    """
    answer = _build_content(loser, winner, level, release)
    if loser in APPEND_OPERATIONS and release < WRITES_MEET and answer.conflict is not Conflict.NO:
        answer = answer._replace(conflict=Conflict.MAYBE, when=answer.when + _RELOADS)
    return Cell(loser, winner, *answer._replace(source=answer.source + _MEASURED))


def _build_content(
    loser: Operation, winner: Operation, level: IsolationLevel, release: Release
) -> CellContent:
    if loser is Operation.REORG:
        return _no_conflict("delta-rs has no REORG. REORG of another engine counts as a rewrite.")
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
    if loser in APPEND_OPERATIONS or loser in _ALTERS:
        return _reads_no_rows(winner, release)
    if loser in REWRITE_OPERATIONS:
        return _rewrite_loses(winner, release)
    return _change_loses(loser, winner, level, release)


def _reads_no_rows(winner: Operation, release: Release) -> CellContent:
    """Handle appends, metadata changes and protocol changes."""
    if winner in APPEND_OPERATIONS:
        return _no_conflict("It has no predicate, so added files do not count.", _ADDED)
    if release < READS_ALL:
        return _no_conflict("It has no predicate, so neither added nor removed files count.", _READ)
    if winner in REWRITE_OPERATIONS and release >= SPARES_REWRITES:
        return _no_conflict(
            "Compaction deletes no data, so the files that it removes do not count.", _READ
        )
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.DELETE_READ,),
        "If the winner removed any file of the table: without a predicate, delta-rs treats every "
        "file as read, so even a blind append is aborted. A winner that only adds rows does not "
        "affect it.",
        f"run it again, as nothing was committed; or {_ONE_BY_ONE}",
        _READ,
    )


def _rewrite_loses(winner: Operation, release: Release) -> CellContent:
    if winner in APPEND_OPERATIONS:
        return _no_conflict("OPTIMIZE has no predicate, so added files do not count.", _ADDED)
    if winner not in REWRITE_OPERATIONS:
        reads = release >= READS_ALL
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.DELETE_READ if reads else ExceptionName.DELETE_DELETE,),
            "If the winner removed any file of the table."
            if reads
            else "If the winner removed a file that is being compacted.",
            _ONE_BY_ONE,
            _READ if reads else _REMOVED,
        )
    if release >= MISSES_REMOVED:
        return CellContent(
            Conflict.WRONG,
            (),
            "Both are committed, and every row of the files that both compacted is in the table "
            "twice: 1.6.6 does not notice that both remove the same file. 1.6.3 raises "
            "ConcurrentDeleteDelete.",
            "never run two compactions of one table at a time, including scheduled ones",
            _REMOVED,
        )
    reads = READS_ALL <= release < SPARES_REWRITES
    return CellContent(
        Conflict.MAYBE,
        (ExceptionName.DELETE_READ if reads else ExceptionName.DELETE_DELETE,),
        "If both compact the same file.",
        "run one compaction of a table at a time",
        _READ if reads else _REMOVED,
    )


def _change_loses(
    loser: Operation, winner: Operation, level: IsolationLevel, release: Release
) -> CellContent:
    if winner in APPEND_OPERATIONS:
        spared = (
            " Under writeSerializable appends that Spark marks as blind do not count; delta-rs "
            "never marks its own."
            if level is IsolationLevel.WRITE_SERIALIZABLE
            else ""
        )
        return CellContent(
            Conflict.MAYBE,
            (ExceptionName.APPEND,),
            "If an added file may have rows that it reads, by "
            f"{_describe_read_files(loser, release)}.{spared}",
            f"use a predicate that the added files cannot match; otherwise {RETRY_ADVICE}",
            _ADDED,
        )
    exceptions = [ExceptionName.DELETE_READ, ExceptionName.APPEND]
    if winner in REWRITE_OPERATIONS and release >= SPARES_REWRITES:
        exceptions.remove(ExceptionName.DELETE_READ)
    if release < MISSES_REMOVED:
        exceptions.append(ExceptionName.DELETE_DELETE)
    if winner in REWRITE_OPERATIONS and loser is Operation.DELETE and release >= MISSES_REMOVED:
        return CellContent(
            Conflict.WRONG,
            tuple(exceptions),
            "Without a condition, or for an overwrite, both are committed and the rows to be "
            "deleted stay: 1.6.6 does not notice that the files were compacted. With a condition "
            "it is aborted if a compacted file may contain rows that it reads. 1.6.3 raises "
            "ConcurrentDeleteDelete.",
            _ONE_BY_ONE,
            f"{_ADDED}; {_REMOVED}",
        )
    return CellContent(
        Conflict.MAYBE,
        tuple(exceptions),
        "If the winner removed or added a file that may contain rows that it reads, by "
        f"{_describe_read_files(loser, release)}. Rows are not compared.",
        f"use predicates that match no common file; otherwise {RETRY_ADVICE}",
        f"{_ADDED}; {_READ}",
    )


def _describe_read_files(loser: Operation, release: Release) -> str:
    """Describe how the release decides which files a change reads."""
    if loser is Operation.MERGE:
        if (0, 19) <= release < MERGE_READS_ALL:
            return "the statistics of the file and the source's keys"
        return "nothing: a MERGE counts as reading the whole table"
    if loser is Operation.DELETE and release >= DELETES_UNREAD:
        return (
            "its predicate and the statistics of the file; without a predicate added files do not "
            "count, and every removed file does"
        )
    return "its predicate and the statistics of the file; without a predicate every file counts"


def _against_protocol(loser: Operation, release: Release) -> CellContent:
    if loser is Operation.PROTOCOL_CHANGE:
        return CellContent(
            Conflict.YES,
            (ExceptionName.PROTOCOL,),
            "Always: two transactions that both store a protocol always conflict.",
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
        f"For {noticed}, and the writer commits with the old protocol. Changes by Spark also "
        "store metadata, which always aborts it, with MetadataChanged.",
        _WINDOW,
        f"{_PROTOCOL}; {_METADATA}",
    )


def _no_conflict(when: str, source: str = "delta-io/delta-rs, ConflictChecker") -> CellContent:
    return CellContent(Conflict.NO, (), when, _NOTHING, source)


_RELOADS = (
    " Up to 1.0, write_deltalake reloads the table before it writes, so only later commits can "
    "conflict with it."
)
_METADATA_WINS = CellContent(
    Conflict.YES,
    (ExceptionName.METADATA, ExceptionName.PROTOCOL),
    "Always, for any change, including writes that evolve the schema: delta-rs does not accept new "
    "metadata, even if it is the same. It is ProtocolChanged if the protocol also changed, as with "
    "add_constraint. Creating or replacing a table never conflicts itself, and drops concurrent "
    "commits.",
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
    "a restore by an earlier deltalake only changes files.",
    _WINDOW,
    f"{_METADATA}; {_READ}",
)
_RESTORE_LOSES = CellContent(
    Conflict.YES,
    (ExceptionName.WRITE,),
    "Always: a restore is committed without conflict checks and without retries, so any "
    'concurrent commit makes it fail, with "Failed to commit transaction: 0" or "version N already '
    'exists" (before 1.5).',
    f"restore while no writers run; otherwise {RETRY_ADVICE}",
    "delta-io/delta-rs, operations::restore",
)
_STREAMS = CellContent(
    Conflict.MAYBE,
    (ExceptionName.TRANSACTION,),
    "Only if both use the same app_id in CommitProperties(app_transactions=…). Otherwise they "
    "are blind appends, which do not conflict.",
    "run only one job at a time per app_id, as for a checkpoint location",
    _TRANSACTIONS,
)
