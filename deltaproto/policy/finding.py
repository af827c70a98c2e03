"""One finding: a rule that a table breaks, in one line, with what to do."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import ExitCode


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class FailOn(StrEnum):
    """From which severity on findings make the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


class Finding(NamedTuple):
    """What one rule says about one table."""

    rule: str
    severity: Severity
    message: str
    hint: str
    table: str
    feature: str | None = None
    client: str | None = None
    evidence: str | None = None
    detail: str | None = None
    """what tells findings of one rule on one table apart, where feature and client do not"""
    known: bool = False
    """whether a saved check, the baseline, has it: it is shown, and fails nothing"""


def worst_first(finding: Finding) -> tuple[int, str]:
    """The order in which a table's findings are shown."""
    return _RANKS[finding.severity], finding.rule


def hidden(waived: int, off: int) -> str:
    """Return how many findings a policy waives and switches off; empty for none."""
    parts = (waived and f"{waived:,} waived", off and f"{off:,} turned off by severities")
    return ", ".join(part for part in parts if part)


class Suppressed(NamedTuple):
    """A finding that somebody has accepted, and why."""

    finding: Finding
    reason: str
    expires: str | None = None
    """the last day, as YYYY-MM-DD"""
    approver: str | None = None
    """who approved it; None for a waiver"""
    ticket: str | None = None


def exit_code(findings: Iterable[Finding], fail_on: FailOn) -> ExitCode:
    """1 when a finding that the baseline does not have reaches `fail_on`, else 0."""
    new = (finding.severity for finding in findings if not finding.known)
    return exit_code_for(new, fail_on)


def exit_code_for(severities: Iterable[Severity], fail_on: FailOn) -> ExitCode:
    """1 when one of the severities reaches `fail_on`, else 0."""
    reaching: dict[FailOn, tuple[Severity, ...]] = {
        FailOn.ERROR: (Severity.ERROR,),
        FailOn.WARNING: (Severity.ERROR, Severity.WARNING),
        FailOn.NEVER: (),
    }
    hit = any(severity in reaching[fail_on] for severity in severities)
    return ExitCode.FINDINGS if hit else ExitCode.OK
