"""Findings and problems of one table, in the form that every renderer uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.policy.finding import SEVERITY_RANKS, Finding, Rule, Severity, Suppression
from deltaproto.render.document.blocks import FindingLine, FindingList, Tone

_MOST_FINDINGS = 500
"""maximum number of findings shown for one table"""
RulePage = tuple[Rule, str]
"""a rule and its page, as `find_rule` returns them"""

SEVERITY_TONES = {
    Severity.ERROR: Tone.DANGER,
    Severity.WARNING: Tone.WARNING,
    Severity.INFO: Tone.NOTE,
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Report(NamedTuple):
    """The findings of one table, or the error that prevented them."""

    table: str
    """the name that the user typed"""
    location: str | None
    """an absolute URI; None if unknown"""
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppression, ...] = ()
    error: TableError | None = None
    complete: bool = True


class Problem(NamedTuple):
    """The reason why a report is missing or incomplete."""

    code: str
    message: str
    hint: str


def problem(error: TableError | None, *, complete: bool) -> Problem | None:
    """Return why a result is missing or incomplete; None if it is complete."""
    if error is not None:
        return Problem(str(error.code), error.message, error.hint)
    if not complete:
        return Problem("incomplete", "the result may be incomplete", "see the table's findings")
    return None


def problem_block(error: TableError | None, *, complete: bool) -> FindingList | None:
    """Return a block with the reason for a missing or incomplete result, or None."""
    found = problem(error, complete=complete)
    if found is None:
        return None
    severity = Severity.WARNING if error is None else Severity.ERROR
    message = f"NOT COMPLETE: {found.message}" if error is None else found.message
    line = FindingLine(SEVERITY_TONES[severity], str(severity), found.code, message, found.hint)
    return FindingList([line])


def finding_block(findings: Iterable[Finding]) -> FindingList:
    """Return a table's findings as one block; findings in the baseline are marked as known.

    If there are very many findings, only the most severe are shown, and the others are counted.
    """
    every = list(findings)
    shown = every
    if len(every) > _MOST_FINDINGS:
        shown = sorted(every, key=lambda each: SEVERITY_RANKS[each.severity])[:_MOST_FINDINGS]
    more = [_count_more(len(every) - len(shown))] if len(shown) < len(every) else []
    return FindingList(
        [
            FindingLine(
                None if each.known else SEVERITY_TONES[each.severity],
                f"{each.severity} (known)" if each.known else str(each.severity),
                each.rule,
                each.message,
                each.hint,
                each.evidence or "",
            )
            for each in shown
        ]
        + more
    )


def _count_more(count: int) -> FindingLine:
    text = f"and {counted(count, 'more finding')} of this table; --format json has all of them"
    return FindingLine(Tone.NOTE, "note", "", text, "")


def advice(problem: Finding | Problem) -> str:
    """Return the message, marked if it is in the baseline, with the hint on a separate line."""
    message = (
        f"known: {problem.message}"
        if isinstance(problem, Finding) and problem.known
        else problem.message
    )
    return f"{message}\nHint: {problem.hint}" if problem.hint else message


def fingerprint(report: Report, finding: Finding) -> str:
    """Return a finding's identity across runs, independent of its wording and severity."""
    import hashlib
    import json

    where = report.table if report.location is None else report.location
    about = [finding.rule, where, finding.feature, finding.client]
    identity = json.dumps(about if finding.detail is None else [*about, finding.detail])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def encodable(text: str) -> str:
    """Return `text` without lone surrogates, which no Unicode encoding can represent."""
    return _SURROGATE.sub("\ufffd", text)
