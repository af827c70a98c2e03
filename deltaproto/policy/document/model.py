"""A policy: who uses which tables, what these may become, and what is excused until when.

Everything keeps its position, so that a later message can name the line that asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.clients.model import Access
from deltaproto.policy.document.errors import Position
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import IsolationLevel

if TYPE_CHECKING:
    import datetime

Levels = Mapping[str, Severity | None]
"""severities by rule id; None: the rule is off"""
_NO_LEVELS: Levels = MappingProxyType({})
_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


class ClientDefinition(NamedTuple):
    """An in-house client, declared in the policy itself."""

    id: str
    plain: Mapping[str, Any]
    """as a file of `clients/data` would hold it, `id` included; not checked"""
    position: Position


class Consumer(StrEnum):
    """Consumers of a table that are more than a client that opens it."""

    STREAM = "stream"
    SHARE = "share"


class CatalogueFile(NamedTuple):
    """A further file of clients."""

    path: str
    """as written; relative to the folder of the policy"""
    position: Position


class Declared(NamedTuple):
    """A client that uses tables. Neither id nor version needs to exist."""

    text: str
    """as written"""
    id: str
    path: str | None
    version: str | None
    access: tuple[Access, ...]
    label: str | None
    """who uses it"""
    consumer: Consumer | None
    position: Position


class Window(NamedTuple):
    """A time of maintenance, weekly. It ends on the next day when `end` is not after `start`."""

    days: tuple[int, ...]
    """the days it begins on; 0 is Monday"""
    start: int
    """minutes after midnight, 0 to 1439"""
    end: int
    """minutes after midnight, 0 to 1440"""
    timezone: str
    """IANA name"""
    position: Position


class PolicySettings(NamedTuple):
    """What a policy asks of tables. None: it does not say."""

    clients: tuple[Declared, ...] | None = None
    max_reader_version: int | None = None
    max_writer_version: int | None = None
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    forbid_features: tuple[str, ...] | None = None
    require_features: tuple[str, ...] | None = None
    isolation: IsolationLevel | None = None
    maintenance_windows: tuple[Window, ...] | None = None
    require_properties: Mapping[str, str] = _NO_PROPERTIES
    severities: Levels = _NO_LEVELS
    clients_replace: bool = False
    """the list replaces those of less specific patterns; otherwise it adds to them"""
    forbid_features_replace: bool = False
    require_features_replace: bool = False


class TableEntry(NamedTuple):
    """The settings of the tables that a pattern matches."""

    pattern: str
    settings: PolicySettings
    position: Position


class Waiver(NamedTuple):
    """Findings that are excused, up to and including the day `expires`."""

    rule: str
    table: str
    """a pattern"""
    feature: str | None
    """None: any"""
    client: str | None
    """as in `Declared`, with or without path and version; None: any"""
    reason: str
    expires: datetime.date
    position: Position


class Approval(NamedTuple):
    """A loss of access that is accepted, up to and including the day `expires`."""

    client: str
    """as in `Declared`, with or without path and version"""
    access: tuple[Access, ...]
    table: str
    """a pattern"""
    feature: str | None
    """the feature that decides; None: the goal is approved"""
    goal: str | None
    """the goal of a plan, in the words of its output; None: the feature is approved"""
    approver: str
    reason: str
    ticket: str | None
    expires: datetime.date
    position: Position


class Policy(NamedTuple):
    """A policy file. `clients` and `severities` are those of all tables."""

    source: str
    """the file, as it was named"""
    definitions: tuple[ClientDefinition, ...] = ()
    catalogues: tuple[CatalogueFile, ...] = ()
    clients: tuple[Declared, ...] | None = None
    tables: tuple[TableEntry, ...] = ()
    severities: Levels = _NO_LEVELS
    waivers: tuple[Waiver, ...] = ()
    expired: tuple[Waiver, ...] = ()
    """waivers that no longer excuse anything"""
    approvals: tuple[Approval, ...] = ()
    """expired ones included"""

    def declared(self) -> Iterator[Declared]:
        """Every client of every table, in the order of the file."""
        yield from self.clients or ()
        for entry in self.tables:
            yield from entry.settings.clients or ()
