"""The catalog entries that a scan finds, by location: a table may have several names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.inspection.catalog_entry import CatalogEntry
from deltaproto.policy.document import normalize_location
from deltaproto.sql.quoting import parse_name
from deltaproto.tables.catalogs.interface import CatalogClient


class _Ranked(NamedTuple):
    """An entry, and its place among the entries of its location."""

    order: tuple[bool, int, tuple[str, ...], int]
    """does not depend on the order in which pages arrive"""
    entry: CatalogEntry


class CatalogEntries:
    """Collects the entries of all catalogs of a scan."""

    def __init__(self) -> None:
        self._by_place: dict[str, list[_Ranked]] = {}
        self._uris: dict[str, str] = {}
        """where a table is read, by place"""
        self._catalogs: dict[str, int] = {}
        self.clients: dict[str, list[CatalogClient]] = {}
        """by address; none for catalogs of a Spark session"""
        self._other_places: set[str] = set()
        self._begun: set[str] = set()
        self._whole: set[str] = set()
        self._failed: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def add(self, found: DiscoveredTable, catalog: str = "") -> None:
        """Add the entry of a table; nothing if no catalog has it.

        Args:
            catalog: address of the catalog; empty: a catalog of a Spark session.
        """
        if found.entry is None:
            return
        place = normalize_location(found.location)
        parts = parse_name(found.table)
        catalog = catalog or f"catalog {parts[0]}"
        entries = self._by_place.setdefault(place, [])
        self._uris.setdefault(place, found.uri)
        for number, known in enumerate(entries):
            if (known.entry.catalog, known.entry.name) == (catalog, found.table):
                # It was listed under two roots; the user may have named it under the second.
                if found.requested and known.order[0]:
                    entries[number] = known._replace(order=(False, *known.order[1:]))
                return
        rank = self._catalogs.setdefault(catalog, len(self._catalogs))
        schema = tuple(part.lower() for part in parts[:-1])
        order = (not found.requested, rank, schema, len(entries))
        entries.append(_Ranked(order, CatalogEntry(catalog, found.entry.without_columns())))

    def add_other_place(self, location: str) -> None:
        """Add the location of a table of another format in a catalog of a Spark session."""
        self._other_places.add(location)

    @property
    def other_places(self) -> Iterator[str]:
        """The locations of tables of other formats."""
        yield from self._other_places
        for clients in self.clients.values():
            for client in clients:
                yield from client.counts.other_places

    def begin(self, catalog: str) -> None:
        """Note that a catalog, or a part of it, is listed."""
        self._begun.add(catalog)

    def fail(self, catalog: str) -> None:
        """Note that a part of a catalog could not be listed."""
        self._failed.add(catalog)

    def finish(self, catalog: str) -> None:
        """Note that every schema of a catalog was listed."""
        self._whole.add(catalog)

    @property
    def complete(self) -> tuple[str, ...]:
        """The catalogs of the scan; none if one of them was not listed as a whole."""
        return tuple(sorted(self._begun)) if self._begun == self._whole - self._failed else ()

    def every(self) -> Iterator[tuple[str, CatalogEntry]]:
        """Yield each entry with its place, a key of `normalize_location`."""
        for place, entries in self._by_place.items():
            for each in entries:
                yield place, each.entry

    def of(self, location: str) -> list[CatalogEntry]:
        """Return the entries of a location, the one with the preferred name first."""
        found = self._by_place.get(normalize_location(location), ())
        return [each.entry for each in sorted(found, key=lambda ranked: ranked.order)]

    def names(self, location: str) -> tuple[str, ...]:
        """Return the distinct names of a location, the preferred one first.

        That is the name that the user gave, else the first name in the catalog that was given
        first.
        """
        return tuple(dict.fromkeys(entry.name for entry in self.of(location)))

    def renamed(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield URI and names of each location that has several names."""
        for place, uri in self._uris.items():
            if len(self._by_place[place]) > 1 and len(names := self.names(place)) > 1:
                yield uri, names
