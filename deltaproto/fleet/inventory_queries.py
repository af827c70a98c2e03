"""Queries on an inventory, the same for delta-rs and Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.scan_history import (
    KEYS_OF_ROWS,
    PastScan,
    RowCounts,
    counts_query,
    locations_query,
    parse_scans,
    require_rows,
    scans_query,
)
from deltaproto.fleet.schemas import Inventory
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
        """Return the engine's name of one of the inventory's tables, for SQL."""

    @abstractmethod
    def rows(self, sql: str, tables: Iterable[Inventory]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query on the named tables.

        Raises:
            UsageError: when a table cannot be read, or the query is invalid.
            TableError: corrupt-log, when a column has a different type from what `scan` writes.
        """

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first. Raises like `rows`."""
        return parse_scans(self.rows(scans_query(self.name(Inventory.SCANS)), (Inventory.SCANS,)))

    def locations(self, scan: PastScan) -> Iterator[str]:
        """Yield the locations of all tables and errors of a scan. Raises like `rows`."""
        tables = Inventory.TABLES, Inventory.ERRORS
        for row in self.rows(locations_query(scan.scan_id, *map(self.name, tables)), tables):
            yield row["location"]

    def require_whole(self, scan: PastScan) -> None:
        """Check that the scan's rows are whole: none missing, doubled or with impossible values.

        Raises like `require_rows`.
        """
        counted = counts_query(
            scan.scan_id, {name: self.name(name) for name in KEYS_OF_ROWS}, self.quote
        )
        counts = {
            Inventory(row["name"]): RowCounts(row["found"], row["places"], row["damaged"])
            for row in self.rows(counted, KEYS_OF_ROWS)
        }
        require_rows(scan, counts)


class LocalInventoryQueries(InventoryQueries):
    """Queries an inventory with delta-rs, on this machine."""

    quote = '"'

    def __init__(self, inventory: InventoryTables) -> None:
        self._inventory = inventory

    def name(self, table: Inventory) -> str:
        """Return the name under which `ask` registers the table."""
        return str(table)

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
        for name in tables:
            builder.register(str(name), self._inventory.readable(name))
        try:
            yield from pa.RecordBatchReader.from_stream(builder.execute(sql))
        except (DeltaError, pa.ArrowException, OSError) as error:
            message = Redactor()(" ".join(str(error).split()))
            raise UsageError(
                f"the query on the inventory failed: {message}", _QUERY_FAILED_HINT
            ) from None
