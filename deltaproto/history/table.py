"""The history of one table, wherever its log lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deltaproto.history.read import History, read_history
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.location import Kind, locate
from deltaproto.tables.log.commits import State
from deltaproto.tables.log.names import sort_names
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import open_log


def table_history(
    table: str,
    storage_options: Mapping[str, str],
    spark: SparkSettings,
    *,
    limit: int | None = None,
    since: int | None = None,
    seen: Callable[[int], None] = lambda _: None,
) -> History:
    """The history of `table`; for a catalog name Spark says where its log lies.

    See `read_history` for `limit`, `since` and `seen`.

    Raises:
        TableError: when the table cannot be read.
        EngineError: when a catalog name needs Spark and there is none.
    """
    location = locate(table)
    if location.kind is Kind.NAME:
        from deltaproto.tables.spark import SparkReader

        location = locate(SparkReader(spark).read(table).location)
    now = LogReader(storage_options).read(location.path or location.uri)
    store = open_log(location, storage_options)
    listing = sort_names(store.list())
    current = State(now.protocol, now.metadata)
    return read_history(store, listing, current, limit=limit, since=since, seen=seen)
