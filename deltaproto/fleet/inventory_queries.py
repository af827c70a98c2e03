"""Queries on an inventory, the same for delta-rs and Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.catalog_places import CatalogPlace, parse_catalog_place
from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.scan_history import (
    KEYS_OF_ROWS,
    NO_ROWS,
    Extent,
    PastScan,
    RowCounts,
    ScannedPlace,
    counts_query,
    locations_query,
    newest_scan,
    parse_scans,
    require_rows,
    scans_query,
    sql_literal,
)
from deltaproto.fleet.schemas import OTHER_NAMES, Inventory, missing_column_error, rows_schema
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
            for root in scan.extent.roots
        )
        if not found or not all(replaced):
            found.append(scan)
    return found


def _replaces(newer: Extent, older: Extent, root: str) -> bool:
    if root not in newer.roots:
        return False
    return newer[1:] == older[1:] or not (newer.included or newer.excluded or older.included)


def _may_find(root: str, where: str) -> bool:
    """Return True if a list of tables, or a folder with its links, may lead to a location."""
    folder = normalize_location(root)
    both_local = folder.startswith("/") and where.startswith("/")
    return root.startswith("/") or both_local or f"{where}/".startswith(f"{folder}/")


class LostNames(NamedTuple):
    """Tables that were read again without a catalog name that an older scan found."""

    tables: int
    first: str
    """the first of these names"""


class NewestState:
    """Decides which rows of several scans are the newest state of their table.

    A row of an older scan counts until a newer scan has a row for the same location, or has
    searched the place without finding a table there. A table that was found in catalogs does not
    count either if newer scans listed all of its names without finding it.

    Args:
        scans: newest first.
        places: the places of all tables and errors of a scan.
        fuller: see `find_fuller_scan`, by scan.
    """

    def __init__(
        self,
        scans: Sequence[PastScan],
        places: Callable[[PastScan], Iterable[ScannedPlace]],
        fuller: Mapping[PastScan, PastScan] | None = None,
    ) -> None:
        self.scans = tuple(scans)
        self.fuller = fuller or {}
        self.contributing = self.scans[:1]
        """the scans with at least one row that no newer scan replaces; always the newest"""
        # Per location, one bit for each scan that has a row.
        self._seen: dict[str, int] = {}
        # The same for rows whose names newer scans listed.
        self._unlisted: dict[str, int] = {}
        self._roots = [
            [place for place in map(parse_catalog_place, scan.roots) if place]
            for scan in self.scans
        ]
        # The places in catalogs that each scan could not list, or did not find.
        self._failed: list[set[CatalogPlace]] = [set() for _ in self.scans]
        self.lost_names: dict[PastScan, LostNames] = {}
        """by scan: tables that newer scans read without a name, although they did not list it"""
        if len(self.scans) == 1:
            return
        named: dict[str, set[str]] = {}
        for number, scan in enumerate(self.scans):
            for place in places(scan):
                where = normalize_location(place.location)
                if self._roots[number]:
                    self._note_lost(number, where, place.names or (), named)
                self._seen[where] = self._seen.get(where, 0) | 1 << number
                if not self._roots[number]:
                    continue
                if failed := parse_catalog_place(place.location):
                    self._failed[number].add(failed)
                if number and self._is_unlisted(number, where, place.names):
                    self._unlisted[where] = self._unlisted.get(where, 0) | 1 << number
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
        if (
            self._seen.get(where, 0) & (1 << number) - 1
            or self._unlisted.get(where, 0) >> number & 1
        ):
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
        if place := parse_catalog_place(root):
            return self._listed(number, place)
        return not patterns and self._searched(number, normalize_location(root))

    def _note_lost(
        self, number: int, where: str, names: tuple[str, ...], named: dict[str, set[str]]
    ) -> None:
        """Note the names of a row that newer rows of its location lack.

        Args:
            named: the names in newer rows, in lower case; those of this one are added.
        """
        known = named.setdefault(where, set())
        places = {name: parse_catalog_place(name) for name in names if name.lower() not in known}
        if self._seen.get(where, 0) & (1 << number) - 1:
            lost = [
                name
                for name, place in places.items()
                if place and not any(self._listed_name(newer, place) for newer in range(number))
            ]
            if lost:
                count, first = self.lost_names.get(self.scans[number], LostNames(0, lost[0]))
                self.lost_names[self.scans[number]] = LostNames(count + 1, min(first, lost[0]))
        known.update(map(str.lower, places))

    def _listed_name(self, number: int, place: CatalogPlace) -> bool:
        """Return True if the scan listed this name on any server."""
        servers = {root.server for root in self._roots[number]}
        return any(self._listed(number, place._replace(server=server)) for server in servers)

    def _is_unlisted(self, number: int, where: str, names: tuple[str, ...] | None) -> bool:
        """Return True if newer scans listed every catalog in which the scan found the row.

        They then have no row for this location: the catalogs no longer have the table there.
        """
        scan = self.scans[number]
        if scan.not_searched is None:
            # An early release did not store all names.
            return False
        if any(_may_find(root, where) for root in scan.roots if not parse_catalog_place(root)):
            return False
        if names is None:
            # The scan of an older release stored no further names of a table with an error.
            servers = {root.server for root in self._roots[number]}
            return all(
                any(self._listed_server(newer, server) for newer in range(number))
                for server in servers
            )
        found = [
            place if "://" in name else place._replace(server=root.server)
            for root in self._roots[number]
            for name in names
            if (place := parse_catalog_place(name))
        ]
        found = [each for each in found if any(root.covers(each) for root in self._roots[number])]
        return bool(found) and all(
            any(self._listed(newer, each) for newer in range(number)) for each in found
        )

    def _listed(self, number: int, place: CatalogPlace) -> bool:
        """Return True if the scan listed the schema or catalog of a place, or the place itself."""
        return any(
            root.covers(place)
            and not any(
                root.covers(failed) and failed.covers(place) and failed not in (root, place)
                for failed in self._failed[number]
            )
            for root in self._roots[number]
        )

    def _listed_server(self, number: int, server: str) -> bool:
        """Return True if the scan listed everything on a server."""
        whole = CatalogPlace(server, ())
        failed = any(place.server == server for place in self._failed[number])
        return whole in self._roots[number] and not failed

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
