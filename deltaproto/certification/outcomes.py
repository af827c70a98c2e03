"""A client's outcomes by reference table and access."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.clients.matching import Verdict, judge_access
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn
from deltaproto.clients.model import Access, Range
from deltaproto.clients.requirements import TableRequirements

LONGEST_REASON = 160
"""characters of a reason in an entry"""
_NO_VERDICT = frozenset({ResultColumn.SCHEMA, ResultColumn.TIME_TRAVEL, ResultColumn.OVERWRITE})
"""operations that do not decide whether a table is usable: an older version may have another
protocol, and policies have no access that replaces a table"""
_SEVERITY = (MeasuredOutcome.WRONG, MeasuredOutcome.REFUSED, MeasuredOutcome.RIGHT)


class ObservedAccess(NamedTuple):
    """A client's outcome on a table, for one kind of access."""

    outcome: MeasuredOutcome
    """right, refused or WRONG; a crash or a timeout counts as a refusal. NOT_OFFERED: unknown,
    since the table is about filters, and the client offers none"""
    why: str


class KnownTable(NamedTuple):
    """The relevant properties of a reference table."""

    case: ReferenceTable
    needs: TableRequirements


def collect_outcomes(cells: Iterable[MeasurementCell]) -> dict[tuple[str, Access], ObservedAccess]:
    """Return the outcome by table and access: the worst of the supported operations."""
    found: dict[tuple[str, Access], ObservedAccess] = {}
    for cell in cells:
        if cell.outcome is MeasuredOutcome.NOT_OFFERED or cell.operation in _NO_VERDICT:
            continue
        given_up = cell.outcome in (MeasuredOutcome.CRASHED, MeasuredOutcome.TIMED_OUT)
        outcome = MeasuredOutcome.REFUSED if given_up else cell.outcome
        why = f"{cell.operation}: {cell.why}" if cell.why else ""
        here = (cell.case, cell.operation.access)
        known = found.get(here)
        if known is None or _SEVERITY.index(outcome) < _SEVERITY.index(known.outcome):
            found[here] = ObservedAccess(outcome, why)
    return found


def judge_protocol(each: Range, table: KnownTable, access: Access) -> Verdict:
    """Return the verdict on a table's protocol alone, regardless of hazards."""
    needs = table.needs._replace(hazards=frozenset(), unseen=frozenset())
    return judge_access(each, each.paths[0], needs, access).verdict
