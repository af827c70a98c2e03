"""Type changes that Spark allows, and those that Delta records.

Source: Spark's `CheckAnalysis` and `Cast.canUpCast`, Delta Spark 4.4's `TypeWidening`; measured
with Delta Spark 4.4.0.
"""

from __future__ import annotations

import re

from deltaproto.planning.predict.collations import COLLATED, DEFAULT_COLLATION
from deltaproto.planning.predict.schema import Array, Atomic, Map, Struct, Type

_INTEGRAL = ("byte", "short", "integer", "long")
_NUMERIC = (*_INTEGRAL, "float", "double")
# Decimals that fit every value of an integer type, and decimals that fit Parquet's integers.
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_STORED = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_NUMBERED = re.compile(r"(decimal|char|varchar)\((\d{1,9})(?:,\s*(-?\d{1,9}))?\)")


def is_string_type(name: str) -> bool:
    """Return True if Delta treats a type as a string, of any length."""
    return name == "string" or name.startswith(("char(", "varchar(", COLLATED))


def is_collated(kind: Type) -> bool:
    """Return True for a string type with a written collation."""
    return isinstance(kind, Atomic) and kind.name.startswith(COLLATED)


def is_default_collation(before: Type, after: Type) -> bool:
    """Return True if strings without a written collation get the default one."""
    return not is_collated(before) and after == Atomic(DEFAULT_COLLATION)


def keeps_collation(before: Type, after: Type | None) -> bool:
    """Return True if the change has no effect: STRING without COLLATE keeps any collation."""
    plain = Atomic("string")
    if before == plain:
        return after == Atomic(DEFAULT_COLLATION)
    return after == plain and is_collated(before)


def is_accepted_change(before: Type, after: Type) -> bool:
    """Return True if Spark passes the change on to Delta."""
    if not isinstance(before, Atomic) or not isinstance(after, Atomic):
        return False
    one, other = before.name, after.name
    if is_string_type(one) and is_string_type(other):
        return _is_not_shorter(one, other)
    if one == "void":
        return True
    return one != "variant" and (_is_unbounded(other) or _is_up_cast(one, other))


def _is_unbounded(name: str) -> bool:
    return name == "string" or name.startswith(COLLATED)


def _is_not_shorter(one: str, other: str) -> bool:
    old, new = _NUMBERED.fullmatch(one), _NUMBERED.fullmatch(other)
    if new is None:
        return _is_unbounded(other)
    if old is None or (new[1] == "char" and one != other):
        return False
    return int(old[2]) <= int(new[2])


def _is_up_cast(one: str, other: str) -> bool:
    old, new = decimal_parts(one), decimal_parts(other)
    if new is not None:
        if old is None:
            old = (_DIGITS[one], 0) if one in _DIGITS else None
        return old is not None and _is_wider(old, new)
    if one in _NUMERIC and other in _NUMERIC:
        return _NUMERIC.index(one) <= _NUMERIC.index(other)
    return (one, other) in {
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_ntz", "timestamp"),
        ("long", "timestamp"),
    }


def widens(before: Type, after: Type) -> bool:
    """Return True if Delta makes and records the change with type widening."""
    if not isinstance(before, Atomic) or not isinstance(after, Atomic):
        return False
    one, other = before.name, after.name
    if not _is_up_cast(one, other):
        return False
    old, new = decimal_parts(one), decimal_parts(other)
    if new is not None:
        old = (_STORED[one], 0) if one in _STORED else old
        return old is not None and _is_wider(old, new)
    if one in _INTEGRAL:
        return other in _INTEGRAL or (other == "double" and one != "long")
    return (one, other) in {("float", "double"), ("date", "timestamp_ntz")}


def widens_in_spark_3(before: Type, after: Type) -> bool:
    """Return True if Delta also does so on Spark 3.5, whose reader supports few changes."""
    assert isinstance(before, Atomic)
    assert isinstance(after, Atomic)
    return (before.name, after.name) in {
        ("byte", "short"),
        ("byte", "integer"),
        ("short", "integer"),
    }


def widens_in_iceberg(before: Type, after: Type) -> bool:
    """Return True if Iceberg also supports the change."""
    assert isinstance(before, Atomic)
    assert isinstance(after, Atomic)
    old, new = decimal_parts(before.name), decimal_parts(after.name)
    if new is not None:
        return old is not None and old[1] == new[1]
    return after.name in _INTEGRAL or (before.name, after.name) == ("float", "double")


def collection_word(kind: Type) -> str:
    """Return Spark's name for a collection type, in which only the parts can change; else empty."""
    match kind:
        case Struct():
            return "STRUCT"
        case Array():
            return "ARRAY"
        case Map():
            return "MAP"
        case Atomic(name):
            return "INTERVAL" if name.startswith("interval") else ""


def decimal_parts(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None for others."""
    found = _NUMBERED.fullmatch(name)
    if found is None or found[1] != "decimal":
        return None
    return int(found[2]), int(found[3] or 0)


def _is_wider(old: tuple[int, int], new: tuple[int, int]) -> bool:
    return new[1] >= old[1] and new[0] - new[1] >= old[0] - old[1]
