"""Find commits near a given time that could have raised a conflict's exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.conflicts.operation import ExceptionName
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.catalog_managed import has_every_commit
from deltaproto.tables.log.commits import Commit, read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import open_table_log

WINDOW = 10 * 60 * 1000
_SKEW = 60 * 60 * 1000  # tolerance for clock differences between writers
# Commits that also change metadata, such as a replaced table, raise MetadataChangedException first.
_REMOVING = frozenset({"DELETE", "UPDATE", "MERGE", "TRUNCATE", "OPTIMIZE", "REORG", "RESTORE"})
_ADDING = (_REMOVING - {"TRUNCATE"}) | {"WRITE", "STREAMING UPDATE", "COPY INTO"}


class Suspect(NamedTuple):
    """A commit that could have raised the exception."""

    version: int
    timestamp: int
    """milliseconds since the epoch, as recorded by the writer"""
    operation: str
    engine: str | None
    user: str | None


class Suspects(NamedTuple):
    """The suspects, newest first, and whether every commit was readable."""

    found: tuple[Suspect, ...]
    complete: bool


def find_suspects(
    table: str,
    storage_options: Mapping[str, str],
    spark: SparkSettings,
    name: ExceptionName,
    at: int,
) -> Suspects:
    """Return the commits in the table's log that could have raised `name` near `at`.

    Raises:
        TableError: if the log cannot be listed.
        EngineError: if a catalog name requires Spark and Spark is unavailable.
    """
    location, store = open_table_log(table, storage_options, spark)
    protocol = LogReader(storage_options).read_from(location, store).protocol
    found = filter_suspects(read_commits(store, build_listing(store.list())), name, at)
    return found._replace(complete=found.complete and has_every_commit(store, protocol))


def filter_suspects(newest_first: Iterable[Commit], name: ExceptionName, at: int) -> Suspects:
    """Return commits that could have raised `name` within ten minutes of `at`."""
    found, complete = [], True
    for commit in _newer_than(newest_first, at - WINDOW - _SKEW):
        if commit.problem is not None:
            complete = False
            continue
        time = commit.timestamp
        if time is None or abs(time - at) > WINDOW or not _can_raise(commit, name):
            continue
        found.append(Suspect(commit.version, time, commit.operation, commit.engine, commit.user))
    return Suspects(tuple(found), complete)


def _newer_than(newest_first: Iterable[Commit], oldest: int) -> Iterator[Commit]:
    for commit in newest_first:
        if commit.timestamp is not None and commit.timestamp < oldest:
            return
        yield commit


def _can_raise(commit: Commit, name: ExceptionName) -> bool:
    operation = str(commit.info.get("operation") or "").upper()
    match name:
        case ExceptionName.METADATA:
            return commit.metadata is not None
        case ExceptionName.PROTOCOL:
            return commit.protocol is not None
        case ExceptionName.TRANSACTION:
            return bool(commit.transactions)
        case ExceptionName.APPEND:
            return operation in _ADDING
        case ExceptionName.DELETE_READ | ExceptionName.DELETE_DELETE:
            return operation in _REMOVING or (operation == "WRITE" and _overwrites(commit))
        case ExceptionName.WRITE:
            return True


def _overwrites(commit: Commit) -> bool:
    parameters = commit.info.get("operationParameters")
    return isinstance(parameters, dict) and str(parameters.get("mode")).casefold() == "overwrite"
