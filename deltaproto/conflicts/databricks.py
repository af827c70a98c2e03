"""Databricks conflict matrices, from its documentation.

Source: the Databricks page "Isolation levels and write conflicts" in its newest edition: the
matrices with and without row-level concurrency, their footnotes, and the sections on metadata
changes and exceptions. The page describes pairs, so every cell equals its mirror image. Streaming
appends have no row there; they are treated as blind appends.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.conflicts.operation import (
    APPEND_OPERATIONS,
    CHANGE_OPERATIONS,
    DATABRICKS_PAGE,
    REWRITE_OPERATIONS,
    USE_LITERALS,
    Cell,
    CellContent,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.protocol.isolation import IsolationLevel

_UNLESS_IDENTITY = (
    " Tables with identity columns are an exception: they support no concurrent transactions."
)
_PAIR = "Documented for the pair in any commit order."
_NOTHING = "nothing to avoid"
_WINDOW = "make the change while no writers run; stop streams before it and restart them afterwards"
_ROWS = (
    "change different rows; keep conditions simple, as struct, array and map columns, "
    "non-deterministic expressions and subqueries prevent row-level resolution; run changes "
    "of the same rows one at a time"
)
_FILES = (
    f"{USE_LITERALS}; or enable deletion vectors on an unpartitioned or liquid-clustered table, so "
    "that Databricks resolves conflicts by row"
)


class MatrixInputs(NamedTuple):
    """The inputs of the Databricks matrix."""

    level: IsolationLevel
    by_row: frozenset[Operation]
    """the operations whose pairs are compared by row"""
    deletion_vectors: bool | None
    """None: unknown, so cells that depend on it are `maybe`"""
    identity: bool | None
    """True if the table has identity columns; None: unknown"""


def databricks_cell(operation: Operation, against: Operation, layout: MatrixInputs) -> Cell:
    """Return the cell for one pair of concurrent operations."""
    answer = _build_content(frozenset({operation, against}), layout)
    unless = _UNLESS_IDENTITY if layout.identity is None and answer.conflict is Conflict.NO else ""
    if answer is _RESTORE:
        when = answer.when + _reorg_note(answer, operation, against)
        return Cell(operation, against, *answer._replace(when=when))
    when = f"{answer.when} {_PAIR}{_reorg_note(answer, operation, against)}{unless}"
    return Cell(operation, against, *answer._replace(when=when))


def _reorg_note(answer: CellContent, *pair: Operation) -> str:
    if Operation.REORG not in pair or answer.conflict is Conflict.YES:
        return ""
    return (
        " REORG counts as OPTIMIZE here; REORG that applies an upgrade (UNIFORM) is a PROTOCOL "
        "CHANGE and conflicts with all concurrent operations."
    )


def _build_content(pair: frozenset[Operation], layout: MatrixInputs) -> CellContent:
    if Operation.PROTOCOL_CHANGE in pair:
        return _protocol_content(pair)
    if Operation.METADATA_CHANGE in pair:
        return _METADATA
    if layout.identity:
        return _identity_content(pair)
    if Operation.RESTORE in pair:
        return _RESTORE
    if pair == {Operation.STREAMING_APPEND}:
        return _STREAMS
    if pair <= APPEND_OPERATIONS:
        return _no_conflict("Blind appends never conflict with each other.", layout)
    if pair & APPEND_OPERATIONS and pair & REWRITE_OPERATIONS:
        return _no_conflict("Blind appends and file rewrites do not conflict.", layout)
    if pair & APPEND_OPERATIONS:
        return _append_vs_change(layout, by_row=pair & CHANGE_OPERATIONS <= layout.by_row)
    if pair <= CHANGE_OPERATIONS:
        return _change_vs_change(by_row=pair <= layout.by_row)
    return _rewrite_content(pair, layout)


def _append_vs_change(layout: MatrixInputs, *, by_row: bool) -> CellContent:
    if layout.level is IsolationLevel.WRITE_SERIALIZABLE:
        return CellContent(
            Conflict.NO,
            (),
            "Under WriteSerializable, a blind append and one UPDATE, DELETE or MERGE do not "
            "conflict, even in the same partition. If several concurrent UPDATE, DELETE or MERGE "
            "may read the appended rows, they may conflict (ConcurrentAppendException).",
            "allow at most one concurrent UPDATE, DELETE or MERGE to read the appended rows",
            _matrix_source(by_row=by_row) + "; ConcurrentAppendException",
        )
    if by_row:
        when = (
            "Under Serializable they may conflict if they affect the same row: the UPDATE, "
            "DELETE or MERGE should have read the appended rows."
        )
    else:
        when = (
            "Under Serializable they may conflict if the append adds files that the UPDATE, DELETE "
            "or MERGE reads: in its partitions, or anywhere in an unpartitioned table."
        )
    avoid = (
        f"{USE_LITERALS}; under WriteSerializable the pair does not conflict, but "
        "history and content "
        "may then disagree"
    )
    return CellContent(
        Conflict.MAYBE, (ExceptionName.APPEND,), when, avoid, _matrix_source(by_row=by_row)
    )


def _change_vs_change(*, by_row: bool) -> CellContent:
    exceptions = (
        ExceptionName.APPEND,
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
    )
    if by_row:
        return CellContent(
            Conflict.MAYBE,
            exceptions,
            "They may conflict if both change the same row. Commands whose condition prevents "
            "row-level resolution are compared by files instead, and so is MERGE on Databricks "
            "Runtime 14.2 without Photon or without an explicit predicate on the target.",
            _ROWS,
            _matrix_source(by_row=by_row) + "; Limitations",
        )
    return CellContent(
        Conflict.MAYBE,
        exceptions,
        "They may conflict if both change the same files.",
        _FILES,
        _matrix_source(by_row=by_row) + "; Avoid conflicts with partitions",
    )


def _rewrite_content(pair: frozenset[Operation], layout: MatrixInputs) -> CellContent:
    exceptions: tuple[ExceptionName, ...] = (
        ExceptionName.DELETE_READ,
        ExceptionName.DELETE_DELETE,
    )
    if pair & CHANGE_OPERATIONS:
        exceptions = (ExceptionName.APPEND, *exceptions)
    if Operation.OPTIMIZE_ZORDER in pair:
        return CellContent(
            Conflict.MAYBE,
            exceptions,
            "With ZORDER BY, they may conflict if both change the same files; deletion vectors "
            "and row-level concurrency do not help.",
            "omit ZORDER BY (use liquid clustering instead), or run it on partitions that no other "
            "job changes at the same time",
            _matrix_source(by_row=bool(layout.by_row)),
        )
    if layout.deletion_vectors:
        return _no_conflict(
            "With deletion vectors and without ZORDER BY they do not conflict, even on partitioned "
            "tables.",
            layout,
        )
    known = "are not enabled" if layout.deletion_vectors is False else "may not be enabled"
    return CellContent(
        Conflict.MAYBE,
        exceptions,
        f"They may conflict if both change the same files, as deletion vectors {known}; with "
        "deletion vectors and without ZORDER BY they would not.",
        "enable deletion vectors, or compact partitions that no other job changes at the same time",
        _matrix_source(by_row=bool(layout.by_row)),
    )


def _no_conflict(when: str, layout: MatrixInputs) -> CellContent:
    return CellContent(Conflict.NO, (), when, _NOTHING, _matrix_source(by_row=bool(layout.by_row)))


def _matrix_source(*, by_row: bool) -> str:
    return DATABRICKS_PAGE + ("with" if by_row else "without") + " row-level concurrency"


def _identity_content(pair: frozenset[Operation]) -> CellContent:
    # The page names no exception. Identity column counters are stored as metadata.
    exceptions: tuple[ExceptionName, ...] = (ExceptionName.METADATA,)
    if pair == {Operation.STREAMING_APPEND}:
        exceptions = (*exceptions, ExceptionName.TRANSACTION)
    return CellContent(
        Conflict.YES,
        exceptions,
        "Tables with identity columns support no concurrent transactions. The page does not name "
        "the exception; as an identity column's counter is metadata, MetadataChangedException is "
        "expected.",
        "run writes one at a time, or generate keys without an identity column",
        DATABRICKS_PAGE + "note on identity columns",
    )


def _protocol_content(pair: frozenset[Operation]) -> CellContent:
    metadata = Operation.METADATA_CHANGE in pair or len(pair) == 1
    return CellContent(
        Conflict.YES,
        (ExceptionName.PROTOCOL, ExceptionName.METADATA),
        "A protocol change, including enabling or dropping a feature and REORG … UPGRADE "
        + (
            "UNIFORM, conflicts with every other concurrent change."
            if metadata
            else "UNIFORM, conflicts with every concurrent operation: the write fails."
        ),
        _WINDOW,
        DATABRICKS_PAGE + "metadata changes; ProtocolChangedException",
    )


_METADATA = CellContent(
    Conflict.YES,
    (ExceptionName.METADATA,),
    "A metadata change (a property, including the isolation level, the schema, or a write that "
    "evolves the schema) makes every concurrent write fail.",
    _WINDOW,
    DATABRICKS_PAGE + "metadata changes; MetadataChangedException",
)
_STREAMS = CellContent(
    Conflict.MAYBE,
    (ExceptionName.TRANSACTION,),
    "Only if both are runs of one streaming query with one checkpoint location. Otherwise they "
    "are blind appends, which do not conflict.",
    "never run two streaming queries with the same checkpoint location at the same time",
    DATABRICKS_PAGE + "ConcurrentTransactionException",
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
    "The page does not list the pair. RESTORE removes and adds whole files and may restore "
    "other metadata, so assume a conflict with everything. In Delta Spark, RESTORE fails if "
    "anything was committed concurrently.",
    "restore while no writers run, and stop streams first",
    "not documented; delta-io/delta, RestoreTableCommand",
)
