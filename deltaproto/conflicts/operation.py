"""Operations of the conflict matrices, their exceptions, and matrix cells."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

DATABRICKS_PAGE = 'Databricks, "Isolation levels and write conflicts", '
SQLSTATE = "2D521"
RETRY_ADVICE = "run the loser again; it committed nothing"


class ExceptionName(StrEnum):
    """The seven exceptions, named as in io.delta.exceptions and delta.exceptions."""

    APPEND = "ConcurrentAppendException"
    DELETE_READ = "ConcurrentDeleteReadException"
    DELETE_DELETE = "ConcurrentDeleteDeleteException"
    METADATA = "MetadataChangedException"
    PROTOCOL = "ProtocolChangedException"
    TRANSACTION = "ConcurrentTransactionException"
    WRITE = "ConcurrentWriteException"


class Cause(NamedTuple):
    """One cause of a conflict, and how to avoid it."""

    name: str
    when: str
    avoid: str
    source: str


class ExceptionRecord(NamedTuple):
    """What is known about one exception, with the most likely cause first."""

    name: ExceptionName
    error_class: str
    engines: tuple[str, ...]
    summary: str
    causes: tuple[Cause, ...]


USE_LITERALS = (
    "give both operations explicit, disjoint predicates on the partition columns, with literal "
    "values; in a MERGE, equality of source and target columns is not enough, so add "
    "the literals to its condition"
)


class Operation(StrEnum):
    """The kind of a transaction in the conflict matrices."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    OPTIMIZE = "OPTIMIZE"
    OPTIMIZE_ZORDER = "OPTIMIZE ZORDER"
    REORG = "REORG"
    METADATA_CHANGE = "METADATA CHANGE"
    PROTOCOL_CHANGE = "PROTOCOL CHANGE"
    STREAMING_APPEND = "STREAMING APPEND"
    RESTORE = "RESTORE"


APPEND_OPERATIONS = frozenset({Operation.INSERT, Operation.STREAMING_APPEND})
CHANGE_OPERATIONS = frozenset({Operation.UPDATE, Operation.DELETE, Operation.MERGE})
UNLISTED_OPERATIONS = frozenset({Operation.RESTORE})
"""operations missing from the documented matrices; shown only on request"""
LISTED_OPERATIONS = tuple(
    operation for operation in Operation if operation not in UNLISTED_OPERATIONS
)
REWRITE_OPERATIONS = frozenset({Operation.OPTIMIZE, Operation.OPTIMIZE_ZORDER, Operation.REORG})

OPERATION_MEANINGS: dict[Operation, str] = {
    Operation.INSERT: (
        "a blind append: SQL INSERT or append mode, without a subquery or condition on the table "
        "itself; an INSERT that reads the table behaves like MERGE"
    ),
    Operation.UPDATE: "UPDATE of rows",
    Operation.DELETE: "DELETE of rows",
    Operation.MERGE: "MERGE INTO, and any INSERT that reads its target table",
    Operation.OPTIMIZE: "compaction without ZORDER BY",
    Operation.OPTIMIZE_ZORDER: "OPTIMIZE … ZORDER BY",
    Operation.REORG: (
        "REORG TABLE … APPLY (PURGE), which rewrites files; REORG … APPLY (UPGRADE UNIFORM …) is a "
        "PROTOCOL CHANGE"
    ),
    Operation.METADATA_CHANGE: (
        "a change of properties, schema, constraints or isolation level, including writes that "
        "evolve the schema"
    ),
    Operation.PROTOCOL_CHANGE: "a feature added or dropped, or versions raised",
    Operation.RESTORE: "RESTORE TABLE to an earlier version or time",
    Operation.STREAMING_APPEND: "one batch of a streaming query in append mode",
}

_ALIASES: dict[str, Operation] = {
    "append": Operation.INSERT,
    "blind append": Operation.INSERT,
    "insert into": Operation.INSERT,
    "delete from": Operation.DELETE,
    "merge into": Operation.MERGE,
    "compaction": Operation.OPTIMIZE,
    "zorder": Operation.OPTIMIZE_ZORDER,
    "zorder by": Operation.OPTIMIZE_ZORDER,
    "optimize zorder by": Operation.OPTIMIZE_ZORDER,
    "purge": Operation.REORG,
    "reorg table": Operation.REORG,
    "metadata": Operation.METADATA_CHANGE,
    "alter table": Operation.METADATA_CHANGE,
    "protocol": Operation.PROTOCOL_CHANGE,
    "drop feature": Operation.PROTOCOL_CHANGE,
    "restore table": Operation.RESTORE,
    "truncate": Operation.DELETE,
    "truncate table": Operation.DELETE,
    "streaming": Operation.STREAMING_APPEND,
    "streaming write": Operation.STREAMING_APPEND,
}


def find_operation(text: str) -> tuple[Operation | None, tuple[str, ...]]:
    """Find an operation by name, or return None with the nearest names."""
    wanted = " ".join(text.replace("-", " ").replace("_", " ").casefold().split())
    named: dict[str, Operation] = {name.casefold(): name for name in Operation}
    found = named.get(wanted) or _ALIASES.get(wanted)
    if found is not None:
        return found, ()
    import difflib

    near = difflib.get_close_matches(wanted, [*named, *_ALIASES], n=3, cutoff=0.5)
    suggestions = dict.fromkeys(str(named.get(name) or _ALIASES[name]) for name in near)
    return None, tuple(suggestions)


class Conflict(StrEnum):
    """Whether two concurrent operations conflict; `maybe` depends on `Cell.when`.

    `wrong`: they conflict without any error, and the table has incorrect rows afterwards.
    """

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"
    WRONG = "wrong"


class Cell(NamedTuple):
    """The effect on `operation` if `against` was committed while it ran."""

    operation: Operation
    """the transaction that commits last, so it may lose"""
    against: Operation
    """the transaction that was committed concurrently"""
    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    """exceptions the loser may get; empty if there is no conflict"""
    when: str
    avoid: str
    source: str

    def __repr__(self) -> str:
        return f"<Cell {self.operation} against {self.against}: {self.conflict}>"


class CellContent(NamedTuple):
    """The content of a cell, without its operations."""

    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    when: str
    avoid: str
    source: str
