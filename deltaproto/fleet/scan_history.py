"""The scans of an inventory, and SQL to query them.

The SQL is limited to what DataFusion (in deltalake) and Spark have in common.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.discovered import UnsearchedPlaces
from deltaproto.fleet.schemas import NOT_SEARCHED, Inventory
from deltaproto.policy.document import normalize_location
from deltaproto.policy.finding import Severity
from deltaproto.protocol.feature import FeatureKind

MAY_BE_BEHIND = "may have newer commits that only a catalog knows"
"""ends a sentence about tables of a scan that is not complete"""


class Extent(NamedTuple):
    """The roots and patterns of a scan, in no order. Roots are as in `normalize_location`."""

    roots: frozenset[str]
    included: frozenset[str]
    excluded: frozenset[str]


class ScannedPlace(NamedTuple):
    """The location of a table or error of a scan, and the names under which catalogs list it."""

    location: str
    names: tuple[str, ...] | None = ()
    """the names, if the scan has catalogs among its roots; None: there may be further ones"""


class PastScan(NamedTuple):
    """One row of `scans`."""

    scan_id: str
    """the id, which sorts by time"""
    started_at: datetime
    """when it began, in UTC"""
    ended_at: datetime
    """when it ended, in UTC"""
    tables: int
    """how many tables were read"""
    errors: int
    """how many tables and places could not be read"""
    roots: tuple[str, ...]
    """the roots, lists and catalogs"""
    included: tuple[str, ...]
    """patterns of the tables to include"""
    excluded: tuple[str, ...]
    """patterns of the folders to skip"""
    findings: int | None = None
    """how many findings it has; None: from an early release"""
    complete: bool = True
    """False if tables could not be read, or have commits that only their catalog knows"""
    not_searched: tuple[UnsearchedPlaces, ...] | None = ()
    """places that were not searched; None: unknown, because an early release did not store them"""

    def __repr__(self) -> str:
        tables, errors = counted(self.tables, "table"), counted(self.errors, "error")
        return f"<PastScan {self.scan_id}: {tables}, {errors}>"

    @property
    def extent(self) -> Extent:
        """Scan scope; only scans with equal scope can be diffed for added and removed tables."""
        return extent_of(self.roots, self.included, self.excluded)

    @property
    def limits(self) -> str:
        """The options that limited the scan, in one line; empty if there were none."""
        return limits_in_words(self.included, self.excluded)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> PastScan:
        """Convert a row; timestamps without a zone are UTC.

        Raises:
            TableError: corrupt-log, if a column that every scan fills is null.
        """
        for column in ("scan_id", "started_at", "ended_at", "tables", "errors"):
            if row[column] is None:
                raise TableError(
                    ErrorCode.CORRUPT_LOG,
                    f"the inventory has null as {column} of scan {row['scan_id'] or '?'}",
                    "the inventory is damaged; scan again, or read another scan with --scan",
                )
        for column in ("roots", "included", "excluded"):
            if None in (row[column] or ()):
                raise TableError(
                    ErrorCode.CORRUPT_LOG,
                    f"the inventory has null in {column} of scan {row['scan_id']}",
                    "the inventory is damaged; scan again, or read another scan with --scan",
                )
        return cls(
            row["scan_id"],
            _utc(row["started_at"]),
            _utc(row["ended_at"]),
            row["tables"],
            row["errors"],
            tuple(row["roots"] or ()),
            tuple(row["included"] or ()),
            tuple(row["excluded"] or ()),
            row["findings"],
            row["complete"] is not False,
            _parse_unsearched(row["scan_id"], row.get(NOT_SEARCHED)),
        )


def _parse_unsearched(
    scan_id: str, stored: Iterable[Mapping[str, Any]] | None
) -> tuple[UnsearchedPlaces, ...] | None:
    if stored is None:
        return None
    for each in stored:
        if each is None or None in each.values() or each["number"] < 1:
            raise TableError(
                ErrorCode.CORRUPT_LOG,
                f"the inventory has a null or invalid {NOT_SEARCHED} of scan {scan_id}",
                "the inventory is damaged; scan again, or read another scan with --scan",
            )
    return tuple(UnsearchedPlaces(**each) for each in stored)


def extent_of(roots: Iterable[str], included: Iterable[str], excluded: Iterable[str]) -> Extent:
    """Return the extent of a scan, from its roots and the patterns of folders."""
    return Extent(
        frozenset(map(normalize_location, roots)), frozenset(included), frozenset(excluded)
    )


def limits_in_words(included: Iterable[str], excluded: Iterable[str]) -> str:
    """Return the options that limited a scan, in one line; empty if there were none."""
    words = [f"--include {each}" for each in sorted(included)]
    return " ".join([*words, *(f"--exclude {each}" for each in sorted(excluded))])


COLUMNS = (
    *("scan_id", "started_at", "ended_at", "tables", "errors", "findings"),
    *("roots", "included", "excluded", "complete"),
)


def scans_query(scans: str, present: Collection[str]) -> str:
    """Return the query for all scans.

    Args:
        scans: the engine's name of the table.
        present: its columns; older inventories lack some.
    """
    names = (*COLUMNS, *({NOT_SEARCHED} & {*present}))
    return f"SELECT {', '.join(names)} FROM {scans}"  # noqa: S608  names of ours only


def parse_scans(rows: Iterable[Mapping[str, Any]]) -> list[PastScan]:
    """Convert rows to scans, oldest first."""
    return sorted(map(PastScan.of, rows), key=lambda scan: (scan.ended_at, scan.scan_id))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def sql_literal(text: str) -> str:
    """Quote a string for the SQL of both engines, which differ in backslashes.

    Raises:
        UsageError: for a backslash; scan ids have none.
    """
    if "\\" in text:
        raise UsageError(f"{text} is not a scan id", "see the inventory's table scans")
    return "'" + text.replace("'", "''") + "'"


def newest_scan(scans: list[PastScan]) -> PastScan:
    """Return the last scan.

    Raises:
        UsageError: when there are no scans.
    """
    if not scans:
        raise UsageError(
            "the inventory has no scan", "create one with `deltaproto scan --inventory`"
        )
    return scans[-1]


def find_scan(scans: list[PastScan], wanted: str) -> PastScan:
    """Return the scan with that id or id prefix, or the newest one that ended by that time.

    A date without a time means its end, in UTC.

    Raises:
        UsageError: when no scan matches, or more than one.
    """
    newest_scan(scans)
    named = [scan for scan in scans if scan.scan_id.startswith(wanted)]
    if len(named) == 1:
        return named[0]
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        many = f"{counted(len(named), 'scan')} begin with" if named else "no scan has the id"
        raise UsageError(
            f"{many} {wanted}, and it is not a date or time",
            f"the newest is {scans[-1].scan_id}; a time is like 2026-11-01 or 2026-11-01T08:00Z",
        ) from None
    if len(wanted) <= len("2026-11-01"):
        moment += timedelta(days=1)
    ended = [scan for scan in scans if scan.ended_at <= _utc(moment)]
    if not ended:
        raise UsageError(
            f"no scan ended by {wanted}",
            f"the oldest ended at {scans[0].ended_at:%Y-%m-%dT%H:%M:%SZ}",
        )
    return ended[-1]


def find_fuller_scan(scans: list[PastScan], scan: PastScan) -> PastScan | None:
    """Return an earlier scan of the same extent with more tables than `scan` read or names.

    The tables below places that `scan` could not search are then missing, or some were deleted.
    None if `scan` has no errors, or a scan without errors had no more tables either.
    """
    for before in reversed(scans[: scans.index(scan)] if scan.errors else []):
        if before.extent == scan.extent:
            if before.tables > scan.tables + scan.errors:
                return before
            if not before.errors:
                break
    return None


def _one_of(values: type[StrEnum]) -> str:
    """Return the SQL condition that a column has none of the values."""
    named = ", ".join(f"'{value}'" for value in values)
    return f"COALESCE({{}}, '') NOT IN ({named})"


KEYS_OF_ROWS = {
    Inventory.TABLES: "location",
    Inventory.ERRORS: "location",
    Inventory.FEATURES: "location, feature",
    Inventory.FINDINGS: "location, number",
}
"""columns that are unique among the rows of a scan"""
_MISSING = "{} IS NULL"
_NUMBER = "COALESCE({}, -1) < 0"
_CONDITIONS: dict[Inventory, Mapping[str, str]] = {
    Inventory.TABLES: {
        "location": _MISSING,
        "table": _MISSING,
        "version": _NUMBER,
        "min_reader_version": _NUMBER,
        "min_writer_version": _NUMBER,
        "configuration": _MISSING,
        "complete": _MISSING,
    },
    Inventory.ERRORS: {"location": _MISSING, "table": _MISSING, "message": _MISSING},
    Inventory.FEATURES: {"feature": _MISSING, "kind": _one_of(FeatureKind)},
    Inventory.FINDINGS: {
        "rule": _MISSING,
        "severity": _one_of(Severity),
        "message": _MISSING,
        "number": _NUMBER,
    },
}
"""SQL conditions for column values that no scan writes"""


def counts_query(scan_ids: Collection[str], names: Mapping[Inventory, str], quote: str) -> str:
    """Return the query for the rows of scans in each table, and for those with distinct keys.

    A table has no row for a scan without rows in it. The column `damaged` is the first column with
    an impossible value, or null.

    Args:
        names: the engine's names of the tables in `KEYS_OF_ROWS`.
        quote: the engine's quote character for names.
    """

    def damaged(name: Inventory) -> str:
        cases = (
            f"WHEN {condition.format(f'{quote}{column}{quote}')} THEN '{column}'"
            for column, condition in _CONDITIONS[name].items()
        )
        return f"CASE {' '.join(cases)} END"

    wanted = ", ".join(map(sql_literal, scan_ids))
    return " UNION ALL ".join(
        f"SELECT '{name}' AS name, scan_id, SUM(rows_of_key) AS found, "  # noqa: S608
        f"COUNT(*) AS places, MIN(damaged) AS damaged "
        f"FROM (SELECT scan_id, COUNT(*) AS rows_of_key, MIN({damaged(name)}) AS damaged "
        f"FROM {names[name]} "
        f"WHERE scan_id IN ({wanted}) GROUP BY scan_id, {keys}) counted GROUP BY scan_id"
        for name, keys in KEYS_OF_ROWS.items()
    )


def locations_query(scan_id: str, tables: str, errors: str) -> str:
    """Return the query for the locations of all tables and errors of a scan."""
    scan = sql_literal(scan_id)
    return (
        f"SELECT location FROM {tables} WHERE scan_id = {scan} "  # noqa: S608  names of ours only
        f"UNION ALL SELECT location FROM {errors} WHERE scan_id = {scan}"
    )


class RowCounts(NamedTuple):
    """The rows of one scan in one table of the inventory."""

    rows: int
    keys: int
    damaged: str | None = None
    """a column with a value that no scan writes"""


NO_ROWS = RowCounts(0, 0)


def require_rows(scan: PastScan, counts: Mapping[Inventory, RowCounts]) -> None:
    """Compare the rows of a scan with the counts in its row in `scans`.

    A table with missing features is an error of that table (`read_inventory.facts_from_row`).

    Raises:
        TableError: corrupt-log, when rows are missing or stored twice, or have impossible values.
    """
    tables, errors = counts[Inventory.TABLES], counts[Inventory.ERRORS]
    if tables[:2] != (scan.tables, scan.tables) or errors.rows != scan.errors:
        raise _damaged_error(
            f"the inventory has {counted(tables.keys, 'table')} and "
            f"{counted(errors.rows, 'error')} of scan {scan.scan_id}, which recorded "
            f"{scan.tables:,} and {scan.errors:,}: rows are missing or stored twice"
        )
    for name in (Inventory.FEATURES, Inventory.FINDINGS):
        if twice := counts[name].rows - counts[name].keys:
            rows = counted(twice, name.removesuffix("s"))
            raise _damaged_error(f"the inventory has {rows} of scan {scan.scan_id} twice")
    for name, found in counts.items():
        if found.damaged is not None:
            raise _damaged_error(
                f"the inventory has a null or invalid {found.damaged} in {name} of scan "
                f"{scan.scan_id}"
            )
    findings = counts[Inventory.FINDINGS].rows
    if scan.findings is not None and findings != scan.findings:
        raise _damaged_error(
            f"the inventory has {counted(findings, 'finding')} of scan {scan.scan_id}, which "
            f"recorded {scan.findings:,}: rows are missing"
        )


def _damaged_error(message: str) -> TableError:
    return TableError(ErrorCode.CORRUPT_LOG, message, "scan again")


class ScanPair(NamedTuple):
    """Two scans to compare."""

    before: PastScan
    now: PastScan

    @property
    def same_roots(self) -> bool:
        """True if both scans have the same roots and patterns."""
        return self.before.extent == self.now.extent


def select_pair(scans: list[PastScan], before: str | None, now: str | None) -> ScanPair | None:
    """Return the two scans to compare: the newest and the last one before it of the same extent.

    None: there is nothing to compare with. The newer scan is the first of its roots and patterns,
    or no scan has ended since the requested start.

    Raises:
        UsageError: when the inventory has no scan, or not the requested one, or when the first one
            is newer than the second.
    """
    newer = find_scan(scans, now) if now else newest_scan(scans)
    if before is not None:
        older_one = find_scan(scans, before)
        if scans.index(older_one) > scans.index(newer):
            raise UsageError(
                f"scan {older_one.scan_id} is newer than the scan that it is compared with",
                "choose an earlier scan or time for the start of the comparison",
            )
        return ScanPair(older_one, newer) if older_one != newer else None
    older = [scan for scan in scans[: scans.index(newer)] if scan.extent == newer.extent]
    return ScanPair(older[-1], newer) if older else None
