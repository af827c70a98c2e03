"""A small Parquet reader for a checkpoint's few protocol and metadata rows, without pyarrow.

Definition levels stay run-length encoded, so a million rows without a protocol cost as little
as one. Files that exceed its features, or look corrupt, are left to a full reader.
"""

from __future__ import annotations

import struct
from typing import IO, Any

from deltaproto.tables.log.parquet.footer import ColumnChunk, Footer, RowGroup, TailReadFile
from deltaproto.tables.log.parquet.pages import DecompressionBudget, LeafValues, column_values
from deltaproto.tables.log.parquet.schema import Leaf, ParquetGroup, leaves_of
from deltaproto.tables.log.parquet.thrift import MAX_STATE_BYTES, UnsupportedParquet, max_rows

__all__ = ["UnsupportedParquet", "read_rows"]

_ALWAYS_SET = {
    "protocol": {"minReaderVersion", "minWriterVersion"},
    "metaData": {"id", "schemaString"},
    "domainMetadata": {"domain", "configuration"},
}
"""Fields that the action must have (PROTOCOL.md, "Actions")."""


def read_rows(file: IO[bytes], columns: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Return every non-null value of the wanted top-level structs, with the name of its column.

    They are ordered by row group, then by column in file order, then by row. Values equal those of
    pyarrow's `to_pylist`, except that maps are dicts. Missing columns are skipped. A column of a
    row group is not read when the statistics show that no leaf has a value, unless structs with
    only null members are possible.

    Raises:
        UnsupportedParquet: the file needs a full Parquet reader: unsupported features, or damage.

    Exceptions of `file` are passed on.
    """
    source = TailReadFile(file)
    footer = source.footer()
    found: list[tuple[str, dict[str, Any]]] = []
    try:
        parsed = Footer(footer, columns, source.end)
    except (LookupError, ValueError) as error:
        raise UnsupportedParquet(f"a corrupt footer: {error}") from None
    if sum(group.rows for group in parsed.groups) > max_rows(source.size):
        raise UnsupportedParquet("more rows than a checkpoint of its size can have")
    budget = DecompressionBudget(MAX_STATE_BYTES)
    for group in parsed.groups:
        wanted = {
            name: column
            for name, column in parsed.columns.items()
            if not _can_skip(name, column, group, source)
        }
        numbers = {leaf.index for column in wanted.values() for leaf in leaves_of(column)}
        data = _read(source, [chunk for chunk in group.chunks if chunk.leaf.index in numbers])
        for name, column in wanted.items():
            try:
                values = _decode(column, group, data, budget)
            except (LookupError, ValueError, struct.error) as error:
                raise UnsupportedParquet(f"a corrupt column: {error}") from None
            found += [(name, value) for value in values]
    return found


def _can_skip(name: str, column: ParquetGroup, group: RowGroup, source: TailReadFile) -> bool:
    """Return True if reading is costly, and statistics show only nulls in the whole group.

    Data that is already in memory is decoded anyway, so that damage is detected.
    """
    chunks = {chunk.leaf.index: chunk for chunk in group.chunks}
    for leaf in leaves_of(column):
        chunk = chunks[leaf.index]
        if source.has_read(chunk.start) or not chunk.nulls == chunk.values == group.rows:
            return False
    return any(
        isinstance(field, Leaf)
        and (field.definition == column.definition or key in _ALWAYS_SET.get(name, ()))
        for key, field in column.fields.items()
    )


def _read(source: TailReadFile, chunks: list[ColumnChunk]) -> dict[int, bytes]:
    """Return the bytes of each chunk by the index of its leaf; adjacent chunks are read at once."""
    data: dict[int, bytes] = {}
    ordered = sorted(chunks, key=lambda chunk: chunk.start)
    while ordered:
        count = 1
        while count < len(ordered) and ordered[count].start == ordered[count - 1].end:
            count += 1
        start = ordered[0].start
        block = source.read(start, ordered[count - 1].end)
        for chunk in ordered[:count]:
            data[chunk.leaf.index] = block[chunk.start - start : chunk.end - start]
        ordered = ordered[count:]
    return data


def _decode(
    column: ParquetGroup, group: RowGroup, data: dict[int, bytes], budget: DecompressionBudget
) -> list[dict[str, Any]]:
    numbers = {leaf.index for leaf in leaves_of(column)}
    cells = {
        chunk.leaf.index: LeafValues(data[chunk.leaf.index], chunk, column.definition, budget)
        for chunk in group.chunks
        if chunk.leaf.index in numbers
    }
    return column_values(column, cells, group.rows)
