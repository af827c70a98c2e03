"""The log files that Delta deletes together when they expire, or in a truncation.

Source: Delta Spark 4.4's `MetadataCleanup` and `BufferingLogDeletionIterator`. A cleanup reads
the log in the order of the names. It deletes the files before a checkpoint when the last of them
has expired, and stops at the first file that has not expired, except for the very first. The file's
modification time decides; in-commit timestamps are ignored. A file that is not newer than a file of
an older version counts as a millisecond newer than that file, and the cleanup cannot stop at such a
checkpoint.

A commit of a catalog-managed table is written again when it is published, at the latest before the
next checkpoint (`ensureCommitFilesBackfilled`), so an unpublished one cannot expire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.tables.log.files import LogListing
from deltaproto.tables.log.snapshot import oldest_version
from deltaproto.tables.storage.interface import FolderEntry

_NAME = re.compile(
    r"(\d+)\.(json|crc|checkpoint(?:(\.\d+\.(\d+))?\.parquet|\.[^.]+\.(?:json|parquet)))"
)
_MINUTE_MS = 60_000


def full_minute(modified_ms: int) -> int:
    """Return the time from which a truncation of history counts a file's retention.

    Delta rounds the cutoff down to a full minute.
    """
    return -(-modified_ms // _MINUTE_MS) * _MINUTE_MS


class LogFile(NamedTuple):
    """A file in the log, identified by its version."""

    version: int
    modified_ms: int
    """modification time as Delta counts it, in milliseconds since the epoch"""

    def removable_ms(self, retention_ms: int) -> int:
        """Return when the file expires for a truncation with this retention."""
        return full_minute(self.modified_ms) + retention_ms


class DeletionGroup(NamedTuple):
    """Log files that are deleted together."""

    last: LogFile
    """the file whose age decides"""
    checkpoint: int | None
    """the version of the checkpoint after the run; None: only a future checkpoint can end it"""


class LogAging(NamedTuple):
    """The log's files as a cleanup sees them."""

    runs: tuple[DeletionGroup, ...]
    """oldest first; the last one is not followed by a checkpoint"""
    oldest: int
    """the start of the range of versions that the log can rebuild"""
    commits: Mapping[int, int]
    """when the file of each commit was last written"""
    unpublished: bool = False
    """the newest commits are only staged"""

    @property
    def newest(self) -> LogFile | None:
        """The newest commit; None if the log has none."""
        return self.commit(max(self.commits)) if self.commits else None

    def commit(self, version: int) -> LogFile:
        """Return the commit file of a version in the log."""
        return LogFile(version, self.commits[version])

    def decides(self, version: int, *, checkpoint_first: bool = True) -> LogFile | None:
        """Return the file that must expire before a truncation deletes the history up to `version`.

        Args:
            checkpoint_first: the truncating statement writes its checkpoint before it commits
                anything but an empty commit. Otherwise the newest files cannot expire.

        Returns:
            None when no truncation can delete it yet, however old it is.
        """
        last: LogFile | None = None
        for run in self.runs:
            if run.checkpoint is None and (self.unpublished or not checkpoint_first):
                return None
            if last is None or run.last.modified_ms > last.modified_ms:
                last = run.last
            if run.checkpoint is None or run.checkpoint > version:
                return last
        return None

    def is_open(self, version: int) -> bool:
        """Return True if the version is in the newest run, which grows with every commit."""
        return not any(run.checkpoint is not None and run.checkpoint > version for run in self.runs)


def analyze_aging(
    entries: Iterable[FolderEntry], listing: LogListing, *, unpublished: bool = False
) -> LogAging:
    """Compute how the log in `entries` expires.

    Args:
        listing: made from the same entries.
        unpublished: the newest commits are only staged.
    """
    files = sorted(_log_files(entries))
    times = {file.name: file.modified_ms for file in files}
    return LogAging(
        tuple(_group_runs(files)),
        0 if listing.newest is None else oldest_version(listing, listing.newest),
        {version: times[name] for version, name in listing.commits.items()},
        unpublished,
    )


class _VersionedFile(NamedTuple):
    """One file that a cleanup considers; sorts by name."""

    name: str
    version: int
    modified_ms: int
    checkpoint: bool
    """a checkpoint that is not empty"""
    parts: int
    """the number of files that it is one part of"""


def _log_files(entries: Iterable[FolderEntry]) -> Iterator[_VersionedFile]:
    for name, size, modified in entries:
        match = _NAME.fullmatch(name)
        if match is not None:
            checkpoint = match[2].startswith("checkpoint") and bool(size)
            yield _VersionedFile(name, int(match[1]), modified or 0, checkpoint, int(match[4] or 1))


def _group_runs(files: Iterable[_VersionedFile]) -> Iterator[DeletionGroup]:
    last: _VersionedFile | None = None
    ending: LogFile | None = None
    parts: dict[tuple[int, int], int] = {}
    for file in files:
        if last is None:
            pass
        elif last.version < file.version and last.modified_ms >= file.modified_ms:
            file = file._replace(modified_ms=last.modified_ms + 1)
        elif file.checkpoint:
            key = (file.version, file.parts)
            parts[key] = parts.get(key, 0) + 1
            if parts[key] < file.parts:
                last = file
                continue
            if ending is not None:
                yield DeletionGroup(ending, file.version)
        last, ending = file, LogFile(file.version, file.modified_ms)
    if ending is not None:
        yield DeletionGroup(ending, None)
