"""Reads a table's state from the log before and after a client wrote to it."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from deltaproto.certification.fixtures.case import sort_by_id
from deltaproto.tables.log.files import LogListing, build_listing, read_actions
from deltaproto.tables.log.live_files import read_live_files
from deltaproto.tables.log.snapshot import replay, require_rebuildable
from deltaproto.tables.storage.local import LocalLogStore


class ObservedVersion(NamedTuple):
    """One version of a table."""

    version: int
    protocol: Mapping[str, Any]
    """as stored, with sorted lists; None for a missing list"""
    table_id: str
    configuration: Mapping[str, str]
    schema: Any
    """the schema's JSON, without the counters of identity columns"""
    partition_columns: tuple[str, ...]
    domains: Mapping[str, str]
    checkpoints: frozenset[int]
    files: frozenset[str]
    """the live files, by path and deletion vector"""
    vectors: bool
    """whether a live file has a deletion vector"""

    def on(self, key: str) -> bool:
        """Return True if a property is `true`."""
        return self.configuration.get(key, "").lower() == "true"


def observe_newest(table: Path) -> ObservedVersion:
    """Read the newest version with only the log reader.

    Raises:
        TableError: when the log is damaged.
    """
    store, listing = _log(table)
    version = -1 if listing.newest is None else listing.newest
    require_rebuildable(listing, version)
    snapshot = replay(store, listing, version)
    assert snapshot.protocol is not None
    assert snapshot.metadata is not None
    metadata = snapshot.metadata
    live = read_live_files(store, listing, version).files
    return ObservedVersion(
        version=version,
        protocol=snapshot.protocol.to_action(),
        table_id=metadata.id or "",
        configuration={k: v for k, v in metadata.configuration.items() if v is not None},
        schema=_without_identity_marks(json.loads(metadata.schema_string or "null")),
        partition_columns=tuple(metadata.partition_columns),
        domains=snapshot.live_domains,
        checkpoints=frozenset(listing.checkpoints),
        files=frozenset(live),
        vectors=any(file.vector for file in live.values()),
    )


def read_protocol(table: Path) -> dict[str, Any]:
    """Read the protocol of the newest version."""
    return dict(observe_newest(table).protocol)


def commits_since(table: Path, version: int) -> list[list[dict[str, Any]]]:
    """Read the actions of each commit after `version`."""
    store, listing = _log(table)
    found = []
    for number in sorted(listing.commits):
        if number > version:
            name = listing.commits[number]
            with store.open(name) as file:
                found.append([dict(action) for action in read_actions(name, file, files=True)])
    return found


def are_rows_untouched(
    before: ObservedVersion,
    after: ObservedVersion,
    commits: Sequence[Sequence[Mapping[str, Any]]],
    source: Path,
    table: Path,
) -> bool:
    """Return True if log and files alone show that a write left every row unchanged.

    False does not mean that a row differs.

    Args:
        commits: the actions of each commit that the write made.
        source: the table before the write.
    """
    if before.vectors or after.files != before.files or after.checkpoints != before.checkpoints:
        return False
    if any(action.keys() & {"add", "remove", "cdc"} for actions in commits for action in actions):
        return False
    paths = [unquote(path) for path in before.files]
    return not any(filecmp.cmpfiles(source, table, paths, shallow=False)[1:])


def read_live_rows(table: Path) -> list[dict[str, Any]] | None:
    """Return the rows of the live files, by `id`; None if files alone do not determine the rows."""
    import pyarrow.parquet as pq

    store, listing = _log(table)
    live = read_live_files(store, listing, listing.newest or 0)
    if any(file.vector for file in live.files.values()):
        return None
    rows: list[dict[str, Any]] = []
    for path in live.files:
        try:
            # Not through a dataset, which would interpret the file's folders as partitions.
            found = pq.ParquetFile(table / unquote(path)).read().to_pylist()
            rows += [{name: _text(value) for name, value in row.items()} for row in found]
        except FileNotFoundError:
            return None
    return sort_by_id(rows)


def _log(table: Path) -> tuple[LocalLogStore, LogListing]:
    store = LocalLogStore(str(table))
    return store, build_listing(store.list())


def _text(value: Any) -> Any:
    """Decode strings that the writer did not mark as such, according to the table's schema."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _without_identity_marks(schema: Any) -> Any:
    for field in (schema or {}).get("fields", ()):
        field.get("metadata", {}).pop("delta.identity.highWaterMark", None)
    return schema
