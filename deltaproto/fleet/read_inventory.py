"""Reads tables from a scan in the inventory, for checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deltaproto.clients.requirements import is_used, table_requirements
from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.inventory_queries import InventoryQueries
from deltaproto.fleet.scan_history import PastScan, sql_literal
from deltaproto.fleet.schemas import CATALOG_COLUMNS, OTHER_NAMES, Inventory
from deltaproto.location import locate
from deltaproto.policy.context import TableFacts
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import (
    describe_inconsistencies,
    hazards_from_findings,
    uninspected_by_reader,
)
from deltaproto.protocol.isolation import WriterEngine
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.engine_errors import contain_table_errors

TABLES_READ = (Inventory.TABLES, Inventory.FEATURES, Inventory.FINDINGS)
_COLUMNS = (
    "location",
    "version",
    "id",
    "partition_columns",
    "clustering_columns",
    "min_reader_version",
    "min_writer_version",
    "reader_features",
    "writer_features",
    "isolation_delta_spark",
    "isolation_databricks",
    "isolation_delta_rs",
    "configuration",
    "complete",
    "reader",
)
ISOLATION_COLUMNS = {
    f"isolation_{str(engine).replace('-', '_')}": str(engine) for engine in WriterEngine
}
"""the columns with the effective isolation level of each engine"""
_NESTED = (str(Inventory.FEATURES), str(Inventory.FINDINGS))
_FEATURE = ("feature", "kind", "enabled", "present", "required_by")
_FINDING = ("rule", "severity", "message", "hint", "feature", "client", "evidence")
_KEPT = (*_FINDING, "number")


def tables_query(
    queries: InventoryQueries,
    scan_id: str,
    where: str | None = None,
    more: Iterable[str] = (),
) -> str:
    """Return the query for every table that the scan read, with its features and findings nested.

    Args:
        where: a condition on the columns of `tables`, in the user's SQL.
        more: columns that the rows must have besides those that a check needs.
    """
    scan, table = sql_literal(scan_id), f"{queries.quote}table{queries.quote}"
    present = queries.columns(Inventory.TABLES)
    known = (column for column in (*CATALOG_COLUMNS, OTHER_NAMES) if column in present)
    wanted = dict.fromkeys((*_COLUMNS, *known, *more))
    columns = ", ".join(f"t.{column}" for column in wanted if column not in _NESTED)
    chosen = f" AND ({validate_condition(where)}\n)" if where else ""

    return (
        f"SELECT {columns}, t.{table}, f.rows AS {_NESTED[0]}, g.rows AS {_NESTED[1]} "  # noqa: S608
        f"FROM (SELECT * FROM {queries.name(Inventory.TABLES)} WHERE scan_id = {scan}{chosen}) t "
        f"LEFT JOIN {_nested_rows(queries, Inventory.FEATURES, scan_id, _FEATURE)} f "
        "ON t.location = f.location "
        f"LEFT JOIN {_nested_rows(queries, Inventory.FINDINGS, scan_id, _KEPT)} g "
        "ON t.location = g.location"
    )


def _nested_rows(
    queries: InventoryQueries, name: Inventory, scan_id: str, fields: Iterable[str]
) -> str:
    """Return the subquery for the rows of a scan in one table, one list for each location."""
    struct = ", ".join(f"'{field}', {field}" for field in fields)
    return (
        f"(SELECT location, array_agg(named_struct({struct})) AS rows "  # noqa: S608
        f"FROM {queries.name(name)} WHERE scan_id = {sql_literal(scan_id)} GROUP BY location)"
    )


def rows_query(
    queries: InventoryQueries,
    table: Inventory,
    scan_id: str,
    names: Iterable[str],
    where: str | None = None,
) -> str:
    """Return the query for the rows of a scan in one of the inventory's tables, by location.

    Args:
        names: its columns.
        where: a condition on its columns, in the user's SQL.
    """
    columns = ", ".join(f"{queries.quote}{name}{queries.quote}" for name in names)
    chosen = f" AND ({validate_condition(where)}\n)" if where else ""
    return (
        f"SELECT {columns} FROM {queries.name(table)} "  # noqa: S608
        f"WHERE scan_id = {sql_literal(scan_id)}{chosen} ORDER BY location"
    )


def validate_condition(where: str) -> str:
    """Check that the condition is balanced; otherwise it could reach into other scans.

    Raises:
        UsageError: when a parenthesis or a quote is not closed.
    """
    depth, quote = 0, ""
    for character in where:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
    if depth or quote:
        raise UsageError(
            "the condition (where) is not complete: a parenthesis or a quote is not closed",
            "for example: min_reader_version = 3",
        )
    return where


def read_table_rows(
    queries: InventoryQueries,
    scan: PastScan,
    where: str | None = None,
    more: Iterable[str] = (),
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of `tables_query` by location: equal tables have equal lists.

    Raises:
        UsageError: when `where` is invalid.
        TableError: when the inventory cannot be read.
    """
    query = tables_query(queries, scan.scan_id, where, more)
    for row in queries.rows(f"{query} ORDER BY t.location", TABLES_READ, where):
        # An engine collects the rows of a list in any order.
        for nested, member in zip(_NESTED, ("feature", "number"), strict=True):
            if row[nested]:
                row[nested].sort(key=lambda each: str(each[member]))
        yield row


def read_error_rows(queries: InventoryQueries, scan: PastScan) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that the scan could not read, with their findings nested.

    Raises like `read_table_rows`.
    """
    quote, name = queries.quote, queries.name(Inventory.ERRORS)
    found = _nested_rows(queries, Inventory.FINDINGS, scan.scan_id, _KEPT)
    return queries.rows(
        f"SELECT e.location, e.{quote}table{quote}, code, message, hint, g.rows AS findings "  # noqa: S608
        f"FROM {name} e LEFT JOIN {found} g ON e.location = g.location "
        f"WHERE e.scan_id = {sql_literal(scan.scan_id)} ORDER BY e.location",
        (Inventory.ERRORS, Inventory.FINDINGS),
    )


def read_facts(
    queries: InventoryQueries,
    scan: PastScan,
    more: Iterable[str] = (),
) -> Iterator[tuple[Mapping[str, Any], TableFacts | TableError]]:
    """Yield the row and the facts of each table, by location; then of those that are unreadable.

    Args:
        more: columns that the rows must have besides those that a check needs.

    Raises:
        TableError: when the inventory cannot be read.
    """
    for row in read_table_rows(queries, scan, more=more):
        try:
            with contain_table_errors():
                found: TableFacts | TableError = facts_from_row(row)
        except TableError as error:
            found = error
        yield row, found
    for row in read_error_rows(queries, scan):
        yield row, error_from_row(row)


def facts_from_row(row: Mapping[str, Any]) -> TableFacts:
    """Convert one row of the query to a check's input.

    Raises:
        TableError: corrupt-log, for an impossible version or protocol, or when a feature's row is
            missing.
    """
    table, location = row["table"], row["location"]
    for column in ("version", "min_reader_version", "min_writer_version"):
        if not isinstance(row[column], int) or row[column] < 0:
            value = "null" if row[column] is None else row[column]
            raise _damaged_error(
                f"the inventory has {value} as the table's {column.replace('_', ' ')}"
            )
    stored = {
        "minReaderVersion": row["min_reader_version"],
        "minWriterVersion": row["min_writer_version"],
        "readerFeatures": row["reader_features"],
        "writerFeatures": row["writer_features"],
    }
    features = row["features"] or ()
    if any(None in (feature["required_by"] or ()) for feature in features):
        raise _damaged_error("the inventory has null among the features that require another one")
    try:
        protocol = Protocol.stored({key: held for key, held in stored.items() if held is not None})
    except ValueError as error:
        raise _damaged_error(f"the inventory has an invalid protocol: {error}") from None
    if lost := protocol.supported - {feature["feature"] for feature in features}:
        raise lost_features_error(lost)
    findings = findings_from_row(row)
    configuration = dict(row["configuration"] or ())
    return TableFacts(
        table=table,
        location=location,
        version=row["version"],
        needs=table_requirements(
            protocol,
            {f["feature"]: is_used(f["feature"], f["enabled"], f["present"]) for f in features},
            configuration,
            by_name=locate(table).by_name,
            absent=[f["feature"] for f in features if f["present"] is False],
            doubts=describe_inconsistencies(findings, configuration),
            hazards=hazards_from_findings(
                findings, configuration, location, row["partition_columns"] or ()
            ),
            unseen=uninspected_by_reader(
                row["reader"] or "", configuration, row["partition_columns"] or ()
            ),
        ),
        configuration=configuration,
        isolation={engine: row[column] for column, engine in ISOLATION_COLUMNS.items()},
        findings=findings,
        complete=row["complete"],
        id=row["id"],
        clustering=None if (columns := row["clustering_columns"]) is None else tuple(columns),
        catalog=row.get("catalog"),
        type=row.get("table_type"),
        other_names=_other_names(row),
    )


def _other_names(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = tuple(row.get(OTHER_NAMES) or ())
    if None in names:
        raise _damaged_error("the inventory has null among the table's other names")
    return names


def lost_features_error(names: Iterable[str]) -> TableError:
    """Return the error of a table whose supported features lack rows in the inventory."""
    return _damaged_error(f"the inventory lacks the table's features {', '.join(sorted(names))}")


def _damaged_error(message: str) -> TableError:
    return TableError(ErrorCode.CORRUPT_LOG, message, "the inventory is damaged; scan again")


def findings_from_row(row: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings of a table's row, in their order."""
    ordered = sorted(row["findings"] or (), key=lambda each: int(each["number"]))
    return tuple(_finding(row["table"], each) for each in ordered)


def _finding(table: str, row: Mapping[str, Any]) -> Finding:
    members = {name: row[name] for name in _FINDING if name != "severity"}
    return Finding(severity=Severity(row["severity"]), table=table, **members)


def error_from_row(row: Mapping[str, Any]) -> TableError:
    """Return the error of a table that could not be read."""
    code = row["code"]
    known = ErrorCode(code) if code in set(ErrorCode) else ErrorCode.STORAGE
    return TableError(known, row["message"], row["hint"] or "")
