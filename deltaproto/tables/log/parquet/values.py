"""Values of the encodings PLAIN and RLE (booleans), and indices into a dictionary.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md
"""

from __future__ import annotations

import struct
from typing import Any

from deltaproto.tables.log.parquet.errors import NotSimple
from deltaproto.tables.log.parquet.levels import runs
from deltaproto.tables.log.parquet.schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    Leaf,
)

_FORMATS = {INT32: ("i", 4), INT64: ("q", 8), FLOAT: ("f", 4), DOUBLE: ("d", 8)}


def plain(data: bytes, pos: int, leaf: Leaf, count: int) -> list[Any]:
    """`count` values, which must fill `data` from `pos` on exactly.

    Raises:
        NotSimple: they do not, or do not fit the type of `leaf`.
        UnicodeDecodeError: a string that is not UTF-8.
    """
    size = len(data) - pos
    if leaf.type == BYTE_ARRAY:
        return _strings(data, pos, count)
    if leaf.type == BOOLEAN:
        if size != (count + 7) // 8:
            raise NotSimple("another number of values than announced")
        return [bool(data[pos + (index >> 3)] >> (index & 7) & 1) for index in range(count)]
    letter, width = _FORMATS[leaf.type]
    if size != count * width:
        raise NotSimple("another number of values than announced")
    found = list(struct.unpack_from(f"<{count}{letter}", data, pos))
    if leaf.bits in (8, 16):
        limit = 1 << leaf.bits - 1
        if any(not -limit <= value < limit for value in found):
            raise NotSimple("an integer out of the range of its type")
    return found


def booleans(data: bytes, pos: int, count: int) -> list[Any]:
    """`count` run-length encoded booleans, with their length in front.

    Raises:
        NotSimple: they do not fill `data` from `pos` on exactly.
    """
    size = int.from_bytes(data[pos : pos + 4], "little")
    if pos + 4 + size != len(data):
        raise NotSimple("values of another size than announced")
    found = _expanded(data, pos + 4, 1, count)
    if any(value > 1 for value in found):
        raise NotSimple("a boolean that is neither 0 nor 1")
    return [value == 1 for value in found]


def indexed(data: bytes, pos: int, dictionary: list[Any], count: int) -> list[Any]:
    """`count` values by their indices in `dictionary`, with the width of those in front.

    Raises:
        NotSimple: the indices do not fill `data` from `pos` on exactly.
        IndexError: an index beyond the dictionary.
    """
    return [dictionary[index] for index in _expanded(data, pos + 1, data[pos], count)]


def _expanded(data: bytes, pos: int, width: int, count: int) -> list[int]:
    found = []
    for length, value in runs(data, pos, len(data), width, count):
        found += [value] * length
    return found


def _strings(data: bytes, pos: int, count: int) -> list[Any]:
    found = []
    end = len(data)
    for _ in range(count):
        start = pos + 4
        size = int.from_bytes(data[pos:start], "little")
        pos = start + size
        if pos > end:
            raise NotSimple("a string beyond the end")
        found.append(data[start:pos].decode())
    if pos != end:
        raise NotSimple("another number of values than announced")
    return found
