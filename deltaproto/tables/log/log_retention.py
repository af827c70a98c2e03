"""Which log files Delta deletes together once they are old, and what a truncation loses.

Source: Delta Spark 4.4's `MetadataCleanup` and `BufferingLogDeletionIterator`. A clean-up goes
through the log in the order of the names. It deletes the files before a checkpoint when the last of
them is old enough, and stops at the first that is not, save for the very first. The age is that of
the file: in-commit timestamps play no part. A file that is not newer than one of an older version
counts as newer by a millisecond, and a checkpoint to which that happens is no place to stop.
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


class LogFile(NamedTuple):
    """A file in the log, by the version that it is named after."""

    version: int
    modified_ms: int
    """as Delta sees it, in milliseconds since the epoch"""

    def removable_ms(self, retention_ms: int) -> int:
        """The first moment at which a truncation with this retention finds the file old.

        Delta cuts off at a full minute.
        """
        return -(-self.modified_ms // _MINUTE_MS) * _MINUTE_MS + retention_ms


class Run(NamedTuple):
    """Log files that are deleted together."""

    last: LogFile
    """by its age Delta decides"""
    checkpoint: int | None
    """the version of the checkpoint after the run; None: only one to come can end it"""


class Aging(NamedTuple):
    """The log's files as a clean-up sees them."""

    runs: tuple[Run, ...]
    """oldest first; the last one is not followed by a checkpoint"""
    oldest: int
    """the oldest version from which on the log can rebuild every one"""
    commits: Mapping[int, int]
    """when the file of each commit was last written"""

    @property
    def newest(self) -> LogFile | None:
        """The newest commit; None where the log holds none."""
        return self.commit(max(self.commits)) if self.commits else None

    def commit(self, version: int) -> LogFile:
        """The commit file of a version that the log holds."""
        return LogFile(version, self.commits[version])

    def decides(self, version: int, *, checkpoint_first: bool = True) -> LogFile | None:
        """The file that must be old before a truncation deletes the history up to `version`.

        Args:
            checkpoint_first: the truncating statement writes its checkpoint before it commits
                anything else than an empty commit. Without that the newest files stay young.

        Returns:
            None when no truncation deletes it yet, however old it is.
        """
        last: LogFile | None = None
        for run in self.runs:
            if run.checkpoint is None and not checkpoint_first:
                return None
            if last is None or run.last.modified_ms > last.modified_ms:
                last = run.last
            if run.checkpoint is None or run.checkpoint > version:
                return last
        return None

    def is_open(self, version: int) -> bool:
        """Whether the version lies in the newest run, which grows with every commit."""
        return not any(run.checkpoint is not None and run.checkpoint > version for run in self.runs)


def aging(entries: Iterable[FolderEntry], listing: LogListing) -> Aging:
    """How the log in `entries` ages; `listing` is made of the same entries."""
    files = sorted(_log_files(entries))
    times = {file.name: file.modified_ms for file in files}
    return Aging(
        tuple(_runs(files)),
        0 if listing.newest is None else oldest_version(listing, listing.newest),
        {version: times[name] for version, name in listing.commits.items()},
    )


class _Named(NamedTuple):
    """One file that a clean-up looks at; sorts by name."""

    name: str
    version: int
    modified_ms: int
    checkpoint: bool
    """a checkpoint with something in it"""
    parts: int
    """of how many files it is one"""


def _log_files(entries: Iterable[FolderEntry]) -> Iterator[_Named]:
    for name, size, modified in entries:
        match = _NAME.fullmatch(name)
        if match is not None:
            checkpoint = match[2].startswith("checkpoint") and bool(size)
            yield _Named(name, int(match[1]), modified or 0, checkpoint, int(match[4] or 1))


def _runs(files: Iterable[_Named]) -> Iterator[Run]:
    last: _Named | None = None
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
                yield Run(ending, file.version)
        last, ending = file, LogFile(file.version, file.modified_ms)
    if ending is not None:
        yield Run(ending, None)
