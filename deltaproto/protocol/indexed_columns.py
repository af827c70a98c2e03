"""The columns whose bounds a reader may expect in the statistics of data files.

Source: deltalake 1.6.6, `filestats_to_expression_next` and the statistics schema, and measurements
of 0.15.2 to 1.6.6 with statistics that lack a column, type by type.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.metadata import Metadata, physical_name
from deltaproto.protocol.properties import (
    INDEXED_COLUMNS_PROPERTY,
    STATISTICS_COLUMNS_PROPERTY,
    parse_column_names,
)

_INDEXED = 32
"""number of columns with statistics, unless a property sets another"""
_BOUNDED = frozenset(
    {
        *("byte", "short", "integer", "long", "float", "double", "string", "boolean"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
_DEEPEST = 100


class IndexedColumn(NamedTuple):
    """A top-level column for which statistics can have bounds."""

    name: str
    """the name in data files and their statistics"""
    type: str
    """empty for a struct"""
    boolean: bool
    """True for a boolean column, or a struct in which no other columns have bounds"""
    later: bool
    """True if only readers that count a struct as one column expect its bounds"""


def indexed_columns(metadata: Metadata) -> Iterator[IndexedColumn]:
    """Yield the columns of a table whose bounds readers expect."""
    return select_indexed(metadata.schema, metadata.configuration, metadata.partition_columns)


def select_indexed(
    schema: Any, configuration: Mapping[str, str | None], partition_columns: Sequence[str]
) -> Iterator[IndexedColumn]:
    """Yield the columns of a schema, as in the log, whose bounds readers expect.

    These are the columns in `delta.dataSkippingStatsColumns`, or the first 32 or
    `delta.dataSkippingNumIndexedCols`, where every column in a struct counts. Partition columns
    count, but have no statistics.
    """
    named = configuration.get(STATISTICS_COLUMNS_PROPERTY)
    paths = None if named is None else parse_column_names(named)
    wanted = None if paths is None else {path[0] for path in paths if len(path) == 1}
    limit = parse_whole(configuration.get(INDEXED_COLUMNS_PROPERTY) or "")
    limit = _INDEXED if limit is None else limit
    before = 0
    for place, field in enumerate(_fields(schema)):
        name, kind = field.get("name"), field.get("type")
        leaves = [kind] if isinstance(kind, str) else list(_leaf_types(kind))
        later = wanted is None and 0 <= limit <= before
        before += len(leaves)
        expected = limit < 0 or place < limit if wanted is None else name in wanted
        if not expected or name in partition_columns:
            continue
        bounded = {leaf for leaf in leaves if leaf in _BOUNDED or leaf.startswith("decimal")}
        stored = physical_name(field)
        if bounded and isinstance(stored, str):
            yield IndexedColumn(
                stored, kind if isinstance(kind, str) else "", bounded == {"boolean"}, later
            )


def has_indexed_booleans(metadata: Metadata) -> bool:
    """Return True if the bounds of a boolean column are expected."""
    return any(column.boolean for column in indexed_columns(metadata))


def has_indexed_timestamps(metadata: Metadata) -> bool:
    """Return True if the bounds of timestamps are expected, which are rounded to milliseconds."""
    return any(column.type.startswith("timestamp") for column in indexed_columns(metadata))


def _fields(schema: Any) -> Sequence[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    return [field for field in fields or () if isinstance(field, Mapping)]


def _leaf_types(kind: Any, depth: int = 0) -> Iterator[str]:
    """Yield the types of a column's leaves; arrays and maps are one leaf without bounds."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, Mapping) and kind.get("type") == "struct" and depth < _DEEPEST:
        for field in _fields(kind):
            yield from _leaf_types(field.get("type"), depth + 1)
    else:
        yield ""
