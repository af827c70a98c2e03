"""The operations of the conflict matrices, their exceptions, and one cell of a matrix."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

PAGE = 'Databricks, "Isolation levels and write conflicts", '
SQLSTATE = "2D521"
RETRY = "run the loser again, as nothing of it was committed"


class ExceptionName(StrEnum):
    """The seven, as io.delta.exceptions and delta.exceptions name them."""

    APPEND = "ConcurrentAppendException"
    DELETE_READ = "ConcurrentDeleteReadException"
    DELETE_DELETE = "ConcurrentDeleteDeleteException"
    METADATA = "MetadataChangedException"
    PROTOCOL = "ProtocolChangedException"
    TRANSACTION = "ConcurrentTransactionException"
    WRITE = "ConcurrentWriteException"


class Cause(NamedTuple):
    """One way to be hit, and how to avoid it."""

    name: str
    when: str
    avoid: str
    source: str


class ExceptionRecord(NamedTuple):
    """What is known about one exception. The likeliest cause comes first."""

    name: ExceptionName
    error_class: str
    engines: tuple[str, ...]
    summary: str
    causes: tuple[Cause, ...]


LITERALS = (
    "give both operations explicit, disjoint predicates on the partition columns, with literal "
    "values; in a MERGE, equality of source and target columns is not explicit enough, so add "
    "the literals to its condition"
)


class Operation(StrEnum):
    """What a transaction does, as far as conflicts are concerned."""

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


APPENDS = frozenset({Operation.INSERT, Operation.STREAMING_APPEND})
CHANGES = frozenset({Operation.UPDATE, Operation.DELETE, Operation.MERGE})
UNLISTED = frozenset({Operation.RESTORE})
"""operations that no documented matrix has; shown only when they are asked for"""
LISTED = tuple(operation for operation in Operation if operation not in UNLISTED)
REWRITES = frozenset({Operation.OPTIMIZE, Operation.OPTIMIZE_ZORDER, Operation.REORG})

MEANING: dict[Operation, str] = {
    Operation.INSERT: (
        "a blind append: SQL INSERT or append mode, without a subquery or condition on the table "
        "itself; an INSERT that reads the table behaves as MERGE"
    ),
    Operation.UPDATE: "UPDATE of rows",
    Operation.DELETE: "DELETE of rows",
    Operation.MERGE: "MERGE INTO, and any INSERT that reads the table it writes to",
    Operation.OPTIMIZE: "compaction without ZORDER BY",
    Operation.OPTIMIZE_ZORDER: "OPTIMIZE … ZORDER BY",
    Operation.REORG: (
        "REORG TABLE … APPLY (PURGE), which rewrites files; REORG … APPLY (UPGRADE UNIFORM …) is a "
        "PROTOCOL CHANGE"
    ),
    Operation.METADATA_CHANGE: (
        "a change of properties, schema, constraints or isolation level, also by a write that "
        "evolves the schema"
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


def search(text: str) -> tuple[Operation | None, tuple[str, ...]]:
    """The operation people mean by `text`, else None with the nearest names."""
    wanted = " ".join(text.replace("-", " ").replace("_", " ").casefold().split())
    named: dict[str, Operation] = {name.casefold(): name for name in Operation}
    found = named.get(wanted) or _ALIASES.get(wanted)
    if found is not None:
        return found, ()
    import difflib

    near = difflib.get_close_matches(wanted, [*named, *_ALIASES], n=3, cutoff=0.5)
    meant = dict.fromkeys(str(named.get(name) or _ALIASES[name]) for name in near)
    return None, tuple(meant)


class Conflict(StrEnum):
    """Whether two concurrent operations conflict; `maybe` depends on what `Cell.when` names.

    `wrong`: they do, nobody is told, and the table's rows are wrong afterwards.
    """

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"
    WRONG = "wrong"


class Cell(NamedTuple):
    """What becomes of `operation` when `against` was committed while it ran."""

    operation: Operation
    """the transaction that commits last, and so may lose"""
    against: Operation
    """the transaction that was committed meanwhile"""
    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    """what the loser may be told; empty when there is no conflict"""
    when: str
    avoid: str
    source: str


class CellContent(NamedTuple):
    """A cell without its place, as the engines' rules work it out."""

    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    when: str
    avoid: str
    source: str
