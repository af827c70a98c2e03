"""The data files of one version: how many a change would rewrite, and the age of column types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.checkpoint import CheckpointFiles, StoredFile, file_from_add, file_key
from deltaproto.tables.log.checkpoint_layout import has_every_statistics
from deltaproto.tables.log.commits import read_commits, state_from_checkpoint
from deltaproto.tables.log.files import Checkpoint, LogListing, corrupt_error, read_actions
from deltaproto.tables.log.layout_evidence import is_absolute
from deltaproto.tables.log.snapshot import oldest_version
from deltaproto.tables.storage.interface import LogStore


class LiveFile(NamedTuple):
    """One live file."""

    size: int
    """bytes, from the log"""
    vector: bool
    """whether it has a deletion vector"""
    row_ids: bool
    """whether it has a base row id"""
    since: int
    """the version that first added its path, as far back as the replay goes; for files of the
    checkpoint, the version of the checkpoint"""
    absolute: bool = False
    """whether its path is absolute"""
    counted: bool | None = None
    """whether its statistics have the number of rows; None: not known, for files of a checkpoint"""


class LiveFiles:
    """Live data files, by path and deletion vector (PROTOCOL.md, "Action Reconciliation").

    `operations` has the operation name of each replayed commit that records one.
    """

    def __init__(self, base: Checkpoint | None = None) -> None:
        self.files: dict[str, LiveFile] = {}
        self.base = base
        self.v2 = False
        """whether `base` is a V2 checkpoint"""
        self.change_files = False
        self.operations: dict[int, str] = {}
        self._removed: dict[str, int] = {}
        self._added: dict[str, str] = {}

    def apply(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Replay one commit."""
        self._removed.clear()
        self._added.clear()
        for action in actions:
            self.change_files |= "cdc" in action
            if isinstance(info := action.get("commitInfo"), dict) and info.get("operation"):
                self.operations[version] = str(info["operation"])
            if isinstance(remove := action.get("remove"), dict):
                self._remove(file_key(remove), str(remove.get("path")))
            if isinstance(add := action.get("add"), dict):
                self._add(file_from_add(add), version)

    # A commit that changes a file's deletion vector or row ids adds its path again. The file itself
    # keeps its age, whichever of the two actions comes first.
    def _add(self, file: StoredFile, version: int) -> None:
        known = self.files.get(file.key)
        since = self._removed.get(file.path, version if known is None else known.since)
        self.files[file.key] = LiveFile(
            file.size,
            file.vector,
            file.row_ids,
            since,
            is_absolute(file.path),
            file.counted,
        )
        self._added[file.path] = file.key

    def _remove(self, key: str, path: str) -> None:
        removed = self.files.pop(key, None)
        if removed is None:
            return
        self._removed[path] = removed.since
        again = self._added.get(path)
        if again is not None and again in self.files:
            self.files[again] = self.files[again]._replace(since=removed.since)


def read_live_files(
    store: LogStore, listing: LogListing, version: int, not_above: int | None = None
) -> LiveFiles:
    """Replay the files that are live at `version`.

    Args:
        not_above: start from a checkpoint at or below this version, or from version 0.

    Raises:
        TableError: corrupt-log, when neither a checkpoint nor all commits can be read.
    """
    live = _from_checkpoint(store, listing, version if not_above is None else not_above)
    base = -1 if live.base is None else live.base.version
    missing = listing.missing(base, version)
    if missing is not None:
        raise corrupt_error(f"{missing:020d}.json", None, "missing, and no checkpoint covers it")
    for commit in range(base + 1, version + 1):
        name = listing.commits[commit]
        with store.open(name) as file:
            live.apply(commit, read_actions(name, file, files=True))
    return live


class LiveStatistics:
    """Iterates over the statistics of live files, as JSON. Files without statistics are omitted.

    Args:
        live: the files that are live at `version`.

    Raises:
        TableError: corrupt-log, while iterating, when a file of the log cannot be read.
    """

    def __init__(self, store: LogStore, listing: LogListing, version: int, live: LiveFiles) -> None:
        self._store, self._listing, self._version, self._live = store, listing, version, live
        self.complete = True
        """False if a file may have statistics in another form; known after iterating"""

    def __iter__(self) -> Iterator[str]:
        left = set(self._live.files)
        for file in self._newest_first():
            if file.key in left:
                left.remove(file.key)
                if file.statistics is not None:
                    yield file.statistics

    def _newest_first(self) -> Iterator[StoredFile]:
        base = self._live.base
        for version in range(self._version, -1 if base is None else base.version, -1):
            name = self._listing.commits[version]
            with self._store.open(name) as file:
                for action in read_actions(name, file, files=True, holding=b'"add"'):
                    if isinstance(add := action.get("add"), dict):
                        yield file_from_add(add)
        if base is not None:
            stored = CheckpointFiles(self._store, base, statistics=True)
            yield from stored
            self.complete = not stored.statistics_without_json


def has_uncounted_files(store: LogStore, live: LiveFiles) -> bool:
    """Return True if a live file has neither row ids nor a number of rows in its statistics.

    The statistics in a checkpoint are read only if its footers show fewer of them than files.

    Raises:
        TableError: corrupt-log, when the checkpoint cannot be read.
    """
    without_ids = {key: file for key, file in live.files.items() if not file.row_ids}
    if any(file.counted is False for file in without_ids.values()):
        return True
    left = {key for key, file in without_ids.items() if file.counted is None}
    if live.base is None or not left or has_every_statistics(store, live.base):
        return False
    stored = CheckpointFiles(store, live.base, statistics=True)
    return any(file.key in left and not file.counted for file in stored)


def _from_checkpoint(store: LogStore, listing: LogListing, version: int) -> LiveFiles:
    for checkpoint in listing.checkpoints_up_to(version):
        live = LiveFiles(checkpoint)
        stored = CheckpointFiles(store, checkpoint)
        try:
            for file in stored:
                live.files[file.key] = LiveFile(
                    file.size,
                    file.vector,
                    file.row_ids,
                    checkpoint.version,
                    is_absolute(file.path),
                )
        except TableError as error:
            if error.code is not ErrorCode.CORRUPT_LOG:
                raise
            continue
        live.v2 = stored.v2
        return live
    return LiveFiles()


# Operations that write every file they add, by the names in Delta Spark and delta-rs. RESTORE,
# CLONE and CONVERT add files that were written earlier.
_WRITES = frozenset(
    {
        "WRITE",
        "STREAMING UPDATE",
        "COPY INTO",
        "CREATE TABLE AS SELECT",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
        "DELETE",
        "UPDATE",
        "MERGE",
        "OPTIMIZE",
        "REORG",
    }
)


class FileCensus(NamedTuple):
    """The live data files of one version."""

    files: int
    bytes: int
    """total size as recorded in the log"""
    files_with_vectors: int
    bytes_with_vectors: int
    """size of these data files, without the deletion vectors themselves"""
    files_with_row_ids: int
    files_before_type_change: int
    """files that may have the type from before a column was widened, because the log does not show
    that they were written after the last change; 0 if the schema records no change
    """
    bytes_before_type_change: int
    absolute_without_vectors: int
    """files with an absolute path and no deletion vector"""


def take_census(
    store: LogStore, listing: LogListing, version: int, metadata: Metadata
) -> FileCensus:
    """Count the files that are live at `version`, whose metadata is `metadata`.

    Memory grows with the number of live files, by a few hundred bytes per file.

    Raises:
        TableError: corrupt-log, when the log cannot rebuild the version.
    """
    changed = last_type_change(store, listing, version, metadata)
    live = _live_files_since(store, listing, version, changed)
    files = live.files.values()
    vectors = [file.size for file in files if file.vector]
    before = (
        []
        if changed is None
        else [f.size for f in files if _is_older_than_change(f, live, changed)]
    )
    return FileCensus(
        files=len(files),
        bytes=sum(file.size for file in files),
        files_with_vectors=len(vectors),
        bytes_with_vectors=sum(vectors),
        files_with_row_ids=sum(file.row_ids for file in files),
        files_before_type_change=len(before),
        bytes_before_type_change=sum(before),
        absolute_without_vectors=sum(file.absolute and not file.vector for file in files),
    )


def _live_files_since(
    store: LogStore, listing: LogListing, version: int, changed: int | None
) -> LiveFiles:
    if changed is not None:
        try:
            start = max(changed, oldest_version(listing, version))
            return read_live_files(store, listing, version, start)
        except TableError as error:
            if error.code is not ErrorCode.CORRUPT_LOG:
                raise
            # The damage may be older than a newer checkpoint, whose files then count as old.
    return read_live_files(store, listing, version)


def _is_older_than_change(file: LiveFile, live: LiveFiles, changed: int) -> bool:
    if live.base is not None and file.since <= live.base.version:
        return True
    return file.since <= changed or live.operations.get(file.since) not in _WRITES


_KEY = "delta.typeChanges"


def last_type_change(
    store: LogStore, listing: LogListing, version: int, metadata: Metadata
) -> int | None:
    """Return the newest version that may have recorded one of the type changes in `metadata`.

    Files written by later commits have the current types. Returns None if `metadata`, the metadata
    of `version`, records no type change. If the log is inconclusive, the result may be too new, but
    never too old.
    """
    recorded = _recorded_type_changes(metadata)
    if not recorded:
        return None
    # The oldest metaData action found so far that starts an unbroken record of changes.
    complete = None
    expected = version
    for commit in read_commits(store, listing):
        if commit.version > version:
            continue
        if commit.version != expected or commit.problem is not None:
            break
        expected -= 1
        if commit.metadata is not None:
            if not recorded <= _recorded_type_changes(commit.metadata):
                return version if complete is None else complete
            complete = commit.version
    if complete is None:
        return max(expected, 0)
    if _is_in_checkpoint(store, listing, recorded, range(max(expected, 0), complete)):
        return max(expected, 0)
    return complete


def _is_in_checkpoint(
    store: LogStore, listing: LogListing, recorded: frozenset[str], versions: range
) -> bool:
    """Return True if a checkpoint at one of these equivalent versions has every change."""
    for version in versions:
        state = state_from_checkpoint(store, listing, version)
        if state is not None and state.metadata is not None:
            return recorded <= _recorded_type_changes(state.metadata)
    return False


def _recorded_type_changes(metadata: Metadata) -> frozenset[str]:
    return frozenset(_of_struct(metadata.schema or {}, ""))


def _of_struct(struct: Any, path: str) -> Iterator[str]:
    if not isinstance(struct, Mapping):
        return
    for field in struct.get("fields") or ():
        if not isinstance(field, Mapping):
            continue
        name = f"{path}.{field.get('name')}"
        found = field.get("metadata")
        if isinstance(found, Mapping) and _KEY in found:
            changes = found[_KEY] if isinstance(found[_KEY], list) else [found[_KEY]]
            yield from (f"{name} {json.dumps(change, sort_keys=True)}" for change in changes)
        yield from _of_struct(field.get("type"), name)
    for key in ("elementType", "keyType", "valueType"):
        yield from _of_struct(struct.get(key), f"{path}.{key}")
