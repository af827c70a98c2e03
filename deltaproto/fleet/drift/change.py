"""How one table differs between two scans. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.fleet.kept import LEVELS, lost_features
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import Levels
from deltaproto.protocol.protocol import Protocol


class Kind(StrEnum):
    """What happened to the table, the gravest first."""

    FEATURE_APPEARED = "feature-appeared"
    FEATURE_ENABLED = "feature-enabled"
    PROTOCOL_RAISED = "protocol-raised"
    UNREADABLE = "unreadable"
    FEATURE_DISAPPEARED = "feature-disappeared"
    PROTOCOL_LOWERED = "protocol-lowered"
    ISOLATION_CHANGED = "isolation-changed"
    TABLE_REPLACED = "table-replaced"
    TABLE_GONE = "table-gone"
    TABLE_NEW = "table-new"
    READABLE = "readable"


SEVERITY = {
    Kind.FEATURE_APPEARED: Severity.ERROR,
    Kind.FEATURE_ENABLED: Severity.ERROR,
    Kind.PROTOCOL_RAISED: Severity.ERROR,
    Kind.UNREADABLE: Severity.ERROR,
    Kind.FEATURE_DISAPPEARED: Severity.WARNING,
    Kind.PROTOCOL_LOWERED: Severity.WARNING,
    Kind.ISOLATION_CHANGED: Severity.WARNING,
    Kind.TABLE_REPLACED: Severity.WARNING,
    Kind.TABLE_GONE: Severity.WARNING,
    Kind.TABLE_NEW: Severity.INFO,
    Kind.READABLE: Severity.INFO,
}
"""As `check --baseline` grades the same things: what shuts clients out is an error."""

COMPARED = (
    "version",
    "id",
    "min_reader_version",
    "min_writer_version",
    "reader_features",
    "writer_features",
    "isolation_level",
    *LEVELS,
    "usage",
    "code",
    "message",
)
"""What is compared; `usage` is the use of each feature (`between.query`).

`code` and `message` are those of a table that could not be read."""


class Seen(NamedTuple):
    """One table as one scan saw it; `protocol` is None where it could not be read."""

    version: int | None
    id: str | None
    protocol: Protocol | None
    isolation: str | None
    code: str | None
    message: str | None
    usage: tuple[str, ...] = ()
    """features, with `+` in front if they are in use, `-` if they are not, `?` if unknown"""
    effective: tuple[tuple[str, str | None], ...] = ()
    """engines with the isolation level in force there"""

    @property
    def levels(self) -> Levels:
        """Its isolation levels."""
        return Levels(self.isolation, dict(self.effective))

    @property
    def error(self) -> str:
        """Why it could not be read."""
        return f"{self.code}: {self.message}"


def unseen(code: str, message: str) -> Seen:
    """A table that could not be read, or a place that could not be looked into."""
    return Seen(None, None, None, None, code, message)


class Culprit(NamedTuple):
    """The commit that made a change, as it tells of itself."""

    version: int
    timestamp: int | None
    """milliseconds since the epoch"""
    operation: str
    engine: str | None
    user: str | None


class Change(NamedTuple):
    """One difference. `before` and `after` are what was seen in words."""

    location: str
    table: str
    kind: Kind
    feature: str | None
    before: str | None
    after: str | None
    version_before: int | None
    version_after: int | None
    culprit: Culprit | None = None
    """None where its log does not say, or no commit did it"""

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.kind]


def seen(row: Mapping[str, Any], prefix: str) -> Seen | None:
    """What one scan saw, out of the columns that begin with `prefix`; None: no such table.

    Raises:
        TableError: corrupt-log, when the inventory lost the row of a feature.
    """
    value = {name: row[prefix + name] for name in COMPARED}
    if value["code"] is not None:
        return unseen(value["code"], value["message"])
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
        raise lost_features(lost)
    return Seen(
        value["version"],
        value["id"],
        protocol,
        value["isolation_level"],
        None,
        None,
        usage,
        tuple((engine, value[column]) for column, engine in LEVELS.items()),
    )


def changes(location: str, table: str, before: Seen | None, now: Seen | None) -> Iterator[Change]:
    """Every difference between what the two scans saw; None where one saw no such table."""

    def told(
        kind: Kind, old: object = None, new: object = None, feature: str | None = None
    ) -> Change:
        return Change(
            location,
            table,
            kind,
            feature,
            None if old is None else str(old),
            None if new is None else str(new),
            before and before.version,
            now and now.version,
        )

    match before, now:
        case Seen(protocol=Protocol()), None:
            yield told(Kind.TABLE_GONE, before.protocol)
        case None, Seen(protocol=Protocol()):
            yield told(Kind.TABLE_NEW, None, now.protocol)
        case _, Seen(protocol=None):
            if before is None or before.code != now.code:
                yield told(Kind.UNREADABLE, before and (before.protocol or before.error), now.error)
        case Seen(protocol=None), Seen():
            yield told(Kind.READABLE, before.error, now.protocol)
        case Seen(protocol=Protocol() as old), Seen(protocol=Protocol() as new):
            if before.id != now.id:
                yield told(Kind.TABLE_REPLACED, before.id, now.id)
            for kind, name in differences(old, new):
                yield told(kind, old, new, name)
            unused = {each[1:] for each in before.usage if each.startswith("-")}
            for name in sorted(unused & old.supported & new.supported):
                if f"+{name}" in now.usage:
                    yield told(Kind.FEATURE_ENABLED, "not in use", "in use", name)
            if said := before.levels.differ(now.levels):
                yield told(Kind.ISOLATION_CHANGED, *said)


def differences(old: Protocol, new: Protocol) -> Iterator[tuple[Kind, str | None]]:
    """The kinds of change between two protocols, with the feature where it is about one."""
    yield from ((Kind.FEATURE_APPEARED, name) for name in sorted(new.supported - old.supported))
    yield from ((Kind.FEATURE_DISAPPEARED, name) for name in sorted(old.supported - new.supported))
    was = old.min_reader_version, old.min_writer_version
    has = new.min_reader_version, new.min_writer_version
    if any(b > a for a, b in zip(was, has, strict=True)):
        yield Kind.PROTOCOL_RAISED, None
    if any(b < a for a, b in zip(was, has, strict=True)):
        yield Kind.PROTOCOL_LOWERED, None
