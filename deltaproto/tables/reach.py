"""The log of whatever the user named, a catalog's table included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.errors import TableError
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.location import Kind, Location, locate
from deltaproto.tables.remote import is_local
from deltaproto.tables.storage import LogStore, open_log


class Reached(NamedTuple):
    """Where a table's log lies, and how to read it."""

    location: Location
    store: LogStore


def reach(table: str, storage_options: Mapping[str, str], spark: SparkSettings) -> Reached:
    """The table's log: for a catalog name where Spark says, and through Spark if need be.

    A path that a remote Spark names is on its machine, whatever lies there on this one.

    Raises:
        TableError: when the table or its log cannot be found or listed.
        EngineError: when a catalog name needs Spark and there is none.
    """
    location = locate(table)
    if location.kind is not Kind.NAME:
        return Reached(location, open_log(location, storage_options))
    from deltaproto.tables.session import spark_session
    from deltaproto.tables.spark import SparkReader
    from deltaproto.tables.storage.through_spark import SparkLogStore

    location = locate(SparkReader(spark).read(table).location)._replace(text=table)
    through = SparkLogStore(spark_session(spark), location.uri)
    if location.local and not is_local(spark.remote):
        return Reached(location, through)
    try:
        store = open_log(location, storage_options)
        store.list()
        return Reached(location, store)
    except TableError as here:
        try:
            through.list()
        except TableError:
            raise here from None
        return Reached(location, through)
