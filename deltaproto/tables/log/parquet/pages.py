"""The pages of one column chunk, decoded only where the top-level struct is not null.

Source: https://parquet.apache.org/docs/file-format/data-pages/
"""

from __future__ import annotations

from typing import Any

from deltaproto.tables.log.parquet.footer import ColumnChunk
from deltaproto.tables.log.parquet.schema import (
    BOOLEAN,
    Leaf,
    Node,
    ParquetGroup,
    RepeatedGroup,
    leaves_of,
)
from deltaproto.tables.log.parquet.thrift import (
    BOOL,
    I32,
    CompactReader,
    UnsupportedParquet,
    WantedFields,
)
from deltaproto.tables.log.parquet.values import (
    UNCOMPRESSED,
    Runs,
    decode_booleans,
    decode_indexed,
    decode_plain,
    decode_runs,
    decompress,
    merge_levels,
)

_V1, _DICTIONARY, _V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_HEADER: WantedFields = {
    1: I32,
    2: I32,
    3: I32,
    5: {1: I32, 2: I32, 3: I32, 4: I32},
    7: {1: I32, 2: I32},
    8: {1: I32, 2: I32, 3: I32, 4: I32, 5: I32, 6: I32, 7: BOOL},
}
_LARGEST_PAGE = 64 * 1024 * 1024
_MOST_ENTRIES = 1 << 17

Entry = tuple[int, Any]
"""Definition level and value; None if the level means that there is no value."""


class DecompressionBudget:
    """The number of bytes that the pages of one file may still decompress to."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, size: int) -> None:
        """Use up `size` bytes of the budget.

        Raises:
            UnsupportedParquet: it is used up.
        """
        self._left -= size
        if self._left < 0:
            raise UnsupportedParquet("pages that decompress to too much")


class LeafValues:
    """The values of one leaf in the rows of a row group whose top-level struct is not null.

    `rows` are the row numbers, `entries` has the repetitions of each, always at least one.
    """

    def __init__(
        self, data: bytes, chunk: ColumnChunk, struct: int, budget: DecompressionBudget
    ) -> None:
        """Decode `data`, the bytes of `chunk`; `struct` is the definition level of the struct.

        Raises:
            UnsupportedParquet: the data is corrupt, not supported, or has too many values.
            IndexError, KeyError, UnicodeDecodeError: the data is corrupt.
        """
        self.rows: list[int] = []
        self.entries: list[list[Entry]] = []
        self.count = 0
        """total number of rows, null or not"""
        self._data = data
        self._leaf = chunk.leaf
        self._codec = chunk.codec
        self._struct = struct
        self._budget = budget
        self._dictionary_page: tuple[bytes, int, int] | None = None
        self._dictionary: list[Any] | None = None
        self._entries = 0
        self._read_pages(chunk.values)

    def _read_pages(self, values: int) -> None:
        data, pos, first = self._data, 0, True
        while pos < len(data):
            start = pos
            thrift = CompactReader(data, pos)
            header = thrift.struct(_HEADER)
            pos = thrift.pos + header[3]
            if not 0 <= header[3] <= len(data) - thrift.pos or not 0 <= header[2] <= _LARGEST_PAGE:
                raise UnsupportedParquet("a page beyond the end, or too large")
            page = data[thrift.pos : pos]
            if header[1] == _DICTIONARY and first:
                self._set_dictionary(header, page)
                first = False
                continue
            first = False
            rows, entries = self.count, self._entries
            count = self._data_page(header, page)
            values -= count
            rows = self.count - rows
            if self._entries == entries:
                # Identical bytes were already found to be all null.
                same = data[start:pos]
                while values >= count > 0 and data.startswith(same, pos):
                    pos += len(same)
                    values -= count
                    self.count += rows
            if values < 0:
                raise UnsupportedParquet("more values than declared")
        if values:
            raise UnsupportedParquet("fewer values than declared")

    def _set_dictionary(self, header: dict[int, Any], page: bytes) -> None:
        count, encoding = header[7][1], header[7][2]
        if encoding not in (_PLAIN, _PLAIN_DICTIONARY) or not 0 <= count <= _MOST_ENTRIES:
            raise UnsupportedParquet("a dictionary that is not plain, or too large")
        self._dictionary_page = (page, header[2], count)

    def _data_page(self, header: dict[int, Any], page: bytes) -> int:
        """Decode one data page and return its number of values, nulls included."""
        leaf, size = self._leaf, header[2]
        self._budget.take(size)
        if header[1] == _V1:
            found = header[5]
            count, encoding = found[1], found[2]
            self._check_count(count)
            page = decompress(self._codec, page, size)
            pos = 0
            levels = []
            for most, coding in ((leaf.repetition, found[4]), (leaf.definition, found[3])):
                if most and coding != _RLE:
                    raise UnsupportedParquet("levels with an encoding that is not supported")
                start = pos + 4 if most else pos
                end = start + int.from_bytes(page[pos:start], "little")
                levels.append(_levels(page, start, end, most, count))
                pos = end
            self._take(levels[0], levels[1], encoding, page, pos)
        elif header[1] == _V2:
            found = header[8]
            count, encoding = found[1], found[4]
            self._check_count(count)
            middle = found[6]
            pos = middle + found[5]
            if found[5] < 0 or not 0 <= middle <= pos <= min(len(page), size):
                raise UnsupportedParquet("levels beyond the end")
            repetitions = _levels(page, 0, middle, leaf.repetition, count)
            definitions = _levels(page, middle, pos, leaf.definition, count)
            nulls = sum(n for n, level in definitions if level < leaf.definition)
            rows = sum(n for n, level in repetitions if level == 0)
            if nulls != found[2] or rows != found[3] or (count and repetitions[0][1]):
                raise UnsupportedParquet(
                    "the number of nulls or rows differs from the declared one"
                )
            body = page[pos:]
            if nulls < count or self._codec == UNCOMPRESSED:
                codec = self._codec if found.get(7, True) else UNCOMPRESSED
                body = decompress(codec, body, size - pos)
            self._take(repetitions, definitions, encoding, body, 0)
        else:
            raise UnsupportedParquet("a page of unexpected type")
        return int(count)

    def _check_count(self, count: int) -> None:
        if count < 0:
            raise UnsupportedParquet("a page with a negative number of values")

    def _take(
        self, repetitions: Runs, definitions: Runs, encoding: int, body: bytes, pos: int
    ) -> None:
        most, struct = self._leaf.definition, self._struct
        wanted = present = 0
        for count, level in definitions:
            if level >= struct:
                wanted += count
                if level == most:
                    present += count
        self._entries += wanted
        if self._entries > _MOST_ENTRIES:
            raise UnsupportedParquet("too many values")
        values = iter(self._values(encoding, body, pos, present) if present else ())
        row = self.count
        rows, entries = self.rows, self.entries
        for count, repetition, level in merge_levels(repetitions, definitions):
            if level < struct:
                if repetition:
                    raise UnsupportedParquet("a null that repeats")
                row += count
                continue
            for _ in range(count):
                entry = (level, next(values) if level == most else None)
                if repetition == 0:
                    rows.append(row)
                    entries.append([entry])
                    row += 1
                elif rows and rows[-1] == row - 1:
                    entries[-1].append(entry)
                else:
                    raise UnsupportedParquet("a null that repeats")
        self.count = row

    def _values(self, encoding: int, body: bytes, pos: int, count: int) -> list[Any]:
        if encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
            if self._dictionary is None:
                self._dictionary = self._read_dictionary()
            return decode_indexed(body, pos, self._dictionary, count)
        if encoding == _PLAIN:
            return decode_plain(body, pos, self._leaf, count)
        if encoding == _RLE and self._leaf.type == BOOLEAN:
            return decode_booleans(body, pos, count)
        raise UnsupportedParquet("an encoding that is not supported")

    def _read_dictionary(self) -> list[Any]:
        if self._dictionary_page is None or self._leaf.type == BOOLEAN:
            raise UnsupportedParquet("indices without a dictionary")
        page, size, count = self._dictionary_page
        self._budget.take(size)
        return decode_plain(decompress(self._codec, page, size), 0, self._leaf, count)


def _levels(data: bytes, start: int, end: int, most: int, count: int) -> Runs:
    if not most:
        if start != end:
            raise UnsupportedParquet("unexpected levels")
        return [(count, 0)]
    found = decode_runs(data, start, end, most.bit_length(), count)
    if end > len(data) or any(level > most for _, level in found):
        raise UnsupportedParquet("a level out of range")
    return found


def column_values(
    column: ParquetGroup, cells: dict[int, LeafValues], rows: int
) -> list[dict[str, Any]]:
    """Combine the values of a top-level struct in one row group of `rows` rows, without nulls.

    `cells` are the cells of its leaves, by index.

    Raises:
        UnsupportedParquet: the leaves contradict each other.
    """
    leaves = [cells[leaf.index] for leaf in leaves_of(column)]
    present = leaves[0].rows
    if any(leaf.rows != present or leaf.count != rows for leaf in leaves):
        raise UnsupportedParquet("leaves that contradict each other about their rows")
    found = []
    for position in range(len(present)):
        row = {index: cell.entries[position] for index, cell in cells.items()}
        value = _value(column, row)
        if not isinstance(value, dict):
            raise UnsupportedParquet("leaves that contradict each other about a null")
        found.append(value)
    return found


def _value(node: Node, row: dict[int, list[Entry]]) -> Any:
    if isinstance(node, Leaf):
        (entry,) = row[node.index]
        return entry[1]
    if isinstance(node, RepeatedGroup):
        return _repeated(node, row)
    present = {row[leaf.index][0][0] >= node.definition for leaf in leaves_of(node)}
    if len(present) > 1:
        raise UnsupportedParquet("leaves that contradict each other about a null")
    if present == {False}:
        return None
    return {name: _value(field, row) for name, field in node.fields.items()}


def _repeated(node: RepeatedGroup, row: dict[int, list[Entry]]) -> Any:
    columns = [row[leaf.index] for leaf in node.leaves]
    # Up to the level of an empty list, keys and values have the same levels.
    depths = [[min(level, node.definition + 1) for level, _ in column] for column in columns]
    first = depths[0]
    if any(depth != first for depth in depths):
        raise UnsupportedParquet("keys and values that do not match")
    is_map = len(columns) == 2
    if min(first) <= node.definition:
        if len(first) > 1:
            raise UnsupportedParquet("an empty list with elements")
        if first[0] < node.definition:
            return None
        return {} if is_map else []
    if not is_map:
        return [value for _, value in columns[0]]
    if any(level < node.leaves[0].definition for level, _ in columns[0]):
        raise UnsupportedParquet("a map with a null key")
    return {key: value for (_, key), (_, value) in zip(*columns, strict=True)}
