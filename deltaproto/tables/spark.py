"""The `spark` reader: public SQL only, so that it works the same over Spark Connect.

SQL does not show whether a list is empty or absent, column metadata, or domains: they are
unknown. Features are assigned to the reader or writer list by their kind, because SHOW
TBLPROPERTIES lists supported features without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaproto.errors import EngineError, ErrorCode, TableError
from deltaproto.location import Location, LocationKind, locate
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.stored_secrets import hide_in_addresses
from deltaproto.protocol.table_state import ReaderName, SparkSettings, TableState
from deltaproto.redaction import Redactor
from deltaproto.sql.quoting import sql_table_name
from deltaproto.tables.engine_errors import (
    first_line,
    is_connection_lost,
    lost_engine_error,
    spark_message,
)
from deltaproto.tables.log.add_flaws import FLAWS
from deltaproto.tables.session import (
    PYSPARK_MISSING,
    spark_session,
    sql_rows,
    unknown_name_hint,
)
from deltaproto.tables.storage.through_spark import find_unreachable_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 5
_MOST_STAGED = 1000
"""maximum number of commits that a catalog may have staged"""
_FEATURE = "delta.feature."
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
# Spark 3.5 has no error class for this.
_VIEW = re.compile(r" is a view\. '[A-Z ]+' expects a table")


class SparkReader:
    """Reads tables with Spark SQL. The session is started for the first table."""

    name = ReaderName.SPARK

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self._settings = settings or SparkSettings()

    def read(self, table: str, version: int | None = None) -> TableState:
        """Read the state that Spark's SQL shows.

        Raises:
            TableError: when Spark rejects the table, with its error class.
            EngineError: when Spark is not available.
        """
        if version is not None:
            raise TableError(
                ErrorCode.NOT_FOUND,
                "Spark's SQL shows the protocol of the newest version only",
                "use --reader log for an older version",
            )
        location = locate(table)
        session = self._session(location)
        try:
            state = _read(session, location)
        except TableError:
            raise
        except Exception as error:
            raise _refusal_error(error, self._settings.redact, session) from None
        return state._replace(traces=read_local_layout(state.location))

    def _session(self, location: Location) -> Any:
        try:
            return spark_session(self._settings.reaching(location.uri))
        except EngineError as error:
            if location.kind is not LocationKind.NAME or error.message != PYSPARK_MISSING:
                raise
            raise EngineError(
                f"there is no file or folder {location.text}; as a catalog name it needs Spark, "
                f"and {error.message}",
                f"check the path; or name the catalog, as in uc://HOST/{location.text} (also "
                f"glue:// and hms://); or {error.hint}",
            ) from None

    def ratified(self, table: str) -> dict[int, int]:
        """Return the table's newest versions in its catalog, with their in-commit timestamps.

        Raises:
            TableError: when Spark rejects the table, with its error class.
            EngineError: when Spark is not available.
        """
        location = locate(table)
        session = self._session(location)
        try:
            rows = sql_rows(
                session,
                f"DESCRIBE HISTORY {sql_table_name(location)} LIMIT {_MOST_STAGED}",
                *("version", "unix_millis(timestamp)"),
            )
        except Exception as error:
            raise _refusal_error(error, self._settings.redact, session) from None
        return {int(row[0]): int(row[1]) for row in rows}


def read_local_layout(location: str) -> dict[Trace, bool]:
    """Read the layout from the log if it is on this machine, because SQL does not show it."""
    from deltaproto.tables.log.reader import LogReader

    try:
        if locate(location).path is None:
            return {}
        found = LogReader(every_commit=True).read(location).traces
    except TableError:
        return {}
    return {trace: shown for trace, shown in found.items() if trace in _LAYOUT}


_LAYOUT = (
    Trace.ABSOLUTE_PATHS,
    Trace.NON_ASCII_PATHS,
    Trace.ESCAPED_PATHS,
    Trace.HIDDEN_PARTITIONS,
    Trace.STORED_PARTITIONS,
    Trace.ISO_TIMESTAMPS,
    Trace.MIXED_TIMESTAMPS,
    Trace.MISFIT_VALUES,
    Trace.NEGATIVE_DECIMALS,
    Trace.UNWIDENED_VALUES,
    Trace.DELTA_RS_FILES,
    Trace.DELTA_RS_REWRITES,
    Trace.BYTE_ORDER_MARK,
    *FLAWS,
)


def _read(session: SparkSession, location: Location) -> TableState:
    name = sql_table_name(location)
    for _ in range(_ATTEMPTS):
        # Three statements, each on its own snapshot: consistent only if no commit came in between.
        version = _version(session, name)
        detail = sql_rows(session, f"DESCRIBE DETAIL {name}")[0].asDict()
        shown = sql_rows(session, f"SHOW TBLPROPERTIES {name}")
        if version == _version(session, name):
            return _state(location, version, detail, {row[0]: row[1] for row in shown})
    raise TableError(
        ErrorCode.TIMEOUT,
        f"{location.text} changed {_ATTEMPTS} times while Spark was reading it",
        "run again when the table is idle, or use --reader log",
    )


def _state(
    location: Location, version: int, detail: Mapping[str, Any], properties: Mapping[str, str]
) -> TableState:
    if detail.get("format") != "delta":
        raise TableError(
            ErrorCode.NOT_A_DELTA_TABLE, f"{location.text} is not a Delta table for Spark"
        )
    return TableState(
        table=location.text,
        location=location.uri
        if location.kind is not LocationKind.NAME
        else str(detail["location"]),
        reader=ReaderName.SPARK,
        version=version,
        protocol=_parse_protocol(properties),
        metadata=Metadata(
            id=detail.get("id"),
            name=None if location.kind is not LocationKind.NAME else detail.get("name"),
            partition_columns=tuple(detail.get("partitionColumns") or ()),
            configuration=dict(detail.get("properties") or {}),
        ),
        clustering_columns=_clustering_columns(detail),
    )


def _version(session: SparkSession, name: str) -> int:
    return int(sql_rows(session, f"DESCRIBE HISTORY {name} LIMIT 1")[0]["version"])


def _clustering_columns(detail: Mapping[str, Any]) -> tuple[str, ...] | None:
    columns = detail.get("clusteringColumns")
    return None if columns is None else tuple(map(hide_in_addresses, columns))


def _parse_protocol(properties: Mapping[str, str]) -> Protocol:
    reader = int(properties["delta.minReaderVersion"])
    writer = int(properties["delta.minWriterVersion"])
    names = sorted(key[len(_FEATURE) :] for key in properties if key.startswith(_FEATURE))
    for_readers = [
        name
        for name in names
        if feature_catalog.feature_record(name).kind is FeatureKind.READER_WRITER
    ]
    return Protocol.stored(
        {
            "minReaderVersion": reader,
            "minWriterVersion": writer,
            "readerFeatures": for_readers if reader >= 3 else None,
            "writerFeatures": names if writer >= 7 else None,
        }
    )


_CODES: tuple[tuple[str, ErrorCode], ...] = (
    ("CATALOG_MANAGED", ErrorCode.CATALOG_MANAGED),
    ("UNSUPPORTED_FEATURES", ErrorCode.UNSUPPORTED_PROTOCOL),
    ("INVALID_PROTOCOL_VERSION", ErrorCode.UNSUPPORTED_PROTOCOL),
    ("MISSING_DELTA_TABLE", ErrorCode.NOT_A_DELTA_TABLE),
    ("DELTA_TABLE_ONLY_OPERATION", ErrorCode.NOT_A_DELTA_TABLE),
    ("ONLY_ON_DELTA_TABLE", ErrorCode.NOT_A_DELTA_TABLE),
    ("DELTA_ONLY_OPERATION", ErrorCode.NOT_A_DELTA_TABLE),
    ("EXPECT_TABLE_NOT_VIEW", ErrorCode.NOT_A_DELTA_TABLE),
    ("TABLE_OR_VIEW_NOT_FOUND", ErrorCode.NOT_FOUND),
    ("TABLE_NOT_FOUND", ErrorCode.NOT_FOUND),
    ("PATH_DOES_NOT_EXIST", ErrorCode.NOT_FOUND),
    ("SCHEMA_NOT_FOUND", ErrorCode.NOT_FOUND),
    ("CATALOG_NOT_FOUND", ErrorCode.NOT_FOUND),
    # Spark takes a missing catalog for a part of the schema's name.
    ("REQUIRES_SINGLE_PART_NAMESPACE", ErrorCode.NOT_FOUND),
    ("FILE_NOT_FOUND", ErrorCode.NOT_FOUND),
    ("PERMISSION", ErrorCode.PERMISSION_DENIED),
)
_HINTS = {
    ErrorCode.NOT_FOUND: "check the name; a path is written with a slash, as in ./orders",
    ErrorCode.NOT_A_DELTA_TABLE: "DESCRIBE TABLE EXTENDED shows what the name refers to",
}


def _refusal_error(
    error: BaseException, redact: Redactor, session: SparkSession | None = None
) -> TableError:
    text = spark_message(error)
    if is_connection_lost(text):
        return lost_engine_error(error)
    match = _ERROR_CLASS.search(text)
    error_class = match[1] if match else ""
    if not error_class and _VIEW.search(text):
        error_class = "EXPECT_TABLE_NOT_VIEW"
    message = redact(first_line(Exception(text)))
    if not error_class and (refused := find_unreachable_cause(text)):
        return TableError(refused.code, f"spark: {refused.cause or message}", refused.hint)
    code = next((code for part, code in _CODES if part in error_class), ErrorCode.CORRUPT_LOG)
    hint = _HINTS.get(code, "")
    if code is ErrorCode.NOT_FOUND and session is not None:
        hint = unknown_name_hint(hint, session)
    return TableError(code, f"spark: {message}", hint)
