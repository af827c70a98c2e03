"""System tables of Databricks as sources: exported as a Delta table, or read by name through Spark.

Maintenance rewrites their files, so counted rows cannot be recognized by their files. A
run counts the rows up to a time, and the next run counts those after it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from deltaproto.errors import DeltaprotoError, ErrorCode, TableError
from deltaproto.fleet.schemas import is_table
from deltaproto.fleet.seen.log_files import CountedFile, LogFile, RowsQuery
from deltaproto.fleet.seen.log_lines import Parsed
from deltaproto.fleet.seen.log_records import parse_time
from deltaproto.fleet.seen.system_tables import SystemTable, find_system_table
from deltaproto.interrupts import interruptible
from deltaproto.location import LocationKind, locate
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from deltaproto.sql.quoting import parse_name, quote_identifier
from deltaproto.tables.engine_errors import first_line, spark_first_line

_HELD_BACK = 6 * 3_600_000
"""milliseconds before the newest row from which a later run counts: rows arrive hours late"""
_PARTS = 3
_SUFFIXES = ("csv", "gz", "json", "jsonl", "log", "parquet", "txt")
"""last parts of names of files"""
_HINT = "pass system.access.audit, system.access.table_lineage or system.query.history"


class _Source(Protocol):
    """A table that answers queries."""

    def columns(self) -> list[str]: ...

    def rows(self, columns: str, where: str) -> Iterable[Mapping[str, Any]]: ...

    def quoted(self, column: str) -> str: ...

    def moment(self, milliseconds: int) -> str: ...


def find_log_table(
    name: str,
    options: Mapping[str, str],
    spark: SparkSettings,
    counted: Collection[CountedFile],
    *,
    storing: bool,
) -> LogFile | None:
    """Return the system table at a path or URI, or with a three-part name; None if it is not one.

    Args:
        counted: the time up to which earlier runs counted its rows.
        storing: whether a later run counts what this run leaves uncounted.

    Raises:
        TableError: when it is another table, or cannot be read.
        EngineError: when a name needs Spark and it is not available.
    """
    location = locate(name)
    if location.kind is LocationKind.NAME:
        parts = parse_name(name)
        if len(parts) != _PARTS or parts[-1].lower() in _SUFFIXES:
            return None
        return _open(name, _SparkTable(parts, spark), counted, storing=storing)
    folder = location.path_or_uri
    if os.path.basename(folder.rstrip("/")) == "_delta_log" or not is_table(name, options):
        return None
    return _open(location.uri, _DeltaTable(folder, options), counted, storing=storing)


def _open(
    name: str, source: _Source, counted: Collection[CountedFile], *, storing: bool
) -> LogFile:
    names = source.columns()
    table = find_system_table(names)
    if table is None:
        message = f"{name} is a table, and not a system table of Databricks"
        raise TableError(ErrorCode.NOT_FOUND, message, _HINT)
    actual = {each.lower(): each for each in names}
    time = source.quoted(next(actual[each] for each in table.time if each in actual))
    (row,) = source.rows(f"max({time}) AS newest", "true")
    newest = parse_time(row["newest"])
    known = [each.size for each in counted if each.name == name and each.size is not None]
    after = max(known, default=None)
    if newest is None:
        return LogFile(name, _unopened, after, requests=lambda: iter(()))
    # Times are in microseconds, and all rows of one millisecond count together.
    upto = newest - _HELD_BACK if storing else newest + 1
    if after is not None:
        upto = max(upto, after)
    where = f"{time} <= {source.moment(upto)}"
    if after is not None:
        where += f" AND {time} > {source.moment(after)}"
    columns = ", ".join(map(source.quoted, table.wanted(names)))
    requests = partial(_parsed, table, source, columns, where)
    query = None
    if isinstance(source, _SparkTable):
        query = RowsQuery(table, source.sql(columns, where))
    return LogFile(name, _unopened, upto, requests=requests, query=query)


def _parsed(table: SystemTable, source: _Source, columns: str, where: str) -> Iterator[Parsed]:
    yield from table.parsed(source.rows(columns, where))


def _unopened() -> Any:
    raise AssertionError("a table is not opened as a file")


class _DeltaTable:
    """A Delta table, through delta-rs."""

    def __init__(self, folder: str, options: Mapping[str, str]) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        self._folder, self._redact = folder, Redactor(options)
        try:
            opened = partial(DeltaTable, folder, storage_options=dict(options) or None)
            self._table = interruptible(opened)
        except (DeltaError, OSError) as error:
            raise self._error(error) from None

    def columns(self) -> list[str]:
        return [field.name for field in self._table.schema().fields]

    def rows(self, columns: str, where: str) -> Iterator[Mapping[str, Any]]:
        import pyarrow as pa
        from deltalake import QueryBuilder
        from deltalake.exceptions import DeltaError

        sql = f"SELECT {columns} FROM logged WHERE {where}"  # noqa: S608  quoted
        try:
            asked = QueryBuilder().register("logged", self._table)
            found = pa.RecordBatchReader.from_stream(interruptible(partial(asked.execute, sql)))
            while (batch := interruptible(partial(next, found, None))) is not None:
                yield from batch.to_pylist()
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> TableError:
        message = f"cannot read {self._folder}: {self._redact(first_line(error))}"
        return TableError(ErrorCode.STORAGE, message, "export the system table again")

    def quoted(self, column: str) -> str:
        return '"' + column.replace('"', '""') + '"'

    def moment(self, milliseconds: int) -> str:
        return f"to_timestamp_millis({milliseconds})"


class _SparkTable:
    """A table by its name, through Spark."""

    def __init__(self, parts: list[str], spark: SparkSettings) -> None:
        from deltaproto.tables.session import spark_session

        self._session = spark_session(spark)
        self._name = ".".join(map(quote_identifier, parts))

    def columns(self) -> list[str]:
        try:
            return list(self._session.table(self._name).columns)
        except Exception as error:
            raise self._error(error) from None

    def sql(self, columns: str, where: str) -> str:
        return f"SELECT {columns} FROM {self._name} WHERE {where}"  # noqa: S608  quoted

    def rows(self, columns: str, where: str) -> Iterator[Mapping[str, Any]]:
        from deltaproto.tables.session import open_query

        try:
            found = open_query(self._session, self.sql(columns, where))
            for row in found.toLocalIterator():
                values = row.asDict(recursive=True)
                # Spark returns times in the zone of this process, without a zone.
                yield {
                    name: value.astimezone(UTC) if isinstance(value, datetime) else value
                    for name, value in values.items()
                }
        except Exception as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> DeltaprotoError:
        if isinstance(error, DeltaprotoError):
            return error
        message = f"cannot read {self._name}: {spark_first_line(error)}"
        return TableError(ErrorCode.NOT_FOUND, message, "check its name and your permissions")

    def quoted(self, column: str) -> str:
        return quote_identifier(column)

    def moment(self, milliseconds: int) -> str:
        return f"timestamp_millis({milliseconds})"
