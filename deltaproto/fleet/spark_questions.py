"""Queries on an inventory as Spark DataFrames, for inventories of any size and for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltaproto.fleet.drift import query
from deltaproto.fleet.drift.attribution import CommitAttributor
from deltaproto.fleet.drift.diff import Difference
from deltaproto.fleet.drift.query import (
    ScanPlaces,
    changes_of_row,
    drift_query,
    unreadable_places,
)
from deltaproto.fleet.inventory_queries import InventoryQueries
from deltaproto.fleet.read_inventory import read_error_rows
from deltaproto.fleet.scan_history import PastScan, ScanPair
from deltaproto.fleet.schemas import (
    Inventory,
    columns_ddl,
    inventory_schema,
    inventory_table_sql,
    missing_inventory_error,
    wrong_type_error,
)
from deltaproto.interrupts import wait_for
from deltaproto.tables.session import expect_rows, open_query, sql_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

_ALONE = {Inventory.SCANS, Inventory.CLIENTS_SEEN}
"""tables that are opened when they are read; the others are opened together"""


class SparkInventoryQueries(InventoryQueries):
    """Queries an inventory through one Spark session.

    Args:
        inventory: folder or URI, as the session reaches it.
    """

    quote = "`"

    def __init__(self, session: SparkSession, inventory: str) -> None:
        self._session, self._inventory = session, inventory.rstrip("/")
        self._columns: dict[Inventory, Collection[str]] = {}

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first. Raises like `rows`."""
        expect_rows(self._session, 0)
        try:
            found = super().scans()
        except Exception as error:
            if _is_missing(error):
                raise missing_inventory_error(self._inventory) from None
            raise
        expect_rows(self._session, max((scan.tables for scan in found), default=0))
        return found

    def rows(
        self, sql: str, tables: Iterable[Inventory], condition: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query. Raises like `InventoryQueries.rows`."""
        yield from map(_to_mapping, sql_rows(self._session, sql))

    def name(self, table: Inventory) -> str:
        """Return Spark's name of the table, after checking the types of its columns."""
        self.columns(table)
        return inventory_table_sql(self._inventory, table)

    def columns(self, table: Inventory) -> Collection[str]:
        """Return the table's columns, after checking their types."""
        if table not in self._columns:
            # A new inventory has nothing to compare with: then only `scans` is read.
            self._open({table} if table in _ALONE else set(Inventory) - _ALONE - {*self._columns})
        return self._columns[table]

    def drift(
        self, pair: ScanPair, attributor: CommitAttributor | None, *, ordered: bool = False
    ) -> DataFrame:
        """Return a row for every change between the two scans; columns as `drift_schema`.

        Args:
            attributor: finds the commits, on the executors; None: skip this.
            ordered: sort by location.
        """
        before, now = (
            unreadable_places(read_error_rows(self, scan)) for scan in (pair.before, pair.now)
        )
        places = ScanPlaces(before, now, pair.same_roots)
        names = (Inventory.TABLES, Inventory.ERRORS, Inventory.FEATURES)
        sql = drift_query(pair, self.quote, *map(self.name, names))
        # Sort before the logs are read: Spark's sort evaluates its input twice.
        frame = self.ask(f"{sql} ORDER BY location" if ordered else sql)
        return frame.mapInArrow(
            _drift_mapper(places, attributor), columns_ddl(query.drift_schema())
        )

    def ask(self, sql: str) -> DataFrame:
        """Return the result of a query."""
        return open_query(self._session, sql)

    def _open(self, tables: Set[Inventory]) -> None:
        """Open tables in parallel: each takes a few small jobs."""
        with ThreadPoolExecutor(len(tables)) as pool:
            opened = {table: pool.submit(self._read_columns, table) for table in tables}
            self._columns |= {table: wait_for(each) for table, each in opened.items()}

    def _read_columns(self, name: Inventory) -> Collection[str]:
        from pyspark.sql.pandas.types import from_arrow_schema

        wanted = {field.name: field.dataType for field in from_arrow_schema(inventory_schema(name))}
        try:
            found = self._session.read.format("delta").load(f"{self._inventory}/{name}").schema
        except Exception as error:
            if _is_missing(error):
                raise missing_inventory_error(self._inventory) from None
            raise
        for field in found:
            type_, right = (
                each.simpleString()
                for each in (field.dataType, wanted.get(field.name, field.dataType))
            )
            if type_ != right:
                raise wrong_type_error(name, field.name, type_, right)
        return tuple(field.name for field in found)


def _is_missing(error: Exception) -> bool:
    return "DELTA_" in str(error) or "PATH_NOT_FOUND" in str(error)


def read_differences(frame: DataFrame) -> Iterator[Difference]:
    """Yield the rows of a frame of changes, one partition in memory at a time."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield query.parse_difference(_to_mapping(row))


def _to_mapping(row: Row) -> dict[str, Any]:
    """Convert a row; Spark returns timestamps in the time zone of this machine, without a zone."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.asDict(recursive=True).items()
    }


def _drift_mapper(
    places: ScanPlaces, attributor: CommitAttributor | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def drifted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found: list[Difference] = []
            for row in batch.to_pylist():
                found += changes_of_row(row, places, attributor)
            yield query.differences_batch(found)

    return drifted
