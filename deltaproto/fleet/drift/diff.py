"""How one table differs between two scans. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.fleet.read_inventory import ISOLATION_COLUMNS, lost_features_error
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import IsolationLevels
from deltaproto.protocol.protocol import Protocol


class ChangeKind(StrEnum):
    """What happened to the table, most severe first."""

    FEATURE_APPEARED = "feature-appeared"
    FEATURE_ENABLED = "feature-enabled"
    PROTOCOL_RAISED = "protocol-raised"
    UNREADABLE = "unreadable"
    FEATURE_DISAPPEARED = "feature-disappeared"
    FEATURE_DISABLED = "feature-disabled"
    PROTOCOL_LOWERED = "protocol-lowered"
    ISOLATION_CHANGED = "isolation-changed"
    TABLE_REPLACED = "table-replaced"
    TABLE_GONE = "table-gone"
    TABLE_MOVED = "table-moved"
    FEATURE_IMPLIED = "feature-implied"
    """part of the new versions, but neither listed nor in use"""
    TABLE_NEW = "table-new"
    READABLE = "readable"


SEVERITY = {
    ChangeKind.FEATURE_APPEARED: Severity.ERROR,
    ChangeKind.FEATURE_ENABLED: Severity.ERROR,
    ChangeKind.PROTOCOL_RAISED: Severity.ERROR,
    ChangeKind.UNREADABLE: Severity.ERROR,
    ChangeKind.FEATURE_DISAPPEARED: Severity.WARNING,
    ChangeKind.FEATURE_DISABLED: Severity.WARNING,
    ChangeKind.PROTOCOL_LOWERED: Severity.WARNING,
    ChangeKind.ISOLATION_CHANGED: Severity.WARNING,
    ChangeKind.TABLE_REPLACED: Severity.WARNING,
    ChangeKind.TABLE_GONE: Severity.WARNING,
    ChangeKind.TABLE_MOVED: Severity.WARNING,
    ChangeKind.FEATURE_IMPLIED: Severity.INFO,
    ChangeKind.TABLE_NEW: Severity.INFO,
    ChangeKind.READABLE: Severity.INFO,
}
"""Same severities as `check --baseline`: a change that blocks clients is an error."""

COMPARED_FIELDS = (
    "version",
    "id",
    "min_reader_version",
    "min_writer_version",
    "reader_features",
    "writer_features",
    "isolation_level",
    *ISOLATION_COLUMNS,
    "usage",
    "code",
    "message",
)
"""Compared columns; `usage` is the use of each feature (`drift.query`).

`code` and `message` apply to an unreadable table."""


class ScannedTable(NamedTuple):
    """One table in one scan; `protocol` is None if it could not be read."""

    version: int | None
    id: str | None
    protocol: Protocol | None
    isolation: str | None
    code: str | None
    message: str | None
    usage: tuple[str, ...] = ()
    """features, each with a mark in front: `+` enabled, `*` only present, `-` neither, `~` disabled
    and possibly present, `?` unknown"""
    effective: tuple[tuple[str, str | None], ...] = ()
    """engines, with the effective isolation level of each"""

    def uses(self) -> dict[str, str]:
        """Return the mark of each feature."""
        return {each[1:]: each[:1] for each in self.usage}

    @property
    def levels(self) -> IsolationLevels:
        """The isolation levels of the table."""
        return IsolationLevels(self.isolation, dict(self.effective))

    @property
    def error(self) -> str:
        """The reason why the table could not be read."""
        return f"{self.code}: {self.message}"


_USE = {"+": "in use", "*": "in use", "-": "not in use", "~": "disabled"}
_USE_CHANGES = dict.fromkeys(("-+", "-*", "~+"), ChangeKind.FEATURE_ENABLED) | dict.fromkeys(
    ("+-", "*-", "+~"), ChangeKind.FEATURE_DISABLED
)
"""The kind of change between two marks; the scans need not show files with the feature."""


def unreadable_table(code: str, message: str) -> ScannedTable:
    """Return the state of an unreadable table, or of a place that could not be searched."""
    return ScannedTable(None, None, None, None, code, message)


class CausingCommit(NamedTuple):
    """The commit that made a change."""

    version: int
    timestamp: int | None
    """milliseconds since the epoch"""
    operation: str
    engine: str | None
    user: str | None
    job: str | None = None
    """name or id of the job that made the commit"""
    plan: str | None = None
    """id of the plan whose step `apply` executed with it"""


class Difference(NamedTuple):
    """One difference. `before` and `after` are descriptions of the two states."""

    location: str
    """absolute URI of the table"""
    table: str
    """the table as it was named"""
    kind: ChangeKind
    """what happened"""
    feature: str | None
    """the feature that changed, if any"""
    before: str | None
    """the state in the earlier scan, in words"""
    after: str | None
    """the state in the later scan, in words"""
    version_before: int | None
    """the table's version in the earlier scan"""
    version_after: int | None
    """the table's version in the later scan"""
    culprit: CausingCommit | None = None
    """None if the log does not show it, or no commit made the change"""
    moved_from: str | None = None
    """the location in the earlier scan, if the table was moved since"""

    def __repr__(self) -> str:
        what = f"{self.kind} {self.feature}" if self.feature else str(self.kind)
        return f"<Difference {self.table}: {what}>"

    @property
    def severity(self) -> Severity:
        """The severity of its kind."""
        return SEVERITY[self.kind]


def scanned_table(row: Mapping[str, Any], prefix: str) -> ScannedTable | None:
    """Return the table in one scan, from the columns with this prefix; None: no such table.

    Raises:
        TableError: corrupt-log, when the inventory lacks a feature's row.
    """
    value = {name: row[prefix + name] for name in COMPARED_FIELDS}
    if value["code"] is not None:
        return unreadable_table(value["code"], value["message"])
    if value["min_reader_version"] is None:
        return None
    lists = {
        key: value[column]
        for key, column in (
            ("readerFeatures", "reader_features"),
            ("writerFeatures", "writer_features"),
        )
        if value[column] is not None
    }
    protocol = Protocol.stored(
        {
            "minReaderVersion": value["min_reader_version"],
            "minWriterVersion": value["min_writer_version"],
            **lists,
        }
    )
    usage = tuple(value["usage"] or ())
    if lost := protocol.supported - {each[1:] for each in usage}:
        raise lost_features_error(lost)
    return ScannedTable(
        value["version"],
        value["id"],
        protocol,
        value["isolation_level"],
        None,
        None,
        usage,
        tuple((engine, value[column]) for column, engine in ISOLATION_COLUMNS.items()),
    )


def find_differences(
    location: str,
    table: str,
    before: ScannedTable | None,
    now: ScannedTable | None,
    moved_from: str | None = None,
) -> Iterator[Difference]:
    """Yield every difference between two scans of a table; None means a scan without the table.

    Args:
        moved_from: the location in the earlier scan, if it was another one.
    """

    def difference(
        kind: ChangeKind, old: object = None, new: object = None, feature: str | None = None
    ) -> Difference:
        return Difference(
            location,
            table,
            kind,
            feature,
            None if old is None else str(old),
            None if new is None else str(new),
            before and before.version,
            now and now.version,
            moved_from=moved_from,
        )

    match before, now:
        case ScannedTable(protocol=Protocol()), None:
            yield difference(ChangeKind.TABLE_GONE, before.protocol)
        case None, ScannedTable(protocol=Protocol()):
            yield difference(ChangeKind.TABLE_NEW, None, now.protocol)
        case _, ScannedTable(protocol=None):
            if before is None or before.code != now.code:
                yield difference(
                    ChangeKind.UNREADABLE, before and (before.protocol or before.error), now.error
                )
        case ScannedTable(protocol=None), ScannedTable():
            yield difference(ChangeKind.READABLE, before.error, now.protocol)
        case ScannedTable(protocol=Protocol() as old), ScannedTable(protocol=Protocol() as new):
            if moved_from is not None:
                yield difference(ChangeKind.TABLE_MOVED, moved_from, location)
            if before.id != now.id:
                yield difference(ChangeKind.TABLE_REPLACED, before.id, now.id)
            for kind, name in protocol_differences(old, new):
                if kind is ChangeKind.FEATURE_APPEARED and _is_implied(name, new, now.usage):
                    kind = ChangeKind.FEATURE_IMPLIED
                yield difference(kind, old, new, name)
            was_used, is_used = before.uses(), now.uses()
            for name in sorted(old.supported & new.supported):
                was, is_ = was_used.get(name, "?"), is_used.get(name, "?")
                if was + is_ in _USE_CHANGES:
                    yield difference(_USE_CHANGES[was + is_], _USE[was], _USE[is_], name)
            if levels := before.levels.differ(now.levels):
                yield difference(ChangeKind.ISOLATION_CHANGED, *levels)


def _is_implied(name: str | None, protocol: Protocol, usage: tuple[str, ...]) -> bool:
    # The versions themselves are reported as raised.
    return name not in protocol.listed and f"-{name}" in usage


def protocol_differences(old: Protocol, new: Protocol) -> Iterator[tuple[ChangeKind, str | None]]:
    """Yield the kinds of change between two protocols, with the feature if there is one."""
    yield from (
        (ChangeKind.FEATURE_APPEARED, name) for name in sorted(new.supported - old.supported)
    )
    yield from (
        (ChangeKind.FEATURE_DISAPPEARED, name) for name in sorted(old.supported - new.supported)
    )
    was, has = old.versions, new.versions
    if any(b > a for a, b in zip(was, has, strict=True)):
        yield ChangeKind.PROTOCOL_RAISED, None
    if any(b < a for a, b in zip(was, has, strict=True)):
        yield ChangeKind.PROTOCOL_LOWERED, None
