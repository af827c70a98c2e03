"""The RLE / bit-packing hybrid, kept as runs.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md#RLE
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from deltaproto.tables.log.parquet.errors import NotSimple

Runs: TypeAlias = list[tuple[int, int]]
"""Pairs of count and value."""

# A writer that packs the bits of all nulls would make us walk through all rows.
_MOST_PACKED = 1 << 19


def runs(data: bytes, pos: int, end: int, width: int, count: int) -> Runs:
    """`count` values of `width` bits, which must fill `data` from `pos` to `end` exactly.

    Raises:
        NotSimple: they do not, or are not run-length encoded to speak of.
        IndexError: they end too early.
    """
    found: Runs = []
    if width > 32:
        raise NotSimple("values of more than 32 bits")
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
                    raise NotSimple("a run of impossible length")
            header |= byte << shift
            pos += 1
        if header & 1:
            groups = header >> 1
            if pos + groups * width > end or groups * 8 >= count + 8:
                raise NotSimple("a packed run beyond the end")
            length = min(groups * 8, count)
            packed += length
            if packed > _MOST_PACKED:
                raise NotSimple("too many packed values")
            _unpack(data, pos, width, length, found)
            pos += groups * width
        else:
            length = header >> 1
            if length > count:
                raise NotSimple("a run beyond the end")
            found.append((length, int.from_bytes(data[pos : pos + size], "little")))
            pos += size
        if length == 0:
            raise NotSimple("an empty run")
        count -= length
    if pos != end:
        raise NotSimple("levels or indices of another size than announced")
    return found


def merged(repetitions: Runs, definitions: Runs) -> Iterator[tuple[int, int, int]]:
    """Both levels side by side: count, repetition level, definition level."""
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
