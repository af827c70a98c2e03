"""Lists the Delta tables of a catalog, several schemas at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from deltaproto.errors import TableError
from deltaproto.location import Location, catalog_server
from deltaproto.tables.catalogs.interface import (
    CatalogClient,
    CatalogFailure,
    CatalogTable,
    CatalogUnavailable,
    Name,
    name_parts,
    no_location_error,
    quoted_name,
)

SCHEMAS = 8
"""schemas listed at the same time; each is one page ahead of the reader"""
_Page = list[CatalogTable] | None


def list_tables(
    client: CatalogClient, location: Location, parallel: int = SCHEMAS
) -> Iterator[CatalogTable | CatalogFailure]:
    """Yield every Delta table at or below an address. At most `parallel` pages are in memory.

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
            yield from _list_below(client, name, root, parallel)
    except TableError as error:
        yield CatalogFailure(root, error)


def _list_below(
    client: CatalogClient, name: Name, root: str, parallel: int
) -> Iterator[CatalogTable | CatalogFailure]:
    host = catalog_server(root)
    schemas = client.schemas(name)
    more = True
    pool = ThreadPoolExecutor(parallel)
    waiting: dict[Future[_Page], tuple[Name, Iterator[list[CatalogTable]]]] = {}
    try:
        while more or waiting:
            while more and len(waiting) < parallel:
                schema = next(schemas, None)
                if schema is None:
                    more = False
                elif isinstance(schema, CatalogFailure):
                    yield schema
                else:
                    pages = client.pages(schema)
                    waiting[pool.submit(next, pages, None)] = schema, pages
            done, _ = wait(waiting, return_when=FIRST_COMPLETED) if waiting else ((), ())
            for future in done:
                schema, pages = waiting.pop(future)
                try:
                    page = future.result()
                except CatalogUnavailable:
                    raise
                except TableError as error:
                    yield CatalogFailure(f"{host}/{quoted_name(schema)}", error)
                    continue
                if page is not None:
                    waiting[pool.submit(next, pages, None)] = schema, pages
                    for table in page:
                        place = f"{host}/{table.name}"
                        yield (
                            table
                            if table.location
                            else CatalogFailure(place, no_location_error(table.name))
                        )
    finally:
        pool.shutdown(cancel_futures=True)
