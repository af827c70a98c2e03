"""Rules and findings: a finding is a rule that a table violates, as one line with a hint."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import ExitCode


class Severity(StrEnum):
    """Severity of a finding, worst first."""

    ERROR = "error"
    """a client fails, or returns incorrect results"""
    WARNING = "warning"
    """something may fail later, or is unknown"""
    INFO = "info"
    """good to know"""


SEVERITY_RANKS: Mapping[str, int] = {severity: rank for rank, severity in enumerate(Severity)}
"""the place of each severity, the worst first"""


class FailOn(StrEnum):
    """Lowest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


class Finding(NamedTuple):
    """One result of a rule on one table."""

    rule: str
    """the id of the rule, such as DP202"""
    severity: Severity
    """error, warning or info"""
    message: str
    """what is wrong, in one sentence"""
    hint: str
    """the next action"""
    table: str
    """the table as it was named"""
    feature: str | None = None
    """the feature that is the cause"""
    client: str | None = None
    """the affected client"""
    evidence: str | None = None
    """what shows it"""
    detail: str | None = None
    """distinguishes findings of one rule on one table that have the same feature and client"""
    known: bool = False
    """True if the saved check (baseline) has it: it is shown but does not fail the check"""
    position: tuple[int, int] | None = None
    """line and column in the policy file that `table` names; None: a table, or the whole file"""

    def __repr__(self) -> str:
        return f"<Finding {self.rule} {self.severity}: {self.message}>"


def severity_sort_key(finding: Finding) -> tuple[int, str]:
    """Sort key: worst findings first."""
    return SEVERITY_RANKS[finding.severity], finding.rule


def describe_hidden(waived: int, off: int) -> str:
    """Describe how many findings a policy waives and turns off; empty for none."""
    parts = (waived and f"{waived:,} waived", off and f"{off:,} turned off by severities")
    return ", ".join(part for part in parts if part)


class Suppression(NamedTuple):
    """A finding that was accepted, and the reason."""

    finding: Finding
    reason: str
    expires: str | None = None
    """the last day, as YYYY-MM-DD"""
    approver: str | None = None
    """the approver; None for a waiver"""
    ticket: str | None = None


def exit_code(findings: Iterable[Finding], fail_on: FailOn) -> ExitCode:
    """Return 1 if a finding that is not in the baseline reaches `fail_on`, else 0."""
    new = (finding.severity for finding in findings if not finding.known)
    return exit_code_for(new, fail_on)


def exit_code_for(severities: Iterable[Severity], fail_on: FailOn) -> ExitCode:
    """Return 1 if a severity reaches `fail_on`, else 0."""
    reaching: dict[FailOn, tuple[Severity, ...]] = {
        FailOn.ERROR: (Severity.ERROR,),
        FailOn.WARNING: (Severity.ERROR, Severity.WARNING),
        FailOn.NEVER: (),
    }
    hit = any(severity in reaching[fail_on] for severity in severities)
    return ExitCode.FINDINGS if hit else ExitCode.OK


_MOST_TEXT = 10_000
"""most characters of a message"""


class Rule(NamedTuple):
    """One rule. Its page, shown by `explain`, is the docstring of the module it lives in."""

    id: str
    name: str
    severity: Severity
    since: str

    def finding(
        self,
        table: str,
        message: str,
        hint: str,
        *,
        client: str | None = None,
        feature: str | None = None,
        evidence: str | None = None,
        detail: str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            message=truncate(message),
            hint=truncate(hint),
            table=table,
            client=client,
            feature=feature,
            evidence=truncate(evidence or "") or None,
            detail=detail,
        )


def truncate(text: str) -> str:
    """Shorten a text of a finding that is extremely long."""
    # A table property may have a value of any length.
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def page_text(docstring: str | None) -> str:
    """Convert a rule module's docstring to its page in Markdown."""
    import inspect

    return inspect.cleandoc(docstring or "")
