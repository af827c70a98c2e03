"""The operations requested of a client, by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.certification.fixtures.case import ReferenceTable, Row
from deltaproto.certification.fixtures.recipe import ANY, DOUBLED
from deltaproto.clients.measurement import ResultColumn
from deltaproto.clients.requirements import OF_FILTERED_READS

NEW_IDS = (100, 101)
DELETED_ID = 5
CHANGED_FROM = 15
MERGED_ID = 200
OMITTING_ID = 300
CHANGED, MERGED, ADDED = "changed", "merged", "new"
CHANGED_PROPERTY = ("delta.logRetentionDuration", "interval 60 days")
_PRICE = 1.5


_FILTERED = (ResultColumn.ROWS, ResultColumn.FILTER)
_BRIEF = (ResultColumn.ROWS, ResultColumn.APPEND, ResultColumn.DELETE, ResultColumn.OPTIMIZE)


class AdapterRequest(NamedTuple):
    """One call of an adapter: its function, and its arguments besides the table."""

    function: str
    arguments: Mapping[str, Any]


def operations_for(case: ReferenceTable) -> tuple[ResultColumn, ...]:
    """Return the operations for this table; one of each access if only the protocol matters."""
    if case.hazard in OF_FILTERED_READS:
        return _FILTERED
    if case.brief:
        more = [ResultColumn.UPDATE, ResultColumn.MERGE] if case.hazard is not None else []
        if case.unwritten:
            # A source without the column would be rejected for that reason alone.
            more.remove(ResultColumn.MERGE)
        violating = (ResultColumn.APPEND_VIOLATING,) if case.violating else ()
        return (*_BRIEF, *more, *violating)
    return tuple(
        operation
        for operation in ResultColumn
        if (operation is not ResultColumn.TIME_TRAVEL or case.past)
        and (operation is not ResultColumn.APPEND_OMITTING or case.omitted)
        and (operation is not ResultColumn.APPEND_VIOLATING or case.violating)
    )


def build_requests(case: ReferenceTable, operation: ResultColumn) -> Iterator[AdapterRequest]:
    """Yield the calls of an operation; a filter is one call per comparison."""
    match operation:
        case ResultColumn.TIME_TRAVEL:
            assert case.past is not None
            yield AdapterRequest("rows", {"version": case.past.version})
        case ResultColumn.FILTER:
            for each in case.filters:
                where = _where(case, each.column, each.op, each.value)
                yield AdapterRequest("rows", {"where": where})
        case ResultColumn.TOTAL:
            yield AdapterRequest("total", {"column": "id"})
        case ResultColumn.APPEND | ResultColumn.OVERWRITE:
            yield AdapterRequest(
                operation.value, {"rows": _written_values(case, rows_to_append(case))}
            )
        case ResultColumn.APPEND_OMITTING:
            yield AdapterRequest(
                "append", {"rows": _written_values(case, [row_with_omissions(case)], case.omitted)}
            )
        case ResultColumn.APPEND_VIOLATING:
            yield AdapterRequest("append", {"rows": _written_values(case, [violating_row(case)])})
        case ResultColumn.DELETE:
            yield AdapterRequest("delete", {"where": _where(case, "id", "=", DELETED_ID)})
        case ResultColumn.UPDATE:
            changed = {"where": _where(case, "id", ">=", CHANGED_FROM), "column": "word"}
            yield AdapterRequest("update", {**changed, "value": CHANGED})
        case ResultColumn.MERGE:
            rows = _written_values(case, rows_to_merge(case), _generated(case))
            yield AdapterRequest("merge", {"rows": rows, "column": "id"})
        case ResultColumn.CONFIGURE:
            yield AdapterRequest(
                "configure", {"key": CHANGED_PROPERTY[0], "value": CHANGED_PROPERTY[1]}
            )
        case _:
            yield AdapterRequest(operation.value, {})


def rows_to_append(case: ReferenceTable) -> list[dict[str, Any]]:
    """Return the rows to append."""
    return [_row(case, number, ADDED) for number in NEW_IDS]


def rows_to_merge(case: ReferenceTable) -> list[dict[str, Any]]:
    """Return the source of a merge: one existing and one new row, without generated values.

    No UPDATE may set an identity column.
    """
    left_out = _generated(case)
    rows = (_row(case, DELETED_ID, MERGED), _row(case, MERGED_ID, MERGED))
    return [{n: value for n, value in row.items() if n not in left_out} for row in rows]


def row_with_omissions(case: ReferenceTable) -> dict[str, Any]:
    """Return a row without the columns that a writer must fill."""
    row = _row(case, OMITTING_ID, ADDED)
    return {name: value for name, value in row.items() if name not in case.omitted}


def violating_row(case: ReferenceTable) -> dict[str, Any]:
    """Return a row that must be rejected."""
    return {**_row(case, OMITTING_ID, ADDED), **case.violating}


def rows_after(case: ReferenceTable, operation: ResultColumn) -> list[Row]:
    """Return the table's rows after a write; `ANY` stands for any value but null."""
    rows: list[Row] = list(case.rows)
    match operation:
        case ResultColumn.APPEND:
            return [*rows, *rows_to_append(case)]
        case ResultColumn.OVERWRITE:
            return list(rows_to_append(case))
        case ResultColumn.APPEND_OMITTING:
            return [*rows, {**row_with_omissions(case), **case.omitted}]
        case ResultColumn.DELETE:
            return [row for row in rows if row["id"] != DELETED_ID]
        case ResultColumn.UPDATE:
            return [{**r, "word": CHANGED} if r["id"] >= CHANGED_FROM else r for r in rows]
        case ResultColumn.MERGE:
            before = {row["id"]: row for row in rows}
            new = {
                row["id"]: {**before.get(row["id"], _generated(case)), **row}
                for row in rows_to_merge(case)
            }
            return [row for row in rows if row["id"] not in new] + list(new.values())
    return rows


def expected_changes(case: ReferenceTable, operation: ResultColumn) -> list[tuple[str, int]]:
    """Return kind and id of every change that a write must add to the change data feed."""
    before = {row["id"]: row for row in case.rows}
    after = {row["id"]: row for row in rows_after(case, operation)}
    if operation is ResultColumn.OVERWRITE:
        return sorted([*(("delete", i) for i in before), *(("insert", i) for i in after)])
    found = [("insert", i) for i in after if i not in before]
    found += [("delete", i) for i in before if i not in after]
    for number in before.keys() & after.keys():
        if before[number] != after[number]:
            found += [("update_preimage", number), ("update_postimage", number)]
    return sorted(found)


def _generated(case: ReferenceTable) -> dict[str, Any]:
    """Return the columns whose values Delta generates: identity columns."""
    return {name: value for name, value in case.omitted.items() if value == ANY}


def _row(case: ReferenceTable, number: int, word: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, kind in case.schema:
        if name == "id":
            row[name] = number
        elif name == "word":
            row[name] = word
        elif name in case.fill:
            filled = case.fill[name]
            row[name] = number * 2 if filled == DOUBLED else filled
        else:
            row[name] = _PRICE if kind == "double" else None
    return row


def _written_values(
    case: ReferenceTable, rows: list[dict[str, Any]], without: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    left_out = {case.unwritten, *(without or ())}
    columns = [[name, kind] for name, kind in case.schema if name not in left_out]
    return {"values": rows, "columns": columns}


def _where(case: ReferenceTable, column: str, op: str, value: Any) -> dict[str, Any]:
    return {"column": column, "op": op, "value": value, "type": dict(case.schema)[column]}
