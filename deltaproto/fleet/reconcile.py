"""Compares the entries of catalogs with the logs at their locations, at the end of a scan.

A false accusation is worse than a missed one: what may be another spelling of the same location, or
what was not looked at, is no finding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_entries import CatalogEntries, CatalogEntry
from deltaproto.location import locate
from deltaproto.policy.document import normalize_location
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rules import (
    entry_columns_differ,
    entry_of_another_table,
    entry_protocol_differs,
    entry_without_log,
    inside_managed_location,
    log_without_entry,
    several_names,
)
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import parse_name, quote_if_needed
from deltaproto.tables.catalogs.interface import CATALOG_MANAGED_TYPE

COLUMNS = (
    *("location", "table", "min_reader_version", "min_writer_version", "reader_features"),
    *("writer_features", "configuration", "columns_digest"),
)
"""the staged columns that `findings_on` reads, besides `code`, that of the error"""
_MANAGED = ("managed", CATALOG_MANAGED_TYPE)
_UC_IDS = ("io.unitycatalog.tableId", "ucTableId")
_NO_LOG = (str(ErrorCode.NOT_FOUND), str(ErrorCode.NOT_A_DELTA_TABLE))
_COMPARABLE = ("", "file", "s3", "gs", "abfss")
"""schemes, as normalized, under which a location has one spelling"""
_HIVE_ROOT = "default"
_NAMED = 4
_SYNC = "on Databricks, MSCK REPAIR TABLE … SYNC METADATA does it"


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
            if row["code"] in _NO_LOG and _is_missing(location):
                yield _without_log(table, location, entries)
            return
        configuration = dict(row["configuration"] or ())
        yield from _other_ids(table, configuration, entries)
        yield from _other_columns(table, row["columns_digest"], entries)
        yield from _other_protocols(table, row, entries)
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
        places = [place for place, _ in self._entries.every()]
        for clients in self._entries.clients.values():
            places += (place for client in clients for place in client.counts.other_places)
        return frozenset(map(_loose, places))

    def _without_entry(self, table: str, location: str) -> Iterator[Finding]:
        place = normalize_location(location)
        if not self._searched or _scheme(place) not in _COMPARABLE:
            return
        real = os.path.realpath(place) if place.startswith("/") else place
        if self._known_places.isdisjoint({_loose(place), _loose(real)}):
            yield log_without_entry.RULE.finding(
                table,
                f"{_listed(self._searched)} has no entry for this location that you may see",
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
                    f"move it before anybody drops {schema}: CASCADE deletes the folder",
                    evidence=f"{schema} is at {above}",
                    detail=f"{entry.name} {schema}",
                    severity=Severity.INFO,
                )
                return


def _without_log(table: str, location: str, entries: Iterable[CatalogEntry]) -> Finding:
    catalogs = _listed(dict.fromkeys(entry.catalog for entry in entries))
    return entry_without_log.RULE.finding(
        table,
        f"{catalogs} has an entry for this table, but there is no Delta log at its location",
        "drop the entry, restore the folder, or correct the location of the entry",
        evidence=location,
    )


def _other_ids(
    table: str, configuration: Mapping[str, str], entries: Iterable[CatalogEntry]
) -> Iterator[Finding]:
    own = next((value for key in _UC_IDS if (value := configuration.get(key))), None)
    listed = [each for each in entries if each.catalog.startswith("uc:") and each.table.id]
    known = {(each.catalog, str(each.table.id).lower()) for each in listed}
    for entry in listed:
        # The other names of a table have ids of their own.
        if own is not None and (entry.catalog, own.lower()) not in known:
            yield entry_of_another_table.RULE.finding(
                table,
                f"The log belongs to another table of Unity Catalog than {entry.name}",
                f"look for the table with the id {own}; it may be a copied folder",
                evidence=f"id in the log: {own}; of the entry: {entry.table.id}",
                detail=entry.name,
            )


def _other_columns(
    table: str, digest: str | None, entries: Iterable[CatalogEntry]
) -> Iterator[Finding]:
    for entry in entries:
        listed = entry.table.columns
        if digest is None or listed is None or listed == digest:
            continue
        here, there = listed.partition("-")[0], digest.partition("-")[0]
        numbers = (
            f"{here} columns, and the log {there}"
            if here != there
            else f"{here} columns, and the log as many, but not with the same names"
        )
        yield entry_columns_differ.RULE.finding(
            table,
            f"The entry {entry.name} has {numbers}",
            f"update the entry: run the crawler again, or register the table again; {_SYNC}",
            evidence=f"names in the entry: {listed}; in the log: {digest}",
            detail=entry.name,
        )


def _other_protocols(
    table: str, row: Mapping[str, Any], entries: Iterable[CatalogEntry]
) -> Iterator[Finding]:
    stating = [entry for entry in entries if entry.table.protocol is not None]
    if not stating:
        return
    stored = {
        "minReaderVersion": row["min_reader_version"],
        "minWriterVersion": row["min_writer_version"],
        "readerFeatures": row["reader_features"],
        "writerFeatures": row["writer_features"],
    }
    protocol = Protocol.stored({key: value for key, value in stored.items() if value is not None})
    for entry in stating:
        differences = list(_differences(entry, protocol))
        if differences:
            yield entry_protocol_differs.RULE.finding(
                table,
                f"The properties of the entry {entry.name} state another protocol than the log: "
                f"{'; '.join(differences)}",
                f"update or remove the properties of the entry; {_SYNC}",
                evidence=f"the log has {protocol}",
                detail=entry.name,
            )


def _differences(entry: CatalogEntry, protocol: Protocol) -> Iterator[str]:
    stated = entry.table.protocol
    assert stated is not None
    versions = (
        ("reader", stated.reader, protocol.min_reader_version),
        ("writer", stated.writer, protocol.min_writer_version),
    )
    for which, here, there in versions:
        if here is not None and here != there:
            yield f"{which} version {here} instead of {there}"
    supported = {_feature_key(name) for name in protocol.supported}
    more = [name for name in stated.features if _feature_key(name) not in supported]
    if more:
        yield f"also {', '.join(sorted(more))}"
    listed = {_feature_key(name) for name in stated.features}
    # An entry that names some features names all of them.
    missing = [name for name in protocol.listed if _feature_key(name) not in listed]
    if listed and missing:
        yield f"without {', '.join(sorted(missing))}"


def _feature_key(name: str) -> str:
    """Return a key for comparisons: the names of one feature have the same."""
    return "catalogManaged" if name in CATALOG_MANAGED else name.lower()


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
                f"{len(names)} entries of {catalog} have this location: "
                f"{_listed(names.values(), ', ')}",
                "keep one of them, and make the others views: a change under one name changes all",
                evidence=location,
                detail=catalog,
            )


def _listed(names: Iterable[str], between: str = " or ") -> str:
    every = list(names)
    more = len(every) - _NAMED
    return between.join(every[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_missing(location: str) -> bool:
    """Return False if a path may be one of another machine: not even its parent folder is here."""
    place = normalize_location(location)
    return not place.startswith("/") or os.path.isdir(os.path.dirname(place))


def _place(location: str) -> str:
    found = locate(location)
    return normalize_location(found.uri if found.path is None else os.path.realpath(found.path))


def _scheme(location: str) -> str:
    """Return the normalized scheme of a location; empty for a path."""
    place = normalize_location(location)
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
