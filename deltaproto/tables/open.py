"""Opens the log of a table given by path, URI, catalog name or name with its catalog's URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import Location, LocationKind, catalog_server, locate
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import address_in_statements
from deltaproto.tables.log.catalog_managed import RatifiedLog
from deltaproto.tables.spark_connect import is_local
from deltaproto.tables.storage import LogStore, open_log

if TYPE_CHECKING:
    from deltaproto.tables.catalogs.interface import CatalogTable

_SILENT: set[str] = set()
"""catalogs that did not answer this process: each request to one may take minutes"""


class OpenedLog(NamedTuple):
    """The location of a table's log, and a store for reading it."""

    location: Location
    store: LogStore


class ResolvedName(NamedTuple):
    """The location of a table according to its catalog, and how to read it."""

    location: str
    """path or URI"""
    spark: str
    """the table's address in Spark: its name or its location"""
    storage_options: dict[str, str]
    """the user's options, completed by the catalog's"""
    entry: CatalogTable
    """the table as the catalog describes it"""
    commits: Callable[[], Mapping[int, int]] | None = None
    """returns the newest versions with their in-commit timestamps, if the catalog manages them"""

    def open_log(self, text: str) -> OpenedLog:
        """Open the table's log; `text` is the table as it was named.

        Raises:
            TableError: when the location is not one that can be read.
        """
        location = locate(self.location)._replace(text=text)
        store: LogStore = open_log(location, self.storage_options, read_ahead=True)
        if self.commits is not None:
            store = RatifiedLog(store, self.commits)
        return OpenedLog(location, store)


def resolve_name(location: Location, storage_options: Mapping[str, str]) -> ResolvedName:
    """Resolve a name that is given with the URL of its catalog.

    Raises:
        TableError: when the catalog does not answer, or has no such Delta table.
        EngineError: when the client's library is not installed.
    """
    from deltaproto.tables.catalogs.interface import commits_of, name_parts
    from deltaproto.tables.catalogs.opening import open_catalog

    client = open_catalog(location, storage_options)
    name = name_parts(location, client.depth)
    if len(name) < client.depth:
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{location.text} is a catalog or a schema, not a table",
            "`deltaproto scan` reads all tables in it; add the name of one",
        )
    found = client.table(name)
    return ResolvedName(
        found.location,
        address_in_statements(location.uri, found.location).text,
        {**client.storage_options(found), **storage_options},
        found,
        commits_of(client, found),
    )


def open_scanned_log(
    location: Location, address: str | None, storage_options: Mapping[str, str]
) -> OpenedLog:
    """Open the log of a table from a scan, through its catalog if that answers.

    Args:
        address: its name with its catalog's URL; None: only its location is used.

    Raises:
        TableError: when the location is not one that can be read.
    """
    if address is not None and catalog_server(address) not in _SILENT:
        from deltaproto.tables.catalogs.interface import CatalogUnavailable

        try:
            return resolve_name(locate(address), storage_options).open_log(location.text)
        except CatalogUnavailable as error:
            if error.code is ErrorCode.STORAGE:
                _SILENT.add(catalog_server(address))
        except TableError:
            pass
    return OpenedLog(location, open_log(location, storage_options, read_ahead=True))


def open_table_log(
    table: str, storage_options: Mapping[str, str], spark: SparkSettings
) -> OpenedLog:
    """Open a table's log. Resolves a name with its catalog, or with Spark if it has no catalog URL.

    After Spark resolved a name, the log is read through Spark if necessary.

    A path from a remote Spark is on the remote machine, even if the path also exists here. The
    log of a catalog-managed table, opened by name, includes ratified staged commits.

    Raises:
        TableError: when the table or its log cannot be found or listed.
        EngineError: when a catalog name needs Spark, or a library, and it is not available.
    """
    location = locate(table)
    if location.kind is LocationKind.CATALOG:
        return resolve_name(location, storage_options).open_log(table)
    if location.kind is not LocationKind.NAME:
        return OpenedLog(location, open_log(location, storage_options, read_ahead=True))
    from deltaproto.tables.session import spark_session
    from deltaproto.tables.spark import SparkReader
    from deltaproto.tables.storage.through_spark import SparkLogStore

    reader = SparkReader(spark)
    state = reader.read(table)
    location = locate(state.location)._replace(text=table)
    through = SparkLogStore(spark_session(spark), location.uri)
    store = _reachable_store(location, through, storage_options, spark)
    if CATALOG_MANAGED & state.protocol.supported:
        return OpenedLog(location, RatifiedLog(store, lambda: reader.ratified(table)))
    return OpenedLog(location, store)


def _reachable_store(
    location: Location, through: LogStore, storage_options: Mapping[str, str], spark: SparkSettings
) -> LogStore:
    if location.local and not is_local(spark.remote):
        return through
    try:
        store = open_log(location, storage_options, read_ahead=True)
        store.list()
        return store
    except TableError as here:
        try:
            through.list()
        except TableError:
            raise here from None
        return through
