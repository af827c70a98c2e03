"""The request for an inspection, and its two possible results."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import TableError
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding
from deltaproto.protocol.isolation import Isolation, RowLevelConcurrency
from deltaproto.protocol.table_state import ReaderName, SparkSettings, TableState

if TYPE_CHECKING:
    from deltaproto.inspection.activity import Activity


class ReaderChoice(StrEnum):
    """Values of `--reader`. `auto` is the log for paths and URIs, and Spark for catalog names."""

    AUTO = "auto"
    LOG = "log"
    DELTA_RS = "delta-rs"
    SPARK = "spark"
    ALL = "all"


class ReadRequest(NamedTuple):
    """How to read tables."""

    reader: ReaderChoice = ReaderChoice.AUTO
    version: int | None = None
    use_checksums: bool = True
    look_in_files: bool = False
    activity: bool = False
    storage_options: Mapping[str, str] = MappingProxyType({})
    spark: SparkSettings = SparkSettings()


class Inspection(NamedTuple):
    """The inspection of one table."""

    subject: RuleContext
    isolation: Isolation
    """the declared isolation level, and each engine's effective one"""
    row_level: RowLevelConcurrency
    findings: tuple[Finding, ...]
    """the findings of the rules, worst first"""
    complete: bool
    """False if the result may be incomplete: unpublished commits, or a missing engine"""
    readers: Mapping[ReaderName, TableState | TableError] | None = None
    """each reader's result, if all were requested"""
    activity: "Activity | TableError | None" = None
    """recent writers if requested, or why they are unknown"""
    requested_version: int | None = None
    """the requested older version; None: the newest was read"""

    @property
    def state(self) -> TableState:
        return self.subject.state


class Unreadable(NamedTuple):
    """A table without a result, and the reason."""

    table: str
    error: TableError
    readers: Mapping[ReaderName, TableState | TableError] | None = None
    findings: tuple[Finding, ...] = ()
    """findings that need no log, such as a catalog entry for a missing table"""
