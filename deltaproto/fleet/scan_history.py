"""The scans that an inventory holds, and questions to it in SQL.

The SQL is the part that DataFusion (in deltalake) and Spark have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.schemas import Inventory
from deltaproto.redaction import Redactor

if TYPE_CHECKING:
    import pyarrow as pa


class Extent(NamedTuple):
    """What a scan searches, in no order."""

    roots: frozenset[str]
    included: frozenset[str]
    excluded: frozenset[str]


class PastScan(NamedTuple):
    """One row of `scans`."""

    scan_id: str
    started_at: datetime
    ended_at: datetime
    tables: int
    errors: int
    roots: tuple[str, ...]
    included: tuple[str, ...]
    excluded: tuple[str, ...]
    findings: int | None = None
    complete: bool = True
    """False: tables could not be read, or have commits that only their catalog knows"""

    @property
    def extent(self) -> Extent:
        """What it looked at: scans of one extent tell which tables are new and which are gone."""
        return extent_of(self.roots, self.included, self.excluded)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> PastScan:
        """The scan of a row; moments without a time zone are UTC."""
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
        )


def extent_of(roots: Iterable[str], included: Iterable[str], excluded: Iterable[str]) -> Extent:
    """Return the extent of a scan, from its roots and the patterns of folders."""
    return Extent(frozenset(roots), frozenset(included), frozenset(excluded))


COLUMNS = (
    *("scan_id", "started_at", "ended_at", "tables", "errors", "findings"),
    *("roots", "included", "excluded", "complete"),
)


NOT_ANSWERED = "check the condition, and that the inventory is whole: any Delta client reads it"


def scans_query(scans: str = "scans") -> str:
    """All scans; `scans` is what the engine calls the table."""
    return f"SELECT {', '.join(COLUMNS)} FROM {scans}"  # noqa: S608  names of ours only


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[PastScan]:
    """The scans of rows, oldest first."""
    return sorted(map(PastScan.of, rows), key=lambda scan: (scan.ended_at, scan.scan_id))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def literal(text: str) -> str:
    """A string in the SQL of both engines, which read a backslash differently.

    Raises:
        UsageError: for a backslash; no scan has one in its id.
    """
    if "\\" in text:
        raise UsageError(f"{text} is no scan's id", "the inventory's table scans has them")
    return "'" + text.replace("'", "''") + "'"


class LocalQuestions:
    """Asks an inventory through delta-rs, on this machine.

    Raises:
        UsageError: when it cannot be read, or is no inventory.
    """

    quote = '"'

    def __init__(self, inventory: InventoryTables) -> None:
        self._inventory = inventory

    def scans(self) -> list[PastScan]:
        """All scans, oldest first."""
        rows = self.ask(scans_query(), (Inventory.SCANS,))
        return in_order(row for batch in rows for row in batch.to_pylist())

    def locations(self, scan: PastScan) -> Iterator[str]:
        """The locations of all tables and errors of a scan."""
        names = Inventory.TABLES, Inventory.ERRORS
        for batch in self.ask(locations_query(scan.scan_id, *map(str, names)), names):
            yield from batch.column("location").to_pylist()

    def require_whole(self, scan: PastScan) -> None:
        """Check that no row of the scan is missing or stored twice; raises as `require_rows`."""
        require_rows(
            scan,
            {
                name: Counted(row["found"], row["places"])
                for name in KEYS_OF_ROWS
                for batch in self.ask(counts_query(scan.scan_id, name, str(name)), (name,))
                for row in batch.to_pylist()
            },
        )

    def ask(self, sql: str, names: Iterable[Inventory]) -> Iterator[pa.RecordBatch]:
        """The answer to a query on the named tables.

        Raises:
            UsageError: when a table cannot be read, or the query cannot be understood.
        """
        import pyarrow as pa
        from deltalake import QueryBuilder
        from deltalake.exceptions import DeltaError

        builder = QueryBuilder()
        for name in names:
            builder.register(str(name), self._inventory.readable(name))
        try:
            yield from pa.RecordBatchReader.from_stream(builder.execute(sql))
        except (DeltaError, pa.ArrowException, OSError) as error:
            told = Redactor()(" ".join(str(error).split()))
            raise UsageError(f"the inventory does not answer: {told}", NOT_ANSWERED) from None


def newest(scans: list[PastScan]) -> PastScan:
    """The last scan.

    Raises:
        UsageError: when there is none.
    """
    if not scans:
        raise UsageError(
            "the inventory holds no scan", "make one with `deltaproto scan --inventory`"
        )
    return scans[-1]


def pick(scans: list[PastScan], wanted: str) -> PastScan:
    """The scan of that id or beginning of one, or the newest that had ended by that time.

    A day without a time is its end, in UTC.

    Raises:
        UsageError: when there is none, or more than one.
    """
    newest(scans)
    named = [scan for scan in scans if scan.scan_id.startswith(wanted)]
    if len(named) == 1:
        return named[0]
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        many = f"{len(named)} scans begin with" if named else "no scan has the id"
        raise UsageError(
            f"{many} {wanted}, and it is no date or time",
            f"the newest is {scans[-1].scan_id}; a time is like 2026-11-01 or 2026-11-01T08:00Z",
        ) from None
    if len(wanted) <= len("2026-11-01"):
        moment += timedelta(days=1)
    ended = [scan for scan in scans if scan.ended_at <= _utc(moment)]
    if not ended:
        raise UsageError(
            f"no scan had ended by {wanted}",
            f"the oldest ended at {scans[0].ended_at:%Y-%m-%dT%H:%M:%SZ}",
        )
    return ended[-1]


KEYS_OF_ROWS = {
    Inventory.TABLES: "location",
    Inventory.ERRORS: "location",
    Inventory.FEATURES: "location, feature",
    Inventory.FINDINGS: "location, number",
}
"""the columns of which no two rows of a scan have the same values"""


def counts_query(scan_id: str, name: Inventory, table: str) -> str:
    """Return the query for the rows of a scan in one table, and for those with distinct keys.

    Args:
        table: what the engine calls the table.
    """
    return (
        "SELECT COALESCE(SUM(rows_of_key), 0) AS found, COUNT(*) AS places "  # noqa: S608
        f"FROM (SELECT COUNT(*) AS rows_of_key FROM {table} "
        f"WHERE scan_id = {literal(scan_id)} GROUP BY {KEYS_OF_ROWS[name]}) counted"
    )


def locations_query(scan_id: str, tables: str, errors: str) -> str:
    """Return the query for the locations of all tables and errors of a scan."""
    scan = literal(scan_id)
    return (
        f"SELECT location FROM {tables} WHERE scan_id = {scan} "  # noqa: S608  names of ours only
        f"UNION ALL SELECT location FROM {errors} WHERE scan_id = {scan}"
    )


class Counted(NamedTuple):
    """The rows of one scan in one table of the inventory."""

    rows: int
    keys: int


def require_rows(scan: PastScan, counts: Mapping[Inventory, Counted]) -> None:
    """Compare the rows of a scan with the counts in its row in `scans`.

    A table whose features are missing is an error of that table (`kept.facts_of`).

    Raises:
        TableError: corrupt-log, when rows are missing or stored twice.
    """
    tables, errors = counts[Inventory.TABLES], counts[Inventory.ERRORS]
    if tables != (scan.tables, scan.tables) or errors.rows != scan.errors:
        raise lost_rows(scan, tables.keys, errors.rows)
    for name in (Inventory.FEATURES, Inventory.FINDINGS):
        if twice := counts[name].rows - counts[name].keys:
            raise _damaged(f"the inventory holds {twice:,} {name} of scan {scan.scan_id} twice")
    findings = counts[Inventory.FINDINGS].rows
    if scan.findings is not None and findings != scan.findings:
        raise _damaged(
            f"the inventory holds {findings:,} findings of scan {scan.scan_id}, which had "
            f"{scan.findings:,}: rows are lost"
        )


def lost_rows(scan: PastScan, tables: int, errors: int) -> TableError:
    """Return the error of a scan whose rows are not as many as it says."""
    return _damaged(
        f"the inventory holds {tables:,} tables and {errors:,} errors of scan {scan.scan_id}, "
        f"which saw {scan.tables:,} and {scan.errors:,}: rows are lost or stored twice"
    )


def _damaged(message: str) -> TableError:
    return TableError(ErrorCode.CORRUPT_LOG, message, "scan again")


class Pair(NamedTuple):
    """Two scans to compare."""

    before: PastScan
    now: PastScan

    @property
    def alike(self) -> bool:
        """Whether they looked at the same roots in the same way."""
        return self.before.extent == self.now.extent


def pair(scans: list[PastScan], before: str | None, now: str | None) -> Pair:
    """The two scans to compare: the newest and the last one before it of the same extent.

    Raises:
        UsageError: when there are not two.
    """
    newer = pick(scans, now) if now else newest(scans)
    if before is not None:
        return Pair(pick(scans, before), newer)
    older = [scan for scan in scans[: scans.index(newer)] if scan.extent == newer.extent]
    if not older:
        raise UsageError(
            f"there is no scan of the same roots before {newer.scan_id}",
            "scan again later, or name the other scan with --since",
        )
    return Pair(older[-1], newer)
