"""The recent part of a log, for its activity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.activity.summary import Activity, summarise
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.log.commits import Commit, commits
from deltaproto.tables.log.names import Listing, sort_names
from deltaproto.tables.reach import reach
from deltaproto.tables.storage import LogStore

MOST_COMMITS = 1000
DAYS = 14
_DAY = 24 * 3_600_000


def read_activity(table: str, storage_options: Mapping[str, str], spark: SparkSettings) -> Activity:
    """As `recent_activity`, of the table that `table` names.

    Raises:
        TableError: when the log cannot be listed.
        EngineError: when a catalog name needs Spark and there is none.
    """
    return recent_activity(reach(table, storage_options, spark).store)


def recent_activity(store: LogStore) -> Activity:
    """The activity of the last 14 days before the newest commit, of 1000 commits at the most.

    Raises:
        TableError: when the log cannot be listed.
    """
    return summarise(_recent(store, sort_names(store.list())))


def _recent(store: LogStore, listing: Listing) -> Iterator[Commit]:
    newest: int | None = None
    for count, commit in enumerate(commits(store, listing)):
        if count >= MOST_COMMITS:
            return
        if commit.timestamp is not None:
            newest = commit.timestamp if newest is None else max(newest, commit.timestamp)
            if commit.timestamp < newest - DAYS * _DAY:
                return
        yield commit
