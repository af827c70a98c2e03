"""Parse a script into statements for plans. Never raises and never guesses.

Supported: all forms of ALTER TABLE that Delta accepts, CREATE and REPLACE TABLE, row changes,
maintenance, queries. Queries are skipped, so a simple tokenizer is enough.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.statement_prefix import by_prefix
from deltaproto.planning.ddl.cursor import Cursor, Piece, UnreadableError, split
from deltaproto.planning.ddl.parse_alter import read_alter
from deltaproto.planning.ddl.parse_create import read_create, read_header
from deltaproto.planning.ddl.parse_maintenance import STARTS, read_upkeep
from deltaproto.planning.ddl.parse_rows import read_rows
from deltaproto.planning.ddl.user_statement import (
    Known,
    Nothing,
    NotUnderstood,
    Parsed,
    Refused,
    StatementEffect,
    UserStatement,
)
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Path
from deltaproto.planning.statement import Statement
from deltaproto.sql.tokens import tokens

_READING = frozenset(
    {"SELECT", "VALUES", "DESCRIBE", "DESC", "SHOW", "EXPLAIN", "USE", "REFRESH", "LIST", "DECLARE"}
    | {"CACHE", "UNCACHE", "CLEAR", "WITH", "FROM", "("}
)
_DELTA = "spark.databricks.delta."


class _Read(NamedTuple):
    what: Known | StatementEffect
    target: Path | None = None
    span: tuple[int, int] | None = None
    """position of the table's name, if it may be replaced"""
    operation: Operation | None = None


def parse(sql: str) -> list[Parsed]:
    """Parse a script into its statements; empty if it has none."""
    return [_parsed(piece) for piece in split(sql)]


def _parsed(piece: Piece) -> Parsed:
    cursor = Cursor(piece.text)
    try:
        read = _read(cursor)
        cursor.end()
    except UnreadableError as error:
        read = _Read(NotUnderstood(str(error)))
    except RecursionError:
        read = _Read(NotUnderstood("the statement is nested too deeply"))
    text = piece.text
    head, tail = (text, None)
    if read.span is not None:
        head, tail = text[: read.span[0]], text[read.span[1] :]
    what = read.what
    statement: Statement = what if isinstance(what, Known) else UserStatement(head, tail, what)
    return Parsed(statement, text, piece.line, read.target, read.operation)


def _read(cursor: Cursor) -> _Read:
    if cursor.take("ALTER", "TABLE"):
        if cursor.take("IF", "EXISTS"):
            cursor.until()
            error = "PARSE_SYNTAX_ERROR"
            refusal = Refusal(error, "ALTER TABLE does not support IF EXISTS", "remove IF EXISTS")
            return _Read(Refused(refusal))
        target, span = _target(cursor)
        return _Read(read_alter(cursor), target, span, _operation(cursor.sql))
    header = read_header(cursor)
    if header is not None:
        target, _ = _target(cursor)
        by_path = len(target) == 2 and target[0].lower() == "delta" and "/" in target[1]
        created = read_create(cursor, header, by_path=by_path)
        ignored = header.if_not_exists and not header.replace
        return _Read(created, target, None, None if ignored else _operation(cursor.sql))
    for start in STARTS:
        if cursor.take(*start):
            target, span = _target(cursor)
            return _Read(read_upkeep(cursor, start), target, span, _operation(cursor.sql))
    rows = read_rows(cursor)
    if rows is not None:
        cursor.until()
        return _Read(rows.effect, rows.target, None, rows.operation)
    return _reading(cursor)


def _target(cursor: Cursor) -> tuple[Path, tuple[int, int]]:
    """Read the table's name or path and its position."""
    first = cursor.at
    if not cursor.done and cursor.tokens[first].string:
        target: Path = ("delta", cursor.string())
    else:
        target = cursor.path()
    return target, (cursor.tokens[first].start, cursor.tokens[cursor.at - 1].end)


def _reading(cursor: Cursor) -> _Read:
    """Read statements that change no table."""
    word = cursor.key
    if word == "SET" and not _of_delta(cursor):
        cursor.until()
        return _Read(Nothing())
    if word in _READING:
        cursor.until()
        return _Read(Nothing())
    words = cursor.keys(5)
    if word == "CREATE" and "VIEW" in words and "TABLE" not in words:
        cursor.until()
        return _Read(Nothing())
    what = "a setting of Delta" if word == "SET" else f"{cursor.tokens[0].text[:40]} is unsupported"
    raise UnreadableError(what)


def _of_delta(cursor: Cursor) -> bool:
    """Return True if SET changes a Delta setting, which can affect statements."""
    named = "".join(token.value for token in cursor.tokens[1:])
    return named.lower().startswith(_DELTA)


def _operation(sql: str) -> Operation | None:
    known = by_prefix(tokens(sql))
    return None if known is None else known.operation
