"""Queries on an inventory as Spark DataFrames, for inventories of any size and for notebooks.

Only the list of scans and the errors of a scan are collected to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from deltaproto.fleet.drift import rows
from deltaproto.fleet.drift.attribution import CommitAttributor
from deltaproto.fleet.drift.diff import Difference
from deltaproto.fleet.drift.query import (
    UnreadablePlaces,
    differences_of_row,
    drift_query,
    unreadable_by_location,
)
from deltaproto.fleet.inventory import missing_inventory_error, wrong_type_error
from deltaproto.fleet.read_inventory import errors_query
from deltaproto.fleet.scan_history import (
    KEYS_OF_ROWS,
    PastScan,
    RowCounts,
    ScanPair,
    counts_query,
    locations_query,
    parse_scans,
    require_rows,
    scans_query,
)
from deltaproto.fleet.schemas import Inventory, columns_ddl, inventory_schema, inventory_table_sql
from deltaproto.sql.quoting import has_variable
from deltaproto.tables.session import sql_rows, without_substitution

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class SparkInventoryQueries:
    """Queries an inventory through one Spark session.

    Args:
        inventory: folder or URI, as the session reaches it.
    """

    def __init__(self, session: SparkSession, inventory: str) -> None:
        self._session, self._inventory = session, inventory.rstrip("/")
        self._checked: set[Inventory] = set()

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first.

        Raises:
            UsageError: when there is no inventory.
            TableError: corrupt-log, when a column has a different type from what `scan` writes.
        """
        try:
            found = sql_rows(self._session, scans_query(self._name(Inventory.SCANS)))
        except Exception as error:
            if "DELTA_" in str(error) or "PATH_NOT_FOUND" in str(error):
                raise missing_inventory_error(self._inventory) from None
            raise
        return parse_scans(row.asDict() for row in found)

    def locations(self, scan: PastScan) -> Iterator[str]:
        """Yield the locations of all tables and errors of a scan."""
        names = map(self._name, (Inventory.TABLES, Inventory.ERRORS))
        for row in self.ask(locations_query(scan.scan_id, *names)).toLocalIterator():
            yield row["location"]

    def require_whole(self, scan: PastScan) -> None:
        """Check that no row of the scan is missing or stored twice. Raises like `require_rows`."""
        require_rows(
            scan,
            {
                name: RowCounts(row["found"], row["places"])
                for name in KEYS_OF_ROWS
                for row in self.ask(counts_query(scan.scan_id, name, self._name(name))).collect()
            },
        )

    def drift(
        self, pair: ScanPair, detective: CommitAttributor | None, *, ordered: bool = False
    ) -> DataFrame:
        """Return a row for every change between the two scans; columns as `drift_schema`.

        Args:
            detective: finds the commits, on the executors; None: skip this.
            ordered: sort by location.
        """
        before, now = (
            unreadable_by_location(row.asDict() for row in self.errors(scan).collect())
            for scan in (pair.before, pair.now)
        )
        places = UnreadablePlaces(before, now, pair.alike)
        names = (Inventory.TABLES, Inventory.ERRORS, Inventory.FEATURES)
        asked = drift_query(pair, "`", *map(self._name, names))
        # Sort before the logs are read: Spark's sort evaluates its input twice.
        frame = self.ask(f"{asked} ORDER BY location" if ordered else asked)
        return frame.mapInArrow(_drift_mapper(places, detective), columns_ddl(rows.drift_schema()))

    def names(self) -> dict[Inventory, str]:
        """Return Spark's names of the inventory's tables."""
        return {name: self._name(name) for name in Inventory}

    def ask(self, sql: str) -> DataFrame:
        """Return the result of a query."""
        with without_substitution(self._session) if has_variable(sql) else nullcontext():
            return self._session.sql(sql)

    def errors(self, scan: PastScan) -> DataFrame:
        """Return the tables that the scan could not read, and why."""
        return self.ask(errors_query(scan.scan_id, "`", self._name(Inventory.ERRORS)))

    def _name(self, name: Inventory) -> str:
        if name not in self._checked:
            self._require_types(name)
            self._checked.add(name)
        return inventory_table_sql(self._inventory, name)

    def _require_types(self, name: Inventory) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        wanted = {field.name: field.dataType for field in from_arrow_schema(inventory_schema(name))}
        found = self._session.read.format("delta").load(f"{self._inventory}/{name}").schema
        for field in found:
            type_, right = (
                each.simpleString()
                for each in (field.dataType, wanted.get(field.name, field.dataType))
            )
            if type_ != right:
                raise wrong_type_error(name, field.name, type_, right)


def read_differences(frame: DataFrame) -> Iterator[Difference]:
    """Yield the rows of a frame of changes, one partition in memory at a time."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield rows.parse_difference(row.asDict())


def _drift_mapper(
    places: UnreadablePlaces, detective: CommitAttributor | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def drifted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found: list[Difference] = []
            for row in batch.to_pylist():
                each = differences_of_row(row, places)
                found += detective.solve(*each) if detective and each.changes else each.changes
            yield rows.differences_batch(found)

    return drifted
