"""The RLE / bit-packing hybrid, kept as runs.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md#RLE
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

from deltaproto.tables.log.parquet.schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    Leaf,
)
from deltaproto.tables.log.parquet.thrift import UnsupportedParquet

UNCOMPRESSED, SNAPPY, GZIP = 0, 1, 2


def decompress(codec: int, data: bytes, size: int) -> bytes:
    """Decompress `data` to exactly `size` bytes.

    Raises:
        UnsupportedParquet: an unsupported codec, or a different size.
    """
    if codec == UNCOMPRESSED:
        found = data
    elif codec == SNAPPY:
        found = decompress_snappy(data, size)
    elif codec == GZIP:
        found = _decompress_gzip(data, size)
    else:
        raise UnsupportedParquet("a codec that is not supported")
    if len(found) != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    return found


def _decompress_gzip(data: bytes, size: int) -> bytes:
    import zlib

    decoder = zlib.decompressobj(31)
    try:
        found = decoder.decompress(data, size + 1)
    except zlib.error:
        raise UnsupportedParquet("a corrupt page") from None
    if not decoder.eof or decoder.unused_data:
        raise UnsupportedParquet("a corrupt page")
    return found


def decompress_snappy(data: bytes, size: int) -> bytes:
    """Decompress raw snappy `data`, which must declare and contain `size` bytes.

    Raises:
        UnsupportedParquet: it does not.
        IndexError: it is truncated.
    """
    announced = shift = pos = 0
    while (byte := data[pos]) > 127:
        announced |= (byte & 127) << shift
        shift += 7
        pos += 1
        if shift > 28:
            raise UnsupportedParquet("a page whose size differs from its header")
    announced |= byte << shift
    pos += 1
    if announced != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    out = bytearray()
    end = len(data)
    while pos < end:
        tag = data[pos]
        pos += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                width = length - 60
                length = int.from_bytes(data[pos : pos + width], "little") + 1
                pos += width
            if pos + length > end:
                raise UnsupportedParquet("a corrupt page")
            out += data[pos : pos + length]
            pos += length
        else:
            if kind == 1:
                length = (tag >> 2 & 7) + 4
                offset = (tag & 0xE0) << 3 | data[pos]
                pos += 1
            else:
                width = 2 * kind - 2
                length = (tag >> 2) + 1
                offset = int.from_bytes(data[pos : pos + width], "little")
                pos += width
                if pos > end:
                    raise UnsupportedParquet("a corrupt page")
            _copy(out, offset, length)
        if len(out) > size:
            break
    if len(out) != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    return bytes(out)


def _copy(out: bytearray, offset: int, length: int) -> None:
    start = len(out) - offset
    if offset == 0 or start < 0:
        raise UnsupportedParquet("a corrupt page")
    if offset >= length:
        out += out[start : start + length]
    else:
        pattern = out[start:]
        out += (pattern * (length // offset + 1))[:length]


Runs: TypeAlias = list[tuple[int, int]]
"""Pairs of count and value."""

# If a writer bit-packs the levels of all nulls, every row would have to be decoded.
_MOST_PACKED = 1 << 19


def decode_runs(data: bytes, pos: int, end: int, width: int, count: int) -> Runs:
    """Decode `count` values of `width` bits, which must fill `data` from `pos` to `end` exactly.

    Raises:
        UnsupportedParquet: they do not, or are mostly not run-length encoded.
        IndexError: they are truncated.
    """
    found: Runs = []
    if width > 32:
        raise UnsupportedParquet("values of more than 32 bits")
    size = (width + 7) // 8
    packed = 0
    while count:
        header = data[pos]
        pos += 1
        shift = 7
        if header > 127:
            header &= 127
            while (byte := data[pos]) > 127:
                header |= (byte & 127) << shift
                shift += 7
                pos += 1
                if shift > 28:
                    raise UnsupportedParquet("a run of impossible length")
            header |= byte << shift
            pos += 1
        if header & 1:
            groups = header >> 1
            if pos + groups * width > end or groups * 8 >= count + 8:
                raise UnsupportedParquet("a packed run beyond the end")
            length = min(groups * 8, count)
            packed += length
            if packed > _MOST_PACKED:
                raise UnsupportedParquet("too many packed values")
            _unpack(data, pos, width, length, found)
            pos += groups * width
        else:
            length = header >> 1
            if length > count:
                raise UnsupportedParquet("a run beyond the end")
            found.append((length, int.from_bytes(data[pos : pos + size], "little")))
            pos += size
        if length == 0:
            raise UnsupportedParquet("an empty run")
        count -= length
    if pos != end:
        raise UnsupportedParquet("levels or indices whose size differs from the declared one")
    return found


def merge_levels(repetitions: Runs, definitions: Runs) -> Iterator[tuple[int, int, int]]:
    """Combine both levels: count, repetition level, definition level."""
    others = iter(definitions)
    left = definition = 0
    for count, repetition in repetitions:
        while count:
            if not left:
                left, definition = next(others)
            step = min(count, left)
            yield step, repetition, definition
            count -= step
            left -= step


def _unpack(data: bytes, pos: int, width: int, length: int, found: Runs) -> None:
    mask = (1 << width) - 1
    current = bits = -1
    run = 0
    for index in range(length):
        if index & 7 == 0:
            bits = int.from_bytes(data[pos : pos + width], "little")
            pos += width
        value = bits & mask
        bits >>= width
        if value == current:
            run += 1
        else:
            if run:
                found.append((run, current))
            current = value
            run = 1
    if run:
        found.append((run, current))


_FORMATS = {INT32: ("i", 4), INT64: ("q", 8), FLOAT: ("f", 4), DOUBLE: ("d", 8)}


def decode_plain(data: bytes, pos: int, leaf: Leaf, count: int) -> list[Any]:
    """Decode `count` values, which must fill `data` from `pos` on exactly.

    Raises:
        UnsupportedParquet: they do not, or do not match the type of `leaf`.
        UnicodeDecodeError: a string is not UTF-8.
    """
    size = len(data) - pos
    if leaf.type == BYTE_ARRAY:
        return _decode_strings(data, pos, count)
    if leaf.type == BOOLEAN:
        if size != (count + 7) // 8:
            raise UnsupportedParquet("the number of values differs from the declared one")
        return [bool(data[pos + (index >> 3)] >> (index & 7) & 1) for index in range(count)]
    letter, width = _FORMATS[leaf.type]
    if size != count * width:
        raise UnsupportedParquet("the number of values differs from the declared one")
    found = list(struct.unpack_from(f"<{count}{letter}", data, pos))
    if leaf.bits in (8, 16):
        limit = 1 << leaf.bits - 1
        if any(not -limit <= value < limit for value in found):
            raise UnsupportedParquet("an integer out of the range of its type")
    return found


def decode_booleans(data: bytes, pos: int, count: int) -> list[Any]:
    """Decode `count` run-length encoded booleans with a length prefix.

    Raises:
        UnsupportedParquet: they do not fill `data` from `pos` on exactly.
    """
    size = int.from_bytes(data[pos : pos + 4], "little")
    if pos + 4 + size != len(data):
        raise UnsupportedParquet("values whose size differs from the declared one")
    found = _expand_runs(data, pos + 4, 1, count)
    if any(value > 1 for value in found):
        raise UnsupportedParquet("a boolean that is neither 0 nor 1")
    return [value == 1 for value in found]


def decode_indexed(data: bytes, pos: int, dictionary: list[Any], count: int) -> list[Any]:
    """Decode `count` values by their indices in `dictionary`; the bit width precedes the indices.

    Raises:
        UnsupportedParquet: the indices do not fill `data` from `pos` on exactly.
        IndexError: an index beyond the dictionary.
    """
    return [dictionary[index] for index in _expand_runs(data, pos + 1, data[pos], count)]


def _expand_runs(data: bytes, pos: int, width: int, count: int) -> list[int]:
    found = []
    for length, value in decode_runs(data, pos, len(data), width, count):
        found += [value] * length
    return found


def _decode_strings(data: bytes, pos: int, count: int) -> list[Any]:
    found = []
    end = len(data)
    for _ in range(count):
        start = pos + 4
        size = int.from_bytes(data[pos:start], "little")
        pos = start + size
        if pos > end:
            raise UnsupportedParquet("a string beyond the end")
        found.append(data[start:pos].decode())
    if pos != end:
        raise UnsupportedParquet("the number of values differs from the declared one")
    return found
