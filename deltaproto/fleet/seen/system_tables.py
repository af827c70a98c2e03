"""Rows of Databricks' system tables: the audit log, table lineage and the query history.

Sources: Databricks, "Audit log system table reference", "Configure audit log delivery", "Lineage
system tables reference", "Query history system table reference" and "Audit and monitor data
sharing". A row names tables, by name or by location, and no object. Lineage and the query history
have only what ran on Databricks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any, NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.seen.log_formats import (
    LogFormat,
    Place,
    Request,
    RequestKind,
    TableUse,
    find_place,
)
from deltaproto.fleet.seen.log_records import mark_undated, parse_time
from deltaproto.fleet.seen.uses import PrincipalKind
from deltaproto.sql.quoting import parse_name
from deltaproto.sql.tokens import scan_tokens

RUNTIME = "databricks-runtime"
_LONGEST_STATEMENT = 100_000
"""characters; the rest of a statement names no table"""


class SystemTable(NamedTuple):
    """How one system table is recognized and read."""

    format: LogFormat
    required: frozenset[str]
    """columns that no other of these tables has together"""
    columns: tuple[str, ...]
    """the columns that are read, as far as a table has them"""
    time: tuple[str, ...]
    """when a row was written, or nearly so: the first of these columns that a table has"""
    parse: Callable[[Mapping[str, Any]], Request]

    def wanted(self, names: Iterable[str]) -> list[str]:
        """Return the columns to read of those that a table has."""
        return [name for name in names if name.lower() in self.columns]

    def parsed(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[LogFormat, Request]]:
        """Yield the request of each row."""
        for row in rows:
            lower = {name.lower(): value for name, value in row.items()}
            request = self.parse(lower)
            if request.time is None:
                request = mark_undated(request, lower.get("event_time") or lower.get("start_time"))
            yield self.format, request


def find_system_table(columns: Iterable[str]) -> SystemTable | None:
    """Return the system table with these columns; None for another table."""
    names = {name.lower() for name in columns}
    return next((each for each in TABLES if each.required <= names), None)


def parse_system_row(row: Any) -> tuple[LogFormat, Request] | None:
    """Parse a row of one of the tables as a record; None for any other row."""
    if not isinstance(row, Mapping):
        return None
    row = _delivered(row)
    table = find_system_table(map(str, row))
    if table is None:
        return None
    return next(table.parsed([{str(name): value for name, value in row.items()}]))


def _delivered(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return an event of a delivered audit log with the names of the system table.

    In a diagnostic log of Azure, the members of the event are in `properties`.
    """
    properties = _members(row.get("properties"))
    if "actionName" in properties:
        named = {"userIdentity": row.get("identity"), "timestamp": row.get("time")}
        row = {**named, **properties}
    if "actionName" not in row:
        return row
    return {_DELIVERED.get(str(name), name): value for name, value in row.items()}


_DELIVERED = {
    "timestamp": "event_time",
    "actionName": "action_name",
    "requestParams": "request_params",
    "userIdentity": "user_identity",
    "userAgent": "user_agent",
    "sourceIPAddress": "source_ip_address",
}


def read_parquet(name: str, file: BufferedReader) -> Iterator[tuple[LogFormat, Request] | None]:
    """Yield each row of a Parquet file; None for the rows of another table.

    Raises:
        TableError: when the file cannot be read to its end.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.ParquetFile(file)
        names = found.schema_arrow.names
        table = find_system_table(names)
        if table is None:
            yield from (None for _ in range(found.metadata.num_rows))
            return
        for batch in found.iter_batches(columns=table.wanted(names)):
            yield from table.parsed(batch.to_pylist())
    except pa.ArrowException as error:
        message = f"{name} cannot be read to its end: {' '.join(str(error).split())}"
        raise TableError(ErrorCode.STORAGE, message, "the file is damaged; copy it again") from None


def _parse_audit(row: Mapping[str, Any]) -> Request:
    action, parameters = str(row["action_name"]), _members(row["request_params"])
    response, identity = _members(row.get("response")), _members(row.get("user_identity"))
    result = _members(response.get("result"))
    kind = _AUDITED.get(action, RequestKind.OTHER)
    name = _text(parameters.get("full_name_arg")) or _text(parameters.get("table_full_name"))
    path = _text(parameters.get("table_url")) or _text(result.get("path"))
    if path is not None:
        path = path.removeprefix("file: ").strip().rstrip("/").removesuffix("/_delta_log")
    if str(parameters.get("operation")).upper() == "READ_WRITE":
        kind = RequestKind.OTHER
    status = response.get("status_code", response.get("statusCode"))
    recipient = _text(parameters.get("recipient_name"))
    agent = _text(parameters.get("user_agent")) or _text(result.get("userAgent"))
    return Request(
        _place(path),
        parse_time(row.get("event_time")),
        kind,
        status is None or str(status).startswith("2"),
        agent or _text(row.get("user_agent")),
        recipient or next(filter(None, (_text(identity.get(name)) for name in _IDENTITY)), None),
        _text(row.get("source_ip_address")),
        TableUse(name if action in _AUDITED else None),
    )


_IDENTITY = ("email", "subject_name", "subjectName")
_AUDITED = {
    # `getTable` does not count: browsing a catalog also reads the description.
    "generateTemporaryTableCredential": RequestKind.READ,
    "generateTemporaryTableCredentials": RequestKind.READ,
    "deltaSharingQueryTable": RequestKind.READ,
    "deltaSharingQueryTableChanges": RequestKind.READ,
    "deltaSharingQueriedTable": RequestKind.READ,
    "deltaSharingQueriedTableChanges": RequestKind.READ,
}


def _parse_lineage(row: Mapping[str, Any]) -> Request:
    time, user = parse_time(row.get("event_time")), _text(row.get("created_by"))
    entity = _text(row.get("entity_type"))
    names = _entities(_members(row.get("entity_metadata")))
    named = _text(row.get("entity_id"))
    if entity is not None and named is not None and (kind := _ENTITIES.get(entity.upper())):
        names[kind] = named
    evidence = ("table_lineage.entity_type", entity or "null")

    def used(side: str, kind: RequestKind) -> Request | None:
        name, path = _text(row.get(f"{side}_table_full_name")), _text(row.get(f"{side}_path"))
        if name is None and path is None:
            return None
        use = TableUse(name, RUNTIME, tuple(names.items()), evidence)
        return Request(_place(path), time, kind, True, None, user, None, use)

    source = used("source", RequestKind.READ)
    target = used("target", RequestKind.WRITE)
    if source is None:
        nothing = Request(None, time, RequestKind.OTHER, True, None, user, None, TableUse(None))
        return target or nothing
    return source._replace(others=() if target is None else (target,))


_ENTITIES = {
    "JOB": PrincipalKind.JOB,
    "NOTEBOOK": PrincipalKind.NOTEBOOK,
    "PIPELINE": PrincipalKind.PIPELINE,
    **dict.fromkeys(("DASHBOARD", "DASHBOARD_V3", "DBSQL_DASHBOARD"), PrincipalKind.DASHBOARD),
    "DBSQL_QUERY": PrincipalKind.QUERY,
}


def _entities(source: Mapping[str, Any]) -> dict[PrincipalKind, str]:
    """Return the ids in `entity_metadata` of lineage, or in `query_source` of the history."""
    job, pipeline = _members(source.get("job_info")), _members(source.get("dlt_pipeline_info"))
    found = {
        PrincipalKind.JOB: _text(job.get("job_id")),
        PrincipalKind.NOTEBOOK: _text(source.get("notebook_id")),
        PrincipalKind.PIPELINE: _text(pipeline.get("dlt_pipeline_id"))
        or _text(source.get("pipeline_id")),
        PrincipalKind.DASHBOARD: _text(source.get("dashboard_id"))
        or _text(source.get("legacy_dashboard_id")),
        PrincipalKind.QUERY: _text(source.get("sql_query_id")),
    }
    return {kind: text for kind, text in found.items() if text is not None}


def _parse_query(row: Mapping[str, Any]) -> Request:
    time, user = parse_time(row.get("start_time")), _text(row.get("executed_by"))
    statement = _text(row.get("statement_text")) or ""
    reads = str(row.get("statement_type")).upper() == "SELECT"
    kind = RequestKind.READ if reads else RequestKind.OTHER
    names = _entities(_members(row.get("query_source")))
    compute = _members(row.get("compute"))
    cluster = _text(compute.get("cluster_id")) or _text(compute.get("warehouse_id"))
    if cluster is not None:
        names[PrincipalKind.CLUSTER] = cluster
    application = _text(row.get("client_application")) or _text(row.get("client_driver"))
    evidence = ("query_history.client_application", application or "null")
    done = str(row.get("execution_status", "FINISHED")).upper() == "FINISHED"
    requests = [
        Request(
            *(None, time, kind, done, None, user, None),
            TableUse(name, RUNTIME, tuple(names.items()), evidence),
        )
        for name in dict.fromkeys(map(str.lower, _named_tables(statement[:_LONGEST_STATEMENT])))
    ]
    if not requests:
        return Request(None, time, kind, done, None, user, None, TableUse(None))
    return requests[0]._replace(others=tuple(requests[1:]))


def _named_tables(statement: str) -> Iterator[str]:
    """Yield each name of three parts; some may be columns, which match no known table."""
    parts, dotted = list[str](), False
    for token in scan_tokens(statement):
        text = token.text
        if text == "." and parts and not dotted:
            dotted = True
            continue
        word = token.quoted or text.replace("_", "a").isalnum()
        if not (word and dotted):
            if len(parts) == _PARTS:
                yield ".".join(parts)
            parts = []
        if word:
            parts.append(token.value)
        dotted = False
    if len(parts) == _PARTS:
        yield ".".join(parts)


_PARTS = 3

TABLES = (
    SystemTable(
        LogFormat.DATABRICKS_AUDIT,
        frozenset({"action_name", "request_params", "user_identity"}),
        (
            *("event_time", "user_agent", "user_identity", "action_name", "request_params"),
            *("response", "source_ip_address"),
        ),
        ("event_time",),
        _parse_audit,
    ),
    SystemTable(
        LogFormat.DATABRICKS_LINEAGE,
        frozenset({"source_table_full_name", "target_table_full_name", "entity_type"}),
        (
            *("event_time", "created_by", "entity_type", "entity_id", "entity_metadata"),
            *("source_table_full_name", "source_path", "target_table_full_name", "target_path"),
        ),
        ("event_time",),
        _parse_lineage,
    ),
    SystemTable(
        LogFormat.DATABRICKS_QUERIES,
        frozenset({"statement_text", "executed_by", "start_time"}),
        (
            *("start_time", "end_time", "executed_by", "statement_text", "statement_type"),
            *("compute", "query_source", "client_application", "client_driver"),
            "execution_status",
        ),
        ("end_time", "start_time"),
        _parse_query,
    ),
)


def _place(path: str | None) -> Place | None:
    return None if path is None else find_place(path)


def _members(value: Any) -> Mapping[str, Any]:
    """Return a structure or a map; exports have them as JSON, and maps as lists of pairs."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    if isinstance(value, list | tuple):
        pairs = (each for each in value if isinstance(each, list | tuple) and len(each) == 2)
        return {str(name): one for name, one in pairs}
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value not in ("", "-", "null") else None


def table_name_key(text: str) -> str | None:
    """Return what recognizes a name of three parts, in which case does not matter; else None."""
    parts = parse_name(text)
    return ".".join(parts).lower() if len(parts) == _PARTS and all(parts) else None
