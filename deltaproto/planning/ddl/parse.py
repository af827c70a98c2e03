"""Parse a script into statements for plans. Never raises and never guesses.

Supported: all forms of ALTER TABLE that Delta accepts, CREATE and REPLACE TABLE, row changes,
maintenance, queries. Queries are skipped, so a simple tokenizer is enough.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.statement_prefix import classify_prefix
from deltaproto.planning.ddl.create import CreateTable
from deltaproto.planning.ddl.cursor import Cursor, ScriptStatement, UnreadableError, split_script
from deltaproto.planning.ddl.parse_alter import parse_alter_table, parse_properties
from deltaproto.planning.ddl.parse_rows import (
    MAINTENANCE_KEYWORDS,
    parse_maintenance_statement,
    parse_row_statement,
)
from deltaproto.planning.ddl.types import ColumnDefinition, parse_column_definition
from deltaproto.planning.ddl.user_statement import (
    NoEffect,
    NotUnderstood,
    ParsedStatement,
    PlannerStatement,
    RefusedStatement,
    StatementEffect,
    UserStatement,
)
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Path, quoted_path
from deltaproto.planning.statement import Statement
from deltaproto.sql.quoting import quote_identifier
from deltaproto.sql.tokens import tokenize

_READ_ONLY_KEYWORDS = frozenset(
    {"SELECT", "VALUES", "DESCRIBE", "DESC", "SHOW", "EXPLAIN", "USE", "REFRESH", "LIST", "DECLARE"}
    | {"CACHE", "UNCACHE", "CLEAR", "WITH", "FROM", "("}
)
_DELTA = "spark.databricks.delta."


class _ParsedTokens(NamedTuple):
    what: PlannerStatement | StatementEffect
    target: Path | None = None
    span: tuple[int, int] | None = None
    """position of the table's name, if it may be replaced"""
    operation: Operation | None = None


def parse_script(sql: str) -> list[ParsedStatement]:
    """Parse a script into its statements; empty if it has none."""
    return [_parse_statement(piece) for piece in split_script(sql)]


def _parse_statement(piece: ScriptStatement) -> ParsedStatement:
    cursor = Cursor(piece.text)
    try:
        read = _parse_tokens(cursor)
        cursor.end()
    except UnreadableError as error:
        read = _ParsedTokens(NotUnderstood(str(error)))
    except RecursionError:
        read = _ParsedTokens(NotUnderstood("the statement is nested too deeply"))
    refusal = _refuse_identifiers(cursor)
    if refusal is not None:
        read = read._replace(what=RefusedStatement(refusal), operation=None)
    text = piece.text
    head, tail = (text, None)
    if read.span is not None:
        head, tail = text[: read.span[0]], text[read.span[1] :]
    what = read.what
    statement: Statement = (
        what if isinstance(what, PlannerStatement) else UserStatement(head, tail, what)
    )
    return ParsedStatement(statement, text, piece.line, read.target, read.operation)


def _refuse_identifiers(cursor: Cursor) -> Refusal | None:
    """Refuse names with letters that are not ASCII and have no backticks.

    Delta Spark's own grammar does not know these letters, Spark's names them. SET takes any text.
    """
    found = (token.text for token in cursor.tokens if token.key and not token.text.isascii())
    name = next((text for text in found if text[0].isalnum() or len(text) > 1), None)
    keys = [token.key for token in cursor.tokens]
    if name is None or keys[0] == "SET":
        return None
    letters = all(each.isascii() or each.isalpha() for each in name)
    of_delta = keys[0] in _OF_DELTA or ("DROP", "FEATURE") in pairwise(keys)
    error = "INVALID_IDENTIFIER" if letters and not of_delta else "PARSE_SYNTAX_ERROR"
    if of_delta and "WHERE" in keys[: keys.index(name.upper())]:
        error = "DELTA_FAILED_RECOGNIZE_PREDICATE"
    return Refusal(
        error,
        f"{name} has letters that are not ASCII",
        f"put backticks around it: {quote_identifier(name)}",
    )


_OF_DELTA = ("OPTIMIZE", "REORG", "RESTORE", "VACUUM")


def _parse_tokens(cursor: Cursor) -> _ParsedTokens:
    if cursor.take("ALTER", "TABLE"):
        if cursor.take("IF", "EXISTS"):
            cursor.until()
            error = "PARSE_SYNTAX_ERROR"
            refusal = Refusal(error, "ALTER TABLE does not support IF EXISTS", "remove IF EXISTS")
            return _ParsedTokens(RefusedStatement(refusal))
        target, span = _parse_target(cursor)
        return _ParsedTokens(parse_alter_table(cursor), target, span, _find_operation(cursor.sql))
    header = parse_header(cursor)
    if header is not None:
        target, _ = _parse_target(cursor)
        by_path = len(target) == 2 and target[0].lower() == "delta" and "/" in target[1]
        created = parse_create_table(cursor, header, by_path=by_path)
        ignored = header.if_not_exists and not header.replace
        return _ParsedTokens(
            created, target, None, None if ignored else _find_operation(cursor.sql)
        )
    for start in MAINTENANCE_KEYWORDS:
        if cursor.take(*start):
            target, span = _parse_target(cursor)
            return _ParsedTokens(
                parse_maintenance_statement(cursor, start),
                target,
                span,
                _find_operation(cursor.sql),
            )
    rows = parse_row_statement(cursor)
    if rows is not None:
        cursor.until()
        return _ParsedTokens(rows.effect, rows.target, None, rows.operation)
    return _parse_read_only(cursor)


def _parse_target(cursor: Cursor) -> tuple[Path, tuple[int, int]]:
    """Read the table's name or path and its position."""
    first = cursor.at
    if not cursor.done and cursor.tokens[first].string:
        target: Path = ("delta", cursor.string())
    else:
        target = cursor.path()
    return target, (cursor.tokens[first].start, cursor.tokens[cursor.at - 1].end)


def _parse_read_only(cursor: Cursor) -> _ParsedTokens:
    """Read statements that change no table."""
    word = cursor.key
    if word == "SET" and not _is_delta_setting(cursor):
        cursor.until()
        return _ParsedTokens(NoEffect())
    if word in _READ_ONLY_KEYWORDS:
        cursor.until()
        return _ParsedTokens(NoEffect())
    words = cursor.keys(5)
    if word == "CREATE" and "VIEW" in words and "TABLE" not in words:
        cursor.until()
        return _ParsedTokens(NoEffect())
    what = "a setting of Delta" if word == "SET" else f"{cursor.tokens[0].text[:40]} is unsupported"
    raise UnreadableError(what)


def _is_delta_setting(cursor: Cursor) -> bool:
    """Return True if SET changes a Delta setting, which can affect statements."""
    named = "".join(token.value for token in cursor.tokens[1:])
    return named.lower().startswith(_DELTA)


def _find_operation(sql: str) -> Operation | None:
    known = classify_prefix(tokenize(sql))
    return None if known is None else known.operation


_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK", "UNIQUE")
_CLAUSES = ("USING", "TBLPROPERTIES", "PARTITIONED", "CLUSTER", "COMMENT", "LOCATION")


class Header(NamedTuple):
    """The part before the table's name."""

    replace: bool
    or_create: bool
    if_not_exists: bool


def parse_header(cursor: Cursor) -> Header | None:
    """Read the part before the name; None for other statements."""
    if cursor.take("CREATE", "OR", "REPLACE", "TABLE"):
        return Header(True, True, False)
    if cursor.take("REPLACE", "TABLE"):
        return Header(True, False, False)
    if cursor.take("CREATE", "TABLE"):
        return Header(False, False, cursor.take("IF", "NOT", "EXISTS"))
    return None


def parse_create_table(cursor: Cursor, header: Header, *, by_path: bool) -> StatementEffect:
    """Parse what follows the table's name.

    Raises:
        UnreadableError: if the form is not supported.
    """
    table = CreateTable(*header, by_path, (), {}, (), (), as_select=False)
    if cursor.keys(2) == ("SHALLOW", "CLONE"):
        cursor.at = len(cursor.tokens)
        return table._replace(clone=True)
    if cursor.keys(1) == ("CLONE",) or cursor.keys(2) == ("DEEP", "CLONE"):
        cursor.at = len(cursor.tokens)
        remedy = "use SHALLOW CLONE, or AS SELECT"
        return RefusedStatement(
            Refusal("PARSE_SYNTAX_ERROR", "only Databricks supports deep clones", remedy),
            databricks="a deep clone",
        )
    if cursor.take("LIKE"):
        cursor.at = len(cursor.tokens)
        return table
    if cursor.keys(1) == ("(",) and cursor.keys(2) != ("(", "SELECT"):
        table = _parse_columns(cursor, table)
    while word := cursor.one_of(*_CLAUSES):
        table = _parse_clause(cursor, table, word)
    if cursor.take("AS") or cursor.keys(1) in (("SELECT",), ("WITH",), ("(",)):
        # The query is not parsed here.
        cursor.at = len(cursor.tokens)
        table = table._replace(as_select=True)
    return table


def _parse_columns(cursor: Cursor, table: CreateTable) -> CreateTable:
    columns: list[ColumnDefinition] = []
    constrained = False

    def one() -> None:
        nonlocal constrained
        if cursor.key in _CONSTRAINTS:
            constrained = True
            cursor.until(",", ")")
        else:
            columns.append(parse_column_definition(cursor))

    cursor.listed(one)
    return table._replace(columns=tuple(columns), constrained=constrained)


def _parse_clause(cursor: Cursor, table: CreateTable, word: str) -> CreateTable:
    match word:
        case "USING":
            return table._replace(using=cursor.name().lower())
        case "TBLPROPERTIES":
            properties = parse_properties(cursor)
            if properties is None:
                raise cursor.unreadable("a property without a value")
            return table._replace(properties={**table.properties, **properties})
        case "PARTITIONED":
            cursor.expect("BY")
            return _parse_partitions(cursor, table)
        case "CLUSTER":
            cursor.expect("BY")
            if cursor.take("AUTO") or cursor.take("NONE"):
                raise cursor.unreadable("CLUSTER BY without columns")
            paths = cursor.listed(cursor.path)
            return table._replace(clustered=tuple(map(quoted_path, paths)))
        case _:
            cursor.string()
            return table


def _parse_partitions(cursor: Cursor, table: CreateTable) -> CreateTable:
    """Read column names, or definitions of additional columns."""
    names: list[str] = []
    more: list[ColumnDefinition] = []

    def one() -> None:
        at = cursor.at
        name = cursor.name()
        if cursor.keys(1) not in ((",",), (")",)):
            cursor.at = at
            more.append(parse_column_definition(cursor))
        names.append(name)

    cursor.listed(one)
    return table._replace(partitioned=tuple(names), columns=(*table.columns, *more))
