"""The conflict matrices of Databricks, as documented.

Source: the Databricks page "Isolation levels and write conflicts" in its newest edition: the
matrices with and without row-level concurrency, their footnotes, and the sections on metadata
changes and exceptions. The page speaks of pairs, so every cell equals its mirror image. Streaming
appends have no row there; they are counted as the blind appends that they are.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.conflicts.operation import (
    APPENDS,
    CHANGES,
    LITERALS,
    PAGE,
    REWRITES,
    Cell,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.protocol.isolation import IsolationLevel

_UNLESS_IDENTITY = (
    " Not so on a table with identity columns, which supports no concurrent transactions."
)
_PAIR = "Documented for the pair, whichever commits last."
_NOTHING = "nothing to avoid"
_WINDOW = (
    "make the change in a window without writers; stop streams before it, restart them after it"
)
_ROWS = (
    "change different rows; keep conditions simple, as struct, array and map columns, "
    "non-deterministic expressions and subqueries take row-level resolution away; where the same "
    "rows are changed, run one after the other"
)
_FILES = (
    f"{LITERALS}; or enable deletion vectors on an unpartitioned or liquid-clustered table, so "
    "that Databricks resolves conflicts by row"
)


class MatrixInputs(NamedTuple):
    """What the Databricks matrix depends on."""

    level: IsolationLevel
    by_row: frozenset[Operation]
    """the operations of which two are compared by row"""
    deletion_vectors: bool | None
    """None: not known, so that what depends on them is `maybe`"""
    identity: bool | None
    """whether it has identity columns; None: not known"""


def cell(operation: Operation, against: Operation, layout: MatrixInputs) -> Cell:
    """The cell for one pair of concurrent operations."""
    answer = _answer(frozenset({operation, against}), layout)
    unless = _UNLESS_IDENTITY if layout.identity is None and answer.conflict is Conflict.NO else ""
    if answer is _RESTORE:
        when = answer.when + _reorg(answer, operation, against)
        return Cell(operation, against, *answer._replace(when=when))
    when = f"{answer.when} {_PAIR}{_reorg(answer, operation, against)}{unless}"
    return Cell(operation, against, *answer._replace(when=when))


def _reorg(answer: CellContent, *pair: Operation) -> str:
    if Operation.REORG not in pair or answer.conflict is Conflict.YES:
        return ""
    return (
        " REORG counts as OPTIMIZE here; one that applies an upgrade (UNIFORM) is a PROTOCOL "
        "CHANGE and conflicts with everything in progress."
    )


def _answer(pair: frozenset[Operation], layout: MatrixInputs) -> CellContent:
    if Operation.PROTOCOL_CHANGE in pair:
        return _protocol(pair)
    if Operation.METADATA_CHANGE in pair:
        return _METADATA
    if layout.identity:
        return _identity(pair)
    if Operation.RESTORE in pair:
        return _RESTORE
    if pair == {Operation.STREAMING_APPEND}:
        return _STREAMS
    if pair <= APPENDS:
        return _no("Blind appends never conflict with each other.", layout)
    if pair & APPENDS and pair & REWRITES:
        return _no("Blind appends and rewrites of files do not conflict.", layout)
    if pair & APPENDS:
        return _append_and_change(layout, by_row=pair & CHANGES <= layout.by_row)
    if pair <= CHANGES:
        return _changes(by_row=pair <= layout.by_row)
    return _rewrite(pair, layout)


def _append_and_change(layout: MatrixInputs, *, by_row: bool) -> CellContent:
    if layout.level is IsolationLevel.WRITE_SERIALIZABLE:
        return CellContent(
            Conflict.NO,
            (),
            "Under WriteSerializable a blind append and one UPDATE, DELETE or MERGE do not "
            "conflict, even in the same partition. When several concurrent UPDATE, DELETE or MERGE "
            "may read the appended rows, they may conflict (ConcurrentAppendException).",
            "let at most one concurrent UPDATE, DELETE or MERGE be able to read the appended rows",
            _matrix(by_row=by_row) + "; ConcurrentAppendException",
        )
    if by_row:
        when = (
            "Under Serializable they may conflict when the same row is concerned. It is the "
            "UPDATE, DELETE or MERGE that would have had to read the appended rows."
        )
    else:
        when = (
            "Under Serializable they may conflict when the append adds files where the UPDATE, "
            "DELETE or MERGE reads: in its partitions, or anywhere in an unpartitioned table."
        )
    avoid = (
        f"{LITERALS}; under WriteSerializable the pair does not conflict, but history and content "
        "may then disagree"
    )
    return CellContent(Conflict.MAYBE, (ExceptionName.APPEND,), when, avoid, _matrix(by_row=by_row))


def _changes(*, by_row: bool) -> CellContent:
    exceptions = (
        ExceptionName.APPEND,
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
    )
    if by_row:
        return CellContent(
            Conflict.MAYBE,
            exceptions,
            "They may conflict when both change the same row. A command whose condition rules out "
            "row-level resolution is compared by files instead; so is a MERGE on Databricks "
            "Runtime 14.2 without Photon or without an explicit predicate on the target.",
            _ROWS,
            _matrix(by_row=by_row) + "; Limitations",
        )
    return CellContent(
        Conflict.MAYBE,
        exceptions,
        "They may conflict when both work on the same files.",
        _FILES,
        _matrix(by_row=by_row) + "; Avoid conflicts with partitions",
    )


def _rewrite(pair: frozenset[Operation], layout: MatrixInputs) -> CellContent:
    exceptions: tuple[ExceptionName, ...] = (
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
    )
    if pair & CHANGES:
        exceptions = (ExceptionName.APPEND, *exceptions)
    if Operation.OPTIMIZE_ZORDER in pair:
        return CellContent(
            Conflict.MAYBE,
            exceptions,
            "With ZORDER BY they may conflict when both work on the same files; deletion vectors "
            "and row-level concurrency do not help.",
            "leave ZORDER BY out (liquid clustering does its work), or run it on partitions that "
            "nobody else changes at that time",
            _matrix(by_row=bool(layout.by_row)),
        )
    if layout.deletion_vectors:
        return _no(
            "With deletion vectors and without ZORDER BY they do not conflict, on partitioned "
            "tables too.",
            layout,
        )
    known = "are not enabled" if layout.deletion_vectors is False else "may not be enabled"
    return CellContent(
        Conflict.MAYBE,
        exceptions,
        f"They may conflict when both work on the same files, as deletion vectors {known}; with "
        "deletion vectors and without ZORDER BY they would not.",
        "enable deletion vectors, or compact partitions that nobody else changes at that time",
        _matrix(by_row=bool(layout.by_row)),
    )


def _no(when: str, layout: MatrixInputs) -> CellContent:
    return CellContent(Conflict.NO, (), when, _NOTHING, _matrix(by_row=bool(layout.by_row)))


def _matrix(*, by_row: bool) -> str:
    return PAGE + ("with" if by_row else "without") + " row-level concurrency"


def _identity(pair: frozenset[Operation]) -> CellContent:
    # The page names no exception. The counter of an identity column is stored as metadata.
    exceptions: tuple[ExceptionName, ...] = (ExceptionName.METADATA,)
    if pair == {Operation.STREAMING_APPEND}:
        exceptions = (*exceptions, ExceptionName.TRANSACTION)
    return CellContent(
        Conflict.YES,
        exceptions,
        "Tables with identity columns support no concurrent transactions. The page names no "
        "exception; as an identity column's counter is metadata, MetadataChangedException is to be "
        "expected.",
        "write one after the other, or make the keys without an identity column",
        PAGE + "note on identity columns",
    )


def _protocol(pair: frozenset[Operation]) -> CellContent:
    metadata = Operation.METADATA_CHANGE in pair or len(pair) == 1
    return CellContent(
        Conflict.YES,
        (ExceptionName.PROTOCOL, ExceptionName.METADATA),
        "A change of the protocol, also by enabling or dropping a feature or by REORG … UPGRADE "
        + (
            "UNIFORM, conflicts with every other change in progress."
            if metadata
            else "UNIFORM, conflicts with every operation in progress: the write fails."
        ),
        _WINDOW,
        PAGE + "metadata changes; ProtocolChangedException",
    )


_METADATA = CellContent(
    Conflict.YES,
    (ExceptionName.METADATA,),
    "A metadata change (a property, the isolation level among them, the schema, a write that "
    "evolves the schema) makes every concurrent write fail.",
    _WINDOW,
    PAGE + "metadata changes; MetadataChangedException",
)
_STREAMS = CellContent(
    Conflict.MAYBE,
    (ExceptionName.TRANSACTION,),
    "Only when both are runs of one streaming query, with one checkpoint location. Otherwise they "
    "are blind appends, which do not conflict.",
    "never run two streaming queries with the same checkpoint location at the same time",
    PAGE + "ConcurrentTransactionException",
)
_RESTORE = CellContent(
    Conflict.MAYBE,
    (
        ExceptionName.APPEND,
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
        ExceptionName.METADATA,
        ExceptionName.WRITE,
    ),
    "The page does not list the pair. RESTORE removes and adds whole files and may bring back "
    "other metadata, so count on a conflict with everything. In Delta Spark it is the "
    "RESTORE that fails when anything was committed meanwhile.",
    "restore in a window without writers, and stop streams before it",
    "not documented; delta-io/delta, RestoreTableCommand",
)
