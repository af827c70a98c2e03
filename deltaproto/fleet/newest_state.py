"""Which rows of the scans of an inventory are the newest state of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from deltaproto.fleet.catalog_places import CatalogPlace, parse_catalog_place
from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.scan_history import Extent, PastScan, ScannedPlace, newest_scan
from deltaproto.fleet.staging import Unfinished
from deltaproto.policy.document import normalize_location


def newest_of_each_root(scans: Sequence[PastScan]) -> list[PastScan]:
    """Return the scans that no newer one replaces, newest first.

    A scan replaces an older one if it searched all its roots and skipped nothing that the older
    one searched. A scan with `--include` or `--exclude` replaces only scans with the same patterns.

    Raises:
        UsageError: the inventory has no scan.
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


class LostNames(NamedTuple):
    """Tables that were read again, but not under a catalog name that an older scan found."""

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
        self.lost_names: dict[PastScan, LostNames] = {}
        """by scan: tables that lost a name in newer scans that did not list its place"""
        self._coverage = _Coverage(self.scans)
        # By location: one bit for each scan with a row whose names were listed by newer scans.
        self._unlisted: dict[str, int] = {}
        if len(self.scans) == 1:
            return
        named: dict[str, set[str]] = {}
        for number, scan in enumerate(self.scans):
            for place in places(scan):
                where = self._coverage.add(number, place)
                if not self._coverage.roots[number]:
                    continue
                self._note_lost(number, where, place.names or (), named)
                if number and self._coverage.is_unlisted(number, where, place.names):
                    self._unlisted[where] = self._unlisted.get(where, 0) | 1 << number
        self.contributing += tuple(
            scan
            for number, scan in enumerate(self.scans[1:], 1)
            if any(
                rows >> number & 1 and self.is_newest(scan, where)
                for where, rows in self._coverage.rows.items()
            )
        )

    def is_newest(self, scan: PastScan, location: str) -> bool:
        """Return True if the row of `location` in `scan` is the newest state of that table."""
        number, where = self.scans.index(scan), normalize_location(location)
        if number == 0:
            return True
        if self._coverage.has_newer(number, where) or self._unlisted.get(where, 0) >> number & 1:
            return False
        return not any(self._coverage.searched(newer, where) for newer in range(number))

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
            return self._coverage.listed(number, place)
        return not patterns and self._coverage.searched(number, normalize_location(root))

    def _note_lost(
        self, number: int, where: str, names: tuple[str, ...], named: dict[str, set[str]]
    ) -> None:
        """Note the names of a row that newer rows of its location lack.

        Args:
            named: the names in newer rows, in lower case; the names of this row are added.
        """
        known = named.setdefault(where, set())
        places = {name: parse_catalog_place(name) for name in names if name.lower() not in known}
        if self._coverage.has_newer(number, where):
            lost = [
                name
                for name, place in places.items()
                if place
                and not any(self._coverage.listed_name(newer, place) for newer in range(number))
            ]
            if lost:
                count, first = self.lost_names.get(self.scans[number], LostNames(0, lost[0]))
                self.lost_names[self.scans[number]] = LostNames(count + 1, min(first, lost[0]))
        known.update(map(str.lower, places))


class _Coverage:
    """Where several scans have rows, and which places they searched or listed.

    A scan has a number: its place among `scans`, newest first.
    """

    def __init__(self, scans: Sequence[PastScan]) -> None:
        self.scans = scans
        self.rows: dict[str, int] = {}
        """by location, one bit for each scan that has a row"""
        self.roots = [
            [place for place in map(parse_catalog_place, scan.roots) if place] for scan in scans
        ]
        """the catalogs, schemas and tables in catalogs of each scan"""
        self._failed: list[set[CatalogPlace]] = [set() for _ in scans]
        """the places in catalogs that each scan could not list, or did not find"""

    def add(self, number: int, place: ScannedPlace) -> str:
        """Add the row of a scan, and return its normalized location."""
        where = normalize_location(place.location)
        self.rows[where] = self.rows.get(where, 0) | 1 << number
        if self.roots[number] and (failed := parse_catalog_place(place.location)):
            self._failed[number].add(failed)
        return where

    def has_newer(self, number: int, where: str) -> bool:
        """Return True if a newer scan has a row for the location."""
        return self.rows.get(where, 0) & (1 << number) - 1 != 0

    def listed_name(self, number: int, place: CatalogPlace) -> bool:
        """Return True if the scan listed this name on any server."""
        servers = {root.server for root in self.roots[number]}
        return any(self.listed(number, place._replace(server=server)) for server in servers)

    def is_unlisted(self, number: int, where: str, names: tuple[str, ...] | None) -> bool:
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
            servers = {root.server for root in self.roots[number]}
            return all(
                any(self._listed_server(newer, server) for newer in range(number))
                for server in servers
            )
        found = [
            place if "://" in name else place._replace(server=root.server)
            for root in self.roots[number]
            for name in names
            if (place := parse_catalog_place(name))
        ]
        found = [each for each in found if any(root.covers(each) for root in self.roots[number])]
        return bool(found) and all(
            any(self.listed(newer, each) for newer in range(number)) for each in found
        )

    def listed(self, number: int, place: CatalogPlace) -> bool:
        """Return True if the scan listed the schema or catalog of a place, or the place itself."""
        return any(
            root.covers(place)
            and not any(
                root.covers(failed) and failed.covers(place) and failed not in (root, place)
                for failed in self._failed[number]
            )
            for root in self.roots[number]
        )

    def _listed_server(self, number: int, server: str) -> bool:
        """Return True if the scan listed everything on a server."""
        whole = CatalogPlace(server, ())
        failed = any(place.server == server for place in self._failed[number])
        return whole in self.roots[number] and not failed

    def searched(self, number: int, where: str) -> bool:
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
            left = any(self.rows.get(f"{root}/{above}", 0) >> number & 1 for above in folders[:-1])
            if not left and all(map(selection.enters, folders)) and selection.includes(folders[-1]):
                return True
        return False


def _may_find(root: str, where: str) -> bool:
    """Return True if a list of tables, or a folder with its links, may lead to a location."""
    folder = normalize_location(root)
    both_local = folder.startswith("/") and where.startswith("/")
    return root.startswith("/") or both_local or f"{where}/".startswith(f"{folder}/")
