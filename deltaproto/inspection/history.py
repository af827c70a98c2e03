"""The history of a table's protocol, read from its log, newest event first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.inspection.history_events import Event, changes_nothing, event_of
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.catalog_managed import is_whole
from deltaproto.tables.log.commits import Commit, LogState, commits, state_at
from deltaproto.tables.log.files import LogListing, sort_names
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import open_table_log
from deltaproto.tables.storage.interface import LogStore


class Idle(NamedTuple):
    """Commits of one engine and operation that stored metadata again without changing it."""

    engine: str
    operation: str
    versions: tuple[int, ...]
    """newest first"""


class ProtocolHistory:
    """What was read of a table's history. `events` come newest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.problems: list[tuple[int, TableError]] = []
        self.oldest_version_seen: int | None = None
        self.has_newest = True
        """False: a catalog manages the table, and may have newer commits"""
        self._idle: dict[tuple[str, str], list[int]] = {}

    @property
    def complete(self) -> bool:
        """True when no commit is missing of those that are left, and all could be read."""
        return self.has_newest and not self.problems

    @property
    def whole(self) -> bool:
        """True when version 0 was seen, so that nothing older exists."""
        return self.oldest_version_seen == 0

    @property
    def idle(self) -> list[Idle]:
        """Commits that changed nothing, by engine and operation, the most frequent first."""
        found = [Idle(*key, tuple(versions)) for key, versions in self._idle.items()]
        return sorted(found, key=lambda idle: -len(idle.versions))

    def add_idle(self, commit: Commit) -> None:
        key = (commit.engine or "an unnamed client", commit.operation)
        self._idle.setdefault(key, []).append(commit.version)


def read_history(
    store: LogStore,
    listing: LogListing,
    now: LogState,
    *,
    limit: int | None = None,
    since: int | None = None,
    seen: Callable[[int], None] = lambda _: None,
) -> ProtocolHistory:
    """The history of the table, as far as its commits reach.

    Args:
        now: the state of the newest version.
        limit: stop after this many events.
        since: leave out what is older than this time, in milliseconds since the epoch.
        seen: called with each version that was read, for progress.

    Raises:
        TableError: not-a-delta-table, when the log holds no commit.
    """
    if not listing.commits:
        raise TableError(
            ErrorCode.NOT_A_DELTA_TABLE,
            "_delta_log holds no commit",
            "the history begins with the commits that are still in the log",
        )
    history = ProtocolHistory()
    for commit, before, after in _transitions(store, listing, history, now, since, seen):
        if changes_nothing(commit, before, after):
            history.add_idle(commit)
            continue
        event = event_of(commit, before, after)
        if event is not None:
            history.events.append(event)
        if limit is not None and len(history.events) >= limit:
            return history
    return history


class _Pending:
    """A commit whose states before and after it are not all known yet."""

    def __init__(self, commit: Commit, after: LogState) -> None:
        self.commit = commit
        self.after = LogState(commit.protocol or after.protocol, commit.metadata or after.metadata)
        self.before = LogState(
            None if commit.protocol else after.protocol,
            None if commit.metadata else after.metadata,
        )

    def fill(self, older: LogState) -> None:
        """Take what is missing from the nearest older place that knows it."""
        self.before = _filled(self.before, older)
        self.after = _filled(self.after, older)

    @property
    def known(self) -> bool:
        return None not in self.before and None not in self.after


def _transitions(
    store: LogStore,
    listing: LogListing,
    history: ProtocolHistory,
    now: LogState,
    since: int | None,
    seen: Callable[[int], None],
) -> Iterator[tuple[Commit, LogState, LogState]]:
    """Commits that store protocol or metadata, each with the state before and after it."""
    waiting: list[_Pending] = []
    state = now
    for commit in commits(store, listing):
        seen(commit.version)
        history.oldest_version_seen = commit.version
        if commit.problem is not None:
            history.problems.append((commit.version, commit.problem))
            # Whatever it changed is unknown, so nothing known above it holds below.
            state = LogState(None, None)
        if waiting and commit.version in listing.checkpoints:
            # A checkpoint settles what is open without going back to the last change.
            state = state_at(store, listing, commit.version) or state
        commit = _shared(commit, state)
        state = _filled(LogState(commit.protocol, commit.metadata), state)
        for pending in waiting:
            pending.fill(state)
        while waiting and waiting[0].known:
            done = waiting.pop(0)
            yield done.commit, done.before, done.after
        too_old = since is not None and commit.timestamp is not None and commit.timestamp < since
        if too_old and not waiting:
            return
        if not too_old and (commit.protocol or commit.metadata):
            waiting.append(_Pending(commit, state))
        state = LogState(
            None if commit.protocol else state.protocol,
            None if commit.metadata else state.metadata,
        )
    oldest = min(listing.commits)
    base = state_at(store, listing, oldest - 1) if oldest else None
    for pending in waiting:
        if base is not None:
            pending.fill(base)
        yield pending.commit, pending.before, pending.after


def _filled(known: LogState, older: LogState) -> LogState:
    return LogState(known.protocol or older.protocol, known.metadata or older.metadata)


def _shared(commit: Commit, state: LogState) -> Commit:
    # Thousands of commits may store the same metadata again; one copy of its schema is enough.
    if commit.metadata is not None and commit.metadata == state.metadata:
        return commit._replace(metadata=state.metadata)
    return commit


def table_history(
    table: str,
    storage_options: Mapping[str, str],
    spark: SparkSettings,
    *,
    limit: int | None = None,
    since: int | None = None,
    seen: Callable[[int], None] = lambda _: None,
) -> ProtocolHistory:
    """The history of `table`; for a catalog name Spark says where its log lies.

    See `read_history` for `limit`, `since` and `seen`.

    Raises:
        TableError: when the table cannot be read.
        EngineError: when a catalog name needs Spark and there is none.
    """
    location, store = open_table_log(table, storage_options, spark)
    now = LogReader(storage_options).read_from(location, store)
    listing = sort_names(store.list())
    current = LogState(now.protocol, now.metadata)
    history = read_history(store, listing, current, limit=limit, since=since, seen=seen)
    history.has_newest = is_whole(store, now.protocol)
    return history
