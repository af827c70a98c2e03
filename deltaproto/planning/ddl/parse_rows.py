"""Parse INSERT, UPDATE, DELETE, MERGE and TRUNCATE: their effect and target table.

Source: Spark's `SqlBaseParser`; the Databricks page "Isolation levels and write conflicts" for
the definition of a blind append.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.ddl.cursor import Cursor, UnreadableError
from deltaproto.planning.ddl.maintenance import Comment, Optimize, PurgeWhere, Vacuum
from deltaproto.planning.ddl.restore import Restore
from deltaproto.planning.ddl.rows import RowClauses, RowStatement
from deltaproto.planning.ddl.user_statement import (
    NoEffect,
    NotUnderstood,
    PlannerStatement,
    RefusedStatement,
    StatementEffect,
    UpgradeUniform,
)
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Path
from deltaproto.planning.statement import Purge

_NOTHING = ["(", ")"]
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
    after_values = words.index("VALUES") + 1 if "VALUES" in words else 0
    if _NOTHING in (words[:2], words[after_values : after_values + 2]):
        error, remedy = "PARSE_SYNTAX_ERROR", "list a value for each column"
        refusal = Refusal(
            error, "() is neither a list of columns nor a row", remedy, on_databricks=True
        )
        refused = RefusedStatement(refusal)
        return ParsedRowStatement(refused, target, Operation.INSERT)
    unsupported = _refuse_replace(words) if "REPLACE" in words and not overwrite else None
    if unsupported is not None:
        return ParsedRowStatement(unsupported, target, Operation.DELETE)
    # VALUES always adds rows; a query may return none.
    sure = "VALUES" in words and "SELECT" not in words
    reads = not replaces and _mentions_target(cursor, target, cursor.at)
    operation = Operation.MERGE if reads else Operation.INSERT
    clauses = _parse_insert_clauses(cursor)
    rows = RowStatement("WRITE", True, replaces, sure, evolves, reads, clauses)
    return ParsedRowStatement(rows, target, Operation.DELETE if replaces else operation)


def _refuse_replace(words: list[str]) -> RefusedStatement | None:
    """Refuse REPLACE after columns, and REPLACE USING and ON, which only Databricks supports."""
    at = words.index("REPLACE")
    if words[0] == "(" and words[at - 1] == ")" and words.index(")") == at - 1:
        message = "a list of columns and REPLACE exclude each other"
        return RefusedStatement(Refusal("PARSE_SYNTAX_ERROR", message, "remove the columns"))
    if words[at + 1 : at + 2] not in (["USING"], ["ON"]):
        return None
    return RefusedStatement(
        Refusal(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION",
            f"INSERT … REPLACE {words[at + 1]} is a statement of Databricks",
            "use REPLACE WHERE or MERGE",
        ),
        databricks=f"INSERT … REPLACE {words[at + 1]}",
    )


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
        cursor.take("BY", "NAME")
        if cursor.take("REPLACE", "WHERE"):
            words = words._replace(where=cursor.until("VALUES", "SELECT", "WITH", "FROM", "TABLE"))
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


_HOURS = re.compile(r"-?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})(e[+-]?[0-9]{1,2})?", re.I)
MAINTENANCE_KEYWORDS = (
    ("OPTIMIZE",),
    ("VACUUM",),
    ("REORG", "TABLE"),
    ("RESTORE", "TABLE"),
    ("RESTORE",),
    ("ANALYZE", "TABLE"),
    ("COMMENT", "ON", "TABLE"),
    ("CONVERT", "TO", "DELTA"),
    ("GENERATE",),
    ("DROP", "TABLE", "IF", "EXISTS"),
    ("DROP", "TABLE"),
)


def parse_maintenance_statement(
    cursor: Cursor, start: tuple[str, ...]
) -> PlannerStatement | StatementEffect:
    """Parse what follows the table's name.

    Raises:
        UnreadableError: if the form is not supported.
    """
    match start[0]:
        case "OPTIMIZE":
            return _parse_optimize(cursor)
        case "VACUUM":
            return _parse_vacuum(cursor)
        case "REORG":
            return _parse_reorg(cursor)
        case "RESTORE":
            cursor.take("TO")
            return Restore(cursor.until().lower())
        case "ANALYZE":
            of_delta = cursor.take("COMPUTE", "DELTA")
            cursor.until()
            if of_delta:
                why = "only Databricks computes Delta statistics with ANALYZE"
                return RefusedStatement(
                    Refusal("PARSE_SYNTAX_ERROR", why, "remove it"),
                    databricks="ANALYZE … COMPUTE DELTA STATISTICS",
                )
            error = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
            return RefusedStatement(
                Refusal(
                    error,
                    "Spark does not support ANALYZE for Delta tables",
                    "remove it",
                    on_databricks=False,
                ),
                databricks="ANALYZE",
            )
        case "COMMENT":
            cursor.expect("IS")
            cursor.next()
            return Comment()
        case "DROP":
            return NotUnderstood("it drops the table, which ends the plan")
    cursor.until()
    return NoEffect()


def _parse_optimize(cursor: Cursor) -> Optimize:
    full = cursor.take("FULL")
    where = cursor.until("ZORDER") if cursor.take("WHERE") else ""
    zorder = []
    if cursor.take("ZORDER", "BY"):
        if cursor.keys(1) == ("(",):
            zorder = cursor.listed(cursor.path)
        else:
            zorder = [cursor.path()]
            while cursor.take(","):
                zorder.append(cursor.path())
    return Optimize(where, tuple(zorder), full)


def _parse_vacuum(cursor: Cursor) -> Vacuum:
    found = Vacuum()
    while word := cursor.one_of("LITE", "FULL", "RETAIN", "DRY", "USING"):
        match word:
            case "RETAIN":
                text = cursor.until("HOURS")
                cursor.expect("HOURS")
                number = _HOURS.fullmatch(text.strip())
                if number is None:
                    raise cursor.unreadable("a number of hours was expected")
                found = found._replace(hours=float(number[0]))
            case "DRY":
                cursor.expect("RUN")
                found = found._replace(dry=True)
            case "USING":
                cursor.expect("INVENTORY")
                cursor.until("LITE", "FULL", "RETAIN", "DRY")
    return found


def _parse_reorg(cursor: Cursor) -> PlannerStatement | StatementEffect:
    where = cursor.until("APPLY") if cursor.take("WHERE") else ""
    cursor.expect("APPLY", "(")
    if cursor.take("PURGE", ")"):
        return PurgeWhere(where) if where else Purge()
    cursor.expect("UPGRADE", "UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
    version = cursor.number()
    cursor.expect(")", ")")
    return UpgradeUniform(version)
