"""The history of a table's protocol, read from its log, newest event first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.inspection.history_events import Event, changes_nothing, event_of
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.catalog_managed import has_every_commit
from deltaproto.tables.log.commits import Commit, LogState, read_commits, state_from_checkpoint
from deltaproto.tables.log.files import LogListing, build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import open_table_log
from deltaproto.tables.storage.interface import LogStore


class RepeatedMetadata(NamedTuple):
    """Commits of one engine and operation that stored unchanged metadata again."""

    engine: str
    operation: str
    versions: tuple[int, ...]
    """newest first"""


class ProtocolHistory:
    """The part of a table's history that was read. `events` are newest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.problems: list[tuple[int, TableError]] = []
        self.oldest_version_seen: int | None = None
        self.stopped = False
        """True if a limit or a time ended it: the log may have older commits"""
        self.has_newest = True
        """False: a catalog manages the table, and may have newer commits"""
        self._idle: dict[tuple[str, str], list[int]] = {}

    @property
    def complete(self) -> bool:
        """True if none of the remaining commits is missing, and all could be read."""
        return self.has_newest and not self.problems

    @property
    def whole(self) -> bool:
        """True if version 0 was read, so nothing older exists."""
        return self.oldest_version_seen == 0

    @property
    def idle(self) -> list[RepeatedMetadata]:
        """Commits that changed nothing, by engine and operation, most frequent first."""
        found = [RepeatedMetadata(*key, tuple(versions)) for key, versions in self._idle.items()]
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
    """Read the history of the table, as far back as its commits reach without a gap.

    Args:
        now: the state of the newest version.
        limit: stop after this many events.
        since: skip events before this time, in milliseconds since the epoch.
        seen: called with each version read, for progress.

    Raises:
        TableError: not-a-delta-table, when the log holds no commit.
    """
    if not listing.commits:
        raise TableError(
            ErrorCode.NOT_A_DELTA_TABLE,
            "_delta_log has no commit",
            "the history starts with the oldest commit that is still in the log",
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
            history.stopped = True
            return history
    return history


class _PendingCommit:
    """A commit whose previous and next states are not completely known yet."""

    def __init__(self, commit: Commit, after: LogState) -> None:
        self.commit = commit
        self.after = LogState(commit.protocol or after.protocol, commit.metadata or after.metadata)
        self.before = LogState(
            None if commit.protocol else after.protocol,
            None if commit.metadata else after.metadata,
        )

    def fill(self, older: LogState) -> None:
        """Fill in missing values from the nearest older state that has them."""
        self.before = _fill_missing(self.before, older)
        self.after = _fill_missing(self.after, older)

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
    """Yield commits that store protocol or metadata, each with the previous and next state."""
    waiting: list[_PendingCommit] = []
    # The commit of the newest version may be missing, and its changes with it.
    state = now if listing.newest in listing.commits else LogState(None, None)
    for commit in read_commits(store, listing):
        if history.oldest_version_seen not in (None, commit.version + 1):
            break
        seen(commit.version)
        history.oldest_version_seen = commit.version
        if commit.problem is not None:
            history.problems.append((commit.version, commit.problem))
            # Its changes are unknown, so newer states must not be assumed before it.
            state = LogState(None, None)
        if waiting and commit.version in listing.checkpoints:
            # A checkpoint resolves unknown states without reading back to the last change.
            state = state_from_checkpoint(store, listing, commit.version) or state
        commit = _share_metadata(commit, state)
        state = _fill_missing(LogState(commit.protocol, commit.metadata), state)
        for pending in waiting:
            pending.fill(state)
        while waiting and waiting[0].known:
            done = waiting.pop(0)
            yield done.commit, done.before, done.after
        too_old = since is not None and commit.timestamp is not None and commit.timestamp < since
        if too_old and not waiting:
            history.stopped = True
            return
        if not too_old and (commit.protocol or commit.metadata):
            waiting.append(_PendingCommit(commit, state))
        state = LogState(
            None if commit.protocol else state.protocol,
            None if commit.metadata else state.metadata,
        )
    oldest = history.oldest_version_seen
    base = state_from_checkpoint(store, listing, oldest - 1) if oldest else None
    for pending in waiting:
        if base is not None:
            pending.fill(base)
        yield pending.commit, pending.before, pending.after


def _fill_missing(known: LogState, older: LogState) -> LogState:
    return LogState(known.protocol or older.protocol, known.metadata or older.metadata)


def _share_metadata(commit: Commit, state: LogState) -> Commit:
    # Thousands of commits may store the same metadata again; keep one copy of its schema.
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
    """Read the history of `table`; a catalog name is resolved with Spark.

    See `read_history` for `limit`, `since` and `seen`.

    Raises:
        TableError: when the table cannot be read.
        EngineError: when a catalog name needs Spark and it is not available.
    """
    location, store = open_table_log(table, storage_options, spark)
    now = LogReader(storage_options).read_from(location, store)
    listing = build_listing(store.list())
    current = LogState(now.protocol, now.metadata)
    history = read_history(store, listing, current, limit=limit, since=since, seen=seen)
    history.has_newest = has_every_commit(store, now.protocol)
    return history
