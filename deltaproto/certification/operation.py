"""What is asked of a client, and of which table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.certification.kit.case import Case, Row
from deltaproto.certification.kit.recipe import DOUBLED
from deltaproto.clients.measurement import Operation

NEW_IDS = (100, 101)
DELETED_ID = 5
CHANGED_FROM = 15
MERGED_ID = 200
OMITTING_ID = 300
CHANGED, MERGED, ADDED = "changed", "merged", "new"
PROPERTY = ("delta.logRetentionDuration", "interval 60 days")
_PRICE = 1.5


_BRIEF = (Operation.ROWS, Operation.APPEND, Operation.DELETE, Operation.OPTIMIZE)


class Request(NamedTuple):
    """One call of an adapter: its function, and what it gets beside the table."""

    function: str
    arguments: Mapping[str, Any]


def operations(case: Case) -> tuple[Operation, ...]:
    """What is asked on this table. Where only the protocol is of interest, one of each access."""
    if case.brief:
        more = [Operation.UPDATE, Operation.MERGE] if case.hazard is not None else []
        if case.unwritten:
            # A source without the column is refused for that alone.
            more.remove(Operation.MERGE)
        violating = (Operation.APPEND_VIOLATING,) if case.violating else ()
        return (*_BRIEF, *more, *violating)
    return tuple(
        operation
        for operation in Operation
        if (operation is not Operation.TIME_TRAVEL or case.past)
        and (operation is not Operation.APPEND_OMITTING or case.omitted)
        and (operation is not Operation.APPEND_VIOLATING or case.violating)
    )


def requests(case: Case, operation: Operation) -> Iterator[Request]:
    """The calls that make up an operation; a filter is one for each comparison."""
    match operation:
        case Operation.TIME_TRAVEL:
            assert case.past is not None
            yield Request("rows", {"version": case.past.version})
        case Operation.FILTER:
            for each in case.filters:
                yield Request("rows", {"where": _where(each.column, each.op, each.value)})
        case Operation.TOTAL:
            yield Request("total", {"column": "id"})
        case Operation.APPEND | Operation.OVERWRITE:
            yield Request(operation.value, {"rows": _given(case, added(case))})
        case Operation.APPEND_OMITTING:
            yield Request("append", {"rows": _given(case, [omitting(case)], case.omitted)})
        case Operation.APPEND_VIOLATING:
            yield Request("append", {"rows": _given(case, [violating(case)])})
        case Operation.DELETE:
            yield Request("delete", {"where": _where("id", "=", DELETED_ID)})
        case Operation.UPDATE:
            changed = {"where": _where("id", ">=", CHANGED_FROM), "column": "word"}
            yield Request("update", {**changed, "value": CHANGED})
        case Operation.MERGE:
            yield Request("merge", {"rows": _given(case, merged(case)), "column": "id"})
        case Operation.CONFIGURE:
            yield Request("configure", {"key": PROPERTY[0], "value": PROPERTY[1]})
        case _:
            yield Request(operation.value, {})


def added(case: Case) -> list[dict[str, Any]]:
    """The rows that are appended."""
    return [_row(case, number, ADDED) for number in NEW_IDS]


def merged(case: Case) -> list[dict[str, Any]]:
    """The source of a merge: one row that is there, one that is new."""
    return [_row(case, DELETED_ID, MERGED), _row(case, MERGED_ID, MERGED)]


def omitting(case: Case) -> dict[str, Any]:
    """A row without the columns that a writer must fill."""
    row = _row(case, OMITTING_ID, ADDED)
    return {name: value for name, value in row.items() if name not in case.omitted}


def violating(case: Case) -> dict[str, Any]:
    """A row that must not get in."""
    return {**_row(case, OMITTING_ID, ADDED), **case.violating}


def rows_after(case: Case, operation: Operation) -> list[Row]:
    """The rows that a table must have after a write; `ANY` stands for a value that is not null."""
    rows: list[Row] = list(case.rows)
    match operation:
        case Operation.APPEND:
            return [*rows, *added(case)]
        case Operation.OVERWRITE:
            return list(added(case))
        case Operation.APPEND_OMITTING:
            return [*rows, {**omitting(case), **case.omitted}]
        case Operation.DELETE:
            return [row for row in rows if row["id"] != DELETED_ID]
        case Operation.UPDATE:
            return [{**r, "word": CHANGED} if r["id"] >= CHANGED_FROM else r for r in rows]
        case Operation.MERGE:
            new = merged(case)
            kept = {row["id"] for row in new}
            return [row for row in rows if row["id"] not in kept] + list(new)
    return rows


def changes(case: Case, operation: Operation) -> list[tuple[str, int]]:
    """Kind and id of every change that a change data feed must tell of a write."""
    before = {row["id"]: row for row in case.rows}
    after = {row["id"]: row for row in rows_after(case, operation)}
    if operation is Operation.OVERWRITE:
        return sorted([*(("delete", i) for i in before), *(("insert", i) for i in after)])
    found = [("insert", i) for i in after if i not in before]
    found += [("delete", i) for i in before if i not in after]
    for number in before.keys() & after.keys():
        if before[number] != after[number]:
            found += [("update_preimage", number), ("update_postimage", number)]
    return sorted(found)


def _row(case: Case, number: int, word: str) -> dict[str, Any]:
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


def _given(
    case: Case, rows: list[dict[str, Any]], without: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    left_out = {case.unwritten, *(without or ())}
    columns = [[name, kind] for name, kind in case.schema if name not in left_out]
    return {"values": rows, "columns": columns}


def _where(column: str, op: str, value: Any) -> dict[str, Any]:
    return {"column": column, "op": op, "value": value}
