"""How many data files a table has, and how many of them a protocol change would touch."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.live_files import LiveFile, LiveFiles, live_files
from deltaproto.tables.log.names import Listing
from deltaproto.tables.log.replay import oldest_version, replay
from deltaproto.tables.log.type_changes import last_type_change
from deltaproto.tables.storage.interface import LogStore

# Operations that write every file they add, as Delta Spark and delta-rs name them. RESTORE, CLONE
# and CONVERT add files that were written long before.
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


class Census(NamedTuple):
    """The live data files of one version."""

    files: int
    bytes: int
    """sizes as the log states them"""
    files_with_vectors: int
    bytes_with_vectors: int
    """of those data files; the deletion vectors themselves are not counted"""
    files_with_row_ids: int
    files_before_type_change: int
    """files that may hold a type from before a column was widened: those that the log does not
    show to have been written after the last change; 0 where the schema records no change"""
    bytes_before_type_change: int


def take_census(store: LogStore, listing: Listing, version: int) -> Census:
    """Count the files that are live at `version`.

    Memory grows with the number of live files, by a few hundred bytes for each.

    Raises:
        TableError: corrupt-log, when the log cannot rebuild the version.
    """
    metadata = replay(store, listing, version).metadata
    assert metadata is not None
    return census_with(store, listing, version, metadata)


def census_with(store: LogStore, listing: Listing, version: int, metadata: Metadata) -> Census:
    """As `take_census`, for a caller who knows the version's metadata already."""
    changed = last_type_change(store, listing, version, metadata)
    live = _live(store, listing, version, changed)
    files = live.files.values()
    vectors = [file.size for file in files if file.vector]
    before = [] if changed is None else [f.size for f in files if _before(f, live, changed)]
    return Census(
        files=len(files),
        bytes=sum(file.size for file in files),
        files_with_vectors=len(vectors),
        bytes_with_vectors=sum(vectors),
        files_with_row_ids=sum(file.row_ids for file in files),
        files_before_type_change=len(before),
        bytes_before_type_change=sum(before),
    )


def _live(store: LogStore, listing: Listing, version: int, changed: int | None) -> LiveFiles:
    if changed is not None:
        try:
            start = max(changed, oldest_version(listing, version))
            return live_files(store, listing, version, start)
        except TableError as error:
            if error.code is not ErrorCode.CORRUPT_LOG:
                raise
            # What is damaged may lie before a newer checkpoint, whose files then count as old.
    return live_files(store, listing, version)


def _before(file: LiveFile, live: LiveFiles, changed: int) -> bool:
    if live.base is not None and file.since <= live.base.version:
        return True
    return file.since <= changed or live.operations.get(file.since) not in _WRITES
