"""The schemas of the inventory's tables, for Arrow and Spark."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.location import Location, LocationKind, locate
from deltaproto.sql.quoting import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class Inventory(StrEnum):
    """The tables of an inventory."""

    SCANS = "scans"
    TABLES = "tables"
    FEATURES = "features"
    FINDINGS = "findings"
    ERRORS = "errors"
    CLIENTS_SEEN = "clients_seen"
    """written by `discover`, and not part of a scan"""


SCAN_PARTS = (Inventory.TABLES, Inventory.FEATURES, Inventory.FINDINGS, Inventory.ERRORS)
"""the tables with the rows of a scan; then its row in `scans` makes it visible"""


def is_inventory(
    name: str, storage_options: Mapping[str, str], error: TableError | None = None
) -> bool:
    """Return True if a path or URI is an inventory rather than a table.

    On an object store this takes one request, or two for an inventory. A store that does not
    answer has no inventory; reading the table then reports why.

    Args:
        error: why the place could not be read as a table, if that was tried. This saves the request
            for every place that is a table.
    """
    if error is not None and error.code is not ErrorCode.NOT_A_DELTA_TABLE:
        return False
    try:
        location = locate(name)
        if location.kind is LocationKind.URI:
            scans = locate(f"{location.uri}/{Inventory.SCANS}")
            return _has_log(scans, storage_options) and (
                error is not None or not _has_log(location, storage_options)
            )
    except TableError:
        return False
    if location.path is None:
        return False
    if os.path.isdir(os.path.join(location.path, "_delta_log")):
        return False
    logs = {name: os.path.join(location.path, name, "_delta_log") for name in Inventory}
    # If its first scan was stopped, an inventory has all tables but `scans`, which is written last.
    stopped = all(os.path.isdir(logs[name]) for name in SCAN_PARTS)
    return os.path.isdir(logs[Inventory.SCANS]) or stopped


def missing_inventory_error(where: str, *, exists: bool = True) -> UsageError:
    """Return the error of a place without an inventory; not `exists`: without a folder."""
    create = "create one with `deltaproto scan ROOT --inventory INVENTORY`"
    if not exists:
        return UsageError(
            f"{where} does not exist", f"check the path of the inventory, or {create}"
        )
    return UsageError(f"{where} is not an inventory", create)


def is_table(name: str, storage_options: Mapping[str, str]) -> bool:
    """Return True if a path or URI has a Delta log; False if its store does not answer.

    On an object store this takes one request.
    """
    try:
        location = locate(name)
        if location.path is not None:
            return os.path.isdir(os.path.join(location.path, "_delta_log"))
        return location.kind is LocationKind.URI and _has_log(location, storage_options)
    except TableError:
        return False


def require_inventory_folder(name: str, storage_options: Mapping[str, str]) -> None:
    """Refuse a Delta table, or a file, as the folder of an inventory.

    Raises:
        UsageError: if it is one.
    """
    hint = "name another folder"
    if is_table(name, storage_options):
        raise UsageError(
            f"{name} is a Delta table, not a folder for an inventory",
            f"{hint}: VACUUM would delete its files there",
        )
    path = locate(name).path
    if path is not None and os.path.exists(path) and not os.path.isdir(path):
        raise UsageError(f"{name} is a file, not a folder for an inventory", hint)


def _has_log(location: Location, storage_options: Mapping[str, str]) -> bool:
    from deltaproto.tables.storage import open_log

    try:
        return bool(open_log(location, storage_options, read_ahead=True).list())
    except TableError as error:
        if error.code is not ErrorCode.NOT_A_DELTA_TABLE:
            raise
        return False


NOT_SEARCHED = "not_searched"
"""the column of `scans` with the places that were not searched; older inventories lack it"""
LOG_DIGEST = "log_digest"
"""the column of `tables` by which the next scan recognizes an unchanged log"""
CATALOG_COLUMNS = ("catalog", "table_type", "columns_digest")
"""the columns of `tables` with the kind of catalog that listed a table, its type there, and the
number of columns in its log with digests of their names and types; null for a table that was not
found through a catalog; older inventories lack them"""
OTHER_NAMES = "other_names"
"""the column of `tables` and `errors` with further names of a location; if there are none,
null in `tables` and an empty list in `errors`; older inventories lack it"""
CATALOG_RULES = "DP5"
"""the first letters of the rules that compare tables with the entries of catalogs"""
KEYS = ("scan_id", "location", "table")
"""the first columns of all tables that a scan writes, except `scans`"""


@cache
def inventory_schema(name: Inventory) -> pa.Schema:
    """Return the columns of one of the inventory's tables."""
    import pyarrow as pa

    keys = [pa.field(key, pa.string(), nullable=False) for key in KEYS]
    match name:
        case Inventory.SCANS:
            return pa.schema(_scans())
        case Inventory.TABLES:
            return pa.schema([*keys, *_state()])
        case Inventory.FEATURES:
            return pa.schema([*keys, *_feature()])
        case Inventory.FINDINGS:
            return pa.schema([*keys, *_finding()])
        case Inventory.ERRORS:
            return pa.schema([*keys, *_error(), pa.field(OTHER_NAMES, pa.list_(pa.string()))])
        case Inventory.CLIENTS_SEEN:
            return pa.schema(_seen())


@cache
def rows_schema(name: Inventory) -> pa.Schema:
    """Return the columns that every inventory has and that describe tables.

    `log_digest`, `CATALOG_COLUMNS` and `OTHER_NAMES` are not among them: older inventories lack
    them.
    """
    import pyarrow as pa

    newer = (LOG_DIGEST, *CATALOG_COLUMNS, OTHER_NAMES)
    return pa.schema([field for field in inventory_schema(name) if field.name not in newer])


@cache
def staged_schema() -> pa.Schema:
    """Return a schema with one row per table, all its details nested."""
    import pyarrow as pa

    return pa.schema(
        [
            *(pa.field(key, pa.string(), nullable=False) for key in KEYS),
            *(field.with_nullable(True) for field in _state()),
            pa.field("features", pa.list_(pa.struct(_feature()))),
            pa.field("findings", pa.list_(pa.struct(_finding()))),
            pa.field("error", pa.struct(_error())),
        ]
    )


def _scans() -> list[pa.Field]:
    import pyarrow as pa

    text, moment, names = pa.string(), pa.timestamp("us", tz="UTC"), pa.list_(pa.string())
    members = {"kind": text, "number": pa.int64(), "first": text}
    places = pa.struct([pa.field(name, type_) for name, type_ in members.items()])
    return [
        pa.field("scan_id", text, nullable=False),
        pa.field("started_at", moment),
        pa.field("ended_at", moment),
        pa.field("seconds", pa.float64()),
        pa.field("roots", names),
        pa.field("included", names),
        pa.field("excluded", names),
        pa.field("policy", text),
        pa.field("engine", text),
        pa.field("tables", pa.int64()),
        pa.field("errors", pa.int64()),
        pa.field("findings", pa.int64()),
        pa.field("complete", pa.bool_()),
        pa.field(NOT_SEARCHED, pa.list_(places)),
        pa.field("host", text),
        pa.field("actor", text),
        pa.field("tool_version", text),
    ]


def _state() -> list[pa.Field]:
    import pyarrow as pa

    text, names, number = pa.string(), pa.list_(pa.string()), pa.int32()
    return [
        pa.field("version", pa.int64()),
        pa.field("id", text),
        pa.field("name", text),
        pa.field("reader", text),
        pa.field("min_reader_version", number),
        pa.field("min_writer_version", number),
        pa.field("reader_features", names),
        pa.field("writer_features", names),
        pa.field("lowest_reader_version", number),
        pa.field("lowest_writer_version", number),
        pa.field("isolation_level", text),
        pa.field("isolation_delta_spark", text),
        pa.field("isolation_databricks", text),
        pa.field("isolation_delta_rs", text),
        pa.field("row_level_concurrency", text),
        pa.field("partition_columns", names),
        pa.field("clustering_columns", names),
        pa.field("configuration", pa.map_(text, text)),
        pa.field("last_commit_at", pa.timestamp("us", tz="UTC")),
        pa.field("last_operation", text),
        pa.field("last_engine", text),
        pa.field("complete", pa.bool_()),
        pa.field(LOG_DIGEST, text),
        *(pa.field(name, text) for name in CATALOG_COLUMNS),
        pa.field(OTHER_NAMES, names),
    ]


def _feature() -> list[pa.Field]:
    import pyarrow as pa

    text, flag = pa.string(), pa.bool_()
    return [
        pa.field("feature", text),
        pa.field("kind", text),
        pa.field("status", text),
        pa.field("listed", flag),
        pa.field("implied", flag),
        pa.field("enabled", flag),
        pa.field("present", flag),
        pa.field("required_by", pa.list_(text)),
        pa.field("evidence", text),
    ]


def _finding() -> list[pa.Field]:
    import pyarrow as pa

    names = ("rule", "severity", "message", "hint", "feature", "client", "evidence")
    return [*(pa.field(name, pa.string()) for name in names), pa.field("number", pa.int32())]


def _error() -> list[pa.Field]:
    import pyarrow as pa

    return [
        *(pa.field(name, pa.string()) for name in ("code", "message", "hint")),
        pa.field("version", pa.int64()),
        pa.field("min_reader_version", pa.int32()),
        pa.field("min_writer_version", pa.int32()),
        pa.field("reader_features", pa.list_(pa.string())),
        pa.field("writer_features", pa.list_(pa.string())),
    ]


def _seen() -> list[pa.Field]:
    import pyarrow as pa

    text, number, names = pa.string(), pa.int64(), pa.list_(pa.string())
    moment = pa.timestamp("us", tz="UTC")
    times = pa.struct(
        [
            pa.field("count", number),
            pa.field("first", moment),
            pa.field("last", moment),
            pa.field("hours", pa.list_(pa.int32())),
        ]
    )
    usage = [
        pa.field("access", names),
        pa.field("commits", times),
        pa.field("requests", times),
    ]
    principal = pa.struct([pa.field("kind", text), pa.field("name", text), *usage])
    mark = pa.struct([pa.field("field", text), pa.field("value", text), pa.field("count", number)])
    file = pa.struct([pa.field("name", text), pa.field("size", number)])
    return [
        pa.field("run_id", text, nullable=False),
        pa.field("ran_at", moment),
        pa.field("location", text),
        pa.field("table", text),
        pa.field("table_id", text),
        pa.field("first_version", number),
        pa.field("last_version", number),
        pa.field("client", text),
        pa.field("client_version", text),
        pa.field("mark", text),
        pa.field("confidence", text),
        pa.field("could_be", names),
        pa.field("setting", text),
        *usage,
        pa.field("principals", pa.list_(principal)),
        pa.field("evidence", pa.list_(mark)),
        pa.field("files", pa.list_(file)),
    ]


def require_types(name: Inventory, found: Any) -> None:
    """Check that in a schema of deltalake, no column has another type than `scan` writes.

    Raises:
        TableError: corrupt-log, when one has.
    """
    from deltalake import Schema

    wanted, present = (
        {field["name"]: _plain(field["type"]) for field in json.loads(each.to_json())["fields"]}
        for each in (Schema.from_arrow(inventory_schema(name)), found)
    )
    for column, type_ in present.items():
        if type_ != wanted.get(column, type_):
            raise wrong_type_error(name, column, json.dumps(type_), json.dumps(wanted[column]))


def wrong_type_error(name: Inventory, column: str, found: str, wanted: str) -> TableError:
    """Return the error of an inventory column whose type differs from what `scan` writes."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"column {column} of the inventory's table {name} has the type {found}, not {wanted}",
        "the inventory is damaged; scan again with another --inventory",
    )


def missing_column_error(name: Inventory, column: str) -> TableError:
    """Return the error of an inventory that lacks a column that `scan` writes."""
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"the inventory's table {name} has no column {column}",
        "the inventory is damaged; scan again with another --inventory",
    )


def _plain(type_: Any) -> Any:
    """Return a Delta type without nullability and comments, which differ by engine."""
    if isinstance(type_, list):
        return [_plain(each) for each in type_]
    if not isinstance(type_, dict):
        return type_
    ignored = ("nullable", "containsNull", "valueContainsNull", "metadata")
    return {key: _plain(value) for key, value in type_.items() if key not in ignored}


def inventory_table_sql(inventory: str, name: Inventory) -> str:
    """Return the name of one of the inventory's tables in Spark statements."""
    return f"delta.{quote_identifier(f'{inventory}/{name}')}"


def columns_ddl(columns: pa.Schema) -> str:
    """Return the columns as DDL, which Spark Connect accepts as well."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return ", ".join(
        f"{quote_identifier(field.name)} {field.dataType.simpleString()}"
        for field in from_arrow_schema(columns)
    )
