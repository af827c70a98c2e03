"""The class of one cell: what a client made of one operation on one table."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.certification.adapter import Kind, Reply
from deltaproto.certification.compare import number_differs, rows_differ, schema_differs
from deltaproto.certification.kit.case import Case
from deltaproto.clients.measurement import Cell, Operation, Outcome

_REMOVING = (Operation.DELETE, Operation.UPDATE, Operation.MERGE, Operation.OVERWRITE)
_UNKNOWABLE = "answered, though the protocol asks for something that nobody knows"
_WRITTEN = "wrote, though the protocol asks for something that nobody knows"


def judge_read(case: Case, operation: Operation, replies: Sequence[Reply]) -> Cell:
    """The class of a read; the first reply that is not right decides."""
    for number, reply in enumerate(replies):
        cell = without_answer(case, operation, reply)
        if cell is not None:
            return cell
        if "read" in case.must_refuse:
            return Cell(case.name, operation, Outcome.WRONG, _UNKNOWABLE)
        if fault := _read_fault(case, operation, reply, number):
            return Cell(case.name, operation, Outcome.WRONG, fault)
    return Cell(case.name, operation, Outcome.RIGHT)


def judge_write(case: Case, operation: Operation, faults: Sequence[str]) -> Cell:
    """The class of a write that the client says has succeeded.

    Args:
        faults: what the table shows to be wrong.
    """
    if "write" in case.must_refuse:
        return Cell(case.name, operation, Outcome.WRONG, _WRITTEN)
    if taken := must_fail(case, operation):
        return Cell(case.name, operation, Outcome.WRONG, taken)
    if faults:
        return Cell(case.name, operation, Outcome.WRONG, "; ".join(faults))
    return Cell(case.name, operation, Outcome.RIGHT)


def without_answer(case: Case, operation: Operation, reply: Reply) -> Cell | None:
    """The class of a request that the client did not carry out; None when it did."""
    match reply.kind:
        case Kind.ANSWERED:
            return None
        case Kind.FAILED:
            # What must fail is right when it does.
            right = must_fail(case, operation)
            outcome = Outcome.RIGHT if right else Outcome.REFUSED
        case Kind.NOT_OFFERED:
            outcome = Outcome.NOT_OFFERED
        case Kind.CRASHED:
            outcome = Outcome.CRASHED
        case Kind.TIMED_OUT:
            outcome = Outcome.TIMED_OUT
    return Cell(case.name, operation, outcome, reply.message)


def must_fail(case: Case, operation: Operation) -> str:
    """Why this must not succeed on this table, said of a client with which it does; else empty."""
    if operation is Operation.APPEND_VIOLATING:
        return "it took a row that the table forbids"
    if case.append_only and operation in _REMOVING:
        return "it removed rows of a table that is append-only"
    return ""


def _read_fault(case: Case, operation: Operation, reply: Reply, number: int) -> str:
    match operation:
        case Operation.COUNT:
            return number_differs(reply.answer, len(case.rows))
        case Operation.TOTAL:
            return number_differs(reply.answer, case.total)
        case Operation.SCHEMA:
            return schema_differs(case, reply.answer)
        case Operation.TIME_TRAVEL:
            assert case.past is not None
            return rows_differ(case, reply.answer, case.past.rows)
        case Operation.FILTER:
            asked = case.filters[number]
            fault = rows_differ(case, reply.answer, asked.rows)
            return fault and f"where {asked.column} {asked.op} {asked.value}: {fault}"
    return rows_differ(case, reply.answer, case.rows)
