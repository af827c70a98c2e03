"""Reads columns of a checkpoint with pyarrow, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from deltaproto.tables.log.files import corrupt_error
from deltaproto.tables.log.parquet.footer import (
    COMPRESSED,
    DATA,
    DICTIONARY,
    META,
    parse_metadata,
)
from deltaproto.tables.log.parquet.thrift import (
    I32,
    CompactReader,
    UnsupportedParquet,
    WantedFields,
    max_decompressed_bytes,
    max_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 64 << 20
_BATCH_ROWS = 64 * 1024
_HEADER_BYTES = 64 * 1024
_PAGE: WantedFields = {1: I32, 2: I32, 3: I32, 5: {1: I32}, 8: {1: I32}}
_DICTIONARY_PAGE = 2
_TAIL_BYTES = 8
"""the footer's length and the magic number, after the footer"""


class DecompressedTooLarge(ValueError):
    """The error of a file that decompresses to more than the limits, or to an unknown size."""


def read_batches(
    name: str, file: IO[bytes], wanted: Callable[[str], bool]
) -> Iterator[pa.RecordBatch]:
    """Yield the leaves whose dotted path is `wanted`, in batches of rows.

    Raises:
        TableError: corrupt-log, when the file is damaged or exceeds the limits.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(file)
        size = file.seek(0, 2)
        schema, rows = parquet.metadata.schema, parquet.metadata.num_rows
        if rows > max_rows(size):
            raise DecompressedTooLarge(f"it has {rows} rows in {size} bytes")
        leaves = {i: schema.column(i).path for i in range(len(schema))}
        chosen = {i: path for i, path in leaves.items() if wanted(path)}
        left = max_decompressed_bytes(size)
        # Statistics are not requested: damaged ones crash the whole process.
        at_once = _rows_at_once(file, parquet.metadata, chosen, left)
        columns = list(chosen.values())
        # After an error, threads of Arrow may still run when the process ends, which aborts it.
        for batch in parquet.iter_batches(at_once, columns=columns, use_threads=False):
            left -= batch.nbytes
            if left < 0:
                raise DecompressedTooLarge(
                    f"it decompresses to more than {max_decompressed_bytes(size)} bytes"
                )
            yield batch
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise corrupt_error(name, None, f"not a readable checkpoint: {why}") from None


def column_to_list(name: str, values: pa.Array) -> list[Any]:
    """Convert the values of a column to Python objects.

    Raises:
        TableError: corrupt-log, when they cannot be decoded.
    """
    try:
        found: list[Any] = values.to_pylist()
    except ValueError as error:
        raise corrupt_error(name, None, f"not a readable checkpoint: {error}") from None
    return found


def _rows_at_once(file: IO[bytes], metadata: Any, leaves: dict[int, str], limit: int) -> int:
    """Return how many rows of the leaves may be decoded together.

    Computed from the page headers: the footer's sizes cannot be trusted. A dictionary value may
    occur in every row and in every element of a list.
    """
    left, largest = limit, 1
    for rows, chunks in _row_groups(file, len(metadata.schema)):
        for index in leaves:
            repeats = metadata.schema.column(index).max_repetition_level > 0
            elements = dictionary = 0
            for kind, expanded, values in _read_page_headers(file, chunks[index]):
                left -= expanded
                elements += values
                if kind == _DICTIONARY_PAGE:
                    dictionary = expanded
            if left < 0:
                raise DecompressedTooLarge(f"it decompresses to more than {limit} bytes")
            if repeats and (elements - rows) * max(8, dictionary) > limit:
                raise DecompressedTooLarge(f"its lists decompress to more than {limit} bytes")
            largest = max(largest, dictionary)
    return max(16, min(_BATCH_ROWS, _BATCH_BYTES // largest))


def _row_groups(file: IO[bytes], columns: int) -> Iterator[tuple[int, list[Mapping[int, int]]]]:
    """Yield the row count of each row group, and the position of each column's chunk.

    pyarrow parses statistics with the chunks, and damaged ones crash the whole process.
    """
    end = file.seek(-_TAIL_BYTES, 2)
    size = int.from_bytes(file.read(4), "little")
    file.seek(end - size)
    try:
        groups = parse_metadata(file.read(size)).groups
    except (LookupError, ValueError, UnsupportedParquet):
        raise DecompressedTooLarge("its footer cannot be read") from None
    for rows, found in groups:
        chunks = [chunk.get(META, {}) for chunk in found]
        if len(chunks) != columns or any({DATA, COMPRESSED} - chunk.keys() for chunk in chunks):
            raise DecompressedTooLarge("its footer cannot be read")
        yield rows, chunks


def _read_page_headers(file: IO[bytes], chunk: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield each page's type, decompressed size and number of values (0 for a dictionary)."""
    pos = chunk[DATA]
    if 0 < chunk.get(DICTIONARY, 0) < pos:
        pos = chunk[DICTIONARY]
    end = pos + chunk[COMPRESSED]
    while pos < end:
        file.seek(pos)
        thrift = CompactReader(file.read(min(_HEADER_BYTES, end - pos)))
        try:
            header = thrift.struct(_PAGE)
            kind, expanded, stored = header[1], header[2], header[3]
        except (LookupError, ValueError, UnsupportedParquet):
            raise DecompressedTooLarge("a page header cannot be read") from None
        if stored < 0 or expanded < 0:
            raise DecompressedTooLarge("a page header cannot be read")
        yield kind, expanded, (header.get(5) or header.get(8) or {}).get(1, 0)
        pos += thrift.pos + stored
