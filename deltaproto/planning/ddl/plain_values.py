"""Literals of numbers and dates.

Source: Spark's `SqlBaseParser` and `SqlBaseLexer`.
"""

from __future__ import annotations

import math
import re

from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.operators import RefusedError, Value, castable
from deltaproto.planning.schema import Atomic

_SUFFIXES = {"L": "long", "S": "short", "Y": "byte", "D": "double", "F": "float"}
_NUMBER = re.compile(r"(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:E[+-]?[0-9]{1,4})?")


def number(cursor: Cursor) -> Value:
    """The number that comes next.

    Raises:
        UnreadableError: when it is not written as one that is known here.
        RefusedError: when it is too large.
    """
    start = cursor.tokens[cursor.at].start
    end = start
    # The tokens of a number stand side by side: 1 . 5 e - 3 D
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
        raise cursor.unreadable("this number is not known")
    if "E" in digits:
        kind = suffix or "double"
    elif "." in digits:
        kind = suffix or "decimal"
    else:
        kind = suffix or _whole(digits)
    if kind in ("decimal", "double", "float"):
        if kind != "decimal" and math.isinf(float(digits)):
            raise RefusedError("INVALID_NUMERIC_LITERAL_RANGE", f"{digits} is too large")
        return Value(Atomic(kind), digits)
    return Value(Atomic(kind), digits)


def typed(key: str, text: str) -> Value:
    """A literal with its type before it, such as `DATE '2026-01-31'`.

    Raises:
        RefusedError: when there is no such date.
    """
    kind = Atomic("binary" if key == "X" else key.lower())
    if key == "DATE" and not castable(text, kind):
        raise RefusedError("INVALID_TYPED_LITERAL", f"{text} is not a date")
    return Value(kind, text)


def _whole(digits: str) -> str:
    if len(digits) > 19:
        return "decimal"
    number = int(digits) if digits.isdecimal() else 0
    return "integer" if number < 2**31 else "long" if number < 2**63 else "decimal"
