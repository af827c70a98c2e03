"""The tables that `deltaproto discover` reads: tables, all tables below roots, and inventories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.catalog_places import unity_addresses
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.discovery import DiscoverySource, discover_tables
from deltaproto.fleet.inventory_reader import (
    InventoryReader,
    open_inventory_reader,
    require_finished,
    select_newest_state,
)
from deltaproto.fleet.local_engine import THREADS
from deltaproto.fleet.scan_history import PastScan
from deltaproto.fleet.schemas import Inventory, is_inventory, is_table
from deltaproto.location import Location, LocationKind, locate, location_at
from deltaproto.policy.document import normalize_location
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.open import OpenedLog, open_scanned_log, open_table_log


class FoundLog(NamedTuple):
    """A table whose log is to be read."""

    table: str
    """the table as the user or the inventory named it"""
    location: Location
    address: str | None = None
    """its name with its catalog's URL; None: it is read by its location only"""

    @property
    def remote(self) -> bool:
        """True for a table on an object store."""
        return self.address is not None or self.location.kind is LocationKind.URI

    def open(self, options: Mapping[str, str], spark: SparkSettings) -> OpenedLog:
        """Open the log.

        Raises:
            TableError: when it cannot be opened.
            EngineError: when a catalog name needs Spark and it is not available.
        """
        if self.location.kind is LocationKind.NAME:
            return open_table_log(self.table, options, spark)
        return open_scanned_log(self.location, self.address, options)


class FailedTable(NamedTuple):
    """A table, or a place with tables, that was not read, or not completely."""

    table: str
    error: TableError
    uri: str | None = None
    """location of a table or root that the user named, so that its requests are found"""


def find_logs(
    names: Iterable[str], options: Mapping[str, str], *, allow_empty: bool
) -> Iterator[FoundLog | FailedTable]:
    """Yield every table that `names` mean, each location once."""
    seen: set[str] = set()
    for name in names:
        for each in _find(name, options, allow_empty=allow_empty):
            if isinstance(each, FoundLog):
                key = normalize_location(each.location.uri)
                if key in seen:
                    continue
                seen.add(key)
            yield each


def _find(
    name: str, options: Mapping[str, str], *, allow_empty: bool
) -> Iterator[FoundLog | FailedTable]:
    try:
        location = locate(name)
        if location.kind is LocationKind.NAME or is_table(name, options):
            yield FoundLog(name, location)
        elif is_inventory(name, options):
            yield from _of_inventory(name, options)
        else:
            source = DiscoverySource(roots=(name,), allow_empty=allow_empty)
            address = unity_addresses([location.uri])
            for each in chain(*discover_tables(source, options, THREADS)):
                if isinstance(each, DiscoveredTable):
                    where = location_at(each.location, each.table)
                    yield FoundLog(each.table, where, address(each.table))
                else:
                    empty = each.error.code is ErrorCode.NO_TABLES
                    here = each.uri == location.uri and not empty
                    yield FailedTable(each.place, each.error, each.uri if here else None)
    except UsageError as error:
        yield FailedTable(name, TableError(ErrorCode.NOT_FOUND, error.message, error.hint))
    except TableError as error:
        yield FailedTable(name, error)


def _of_inventory(name: str, options: Mapping[str, str]) -> Iterator[FoundLog | FailedTable]:
    inventory = open_inventory_reader(name, options, None)
    state = select_newest_state(inventory, None)
    try:
        require_finished(name, state, options)
    except TableError as error:
        yield FailedTable(name, error)
    inventory.require_whole(*state.contributing)
    for scan in state.contributing:
        address = unity_addresses(scan.roots)
        for row in _rows(inventory, Inventory.TABLES, scan):
            if state.is_newest(scan, row["location"]):
                where = location_at(row["location"], row["table"])
                yield FoundLog(row["table"], where, address(row["table"]))
        for row in _rows(inventory, Inventory.ERRORS, scan):
            if state.is_newest(scan, row["location"]):
                why = TableError(ErrorCode(row["code"]), row["message"], row["hint"] or "")
                yield FailedTable(row["table"], why)


def _rows(inventory: InventoryReader, table: Inventory, scan: PastScan) -> Iterator[dict[str, str]]:
    for batch in inventory.batches(table, scan):
        yield from batch.to_pylist()
