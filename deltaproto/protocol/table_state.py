"""What every reader answers with, and what they all share.

One table, several readers (`log`, `delta_rs`, `spark`): each gives a `TableState` or raises
a `TableError`. What a reader did not look at is None or missing, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol

if TYPE_CHECKING:
    from deltaproto.redaction import Redactor

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class ReaderName(StrEnum):
    """The three readers."""

    LOG = "log"
    DELTA_RS = "delta-rs"
    SPARK = "spark"


class NoteKind(StrEnum):
    """Oddities a reader met on its way to an answer; each one is a finding's evidence."""

    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    CHECKSUM_CONTRADICTS = "checksum-contradicts"
    SEVERAL_PROTOCOLS = "several-protocols"
    NO_COMMIT_FILES = "no-commit-files"
    STAGED_COMMITS = "staged-commits"


class Note(NamedTuple):
    """One oddity: what was met, in one line."""

    kind: NoteKind
    message: str


class ProtocolChange(NamedTuple):
    """One commit that stored a protocol, as far back as the log reaches."""

    version: int
    protocol: Protocol
    commit_info: Mapping[str, Any]
    """the commit's provenance as stored; empty where the writer recorded none"""


class TableState(NamedTuple):
    """A table at one version, as one reader sees it.

    `domains` maps each live metadata domain to its configuration; None when the reader cannot
    see domains. `traces` holds only what was looked at. `changes` yields the protocol's changes,
    oldest first, reading more of the log; None when the reader cannot.
    """

    table: str
    location: str
    reader: ReaderName
    version: int
    protocol: Protocol
    metadata: Metadata
    domains: Mapping[str, str] | None = None
    clustering_columns: tuple[str, ...] | None = None
    traces: Mapping[Trace, bool] = _NOTHING
    notes: tuple[Note, ...] = ()
    last_commit: Mapping[str, Any] = _NOTHING
    """commitInfo of this version as stored; empty when not looked at or not there"""
    changes: Callable[[], tuple[ProtocolChange, ...]] | None = None
    confirmed: bool = False
    """the catalog that manages the table confirmed that this is its newest version"""


class UnsupportedProtocol(TableError):
    """A protocol that no reader can interpret; carries what the log stores all the same."""

    def __init__(self, message: str, hint: str, version: int, protocol: Protocol) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_PROTOCOL, message, hint)
        self.version = version
        self.protocol = protocol


class SparkSettings(NamedTuple):
    """How to reach Spark: `remote` is a Spark Connect URL, `conf` adds or overrides settings."""

    remote: str | None = None
    conf: Mapping[str, str] = _NOTHING
    show_log: bool = False
    """True leaves Spark's own output on standard error"""
    hadoop: Mapping[str, str] = _NOTHING
    """how its file systems reach object stores; `conf` wins"""
    stores: frozenset[str] = frozenset()
    """schemes of the tables that it will be asked about, for a session that is started for them"""

    def reaching(self, *places: str) -> SparkSettings:
        """The same for tables at these places too; what is no URI changes nothing."""
        schemes = {place.partition("://")[0].lower() for place in places if "://" in place}
        return self if schemes <= self.stores else self._replace(stores=self.stores | schemes)

    @property
    def redact(self) -> Redactor:
        """Hides what these settings hold in texts of Spark."""
        from deltaproto.redaction import Redactor

        _, _, token = (self.remote or "").partition("token=")
        return Redactor(self.conf, self.hadoop, {"token": token.partition(";")[0]})


class Reader(Interface):
    """One way to read a table."""

    name: ReaderName

    def read(self, table: str, version: int | None) -> TableState:
        """The state of `table` at `version` (None: the newest).

        Raises:
            TableError: when the table cannot be read.
            EngineError: when the engine behind the reader cannot be used at all.
        """
        ...
