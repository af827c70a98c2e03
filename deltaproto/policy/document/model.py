"""The policy model: clients, table requirements, waivers and approvals.

Everything keeps its position, so that messages can name the line.
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
"""severity by rule id; None: the rule is off"""
_NO_LEVELS: Levels = MappingProxyType({})
_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


class ClientDefinition(NamedTuple):
    """A custom client, declared in the policy itself."""

    id: str
    plain: Mapping[str, Any]
    """same form as a file of `clients/data`, including `id`; not validated"""
    position: Position


class Consumer(StrEnum):
    """Kinds of consumers that use a table in a special way."""

    STREAM = "stream"
    SHARE = "share"


class ClientFile(NamedTuple):
    """An additional client file."""

    path: str
    """the path as written; relative to the policy's folder"""
    position: Position


class Declared(NamedTuple):
    """A client that uses tables. Its id and version may be unknown."""

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
    """A weekly maintenance window. It ends on the next day if `end` is not after `start`."""

    days: tuple[int, ...]
    """the days on which it begins; 0 is Monday"""
    start: int
    """minutes after midnight, 0 to 1439"""
    end: int
    """minutes after midnight, 0 to 1440"""
    timezone: str
    """IANA name"""
    position: Position


class PolicySettings(NamedTuple):
    """Requirements of a policy for tables. None: not set."""

    clients: tuple[Declared, ...] | None = None
    max_reader_version: int | None = None
    max_writer_version: int | None = None
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    forbid_features: tuple[str, ...] | None = None
    require_features: tuple[str, ...] | None = None
    isolation: IsolationLevel | None = None
    protocol: str | None = None
    """`lowest`: no features that the table does not need"""
    cluster_by: tuple[str, ...] | None = None
    """the clustering columns; empty: the table must not be clustered"""
    history: str | None = None
    """`keep` or `truncate`: what plans do with the history that shows dropped features"""
    maintenance_windows: tuple[Window, ...] | None = None
    require_properties: Mapping[str, str] = _NO_PROPERTIES
    severities: Levels = _NO_LEVELS
    clients_replace: bool = False
    """if True, the list replaces those of less specific patterns; otherwise it extends them"""
    forbid_features_replace: bool = False
    require_features_replace: bool = False


class TableEntry(NamedTuple):
    """The settings for tables that match a pattern."""

    pattern: str
    settings: PolicySettings
    position: Position
    profile: str | None = None
    """the profile that these settings come from; None: they are the pattern's own"""


class Waiver(NamedTuple):
    """Suppresses findings, up to and including the date `expires`."""

    rule: str
    table: str
    """a pattern"""
    feature: str | None
    """None: any"""
    client: str | None
    """as in `Declared`; path and version are optional; None: any"""
    reason: str
    expires: datetime.date
    position: Position


class Approval(NamedTuple):
    """Accepts a loss of access, up to and including the date `expires`."""

    client: str
    """as in `Declared`; path and version are optional"""
    access: tuple[Access, ...]
    table: str
    """a pattern"""
    feature: str | None
    """the feature that causes the loss; None: the goal is approved"""
    goal: str | None
    """the goal of a plan, as text in the plan's output; None: the feature is approved"""
    approver: str
    reason: str
    ticket: str | None
    expires: datetime.date
    position: Position


class WaveSize(NamedTuple):
    """The size of a wave: a number of tables, or a percentage of those that are not canaries."""

    number: int
    percent: bool = False


class RolloutSettings(NamedTuple):
    """In which waves `apply` executes the plans of a folder."""

    canary: tuple[str, ...] = ()
    """patterns of the tables in the first wave"""
    waves: tuple[WaveSize, ...] = ()
    """sizes of the waves after it; one more wave has the remaining tables"""
    soak_hours: float = 0.0
    """how long the next wave waits after the last step of a wave"""
    parallel: int = 1
    """how many tables of a wave run at a time"""
    max_failures: int = 0
    """how many tables may fail before no more tables are started"""
    hook_minutes: float = 5.0
    """after this time, a hook is stopped and has failed"""
    rehearse: bool = False
    """whether one table of each group of equal plans is rehearsed before the group starts"""


class Policy(NamedTuple):
    """A policy file. `clients` and `severities` apply to all tables."""

    source: str
    """path of the file, as given"""
    definitions: tuple[ClientDefinition, ...] = ()
    client_files: tuple[ClientFile, ...] = ()
    clients: tuple[Declared, ...] | None = None
    tables: tuple[TableEntry, ...] = ()
    severities: Levels = _NO_LEVELS
    waivers: tuple[Waiver, ...] = ()
    expired: tuple[Waiver, ...] = ()
    """expired waivers, which no longer apply"""
    approvals: tuple[Approval, ...] = ()
    """including expired ones"""
    unused_profiles: tuple[tuple[str, Position], ...] = ()
    """profiles that no pattern inherits"""
    rollout: RolloutSettings | None = None
    """None: every plan of a folder may run at once"""

    def declared(self) -> Iterator[Declared]:
        """Yield every declared client, in file order."""
        yield from self.clients or ()
        for entry in self.tables:
            yield from entry.settings.clients or ()
