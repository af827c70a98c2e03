"""Checks a writer's commits against the requirements of the table's protocol.

Source: PROTOCOL.md, "Writer Requirements for" each feature. `verify_writes` checks the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deltaproto.certification.observe import ObservedVersion
from deltaproto.certification.operation import CHANGED_PROPERTY
from deltaproto.clients.measurement import ResultColumn
from deltaproto.protocol.protocol import Protocol

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
        yield "the table has another id"
    if after.schema != before.schema:
        yield "the schema changed"
    if after.partition_columns != before.partition_columns:
        yield "the partition columns changed"
    for name, configuration in before.domains.items():
        if name not in after.domains:
            yield f"the metadata domain {name} is gone"
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
