"""The hazards of a catalog entry: how a client handles layouts and contents of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.certification.outcomes import (
    LONGEST_REASON,
    KnownTable,
    ObservedAccess,
    judge_protocol,
)
from deltaproto.certification.scrub import shorten
from deltaproto.clients.matching import Verdict
from deltaproto.clients.measurement import MeasuredOutcome, Measurement, ResultColumn
from deltaproto.clients.model import Access, Range
from deltaproto.clients.requirements import (
    EXPRESSION_PREFIX,
    OF_FILTERED_READS,
    UNBOUNDED_BOOLEANS,
    UNREAD_BOOLEAN_BOUNDS,
)

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
                "reference": f"certify, {name}",
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
