"""The smallest and largest string of one column, from the footer's statistics."""

from __future__ import annotations

from typing import IO, Any

from deltaproto.tables.log.parquet.footer import TailReadFile
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    I64,
    LIST,
    STRUCT,
    CompactReader,
    UnsupportedParquet,
    WantedFields,
)

_META, _PATH, _VALUES, _STATISTICS = 3, 3, 5, 12
_NULLS, _MAX, _MIN = 3, 5, 6
_CHUNK: WantedFields = {
    _META: {
        _PATH: LIST,
        _VALUES: I64,
        _STATISTICS: {_NULLS: I64, _MAX: BINARY, _MIN: BINARY},
    }
}
Bounds = tuple[str | None, str | None]


def read_bounds(file: IO[bytes], column: tuple[str, ...]) -> Bounds | None:
    """Return the minimum and maximum of a string column; both None if it has no values.

    Returns None instead of a pair when a row group lacks statistics.

    Raises:
        UnsupportedParquet: the footer is corrupt or larger than this reader supports.
    """
    try:
        return _parse_bounds(
            CompactReader(TailReadFile(file).footer()), [name.encode() for name in column]
        )
    except (LookupError, ValueError) as error:
        raise UnsupportedParquet(f"a corrupt footer: {error}") from None


def _parse_bounds(thrift: CompactReader, path: list[bytes]) -> Bounds | None:
    low: str | None = None
    high: str | None = None
    groups = False
    for field, kind in thrift.fields():
        if (field, kind) != (4, LIST):
            thrift.skip(kind)
            continue
        groups = True
        for chunk in _parse_chunks(thrift):
            if chunk.get(_PATH) != path:
                continue
            told: dict[int, Any] = chunk.get(_STATISTICS, {})
            if told.get(_NULLS) == chunk.get(_VALUES):
                continue
            if _MIN not in told or _MAX not in told:
                return None
            least, most = (told[each].decode("utf-8", "replace") for each in (_MIN, _MAX))
            low = least if low is None else min(low, least)
            high = most if high is None else max(high, most)
    if not groups:
        raise UnsupportedParquet("a footer without row groups")
    return low, high


def _parse_chunks(thrift: CompactReader) -> list[dict[int, Any]]:
    """Return the metadata of every column chunk of every row group."""
    found = []
    for _ in range(thrift.elements(STRUCT)):
        for field, kind in thrift.fields():
            if (field, kind) == (1, LIST):
                found += [thrift.struct(_CHUNK) for _ in range(thrift.elements(STRUCT))]
            else:
                thrift.skip(kind)
    return [chunk[_META] for chunk in found if _META in chunk]
