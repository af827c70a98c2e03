"""The query behind `find_drift`, and drift between two scans on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.fleet.catalog_places import parse_catalog_place
from deltaproto.fleet.drift.attribution import CommitAttributor
from deltaproto.fleet.drift.diff import (
    COMPARED_FIELDS,
    CausingCommit,
    ChangeKind,
    Difference,
    ScannedTable,
    find_differences,
    scanned_table,
    unreadable_table,
)
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.read_inventory import read_error_rows
from deltaproto.fleet.rows_builder import arrow_array, microseconds
from deltaproto.fleet.scan_history import ScanPair, sql_literal
from deltaproto.fleet.schemas import Inventory
from deltaproto.interrupts import map_in_threads, reader_pool
from deltaproto.location import is_catalog_name
from deltaproto.policy.document import SAME_STORE, normalize_location

if TYPE_CHECKING:
    import pyarrow as pa


_OF_ERRORS = ("code", "message")
_BEFORE, _NOW = "before_", "now_"


_USAGE = (
    "array_sort(array_agg(CONCAT(CASE WHEN enabled THEN '+' "
    "WHEN feature = 'changeDataFeed' AND NOT enabled THEN '-' "
    "WHEN present THEN '*' WHEN NOT enabled AND NOT present THEN '-' "
    "WHEN NOT enabled THEN '~' ELSE '?' END, feature)))"
)
"""The use of each feature of a table, equivalent to `clients.requirements.is_used`.

`+` and `*` are used, `-` is not used, the others are unknown (`ScannedTable.usage`)."""


def drift_query(
    pair: ScanPair,
    quote: str,
    tables: str = "tables",
    errors: str = "errors",
    features: str = "features",
) -> str:
    """Return the query with one row per table that differs between two scans.

    A moved table is one row: `moved_from` and `moved_name` are its location and name before.

    Args:
        quote: the engine's quote character for names.
        tables, errors, features: the engine's names of these tables of the inventory.
    """
    name = f"{quote}table{quote}"
    sides = (
        _scan_subquery(scan.scan_id, name, tables, errors, features)
        for scan in (pair.before, pair.now)
    )
    before, now = sides
    moves = _moves_subquery(pair, tables, errors)
    columns = ", ".join(
        f"{alias}.{column} AS {prefix}{column}"
        for alias, prefix in (("b", _BEFORE), ("n", _NOW))
        for column in COMPARED_FIELDS
    )
    # A table with newer commits but no other difference counts as unchanged.
    telling = [column for column in COMPARED_FIELDS if column not in ("version", "message")]
    differs = " OR ".join(f"(b.{column} IS DISTINCT FROM n.{column})" for column in telling)
    return (
        f"SELECT COALESCE(n.location, b.location) AS location, "  # noqa: S608  literals only
        f"COALESCE(n.{name}, b.{name}) AS {name}, "
        f"CASE WHEN b.moved THEN b.location END AS moved_from, "
        f"CASE WHEN b.moved THEN b.{name} END AS moved_name, {columns} "
        f"FROM (SELECT w.*, COALESCE(m.new_place, w.place) AS place_now, "
        f"m.new_place IS NOT NULL AS moved "
        f"FROM ({before}) w LEFT JOIN ({moves}) m ON w.place = m.old_place) b "
        f"FULL OUTER JOIN ({now}) n ON b.place_now = n.place "
        f"WHERE b.location IS NULL OR n.location IS NULL OR b.moved OR {differs}"
    )


def _moves_subquery(pair: ScanPair, tables: str, errors: str) -> str:
    """Return the query with the places of moved tables, before and now.

    A copy of a folder has the same table id, so a moved table is the only one with its id in
    either scan. One at an older version was restored from elsewhere.
    """
    old, new = (sql_literal(scan.scan_id) for scan in (pair.before, pair.now))
    place = _place("location")

    def alone(scan: str) -> str:
        return (
            f"SELECT id, MIN({place}) AS place, MIN(version) AS version "  # noqa: S608  literals only
            f"FROM {tables} WHERE scan_id = {scan} AND id IS NOT NULL "
            "GROUP BY id HAVING COUNT(*) = 1"
        )

    def places(scan: str) -> str:
        return (
            f"SELECT {place} AS place FROM {tables} WHERE scan_id = {scan} "  # noqa: S608  literals only
            f"UNION ALL SELECT {place} AS place FROM {errors} WHERE scan_id = {scan}"
        )

    return (
        f"SELECT o.place AS old_place, w.place AS new_place "  # noqa: S608  literals only
        f"FROM ({alone(old)}) o JOIN ({alone(new)}) w ON o.id = w.id "
        f"LEFT JOIN ({places(new)}) kept ON o.place = kept.place "
        f"LEFT JOIN ({places(old)}) known ON w.place = known.place "
        "WHERE o.version <= w.version AND kept.place IS NULL AND known.place IS NULL"
    )


def _scan_subquery(scan_id: str, name: str, tables: str, errors: str, features: str) -> str:
    read = ", ".join(
        f"CAST(NULL AS STRING) AS {column}"
        if column in _OF_ERRORS
        else ("u.usage" if column == "usage" else f"t.{column}")
        for column in COMPARED_FIELDS
    )
    # The stored protocol of an unreadable table does not count as its protocol.
    null = {
        "version": "CAST(NULL AS BIGINT)",
        "min_reader_version": "CAST(NULL AS INT)",
        "min_writer_version": "CAST(NULL AS INT)",
    }
    lists = ("reader_features", "writer_features")
    refused = ", ".join(
        column
        if column in (*_OF_ERRORS, *lists)
        # Both engines need a list here; the features of an unreadable table are not in use.
        else "reader_features AS usage"
        if column == "usage"
        else f"{null.get(column, 'CAST(NULL AS STRING)')} AS {column}"
        for column in COMPARED_FIELDS
    )
    scan = sql_literal(scan_id)
    return (
        f"SELECT {_place('t.location')} AS place, t.location, t.{name}, {read} "  # noqa: S608
        f"FROM {tables} t LEFT JOIN "
        f"(SELECT location AS used_by, {_USAGE} AS usage FROM {features} WHERE scan_id = {scan} "
        f"GROUP BY location) u ON t.location = u.used_by WHERE t.scan_id = {scan} "
        f"UNION ALL SELECT {_place('location')} AS place, location, {name}, {refused} "
        f"FROM {errors} WHERE scan_id = {scan}"
    )


def _place(column: str) -> str:
    """Return SQL for a location with one scheme for each kind of store, as the join's key."""
    cases = " ".join(
        f"WHEN {column} LIKE '{scheme}://%' "
        f"THEN CONCAT('{same}', SUBSTR({column}, {len(scheme) + 1}))"
        for scheme, same in SAME_STORE.items()
    )
    return f"CASE {cases} ELSE {column} END"


class UnreadablePlaces(NamedTuple):
    """Places that one scan could not search: anything below them is unknown."""

    by_location: Mapping[str, ScannedTable]
    """folders and tables, by `normalize_location`"""
    by_name: Mapping[tuple[str, ...], ScannedTable]
    """catalogs, schemas and tables of catalogs, by the parts of their names in lower case; a whole
    server has no parts"""


class ScanPlaces(NamedTuple):
    """The places that each of two scans could not search."""

    before: UnreadablePlaces
    now: UnreadablePlaces
    same_roots: bool
    """True if both scans cover the same roots; otherwise added and removed tables are unknown"""


def unreadable_places(errors: Iterable[Mapping[str, Any]]) -> UnreadablePlaces:
    """Return the places of the errors of one scan."""
    by_location: dict[str, ScannedTable] = {}
    by_name: dict[tuple[str, ...], ScannedTable] = {}
    for row in errors:
        error, place = unreadable_table(row["code"], row["message"]), row["location"]
        if in_catalog := parse_catalog_place(place):
            by_name[in_catalog.name] = error
        else:
            by_location[normalize_location(place)] = error
    return UnreadablePlaces(by_location, by_name)


class TableDrift(NamedTuple):
    """The changes of one table, and its state in the earlier scan."""

    changes: tuple[Difference, ...]
    before: ScannedTable | None


def changes_of_row(
    row: Mapping[str, Any], places: ScanPlaces, attributor: CommitAttributor | None
) -> Iterator[Difference]:
    """Yield the changes in one query row, with their commits if `attributor` finds them."""
    for found in _differences_of_row(row, places):
        yield from attributor.solve(*found) if attributor and found.changes else found.changes


def _differences_of_row(row: Mapping[str, Any], places: ScanPlaces) -> Iterator[TableDrift]:
    location, table = row["location"], row["table"]
    before, now = scanned_table(row, _BEFORE), scanned_table(row, _NOW)
    if (before is None or now is None or row["moved_from"]) and not places.same_roots:
        return
    if row["moved_from"] is None:
        before = before or _find_unreadable_parent(location, table, places.before)
        now = now or _find_unreadable_parent(location, table, places.now)
        yield TableDrift(tuple(find_differences(location, table, before, now)), before)
        return
    left = row["moved_from"], row["moved_name"]
    old_now = _find_unreadable_parent(*left, places.now)
    new_before = _find_unreadable_parent(location, table, places.before)
    if old_now is None and new_before is None:
        changes = find_differences(location, table, before, now, row["moved_from"])
        yield TableDrift(tuple(changes), before)
        return
    # The table may still be at the old place, or may have been at the new one before: a copy.
    yield TableDrift(tuple(find_differences(*left, before, old_now)), before)
    yield TableDrift(tuple(find_differences(location, table, new_before, now)), new_before)


def _find_unreadable_parent(
    location: str, table: str, places: UnreadablePlaces
) -> ScannedTable | None:
    """Return the error of the nearest folder above, or else of the schema or catalog, or None."""
    above = normalize_location(location) if places.by_location else ""
    while "/" in above:
        above = above.rpartition("/")[0]
        if above in places.by_location:
            return places.by_location[above]
    named = parse_catalog_place(table) if places.by_name and is_catalog_name(table) else None
    if named:
        # The rows of tables do not record which server listed them.
        for length in range(len(named.name), -1, -1):
            if named.name[:length] in places.by_name:
                return places.by_name[named.name[:length]]
    return None


_THREADS = 16
_NEEDED = (Inventory.TABLES, Inventory.ERRORS, Inventory.FEATURES)


def find_drift(
    queries: LocalInventoryQueries, pair: ScanPair, attributor: CommitAttributor | None
) -> Iterator[Difference]:
    """Yield every change between the two scans, by location.

    Args:
        attributor: finds the commits in the tables' logs; None: skip this.

    Raises:
        TableError: when the inventory cannot be read.
    """
    before, now = (
        unreadable_places(read_error_rows(queries, scan)) for scan in (pair.before, pair.now)
    )
    places = ScanPlaces(before, now, pair.same_roots)

    def attributed(row: Mapping[str, Any]) -> Sequence[Difference]:
        return list(changes_of_row(row, places, attributor))

    with reader_pool(_THREADS) as pool:
        for batch in queries.ask(f"{drift_query(pair, queries.quote)} ORDER BY location", _NEEDED):
            for found in map_in_threads(pool, attributed, batch.to_pylist()):
                yield from found


@cache
def drift_schema() -> pa.Schema:
    """Return the columns of a table of changes."""
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            pa.field("location", text, nullable=False),
            pa.field("table", text, nullable=False),
            pa.field("change", text, nullable=False),
            pa.field("severity", text, nullable=False),
            pa.field("feature", text),
            pa.field("before", text),
            pa.field("after", text),
            pa.field("version_before", number),
            pa.field("version_after", number),
            pa.field("commit_version", number),
            pa.field("commit_at", pa.timestamp("us", tz="UTC")),
            pa.field("commit_operation", text),
            pa.field("commit_engine", text),
            pa.field("commit_user", text),
            pa.field("commit_job", text),
            pa.field("commit_plan", text),
            pa.field("moved_from", text),
        ]
    )


def differences_batch(changes: Iterable[Difference]) -> pa.RecordBatch:
    """Return the rows of some changes."""
    import pyarrow as pa

    columns: list[list[Any]] = [[] for _ in drift_schema()]
    for change in changes:
        commit = change.culprit
        values = (
            change.location,
            change.table,
            str(change.kind),
            str(change.severity),
            change.feature,
            change.before,
            change.after,
            change.version_before,
            change.version_after,
            *(
                (None,) * 7
                if commit is None
                else (
                    commit.version,
                    microseconds(commit.timestamp),
                    commit.operation,
                    commit.engine,
                    commit.user,
                    commit.job,
                    commit.plan,
                )
            ),
            change.moved_from,
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    arrays = [
        arrow_array(values, field.type)
        for values, field in zip(columns, drift_schema(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=drift_schema())


def parse_difference(row: Mapping[str, Any]) -> Difference:
    """Convert a row to a change."""
    version = row["commit_version"]
    return Difference(
        row["location"],
        row["table"],
        ChangeKind(row["change"]),
        row["feature"],
        row["before"],
        row["after"],
        row["version_before"],
        row["version_after"],
        None
        if version is None
        else CausingCommit(
            version,
            _milliseconds(row["commit_at"]),
            row["commit_operation"],
            row["commit_engine"],
            row["commit_user"],
            row["commit_job"],
            row["commit_plan"],
        ),
        row["moved_from"],
    )


def _milliseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
