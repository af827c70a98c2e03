"""Finds every table in a scan's roots, lists and catalogs, each once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import TextIOWrapper
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError, UsageError, no_tables_error
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.catalog_places import CATALOG_PREFIX
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderLinks,
    FolderSelection,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.fleet.local_disk import tables_under as on_disk_under
from deltaproto.input_file import open_input
from deltaproto.location import Location, LocationKind, catalog_server, locate, parse_table_list
from deltaproto.policy.document import normalize_location
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import redact_address


class DiscoverySource(NamedTuple):
    """Where to search for tables."""

    roots: tuple[str, ...] = ()
    """folders, URIs and catalogs"""
    lists: tuple[str, ...] = ()
    """files with one table per line"""
    selection: FolderSelection = FolderSelection()
    inventory: str | None = None
    """path or URI of the inventory, which contains no tables of the fleet"""
    catalogs: tuple[str, ...] = ()
    """catalogs and schemas of a Spark session"""
    from_catalogs: Callable[[CatalogEntries], Iterable[DiscoveredTable | UnreadablePlace]] = (
        lambda _: ()
    )
    """lists their tables, and notes which were listed as a whole"""
    allow_empty: bool = False
    """whether a root, list or catalog without tables is not an error"""

    def root_names(self) -> list[str]:
        """Return the roots, lists and catalogs, independent of the working directory."""
        lists = [os.path.abspath(path) for path in self.lists]
        roots = {_locate_root(root).uri for root in self.roots}
        return [
            *sorted(roots),
            *sorted(lists),
            *(f"{CATALOG_PREFIX}{name}" for name in self.catalogs),
        ]


def list_session_catalogs(
    names: tuple[str, ...], spark: Callable[[], SparkSettings]
) -> Callable[[CatalogEntries], Iterable[DiscoveredTable | UnreadablePlace]]:
    """Return `DiscoverySource.from_catalogs` for catalogs and schemas of a Spark session.

    Args:
        spark: returns the session's settings; called when catalogs are listed.
    """

    def tables(entries: CatalogEntries) -> Iterator[DiscoveredTable | UnreadablePlace]:
        if names:
            from deltaproto.fleet.catalogs import find_catalog_tables
            from deltaproto.tables.session import spark_session

            yield from find_catalog_tables(spark_session(spark()), names, entries)

    return tables


class SplitTables(NamedTuple):
    """Tables by how they are read; the streams must be consumed in this order."""

    named: Iterator[DiscoveredTable | UnreadablePlace]
    """tables of catalogs that are roots, wherever they are stored"""
    local: Iterator[DiscoveredTable | UnreadablePlace]
    remote: Iterator[DiscoveredTable | UnreadablePlace]


def discover_tables(
    source: DiscoverySource,
    options: Mapping[str, str],
    parallel: int,
    skipped: SkippedPlaces | None = None,
    entries: CatalogEntries | None = None,
) -> SplitTables:
    """Find the tables lazily; each location once.

    `skipped` counts places that are not searched, and links out of the roots. `entries` receives
    every catalog entry, including entries of locations that were found before.

    Raises:
        UsageError: when a root is neither a folder nor a URI, or a list cannot be read.
    """
    roots = [_locate_root(root) for root in source.roots]
    catalogs = [root for root in roots if root.kind is LocationKind.CATALOG]
    roots = [root for root in roots if root.kind is not LocationKind.CATALOG]
    entries = CatalogEntries() if entries is None else entries
    # Named tables first: a location found again later keeps its name.
    listed = [_resolve_links(each) for each in source.from_catalogs(entries)]
    chosen, skipped = source.selection, SkippedPlaces() if skipped is None else skipped
    for entry in _read_table_lists(source.lists, skipped.links):
        if isinstance(entry, Location):
            catalogs.append(entry)
        else:
            listed.append(entry)
    seen: set[str] = set()
    own = _inventory_folder(source)
    skipped.leave_out(own)
    on_disk = [_real_location(root, skipped.links) for root in roots if root.path is not None]
    apart = (
        {normalize_location(root.uri) for root in roots if root.path is None}
        if chosen.flat
        else set()
    )

    def stored() -> Iterator[DiscoveredTable | UnreadablePlace]:
        uris = {normalize_location(root.uri): root.uri for root in roots if root.path is None}
        for uri in uris.values():
            # No root needs a catalog client.
            from deltaproto.fleet.object_store import tables_under

            others = apart - {normalize_location(uri)}
            yield from tables_under(uri, options, chosen, parallel, others, own, skipped)

    def all_of(
        remote: bool, walked: Iterable[DiscoveredTable | UnreadablePlace]
    ) -> Iterator[DiscoveredTable | UnreadablePlace]:
        chosen_now = (each for each in listed if _is_remote(each) is remote)
        yield from _deduplicate(_collect(chosen_now, own, entries), seen, own, remember=True)
        # A walk that finds each table once needs no memory of the tables found.
        yield from _deduplicate(walked, seen, own, remember=not chosen.flat)

    def named() -> Iterator[DiscoveredTable | UnreadablePlace]:
        from deltaproto.fleet.catalog_roots import tables_in

        for root in catalogs:
            found = map(_resolve_links, tables_in(root, options, skipped, entries))
            host = catalog_server(root.uri)
            entries.begin(host)
            yield from _deduplicate(_collect(found, own, entries, host), seen, own, remember=True)
            if not root.name:
                entries.finish(host)

    def not_empty(
        found: Iterator[DiscoveredTable | UnreadablePlace],
    ) -> Iterator[DiscoveredTable | UnreadablePlace]:
        return (each for each in found if not (source.allow_empty and _is_empty(each)))

    return SplitTables(
        not_empty(named() if catalogs else iter(())),
        not_empty(all_of(False, on_disk_under(on_disk, chosen, own, skipped))),
        not_empty(all_of(True, stored())),
    )


def _inventory_folder(source: DiscoverySource) -> str | None:
    """Return the place of the inventory with a slash; None if nothing is saved."""
    if source.inventory is None:
        return None
    return normalize_location(_real_location(locate(source.inventory))) + "/"


def _is_empty(each: DiscoveredTable | UnreadablePlace) -> bool:
    return isinstance(each, UnreadablePlace) and each.error.code is ErrorCode.NO_TABLES


def _locate_root(text: str) -> Location:
    try:
        location = locate(text)
    except TableError as error:
        raise UsageError(error.message, error.hint) from None
    if location.kind is LocationKind.NAME:
        # A folder with this name would have been recognized as a path.
        raise UsageError(
            f"{text} is neither a folder nor a URI", "check the path of the root to scan"
        )
    return location


def _read_table_lists(
    paths: Iterable[str], links: FolderLinks
) -> Iterator[DiscoveredTable | UnreadablePlace | Location]:
    for path in paths:
        yield from _read_table_list(path, links)


def _read_table_list(
    path: str, links: FolderLinks
) -> Iterator[DiscoveredTable | UnreadablePlace | Location]:
    """Yield the tables of a list; a name in a catalog that has a URL is yielded as its address."""
    try:
        with open_input(path) as file:
            text = TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape")
            named = list(parse_table_list(text))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    if not named:
        yield UnreadablePlace(path, no_tables_error(path))
    for line in named:
        try:
            location = locate(line)
        except TableError as error:
            yield UnreadablePlace(redact_address(line), error)
            continue
        if location.kind is LocationKind.NAME:
            message = f"{line} is neither a path that exists nor a URI"
            hint = "put the table's path or URI in the list"
            yield UnreadablePlace(line, TableError(ErrorCode.NOT_FOUND, message, hint))
        elif location.kind is LocationKind.CATALOG:
            yield location
        else:
            yield DiscoveredTable(line, _real_location(location, links))


def _resolve_links(each: DiscoveredTable | UnreadablePlace) -> DiscoveredTable | UnreadablePlace:
    """Replace links in its location, as for roots and lists."""
    if isinstance(each, UnreadablePlace):
        return each
    try:
        return each._replace(location=_real_location(locate(each.location)))
    except TableError as error:
        return UnreadablePlace(each.table, error)


def _is_remote(each: DiscoveredTable | UnreadablePlace) -> bool:
    return isinstance(each, DiscoveredTable) and "://" in each.location


def _real_location(location: Location, links: FolderLinks | None = None) -> str:
    """Return the path with links resolved, or the URI; `links` keeps the other path."""
    if location.path is None:
        return location.uri
    real, path = os.path.realpath(location.path), os.path.abspath(location.path)
    if links is not None and real != path:
        links.add(path, real)
    return real


def _deduplicate(
    tables: Iterable[DiscoveredTable | UnreadablePlace],
    seen: set[str],
    own: str | None,
    *,
    remember: bool,
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    for each in tables:
        key = normalize_location(each.location if isinstance(each, DiscoveredTable) else each.place)
        if key not in seen and not each.inside(own):
            if remember:
                seen.add(key)
            yield each


def _collect(
    tables: Iterable[DiscoveredTable | UnreadablePlace],
    own: str | None,
    entries: CatalogEntries,
    catalog: str = "",
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Yield the tables, after adding the catalog entry of each to `entries`."""
    for each in tables:
        if isinstance(each, UnreadablePlace):
            entries.fail(catalog)
        elif not each.inside(own):
            entries.add(each, catalog)
        yield each
