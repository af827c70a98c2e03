"""Columns with statistics in Delta, and refusals that depend on them.

Source: Delta Spark 4.4's `StatisticsCollection`, `SkippingEligibleDataType`, `ClusteringColumn` and
`ClusteredTableUtils`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from deltaproto.planning.predict.collations import has_collation
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    FieldIndex,
    Map,
    Path,
    Struct,
    Type,
    child_columns,
    dotted_path,
    find_column,
)
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.metadata import quote_if_needed
from deltaproto.protocol.properties import (
    INDEXED_COLUMNS_PROPERTY,
    STATISTICS_COLUMNS_PROPERTY,
    parse_column_names,
)
from deltaproto.sql.quoting import quote_identifier

_INDEXED = 32
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_ORDERED = (*_NUMBERS, "date", "timestamp", "string", "char", "varchar")
_UNKNOWN = "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"
_MOST = 4
_NO_TYPE = "cluster by numbers, strings, dates or timestamps"


def _validate_path(schema: Struct, path: Path, index: FieldIndex) -> Refusal | None:
    """Refuse a path that Delta cannot find; None if it exists."""
    at: Type = schema
    for number, name in enumerate(path, 1):
        match at:
            case Struct():
                found = index.find(at, name)
                if found is None:
                    return _missing_column(path[:number])
            case Array() | Map():
                parts = child_columns(Column("", at))
                found = next((part for part in parts if part.name == name), None)
                if found is None:
                    return _collection_path_refusal(at, path[: number - 1])
            case Atomic():
                return Refusal(
                    "DELTA_COLUMN_PATH_NOT_NESTED",
                    f"{dotted_path(path[: number - 1])} has no fields, so no {name}",
                    "run DESCRIBE to see the columns",
                )
        at = found.type
    return None


def _missing_column(path: Path) -> Refusal:
    remedy = "run DESCRIBE to see the columns"
    return Refusal(_UNKNOWN, f"the table has no column {dotted_path(path)}", remedy)


def _collection_path_refusal(kind: Array | Map, path: Path) -> Refusal:
    if isinstance(kind, Array):
        error, part = "DELTA_INCORRECT_ARRAY_ACCESS_BY_NAME", "element"
    else:
        error, part = "DELTA_FOUND_MAP_TYPE_COLUMN", "key or value"
    message = f"{dotted_path(path)} has no fields: its parts are called {part}"
    return Refusal(error, message, "run DESCRIBE to see the columns")


def is_eligible(kind: Type) -> bool:
    """Return True if Delta stores min and max values for a type."""
    if not isinstance(kind, Atomic) or has_collation(kind.name):
        return False
    return kind.name.startswith(_ORDERED) or kind.name == "variant"


def validate_statistics_columns(table: Table) -> Refusal | None:
    """Refuse invalid columns in `delta.dataSkippingStatsColumns`.

    Delta checks them with every metadata change.
    """
    named = parse_column_names(table.configuration.get(STATISTICS_COLUMNS_PROPERTY, ""))
    if table.schema is None or not named:
        return None
    partitions, data, index = _folded_partitions(table), _data_columns(table), FieldIndex()
    seen: list[Path] = []
    for path in named:
        if dotted_path(path).casefold() in partitions:
            return Refusal(
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
                f"{STATISTICS_COLUMNS_PROPERTY} names {dotted_path(path)}, a partition column",
                "list only data columns",
            )
        refusal = _validate_path(data, path, index)
        if refusal is not None:
            message = f"{STATISTICS_COLUMNS_PROPERTY} names {dotted_path(path)}: {refusal.message}"
            return refusal._replace(message=message)
        column = _find_exact(data, path, index)
        if column is None:
            continue
        if len(path) == 1 and not isinstance(column.type, Struct) and not is_eligible(column.type):
            return Refusal(
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
                f"{STATISTICS_COLUMNS_PROPERTY} names {dotted_path(path)}, whose "
                "type has no min and max values",
                "list numbers, strings, dates, timestamps, or structs of them",
            )
        seen += _leaves(path, column)
    twice = [dotted_path(path) for path, count in Counter(seen).items() if count > 1]
    if twice:
        return Refusal(
            "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
            f"{STATISTICS_COLUMNS_PROPERTY} lists {', '.join(twice)} twice",
            "list each column once",
        )
    return None


def _folded_partitions(table: Table) -> frozenset[str]:
    return frozenset(name.casefold() for name in table.partition_columns)


def _data_columns(table: Table) -> Struct:
    partitions, schema = _folded_partitions(table), table.schema or Struct(())
    return Struct(tuple(c for c in schema.columns if c.name.casefold() not in partitions))


def _find_exact(schema: Struct, path: Path, index: FieldIndex) -> Column | None:
    """Return the column with exactly this spelling; Delta does not check the types of others."""
    at = Column("", schema)
    for number, name in enumerate(path, 1):
        if number == len(path) and not isinstance(at.type, Struct):
            return None
        if isinstance(at.type, Struct):
            found = index.find_exact(at.type, name)
        else:
            found = next((part for part in child_columns(at) if part.name == name), None)
        if found is None:
            return None
        at = found
    return at


def _leaves(path: Path, column: Column) -> Iterator[Path]:
    if not isinstance(column.type, Struct):
        yield path
        return
    for field in column.type.columns:
        yield from _leaves((*path, field.name), field)


def validate_clustering(table: Table, columns: Sequence[Path]) -> Refusal | None:
    """Return why these clustering columns are invalid: missing, repeated, or too many.

    Covers Spark's checks before Delta's; returns None if the columns are unknown.
    """
    index = FieldIndex()
    for path in columns if table.schema is not None else ():
        assert table.schema is not None
        refusal = _validate_path(table.schema, path, index)
        if refusal is not None:
            return refusal
    paths = Counter(map(_folded, columns))
    twice = [path for path, count in paths.items() if count > 1]
    if twice:
        error = "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"
        return Refusal(error, f"{dotted_path(twice[0])} is listed twice", "list it once")
    if len(columns) > _MOST:
        return Refusal(
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            f"a table can have at most {_MOST} clustering columns",
            "list fewer columns",
        )
    return None


def validate_clustering_statistics(table: Table, columns: Sequence[Path]) -> Refusal | None:
    """Refuse clustering columns without statistics."""
    schema = table.schema
    if schema is None:
        return None
    index = FieldIndex()
    for path in columns:
        for number in range(1, len(path) + 1):
            parent = schema if number == 1 else _type(schema, path[: number - 1], index)
            if not isinstance(parent, Struct):
                return _missing_column(path)
            if _holds_variant(_type(schema, path[:number], index)):
                return _unordered_type_refusal(path)
    kept = set(map(_folded, statistics_columns(table)))
    missing = [path for path in columns if _folded(path) not in kept]
    for path in missing:
        if not is_eligible(_type(schema, path, index)):
            return _unordered_type_refusal(path)
    if missing:
        return Refusal(
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            f"Delta stores no statistics for {', '.join(map(dotted_path, missing))}",
            _store_them(missing),
        )
    return None


def validate_zorder(table: Table, columns: Sequence[Path]) -> Refusal | None:
    """Refuse ZORDER BY columns that do not exist, partition the table, or lack statistics."""
    index, partitions, schema = FieldIndex(), _folded_partitions(table), table.schema
    kept = None if schema is None else _only(schema, (), frozenset(_chosen_leaves(table)))
    missing = []
    for path in columns:
        refusal = None if kept is None else _validate_path(kept, path, index)
        if refusal is not None and refusal.error != _UNKNOWN:
            return refusal
        missing += [path] if refusal is not None else []
        if dotted_path(path).casefold() in partitions:
            return Refusal(
                "DELTA_ZORDERING_ON_PARTITION_COLUMN",
                f"{dotted_path(path)} is a partition column",
                "order by data columns",
            )
        unknown = None if schema is None else _validate_attribute(schema, path)
        if unknown is not None:
            return unknown
    if not missing:
        return None if schema is None else _validate_values(schema, columns, index)
    return Refusal(
        "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
        f"Delta stores no statistics for {', '.join(map(dotted_path, missing))}, so the order "
        "would not help",
        _store_them(missing),
    )


def _store_them(missing: Sequence[Path]) -> str:
    it = "it" if len(missing) == 1 else "them"
    return f"add {it} to {STATISTICS_COLUMNS_PROPERTY}, or raise {INDEXED_COLUMNS_PROPERTY}"


def _validate_attribute(schema: Struct, path: Path) -> Refusal | None:
    """Refuse a column that Spark does not find."""
    at: Type = schema
    for number, name in enumerate(path, 1):
        match at:
            case Struct() | Array(Struct()):
                # For an array, Spark takes the field of each element.
                inner = at if isinstance(at, Struct) else at.element
                found = find_column(inner, (name,)) if isinstance(inner, Struct) else None
                if found is None:
                    return Refusal(
                        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"
                        if number == 1
                        else "FIELD_NOT_FOUND",
                        f"the table has no column {dotted_path(path[:number])}",
                        "run DESCRIBE to see the columns",
                    )
                at = found.type
            case Map():
                at = at.value
            case Array():
                return None
            case Atomic():
                return Refusal(
                    "INVALID_EXTRACT_BASE_FIELD_TYPE",
                    f"{dotted_path(path[: number - 1])} has no fields, so no {name}",
                    "run DESCRIBE to see the columns",
                )
    return None


def _validate_values(schema: Struct, columns: Sequence[Path], index: FieldIndex) -> Refusal | None:
    """Refuse columns whose values have no order."""
    for path in columns:
        if _is_unordered(_type(schema, path, index)):
            return Refusal(
                "",
                f"{dotted_path(path)} has values that cannot be sorted, so OPTIMIZE fails if it "
                "has files to order",
                "order by other columns",
                sure=False,
            )
    return None


def _is_unordered(kind: Type) -> bool:
    return (
        isinstance(kind, Map)
        or kind == Atomic("variant")
        or any(_is_unordered(part.type) for part in child_columns(Column("", kind)))
    )


def _only(struct: Struct, parent: Path, leaves: frozenset[Path]) -> Struct:
    """Return the struct with these leaves, and structs that contain any."""
    kept = []
    for column in struct.columns:
        path = (*parent, column.name)
        if not isinstance(column.type, Struct):
            kept += [column] if path in leaves else []
            continue
        fields = _only(column.type, path, leaves)
        kept += [column._replace(type=fields)] if fields.columns else []
    return Struct(tuple(kept))


def _unordered_type_refusal(path: Path) -> Refusal:
    error = "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"
    return Refusal(error, f"files have no min and max values for {dotted_path(path)}", _NO_TYPE)


def _type(schema: Struct, path: Path, index: FieldIndex) -> Type:
    found = find_column(schema, path, index)
    return Atomic("") if found is None else found.type


def _holds_variant(kind: Type) -> bool:
    column = Column("", kind)
    return kind == Atomic("variant") or any(
        _holds_variant(part.type) for part in child_columns(column)
    )


def statistics_columns(table: Table) -> frozenset[Path]:
    """Return the columns for which new files have min and max values, by path.

    Empty if the table's columns are unknown.
    """
    schema, index = table.schema or Struct(()), FieldIndex()
    chosen = _chosen_leaves(table)
    return frozenset(path for path in chosen if is_eligible(_type(schema, path, index)))


def _chosen_leaves(table: Table) -> list[Path]:
    """Return the columns, of any type, for which the properties request statistics."""
    named = parse_column_names(table.configuration.get(STATISTICS_COLUMNS_PROPERTY, "")) or ()
    leaves = [path for c in _data_columns(table).columns for path in _leaves((c.name,), c)]
    if STATISTICS_COLUMNS_PROPERTY in table.configuration:
        listed = {_folded(path) for path in named}
        return [path for path in leaves if not listed.isdisjoint(_prefixes(_folded(path)))]
    stored = parse_whole(table.configuration.get(INDEXED_COLUMNS_PROPERTY, ""))
    limit = _INDEXED if stored is None else stored
    return leaves if limit < 0 else leaves[:limit]


def _folded(path: Path) -> Path:
    return tuple(name.casefold() for name in path)


def _prefixes(path: Path) -> Iterator[Path]:
    """Yield the path, the paths of its parents, and the path of the whole schema."""
    return (path[:length] for length in range(len(path) + 1))


def rename_column(table: Table, old: Path, new: Path) -> Table:
    """Return the table with a column renamed in `delta.dataSkippingStatsColumns`.

    Delta compares names case-sensitively.
    """
    named = _configured_columns(table)
    if named is None or old == new:
        return table
    after = [(*new, *path[len(old) :]) if path[: len(old)] == old else path for path in named]
    return _set_configured_columns(table, after, quote_if_needed)


def remove_columns(table: Table, dropped: Sequence[Path]) -> Table:
    """Return the table with columns removed from `delta.dataSkippingStatsColumns`."""
    named = _configured_columns(table)
    if named is None:
        return table
    after = [path for path in named if not any(path[: len(old)] == old for old in dropped)]
    # Delta quotes less here, so it may be unable to parse the list again.
    return _set_configured_columns(
        table, after, lambda name: quote_identifier(name) if "." in name else name
    )


def _configured_columns(table: Table) -> tuple[Path, ...] | None:
    stored = table.configuration.get(STATISTICS_COLUMNS_PROPERTY)
    return None if stored is None else parse_column_names(stored)


def _set_configured_columns(
    table: Table, paths: Iterable[Path], write: Callable[[str], str]
) -> Table:
    text = ",".join(".".join(map(write, path)) for path in paths)
    return table.with_properties({STATISTICS_COLUMNS_PROPERTY: text})
