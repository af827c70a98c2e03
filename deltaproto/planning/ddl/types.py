"""Parse column types and column definitions in SQL.

Source: Spark's `DataTypeAstBuilder` and `colDefinition`; type names as in the Delta log.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.cursor import Cursor, UnreadableError
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Path, Struct, Type

_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "BINARY": "binary",
    "VOID": "void",
    "VARIANT": "variant",
}
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_PARAMETRIC = {"CHAR": "char", "CHARACTER": "char", "VARCHAR": "varchar"}
_SPATIAL_TYPES = ("GEOMETRY", "GEOGRAPHY")


class ColumnDefinition(NamedTuple):
    """A column definition in a statement."""

    path: Path
    column: Column
    position: str = ""
    """FIRST or AFTER, if given"""
    after: str | None = None


def parse_type(cursor: Cursor) -> Type:
    """Read a type.

    Raises:
        UnreadableError: if no supported type is next.
    """
    key = cursor.next().key
    match key:
        case "STRUCT":
            if cursor.take("<", ">"):
                return Struct(())
            return Struct(tuple(cursor.listed(lambda: _parse_field(cursor), "<", ">")))
        case "ARRAY":
            return Array(cursor.listed(lambda: parse_type(cursor), "<", ">")[0])
        case "MAP":
            pair = cursor.listed(lambda: parse_type(cursor), "<", ">")
            if len(pair) != 2:
                raise cursor.unreadable("a map requires two types")
            return Map(pair[0], pair[1])
        case "STRING":
            if cursor.take("COLLATE"):
                return Atomic(f"string collate {cursor.name().upper()}")
            return Atomic("string")
        case "INTERVAL":
            words = [cursor.name()]
            if cursor.take("TO"):
                words += ["to", cursor.name()]
            return Atomic(f"interval {' '.join(words).lower()}")
    return Atomic(_parse_atomic_type(cursor, key))


def _parse_atomic_type(cursor: Cursor, key: str) -> str:
    if key in _NAMES:
        return _NAMES[key]
    numbers = cursor.listed(cursor.next) if cursor.keys(1) == ("(",) else []
    texts = [token.text for token in numbers]
    if key in _DECIMAL:
        precision, scale = [*texts, "10", "0"][:2] if not texts else [*texts, "0"][:2]
        return f"decimal({precision},{scale})"
    if key in _PARAMETRIC and len(texts) == 1:
        return f"{_PARAMETRIC[key]}({texts[0]})"
    if key in _SPATIAL_TYPES:
        return f"{key.lower()}({', '.join(texts)})"
    cursor.at -= 1
    raise UnreadableError(f"unknown type {key or 'here'}")


def _parse_field(cursor: Cursor) -> Column:
    name = cursor.name()
    cursor.take(":")
    kind = parse_type(cursor)
    nullable = not cursor.take("NOT", "NULL")
    if cursor.take("COMMENT"):
        cursor.string()
    return Column(name, kind, nullable)


def parse_column_definition(cursor: Cursor) -> ColumnDefinition:
    """Read a column of ADD COLUMNS, REPLACE COLUMNS or CREATE TABLE with its options."""
    path = cursor.path()
    column = Column(path[-1], parse_type(cursor))
    position, after = "", None
    while word := cursor.one_of("NOT", "NULL", "DEFAULT", "GENERATED", "COMMENT", "FIRST", "AFTER"):
        match word:
            case "NOT":
                cursor.expect("NULL")
                column = column._replace(nullable=False)
            case "DEFAULT":
                words = ("COMMENT", "NOT", "FIRST", "AFTER", "GENERATED", ",", ")")
                column = column._replace(default=cursor.until(*words))
            case "GENERATED":
                column = _parse_generation(cursor, column)
            case "COMMENT":
                cursor.string()
            case "FIRST" | "AFTER":
                position = word
                after = cursor.name() if word == "AFTER" else None
    return ColumnDefinition(path, column, position, after)


def _parse_generation(cursor: Cursor, column: Column) -> Column:
    always = cursor.take("ALWAYS")
    if not always:
        cursor.expect("BY", "DEFAULT")
    cursor.expect("AS")
    if cursor.take("IDENTITY"):
        if cursor.keys(1) == ("(",):
            cursor.bracketed()
        # Delta identity columns are never nullable.
        return column._replace(identity=True)
    return column._replace(generated=cursor.bracketed())
