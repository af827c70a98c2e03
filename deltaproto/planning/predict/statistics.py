"""Columns with statistics in Delta, and refusals that depend on them.

Source: Delta Spark 4.4's `StatisticsCollection`, `SkippingEligibleDataType`, `ClusteringColumn` and
`ClusteredTableUtils`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    Map,
    Path,
    Struct,
    Type,
    dotted,
    find,
    parts,
    same,
)
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.metadata import quoted
from deltaproto.protocol.properties import INDEXED, STATISTICS, names_in
from deltaproto.sql.quoting import identifier

_INDEXED = 32
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_ORDERED = (*_NUMBERS, "date", "timestamp", "string", "char", "varchar")
_UNKNOWN = "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"
_MOST = 4
_NO_TYPE = "cluster by numbers, strings, dates or timestamps"


def misplaced(schema: Struct, path: Path) -> Refusal | None:
    """Refuse a path that Delta cannot find; None if it exists."""
    at: Type = schema
    for number, name in enumerate(path, 1):
        here = Column("", at)
        match at:
            case Struct():
                found = next((part for part in parts(here) if same(part.name, name)), None)
                if found is None:
                    return _missing(path[:number])
            case Array() | Map():
                found = next((part for part in parts(here) if part.name == name), None)
                if found is None:
                    return _inside(at, path[: number - 1])
            case Atomic():
                return Refusal(
                    "DELTA_COLUMN_PATH_NOT_NESTED",
                    f"{dotted(path[: number - 1])} has no fields, so no {name}",
                    "run DESCRIBE to see the columns",
                )
        at = found.type
    return None


def _missing(path: Path) -> Refusal:
    remedy = "run DESCRIBE to see the columns"
    return Refusal(_UNKNOWN, f"the table has no column {dotted(path)}", remedy)


def _inside(kind: Array | Map, path: Path) -> Refusal:
    if isinstance(kind, Array):
        error, part = "DELTA_INCORRECT_ARRAY_ACCESS_BY_NAME", "element"
    else:
        error, part = "DELTA_FOUND_MAP_TYPE_COLUMN", "key or value"
    message = f"{dotted(path)} has no fields: its parts are called {part}"
    return Refusal(error, message, "run DESCRIBE to see the columns")


def eligible(kind: Type, *, variants: bool = True) -> bool:
    """Return True if Delta stores min and max values for a type."""
    if not isinstance(kind, Atomic) or kind.name.startswith("string collate"):
        return False
    return kind.name.startswith(_ORDERED) or (variants and kind.name == "variant")


def misnamed(table: Table) -> Refusal | None:
    """Refuse invalid columns in `delta.dataSkippingStatsColumns`.

    Delta checks them with every metadata change.
    """
    named = names_in(table.configuration.get(STATISTICS, ""))
    if table.schema is None or not named:
        return None
    data = Struct(tuple(c for c in table.schema.columns if not _partition(table, (c.name,))))
    seen: list[Path] = []
    for path in named:
        if _partition(table, path):
            return Refusal(
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
                f"{STATISTICS} names {dotted(path)}, a partition column",
                "list only data columns",
            )
        refusal = misplaced(data, path)
        if refusal is not None:
            message = f"{STATISTICS} names {dotted(path)}: {refusal.message}"
            return refusal._replace(message=message)
        column = _exactly(data, path)
        if column is None:
            continue
        if len(path) == 1 and not isinstance(column.type, Struct) and not eligible(column.type):
            return Refusal(
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
                f"{STATISTICS} names {dotted(path)}, whose type has no min and max values",
                "list numbers, strings, dates, timestamps, or structs of them",
            )
        seen += _leaves(path, column)
    twice = [dotted(path) for path, count in Counter(seen).items() if count > 1]
    if twice:
        return Refusal(
            "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
            f"{STATISTICS} lists {', '.join(twice)} twice",
            "list each column once",
        )
    return None


def _partition(table: Table, path: Path) -> bool:
    return any(same(dotted(path), name) for name in table.partition_columns)


def _exactly(schema: Struct, path: Path) -> Column | None:
    """Return the column with this exact spelling; Delta checks the type of no others."""
    at = Column("", schema)
    for number, name in enumerate(path, 1):
        if number == len(path) and not isinstance(at.type, Struct):
            return None
        found = next((part for part in parts(at) if part.name == name), None)
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


def unclusterable(table: Table, columns: Sequence[Path]) -> Refusal | None:
    """Return why these clustering columns are invalid: missing, repeated, or too many.

    Covers Spark's checks before Delta's; returns None if the columns are unknown.
    """
    for path in columns if table.schema is not None else ():
        assert table.schema is not None
        refusal = misplaced(table.schema, path)
        if refusal is not None:
            return refusal
    paths = Counter(tuple(name.casefold() for name in path) for path in columns)
    twice = [path for path, count in paths.items() if count > 1]
    if twice:
        error = "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"
        return Refusal(error, f"{dotted(twice[0])} is listed twice", "list it once")
    if len(columns) > _MOST:
        return Refusal(
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            f"a table can have at most {_MOST} clustering columns",
            "list fewer columns",
        )
    return None


def unranked(table: Table, columns: Sequence[Path]) -> Refusal | None:
    """Refuse clustering columns without statistics."""
    schema = table.schema
    if schema is None:
        return None
    for path in columns:
        for number in range(1, len(path) + 1):
            parent = schema if number == 1 else _type(schema, path[: number - 1])
            if not isinstance(parent, Struct):
                return _missing(path)
            if _holds_variant(_type(schema, path[:number])):
                return _unordered(path)
    kept = {tuple(name.casefold() for name in path) for path in collected(table)}
    missing = [p for p in columns if tuple(name.casefold() for name in p) not in kept]
    for path in missing:
        if not eligible(_type(schema, path)):
            return _unordered(path)
    if missing:
        return Refusal(
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            f"Delta stores no statistics for {', '.join(map(dotted, missing))}",
            f"add it to {STATISTICS}, or raise {INDEXED}",
        )
    return None


def _unordered(path: Path) -> Refusal:
    error = "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"
    return Refusal(error, f"files have no min and max values for {dotted(path)}", _NO_TYPE)


def _type(schema: Struct, path: Path) -> Type:
    found = find(schema, path)
    return Atomic("") if found is None else found.type


def _holds_variant(kind: Type) -> bool:
    column = Column("", kind)
    return kind == Atomic("variant") or any(_holds_variant(part.type) for part in parts(column))


def collected(table: Table) -> frozenset[Path]:
    """Return the columns for which new files have min and max values, by path.

    Empty if the table's columns are unknown.
    """
    schema = table.schema or Struct(())
    data = Struct(tuple(c for c in schema.columns if not _partition(table, (c.name,))))
    named = names_in(table.configuration.get(STATISTICS, "")) or ()
    leaves = [path for c in data.columns for path in _leaves((c.name,), c)]
    if STATISTICS in table.configuration:
        chosen = [path for path in leaves if any(_within(path, name) for name in named)]
    else:
        stored = table.configuration.get(INDEXED, "")
        limit = int(stored) if stored.lstrip("+-").isdecimal() else _INDEXED
        chosen = leaves if limit < 0 else leaves[:limit]
    return frozenset(path for path in chosen if eligible(_type(schema, path)))


def _within(path: Path, name: Path) -> bool:
    return len(name) <= len(path) and all(map(same, path, name))


def renamed(table: Table, old: Path, new: Path) -> Table:
    """Return the table with a column renamed in `delta.dataSkippingStatsColumns`.

    Delta compares names case-sensitively.
    """
    named = _named(table)
    if named is None or old == new:
        return table
    after = [(*new, *path[len(old) :]) if path[: len(old)] == old else path for path in named]
    return _naming(table, after, quoted)


def without(table: Table, dropped: Sequence[Path]) -> Table:
    """Return the table with columns removed from `delta.dataSkippingStatsColumns`."""
    named = _named(table)
    if named is None:
        return table
    after = [path for path in named if not any(path[: len(old)] == old for old in dropped)]
    # Delta quotes less here, so it may be unable to parse the list again.
    return _naming(table, after, lambda name: identifier(name) if "." in name else name)


def _named(table: Table) -> tuple[Path, ...] | None:
    stored = table.configuration.get(STATISTICS)
    return None if stored is None else names_in(stored)


def _naming(table: Table, paths: Iterable[Path], write: Callable[[str], str]) -> Table:
    text = ",".join(".".join(map(write, path)) for path in paths)
    return table.with_properties({STATISTICS: text})
