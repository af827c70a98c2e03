"""Opens the log of a table given by path, URI or catalog name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.errors import TableError
from deltaproto.location import Location, LocationKind, locate
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.catalog_managed import RatifiedLog
from deltaproto.tables.spark_connect import is_local
from deltaproto.tables.storage import LogStore, open_log


class OpenedLog(NamedTuple):
    """The location of a table's log, and a store for reading it."""

    location: Location
    store: LogStore


def open_table_log(
    table: str, storage_options: Mapping[str, str], spark: SparkSettings
) -> OpenedLog:
    """Open a table's log. Resolves a catalog name with Spark, and reads through Spark if necessary.

    A path that a remote Spark returns is on its machine, whatever is at that path here. The
    log of a catalog-managed table, opened by name, includes ratified staged commits.

    Raises:
        TableError: when the table or its log cannot be found or listed.
        EngineError: when a catalog name needs Spark and it is not available.
    """
    location = locate(table)
    if location.kind is not LocationKind.NAME:
        return OpenedLog(location, open_log(location, storage_options))
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
        store = open_log(location, storage_options)
        store.list()
        return store
    except TableError as here:
        try:
            through.list()
        except TableError:
            raise here from None
        return through
