"""Inspections, histories and conflicts of one table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltaproto.app.arguments import (
    NONE,
    TableSource,
    connection_options,
    parse_choice,
    require_type,
    table_name,
)
from deltaproto.app.result import Result, findings_failure, show_in_notebooks
from deltaproto.conflicts.operation import Cell
from deltaproto.conflicts.query import (
    MatrixQuery,
    PendingStatement,
    RowLevel,
    parse_compute,
    parse_engine,
    parse_exception,
    parse_isolation_level,
    parse_operation,
)
from deltaproto.conflicts.table_matrix import ConflictReport as _ConflictReport
from deltaproto.conflicts.table_matrix import build_conflict_report
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError, TableError, UsageError
from deltaproto.inspection import ReadRequest, Unreadable, interface
from deltaproto.inspection import inspect_table as _inspect_table
from deltaproto.inspection.activity import Activity
from deltaproto.inspection.history import ProtocolHistory, table_history
from deltaproto.inspection.history_events import Event
from deltaproto.inspection.interface import Inspection as _Inspection
from deltaproto.inspection.interface import ReaderChoice
from deltaproto.policy.finding import Finding
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document

# `interface` does not import it, because most starts need no activity. typing.get_type_hints needs
# it.
vars(interface)["Activity"] = Activity
show_in_notebooks(Cell, Event, FeatureState, Finding, Protocol)


class Inspection(Result, _Inspection):
    """The inspection of one table at one version."""

    @property
    def table(self) -> str:
        """The table as it was named."""
        return self.state.table

    @property
    def location(self) -> str:
        """The absolute URI."""
        return self.state.location

    @property
    def version(self) -> int:
        """The table's version."""
        return self.state.version

    @property
    def reader(self) -> str:
        """The reader that was used: log, delta-rs or spark."""
        return str(self.state.reader)

    @property
    def protocol(self) -> Protocol:
        """The protocol as stored."""
        return self.state.protocol

    @property
    def lowest_protocol(self) -> Protocol | None:
        """The lowest protocol with the same features; None if the stored one is invalid."""
        return self.subject.lowest

    @cached_property
    def features(self) -> Mapping[str, FeatureState]:
        """The supported features by name, sorted."""
        return {each.name: each for each in self.subject.features}

    @property
    def configuration(self) -> Mapping[str, str | None]:
        """The table properties."""
        return self.state.metadata.configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns."""
        return self.state.metadata.partition_columns

    @property
    def clustering_columns(self) -> tuple[str, ...] | None:
        """The clustering columns; None if the reader cannot read them."""
        return self.state.clustering_columns

    def _failure(self) -> DeltaprotoError | None:
        return findings_failure(self, self.table, self.findings, complete=self.complete)

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of `tables` in the JSON of `inspect`."""
        from deltaproto.render.inspection_json import table_fields

        return table_fields(self)

    def _document(self) -> Document:
        from deltaproto.render.inspection import inspection_document

        return inspection_document([self])

    def __repr__(self) -> str:
        return (
            f"<Inspection {self.table}: version {self.version}, protocol {self.protocol}, "
            f"{counted(len(self.features), 'feature')}, {counted(len(self.findings), 'finding')}>"
        )


class History(Result):
    """The protocol history of one table, to the extent that its log shows it."""

    def __init__(self, table: str, history: ProtocolHistory) -> None:
        self.table = table
        """the table as it was named"""
        self._history = history

    @property
    def events(self) -> tuple[Event, ...]:
        """The commits that changed protocol, features, constraints or isolation; newest first."""
        return tuple(self._history.events)

    @property
    def problems(self) -> tuple[tuple[int, TableError], ...]:
        """The versions that could not be read, each with the reason."""
        return tuple(self._history.problems)

    @property
    def complete(self) -> bool:
        """True if none of the remaining commits is missing, and all could be read."""
        return self._history.complete

    @property
    def oldest_version(self) -> int | None:
        """The oldest version that was read; older commits are unknown."""
        return self._history.oldest_version_seen

    def _failure(self) -> DeltaprotoError | None:
        if self.complete:
            return None
        message = f"{self.table}: not every commit could be read"
        return ResultError(self, ExitCode.UNREADABLE, message, "see `problems`")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `history`."""
        from deltaproto.render.history import history_fields

        return history_fields(self.table, self._history)

    def _document(self) -> Document:
        from deltaproto.render.history import history_document

        return history_document(self.table, self._history)

    def __repr__(self) -> str:
        return f"<History {self.table}: {counted(len(self.events), 'change')}>"


class ConflictReport(Result, _ConflictReport):
    """Which concurrent operations conflict, on one table or on any."""

    def _failure(self) -> DeltaprotoError | None:
        return findings_failure(self, self.table or "any table", (), complete=self.complete)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `conflicts`."""
        from deltaproto.render.conflicts import conflicts_fields

        return conflicts_fields(self)

    def _document(self) -> Document:
        from deltaproto.render.conflicts import conflicts_document

        return conflicts_document(self)

    def __repr__(self) -> str:
        about = self.table or f"any table on {self.question.engine}"
        return f"<ConflictReport {about}: {counted(len(self.cells), 'cell')}>"


def inspect_table(
    table: TableSource,
    *,
    reader: str = "auto",
    version: int | None = None,
    look_in_files: bool = False,
    activity: bool = False,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Inspection:
    """Inspect one table: protocol, layers of features, isolation level and findings.

    Args:
        table: a path, a URI or a catalog name (`uc://HOST/NAME`); a `pathlib.Path`; or a
        `deltalake.DeltaTable`, whose newest version is inspected.
        reader: auto, log, delta-rs, spark or all.
        version: the table's version; None: the newest.
        look_in_files: search every live file for traces of features, and read the statistics of
            every data file.
        activity: also read recent writers, how often they commit, and idle hours.
        storage_options: as in deltalake.
        spark_remote: a Spark Connect URL.
        spark_conf: settings of a Spark session that is started here.

    Raises:
        UsageError: for an invalid request for this table.
        TableError: when the table cannot be read; `code` is the reason.
    """
    require_type(version, int, "version", "a number")
    request = ReadRequest(
        reader=parse_choice(ReaderChoice, reader, "reader"),
        version=version,
        look_in_files=look_in_files,
        activity=activity,
    )
    result = read_table(table, request, storage_options, spark_remote, spark_conf)
    if isinstance(result, Unreadable):
        raise result.error
    return Inspection._make(result)


def read_table(
    table: TableSource,
    request: ReadRequest,
    storage_options: Mapping[str, str],
    spark_remote: str | None,
    spark_conf: Mapping[str, str],
) -> _Inspection | Unreadable:
    """Return the inspection of one table, or the reason why it cannot be read.

    Raises UsageError.
    """
    by = connection_options(table, storage_options, spark_remote, spark_conf)
    request = request._replace(storage_options=by.storage_options, spark=by.spark)
    return _inspect_table(table_name(table), request)


def history(
    table: TableSource,
    *,
    limit: int | None = None,
    since: datetime | None = None,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> History:
    """Read which commits changed a table's protocol, features or isolation level, and why.

    Args:
        table: as for `inspect_table`.
        limit: the newest events only; None: all.
        since: events from this time on; a time without a zone is UTC.

    Raises:
        UsageError: for a limit below 1.
        TableError: when the table cannot be read.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit {limit} is less than 1", "leave it out to read all events")
    by = connection_options(table, storage_options, spark_remote, spark_conf)
    require_type(since, datetime, "since", "a datetime.datetime")
    start = None if since is None else since if since.tzinfo else since.replace(tzinfo=UTC)
    name = table_name(table)
    found = table_history(
        name,
        by.storage_options,
        by.spark,
        limit=limit,
        since=None if start is None else int(start.timestamp() * 1000),
    )
    return History(name, found)


def find_conflicts(
    table: TableSource | None = None,
    *,
    sql: str | None = None,
    operation: str | None = None,
    against: str | None = None,
    exception: str | None = None,
    engine: str = "databricks",
    runtime: str | None = None,
    photon: bool | None = None,
    isolation: str | None = None,
    row_level_concurrency: str = "auto",
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> ConflictReport:
    """Return which concurrent operations conflict, and how to avoid it.

    Args:
        table: as for `inspect_table`; None: any table of the engine.
        sql: a pending statement to classify, instead of `operation`.
        operation: the operation that commits last, and may fail; None: all.
        against: the operation that commits first; None: all.
        exception: only the cells that raise this exception.
        engine: databricks, delta-spark, or delta-rs with or without a version.
        runtime: the Databricks Runtime that writes, such as 14.3.
        photon: whether it runs Photon; None: unknown.
        isolation: the isolation level to assume instead of the table's.
        row_level_concurrency: auto, on or off.

    Raises:
        UsageError: for an unknown name, or arguments that contradict each other.
        TableError: when the table cannot be read.
    """
    if sql is not None and operation is not None:
        raise UsageError(
            "sql and operation cannot be used together", "leave out operation: sql determines it"
        )
    statement = None
    if sql is not None:
        from deltaproto.conflicts.classify import classify

        statement = PendingStatement(sql, classify(sql))
    named, release = parse_engine(engine, "engine")
    query = MatrixQuery(
        engine=named,
        release=release,
        isolation=parse_isolation_level(isolation, "isolation"),
        row_level=parse_choice(RowLevel, row_level_concurrency, "row_level_concurrency"),
        compute=parse_compute(runtime, photon, None, "runtime"),
        operation=parse_operation(operation, "operation"),
        against=parse_operation(against, "against"),
        exception=parse_exception(exception, "exception"),
        statement=statement,
    )
    inspection = None
    if table is not None:
        inspection = inspect_table(
            table,
            storage_options=storage_options,
            spark_remote=spark_remote,
            spark_conf=spark_conf,
        )
    return ConflictReport._make(build_conflict_report(query, inspection))
