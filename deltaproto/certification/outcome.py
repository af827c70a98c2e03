"""Classifies one cell: a client's outcome for one operation on one table."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.certification.adapter import Reply, ReplyKind
from deltaproto.certification.compare import (
    describe_number_difference,
    describe_row_difference,
    describe_schema_difference,
)
from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn

_REMOVING = (ResultColumn.DELETE, ResultColumn.UPDATE, ResultColumn.MERGE, ResultColumn.OVERWRITE)
_UNKNOWABLE = "answered, though the protocol asks for something that nobody knows"
_WRITTEN = "wrote, though the protocol asks for something that nobody knows"


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
        return "it took a row that the table forbids"
    if case.append_only and operation in _REMOVING:
        return "it removed rows of a table that is append-only"
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
            asked = case.filters[number]
            fault = describe_row_difference(case, reply.answer, asked.rows)
            return fault and f"where {asked.column} {asked.op} {asked.value}: {fault}"
    return describe_row_difference(case, reply.answer, case.rows)
