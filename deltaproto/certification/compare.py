"""Compares a client's results with a reference table, and classifies each operation's outcome."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from deltaproto.certification.adapter import Reply, ReplyKind
from deltaproto.certification.fixtures.case import ReferenceTable, Row, sort_by_id
from deltaproto.certification.fixtures.recipe import ANY
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn
from deltaproto.counts import counted

_REMOVING = (ResultColumn.DELETE, ResultColumn.UPDATE, ResultColumn.MERGE, ResultColumn.OVERWRITE)
_UNKNOWABLE = "returned a result although the protocol requires an unknown version or feature"
_WRITTEN = "wrote although the protocol requires an unknown version or feature"


def classify_read(
    case: ReferenceTable, operation: ResultColumn, replies: Sequence[Reply]
) -> MeasurementCell:
    """Classify a read; the first wrong reply decides."""
    for number, reply in enumerate(replies):
        cell = classify_unanswered(case, operation, reply)
        if cell is not None:
            return cell
        if "read" in case.must_refuse:
            return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, _UNKNOWABLE)
        if fault := _read_fault(case, operation, reply, number):
            return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, fault)
    return MeasurementCell(case.name, operation, MeasuredOutcome.RIGHT)


def classify_write(
    case: ReferenceTable, operation: ResultColumn, faults: Sequence[str]
) -> MeasurementCell:
    """Classify a write that the client reports as successful.

    Args:
        faults: problems found in the table.
    """
    if "write" in case.must_refuse:
        return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, _WRITTEN)
    if taken := why_must_fail(case, operation):
        return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, taken)
    if faults:
        return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, "; ".join(faults))
    return MeasurementCell(case.name, operation, MeasuredOutcome.RIGHT)


def classify_unanswered(
    case: ReferenceTable, operation: ResultColumn, reply: Reply
) -> MeasurementCell | None:
    """Classify a request that the client did not execute; None if it did."""
    match reply.kind:
        case ReplyKind.ANSWERED:
            return None
        case ReplyKind.FAILED:
            # Failing is right where the operation must fail.
            right = why_must_fail(case, operation)
            outcome = MeasuredOutcome.RIGHT if right else MeasuredOutcome.REFUSED
        case ReplyKind.NOT_OFFERED:
            outcome = MeasuredOutcome.NOT_OFFERED
        case ReplyKind.CRASHED:
            outcome = MeasuredOutcome.CRASHED
        case ReplyKind.TIMED_OUT:
            outcome = MeasuredOutcome.TIMED_OUT
    return MeasurementCell(case.name, operation, outcome, reply.message)


def why_must_fail(case: ReferenceTable, operation: ResultColumn) -> str:
    """Return why this must not succeed on this table; empty if it may."""
    if operation is ResultColumn.APPEND_VIOLATING:
        return "it accepted a row that the table forbids"
    if case.append_only and operation in _REMOVING:
        return "it removed rows from an append-only table"
    return ""


def _read_fault(case: ReferenceTable, operation: ResultColumn, reply: Reply, number: int) -> str:
    match operation:
        case ResultColumn.COUNT:
            return describe_number_difference(reply.answer, len(case.rows))
        case ResultColumn.TOTAL:
            return describe_number_difference(reply.answer, case.total)
        case ResultColumn.SCHEMA:
            return describe_schema_difference(case, reply.answer)
        case ResultColumn.TIME_TRAVEL:
            assert case.past is not None
            return describe_row_difference(case, reply.answer, case.past.rows)
        case ResultColumn.FILTER:
            condition = case.filters[number]
            fault = describe_row_difference(case, reply.answer, condition.rows)
            return fault and f"where {condition.column} {condition.op} {condition.value}: {fault}"
    return describe_row_difference(case, reply.answer, case.rows)


_MIDNIGHT = re.compile(r"[T ]00:00:00(\.0+)?$")
_ZONE = re.compile(r"(Z|\+00:00|[+]0000)$")
_TYPES = {
    "long": "long bigint int64 i64",
    "integer": "integer int int32 i32",
    "short": "short smallint int16 i16",
    "byte": "byte tinyint int8 i8",
    "string": "string utf8 large_string largeutf8 utf8view string_view varchar text str",
    "double": "double float64 f64",
    "float": "float float32 f32 real",
    "boolean": "boolean bool",
    "date": "date date32 date32[day]",
    "binary": "binary blob bytes large_binary largebinary",
}
_FAMILY = {word: name for name, words in _TYPES.items() for word in words.split()}


def describe_row_difference(case: ReferenceTable, found: Any, wanted: Sequence[Row]) -> str:
    """Describe what is wrong with these rows; empty if nothing is."""
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        return "it returned no rows" if found is None else "it did not return rows"
    if len(found) != len(wanted):
        rows = counted(len(found), "row")
        return f"{rows} instead of {len(wanted)}{_describe_ids(found, wanted)}"
    names = set(wanted[0]) if wanted else set()
    kinds = dict(case.schema)
    for row in found:
        if set(row) != names:
            return f"columns {_names(row)} instead of {_names(names)}"
    for got, expected in zip(sort_by_id(found), sort_by_id(wanted), strict=True):
        for name, value in expected.items():
            if not is_same_value(got[name], value, kinds.get(name, "")):
                return f"{name} is {_shown(got[name])} instead of {_shown(value)} where id is " + (
                    f"{expected.get('id')}"
                )
    return ""


def describe_number_difference(found: Any, wanted: int) -> str:
    """Describe what is wrong with a count or a sum; empty if nothing is."""
    if found is None:
        return f"nothing instead of {wanted}"
    return "" if _equal_numbers(found, wanted) else f"{_shown(found)} instead of {wanted}"


def describe_schema_difference(case: ReferenceTable, found: Any) -> str:
    """Describe what is wrong with these columns; a type with an unknown name is accepted.

    Clients name times with and without zone ambiguously, so the two are not distinguished here.
    """
    if not isinstance(found, list) or not all(
        isinstance(each, list) and len(each) == 2 for each in found
    ):
        return "it returned no columns" if not found else "it did not return columns"
    names = [name for name, _ in found]
    wanted = [name for name, _ in case.schema]
    if names != wanted:
        return f"columns {', '.join(map(str, names))} instead of {', '.join(wanted)}"
    for (name, kind), (_, read_type) in zip(case.schema, found, strict=True):
        family = _type_family(str(read_type))
        if kind in _TYPES and family in _TYPES and family != kind:
            return f"{name} is {read_type} instead of {kind}"
    return ""


def is_same_value(found: Any, wanted: Any, kind: str = "") -> bool:
    """Return True if a client's value equals the reference value."""
    if wanted == ANY:
        return found is not None
    if wanted is None or found is None:
        return found is wanted
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int | float):
        return _equal_numbers(found, wanted)
    if kind.startswith("decimal") or (kind in ("double", "float") and isinstance(wanted, str)):
        # Decimals are texts, and so is NaN. No number equals NaN, so its name is compared.
        return str(found).lower() == str(wanted).lower() or _equal_numbers(found, wanted)
    if kind.startswith("variant") and isinstance(wanted, Mapping):
        return _same_variant(found, wanted)
    if kind.startswith(("timestamp", "date")):
        return _normalize_time(found) == _normalize_time(wanted)
    if kind == "struct" and isinstance(found, list) and isinstance(wanted, Mapping):
        # Some clients return the values of a struct without their names.
        return found == list(wanted.values())
    return bool(found == wanted)


def _equal_numbers(found: Any, wanted: float | str) -> bool:
    if isinstance(found, bool):
        return False
    if isinstance(found, int) and isinstance(wanted, int):
        return found == wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return math.isclose(found, wanted, rel_tol=1e-12)
    try:
        return Decimal(str(found)) == Decimal(str(wanted))
    except InvalidOperation:
        return False


def _same_variant(found: Any, wanted: Mapping[str, Any]) -> bool:
    if isinstance(found, Mapping) and set(found) == {"metadata", "value"}:
        found = _decoded(found)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return False
    return bool(found == json.loads(wanted["json"]))


def _decoded(variant: Mapping[str, Any]) -> Any:
    """Decode a variant's bytes to JSON: writers lay out the same value in different ways."""
    try:
        from pyspark.sql.variant_utils import VariantUtils

        value, metadata = (bytes.fromhex(variant[part][2:]) for part in ("value", "metadata"))
        return VariantUtils.to_json(value, metadata)
    except Exception:
        return None


def _normalize_time(value: Any) -> str:
    text = _ZONE.sub("", str(value).strip()).replace(" ", "T")
    text = re.sub(r"\.(\d*?)0+$", lambda match: f".{match[1]}" if match[1] else "", text)
    return _MIDNIGHT.sub("", text)


def _type_family(name: str) -> str:
    word = name.strip().lower()
    inner = re.fullmatch(r"(?:nullable|lowcardinality)\((.*)\)", word)
    return _FAMILY.get(inner[1] if inner else word, word)


def _describe_ids(found: Sequence[Row], wanted: Sequence[Row]) -> str:
    got, expected = ([row.get("id") for row in rows] for rows in (found, wanted))
    extra = sorted(i for i in set(got) - set(expected) if isinstance(i, int))
    missing = sorted(i for i in set(expected) - set(got) if isinstance(i, int))
    twice = sorted({i for i in got if isinstance(i, int) and got.count(i) > 1})
    parts = [
        f"{label} {', '.join(map(str, ids[:5]))}"
        for label, ids in (("unexpected:", extra), ("missing:", missing), ("twice:", twice))
        if ids
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
