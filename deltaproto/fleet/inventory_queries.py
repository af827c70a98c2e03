"""Queries on an inventory, the same for delta-rs and Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.inventory import InventoryTables, missing_column_error
from deltaproto.fleet.scan_history import (
    KEYS_OF_ROWS,
    NO_ROWS,
    Extent,
    PastScan,
    RowCounts,
    counts_query,
    locations_query,
    newest_scan,
    parse_scans,
    require_rows,
    scans_query,
)
from deltaproto.fleet.schemas import Inventory, rows_schema
from deltaproto.fleet.staging import Unfinished
from deltaproto.policy.document import normalize_location
from deltaproto.redaction import Redactor

if TYPE_CHECKING:
    import pyarrow as pa


_QUERY_FAILED_HINT = (
    "check the condition, and that the inventory is intact: any Delta client can read it"
)


class InventoryQueries(ABC):
    """Queries an inventory with one engine."""

    quote: ClassVar[str]
    """the engine's quote character for names"""

    @abstractmethod
    def name(self, table: Inventory) -> str:
        """Return the name of one of the inventory's tables in the engine's SQL."""

    @abstractmethod
    def columns(self, table: Inventory) -> Collection[str]:
        """Return the columns of one of the inventory's tables. Raises like `rows`."""

    @abstractmethod
    def rows(self, sql: str, tables: Iterable[Inventory]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query on the named tables.

        Raises:
            UsageError: when a table cannot be read, or the query is invalid.
            TableError: corrupt-log, when a column has a different type from what `scan` writes.
        """

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first. Raises like `rows`."""
        name = Inventory.SCANS
        query = scans_query(self.name(name), self.columns(name))
        return parse_scans(self.rows(query, (name,)))

    def locations(self, scan: PastScan) -> Iterator[str]:
        """Yield the locations of all tables and errors of a scan. Raises like `rows`."""
        tables = Inventory.TABLES, Inventory.ERRORS
        for row in self.rows(locations_query(scan.scan_id, *map(self.name, tables)), tables):
            yield row["location"]

    def require_whole(self, *scans: PastScan) -> None:
        """Check that the scans' rows are whole: none missing, doubled or with impossible values.

        Raises like `require_rows`, for the first of the scans whose rows are not whole.
        """
        names = {name: self.name(name) for name in KEYS_OF_ROWS}
        counts = {scan.scan_id: dict.fromkeys(KEYS_OF_ROWS, NO_ROWS) for scan in scans}
        if not counts:
            return
        for row in self.rows(counts_query(counts, names, self.quote), KEYS_OF_ROWS):
            found = RowCounts(row["found"], row["places"], row["damaged"])
            counts[row["scan_id"]][Inventory(row["name"])] = found
        for scan in scans:
            require_rows(scan, counts[scan.scan_id])


class LocalInventoryQueries(InventoryQueries):
    """Queries an inventory with delta-rs, on this machine."""

    quote = '"'

    def __init__(self, inventory: InventoryTables) -> None:
        self._inventory = inventory

    def name(self, table: Inventory) -> str:
        """Return the name under which `ask` registers the table."""
        return str(table)

    def columns(self, table: Inventory) -> Collection[str]:
        """Return the table's columns. Raises like `InventoryQueries.rows`."""
        return {field.name for field in self._inventory.readable(table).schema().fields}

    def rows(self, sql: str, tables: Iterable[Inventory]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query. Raises like `InventoryQueries.rows`."""
        for batch in self.ask(sql, tables):
            try:
                found = batch.to_pylist()
            except (OverflowError, ValueError):
                raise TableError(
                    ErrorCode.CORRUPT_LOG,
                    "the inventory has a time that is out of range",
                    "the inventory is damaged; scan again",
                ) from None
            yield from found

    def ask(self, sql: str, tables: Iterable[Inventory]) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query in batches. Raises like `InventoryQueries.rows`."""
        import pyarrow as pa
        from deltalake import QueryBuilder
        from deltalake.exceptions import DeltaError

        builder = QueryBuilder()
        opened = {name: self._inventory.readable(name) for name in tables}
        for name, table in opened.items():
            builder.register(str(name), table)
        try:
            yield from pa.RecordBatchReader.from_stream(builder.execute(sql))
        except (DeltaError, pa.ArrowException, OSError) as error:
            for name in opened:
                present = self.columns(name)
                for column in rows_schema(name).names:
                    if column not in present and column in str(error):
                        raise missing_column_error(name, column) from None
            message = Redactor()(" ".join(str(error).split()))
            raise UsageError(
                f"the query on the inventory failed: {message}", _QUERY_FAILED_HINT
            ) from None


def newest_of_each_root(scans: Sequence[PastScan]) -> list[PastScan]:
    """Return the scans that no newer one replaces, newest first.

    A scan replaces an older one if it searched all its roots and skipped nothing that the older
    one searched. A scan with `--include` or `--exclude` replaces only scans with the same patterns.

    Raises:
        UsageError: when there is no scan.
    """
    newest_scan(list(scans))
    found: list[PastScan] = []
    for scan in reversed(scans):
        replaced = (
            any(_replaces(newer.extent, scan.extent, root) for newer in found)
            for root in scan.roots
        )
        if not found or not all(replaced):
            found.append(scan)
    return found


def _replaces(newer: Extent, older: Extent, root: str) -> bool:
    if root not in newer.roots:
        return False
    return newer[1:] == older[1:] or not (newer.included or newer.excluded or older.included)


class NewestState:
    """Decides which rows of several scans are the newest state of their table.

    A row of an older scan counts until a newer scan has a row for the same location, or has
    searched the place without finding a table there.

    Args:
        scans: newest first.
        locations: the locations of all tables and errors of a scan.
    """

    def __init__(
        self, scans: Sequence[PastScan], locations: Callable[[PastScan], Iterable[str]]
    ) -> None:
        self.scans = tuple(scans)
        self.contributing = self.scans[:1]
        """the scans with at least one row that no newer scan replaces; always the newest"""
        # Per location, one bit for each scan that has a row.
        self._seen: dict[str, int] = {}
        if len(self.scans) == 1:
            return
        for number, scan in enumerate(self.scans):
            for location in locations(scan):
                where = normalize_location(location)
                self._seen[where] = self._seen.get(where, 0) | 1 << number
        self.contributing += tuple(
            scan
            for number, scan in enumerate(self.scans[1:], 1)
            if any(
                seen >> number & 1 and self.holds(scan, where) for where, seen in self._seen.items()
            )
        )

    def holds(self, scan: PastScan, location: str) -> bool:
        """Return True if the row of `location` in `scan` is the newest state of that table."""
        number, where = self.scans.index(scan), normalize_location(location)
        if number == 0:
            return True
        if self._seen.get(where, 0) & (1 << number) - 1:
            return False
        return not any(self._searched(newer, where) for newer in range(number))

    def replaces(self, stopped: Unfinished) -> bool:
        """Return True if later finished scans cover everything that a stopped scan would have."""
        if any(scan.scan_id == stopped.scan_id for scan in self.scans):
            # It was stopped after its last commit.
            return True
        extent = stopped.extent
        later = [n for n, scan in enumerate(self.scans) if scan.scan_id > stopped.scan_id]
        if extent is None:
            return bool(later)
        return all(
            any(self._replaces(number, extent, root) for number in later) for root in extent.roots
        )

    def _replaces(self, number: int, older: Extent, root: str) -> bool:
        newer = self.scans[number].extent
        if _replaces(newer, older, root):
            return True
        patterns = newer.included or newer.excluded or older.included
        return not patterns and self._searched(number, normalize_location(root))

    def _searched(self, number: int, where: str) -> bool:
        """Return True if the scan would have found a table there."""
        scan = self.scans[number]
        selection = FolderSelection(scan.included, scan.excluded)
        for root in map(normalize_location, scan.roots):
            if where == root:
                # This includes errors of a root as a whole, such as a root without tables.
                return True
            if not where.startswith(f"{root}/"):
                continue
            parts = where[len(root) + 1 :].split("/")
            folders = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
            # Below a table, or below a place that could not be listed, not everything is searched.
            left = any(self._seen.get(f"{root}/{above}", 0) >> number & 1 for above in folders[:-1])
            if not left and all(map(selection.enters, folders)) and selection.takes(folders[-1]):
                return True
        return False
