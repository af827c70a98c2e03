"""A client's outcomes by reference table and access, and the hazards that they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.clients.matching import judge_access
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.clients.model import MEASURED_REFERENCE, Access, Range, Verdict
from deltaproto.clients.requirements import (
    EXPRESSION_PREFIX,
    OF_FILTERED_READS,
    UNBOUNDED_BOOLEANS,
    UNREAD_BOOLEAN_BOUNDS,
    TableRequirements,
)
from deltaproto.counts import shorten

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


_UNFILTERED = ObservedAccess(MeasuredOutcome.NOT_OFFERED, "its filters were not measured")
_VERDICTS = {
    MeasuredOutcome.REFUSED: Verdict.REFUSED,
    MeasuredOutcome.WRONG: Verdict.WRONG,
    MeasuredOutcome.NOT_OFFERED: Verdict.UNKNOWN,
}


def build_hazards(
    each: Range,
    measured: Measurement,
    found: Mapping[tuple[str, Access], ObservedAccess],
    known: Mapping[str, KnownTable],
) -> list[dict[str, Any]]:
    """Return the outcomes on tables with a hazard, if the gates do not decide them."""
    decided = _hazard_outcomes(each, measured, found, known)
    grouped: dict[tuple[str, Verdict, str], dict[str, Any]] = {}
    right: dict[tuple[str, ...], list[str]] = {}
    for hazard in dict.fromkeys(hazard for hazard, _ in decided):
        fine = [a for a in Access if (hazard, a) in decided and _is_right(decided[hazard, a])]
        if fine:
            right.setdefault(tuple(map(str, fine)), []).append(hazard)
    for (hazard, access), (was, name) in decided.items():
        if was.outcome is MeasuredOutcome.RIGHT:
            continue
        verdict = _VERDICTS[was.outcome]
        if hazard == UNREAD_BOOLEAN_BOUNDS:
            verdict = Verdict.UNKNOWN
        item = grouped.setdefault(
            (hazard, verdict, name),
            {
                "hazards": [hazard],
                "access": [],
                "verdict": str(verdict),
                "what": shorten(was.why, LONGEST_REASON),
                "reference": f"{MEASURED_REFERENCE}{name}",
            },
        )
        item["access"].append(str(access))
    fine_ones = (
        {"hazards": words, "access": [*accesses], "verdict": str(Verdict.OK)}
        for accesses, words in right.items()
    )
    return [*grouped.values(), *fine_ones]


def _hazard_outcomes(
    each: Range,
    measured: Measurement,
    found: Mapping[tuple[str, Access], ObservedAccess],
    known: Mapping[str, KnownTable],
) -> dict[tuple[str, Access], tuple[ObservedAccess, str]]:
    """Return the outcome and the table by hazard and access, if the gates do not decide it."""
    offered = (cell for cell in measured.cells if cell.outcome is not MeasuredOutcome.NOT_OFFERED)
    filtered = {cell.case for cell in offered if cell.operation is ResultColumn.FILTER}
    decided: dict[tuple[str, Access], tuple[ObservedAccess, str]] = {}
    for (name, access), was in sorted(found.items()):
        hazard = known[name].case.hazard
        if hazard is None or access not in each.paths[0].access:
            continue
        if judge_protocol(each, known[name], access) in (Verdict.OK, Verdict.UNKNOWN):
            untried = hazard in OF_FILTERED_READS and name not in filtered
            if untried and was.outcome is MeasuredOutcome.RIGHT:
                was = _UNFILTERED
            decided[hazard, access] = was, name
    for (hazard, access), (was, _) in tuple(decided.items()):
        # A MERGE also inserts rows: it accepts and refuses what an append does.
        append = decided.get((hazard, Access.APPEND))
        of_constraint = hazard.startswith(EXPRESSION_PREFIX) and access is Access.DML
        if of_constraint and was.outcome is MeasuredOutcome.RIGHT and append is not None:
            decided[hazard, access] = append
    unbounded = decided.get((UNBOUNDED_BOOLEANS, Access.READ))
    if unbounded is not None and not _is_right(unbounded):
        # Files whose statistics were not read may have such bounds, or lack them.
        decided[UNREAD_BOOLEAN_BOUNDS, Access.READ] = unbounded
    return decided


def _is_right(decided: tuple[ObservedAccess, str]) -> bool:
    return decided[0].outcome is MeasuredOutcome.RIGHT
