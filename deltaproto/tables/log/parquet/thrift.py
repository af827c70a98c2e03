"""The part of Thrift's compact protocol that the metadata of a Parquet file needs.

Every read past the end of the data raises IndexError or UnsupportedParquet.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias


class UnsupportedParquet(Exception):
    """The error of a file that is corrupt or that only a full Parquet reader can read."""


_FREE_ROWS = 2_000_000
_ROWS_PER_BYTE = 4
_MOST_ROWS = 500_000_000
_FREE_BYTES = 1 << 30
_BYTES_PER_BYTE = 64
MAX_STATE_BYTES = 256 << 20
"""bytes of protocol, metaData and domainMetadata actions after decompression"""
MAX_ACTIONS = 200_000
"""protocol, metaData and domainMetadata actions in one checkpoint"""


def max_rows(size: int) -> int:
    """Return the largest number of rows of a checkpoint file of `size` bytes."""
    return min(_MOST_ROWS, _FREE_ROWS + _ROWS_PER_BYTE * size)


def max_decompressed_bytes(size: int) -> int:
    """Return the largest number of decompressed bytes in a checkpoint file of `size` bytes."""
    return _FREE_BYTES + _BYTES_PER_BYTE * size


BOOL = 1
BYTE = 3
I16 = 4
I32 = 5
I64 = 6
DOUBLE = 7
BINARY = 8
LIST = 9
SET = 10
MAP = 11
STRUCT = 12

WantedFields: TypeAlias = Mapping[int, "int | WantedFields"]
"""Field id to the required type; a mapping describes a struct and its wanted fields."""

_DEEPEST = 16


class CompactReader:
    """A position in compact protocol data."""

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield id and type of each field of the struct; the caller must consume every value."""
        field = 0
        while head := self.data[self.pos]:
            self.pos += 1
            field = field + (head >> 4) if head > 15 else self.integer()
            yield field, head & 15
        self.pos += 1

    def elements(self, kind: int) -> int:
        """Return the length of the list, whose elements must have the type `kind`."""
        size, self.pos = _elements(self.data, self.pos, kind)
        return size

    def skip(self, kind: int) -> None:
        """Skip a value of type `kind`."""
        self.pos = _skip(self.data, self.pos, kind, 0)

    def integer(self) -> int:
        """Read a zigzag integer of any width."""
        value, self.pos = _integer(self.data, self.pos)
        return value

    def binary(self) -> bytes:
        """Read bytes with a length prefix."""
        value, self.pos = _binary(self.data, self.pos)
        return value

    def struct(self, wanted: WantedFields) -> dict[int, Any]:
        """Read the wanted fields of a struct: int, bool, bytes, list or, again, such a dict."""
        found, self.pos = _read_struct(self.data, self.pos, wanted)
        return found


def _read_struct(data: bytes, pos: int, wanted: WantedFields) -> tuple[dict[int, Any], int]:
    """Return the wanted fields of a struct, and the position after it."""
    # Integers and strings are read without calls: a footer has thousands.
    found: dict[int, Any] = {}
    field = 0
    while head := data[pos]:
        pos += 1
        kind = head & 15
        if head > 15:
            field += head >> 4
        else:
            field, pos = _integer(data, pos)
        want = wanted.get(field)
        if want is None:
            if I16 <= kind <= I64:
                while data[pos] > 127:
                    pos += 1
                pos += 1
            else:
                pos = _skip(data, pos, kind, 0)
            continue
        if field in found:
            raise UnsupportedParquet("a metadata field given twice")
        if want != kind:
            if want == BOOL and kind <= 2:
                found[field] = kind == 1
                continue
            if isinstance(want, int) or kind != STRUCT:
                raise UnsupportedParquet("a metadata field of unexpected type")
            found[field], pos = _read_struct(data, pos, want)
        elif I16 <= kind <= I64:
            value = data[pos]
            pos += 1
            if value > 127:
                value, pos = _length(data, pos - 1)
            found[field] = (value >> 1) ^ -(value & 1)
        elif kind == BINARY:
            size = data[pos]
            pos += 1
            if size > 127:
                size, pos = _length(data, pos - 1)
            end = pos + size
            if end > len(data):
                raise UnsupportedParquet("a metadata string beyond the end")
            found[field] = data[pos:end]
            pos = end
        elif kind == LIST:
            found[field], pos = _binaries(data, pos)
        elif kind <= 2:
            found[field] = kind == 1
        elif kind == BYTE:
            found[field] = data[pos]
            pos += 1
        else:
            raise UnsupportedParquet("a metadata field of unexpected type")
    return found, pos + 1


def _integer(data: bytes, pos: int) -> tuple[int, int]:
    value, pos = _length(data, pos)
    return (value >> 1) ^ -(value & 1), pos


def _binary(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = _length(data, pos)
    end = pos + size
    if end > len(data):
        raise UnsupportedParquet("a metadata string beyond the end")
    return data[pos:end], end


def _binaries(data: bytes, pos: int) -> tuple[list[bytes], int]:
    size, pos = _elements(data, pos, BINARY)
    values = []
    for _ in range(size):
        length = data[pos]
        pos += 1
        if length > 127:
            length, pos = _length(data, pos - 1)
        values.append(data[pos : pos + length])
        pos += length
    if pos > len(data):
        raise UnsupportedParquet("a metadata string beyond the end")
    return values, pos


def _elements(data: bytes, pos: int, kind: int) -> tuple[int, int]:
    head = data[pos]
    pos += 1
    size = head >> 4
    if size == 15:
        size, pos = _length(data, pos)
    if head & 15 != kind:
        raise UnsupportedParquet("a metadata list of unexpected type")
    if size > len(data) - pos:
        raise UnsupportedParquet("a metadata list beyond the end")
    return size, pos


def _skip(data: bytes, pos: int, kind: int, depth: int) -> int:
    """Return the position after a value; the caller's next read detects truncated data."""
    if depth > _DEEPEST:
        raise UnsupportedParquet("metadata nested too deeply")
    if kind in (I16, I32, I64):
        while data[pos] > 127:
            pos += 1
        return pos + 1
    if kind == BINARY:
        size, pos = _length(data, pos)
        return pos + size
    if kind == STRUCT:
        return _skip_struct(data, pos, depth)
    if kind in (LIST, SET):
        head = data[pos]
        pos += 1
        size = head >> 4
        if size == 15:
            size, pos = _length(data, pos)
        kind = head & 15
        if kind <= BYTE:
            return pos + size
        if kind == STRUCT and depth < _DEEPEST:
            for _ in range(size):
                pos = _skip_struct(data, pos, depth + 1)
            return pos
        for _ in range(size):
            pos = _skip(data, pos, kind, depth + 1)
        return pos
    if kind in (1, 2):
        return pos
    if kind == BYTE:
        return pos + 1
    if kind == DOUBLE:
        return pos + 8
    raise UnsupportedParquet("metadata of a type that Parquet does not use")


def _skip_struct(data: bytes, pos: int, depth: int) -> int:
    while head := data[pos]:
        pos += 1
        if head < 16:
            while data[pos] > 127:
                pos += 1
            pos += 1
        kind = head & 15
        if I16 <= kind <= I64:
            while data[pos] > 127:
                pos += 1
            pos += 1
        elif kind == BINARY:
            size = data[pos]
            pos += 1
            if size > 127:
                size, pos = _length(data, pos - 1)
            pos += size
        elif kind > 2:
            pos = _skip(data, pos, kind, depth + 1)
    return pos + 1


def _length(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[pos]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        pos += 1
        if shift > 63:
            raise UnsupportedParquet("a metadata integer of more than 64 bits")
    return value | byte << shift, pos + 1
