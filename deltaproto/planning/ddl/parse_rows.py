"""Parse INSERT, UPDATE, DELETE, MERGE and TRUNCATE: their effect and target table.

Source: Spark's `SqlBaseParser`; the Databricks page "Isolation levels and write conflicts" for
the definition of a blind append.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.ddl.cursor import Cursor, UnreadableError
from deltaproto.planning.ddl.rows import RowClauses, RowStatement
from deltaproto.planning.ddl.user_statement import RefusedStatement, StatementEffect
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Path

_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION")


class ParsedRowStatement(NamedTuple):
    """A statement that changes rows."""

    effect: StatementEffect
    target: Path
    operation: Operation


def parse_row_statement(cursor: Cursor) -> ParsedRowStatement | None:
    """Read the statement; None if it does not change rows.

    Raises:
        UnreadableError: if its target table cannot be determined.
    """
    if cursor.keys(1) in (("WITH",), ("FROM",)):
        _skip_query(cursor)
    word = cursor.one_of("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE")
    evolves = bool(word) and cursor.take(*_EVOLUTION)
    match word:
        case "INSERT":
            return _parse_insert(cursor, evolves)
        case "UPDATE":
            target = cursor.path()
            rows = RowStatement(
                "UPDATE", adds=True, removes=True, words=_parse_row_clauses(cursor, target)
            )
            return ParsedRowStatement(rows, target, Operation.UPDATE)
        case "DELETE":
            cursor.expect("FROM")
            target = cursor.path()
            rows = RowStatement("DELETE", removes=True, words=_parse_row_clauses(cursor, target))
            return ParsedRowStatement(rows, target, Operation.DELETE)
        case "MERGE":
            cursor.expect("INTO")
            rows, operation = _parse_merge(cursor, evolves), Operation.MERGE
        case "TRUNCATE":
            cursor.expect("TABLE")
            return _parse_truncate(cursor)
        case _:
            return None
    return ParsedRowStatement(rows, cursor.path(), operation)


def _skip_query(cursor: Cursor) -> None:
    """Skip a query before the statement itself."""
    start = cursor.at
    cursor.until("INSERT", "UPDATE", "DELETE", "MERGE")
    if cursor.done:
        cursor.at = start


def _parse_insert(cursor: Cursor, evolves: bool) -> ParsedRowStatement:
    overwrite = cursor.one_of("OVERWRITE", "INTO") == "OVERWRITE"
    cursor.take("TABLE")
    target = cursor.path()
    rest = cursor.tokens[cursor.at :]
    words = [token.key for token in rest[:40]]
    replaces = overwrite or "REPLACE" in words[:3]
    # VALUES always adds rows; a query may return none.
    sure = "VALUES" in words and "SELECT" not in words
    operation = Operation.DELETE if replaces else Operation.INSERT
    if not replaces and _mentions_target(cursor, target, cursor.at):
        # It reads its target table.
        operation = Operation.MERGE
    rows = RowStatement("WRITE", True, replaces, sure, evolves, _parse_insert_clauses(cursor))
    return ParsedRowStatement(rows, target, operation)


def _parse_row_clauses(cursor: Cursor, target: Path) -> RowClauses:
    """Read the clauses of an UPDATE or DELETE after the table's name."""
    words = RowClauses((target[-1],))
    if (
        cursor.take("AS")
        or cursor.key not in ("SET", "WHERE", "")
        or (not cursor.done and cursor.tokens[cursor.at].quoted)
    ):
        words = RowClauses((cursor.name(),))
    try:
        if cursor.take("SET"):
            words = words._replace(sets=tuple(_parse_assignments(cursor)))
        where = cursor.until() if cursor.take("WHERE") else ""
    except UnreadableError:
        return words._replace(opaque=True)
    return words._replace(where=where, opaque=not cursor.done)


def _parse_assignments(cursor: Cursor) -> Iterator[tuple[Path, str]]:
    while True:
        path = cursor.path()
        cursor.expect("=")
        yield path, cursor.until(",", "WHERE")
        if not cursor.take(","):
            return


def _parse_insert_clauses(cursor: Cursor) -> RowClauses:
    """Read the columns and rows of an INSERT, if there is nothing else."""
    words = RowClauses()
    try:
        if cursor.keys(1) == ("(",) and cursor.keys(2) != ("(", "SELECT"):
            words = words._replace(columns=tuple(cursor.listed(cursor.path)))
        if not cursor.take("VALUES"):
            return words._replace(opaque=True)
        rows = [tuple(_parse_row(cursor))]
        while cursor.take(","):
            rows.append(tuple(_parse_row(cursor)))
    except UnreadableError:
        return words._replace(opaque=True)
    return words._replace(values=tuple(rows), opaque=not cursor.done)


def _parse_row(cursor: Cursor) -> list[str]:
    if cursor.keys(1) != ("(",):
        return [cursor.until(",")]
    return cursor.listed(lambda: cursor.until(",", ")"))


def _mentions_target(cursor: Cursor, target: Path, start: int) -> bool:
    """Return True if the target table's name occurs again."""
    wanted = target[-1].casefold()
    before = cursor.tokens[: max(start - 2 * len(target), 0)]
    others = [*before, *cursor.tokens[start:]]
    return any(not token.string and token.value.casefold() == wanted for token in others)


def _parse_merge(cursor: Cursor, evolves: bool) -> RowStatement:
    keys = [token.key for token in cursor.tokens]
    actions = {keys[at + 1] for at in range(len(keys) - 1) if keys[at] == "THEN"}
    removes = bool(actions & {"UPDATE", "DELETE"}) or not actions
    return RowStatement("MERGE", adds=True, removes=removes, evolves=evolves)


def _parse_truncate(cursor: Cursor) -> ParsedRowStatement:
    target = cursor.path()
    effect: StatementEffect = RowStatement("TRUNCATE", removes=True, words=RowClauses())
    if cursor.take("PARTITION"):
        effect = RefusedStatement(
            Refusal(
                "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
                "TRUNCATE always deletes the whole table",
                "use DELETE … WHERE",
            )
        )
    return ParsedRowStatement(effect, target, Operation.DELETE)
