"""Compares the entries of catalogs with the logs at their locations, at the end of a scan.

A false finding is worse than a missed one: what may be another spelling of the same location, or
was not inspected, is not reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.inspection.catalog_entry import (
    CatalogEntry,
    LogFacts,
    compare_with_log,
    find_missing_log,
    first_few,
)
from deltaproto.location import locate
from deltaproto.policy.document import normalize_location
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rules import inside_managed_location, log_without_entry, several_names
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import parse_name, quote_if_needed
from deltaproto.tables.catalogs.interface import CATALOG_MANAGED_TYPE

COLUMNS = (
    *("location", "table", "min_reader_version", "min_writer_version", "reader_features"),
    *("writer_features", "configuration", "columns_digest", "complete"),
)
"""the staged columns that `findings_on` reads; it also reads `code`, the code of the error"""
_MANAGED = ("managed", CATALOG_MANAGED_TYPE)
_COMPARABLE = ("", "file", "s3", "gs", "abfss")
"""schemes, as normalized, under which a location has one spelling"""
_HIVE_ROOT = "default"


class Reconciliation:
    """What the catalogs of a scan say about its tables, against their logs."""

    def __init__(self, entries: CatalogEntries) -> None:
        self._entries = entries

    def concerns(self, location: str) -> bool:
        """Return True if the row of this location is needed."""
        return bool(self._entries.of(location)) or bool(self._searched)

    def findings_on(self, row: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield the findings on one table.

        Args:
            row: the columns `COLUMNS` and `code`; null in `code`: the table was read.
        """
        location = row["location"]
        entries = self._entries.of(location)
        if not entries:
            if row["code"] is None:
                yield from self._without_entry(row["table"], location)
            return
        table = entries[0].name
        if row["code"] is not None:
            yield from find_missing_log(table, location, row["code"], entries)
            return
        yield from compare_with_log(table, _log_facts(row), entries)
        yield from _several(table, location, entries)
        place = normalize_location(location)
        for entry in entries:
            yield from self._inside(table, place, entry)

    @cached_property
    def _searched(self) -> tuple[str, ...]:
        """The catalogs that have no entry for a table that they do not list."""
        found = self._entries.complete
        schemes = {_scheme(entry.table.location) for _, entry in self._entries.every()}
        return found if schemes <= set(_COMPARABLE) else ()

    @cached_property
    def _known_places(self) -> frozenset[str]:
        """Every location of an entry, of any format, in all spellings."""
        places = (place for place, _ in self._entries.every())
        return frozenset(map(_loose, (*places, *self._entries.other_places)))

    def _without_entry(self, table: str, location: str) -> Iterator[Finding]:
        place = normalize_location(location)
        if not self._searched or _scheme(place) not in _COMPARABLE:
            return
        real = os.path.realpath(place) if place.startswith("/") else place
        if self._known_places.isdisjoint({_loose(place), _loose(real)}):
            yield log_without_entry.RULE.finding(
                table,
                f"{first_few(self._searched)} has no entry for this location that you may see",
                "register the table, or delete the folder if it is a leftover of a dropped table",
                evidence=f"no table of any format at {location}",
            )

    @cached_property
    def _managed(self) -> dict[tuple[str, str], CatalogEntry]:
        return {
            (entry.catalog, place): entry
            for place, entry in self._entries.every()
            if entry.table.type in _MANAGED
        }

    @cached_property
    def _schemas(self) -> dict[tuple[str, str], str]:
        """Name of each schema by catalog and place, as far as the catalogs show them."""
        names = {
            (entry.catalog, tuple(parse_name(entry.name)[:-1])): None
            for _, entry in self._entries.every()
        }
        found: dict[tuple[str, str], str] = {}
        for catalog, schema in names:
            clients = self._entries.clients.get(catalog)
            if not clients or schema[-1:] == (_HIVE_ROOT,):
                continue
            with suppress(TableError):
                location = clients[0].schema_location(schema)
                if location:
                    found[catalog, _place(location)] = ".".join(map(quote_if_needed, schema))
        return found

    def _inside(self, table: str, place: str, entry: CatalogEntry) -> Iterator[Finding]:
        if entry.table.type != "external":
            return
        rule = inside_managed_location.RULE
        for above in _ancestors(place):
            outer = self._managed.get((entry.catalog, above))
            if outer is not None:
                yield rule.finding(
                    table,
                    f"The external table {entry.name} is inside the folder of the managed table "
                    f"{outer.name}",
                    f"move it: VACUUM or DROP TABLE of {outer.name} deletes its files",
                    evidence=f"{outer.name} is at {outer.table.location}",
                    detail=f"{entry.name} {outer.name}",
                )
                return
        for above in _ancestors(place):
            schema = self._schemas.get((entry.catalog, above))
            if schema is not None:
                yield rule.finding(
                    table,
                    f"The external table {entry.name} is inside the folder of the database "
                    f"{schema}",
                    f"move it before anyone drops {schema}: CASCADE deletes the folder",
                    evidence=f"{schema} is at {above}",
                    detail=f"{entry.name} {schema}",
                    severity=Severity.INFO,
                )
                return


def _log_facts(row: Mapping[str, Any]) -> LogFacts:
    stored = {
        "minReaderVersion": row["min_reader_version"],
        "minWriterVersion": row["min_writer_version"],
        "readerFeatures": row["reader_features"],
        "writerFeatures": row["writer_features"],
    }
    protocol = Protocol.stored({key: value for key, value in stored.items() if value is not None})
    configuration = dict(row["configuration"] or ())
    return LogFacts(protocol, configuration, row["columns_digest"], complete=bool(row["complete"]))


def _several(table: str, location: str, entries: Iterable[CatalogEntry]) -> Iterator[Finding]:
    by_catalog: dict[str, dict[str, str]] = {}
    for entry in entries:
        if entry.table.link:
            continue
        by_catalog.setdefault(entry.catalog, {}).setdefault(entry.name.lower(), entry.name)
    for catalog, names in by_catalog.items():
        if len(names) > 1:
            yield several_names.RULE.finding(
                table,
                f"{counted(len(names), 'entry', 'entries')} of {catalog} have this location: "
                f"{first_few(names.values(), ', ')}",
                "keep one of them, and make the others views: any change affects all of them",
                evidence=location,
                detail=catalog,
            )


def _place(location: str) -> str:
    found = locate(location)
    return normalize_location(found.uri if found.path is None else os.path.realpath(found.path))


def _scheme(location: str) -> str:
    """Return the normalized scheme of a location; empty for a path.

    A location on Azure without its account has one that no other location has.
    """
    place = normalize_location(location)
    scheme, _, rest = place.partition("://")
    if scheme == "abfss" and "@" not in rest.partition("/")[0]:
        return "az"
    return "" if place.startswith("/") else place.partition(":")[0]


def _loose(place: str) -> str:
    """Return a key that is equal for different spellings of a location, and for some others."""
    return re.sub(r"(?<!:)/+", "/", unquote(normalize_location(place)).rstrip("/")).lower()


def _ancestors(place: str) -> Iterator[str]:
    """Yield the folders above a place, the innermost first, down to the bucket or the root."""
    least = place.find("://") + len("://") if "://" in place else 1
    while (cut := place.rfind("/")) >= least:
        place = place[:cut]
        yield place
