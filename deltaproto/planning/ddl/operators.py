"""Value types, number and date literals, and the results of operators."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.types import is_literal
from deltaproto.planning.predict.collations import has_collation
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Array, Atomic, Map, Struct, Type, is_same_name

BOOLEAN, STRING, VOID, DATE = (Atomic(name) for name in ("boolean", "string", "void", "date"))
INTERVAL = Atomic("interval")
MISMATCH = "DATATYPE_MISMATCH."
_INTEGER, _DOUBLE = Atomic("integer"), Atomic("double")
_INTEGERS = tuple(Atomic(name) for name in ("byte", "short", "integer", "long"))
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


class RefusedError(Exception):
    """Spark refuses the expression. This error never leaves the expression modules.

    Attributes:
        refusal: the error class and the reason.
    """

    def __init__(self, error: str, message: str, remedy: str = "correct the expression") -> None:
        super().__init__(message)
        self.refusal = Refusal(error, message, remedy)


class Value(NamedTuple):
    """A value in an expression."""

    type: Type | None
    """None: unknown"""
    literal: str | None = None
    """its text if it is a plain literal; strings without quotes"""


UNKNOWN = Value(None)


def is_numeric(kind: Type | None) -> bool:
    """Return True for numeric types."""
    return isinstance(kind, Atomic) and kind.name.startswith(_NUMBERS)


def is_integer(kind: Type | None) -> bool:
    """Return True for whole numbers."""
    return kind in _INTEGERS


def is_string(kind: Type | None) -> bool:
    """Return True for string types."""
    return isinstance(kind, Atomic) and kind.name.startswith(("string", "char", "varchar"))


def is_date_or_timestamp(kind: Type | None) -> bool:
    """Return True for dates and timestamps."""
    return isinstance(kind, Atomic) and kind.name.startswith(("date", "timestamp"))


def cast_value(value: Value, kind: Type) -> Value:
    """Cast a value, if the cast is known to be valid."""
    source = value.type
    if (is_numeric(source) and kind == DATE) or (source == DATE and is_numeric(kind)):
        error = f"{MISMATCH}CAST_WITH_FUNC_SUGGESTION"
        raise RefusedError(error, "numbers and dates cannot be cast to each other")
    if isinstance(kind, Atomic) and has_collation(kind.name):
        # Whether two collations can meet depends on the rest of the expression.
        return UNKNOWN
    if kind == Atomic("binary") and not is_string(source):
        return UNKNOWN
    literal = value.literal if is_string(source) else None
    if literal is not None and isinstance(kind, Atomic) and not is_castable(literal, kind):
        return UNKNOWN
    plain = isinstance(source, Atomic) and isinstance(kind, Atomic)
    same_family = source in (VOID, kind) or is_string(kind) or is_string(source)
    both = any(all(map(family, (source, kind))) for family in (is_numeric, is_date_or_timestamp))
    return Value(kind if plain and (same_family or both) else None)


def field_of(value: Value, name: str) -> Value:
    """Access a field of a struct, or use a dot after another type."""
    match value.type:
        case None:
            return UNKNOWN
        case Struct(columns):
            found = next((c for c in columns if is_same_name(c.name, name)), None)
            if found is None:
                raise RefusedError("FIELD_NOT_FOUND", f"the field {name} does not exist")
            return Value(found.type)
        case Map(_, kind):
            return Value(kind)
        case Array(Struct(columns)):
            found = next((c for c in columns if is_same_name(c.name, name)), None)
            if found is None:
                raise RefusedError("FIELD_NOT_FOUND", f"the field {name} does not exist")
            return Value(Array(found.type))
        case Array():
            error = f"{MISMATCH}UNEXPECTED_INPUT_TYPE"
            raise RefusedError(error, f"an array has no field {name}")
        case Atomic("variant"):
            return UNKNOWN
    raise RefusedError("INVALID_EXTRACT_BASE_FIELD_TYPE", f"this type has no {name}")


def element_of(value: Value, index: Value) -> Value:
    """Return an element of an array or a map, if the index certainly has the required type."""
    match value.type:
        case Array(kind) if is_integer(index.type) and kind != VOID:
            return Value(kind)
        case Array() if index.type == BOOLEAN or is_string(index.type):
            error = f"{MISMATCH}UNEXPECTED_INPUT_TYPE"
            raise RefusedError(error, "the index of an array is an integer")
        case Map(key, kind) if key == index.type:
            return Value(kind)
    return UNKNOWN


def common_type(values: list[Value]) -> Value:
    """Return the common type of several values."""
    kinds = {each.type for each in values if each.type != VOID}
    if len(kinds) == 1:
        return Value(kinds.pop())
    return Value(VOID) if not kinds else UNKNOWN


def apply_logical(one: Value, other: Value) -> Value:
    """Combine values with AND or OR."""
    kinds = (one.type, other.type)
    if None in kinds or any(is_string(kind) for kind in kinds):
        return UNKNOWN
    if any(kind not in (BOOLEAN, VOID) for kind in kinds):
        error = "BINARY_OP_WRONG_TYPE" if kinds[0] == kinds[1] else "BINARY_OP_DIFF_TYPES"
        raise RefusedError(MISMATCH + error, "AND and OR require booleans")
    return Value(BOOLEAN)


def is_condition(value: Value) -> bool:
    """Return True if Spark certainly takes the value as a condition of IF or CASE.

    Raises:
        RefusedError: if it certainly does not.
    """
    if value.type in (None, VOID) or is_string(value.type):
        return False
    if value.type == BOOLEAN:
        return True
    raise RefusedError(f"{MISMATCH}UNEXPECTED_INPUT_TYPE", "IF and CASE require boolean conditions")


def apply_comparison(one: Value, other: Value) -> Value:
    """Compare two values; the type is unknown if failure depends on the rows."""
    kinds = one.type, other.type
    if None in kinds:
        return UNKNOWN
    if VOID in kinds:
        return Value(BOOLEAN)
    if INTERVAL in kinds:
        # Of months or of days: these cannot be compared.
        return UNKNOWN
    for text, kind in ((one, other.type), (other, one.type)):
        if is_string(text.type) and isinstance(kind, Atomic) and not is_string(kind):
            return _read_string_as(text, kind)
    same_family = (
        kinds[0] == kinds[1]
        or all(map(is_numeric, kinds))
        or all(map(is_date_or_timestamp, kinds))
        or all(map(is_string, kinds))
    )
    if not same_family:
        if any(isinstance(kind, Atomic) and kind.name == "variant" for kind in kinds):
            return UNKNOWN
        if type(kinds[0]) is type(kinds[1]) and not isinstance(kinds[0], Atomic):
            # Their elements may have a common type.
            return UNKNOWN
        error, message = "BINARY_OP_DIFF_TYPES", "values of these types cannot be compared"
        raise RefusedError(MISMATCH + error, message)
    if _is_unorderable(kinds[0]):
        error, message = "INVALID_ORDERING_TYPE", "values of this type cannot be compared"
        raise RefusedError(MISMATCH + error, message)
    return Value(BOOLEAN)


def _read_string_as(text: Value, kind: Atomic) -> Value:
    """Convert a string that is used with a value of another type."""
    if text.literal is None or kind.name in ("binary", "variant", "interval"):
        return UNKNOWN
    if not is_castable(text.literal, kind):
        raise RefusedError("CAST_INVALID_INPUT", f"'{text.literal}' is not a valid {kind.name}")
    return Value(BOOLEAN)


def _is_unorderable(kind: Type | None) -> bool:
    match kind:
        case Atomic(name):
            return name == "variant"
        case Array(element):
            return _is_unorderable(element)
        case Struct(columns):
            return any(_is_unorderable(column.type) for column in columns)
        case Map():
            return True
    return False


def apply_arithmetic(one: Value, other: Value, sign: str) -> Value:
    """Compute arithmetic and `||`."""
    kinds = one.type, other.type
    if None in kinds:
        return UNKNOWN
    if sign == "||":
        plain = all(is_string(kind) or is_numeric(kind) for kind in kinds)
        return Value(STRING if plain else None)
    if sign in ("&", "|", "^") and not all(map(is_integer, kinds)):
        return UNKNOWN
    if all(map(is_numeric, kinds)):
        if sign == "/":
            return Value(_DOUBLE)
        return Value(kinds[0] if kinds[0] == kinds[1] else _DOUBLE)
    for text, kind in ((one, other.type), (other, one.type)):
        if is_string(text.type) and is_numeric(kind):
            assert isinstance(kind, Atomic)
            return Value(kind if _read_string_as(text, kind).type is not None else None)
    if is_date_or_timestamp(kinds[0]) and sign not in ("+", "-"):
        return UNKNOWN
    if is_date_or_timestamp(kinds[0]) and (
        kinds[1] == INTERVAL or (kinds[0] == DATE and _is_small_integer(kinds[1]))
    ):
        return Value(kinds[0] if kinds[1] != INTERVAL or kinds[0] != DATE else None)
    if all(map(is_date_or_timestamp, kinds)) and sign == "-":
        return Value(INTERVAL)
    if INTERVAL in kinds or VOID in kinds:
        return UNKNOWN
    error, message = "BINARY_OP_DIFF_TYPES", f"{sign} does not support these types"
    if kinds[0] == kinds[1]:
        error = "BINARY_OP_WRONG_TYPE"
    raise RefusedError(MISMATCH + error, message)


def _is_small_integer(kind: Type | None) -> bool:
    return kind in (_INTEGER, Atomic("short"), Atomic("byte"))


def is_castable(text: str, kind: Atomic) -> bool:
    """Return True if Spark can cast this text to the type.

    Uncertain cases return True.
    """
    stripped = text.strip()
    if kind.name == "boolean":
        return stripped.lower() in ("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0")
    if kind.name in ("byte", "short", "integer", "long"):
        return is_literal(stripped, Atomic(kind.name))
    if kind.name.startswith(("float", "double", "decimal")):
        return is_literal(stripped, _DOUBLE) or not stripped.isalpha()
    if kind.name.startswith(("date", "timestamp")):
        if stripped[:4].isdecimal() and len(stripped) == 10:
            return is_literal(f"'{stripped}'", DATE)
        return bool(stripped) and (stripped[0].isdecimal() or stripped[0] in "+-")
    return True


_SUFFIXES = {"L": "long", "S": "short", "Y": "byte", "D": "double", "F": "float"}
_NUMBER = re.compile(r"(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:E[+-]?[0-9]{1,4})?")


def parse_number(cursor: Cursor) -> Value:
    """Read the next number.

    Raises:
        UnreadableError: if its form is not supported.
        RefusedError: if it is too large.
    """
    start = cursor.tokens[cursor.at].start
    end = start
    # The tokens of a number are adjacent: 1 . 5 e - 3 D
    while not cursor.done and cursor.tokens[cursor.at].start in (start, end):
        token = cursor.tokens[cursor.at]
        exponent = token.text in "+-" and cursor.sql[start:end][-1:] in ("e", "E")
        if not (token.text[0].isalnum() or token.text[0] == "." or exponent):
            break
        end = token.end
        cursor.at += 1
    text = cursor.sql[start:end].upper()
    suffix = _SUFFIXES.get(text[-1:])
    digits = text[:-1] if suffix else text
    if not _NUMBER.fullmatch(digits):
        raise cursor.unreadable("unsupported number")
    if "E" in digits:
        kind = suffix or "double"
    elif "." in digits:
        kind = suffix or "decimal"
    else:
        kind = suffix or _integer_type_name(digits)
    if kind in ("decimal", "double", "float"):
        if kind != "decimal" and math.isinf(float(digits)):
            raise RefusedError("INVALID_NUMERIC_LITERAL_RANGE", f"{digits} is too large")
        return Value(Atomic(kind), digits)
    return Value(Atomic(kind), digits)


def parse_typed_literal(key: str, text: str) -> Value:
    """Read a typed literal, such as `DATE '2026-01-31'`.

    Raises:
        RefusedError: if the date does not exist.
    """
    kind = Atomic("binary" if key == "X" else key.lower())
    if key == "DATE" and not is_castable(text, kind):
        raise RefusedError("INVALID_TYPED_LITERAL", f"{text} is not a date")
    return Value(kind, text)


def _integer_type_name(digits: str) -> str:
    if len(digits) > 19:
        return "decimal"
    number = int(digits) if digits.isdecimal() else 0
    return "integer" if number < 2**31 else "long" if number < 2**63 else "decimal"
