"""Tables of catalogs that a scan reaches without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from deltaproto.counts import counted
from deltaproto.errors import TableError, no_tables_error
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import DiscoveredTable, SkippedPlaces, UnreadablePlace
from deltaproto.location import Location, catalog_server
from deltaproto.sql.quoting import parse_name
from deltaproto.tables.catalogs.interface import (
    CatalogClient,
    CatalogFailure,
    Tally,
    commits_of,
)
from deltaproto.tables.catalogs.listing import list_tables
from deltaproto.tables.catalogs.opening import open_catalog


def tables_in(
    root: Location, options: Mapping[str, str], passed: SkippedPlaces, entries: CatalogEntries
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Yield every Delta table at or below a catalog's address, lazily.

    `passed` receives lines about what was skipped, and how often the catalog limited the rate;
    `entries` the catalog's client. An address without Delta tables, and every part that cannot be
    listed, is an unreadable place.
    """
    address = root.uri.rstrip("/")
    try:
        client = open_catalog(root, options)
    except TableError as error:
        yield UnreadablePlace(address, error)
        return
    passed.add_lines(lambda: _notes(address, client))
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
        yield UnreadablePlace(address, no_tables_error(address))


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
