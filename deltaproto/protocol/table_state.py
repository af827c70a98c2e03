"""The results of table readers, and their shared types.

Several readers (`log`, `delta_rs`, `spark`) read one table: each returns a `TableState` or raises
a `TableError`. Facts that a reader did not check are None or missing, never guessed.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.column_bounds import ColumnBounds
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
    """Oddities found by a reader; each one is a finding's evidence."""

    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    COMMIT_UNREADABLE = "commit-unreadable"
    CHECKSUM_CONTRADICTS = "checksum-contradicts"
    SEVERAL_PROTOCOLS = "several-protocols"
    NO_COMMIT_FILES = "no-commit-files"
    MISNAMED_FILES = "misnamed-files"
    METADATA_INCOMPLETE = "metadata-incomplete"
    METADATA_UNREADABLE = "metadata-unreadable"
    """in such a way that Delta Spark refuses every statement, too"""
    STAGED_COMMITS = "staged-commits"


class Note(NamedTuple):
    """One oddity, described in one line."""

    kind: NoteKind
    message: str


class ProtocolChange(NamedTuple):
    """One commit that stored a protocol, within the available log."""

    version: int
    protocol: Protocol
    commit_info: Mapping[str, Any]
    """the commit's provenance as stored; empty if not recorded"""


class TableState(NamedTuple):
    """A table at one version, as seen by one reader.

    `domains` maps each live metadata domain to its configuration; None if the reader cannot read
    domains. `traces` contains only checked traces. `changes` yields the protocol changes, oldest
    first, and reads more of the log; None if the reader cannot.
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
    last_commit: Mapping[str, Any] | None = None
    """commitInfo of this version as stored; empty if the commit has none; None: not read"""
    changes: Callable[[], tuple[ProtocolChange, ...]] | None = None
    confirmed: bool = False
    """True if the catalog that manages the table confirmed that this is its newest version"""
    bounds: ColumnBounds | None = None
    """the statistics of data files, including columns that are not indexed; None: not requested"""


class UnsupportedProtocol(TableError):
    """A protocol that no reader can interpret; includes the stored protocol."""

    def __init__(self, message: str, hint: str, version: int, protocol: Protocol) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_PROTOCOL, message, hint)
        self.version = version
        self.protocol = protocol


class SparkSettings(NamedTuple):
    """Spark connection: `remote` is a Spark Connect URL, `conf` adds or overrides settings."""

    remote: str | None = None
    conf: Mapping[str, str] = _NOTHING
    show_log: bool = False
    """True: show Spark's own output on stderr"""
    hadoop: Mapping[str, str] = _NOTHING
    """settings for access to object stores; `conf` takes precedence"""
    stores: frozenset[str] = frozenset()
    """URI schemes of the tables to read, for a session started for them"""

    def reaching(self, *places: str) -> "SparkSettings":
        """Return settings that also cover tables at these places; others are ignored."""
        schemes = {place.partition("://")[0].lower() for place in places if "://" in place}
        return self if schemes <= self.stores else self._replace(stores=self.stores | schemes)

    @property
    def redact(self) -> "Redactor":
        """A redactor for these settings in Spark's texts."""
        from deltaproto.redaction import Redactor

        _, _, token = (self.remote or "").partition("token=")
        return Redactor(self.conf, self.hadoop, {"token": token.partition(";")[0]})


class Reader(Interface):
    """One way to read a table."""

    name: ReaderName

    def read(self, table: str, version: int | None) -> TableState:
        """Return the state of `table` at `version` (None: the newest).

        Raises:
            TableError: if the table cannot be read.
            EngineError: if the reader's engine is unavailable.
        """
        ...
