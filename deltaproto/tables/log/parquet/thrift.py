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
        head = self.data[self.pos]
        self.pos += 1
        size = head >> 4 if head < 0xF0 else self._varint()
        if head & 15 != kind:
            raise UnsupportedParquet("a metadata list of unexpected type")
        if size > len(self.data) - self.pos:
            raise UnsupportedParquet("a metadata list beyond the end")
        return size

    def skip(self, kind: int) -> None:
        """Skip a value of type `kind`."""
        self.pos = _skip(self.data, self.pos, kind, 0)

    def integer(self) -> int:
        """Read a zigzag integer of any width."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Read bytes with a length prefix."""
        size = self._varint()
        start = self.pos
        self.pos = end = start + size
        if end > len(self.data):
            raise UnsupportedParquet("a metadata string beyond the end")
        return self.data[start:end]

    def struct(self, wanted: WantedFields) -> dict[int, Any]:
        """Read the wanted fields of a struct: int, bool, bytes, list or, again, such a dict."""
        data = self.data
        found: dict[int, Any] = {}
        field = 0
        while head := data[self.pos]:
            self.pos += 1
            kind = head & 15
            field = field + (head >> 4) if head > 15 else self.integer()
            want = wanted.get(field)
            if want is None:
                self.pos = _skip(data, self.pos, kind, 0)
                continue
            if field in found:
                raise UnsupportedParquet("a metadata field given twice")
            if not isinstance(want, int):
                if kind != STRUCT:
                    raise UnsupportedParquet("a metadata field of unexpected type")
                found[field] = self.struct(want)
            elif want == BOOL and kind <= 2:
                found[field] = kind == 1
            elif kind != want:
                raise UnsupportedParquet("a metadata field of unexpected type")
            else:
                found[field] = self._value(kind)
        self.pos += 1
        return found

    def _value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == BINARY:
            return self.binary()
        if kind == LIST:
            return [self.binary() for _ in range(self.elements(BINARY))]
        if kind == BYTE:
            self.pos += 1
            return self.data[self.pos - 1]
        raise UnsupportedParquet("a metadata field of unexpected type")

    def _varint(self) -> int:
        data, pos = self.data, self.pos
        byte = data[pos]
        value = byte & 127
        shift = 0
        while byte > 127:
            pos += 1
            shift += 7
            byte = data[pos]
            value |= (byte & 127) << shift
            if shift > 63:
                raise UnsupportedParquet("a metadata integer of more than 64 bits")
        self.pos = pos + 1
        return value


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
