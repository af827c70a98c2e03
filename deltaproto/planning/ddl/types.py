"""Parse column types and column definitions in SQL.

Source: Spark's `DataTypeAstBuilder` and `colDefinition`; type names as in the Delta log.
"""

from __future__ import annotations

import calendar
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from deltaproto.planning.ddl.cursor import Cursor, UnreadableError
from deltaproto.planning.predict.collations import has_collation
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Path, Struct, Type
from deltaproto.planning.predict.type_widening import decimal_parts, is_string_type
from deltaproto.protocol.decoding import parse_whole

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
_MOST_DIGITS = 38
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


def _is_decimal_of_spark(precision: str, scale: str) -> bool:
    """Return True if Spark has a decimal with these numbers (`DecimalType`)."""
    digits, places = parse_whole(precision), parse_whole(scale)
    return digits is not None and places is not None and places <= digits <= _MOST_DIGITS


def _parse_atomic_type(cursor: Cursor, key: str) -> str:
    if key in _NAMES:
        return _NAMES[key]
    numbers = cursor.listed(cursor.next) if cursor.keys(1) == ("(",) else []
    texts = [token.text for token in numbers]
    if key in _DECIMAL:
        precision, scale = [*texts, "10", "0"][:2] if not texts else [*texts, "0"][:2]
        if not _is_decimal_of_spark(precision, scale):
            raise UnreadableError(f"no type {key}({', '.join(texts)})")
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


_BITS = {"byte": 32, "short": 32, "integer": 32, "long": 64}
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9a-fA-F]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = r"[0-9]{2}:[0-9]{2}"
_SECONDS = r":[0-9]{2}"
_LOCAL = re.compile(rf"{_DATE.pattern}( {_TIME}{_SECONDS}|T{_TIME}({_SECONDS}(\.[0-9]{{0,9}})?)?)")
_ZONED = re.compile(
    rf"({_DATE.pattern}T{_TIME}({_SECONDS}(\.[0-9]{{0,9}})?)?)(Z|[+-]{_TIME}({_SECONDS})?)(\[.+\])?"
)


def is_literal(default: str, kind: Type) -> bool:
    """Return True if Delta treats this SQL default as a literal of the column's type."""
    if not isinstance(kind, Atomic):
        return False
    name = kind.name
    if name in _BITS:
        return _is_integer(default.rstrip("lL") if name == "long" else default, _BITS[name])
    if name in ("float", "double"):
        number = default.strip()
        return number in ("NaN", "Infinity") or bool(_NUMBER.fullmatch(number.rstrip("fFdD")))
    if (parts := decimal_parts(name)) is not None:
        return _is_decimal(default, *parts)
    if name == "boolean":
        return True
    if name == "binary":
        # Anything that is not hexadecimal is text.
        return default[:1] not in ("x", "X") or bool(_HEX.fullmatch(_unquote(default[1:]) or "-"))
    found = _unquote(default)
    if found is None:
        return False
    if name == "date":
        return bool(_DATE.fullmatch(found)) and _is_valid_time(found)
    if name in ("timestamp", "timestamp_ntz"):
        zoned = _ZONED.fullmatch(found) if name == "timestamp" else None
        local = found if zoned is None else zoned[1]
        return bool(_LOCAL.fullmatch(local)) and _is_valid_time(local)
    return is_string_type(name) and not has_collation(name)


def _is_integer(written: str, bits: int) -> bool:
    return bool(_WHOLE.fullmatch(written)) and -(2 ** (bits - 1)) <= int(written) < 2 ** (bits - 1)


def _is_decimal(written: str, precision: int, scale: int) -> bool:
    """Check precision after rounding, and scale."""
    if not _NUMBER.fullmatch(written):
        return False
    value = Context(prec=precision, rounding=ROUND_HALF_UP).create_decimal(written)
    return value.normalize() == 0 or _digits_after_point(value) <= scale


def _digits_after_point(value: Decimal) -> int:
    exponent = value.normalize(Context(prec=100)).as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def _unquote(written: str) -> str | None:
    """Return the text between quotes; None without quotes or with an open escape."""
    if len(written) < 2 or written[0] != written[-1] or written[0] not in "'\"":
        return None
    inner = written[1:-1]
    if (len(inner) - len(inner.rstrip("\\"))) % 2:
        return None
    return inner


def _is_valid_time(written: str) -> bool:
    """Return True if the date and time are valid."""
    day, clock = written[:10], written[11:].partition(".")[0]
    year, month, of_month = (int(part) for part in day.split("-"))
    if not 1 <= month <= 12 or not 1 <= of_month <= calendar.monthrange(year or 4, month)[1]:
        return False
    parts = [int(part) for part in clock.split(":")] if clock else []
    return all(part < most for part, most in zip(parts, (24, 60, 60), strict=False))
