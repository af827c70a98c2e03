"""The footer of a Parquet file: the positions of the wanted leaves, and their statistics."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

from deltaproto.tables.log.parquet.schema import Leaf, ParquetGroup, SchemaReader, leaves_of
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    CompactReader,
    UnsupportedParquet,
    WantedFields,
)

_MAGIC = b"PAR1"
_END = 8
_TAIL = 64 * 1024
_LARGEST_FOOTER = 1024 * 1024
_LARGEST_CHUNK = 64 * 1024 * 1024

_TYPE, _PATH, _CODEC, _VALUES, _COMPRESSED, _DATA, _INDEX, _DICTIONARY, _STATISTICS = (
    (1, 3, 4, 5, 7, 9, 10, 11, 12)
)  # fmt: skip
_FILE, _META, _CRYPTO, _ENCRYPTED = 1, 3, 8, 9
_CHUNK: WantedFields = {
    _FILE: BINARY,
    _META: {
        _TYPE: I32,
        _PATH: LIST,
        _CODEC: I32,
        _VALUES: I64,
        _COMPRESSED: I64,
        _DATA: I64,
        _INDEX: I64,
        _DICTIONARY: I64,
        _STATISTICS: {3: I64},
    },
    _CRYPTO: {},
    _ENCRYPTED: BINARY,
}


class TailReadFile:
    """Byte ranges of a file whose tail was read already.

    Raises:
        UnsupportedParquet: it does not start and end like a Parquet file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = file.seek(0, 2)
        self._tail_start = self.size
        self._tail = b""
        if self.size < len(_MAGIC) + _END:
            raise UnsupportedParquet("too short for a Parquet file")
        start = max(0, self.size - _TAIL)
        self._tail = self.read(start, self.size)
        self._tail_start = start
        if self._tail[-4:] != _MAGIC or self.read(0, 4) != _MAGIC:
            raise UnsupportedParquet("not a Parquet file")

    def footer(self) -> bytes:
        """Return the serialized FileMetaData."""
        size = int.from_bytes(self._tail[-_END:-4], "little")
        self.end = self.size - _END - size
        if size > _LARGEST_FOOTER or self.end < len(_MAGIC):
            raise UnsupportedParquet("a footer too large")
        return self.read(self.end, self.size - _END)

    def has_read(self, start: int) -> bool:
        """Return True if everything from `start` on was read with the tail."""
        return start >= self._tail_start

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`."""
        if self.has_read(start):
            return self._tail[start - self._tail_start : end - self._tail_start]
        self._file.seek(start)
        parts = []
        left = end - start
        while left:
            part = self._file.read(left)
            if not part:
                raise UnsupportedParquet("the file ends too early")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


class ColumnChunk:
    """The bytes of one leaf in one row group."""

    __slots__ = ("codec", "end", "leaf", "nulls", "start", "values")

    def __init__(self, leaf: Leaf, metadata: dict[int, Any], limit: int) -> None:
        self.leaf = leaf
        self.codec: int = metadata[_CODEC]
        self.values: int = metadata[_VALUES]
        self.nulls: int | None = metadata.get(_STATISTICS, {}).get(3)
        size: int = metadata[_COMPRESSED]
        self.start: int = metadata[_DATA]
        # Writers without a dictionary store 0 here.
        dictionary = metadata.get(_DICTIONARY, 0)
        if 0 < dictionary < self.start:
            self.start = dictionary
        # Arrow gives the chunks of an empty row group no position, even if it has a dictionary.
        if self.values == 0:
            self.start, size = len(_MAGIC), 0
        self.end = self.start + size
        if metadata[_TYPE] != leaf.type or metadata[_PATH] != leaf.path:
            raise UnsupportedParquet("a column chunk that does not belong to its column")
        if not len(_MAGIC) <= self.start <= self.end <= limit or not 0 <= size <= _LARGEST_CHUNK:
            raise UnsupportedParquet("a column chunk outside of the file, or too large")


class RowGroup:
    """One row group: its number of rows and the chunks of the wanted leaves."""

    __slots__ = ("chunks", "rows")

    def __init__(self, rows: int, chunks: list[ColumnChunk]) -> None:
        self.rows = rows
        self.chunks = chunks


class Footer:
    """The parsed footer: wanted columns by name, in file order, and row groups.

    Raises:
        UnsupportedParquet: the footer is corrupt, or has unsupported contents.
    """

    def __init__(self, data: bytes, wanted: tuple[str, ...], limit: int) -> None:
        self.columns: dict[str, ParquetGroup] = {}
        self.groups: list[RowGroup] = []
        self._thrift = thrift = CompactReader(data)
        self._limit = limit
        rows = -1
        schema = SchemaReader(thrift, wanted)
        last = 0
        for field, kind in thrift.fields():
            # The schema must come before the row groups, and each field at most once.
            if field <= last:
                raise UnsupportedParquet("footer fields out of order")
            last = field
            if (field, kind) == (2, LIST):
                schema.read()
            elif (field, kind) == (3, I64):
                rows = thrift.integer()
            elif (field, kind) == (4, LIST):
                self._read_groups(schema)
            elif field in (2, 3, 4, 8, 9):
                raise UnsupportedParquet("an encrypted or corrupt footer")
            else:
                thrift.skip(kind)
        if thrift.pos != len(data) or last < 4 or not schema.leaves:
            raise UnsupportedParquet("a footer of the wrong length")
        if sum(group.rows for group in self.groups) != rows:
            raise UnsupportedParquet("row groups that do not add up")
        self.columns = schema.columns

    def _read_groups(self, schema: SchemaReader) -> None:
        leaves = {leaf.index: leaf for node in schema.columns.values() for leaf in leaves_of(node)}
        thrift = self._thrift
        for _ in range(thrift.elements(STRUCT)):
            rows = -1
            chunks: list[ColumnChunk] | None = None
            for field, kind in thrift.fields():
                if (field, kind) == (1, LIST) and chunks is None:
                    chunks = self._read_chunks(leaves, schema.leaves)
                elif (field, kind) == (3, I64):
                    rows = thrift.integer()
                else:
                    thrift.skip(kind)
            if chunks is None or rows < 0:
                raise UnsupportedParquet("an incomplete row group")
            self.groups.append(RowGroup(rows, chunks))

    def _read_chunks(self, leaves: dict[int, Leaf], count: int) -> list[ColumnChunk]:
        thrift = self._thrift
        if thrift.elements(STRUCT) != count:
            raise UnsupportedParquet("a row group without some of the columns")
        chunks = []
        for index in range(count):
            leaf = leaves.get(index)
            if leaf is None:
                thrift.skip(STRUCT)
                continue
            found = thrift.struct(_CHUNK)
            if found.keys() != {_META} or _INDEX in found[_META]:
                raise UnsupportedParquet("a column chunk that is encrypted or in another file")
            chunks.append(ColumnChunk(leaf, found[_META], self._limit))
        return chunks


_NULLS, _MAX, _MIN = 3, 5, 6
_STATISTICS_CHUNK: WantedFields = {
    _META: {
        _PATH: LIST,
        _VALUES: I64,
        _STATISTICS: {_NULLS: I64, _MAX: BINARY, _MIN: BINARY},
    }
}


class LeafStatistics(NamedTuple):
    """The statistics of one leaf, of all row groups."""

    filled: int | None
    """number of values that are not null; None if a row group lacks it"""
    least: tuple[bytes, ...]
    """the minimum of each row group with values, as Parquet stores it"""
    most: tuple[bytes, ...]
    bounded: bool
    """False if a row group with values lacks its minimum or maximum"""


def read_statistics(file: IO[bytes], parent: str) -> dict[str, LeafStatistics]:
    """Return the statistics of each leaf that is a direct member of a struct column, by name.

    Raises:
        UnsupportedParquet: the footer is corrupt or larger than this reader supports.
    """
    try:
        return _parse_statistics(CompactReader(TailReadFile(file).footer()), parent.encode())
    except (LookupError, ValueError) as error:
        raise UnsupportedParquet(f"a corrupt footer: {error}") from None


Bounds = tuple[str | None, str | None]


def text_bounds(leaf: LeafStatistics | None) -> Bounds | None:
    """Return the minimum and maximum of text; both None without values, None if unknown."""
    if leaf is None or (leaf.bounded and not leaf.least):
        return None, None
    if not leaf.bounded:
        return None
    low, high = min(leaf.least), max(leaf.most)
    return low.decode("utf-8", "replace"), high.decode("utf-8", "replace")


def _parse_statistics(thrift: CompactReader, parent: bytes) -> dict[str, LeafStatistics]:
    found: dict[str, LeafStatistics] = {}
    groups = False
    for field, kind in thrift.fields():
        if (field, kind) != (4, LIST):
            thrift.skip(kind)
            continue
        groups = True
        for chunk in _parse_chunks(thrift):
            match chunk.get(_PATH):
                case [bytes(name), bytes(leaf)] if name == parent:
                    text = leaf.decode("utf-8", "replace")
                    found[text] = _with_chunk(found.get(text, _EMPTY), chunk)
    if not groups:
        raise UnsupportedParquet("a footer without row groups")
    return found


_EMPTY = LeafStatistics(0, (), (), True)


def _with_chunk(leaf: LeafStatistics, chunk: dict[int, Any]) -> LeafStatistics:
    statistics: dict[int, Any] = chunk.get(_STATISTICS, {})
    values, nulls = chunk.get(_VALUES), statistics.get(_NULLS)
    filled = None
    if leaf.filled is not None and values is not None and nulls is not None:
        filled = leaf.filled + values - nulls
    if nulls == values:
        return leaf._replace(filled=filled)
    if _MIN not in statistics or _MAX not in statistics:
        return leaf._replace(filled=filled, bounded=False)
    least, most = (*leaf.least, statistics[_MIN]), (*leaf.most, statistics[_MAX])
    return LeafStatistics(filled, least, most, leaf.bounded)


def _parse_chunks(thrift: CompactReader) -> list[dict[int, Any]]:
    """Return the metadata of every column chunk of every row group."""
    found = []
    for _ in range(thrift.elements(STRUCT)):
        for field, kind in thrift.fields():
            if (field, kind) == (1, LIST):
                found += [thrift.struct(_STATISTICS_CHUNK) for _ in range(thrift.elements(STRUCT))]
            else:
                thrift.skip(kind)
    return [chunk[_META] for chunk in found if _META in chunk]
