"""The footer of a Parquet file: the positions of the wanted leaves, and their statistics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import IO, Any, NamedTuple

from deltaproto.tables.log.parquet.schema import Leaf, leaves_of, read_schema
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
_LARGEST_KEPT = 64 * 1024
_MOST_KNOWN_SCHEMAS, _LARGEST_KNOWN_SCHEMA = 8, 16 * 1024

_TYPE, _PATH, _CODEC, _VALUES, COMPRESSED, DATA, _INDEX, DICTIONARY, _STATISTICS = (
    (1, 3, 4, 5, 7, 9, 10, 11, 12)
)  # fmt: skip
_NULLS, _MAX, _MIN = 3, 5, 6
_FILE, META, _CRYPTO, _ENCRYPTED = 1, 3, 8, 9
_CHUNK: WantedFields = {
    _FILE: BINARY,
    META: {
        _TYPE: I32,
        _PATH: LIST,
        _CODEC: I32,
        _VALUES: I64,
        COMPRESSED: I64,
        DATA: I64,
        _INDEX: I64,
        DICTIONARY: I64,
        _STATISTICS: {_NULLS: I64, _MAX: BINARY, _MIN: BINARY},
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
        """Return True if the tail that was already read includes everything from `start` on."""
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

    def __init__(self, leaf: Leaf, metadata: Mapping[int, Any], limit: int) -> None:
        self.leaf = leaf
        self.codec: int = metadata[_CODEC]
        self.values: int = metadata[_VALUES]
        self.nulls: int | None = metadata.get(_STATISTICS, {}).get(3)
        size: int = metadata[COMPRESSED]
        self.start: int = metadata[DATA]
        # Writers without a dictionary store 0 here.
        dictionary = metadata.get(DICTIONARY, 0)
        if 0 < dictionary < self.start:
            self.start = dictionary
        # Arrow writes no position for the chunks of an empty row group, even with a dictionary.
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


class FileMetadata(NamedTuple):
    """A footer, parsed without regard to the meaning of its columns."""

    schema: bytes
    """the serialized list of schema elements"""
    groups: tuple[tuple[int, tuple[Mapping[int, Any], ...]], ...]
    """of each row group, the number of rows and the fields of each column chunk"""


def parse_metadata(footer: bytes) -> FileMetadata:
    """Parse a serialized FileMetaData. Cached, because several readers need the same footers.

    Raises:
        UnsupportedParquet, LookupError, ValueError: the footer is corrupt or encrypted.
    """
    # Once parsed, it may take a hundred times as much memory.
    return (_parse_and_keep if len(footer) <= _LARGEST_KEPT else _parse)(footer)


def _parse(footer: bytes) -> FileMetadata:
    thrift = CompactReader(footer)
    schema, rows, last = b"", -1, 0
    groups: list[tuple[int, tuple[Mapping[int, Any], ...]]] = []
    for field, kind in thrift.fields():
        # The schema must come before the row groups, and each field at most once.
        if field <= last:
            raise UnsupportedParquet("footer fields out of order")
        last = field
        if (field, kind) == (2, LIST):
            schema = _read_schema(thrift)
        elif (field, kind) == (3, I64):
            rows = thrift.integer()
        elif (field, kind) == (4, LIST):
            groups += [_read_group(thrift) for _ in range(thrift.elements(STRUCT))]
        elif field in (2, 3, 4, 8, 9):
            raise UnsupportedParquet("an encrypted or corrupt footer")
        else:
            thrift.skip(kind)
    if thrift.pos != len(footer) or last < 4:
        raise UnsupportedParquet("a footer of the wrong length")
    if sum(number for number, _ in groups) != rows:
        raise UnsupportedParquet("row groups that do not add up")
    return FileMetadata(schema, tuple(groups))


_parse_and_keep = lru_cache(maxsize=4)(_parse)
_known_schemas: tuple[bytes, ...] = ()


def _read_schema(thrift: CompactReader) -> bytes:
    # The checkpoints of one writer have the same schema, and a list's bytes show where it ends.
    global _known_schemas
    start = thrift.pos
    for known in _known_schemas:
        if thrift.data.startswith(known, start):
            thrift.pos += len(known)
            return known
    thrift.skip(LIST)
    if thrift.pos > len(thrift.data):
        raise UnsupportedParquet("a schema beyond the end")
    schema = thrift.data[start : thrift.pos]
    if len(schema) <= _LARGEST_KNOWN_SCHEMA:
        _known_schemas = (schema, *_known_schemas[: _MOST_KNOWN_SCHEMAS - 1])
    return schema


def _read_group(thrift: CompactReader) -> tuple[int, tuple[Mapping[int, Any], ...]]:
    rows = -1
    chunks: list[Mapping[int, Any]] | None = None
    for field, kind in thrift.fields():
        if (field, kind) == (1, LIST) and chunks is None:
            chunks = [thrift.struct(_CHUNK) for _ in range(thrift.elements(STRUCT))]
        elif (field, kind) == (3, I64):
            rows = thrift.integer()
        else:
            thrift.skip(kind)
    if chunks is None or rows < 0:
        raise UnsupportedParquet("an incomplete row group")
    return rows, tuple(chunks)


class Footer:
    """The parsed footer: wanted columns by name, in file order, and row groups.

    Raises:
        UnsupportedParquet: the footer is corrupt, or has unsupported contents.
    """

    def __init__(self, data: bytes, wanted: tuple[str, ...], limit: int) -> None:
        metadata = parse_metadata(data)
        self.columns, leaves = read_schema(metadata.schema, wanted)
        self.groups: list[RowGroup] = []
        chosen = [leaf for node in self.columns.values() for leaf in leaves_of(node)]
        for rows, found in metadata.groups:
            if len(found) != leaves:
                raise UnsupportedParquet("a row group without some of the columns")
            chunks = []
            for leaf in chosen:
                chunk = found[leaf.index]
                if chunk.keys() != {META} or _INDEX in chunk[META]:
                    raise UnsupportedParquet("a column chunk that is encrypted or in another file")
                chunks.append(ColumnChunk(leaf, chunk[META], limit))
            self.groups.append(RowGroup(rows, chunks))


class LeafStatistics(NamedTuple):
    """The statistics of one leaf over all row groups."""

    filled: int | None
    """number of values that are not null; None if a row group lacks it"""
    least: tuple[bytes, ...]
    """the minimum of each row group with values, as Parquet stores it"""
    most: tuple[bytes, ...]
    bounded: bool
    """False if a row group with values lacks its minimum or maximum"""


def read_statistics(
    file: IO[bytes], parent: str, nested: Collection[bytes] = ()
) -> dict[str, LeafStatistics]:
    """Return the statistics of each leaf that is a direct member of a struct column, by name.

    Args:
        nested: dotted names of leaves further below, to return as well.

    Raises:
        UnsupportedParquet: the footer is corrupt or larger than this reader supports.
    """
    try:
        metadata = parse_metadata(TailReadFile(file).footer())
    except (LookupError, ValueError) as error:
        raise UnsupportedParquet(f"a corrupt footer: {error}") from None
    found: dict[str, LeafStatistics] = {}
    for _, chunks in metadata.groups:
        for each in chunks:
            chunk = each.get(META, {})
            match chunk.get(_PATH):
                case [bytes(name), *below] if name == parent.encode():
                    leaf = b".".join(below)
                    if len(below) != 1 and leaf not in nested:
                        continue
                    text = leaf.decode("utf-8", "replace")
                    found[text] = _with_chunk(found.get(text, _EMPTY), chunk)
    return found


Bounds = tuple[str | None, str | None]


def text_bounds(leaf: LeafStatistics | None) -> Bounds | None:
    """Return the minimum and maximum of text; both None without values, None if unknown."""
    if leaf is None or (leaf.bounded and not leaf.least):
        return None, None
    if not leaf.bounded:
        return None
    low, high = min(leaf.least), max(leaf.most)
    return low.decode("utf-8", "replace"), high.decode("utf-8", "replace")


_EMPTY = LeafStatistics(0, (), (), True)


def _with_chunk(leaf: LeafStatistics, chunk: Mapping[int, Any]) -> LeafStatistics:
    statistics: Mapping[int, Any] = chunk.get(_STATISTICS, {})
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
