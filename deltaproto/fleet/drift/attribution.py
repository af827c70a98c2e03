"""Attributes a change to the commit that made it, if the table's log still has the commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from deltaproto.errors import TableError
from deltaproto.fleet.catalog_places import unity_addresses
from deltaproto.fleet.drift.diff import (
    CausingCommit,
    ChangeKind,
    Difference,
    ScannedTable,
    protocol_differences,
)
from deltaproto.fleet.workers import with_retries
from deltaproto.location import locate
from deltaproto.protocol.isolation import ISOLATION_PROPERTY
from deltaproto.protocol.layers import enabled_features
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.writers import identify_writer
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.log.commits import Commit, commit_tag_of, read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.open import open_scanned_log
from deltaproto.tables.storage.interface import Deadline, limit_reads

_MOST_COMMITS = 1000
_SECONDS = 60.0
"""time limit for one table on an object store"""
_ATTRIBUTABLE_KINDS = frozenset(ChangeKind) - {
    ChangeKind.UNREADABLE,
    ChangeKind.READABLE,
    ChangeKind.TABLE_GONE,
    ChangeKind.TABLE_MOVED,
}
_OPPOSITE = {
    ChangeKind.FEATURE_ENABLED: ChangeKind.FEATURE_DISABLED,
    ChangeKind.FEATURE_DISABLED: ChangeKind.FEATURE_ENABLED,
}


class CommitAttributor:
    """Reads the logs of tables that changed.

    Args:
        options: storage options in deltalake's format.
        roots: of the later scan.
    """

    def __init__(self, options: Mapping[str, str], roots: Sequence[str] = ()) -> None:
        self._options, self._roots = dict(options), tuple(roots)

    def solve(self, changes: Sequence[Difference], before: ScannedTable | None) -> list[Difference]:
        """Return the changes of one table, with the commits that made them if they are found.

        A missing or unreadable log attributes nothing.
        """
        if not any(change.kind in _ATTRIBUTABLE_KINDS for change in changes):
            return list(changes)
        try:
            with contain_table_errors():
                read = self._commits(changes[0], before)
        except TableError:
            return list(changes)
        return _attribute_commits(changes, read, before)

    def _commits(self, change: Difference, before: ScannedTable | None) -> list[Commit]:
        newest = change.version_after
        oldest = 0 if before is None or before.version is None else before.version + 1
        if newest is None or newest < oldest:
            # The table was recreated since: every commit in the log is newer.
            oldest = 0
        location = locate(change.location)
        address = unity_addresses(self._roots)(change.table)
        deadline = Deadline(_SECONDS)

        def read(_: int) -> list[Commit]:
            opened = open_scanned_log(location, address, self._options)
            store = limit_reads(opened.store, deadline)
            listing = build_listing(store.list())
            upto = {v: n for v, n in listing.commits.items() if newest is None or v <= newest}
            listing.commits = {v: name for v, name in upto.items() if v >= oldest}
            if before is None:
                listing.commits = {v: name for v, name in upto.items() if v == 0}
            return list(islice(read_commits(store, listing), _MOST_COMMITS))

        return with_retries(read, deadline)


def _attribute_commits(
    changes: Sequence[Difference], read: Iterable[Commit], before: ScannedTable | None
) -> list[Difference]:
    made: dict[tuple[ChangeKind, str | None], CausingCommit] = {}
    state = _TableHistoryState(before)
    expected = 0 if before is None or before.version is None else before.version + 1
    for commit in reversed(list(read)):
        if commit.version != expected or commit.problem is not None:
            # A change by a missing commit must not be attributed to the next one.
            state = _TableHistoryState(None) if before is not None else state
        expected = commit.version + 1
        for kind, name in state.after(commit):
            made[kind, name] = causing_commit(commit)
            if kind in _OPPOSITE:
                made.pop((_OPPOSITE[kind], name), None)
        if before is None and commit.version == 0:
            made[ChangeKind.TABLE_NEW, None] = causing_commit(commit)
    return [change._replace(culprit=made.get(_key(change))) for change in changes]


def _key(change: Difference) -> tuple[ChangeKind, str | None]:
    implied = change.kind is ChangeKind.FEATURE_IMPLIED
    return ChangeKind.FEATURE_APPEARED if implied else change.kind, change.feature


class _TableHistoryState:
    """Known state of the table while its commits are read, oldest first."""

    def __init__(self, seen: ScannedTable | None) -> None:
        self._protocol = seen and seen.protocol
        self._id = seen and seen.id
        self._isolation: tuple[str | None] | None = None if seen is None else (seen.isolation,)
        self._metadata: Metadata | None = None
        used = () if seen is None else seen.usage
        self._enabled = frozenset(each[1:] for each in used if not each.startswith(("-", "~")))

    def after(self, commit: Commit) -> Iterator[tuple[ChangeKind, str | None]]:
        """Yield the kinds of change that the commit made."""
        new, metadata = commit.protocol, commit.metadata
        if new is not None:
            if self._protocol is not None:
                yield from protocol_differences(self._protocol, new)
            self._protocol = new
        if metadata is not None:
            isolation = (metadata.property(ISOLATION_PROPERTY),)
            if self._isolation is not None and isolation != self._isolation:
                yield ChangeKind.ISOLATION_CHANGED, None
            if self._id is not None and metadata.id != self._id:
                yield ChangeKind.TABLE_REPLACED, None
            self._isolation, self._id, self._metadata = isolation, metadata.id, metadata
        if self._protocol is not None and self._metadata is not None:
            enabled = enabled_features(self._protocol, self._metadata)
            for kind, names in (
                (ChangeKind.FEATURE_ENABLED, enabled - self._enabled),
                (ChangeKind.FEATURE_DISABLED, self._enabled - enabled),
            ):
                yield from ((kind, name) for name in sorted(names))
            self._enabled = enabled


def causing_commit(commit: Commit) -> CausingCommit:
    """Describe a commit."""
    job, mark = identify_writer(commit.info).principal.job, commit_tag_of(commit)
    return CausingCommit(
        commit.version,
        commit.timestamp,
        commit.operation,
        commit.engine,
        commit.user,
        job,
        None if mark is None else mark.plan,
    )
