"""The request for an inspection, and its two possible results."""

from __future__ import annotations

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
    """What `--reader` takes: `auto` is the log for paths and URIs, Spark for catalog names."""

    AUTO = "auto"
    LOG = "log"
    DELTA_RS = "delta-rs"
    SPARK = "spark"
    ALL = "all"


class ReadRequest(NamedTuple):
    """How tables are to be read."""

    reader: ReaderChoice = ReaderChoice.AUTO
    version: int | None = None
    use_checksums: bool = True
    look_in_files: bool = False
    activity: bool = False
    storage_options: Mapping[str, str] = MappingProxyType({})
    spark: SparkSettings = SparkSettings()


class Inspection(NamedTuple):
    """One table that could be read."""

    subject: RuleContext
    isolation: Isolation
    row_level: RowLevelConcurrency
    findings: tuple[Finding, ...]
    complete: bool
    """False when the answer may miss something: a catalog's commits, an engine that is missing"""
    readers: Mapping[ReaderName, TableState | TableError] | None = None
    """each reader's answer, when all were asked"""
    activity: Activity | TableError | None = None
    """who writes here, when that was asked for, or why it cannot be told"""
    requested_version: int | None = None
    """the older version that was asked for; None: the newest was read"""

    @property
    def state(self) -> TableState:
        return self.subject.state


class Unreadable(NamedTuple):
    """One table without an answer, and why."""

    table: str
    error: TableError
    readers: Mapping[ReaderName, TableState | TableError] | None = None
