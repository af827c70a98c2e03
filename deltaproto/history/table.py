"""The history of one table, wherever its log lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deltaproto.history.read import History, read_history
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.log.commits import State
from deltaproto.tables.log.names import sort_names
from deltaproto.tables.log.ratified import is_whole
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.reach import reach


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
    location, store = reach(table, storage_options, spark)
    now = LogReader(storage_options).read_from(location, store)
    listing = sort_names(store.list())
    current = State(now.protocol, now.metadata)
    history = read_history(store, listing, current, limit=limit, since=since, seen=seen)
    history.has_newest = is_whole(store, now.protocol)
    return history
