"""Queries on an inventory, the same for delta-rs and Spark."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.catalog_places import parse_catalog_place
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.scan_history import (
    KEYS_OF_ROWS,
    NO_ROWS,
    PastScan,
    RowCounts,
    ScannedPlace,
    counts_query,
    locations_query,
    parse_scans,
    require_rows,
    scans_query,
    sql_literal,
)
from deltaproto.fleet.schemas import OTHER_NAMES, Inventory, missing_column_error, rows_schema
from deltaproto.redaction import Redactor

if TYPE_CHECKING:
    import pyarrow as pa


_QUERY_FAILED_HINT = (
    "check the condition, and that the inventory is intact: any Delta client can read it"
)
_UNKNOWN_COLUMN = r"Schema error: No field named \"?(?:\w+\.)?\"?([^\".\s]+)"
"""the message of DataFusion"""


def _explain_failure(message: str, columns: Collection[str]) -> tuple[str, str]:
    """Return the cause and the hint for a condition that DataFusion refuses."""
    found = re.match(_UNKNOWN_COLUMN, message)
    if found is None:
        return message, _QUERY_FAILED_HINT
    import difflib

    name = found[1]
    _, _, valid = message.partition("Valid fields are ")
    known = re.findall(r"\w+\.(\w+)", valid) or sorted({*columns})
    near = [column for column in known if column.startswith(name.lower())]
    near = near or difflib.get_close_matches(name.lower(), known, 1, 0.6)
    listed = f"use {', '.join(known)}; text needs single quotes"
    return f"no column {name}", f"did you mean {near[0]}?" if near else listed


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
    def rows(
        self, sql: str, tables: Iterable[Inventory], condition: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query on the named tables.

        Args:
            condition: the part of the query that a user wrote.

        Raises:
            UsageError: when there is no inventory, or a query with a condition fails.
            TableError: when a table cannot be read, or when a column has a different type from what
                `scan` writes.
        """

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first. Raises like `rows`."""
        name = Inventory.SCANS
        query = scans_query(self.name(name), self.columns(name))
        return parse_scans(self.rows(query, (name,)))

    def places(self, scan: PastScan) -> Iterator[ScannedPlace]:
        """Yield the places of all tables and errors of a scan. Raises like `rows`."""
        tables = Inventory.TABLES, Inventory.ERRORS
        if not any(map(parse_catalog_place, scan.roots)):
            for row in self.rows(locations_query(scan.scan_id, *map(self.name, tables)), tables):
                yield ScannedPlace(row["location"])
            return
        for name in tables:
            other_names = [OTHER_NAMES] if OTHER_NAMES in self.columns(name) else []
            columns = ", ".join(["location", f"{self.quote}table{self.quote}", *other_names])
            for row in self.rows(
                f"SELECT {columns} FROM {self.name(name)} "  # noqa: S608  names of ours only
                f"WHERE scan_id = {sql_literal(scan.scan_id)}",
                (name,),
            ):
                names = (row["table"], *(row.get(OTHER_NAMES) or ()))
                if name is Inventory.TABLES:
                    whole = bool(other_names)
                else:
                    is_place = parse_catalog_place(row["location"]) is not None
                    whole = is_place or row.get(OTHER_NAMES) is not None
                yield ScannedPlace(row["location"], names if whole else None)

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

    def rows(
        self, sql: str, tables: Iterable[Inventory], condition: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query. Raises like `InventoryQueries.rows`."""
        for batch in self.ask(sql, tables, condition):
            try:
                found = batch.to_pylist()
            except (OverflowError, ValueError):
                raise TableError(
                    ErrorCode.CORRUPT_LOG,
                    "the inventory has a time that is out of range",
                    "the inventory is damaged; scan again",
                ) from None
            yield from found

    def ask(
        self, sql: str, tables: Iterable[Inventory], condition: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query in batches. Raises like `InventoryQueries.rows`."""
        import pyarrow as pa
        from deltalake import QueryBuilder
        from deltalake.exceptions import DeltaError

        builder = QueryBuilder()
        opened = {name: self._inventory.readable(name) for name in tables}
        for name, table in opened.items():
            builder.register(str(name), table)
        wait_for = self._inventory.wait_for
        try:
            found = pa.RecordBatchReader.from_stream(wait_for(builder.execute, sql))
            while (batch := wait_for(next, found, None)) is not None:
                yield batch
        except (DeltaError, pa.ArrowException, OSError) as error:
            for name in opened:
                present = self.columns(name)
                for column in rows_schema(name).names:
                    if column not in present and column in str(error):
                        raise missing_column_error(name, column) from None
            message = Redactor()(" ".join(str(error).split()))
            if condition is None:
                raise TableError(
                    ErrorCode.CORRUPT_LOG,
                    f"cannot read the inventory: {message}",
                    "check that its files are complete: any Delta client can read it",
                ) from None
            columns = [column for name in opened for column in self.columns(name)]
            cause, hint = _explain_failure(message, columns)
            raise UsageError(f"the query on the inventory failed: {cause}", hint) from None
