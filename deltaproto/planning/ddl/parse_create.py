"""Parse CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE.

Source: Spark's `SqlBaseParser` (`createTableClauses`) and Delta's `DeltaSqlBase` grammar.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.create import CreateTable
from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.parse_alter import parse_properties
from deltaproto.planning.ddl.types import ColumnDefinition, parse_column_definition
from deltaproto.planning.ddl.user_statement import RefusedStatement, StatementEffect
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import quoted_path

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
            Refusal("PARSE_SYNTAX_ERROR", "only Databricks supports deep clones", remedy)
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
