"""Reads a table's state before and after a client's write, and checks the writer's commits."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from deltaproto.certification.fixtures.case import sort_by_id
from deltaproto.certification.operation import CHANGED_PROPERTY
from deltaproto.clients.measurement import ResultColumn
from deltaproto.protocol.protocol import Protocol
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


Actions = Sequence[Mapping[str, Any]]
_COUNTED_DOMAINS = frozenset({"delta.rowTracking"})
"""properties and domains that change with every write"""
_ICEBERG = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3")


def find_violations(
    operation: ResultColumn,
    before: ObservedVersion,
    after: ObservedVersion,
    commits: Sequence[Actions],
) -> Iterator[str]:
    """Describe each requirement that was violated."""
    yield from _state_kept(operation, before, after)
    protocol = Protocol.stored(before.protocol)
    added = [action["add"] for actions in commits for action in actions if "add" in action]
    if "rowTracking" in protocol.supported:
        yield from _row_ids(added, after)
    if before.on("delta.enableInCommitTimestamps"):
        yield from _commit_times(commits)
    if any(before.on(f"delta.enable{name[0].upper()}{name[1:]}") for name in _ICEBERG):
        yield from _statistics(added)
    no_vectors = any(before.on(f"delta.enableIcebergCompatV{n}") for n in (1, 2))
    if no_vectors and any(add.get("deletionVector") for add in added):
        yield "deletion vectors were written, which icebergCompat forbids"


def describe_state_changes(before: ObservedVersion, after: ObservedVersion) -> Iterator[str]:
    """Yield what is missing or changed in the table's state, except for domains with counters."""
    if dict(after.protocol) != dict(before.protocol):
        was, now = (Protocol.stored(seen.protocol) for seen in (before, after))
        yield f"the protocol changed from {was} to {now}{_features_differ(was, now)}"
    if after.table_id != before.table_id:
        yield "the table's id changed"
    if after.schema != before.schema:
        yield "the schema changed"
    if after.partition_columns != before.partition_columns:
        yield "the partition columns changed"
    for name, configuration in before.domains.items():
        if name not in after.domains:
            yield f"the metadata domain {name} was removed"
        elif name not in _COUNTED_DOMAINS and _read(after.domains[name]) != _read(configuration):
            text = after.domains[name]
            yield f"the metadata domain {name} changed from {configuration} to {text}"


def _read(configuration: str) -> Any:
    try:
        return json.loads(configuration)
    except ValueError:
        return configuration


def _features_differ(was: Protocol, now: Protocol) -> str:
    none: frozenset[str] = frozenset()
    for_readers, still = was.reader_features or none, now.reader_features or none
    differences = (
        ("without", was.supported - now.supported),
        ("with", now.supported - was.supported),
        ("no longer for readers:", for_readers - still),
        ("now for readers:", still - for_readers),
    )
    parts = [f"{label} {', '.join(sorted(names))}" for label, names in differences if names]
    return f", {'; '.join(parts)}" if parts else ""


def _state_kept(
    operation: ResultColumn, before: ObservedVersion, after: ObservedVersion
) -> Iterator[str]:
    yield from describe_state_changes(before, after)
    expected = dict(before.configuration)
    if operation is ResultColumn.CONFIGURE:
        expected[CHANGED_PROPERTY[0]] = CHANGED_PROPERTY[1]
    # The writer's counters are not checked.
    counted = "delta.rowTracking.", "delta.inCommitTimestampEnablement"
    for key in sorted(expected.keys() | after.configuration.keys()):
        if not key.startswith(counted) and expected.get(key) != after.configuration.get(key):
            yield f"the property {key} is {after.configuration.get(key)!r} instead of " + (
                f"{expected.get(key)!r}"
            )


def _row_ids(added: Sequence[Mapping[str, Any]], after: ObservedVersion) -> Iterator[str]:
    if any("baseRowId" not in add or "defaultRowCommitVersion" not in add for add in added):
        yield "files were added without row ids"
        return
    mark = after.domains.get("delta.rowTracking")
    highest = max(
        (int(add["baseRowId"]) + _records(add) - 1 for add in added if _records(add)), default=-1
    )
    if added and (mark is None or json.loads(mark).get("rowIdHighWaterMark", -1) < highest):
        yield "the high-water mark of row ids was not raised"


def _commit_times(commits: Sequence[Actions]) -> Iterator[str]:
    for actions in commits:
        first = actions[0].get("commitInfo", {}) if actions else {}
        if "inCommitTimestamp" not in first:
            yield "a commit has no in-commit timestamp"
            return


def _statistics(added: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if any(not _records(add) for add in added):
        yield "files were added without their number of rows"


def _records(add: Mapping[str, Any]) -> int:
    try:
        return int(json.loads(add.get("stats") or "{}").get("numRecords") or 0)
    except (ValueError, TypeError):
        return 0
