"""Tables of catalogs that a scan reaches without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial

from deltaproto.counts import counted
from deltaproto.errors import TableError, no_tables_error
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import DiscoveredTable, SkippedPlaces, UnreadablePlace
from deltaproto.interrupts import defer_signals, reader_pool, wait_for_first
from deltaproto.location import Location, catalog_server
from deltaproto.sql.quoting import parse_name
from deltaproto.tables.catalogs.interface import (
    CatalogClient,
    CatalogFailure,
    CatalogTable,
    CatalogUnavailable,
    Name,
    Tally,
    commits_of,
    name_parts,
    no_location_error,
    quoted_name,
)
from deltaproto.tables.catalogs.opening import open_catalog

SCHEMAS = 8
"""schemas listed at the same time; each is one page ahead of the reader"""
_Page = list[CatalogTable] | None


def tables_in(
    root: Location, options: Mapping[str, str], skipped: SkippedPlaces, entries: CatalogEntries
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Yield every Delta table at or below a catalog's address, lazily.

    `skipped` receives lines about what was skipped, and how often the catalog limited the rate;
    `entries` the catalog's client. An address without Delta tables, and every part that cannot be
    listed, is an unreadable place.
    """
    address = root.uri.rstrip("/")
    try:
        client = open_catalog(root, options)
    except TableError as error:
        yield UnreadablePlace(address, error)
        return
    skipped.add_lines(lambda: _notes(address, client))
    entries.clients.setdefault(catalog_server(address), []).append(client)
    requested = len(parse_name(root.name)) == client.depth
    empty = True
    for each in list_tables(client, root):
        empty = False
        if isinstance(each, CatalogFailure):
            yield UnreadablePlace(each.place, each.error)
        else:
            yield DiscoveredTable(
                each.name,
                each.location,
                entry=each,
                catalog=root.uri.partition(":")[0],
                storage_options=partial(client.storage_options, each),
                commits=commits_of(client, each),
                requested=requested,
            )
    if empty:
        yield UnreadablePlace(address, no_tables_error(address, "the name and your permissions"))


def _notes(address: str, client: CatalogClient) -> Iterator[str]:
    counts = client.counts
    if skipped := counts.describe_skipped():
        yield f"{address}: {skipped} skipped"
    if retried := counts[Tally.THROTTLED]:
        sent = f"{retried:,} of {counted(counts[Tally.REQUESTS], 'request')}"
        yield f"{address}: limited the rate of requests; sent {sent} again after a pause"
    if refused := counts[Tally.OWN_CREDENTIALS]:
        read = counted(refused, "table was read", "tables were read")
        yield f"{address}: {read} without temporary credentials of the catalog"


def list_tables(
    client: CatalogClient, location: Location
) -> Iterator[CatalogTable | CatalogFailure]:
    """Yield every Delta table at or below an address. At most `SCHEMAS` pages are in memory.

    A schema that cannot be listed is one failure, after the tables of its earlier pages. If the
    catalog itself does not answer, or refuses the user, the failure names the address, and ends
    the list.
    """
    root = location.uri.rstrip("/")
    try:
        name = name_parts(location, client.depth)
        if len(name) == client.depth:
            yield client.table(name)
        else:
            yield from _list_below(client, name, root)
    except TableError as error:
        yield CatalogFailure(root, error)


def _list_below(
    client: CatalogClient, name: Name, root: str
) -> Iterator[CatalogTable | CatalogFailure]:
    host = catalog_server(root)
    schemas = client.schemas(name)
    more = True
    waiting: dict[Future[_Page], tuple[Name, Iterator[list[CatalogTable]]]] = {}
    with reader_pool(SCHEMAS) as pool:
        while more or waiting:
            while more and len(waiting) < SCHEMAS:
                schema = next(schemas, None)
                if schema is None:
                    more = False
                elif isinstance(schema, CatalogFailure):
                    yield schema
                else:
                    pages = client.pages(schema)
                    with defer_signals():
                        waiting[pool.submit(next, pages, None)] = schema, pages
            for future in wait_for_first(waiting) if waiting else ():
                schema, pages = waiting.pop(future)
                try:
                    page = future.result()
                except CatalogUnavailable:
                    raise
                except TableError as error:
                    yield CatalogFailure(f"{host}/{quoted_name(schema)}", error)
                    continue
                if page is not None:
                    with defer_signals():
                        waiting[pool.submit(next, pages, None)] = schema, pages
                    for table in page:
                        place = f"{host}/{table.name}"
                        yield (
                            table
                            if table.location
                            else CatalogFailure(place, no_location_error(table.name))
                        )
