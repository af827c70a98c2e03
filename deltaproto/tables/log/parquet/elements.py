"""The elements of a Parquet schema and what their annotations mean here.

Source: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

from __future__ import annotations

from typing import Any

from deltaproto.tables.log.parquet.errors import NotSimple
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    BOOL,
    BYTE,
    I32,
    Compact,
    Wanted,
)

TYPE, REPETITION, NAME, CHILDREN, _CONVERTED, _LOGICAL = 1, 3, 4, 5, 6, 10
_ELEMENT: Wanted = {
    TYPE: I32,
    REPETITION: I32,
    NAME: BINARY,
    CHILDREN: I32,
    _CONVERTED: I32,
    _LOGICAL: {1: {}, 2: {}, 3: {}, 10: {1: BYTE, 2: BOOL}},
}
_OPTIONAL, REPEATED = 1, 2

# An annotation is a pair of name and, for integers, bits.
_CONVERTED_NAMES: dict[int, tuple[str, int]] = {
    0: ("string", 0),
    1: ("map", 0),
    2: ("map", 0),
    3: ("list", 0),
    15: ("int", 8),
    16: ("int", 16),
    17: ("int", 32),
    18: ("int", 64),
}
_LOGICAL_NAMES = {1: ("string", 0), 2: ("map", 0), 3: ("list", 0)}
_LOGICAL_INTEGER = 10

PLAIN = ("", 0)
_OTHER = ("other", 0)


def read_element(thrift: Compact) -> dict[int, Any]:
    """The element here, in the constants of this module, with a name and either type or children.

    Raises:
        NotSimple, LookupError, ValueError: it is corrupt.
    """
    element = thrift.struct(_ELEMENT)
    element[NAME].decode()
    children = element.get(CHILDREN, 0)
    if children < 0 or bool(children) == (TYPE in element):
        raise NotSimple("a schema element that is neither leaf nor group")
    return element


def is_optional(element: dict[int, Any]) -> int:
    """1 or 0: what the element adds to the definition level.

    Raises:
        NotSimple: it repeats.
    """
    repetition: int = element[REPETITION]
    if repetition not in (0, _OPTIONAL):
        raise NotSimple("a repeated field without annotation")
    return repetition


def annotation_of(element: dict[int, Any]) -> tuple[str, int]:
    """Name and bits; the old and the new way to annotate must agree."""
    converted = element.get(_CONVERTED)
    logical = element.get(_LOGICAL)
    names = []
    if converted is not None:
        names.append(_CONVERTED_NAMES.get(converted, _OTHER))
    if logical is not None:
        names.append(_logical(logical))
    if len(set(names)) > 1:
        return _OTHER
    return names[0] if names else PLAIN


def _logical(union: dict[int, Any]) -> tuple[str, int]:
    if len(union) != 1:
        return _OTHER
    ((member, value),) = union.items()
    if member == _LOGICAL_INTEGER:
        return ("int", value[1]) if value[2] else _OTHER
    return _LOGICAL_NAMES[member]
