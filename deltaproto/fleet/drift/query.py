"""The query behind `drift`, and drift between two scans on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from deltaproto.fleet.drift.attribution import CommitAttributor
from deltaproto.fleet.drift.diff import COMPARED, Difference, ScannedTable, changes, seen, unseen
from deltaproto.fleet.read_inventory import errors
from deltaproto.fleet.scan_history import LocalQuestions, Pair, literal
from deltaproto.fleet.schemas import Inventory

_OF_ERRORS = ("code", "message")
_BEFORE, _NOW = "before_", "now_"


_USAGE = (
    "array_sort(array_agg(CONCAT(CASE WHEN enabled THEN '+' "
    "WHEN feature = 'changeDataFeed' AND NOT enabled THEN '-' "
    "WHEN present THEN '+' WHEN NOT enabled AND NOT present THEN '-' ELSE '?' END, feature)))"
)
"""The use of each feature of a table, equivalent to `clients.requirements.used`."""


def query(
    pair: Pair,
    quote: str,
    tables: str = "tables",
    errors: str = "errors",
    features: str = "features",
) -> str:
    """Query with one row per table that differs between two scans.

    Args:
        quote: the engine's quote character for names.
        tables, errors, features: the engine's names of these tables of the inventory.
    """
    name = f"{quote}table{quote}"
    sides = (
        _side(scan.scan_id, name, tables, errors, features) for scan in (pair.before, pair.now)
    )
    before, now = sides
    columns = ", ".join(
        f"{alias}.{column} AS {prefix}{column}"
        for alias, prefix in (("b", _BEFORE), ("n", _NOW))
        for column in COMPARED
    )
    # A table with newer commits but no other difference did not change.
    telling = [column for column in COMPARED if column not in ("version", "message")]
    differs = " OR ".join(f"(b.{column} IS DISTINCT FROM n.{column})" for column in telling)
    return (
        f"SELECT COALESCE(n.location, b.location) AS location, "  # noqa: S608  literals only
        f"COALESCE(n.{name}, b.{name}) AS {name}, {columns} "
        f"FROM ({before}) b FULL OUTER JOIN ({now}) n ON b.location = n.location "
        f"WHERE b.location IS NULL OR n.location IS NULL OR {differs}"
    )


def _side(scan_id: str, name: str, tables: str, errors: str, features: str) -> str:
    read = ", ".join(
        f"CAST(NULL AS STRING) AS {column}"
        if column in _OF_ERRORS
        else ("u.usage" if column == "usage" else f"t.{column}")
        for column in COMPARED
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
        for column in COMPARED
    )
    scan = literal(scan_id)
    return (
        f"SELECT t.location, t.{name}, {read} FROM {tables} t LEFT JOIN "  # noqa: S608
        f"(SELECT location AS place, {_USAGE} AS usage FROM {features} WHERE scan_id = {scan} "
        f"GROUP BY location) u ON t.location = u.place WHERE t.scan_id = {scan} "
        f"UNION ALL SELECT location, {name}, {refused} FROM {errors} WHERE scan_id = {scan}"
    )


class Places(NamedTuple):
    """Places that could not be searched, by location: anything below them is unknown."""

    before: Mapping[str, ScannedTable]
    now: Mapping[str, ScannedTable]
    alike: bool
    """True if both scans cover the same roots; otherwise added and removed tables are unknown"""


def places_of(errors: Iterable[Mapping[str, Any]]) -> dict[str, ScannedTable]:
    """The errors of one scan, by location."""
    return {row["location"]: unseen(row["code"], row["message"]) for row in errors}


class ScanErrors(NamedTuple):
    """The changes of one table, and its state in the earlier scan."""

    changes: tuple[Difference, ...]
    before: ScannedTable | None


def told(row: Mapping[str, Any], places: Places) -> ScanErrors:
    """Convert one query row."""
    location = row["location"]
    before, now = seen(row, _BEFORE), seen(row, _NOW)
    if (before is None or now is None) and not places.alike:
        return ScanErrors((), before)
    before = before or _above(location, places.before)
    now = now or _above(location, places.now)
    return ScanErrors(tuple(changes(location, row["table"], before, now)), before)


def _above(location: str, places: Mapping[str, ScannedTable]) -> ScannedTable | None:
    """The error of the nearest folder above, or None."""
    above = location
    while places and "/" in above:
        above = above.rpartition("/")[0]
        if above in places:
            return places[above]
    return None


_THREADS = 16
_NEEDED = (Inventory.TABLES, Inventory.ERRORS, Inventory.FEATURES)


def drift(
    questions: LocalQuestions, pair: Pair, detective: CommitAttributor | None
) -> Iterator[Difference]:
    """Every change between the two scans, by location.

    Args:
        detective: finds the commits in the tables' logs; None: skip this.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    before, now = (places_of(errors(questions, scan)) for scan in (pair.before, pair.now))
    places = Places(before, now, pair.alike)

    def solved(row: Mapping[str, Any]) -> Sequence[Difference]:
        found = told(row, places)
        return detective.solve(*found) if detective and found.changes else found.changes

    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in questions.ask(f"{query(pair, questions.quote)} ORDER BY location", _NEEDED):
            for found in pool.map(solved, batch.to_pylist()):
                yield from found
